//! The socket of the agent, and its connections.

use super::answers::Agent;
use super::message::MAX_LEN;
use crate::error::{Error, Result};
use bulla_files::escape_path;
use listenfd::ListenFd;
use rustix::process::getuid;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use zeroize::Zeroizing;

/// The most connections at once. OpenSSH opens one for each session that forwards the agent.
const MAX_CONNECTIONS: usize = 256;

/// A socket that listens. Its file is removed when it is dropped, unless systemd made it.
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    owner: Owner,
}

/// Who removes the file.
enum Owner {
    Systemd,
    Agent,
    /// The agent, with the folder around it.
    Folder(#[expect(dead_code, reason = "it is removed when it is dropped")] TempDir),
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !matches!(self.owner, Owner::Systemd) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Socket {
    /// The socket that systemd has passed, if there is one.
    ///
    /// # Errors
    /// systemd has passed something else.
    pub(super) fn inherited() -> Result<Option<Self>> {
        let listener = ListenFd::from_env().take_unix_listener(0);
        let listener = listener.map_err(|error| Error::io("cannot use what systemd passed", &error))?;
        let Some(listener) = listener else { return Ok(None) };
        let address = listener.local_addr().ok();
        let path = address.as_ref().and_then(|address| address.as_pathname()).unwrap_or(Path::new(""));
        Ok(Some(Self { path: path.to_owned(), listener, owner: Owner::Systemd }))
    }

    /// A socket at a path.
    ///
    /// # Errors
    /// Something is there, other than the socket of an agent that has ended; the errors of the
    /// system.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let about = |doing: &str, error: &io::Error| Error::io(doing, error).about(escape_path(path));
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| about("its folder cannot be made", &error))?;
        }
        remove_stale(path)?;
        Self::bind(path, Owner::Agent).map_err(|error| about("cannot be made", &error))
    }

    /// A socket in a new folder that only the user may enter.
    ///
    /// # Errors
    /// The errors of the system.
    pub(super) fn temporary() -> Result<Self> {
        let about = |error: io::Error| Error::io("cannot make a socket", &error);
        let folder = tempfile::Builder::new().prefix("bulla-agent-").tempdir().map_err(about)?;
        let path = folder.path().join("socket");
        Self::bind(&path, Owner::Folder(folder)).map_err(about)
    }

    fn bind(path: &Path, owner: Owner) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let socket = Self { listener, path: path.to_owned(), owner };
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(socket)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the socket of a process that has ended.
fn remove_stale(path: &Path) -> Result<()> {
    let about = |code: &str, message: &str| Error::new(code, message).about(escape_path(path));
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("cannot be read", &error).about(escape_path(path))),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(about("file_exists", "is there already, and is not a socket"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(about("socket_in_use", "another agent listens there")
            .hint("use it, or name another socket with --socket")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| Error::io("cannot be removed", &error).about(escape_path(path))),
        Err(error) => Err(Error::io("cannot be reached", &error).about(escape_path(path))),
    }
}

/// Serves connections to a socket as long as the process runs.
pub(super) fn serve(socket: &Socket, agent: &Arc<Agent>) -> Result<()> {
    let listener = socket.listener.try_clone().map_err(|error| Error::io("cannot listen", &error))?;
    let agent = agent.clone();
    let connections = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for connection in listener.incoming() {
            match connection {
                Ok(stream) => connect(stream, &agent, &connections),
                // Too many files are open: some will be closed.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    });
    Ok(())
}

fn connect(stream: UnixStream, agent: &Arc<Agent>, connections: &Arc<AtomicUsize>) {
    if connections.load(Ordering::Relaxed) >= MAX_CONNECTIONS || !is_permitted(&stream) {
        return;
    }
    connections.fetch_add(1, Ordering::Relaxed);
    let (agent, counted) = (agent.clone(), connections.clone());
    let answer = move || {
        // The client has gone, or sends what is no message.
        let _ = converse(stream, &agent);
        counted.fetch_sub(1, Ordering::Relaxed);
    };
    if thread::Builder::new().spawn(answer).is_err() {
        connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the client is the user, or root. The folder and the file's mode keep others out, where
/// the system minds them.
#[cfg(target_os = "linux")]
fn is_permitted(stream: &UnixStream) -> bool {
    let client = rustix::net::sockopt::socket_peercred(stream);
    client.is_ok_and(|client| client.uid == getuid() || client.uid.is_root())
}

#[cfg(not(target_os = "linux"))]
fn is_permitted(_stream: &UnixStream) -> bool {
    true
}

/// Answers the requests of one connection.
fn converse(mut stream: UnixStream, agent: &Agent) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_LEN {
            return Err(ErrorKind::InvalidData.into());
        }
        // It may have a passphrase.
        let mut request = Zeroizing::new(vec![0; length]);
        stream.read_exact(&mut request)?;
        let answer = agent.answer(&request);
        let length = u32::try_from(answer.len()).map_err(|_| ErrorKind::InvalidData)?;
        stream.write_all(&[&length.to_be_bytes()[..], &answer].concat())?;
    }
}
