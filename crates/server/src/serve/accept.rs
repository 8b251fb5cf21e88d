//! Listening sockets, and the choice of a thread for each new connection.

use std::net::{SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};

use bulla_kms::{Code, KmsError, Result};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::Instant;

#[cfg(unix)]
use super::local::{self, SocketFile};
use super::room::Place;
use crate::config::ListenConfig;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A socket that listens.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener, Scheme),
    #[cfg(unix)]
    Unix(UnixListener, SocketFile),
}

/// The protocol that clients use on a socket address.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// A connection that nobody serves yet.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) place: Place,
    pub(super) since: Instant,
}

/// The bytes of a connection.
#[derive(Debug)]
pub(super) enum Stream {
    /// Of the listener with this number.
    Tcp(TcpStream, usize),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Listener {
    /// # Errors
    /// The address cannot be had.
    pub(super) fn bind(listen: &ListenConfig) -> Result<Self> {
        match (&listen.address, &listen.unix) {
            (Some(address), _) => {
                let scheme = if listen.tls.is_some() { Scheme::Https } else { Scheme::Http };
                let listener = tcp(*address).map_err(|error| cannot(address, error))?;
                Ok(Self::Tcp(listener, scheme))
            }
            #[cfg(unix)]
            (None, Some(path)) => {
                let listening = local::listen(path, listen.mode.unwrap_or_default(), BACKLOG);
                let (listener, file) = listening.map_err(|error| cannot(path.display(), error))?;
                Ok(Self::Unix(listener, file))
            }
            #[cfg(not(unix))]
            (None, Some(_)) => Err(KmsError::new(
                Code::InvalidArgument,
                "the service has no Unix sockets on this system: listen on an address",
            )),
            (None, None) => Err(KmsError::new(Code::InvalidArgument, "a listener has no address")),
        }
    }

    /// Whether callers come by the network.
    pub(super) fn is_network(&self) -> bool {
        matches!(self, Self::Tcp(..))
    }

    /// The address, as a client names it.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Tcp(listener, scheme) => {
                let scheme = match scheme {
                    Scheme::Http => "http",
                    Scheme::Https => "https",
                };
                listener
                    .local_addr()
                    .map_or_else(|error| error.to_string(), |address| format!("{scheme}://{address}"))
            }
            #[cfg(unix)]
            Self::Unix(_, file) => format!("unix:{}", file.path().display()),
        }
    }
}

fn tcp(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn cannot(address: impl std::fmt::Display, error: std::io::Error) -> KmsError {
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
        std::io::ErrorKind::AddrInUse => Code::AlreadyExists,
        _ => Code::Io,
    };
    KmsError::new(code, format!("cannot listen on {address}: {error}"))
}
