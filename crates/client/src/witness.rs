//! Witnesses of logs (C2SP `tlog-witness`), over the same connections as a service.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::tls::{Authorities, tls};
use crate::transport::{Reuse, Transport};

/// How long a witness may take. It writes to a disk, and does nothing else.
const WITNESS_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest answer that is read: a few lines.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// A witness: somebody else's service that cosigns the checkpoints of a log, if the log only grew.
pub struct Witness {
    transport: Transport,
    runtime: Runtime,
}

impl Witness {
    /// The witness with this submission prefix. It is not asked anything yet. Of `https`, the
    /// system's authorities count.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn new(address: Address) -> Result<Self> {
        let tls = tls(&address, &Authorities::default(), None)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let none = |error| Error::Invalid(format!("cannot wait for the network: {error}"));
        Ok(Self { transport: Transport::new(address, tls), runtime: runtime.map_err(none)? })
    }

    /// Sends the body of an `add-checkpoint`, and returns the status and the text of the answer. It
    /// waits on this thread.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Interrupted`], [`Error::Deadline`], [`Error::Unexpected`].
    ///
    /// # Panics
    /// On a thread that already runs a runtime.
    pub fn add_checkpoint(&self, body: &str) -> Result<(u16, String)> {
        let asking = async { timeout(WITNESS_TIMEOUT, self.ask(body)).await };
        self.runtime.block_on(asking).unwrap_or(Err(Error::Deadline(WITNESS_TIMEOUT)))
    }

    async fn ask(&self, body: &str) -> Result<(u16, String)> {
        let address = &self.transport.address;
        let request = Request::post(format!("{}/add-checkpoint", address.prefix()))
            .header("host", address.host())
            .header("content-type", "text/plain; charset=utf-8")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let (response, _connection) = self.transport.send(request, Reuse::Never).await?;
        let status = response.status().as_u16();
        let unreadable = |error| Error::Unexpected(format!("the witness' answer cannot be read: {error}"));
        let body =
            Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await.map_err(unreadable)?;
        let text = String::from_utf8(body.to_bytes().to_vec());
        Ok((status, text.map_err(|_| Error::Unexpected("the witness' answer is not text".to_owned()))?))
    }
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Witness({})", self.transport.address)
    }
}
