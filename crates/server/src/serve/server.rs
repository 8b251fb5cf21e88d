//! The service as a whole: its threads, its sockets, its end.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bulla_kms::{Code, KmsError, Result, SecretString};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::accept::{Accepted, Listener};
use super::connection::{Connections, shut_down};
use super::peers::Peers;
use crate::config::Config;
use crate::service::{KeystoreSource, Reactor, Service};

/// A service whose sockets listen.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    shutdown: watch::Sender<bool>,
}

/// What all threads need to serve connections.
struct Shared {
    service: Arc<Service>,
    peers: Peers,
    /// How many connections there are.
    connections: Arc<AtomicUsize>,
}

/// What stops a running service from elsewhere.
#[derive(Clone, Debug)]
pub struct Handle(watch::Sender<bool>);

impl Handle {
    /// Accepts no more connections, answers what was asked, and ends [`Server::run`].
    pub fn shut_down(&self) {
        self.0.send_replace(true);
    }
}

/// Where a thread gets its connections from.
type Inbox = mpsc::UnboundedReceiver<Accepted>;

impl Server {
    /// Binds the addresses of the configuration. The keystore is not opened yet.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a configuration that contradicts itself or names no address; an address cannot be had.
    pub fn bind(config: Config, source: Box<dyn KeystoreSource>) -> Result<Self> {
        config.check()?;
        if config.listen.is_empty() {
            return Err(KmsError::new(
                Code::InvalidArgument,
                "the configuration names no address to listen on",
            ));
        }
        let processors = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = config.service.threads.unwrap_or_else(processors).get();
        let listeners = config.listen.iter().map(Listener::bind).collect::<Result<_>>()?;
        let peers = Peers::new(&config)?;
        let service = Arc::new(Service::new(config, threads, source)?);
        let connections = Arc::clone(&service.counts.connections);
        let shared = Arc::new(Shared { service, peers, connections });
        Ok(Self { shared, listeners, shutdown: watch::Sender::new(false) })
    }

    /// The addresses, as clients name them.
    pub fn addresses(&self) -> Vec<String> {
        self.listeners.iter().map(Listener::address).collect()
    }

    /// What shuts the service down from another thread.
    pub fn handle(&self) -> Handle {
        Handle(self.shutdown.clone())
    }

    /// Whether the service can open the keystore without being given a passphrase.
    pub fn opens_by_itself(&self) -> bool {
        self.shared.service.opens_by_itself()
    }

    /// Opens the keystore. Before, the service answers that it is sealed.
    ///
    /// # Errors
    /// Those of the source.
    pub fn unseal(&self, passphrase: Option<SecretString>) -> Result<()> {
        self.shared.service.unseal(passphrase)
    }

    /// Serves until [`Handle::shut_down`] is called and what was asked is answered.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn run(self) -> Result<()> {
        let Self { shared, listeners, shutdown } = self;
        let (senders, inboxes): (Vec<_>, Vec<_>) =
            (0..shared.service.threads).map(|_| mpsc::unbounded_channel()).unzip();
        let mut running: Vec<JoinHandle<()>> = Vec::new();
        let mut acceptors = Some((listeners, senders));
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let (shared, down) = (Arc::clone(&shared), shutdown.subscribe());
            let runtime = runtime()?;
            // The first thread also accepts, for all.
            let accepts = acceptors.take();
            let name = format!("bulla-serve-{number}");
            let spawned = thread::Builder::new().name(name).spawn(move || {
                runtime.block_on(serve(&shared, number, inbox, accepts, down));
            });
            running.push(spawned.map_err(cannot_start)?);
        }
        for thread in running {
            if thread.join().is_err() {
                return Err(KmsError::new(
                    Code::Internal,
                    "a thread of the service failed; its message is above",
                ));
            }
        }
        shared.service.seal();
        Ok(())
    }
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(64).build().map_err(cannot_start)
}

fn cannot_start(error: std::io::Error) -> KmsError {
    KmsError::new(Code::Io, format!("cannot start a thread: {error}"))
}

/// One thread: takes connections until the service shuts down, and then waits for those that it has.
async fn serve(
    shared: &Arc<Shared>,
    number: usize,
    mut inbox: Inbox,
    accepts: Option<(Vec<Listener>, Vec<mpsc::UnboundedSender<Accepted>>)>,
    mut down: watch::Receiver<bool>,
) {
    if let Some((listeners, senders)) = accepts {
        let senders: Arc<[_]> = senders.into();
        for listener in listeners {
            tokio::spawn(accept(Arc::clone(shared), listener, Arc::clone(&senders), down.clone()));
        }
    }
    let connections = Arc::new(Connections::new(Reactor::new(Arc::clone(&shared.service), number)));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = inbox.recv() => match accepted {
                Some(accepted) => {
                    let (shared, connections, down) = (Arc::clone(shared), Arc::clone(&connections), down.clone());
                    open.spawn(async move { shared.connect(accepted, &connections, down).await });
                }
                None => break,
            },
            Some(_) = open.join_next() => {}
            () = shut_down(&mut down) => break,
        }
    }
    while open.join_next().await.is_some() {}
}

impl Shared {
    async fn connect(&self, accepted: Accepted, connections: &Connections, down: watch::Receiver<bool>) {
        match accepted {
            Accepted::Tcp(stream) => {
                let Ok(stream) = TcpStream::from_std(stream) else { return };
                connections.serve(stream, self.peers.anybody(), down).await;
            }
            Accepted::Unix(stream) => {
                let Ok(stream) = UnixStream::from_std(stream) else { return };
                let Ok(credentials) = stream.peer_cred() else { return };
                connections.serve(stream, self.peers.user(credentials.uid()), down).await;
            }
        }
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections, and deals them out to the threads in turn.
async fn accept(
    shared: Arc<Shared>,
    listener: Listener,
    threads: Arc<[mpsc::UnboundedSender<Accepted>]>,
    mut down: watch::Receiver<bool>,
) {
    let most = shared.service.config.limits.connections;
    let listener = match Listening::new(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("cannot accept connections: {error}"),
    };
    let mut turn = 0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shut_down(&mut down) => return,
        };
        match accepted {
            Ok(stream) => {
                if shared.connections.load(Ordering::Relaxed) >= most {
                    tracing::warn!("a connection is refused: there are {most}, as many as the limit");
                    continue;
                }
                shared.connections.fetch_add(1, Ordering::Relaxed);
                if threads[turn % threads.len()].send(stream).is_err() {
                    return;
                }
                turn += 1;
            }
            Err(error) => {
                // No file descriptor is free, for example. Connections that end will give some back.
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A listener of this runtime.
enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, std::path::PathBuf),
}

impl Listening {
    fn new(listener: Listener) -> std::io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener, path) => Self::Unix(UnixListener::from_std(listener)?, path),
        })
    }

    async fn accept(&self) -> std::io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                stream.into_std().map(Accepted::Tcp)
            }
            Self::Unix(listener, _) => listener.accept().await?.0.into_std().map(Accepted::Unix),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Nobody can connect to it any more; one that cannot be removed is removed by the next service.
            let _ = std::fs::remove_file(path);
        }
    }
}
