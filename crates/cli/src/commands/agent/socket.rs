//! The socket of the agent, and its connections.

use super::answers::Agent;
use super::message::{MAX_LEN, Use};
use crate::error::{Error, Result};
use bulla_files::{SocketFile, escape_path, folder_of, listen_unix};
use listenfd::ListenFd;
use rustix::process::getuid;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
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

/// How many connections may wait until they are taken.
const BACKLOG: i32 = 128;
/// Only the user may connect.
const MODE: u32 = 0o600;

/// A socket that listens. Its file goes when it is dropped, unless systemd made it.
pub(super) struct AgentSocket {
    listener: UnixListener,
    path: PathBuf,
    /// None if systemd made it. It goes before its folder.
    _file: Option<SocketFile>,
    /// The folder of a temporary one.
    _folder: Option<TempDir>,
}

impl AgentSocket {
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
        Ok(Some(Self { path: path.to_owned(), listener, _file: None, _folder: None }))
    }

    /// A socket at a path. The folder is made for the user alone, if it is not there.
    ///
    /// # Errors
    /// Something is there, other than the socket of an agent that has ended; the errors of the
    /// system.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let folder = folder_of(path);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| Error::io("cannot be made", &error).about(escape_path(folder)))?;
        Self::listen(path).map_err(|error| {
            let in_use = error.kind() == ErrorKind::AddrInUse;
            let shown = Error::io("cannot listen", &error).about(escape_path(path));
            if in_use { shown.hint("use what is there, or name another socket with --socket") } else { shown }
        })
    }

    /// A socket in a new folder that only the user may enter.
    ///
    /// # Errors
    /// The errors of the system.
    pub(super) fn temporary() -> Result<Self> {
        let about = |error: io::Error| Error::io("cannot make a socket", &error);
        let folder = tempfile::Builder::new().prefix("bulla-agent-").tempdir().map_err(about)?;
        let socket = Self::listen(&folder.path().join("socket")).map_err(about)?;
        Ok(Self { _folder: Some(folder), ..socket })
    }

    fn listen(path: &Path) -> io::Result<Self> {
        let (listener, file) = listen_unix(path, MODE, BACKLOG)?;
        listener.set_nonblocking(false)?;
        Ok(Self { listener, path: path.to_owned(), _file: Some(file), _folder: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Serves connections to a socket as long as the process runs.
pub(super) fn serve(socket: &AgentSocket, agent: &Arc<Agent>) -> Result<()> {
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
    let mut used = Use::Here;
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
        let answer = agent.answer(&request, &mut used);
        let length = u32::try_from(answer.len()).map_err(|_| ErrorKind::InvalidData)?;
        stream.write_all(&[&length.to_be_bytes()[..], &answer].concat())?;
    }
}
