//! Connections to a service, over TCP, TLS or a Unix socket, and requests over them.
//!
//! They speak HTTP/1.1. The service deals connections to its threads, so that many connections use
//! many threads, and one with HTTP/2 uses one.

use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::address::{Address, Network, Peer};
use crate::error::{BoxError, Error, ErrorKind, Result};
use crate::tls::{TlsConnection, certificate_error};

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
    tls: Option<TlsConnection>,
    connect_timeout: Duration,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Transport {
    pub(crate) fn new(address: Address, tls: Option<TlsConnection>, connect_timeout: Duration) -> Self {
        Self { address, tls, connect_timeout, idle: Mutex::default() }
    }

    /// Sends a request. A caller that has read the whole answer returns the connection with
    /// [`Transport::keep`].
    ///
    /// # Errors
    /// [`ErrorKind::Connect`], [`ErrorKind::Certificate`] or [`ErrorKind::Interrupted`].
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
                    None => return Err(interrupted(error.into_error())),
                },
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.0.send_request(request).await;
        Ok((response.map_err(interrupted)?, connection))
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
        let connecting = async {
            let stream = open_stream(self.address.peer(), self.tls.as_ref()).await?;
            handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&self.address, error))
        };
        let late = |_| {
            let late = format!("it accepts no connection within {:?}", self.connect_timeout);
            unreachable(&self.address, io::Error::new(io::ErrorKind::TimedOut, late))
        };
        let (sender, connection) = timeout(self.connect_timeout, connecting).await.map_err(late)??;
        // The request on the connection gets its errors.
        tokio::spawn(connection);
        Ok(Connection(sender))
    }
}

/// The error of a connection that ended too early.
pub(crate) fn interrupted(error: hyper::Error) -> Error {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.and_then(certificate_error) {
        Some(refused) => refused.with_source(error),
        None => Error::new(ErrorKind::Interrupted, "the connection to the service ended before its answer")
            .with_source(error),
    }
}

/// The error of a connection that cannot be made.
fn unreachable(peer: &impl std::fmt::Display, error: impl Into<BoxError>) -> Error {
    Error::new(ErrorKind::Connect, format!("cannot reach the service: {peer}")).with_source(error)
}

/// Bytes to and from a service.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// # Errors
/// [`ErrorKind::Connect`] or [`ErrorKind::Certificate`].
async fn open_stream(peer: Peer<'_>, tls: Option<&TlsConnection>) -> Result<Box<dyn Stream>> {
    match peer {
        Peer::Unix(path) => open_unix_stream(path).await.map_err(|e| unreachable(&path.display(), e)),
        Peer::Network(network) => {
            let stream = open_tcp_stream(network).await.map_err(|e| unreachable(&network.host, e))?;
            let Some(TlsConnection { connector, name }) = tls else { return Ok(Box::new(stream)) };
            match connector.connect(name.clone(), stream).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(match certificate_error(&error) {
                    Some(refused) => refused.with_source(error),
                    None => unreachable(&network.host, error),
                }),
            }
        }
    }
}

async fn open_tcp_stream(network: &Network) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((network.host.as_str(), network.port)).await?;
    // Requests are written in one piece: Nagle's algorithm would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(unix)]
async fn open_unix_stream(path: &Path) -> io::Result<Box<dyn Stream>> {
    /// How often the client tries again if the socket's queue is full.
    const MAX_TRIES: u32 = 100;
    let mut tries = 0;
    loop {
        match tokio::net::UnixStream::connect(path).await {
            // A Unix socket with a full queue refuses at once, where TCP would wait.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < MAX_TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            connected => return Ok(Box::new(connected?)),
        }
    }
}

#[cfg(not(unix))]
async fn open_unix_stream(_path: &Path) -> io::Result<Box<dyn Stream>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets"))
}
