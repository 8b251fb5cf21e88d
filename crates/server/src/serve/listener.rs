//! Listening sockets, and how many connections each may have.

use std::net::{SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(unix)]
use bulla_files::{SocketFile, listen_unix};
use bulla_kms::{Code, KmsError, Result};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::Instant;

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
    pub(super) place: ConnectionPermit,
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
                let listening = listen_unix(path, listen.mode.unwrap_or_default().bits(), BACKLOG);
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

/// How many files the service has open besides its connections, at most.
const RESERVED_FILES: usize = 64;

/// The most files that connections by the network leave to those of Unix sockets, by which
/// operators come.
const MAX_UNIX_SOCKET_FILES: usize = 256;

/// The connections of one listener. Those of others do not count.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    open: Arc<AtomicUsize>,
    /// The most that the system has files for.
    most: usize,
    /// The connections of all listeners.
    all: Arc<AtomicUsize>,
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    open: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl ConnectionLimit {
    pub(super) fn new(most: usize, all: &Arc<AtomicUsize>) -> Self {
        Self { open: Arc::default(), most, all: Arc::clone(all) }
    }

    /// A place for one more connection, if there are fewer than `limit`. Only one thread asks.
    ///
    /// # Errors
    /// There are as many as the error says.
    pub(super) fn enter(&self, limit: usize) -> Result<ConnectionPermit, usize> {
        let most = limit.min(self.most);
        if self.open.load(Ordering::Relaxed) >= most {
            return Err(most);
        }
        let (open, all) = (Arc::clone(&self.open), Arc::clone(&self.all));
        open.fetch_add(1, Ordering::Relaxed);
        all.fetch_add(1, Ordering::Relaxed);
        Ok(ConnectionPermit { open, all })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most connections for which each listener on the network has files, so that all of them
/// together leave some to Unix sockets.
pub(super) fn network_share(files: Option<usize>, network: usize, local: usize) -> usize {
    let Some(files) = files else { return usize::MAX };
    let files = files.saturating_sub(RESERVED_FILES);
    let kept = if local == 0 { 0 } else { MAX_UNIX_SOCKET_FILES.min(files / 2) };
    ((files - kept) / network.max(1)).max(1)
}

/// How many files this process may have open; none if there is no limit.
pub(super) fn permitted_files() -> Option<usize> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_as_many_connections_as_its_limit_whatever_others_have() {
        let all = Arc::default();
        let (one, other) = (ConnectionLimit::new(usize::MAX, &all), ConnectionLimit::new(1, &all));
        let places: Vec<_> = (0..3).map(|_| one.enter(3).unwrap()).collect();
        assert_eq!(one.enter(3).unwrap_err(), 3);
        let place = other.enter(3).unwrap();
        assert_eq!(other.enter(3).unwrap_err(), 1);
        assert_eq!(all.load(Ordering::Relaxed), 4);
        drop((places, place));
        assert_eq!(all.load(Ordering::Relaxed), 0);
        other.enter(3).unwrap();
    }

    #[test]
    fn connections_by_the_network_leave_files_to_unix_sockets() {
        assert_eq!(network_share(None, 2, 1), usize::MAX);
        assert_eq!(network_share(Some(1024), 1, 0), 960);
        assert_eq!(network_share(Some(1024), 1, 1), 704);
        assert_eq!(network_share(Some(1024), 2, 1), 352);
        assert_eq!(network_share(Some(264), 1, 1), 100);
        assert_eq!(network_share(Some(10), 3, 1), 1);
    }
}
