//! Communication with the nodes: one thread drives the connections, and a request goes to the next
//! node if one does not answer.

use std::future::Future;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use etcd_client::{
    Certificate, Client, ConnectOptions, Error, Identity, TlsOptions, WatchOptions, WatchResponse,
};
use secrecy::ExposeSecret;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{EtcdError, EtcdErrorKind, RequestFailure, Result, classify};
use crate::options::EtcdOptions;

/// The pause before another request to a node.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// The interval between probes of a connection with a pending request. etcd closes connections that
/// probe more often than every 5 s.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long the answer to a probe may take.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A thread that drives all connections of one store, so that calls may come from any thread, even
/// a thread of another runtime.
pub struct ConnectionThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectionThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start() -> Result<Self> {
        let failed = |error| EtcdError::io("cannot start the etcd client's thread", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || drop(runtime.block_on(stopped));
        let thread =
            std::thread::Builder::new().name("bulla-kms-etcd".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs `future` to its end.
    ///
    /// # Errors
    /// Those of the future.
    pub fn run<T, E>(&self, future: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<EtcdError> + Send + 'static,
    {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move { drop(sender.send(future.await)) });
        receiver.recv().unwrap_or_else(|_| {
            Err(EtcdError::new(EtcdErrorKind::Io, "the etcd client's thread has stopped").into())
        })
    }

    /// Lets `future` run until this value is dropped.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

impl Drop for ConnectionThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends at once: pending work is dropped.
            drop(thread.join());
        }
    }
}

/// The nodes of a cluster. Requests go to one node at a time.
#[derive(Clone)]
pub struct EtcdNodes {
    options: Arc<EtcdOptions>,
    current: Arc<Mutex<Current>>,
}

#[derive(Default)]
struct Current {
    /// The node's index in the list of endpoints.
    node: usize,
    client: Option<Client>,
}

impl EtcdNodes {
    /// The nodes that the options name. Nothing is connected yet.
    ///
    /// # Errors
    /// [`EtcdErrorKind::InvalidArgument`] for invalid options.
    pub fn new(options: &EtcdOptions) -> Result<Self> {
        options.check()?;
        Ok(Self { options: Arc::new(options.clone()), current: Arc::default() })
    }

    /// Copies the nodes, with connections of their own.
    #[must_use]
    pub fn with_own_connection(&self) -> Self {
        Self { options: Arc::clone(&self.options), current: Arc::default() }
    }

    /// How long one node may take of some time before the next one is asked. All nodes get a turn;
    /// a single node is asked twice.
    fn turn(&self, time: Duration) -> Duration {
        let turns = self.options.endpoints.len().max(2);
        time / u32::try_from(turns).unwrap_or(u32::MAX)
    }

    /// Makes a request that may be repeated any number of times: asks one node after another until
    /// one answers or the time is up.
    ///
    /// # Errors
    /// A node refused the request, or no node answered.
    pub async fn ask<T, F>(&self, request: impl Fn(Client) -> F) -> Result<T, RequestFailure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.ask_for(self.options.timeout, request).await
    }

    /// Makes such a request with a timeout of its own, where that is longer than the options'.
    ///
    /// # Errors
    /// Those of [`EtcdNodes::ask`].
    pub async fn ask_for<T, F>(
        &self,
        time: Duration,
        request: impl Fn(Client) -> F,
    ) -> Result<T, RequestFailure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let time = time.max(self.options.timeout);
        let end = Instant::now() + time;
        loop {
            let why = match self.once(self.turn(time), &request).await {
                Err(RequestFailure::Unanswered(why)) => why,
                answer => return answer,
            };
            if Instant::now() + RETRY_PAUSE >= end {
                return Err(RequestFailure::Unanswered(why));
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Makes a request once, to the node that answered last.
    ///
    /// # Errors
    /// The node refused the request, or did not answer.
    pub async fn ask_once<T, F>(&self, request: impl Fn(Client) -> F) -> Result<T, RequestFailure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.once(self.options.timeout, &request).await
    }

    async fn once<T, F>(
        &self,
        time_limit: Duration,
        request: impl Fn(Client) -> F,
    ) -> Result<T, RequestFailure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (node, client) = self.client(time_limit).await?;
        let failure = match timeout(time_limit, request(client)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => classify(error),
            Err(_) => RequestFailure::Unanswered(format!("no answer within {time_limit:?}")),
        };
        if let RequestFailure::Unanswered(_) = failure {
            self.give_up(node).await;
        }
        Err(failure)
    }

    /// Connects to the current node, unless there is a connection.
    async fn client(&self, time_limit: Duration) -> Result<(usize, Client), RequestFailure> {
        let mut current = self.current.lock().await;
        let node = current.node;
        if let Some(client) = &current.client {
            return Ok((node, client.clone()));
        }
        let endpoint = &self.options.endpoints[node];
        let failure =
            match timeout(time_limit, Client::connect([endpoint], Some(connect(&self.options)))).await {
                Ok(Ok(client)) => {
                    current.client = Some(client.clone());
                    return Ok((node, client));
                }
                Ok(Err(error)) => classify(error),
                Err(_) => {
                    RequestFailure::Unanswered(format!("{endpoint} cannot be reached within {time_limit:?}"))
                }
            };
        drop(current);
        if let RequestFailure::Unanswered(_) = failure {
            self.give_up(node).await;
        }
        Err(failure)
    }

    /// Sends later requests to the next node, if `node` is still the current one.
    async fn give_up(&self, node: usize) {
        let mut current = self.current.lock().await;
        if current.node == node {
            *current = Current { node: (node + 1) % self.options.endpoints.len(), client: None };
        }
    }
}

/// The pause before a watch that has ended is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
/// The maximum time that a node may take to start a watch, or to send the changes that it already
/// has.
pub const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Watches the keys from `begin` to the end that the options name, and starts again when the watch
/// ends. `told` gets each message, and `None` when the watch has ended. If it returns false, the
/// watch stops.
pub async fn watch_keys(
    nodes: &EtcdNodes,
    begin: &str,
    options: WatchOptions,
    told: impl Fn(Option<&WatchResponse>) -> bool,
) {
    loop {
        let (node, client) = match nodes.client(START_TIMEOUT).await {
            Ok(connected) => connected,
            Err(_) => {
                sleep(RESTART_PAUSE).await;
                continue;
            }
        };
        let begun = timeout(START_TIMEOUT, client.watch_client().watch(begin, Some(options.clone()))).await;
        if let Ok(Ok(mut stream)) = begun {
            // The first message confirms that the watch has started. Earlier changes must be looked
            // for.
            while let Ok(Some(message)) = stream.message().await {
                if message.canceled() {
                    break;
                }
                if !told(Some(&message)) {
                    return;
                }
            }
        }
        if !told(None) {
            return;
        }
        nodes.give_up(node).await;
        sleep(RESTART_PAUSE).await;
    }
}

fn connect(options: &EtcdOptions) -> ConnectOptions {
    let mut connect = ConnectOptions::new()
        .with_connect_timeout(options.timeout)
        .with_keep_alive(KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT)
        .with_keep_alive_while_idle(false)
        // With this, a node without a leader answers so at once, and ends the watches that it
        // cannot serve.
        .with_require_leader(true);
    if let Some(user) = &options.user {
        connect = connect.with_user(&user.name, user.password.expose_secret()).with_auto_token_refresh(true);
    }
    if let Some(tls) = &options.tls {
        let mut config = TlsOptions::new().ca_certificate(Certificate::from_pem(&tls.authorities));
        if let Some(client) = &tls.client_certificate {
            let private_key = client.private_key.expose_secret();
            config = config.identity(Identity::from_pem(&client.certificate, private_key));
        }
        connect = connect.with_tls(config);
    }
    connect
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_thread_serves_threads_of_other_runtimes_and_stops() {
        let thread = ConnectionThread::start().unwrap();
        let other = Builder::new_current_thread().build().unwrap();
        assert_eq!(other.block_on(async { thread.run(async { Ok::<_, EtcdError>(1) }) }).unwrap(), 1);
        thread.spawn(std::future::pending());
        drop(thread);
    }
}
