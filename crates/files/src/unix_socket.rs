//! Unix sockets, with the file that others find them by.

use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a Unix socket, which is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The socket is closed. If its file cannot be removed, the next program removes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens at `path`, on a socket that does not block. Nobody can connect before the file has its
/// mode. `backlog` connections may wait to be accepted.
///
/// A socket that a killed program left behind is removed, but never one on which a program listens.
///
/// ```
/// use bulla_files::listen_unix;
/// use std::os::unix::net::UnixStream;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = &folder.path().join("socket");
/// let (listener, file) = listen_unix(path, 0o660, 128)?;
/// assert_eq!(file.path(), path);
/// UnixStream::connect(path)?;
/// assert!(listen_unix(path, 0o660, 128).is_err());
///
/// drop((listener, file));
/// assert!(!path.exists());
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if a program listens there, or if the file is not a socket; other
/// errors of the system.
pub fn listen_unix(path: &Path, mode: u32, backlog: i32) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // From here on, an error removes the file, which was made just now, by us.
    let file = SocketFile(path.to_owned());
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(backlog)?;
    Ok((socket.into(), file))
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
