//! A client and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;

use crate::address::Address;
use crate::error::Result;
use crate::secret::bearer;
use crate::tls::{Authorities, Identity, tls};
use crate::transport::Transport;

/// The most items of a request, as the service's default setting has it.
const MAX_BATCH_ITEMS: usize = 10_000;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    address: Address,
    token: Option<HeaderValue>,
    authorities: Authorities,
    identity: Option<Identity>,
    deadline: Duration,
    retries: u32,
    backoff: Duration,
    items: usize,
}

impl Settings {
    /// The settings for a service: no token, the operating system's authorities, a deadline of 30
    /// seconds for each call, and at most 3 repetitions.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            authorities: Authorities::default(),
            identity: None,
            deadline: Duration::from_secs(30),
            retries: 3,
            backoff: Duration::from_millis(50),
            items: MAX_BATCH_ITEMS,
        }
    }

    /// Sends this capability token with each request.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if it cannot be a token.
    pub fn token(self, token: &str) -> Result<Self> {
        Ok(Self { token: Some(bearer(token)?), ..self })
    }

    /// Trusts certificates of these authorities only, instead of the operating system's. `pem` has
    /// one or more certificates.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if it has none.
    pub fn authorities(self, pem: &[u8]) -> Result<Self> {
        Ok(Self { authorities: Authorities::from_pem(pem)?, ..self })
    }

    /// Shows a client certificate: `chain` has it first, and then those of the authorities between
    /// it and the root.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if one of the two is not valid PEM.
    pub fn certificate(self, chain: &[u8], key: &[u8]) -> Result<Self> {
        Ok(Self { identity: Some(Identity::from_pem(chain, key)?), ..self })
    }

    /// How long a call may take, with all its repetitions.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// How often a call repeats its request at most.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The longest first pause before a repetition. This bound doubles each time. Each pause has a
    /// random length up to it.
    #[must_use]
    pub fn backoff(self, backoff: Duration) -> Self {
        Self { backoff, ..self }
    }

    /// The most items of one request, for a service that takes fewer than 10,000. Longer batches
    /// are several requests.
    #[must_use]
    pub fn items(self, items: usize) -> Self {
        Self { items: items.max(1), ..self }
    }
}

/// A client of one service. Cloning it is cheap, and clones share their connections.
///
/// A call that is dropped before it ends closes its connection. A change may have been made then.
///
/// # Errors
/// Every call can fail in each way that [`Error`](crate::Error) has.
/// [`Error::Refused`](crate::Error::Refused) says what the service says: `spec/http-api.md` lists
/// the codes.
///
/// # Panics
/// Outside of a tokio runtime that drives networks and time, every call panics.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
    pub(crate) token: Option<HeaderValue>,
    pub(crate) deadline: Duration,
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
    pub(crate) items: usize,
}

impl Client {
    /// A client. It does not connect yet.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the settings for TLS cannot be used.
    pub fn new(settings: Settings) -> Result<Self> {
        let Settings { address, token, authorities, identity, deadline, retries, backoff, items } = settings;
        let tls = tls(&address, &authorities, identity.as_ref())?;
        let transport = Arc::new(Transport::new(address, tls));
        Ok(Self { transport, token, deadline, retries, backoff, items })
    }

    /// The same client with another deadline for each call.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// The same client with another token.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if it cannot be a token.
    pub fn with_token(&self, token: &str) -> Result<Self> {
        Ok(Self { token: Some(bearer(token)?), ..self.clone() })
    }

    /// The service's address.
    pub fn address(&self) -> &Address {
        &self.transport.address
    }
}

/// Shows no token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", self.address())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
