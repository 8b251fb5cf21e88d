//! The service as a whole: its threads, its sockets, its end.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[cfg(unix)]
use bulla_files::SocketFile;
use bulla_kms::{Code, KmsError, Result, SecretString};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::connection::{ConnectionServer, Origin, shut_down};
use super::listener::{Accepted, Listener, Stream};
use super::listener::{ConnectionLimit, network_share, permitted_files};
use super::named_callers::Evidence;
use super::reload::{self, LiveSettings};
use super::tls::ListenerTls;
use super::unfinished::{Counted, Unfinished};
use crate::access::{NodeCount, RateLimiter, TenantQuotas};
use crate::config::Config;
use crate::service::{KeystoreSource, Policies, Service, WorkerState};

/// A service whose sockets listen.
pub struct Server {
    shared: Arc<ServerState>,
    listeners: Vec<Listener>,
    shutdown: watch::Sender<bool>,
}

/// The state that all threads share to serve connections.
struct ServerState {
    service: Arc<Service>,
    live: Arc<LiveSettings>,
    /// How many threads still have connections.
    serving: AtomicUsize,
}

/// Controls a running service from another thread.
#[derive(Clone)]
pub struct ServerHandle {
    shutdown: watch::Sender<bool>,
    live: Weak<LiveSettings>,
}

impl ServerHandle {
    /// Stops accepting connections, answers the requests that have arrived, and ends
    /// [`Server::run`].
    pub fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }

    /// Takes other limits, rates, callers and certificates, while connections go on. The log
    /// says which other settings differ: they need a restart.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] and others: the settings contradict each other, or a certificate
    /// cannot be used. Then no setting changes. [`Code::ShuttingDown`]: the service has ended.
    pub fn reload(&self, config: Config) -> Result<()> {
        let ended = || KmsError::new(Code::ShuttingDown, "the service has ended");
        let needing_restart = self.live.upgrade().ok_or_else(ended)?.reload(config).inspect_err(|error| {
            let code = error.code.as_str();
            tracing::error!(code, "the new settings are refused, and the old ones stay: {}", error.message);
        })?;
        tracing::info!("the settings were reloaded");
        if !needing_restart.is_empty() {
            let tables = needing_restart.join(", ");
            tracing::warn!("these settings changed and take effect only after a restart: {tables}");
        }
        Ok(())
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").finish_non_exhaustive()
    }
}

/// The source of a thread's connections.
type AcceptedReceiver = mpsc::UnboundedReceiver<Accepted>;

impl Server {
    /// Binds the addresses of the configuration. The keystore is not opened yet.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a configuration that contradicts itself or names no address;
    /// an address cannot be bound.
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
        let service = Arc::new(Service::new(config.clone(), threads, source)?);
        if let Some(cluster) = &service.cluster {
            let member: Weak<Service> = Arc::downgrade(&service);
            cluster.set_listener(member);
        }
        let live = Arc::new(LiveSettings::new(Arc::clone(&service), config)?);
        let shared = Arc::new(ServerState { service, live, serving: AtomicUsize::new(threads) });
        let listeners = shared.service.config.listen.iter().map(Listener::bind).collect::<Result<_>>()?;
        Ok(Self { shared, listeners, shutdown: watch::Sender::new(false) })
    }

    /// Reads everything that the settings name, as [`Server::bind`] and [`ServerHandle::reload`] do
    /// it, and changes nothing.
    ///
    /// # Errors
    /// The settings contradict each other; a certificate or a key cannot be used, or has expired.
    pub fn check(config: &Config) -> Result<()> {
        reload::read(config, &TenantQuotas::new(&config.quota, &NodeCount::one(), None))?;
        Policies::new(config).map(|_| ())
    }

    /// The addresses, as clients name them.
    pub fn addresses(&self) -> Vec<String> {
        self.listeners.iter().map(Listener::address).collect()
    }

    /// A handle that controls the service from another thread.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle { shutdown: self.shutdown.clone(), live: Arc::downgrade(&self.shared.live) }
    }

    /// Whether the service can open the keystore without being given a passphrase.
    pub fn auto_unseals(&self) -> bool {
        self.shared.service.auto_unseals()
    }

    /// Opens the keystore. Until then, the service answers that it is sealed.
    ///
    /// # Errors
    /// Those of the source.
    pub fn unseal(&self, passphrase: Option<SecretString>) -> Result<()> {
        self.shared.service.unseal(passphrase)
    }

    /// Serves until [`ServerHandle::shut_down`] is called and all requests that have arrived are
    /// answered.
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
                let stopped = runtime.block_on(serve(&shared, number, inbox, accepts, down));
                if shared.serving.fetch_sub(1, Ordering::AcqRel) == 1 {
                    // No caller waits for an answer.
                    shared.service.stop_blocking_pools();
                }
                // Work that is being computed cannot be interrupted, and must not delay the end.
                let end = stopped + shared.service.config.service.shutdown_timeout();
                runtime.shutdown_timeout(end.saturating_duration_since(Instant::now()));
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
    // Slow work has a bound of its own.
    Builder::new_current_thread().enable_all().build().map_err(cannot_start)
}

fn cannot_start(error: std::io::Error) -> KmsError {
    KmsError::new(Code::Io, format!("cannot start a thread: {error}"))
}

/// One thread: it takes connections until the service shuts down, and then waits until its
/// connections end. Returns when the shutdown began.
async fn serve(
    shared: &Arc<ServerState>,
    number: usize,
    mut inbox: AcceptedReceiver,
    accepts: Option<(Vec<Listener>, Vec<mpsc::UnboundedSender<Accepted>>)>,
    mut down: watch::Receiver<bool>,
) -> Instant {
    if let Some((listeners, senders)) = accepts {
        let senders: Arc<[_]> = senders.into();
        let network = listeners.iter().filter(|listener| listener.is_network()).count();
        let share = network_share(permitted_files(), network, listeners.len() - network);
        for (number, listener) in listeners.into_iter().enumerate() {
            let most = if listener.is_network() { share } else { usize::MAX };
            let limit = ConnectionLimit::new(most, &shared.service.http_metrics.connections);
            let listener = (number, listener, limit);
            tokio::spawn(accept(Arc::clone(shared), listener, Arc::clone(&senders), down.clone()));
        }
    }
    let worker = WorkerState::new(Arc::clone(&shared.service), number);
    let connections = Arc::new(ConnectionServer::new(worker, Arc::clone(&shared.live)));
    let mut open = JoinSet::new();
    let connect = |open: &mut JoinSet<()>, accepted, down: watch::Receiver<bool>| {
        let (shared, connections) = (Arc::clone(shared), Arc::clone(&connections));
        open.spawn(async move { shared.connect(accepted, &connections, down).await });
    };
    loop {
        tokio::select! {
            accepted = inbox.recv() => match accepted {
                Some(accepted) => connect(&mut open, accepted, down.clone()),
                None => break,
            },
            Some(_) = open.join_next() => {}
            () = shut_down(&mut down) => break,
        }
    }
    let stopped = Instant::now();
    // The connections that it accepted before may have sent requests already.
    inbox.close();
    while let Some(accepted) = inbox.recv().await {
        connect(&mut open, accepted, down.clone());
    }
    while open.join_next().await.is_some() {}
    stopped
}

impl ServerState {
    async fn connect(&self, accepted: Accepted, connections: &ConnectionServer, down: watch::Receiver<bool>) {
        let Accepted { stream, place: _place, since } = accepted;
        match stream {
            Stream::Tcp(stream, listener) => {
                if let Ok(stream) = TcpStream::from_std(stream) {
                    // On the heap: otherwise each plain connection would take the memory of one
                    // with TLS, and the reverse.
                    match self.live.tls(listener) {
                        None => {
                            let address = stream.peer_addr().ok().map(|address| address.ip());
                            let origin = Origin { evidence: Evidence::Nothing, address };
                            Box::pin(connections.serve(Box::new(stream), None, origin, since, down)).await;
                        }
                        Some(tls) => {
                            Box::pin(self.connect_tls((stream, since), tls, connections, down)).await;
                        }
                    }
                }
            }
            #[cfg(unix)]
            Stream::Unix(stream) => {
                if let Ok(stream) = UnixStream::from_std(stream)
                    && let Ok(credentials) = stream.peer_cred()
                {
                    let evidence = Evidence::User(credentials.uid());
                    let origin = Origin { evidence, address: None };
                    Box::pin(connections.serve(Box::new(stream), None, origin, since, down)).await;
                }
            }
        }
    }

    async fn connect_tls(
        &self,
        (stream, since): (TcpStream, Instant),
        tls: &ListenerTls,
        connections: &ConnectionServer,
        mut down: watch::Receiver<bool>,
    ) {
        let end = since + self.service.limits().idle_timeout();
        let address = stream.peer_addr().ok().map(|address| address.ip());
        let message = Unfinished::tls_message(&self.service, address);
        let handshake = timeout_at(end, tls.acceptor().accept(Counted::tls(stream, Arc::clone(&message))));
        let stream = tokio::select! {
            stream = handshake => stream,
            // Nothing was asked yet.
            () = shut_down(&mut down) => return,
        };
        match stream {
            Ok(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates();
                let evidence = shown.map_or(Evidence::Nothing, Evidence::certificate);
                message.end();
                let origin = Origin { evidence, address };
                connections.serve(Box::new(stream), Some(message), origin, since, down).await;
            }
            Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }
}

/// How many refused connections the log names at once. Then it names one in each second.
const MAX_REFUSAL_LINES: NonZeroU32 = NonZeroU32::new(10).expect("it is not zero");

/// Accepts connections, and deals them out to the threads in turn.
async fn accept(
    shared: Arc<ServerState>,
    (number, listener, limit): (usize, Listener, ConnectionLimit),
    threads: Arc<[mpsc::UnboundedSender<Accepted>]>,
    mut down: watch::Receiver<bool>,
) {
    let listener = match AsyncListener::new(listener, number) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("cannot accept connections: {error}"),
    };
    // Whoever connects in vain does so as often as they like.
    let lines = RateLimiter::spaced(Duration::from_secs(1), MAX_REFUSAL_LINES);
    let mut turn = 0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shut_down(&mut down) => return,
        };
        match accepted {
            Ok(stream) => {
                let place = match limit.enter(shared.service.limits().max_connections_per_listener) {
                    Ok(place) => place,
                    Err(_) if lines.take(1).is_err() => continue,
                    Err(most) => {
                        tracing::warn!("a connection is refused: its listener has {most}, as many as it may");
                        continue;
                    }
                };
                let accepted = Accepted { stream, place, since: Instant::now() };
                if threads[turn % threads.len()].send(accepted).is_err() {
                    return;
                }
                turn += 1;
            }
            Err(error) => {
                // For example, no file descriptor is free. Connections that end will free some.
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A listener of this runtime.
enum AsyncListener {
    Tcp(TcpListener, usize),
    #[cfg(unix)]
    Unix(UnixListener, #[expect(dead_code, reason = "it is removed with the listener")] SocketFile),
}

impl AsyncListener {
    fn new(listener: Listener, number: usize) -> std::io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener, _) => Self::Tcp(TcpListener::from_std(listener)?, number),
            #[cfg(unix)]
            Listener::Unix(listener, file) => Self::Unix(UnixListener::from_std(listener)?, file),
        })
    }

    async fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Self::Tcp(listener, number) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream.into_std()?, *number))
            }
            #[cfg(unix)]
            Self::Unix(listener, _) => listener.accept().await?.0.into_std().map(Stream::Unix),
        }
    }
}
