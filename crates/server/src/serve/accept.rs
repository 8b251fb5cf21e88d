//! Listening sockets, and the choice of a thread for each new connection.

use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use bulla_kms::{Code, KmsError, Result};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::config::{Listen, SocketMode};

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A socket that listens.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener, Scheme),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, which is removed together with it.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Nobody can connect to it any more. If this fails, the next service removes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The protocol that clients use on a socket address.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// A connection that nobody serves yet.
#[derive(Debug)]
pub(super) enum Accepted {
    /// Of the listener with this number.
    Tcp(TcpStream, usize),
    Unix(UnixStream),
}

impl Listener {
    /// # Errors
    /// The address cannot be had.
    pub(super) fn bind(listen: &Listen) -> Result<Self> {
        match (&listen.address, &listen.unix) {
            (Some(address), _) => {
                let scheme = if listen.tls.is_some() { Scheme::Https } else { Scheme::Http };
                let listener = tcp(*address).map_err(|error| cannot(address, error))?;
                Ok(Self::Tcp(listener, scheme))
            }
            (None, Some(path)) => {
                remove_stale(path)?;
                let listener = unix(path, listen.mode.unwrap_or_default());
                Ok(Self::Unix(
                    listener.map_err(|error| cannot(path.display(), error))?,
                    SocketFile(path.clone()),
                ))
            }
            (None, None) => Err(KmsError::new(Code::InvalidArgument, "a listener has no address")),
        }
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
            Self::Unix(_, file) => format!("unix:{}", file.0.display()),
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

/// A socket that accepts no connection before it has its mode.
fn unix(path: &Path, mode: SocketMode) -> std::io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let listens = std::fs::set_permissions(path, Permissions::from_mode(mode.bits()))
        .and_then(|()| socket.listen(BACKLOG));
    if let Err(error) = listens {
        // It was made just now, by us.
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(socket.into())
}

/// Removes a socket that a killed service left behind, but never one on which a program listens.
fn remove_stale(path: &Path) -> Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(|error| cannot(path.display(), error))?;
    }
    Ok(())
}

fn cannot(address: impl std::fmt::Display, error: std::io::Error) -> KmsError {
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
        std::io::ErrorKind::AddrInUse => Code::AlreadyExists,
        _ => Code::Io,
    };
    KmsError::new(code, format!("cannot listen on {address}: {error}"))
}
