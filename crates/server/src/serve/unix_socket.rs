//! Unix sockets, which Windows does not have here.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::SocketMode;

/// The file of a Unix socket, which is removed together with it.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The socket is closed. If its file cannot be removed, the next service removes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A socket that accepts no connection before it has its mode.
///
/// # Errors
/// The path cannot be had.
pub(super) fn listen(path: &Path, mode: SocketMode, backlog: i32) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // From here on, an error removes the file, which was made just now, by us.
    let file = SocketFile(path.to_owned());
    std::fs::set_permissions(path, Permissions::from_mode(mode.bits()))?;
    socket.listen(backlog)?;
    Ok((socket.into(), file))
}

/// Removes a socket that a killed service left behind, but never one on which a program listens.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
