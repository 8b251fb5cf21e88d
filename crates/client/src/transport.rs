//! Connections to a service, and requests over them.
//!
//! They speak HTTP/1.1. The service deals connections to its threads, so that many connections use
//! many threads, and one with HTTP/2 uses one.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::stream::connect;
use crate::tls::{Tls, certificate_error};

/// The most idle connections that are kept.
const MAX_IDLE_CONNECTIONS: usize = 64;
/// How long one is kept: the service closes those that are idle for 60 seconds.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection that has answered.
pub(crate) struct Connection(SendRequest<Full<Bytes>>);

/// Whether a request may go over a connection that was idle. The service may be closing it at that
/// moment, and nobody would know then whether it had the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Allowed,
    Never,
}

pub(crate) struct Transport {
    pub(crate) address: Address,
    tls: Option<Tls>,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Transport {
    pub(crate) fn new(address: Address, tls: Option<Tls>) -> Self {
        Self { address, tls, idle: Mutex::default() }
    }

    /// Sends a request. A caller that has read the whole answer returns the connection with
    /// [`Transport::keep`].
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Certificate`] or [`Error::Interrupted`].
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        reuse: Reuse,
    ) -> Result<(Response<Incoming>, Connection)> {
        while let Some(mut connection) = self.take(reuse) {
            if connection.0.ready().await.is_err() {
                continue;
            }
            match connection.0.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut error) => match error.take_message() {
                    // It was closed before anything was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(interrupted(&error.into_error())),
                },
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.0.send_request(request).await;
        Ok((response.map_err(|error| interrupted(&error))?, connection))
    }

    /// Keeps a connection for reuse. Its last answer must have been read to the end.
    pub(crate) fn keep(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE_CONNECTIONS && !connection.0.is_closed() {
            idle.push((connection, Instant::now()));
        }
    }

    /// The connection that was used last, if it is not too old.
    fn take(&self, reuse: Reuse) -> Option<Connection> {
        if reuse == Reuse::Never {
            return None;
        }
        let mut idle = self.idle();
        let (connection, since) = idle.pop()?;
        if since.elapsed() < IDLE_CONNECTION_TIMEOUT {
            return Some(connection);
        }
        // All others are older.
        idle.clear();
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Connection> {
        let stream = connect(self.address.peer(), self.tls.as_ref()).await?;
        let unusable = |error: hyper::Error| Error::Unreachable(because(&error));
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(unusable)?;
        // The request on the connection gets its errors.
        tokio::spawn(connection);
        Ok(Connection(sender))
    }
}

pub(crate) fn interrupted(error: &hyper::Error) -> Error {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.and_then(certificate_error).unwrap_or_else(|| Error::Interrupted(because(error)))
}

/// An error with its causes.
fn because(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
