//! Connections of every kind.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::address::{Network, Peer};
use crate::error::{Error, Result};
use crate::tls::{Tls, certificate_error};

/// A connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// # Errors
/// [`Error::Unreachable`] or [`Error::Certificate`].
pub(crate) async fn connect(peer: Peer<'_>, tls: Option<&Tls>) -> Result<Box<dyn Stream>> {
    match peer {
        Peer::Unix(path) => unix(path).await,
        Peer::Network(network) => {
            let stream = tcp(network).await.map_err(|error| unreachable(&network.host, &error))?;
            match tls {
                None => Ok(Box::new(stream)),
                Some(Tls { connector, name }) => {
                    let failed = |error| {
                        certificate_error(&error).unwrap_or_else(|| unreachable(&network.host, &error))
                    };
                    Ok(Box::new(connector.connect(name.clone(), stream).await.map_err(failed)?))
                }
            }
        }
    }
}

async fn tcp(network: &Network) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((network.host.as_str(), network.port)).await?;
    // Requests are written in one piece: Nagle's algorithm would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(unix)]
async fn unix(path: &Path) -> Result<Box<dyn Stream>> {
    /// How often the client tries again if the socket's queue is full.
    const TRIES: u32 = 100;
    let mut tries = 0;
    loop {
        match tokio::net::UnixStream::connect(path).await {
            // A Unix socket with a full queue refuses at once, where TCP would wait.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            connected => {
                let stream = connected.map_err(|error| unreachable(&path.display().to_string(), &error))?;
                return Ok(Box::new(stream));
            }
        }
    }
}

#[cfg(not(unix))]
async fn unix(_path: &Path) -> Result<Box<dyn Stream>> {
    let _ = Duration::ZERO;
    Err(Error::Unreachable("this system has no Unix sockets".to_owned()))
}

fn unreachable(what: &str, error: &io::Error) -> Error {
    Error::Unreachable(format!("{what}: {error}"))
}
