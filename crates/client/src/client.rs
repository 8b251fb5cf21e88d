//! A client and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::connection::Transport;
use crate::error::Result;
use crate::middleware::Middleware;
use crate::tls::{ClientCertificate, RootCertificates, TlsSettings};
use crate::token::{Token, TokenProvider, TokenSource};

/// The most items of a request, as the service's default setting has it.
const MAX_BATCH_ITEMS: usize = 10_000;

/// The settings of a [`Client`]: [`Client::builder`] has their defaults.
///
/// ```
/// use std::time::Duration;
///
/// use bulla_client::{Client, ClientCertificate, RootCertificates};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let (ca, certificate, key) = (b"", b"", b"");
/// let client = Client::builder("https://keys.example.org:8200".parse()?)
///     .root_certificates(RootCertificates::from_pem(ca)?)
///     .client_certificate(ClientCertificate::from_pem(certificate, key)?)
///     .timeout(Duration::from_secs(5))
///     .connect_timeout(Duration::from_secs(2))
///     .max_retries(5)
///     .initial_backoff(Duration::from_millis(10))
///     .max_batch_items(1000)
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientBuilder {
    address: Address,
    tls: TlsSettings,
    connect_timeout: Duration,
    options: Options,
}

/// The settings that a client may have other than its clones.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) token: TokenSource,
    pub(crate) timeout: Duration,
    pub(crate) max_retries: u32,
    pub(crate) initial_backoff: Duration,
    pub(crate) max_batch_items: usize,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
}

impl ClientBuilder {
    /// Sends this capability token with each request. The default is no token.
    /// [`Token::new`] has an example.
    pub fn token(mut self, token: Token) -> Self {
        self.options.token = TokenSource::Fixed(token);
        self
    }

    /// Asks this provider for a token before each request: for tokens with a short lifetime.
    ///
    /// ```
    /// use bulla_client::middleware::Middleware;
    /// use bulla_client::{Client, TokenProvider};
    ///
    /// fn client(
    ///     address: &str,
    ///     provider: impl TokenProvider,
    ///     middleware: impl Middleware,
    /// ) -> bulla_client::Result<Client> {
    ///     let builder = Client::builder(address.parse()?).token_provider(provider);
    ///     builder.middleware(middleware).build()
    /// }
    /// ```
    pub fn token_provider(mut self, provider: impl TokenProvider) -> Self {
        self.options.token = TokenSource::Provider(Arc::new(provider));
        self
    }

    /// Trusts these root certificates only. The default is those of the operating system.
    pub fn root_certificates(mut self, roots: RootCertificates) -> Self {
        self.tls.roots = Some(roots);
        self
    }

    /// Sends a client certificate. By default the client sends none.
    pub fn client_certificate(mut self, certificate: ClientCertificate) -> Self {
        self.tls.certificate = Some(certificate);
        self
    }

    /// How long a call may take, with all its repetitions: 30 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self
    }

    /// How long a connection may take to be made: 10 seconds by default. The call repeats its
    /// request then.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How often a call repeats its request at most: 3 times by default.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.options.max_retries = retries;
        self
    }

    /// The longest first pause before a repetition: 50 milliseconds by default. This bound doubles
    /// each time. Each pause has a random length up to it.
    pub fn initial_backoff(mut self, backoff: Duration) -> Self {
        self.options.initial_backoff = backoff;
        self
    }

    /// The most items of one request, for a service that takes fewer than 10,000. Longer batches
    /// are several requests.
    pub fn max_batch_items(mut self, items: usize) -> Self {
        self.options.max_batch_items = items.max(1);
        self
    }

    /// Adds a middleware around each request. The one that was added first sees a request first.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.options.middleware.push(Arc::new(middleware));
        self
    }

    /// The client. It does not connect yet.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the settings for TLS
    /// cannot be used.
    pub fn build(self) -> Result<Client> {
        let tls = self.tls.connector(&self.address)?;
        let transport = Transport::new(self.address, tls, self.connect_timeout);
        Ok(Client { transport: Arc::new(transport), options: self.options })
    }
}

/// Shows no token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("timeout", &self.timeout)
            .field("max_retries", &self.max_retries)
            .field("initial_backoff", &self.initial_backoff)
            .field("max_batch_items", &self.max_batch_items)
            .field("middlewares", &self.middleware.len())
            .finish_non_exhaustive()
    }
}

/// A client of one service. Cloning it is cheap, and clones share their connections.
///
/// A call that is dropped before it ends closes its connection. A change may have been made then.
///
/// # Errors
/// Every call can fail in each way that [`ErrorKind`](crate::ErrorKind) has.
///
/// # Panics
/// Outside of a tokio runtime that drives networks and time, every call panics.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
    pub(crate) options: Options,
}

impl Client {
    /// The settings for a service: no token, the operating system's root certificates, a timeout of
    /// 30 seconds for each call, and at most 3 repetitions.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bulla_client::Client;
    ///
    /// # fn main() -> bulla_client::Result<()> {
    /// let address = "unix:/run/bulla/socket".parse()?;
    /// let client = Client::builder(address).timeout(Duration::from_secs(5)).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(address: Address) -> ClientBuilder {
        ClientBuilder {
            address,
            tls: TlsSettings::default(),
            connect_timeout: Duration::from_secs(10),
            options: Options {
                token: TokenSource::None,
                timeout: Duration::from_secs(30),
                max_retries: 3,
                initial_backoff: Duration::from_millis(50),
                max_batch_items: MAX_BATCH_ITEMS,
                middleware: Vec::new(),
            },
        }
    }

    /// The same client with another timeout for each call.
    ///
    /// ```
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use std::time::Duration;
    ///
    /// let patient = client.with_timeout(Duration::from_secs(600));
    /// let report = patient.verify_audit_log(&[]).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        let mut client = self.clone();
        client.options.timeout = timeout;
        client
    }

    /// The same client with another token.
    ///
    /// ```
    /// use bulla_client::{Client, Token};
    ///
    /// fn on_behalf_of(client: &Client, token: Token) -> Client {
    ///     println!("another caller of {}", client.address());
    ///     client.with_token(token)
    /// }
    /// ```
    #[must_use]
    pub fn with_token(&self, token: Token) -> Self {
        let mut client = self.clone();
        client.options.token = TokenSource::Fixed(token);
        client
    }

    /// The service's address.
    pub fn address(&self) -> &Address {
        &self.transport.address
    }
}

/// Shows no token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", self.address()).field("options", &self.options).finish()
    }
}
