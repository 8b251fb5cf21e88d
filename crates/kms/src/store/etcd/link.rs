//! Communication with the nodes: one thread drives the connections, and a request goes to the next
//! node if one does not answer.

use std::future::Future;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use secrecy::ExposeSecret;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::options::EtcdOptions;
use crate::error::{Code, KmsError, Result};

/// The pause before another request to a node.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval between probes of a connection with a pending request. etcd closes connections that
/// probe more often than every 5 s.
const PROBE: Duration = Duration::from_secs(10);
/// How long the answer to a probe may take.
const PROBE_ANSWER: Duration = Duration::from_secs(5);

/// What etcd says if its database has reached its quota.
const FULL: &str = "space exceeded";

/// A thread that drives all connections of one store, so that calls may come from any thread, even
/// a thread of another runtime.
pub(super) struct Driver {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    pub(super) fn start() -> Result<Self> {
        let failed = |error| KmsError::io("cannot start the etcd client's thread", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || drop(runtime.block_on(stopped));
        let thread =
            std::thread::Builder::new().name("bulla-kms-etcd".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs `future` to its end.
    pub(super) fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move { drop(sender.send(future.await)) });
        let stopped = |_| Err(KmsError::new(Code::Io, "the etcd client's thread has stopped"));
        receiver.recv().unwrap_or_else(stopped)
    }

    /// Lets `future` run until the driver is dropped.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends at once: pending work is dropped.
            drop(thread.join());
        }
    }
}

/// Why a request got no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server refused, with a reason. Nothing was done, unless [`Failure::is_full`].
    Refused(Box<Error>),
    /// There was no answer, or one that does not tell whether anything was done.
    Unanswered(String),
}

/// The nodes of a cluster. Requests go to one node at a time.
#[derive(Clone)]
pub(super) struct Nodes {
    options: Arc<EtcdOptions>,
    current: Arc<Mutex<Current>>,
}

#[derive(Default)]
struct Current {
    /// The node's index in the list of endpoints.
    node: usize,
    client: Option<Client>,
}

impl Nodes {
    pub(super) fn new(options: &Arc<EtcdOptions>) -> Self {
        Self { options: Arc::clone(options), current: Arc::default() }
    }

    /// The same nodes, over separate connections.
    pub(super) fn another(&self) -> Self {
        Self::new(&self.options)
    }

    /// How long one node may take of some time before the next one is asked. All nodes get a turn;
    /// a single node is asked twice.
    fn turn(&self, time: Duration) -> Duration {
        let turns = self.options.endpoints.len().max(2);
        time / u32::try_from(turns).unwrap_or(u32::MAX)
    }

    /// Makes a request that may be repeated any number of times: asks one node after another until
    /// one answers or the time is up.
    pub(super) async fn ask<T, F>(&self, request: impl Fn(Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.ask_for(self.options.timeout, request).await
    }

    /// The same for a request that may take longer than others: at least so long.
    pub(super) async fn ask_for<T, F>(
        &self,
        time: Duration,
        request: impl Fn(Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let time = time.max(self.options.timeout);
        let end = Instant::now() + time;
        loop {
            let why = match self.once(self.turn(time), &request).await {
                Err(Failure::Unanswered(why)) => why,
                answer => return answer,
            };
            if Instant::now() + PAUSE >= end {
                return Err(Failure::Unanswered(why));
            }
            sleep(PAUSE).await;
        }
    }

    /// Makes a request once, to the node that answered last.
    pub(super) async fn ask_once<T, F>(&self, request: impl Fn(Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.once(self.options.timeout, &request).await
    }

    async fn once<T, F>(&self, patience: Duration, request: impl Fn(Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (node, client) = self.client(patience).await?;
        let failure = match timeout(patience, request(client)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => classify(error),
            Err(_) => Failure::Unanswered(format!("no answer within {patience:?}")),
        };
        if let Failure::Unanswered(_) = failure {
            self.give_up(node).await;
        }
        Err(failure)
    }

    /// The connection to the current node.
    pub(super) async fn client(&self, patience: Duration) -> Result<(usize, Client), Failure> {
        let mut current = self.current.lock().await;
        let node = current.node;
        if let Some(client) = &current.client {
            return Ok((node, client.clone()));
        }
        let endpoint = &self.options.endpoints[node];
        let failure = match timeout(patience, Client::connect([endpoint], Some(connect(&self.options)))).await
        {
            Ok(Ok(client)) => {
                current.client = Some(client.clone());
                return Ok((node, client));
            }
            Ok(Err(error)) => classify(error),
            Err(_) => Failure::Unanswered(format!("{endpoint} cannot be reached within {patience:?}")),
        };
        drop(current);
        if let Failure::Unanswered(_) = failure {
            self.give_up(node).await;
        }
        Err(failure)
    }

    /// Sends later requests to the next node, if `node` is still the current one.
    pub(super) async fn give_up(&self, node: usize) {
        let mut current = self.current.lock().await;
        if current.node == node {
            *current = Current { node: (node + 1) % self.options.endpoints.len(), client: None };
        }
    }
}

fn connect(options: &EtcdOptions) -> ConnectOptions {
    let mut connect = ConnectOptions::new()
        .with_connect_timeout(options.timeout)
        .with_keep_alive(PROBE, PROBE_ANSWER)
        .with_keep_alive_while_idle(false)
        // With this, a node without a leader answers so at once, and ends the watches that it
        // cannot serve.
        .with_require_leader(true);
    if let Some(user) = &options.user {
        connect = connect.with_user(&user.name, user.password.expose_secret()).with_auto_token_refresh(true);
    }
    if let Some(tls) = &options.tls {
        let mut config = TlsOptions::new().ca_certificate(Certificate::from_pem(&tls.authorities));
        if let Some(identity) = &tls.identity {
            let private_key = identity.private_key.expose_secret();
            config = config.identity(Identity::from_pem(&identity.certificate, private_key));
        }
        connect = connect.with_tls(config);
    }
    connect
}

/// Whether the server refused. Every error that leaves a doubt counts as no answer.
/// "Unauthenticated" is not a refusal: etcd returns it for an expired token, and the next
/// connection gets a new one.
fn classify(error: Error) -> Failure {
    const REFUSALS: [&str; 6] = [
        "InvalidArgument",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "OutOfRange",
        "Unimplemented",
    ];
    match &error {
        Error::GRpcStatus(status) if REFUSALS.contains(&&*format!("{:?}", status.code())) => {
            Failure::Refused(Box::new(error))
        }
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
            Failure::Refused(Box::new(error))
        }
        error => Failure::Unanswered(error.to_string()),
    }
}

impl Failure {
    /// Whether the server refused for lack of space. etcd checks its quota when a request arrives,
    /// and again when it carries the request out. The second time it reports this although it made
    /// the change. So what is there has to be read.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Refused(error) if error.to_string().contains(FULL))
    }

    pub(super) fn reason(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Unanswered(why) => why.clone(),
        }
    }

    /// The error for a request that changed nothing.
    pub(super) fn into_error(self, prefix: &str) -> KmsError {
        match self {
            Self::Unanswered(why) => KmsError::new(
                Code::Unavailable,
                format!(
                    "the keystore {prefix} in etcd is out of reach, or cut off from most of its nodes: {why}; \
                     nothing was changed, try again when the cluster is whole"
                ),
            ),
            Self::Refused(error) => refusal(prefix, &error),
        }
    }
}

fn refusal(prefix: &str, error: &Error) -> KmsError {
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    let (code, advice) = if says(FULL) {
        (
            Code::StorageFull,
            "its database has reached its quota: compact it, defragment it and disarm the alarm",
        )
    } else if says("too large") || says("too many operations") || says("larger than max") {
        (Code::TooLarge, "the nodes accept smaller requests than the usual limits")
    } else if says("too many requests") {
        (Code::Unavailable, "try again when the cluster has less load")
    } else if says("permission denied") || says("authentication") || says("user name is empty") {
        (Code::PermissionDenied, "check the user name, the password, and what the user's role permits")
    } else {
        (Code::Io, "check the endpoints and the nodes' own log")
    };
    KmsError::new(code, format!("etcd refused a request of the keystore {prefix}: {text}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_serves_threads_of_other_runtimes_and_stops() {
        let driver = Driver::start().unwrap();
        let other = Builder::new_current_thread().build().unwrap();
        assert_eq!(other.block_on(async { driver.run(async { Ok(1) }) }).unwrap(), 1);
        driver.spawn(std::future::pending());
        drop(driver);
    }
}
