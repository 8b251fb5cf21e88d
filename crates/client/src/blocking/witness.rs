//! Witnesses of audit logs (C2SP `tlog-witness`), over the same connections as a service.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use tokio::time::timeout;

use super::WaitingRuntime;
use crate::address::Address;
use crate::connection::{Reuse, Transport};
use crate::error::{Error, Result};
use crate::tls::TlsSettings;

/// How long a witness may take. It writes to a disk, and does nothing else.
const WITNESS_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest answer that is read: a few lines.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// A witness: an independent service that cosigns the checkpoints of a log, if the log only grew.
pub struct Witness {
    transport: Transport,
    runtime: WaitingRuntime,
}

/// The answer of a witness.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessResponse {
    /// The HTTP status.
    pub status: u16,
    /// The text.
    pub body: String,
}

impl Witness {
    /// The witness with this submission prefix. It does not connect yet. With `https`, the
    /// operating system's root certificates are trusted.
    ///
    /// ```no_run
    /// use bulla_client::blocking::Witness;
    ///
    /// # fn main() -> bulla_client::Result<()> {
    /// let witness = Witness::new("https://witness.example.org/prefix".parse()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    pub fn new(address: Address) -> Result<Self> {
        let tls = TlsSettings::default().connector(&address)?;
        let transport = Transport::new(address, tls, WITNESS_TIMEOUT);
        Ok(Self { transport, runtime: WaitingRuntime::new()? })
    }

    /// Sends the body of an `add-checkpoint`, and returns the answer. It waits on this thread.
    ///
    /// # Errors
    /// There is no answer, or it is not text.
    ///
    /// # Panics
    /// In async code, like every blocking call.
    ///
    /// ```
    /// use bulla_client::blocking::Witness;
    ///
    /// fn cosignature(witness: &Witness, body: &str) -> bulla_client::Result<Option<String>> {
    ///     let response = witness.add_checkpoint(body)?;
    ///     Ok((response.status == 200).then_some(response.body))
    /// }
    /// ```
    pub fn add_checkpoint(&self, body: &str) -> Result<WitnessResponse> {
        let asking = async { timeout(WITNESS_TIMEOUT, self.post_checkpoint(body)).await };
        self.runtime.wait(asking).unwrap_or_else(|_| Err(Error::timeout(WITNESS_TIMEOUT)))
    }

    async fn post_checkpoint(&self, body: &str) -> Result<WitnessResponse> {
        let address = &self.transport.address;
        let request = Request::post(format!("{}/add-checkpoint", address.prefix()))
            .header("host", address.host())
            .header("content-type", "text/plain; charset=utf-8")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .map_err(|error| Error::invalid_argument("the address is unusable").with_source(error))?;
        let (response, _connection) = self.transport.send(request, Reuse::Never).await?;
        let status = response.status().as_u16();
        let unreadable =
            |error| Error::invalid_response("the witness's answer cannot be read").with_source(error);
        let body =
            Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await.map_err(unreadable)?;
        let text = String::from_utf8(body.to_bytes().to_vec());
        let body = text.map_err(|_| Error::invalid_response("the witness's answer is not text"))?;
        Ok(WitnessResponse { status, body })
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Witness({})", self.transport.address)
    }
}
