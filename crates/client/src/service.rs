//! The service as a whole: its health, its metrics, sealing it, and backups.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use futures_core::Stream;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::{Instant, Sleep, sleep};

use crate::client::Client;
use crate::connection::interrupted;
use crate::encoding::parse_time;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::request::Call;

/// A service that runs.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Health {
    /// The service's version.
    pub version: String,
}

/// Whether the service answers requests.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Readiness {
    /// Whether the service answers requests.
    pub ready: bool,
    /// Whether the keystore is closed until somebody unseals it.
    pub sealed: bool,
    /// How current the node is; none for a service with a keystore of its own.
    pub store: Option<StoreFreshness>,
}

/// How current a node of a cluster is.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct StoreFreshness {
    /// The newest change that the node knows.
    pub revision: u64,
    /// For how long the node has not known whether there is a newer change.
    #[serde(deserialize_with = "milliseconds")]
    pub age: Duration,
    /// Whether that is so long that the node uses no private keys. It still verifies.
    pub stale: bool,
    /// How many nodes share the keystore.
    pub nodes: u32,
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// Whether the service is sealed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SealStatus {
    /// Whether the keystore is closed until somebody unseals it.
    pub sealed: bool,
}

/// A backup that arrives in pieces: a [`Stream`] of bytes. It opens only if it is complete: an
/// error means that all of it is lost.
pub struct Backup {
    /// How many keys it has.
    pub keys: u64,
    /// How many private keys these have.
    pub private_keys: u64,
    /// When it was made.
    pub made: SystemTime,
    body: Incoming,
    /// How long each piece may take.
    timeout: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Backup {
    fn new(answer: Response<Incoming>, timeout: Duration) -> Result<Self> {
        let header = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let number = |name| header(name).and_then(|value| value.parse().ok());
        let read = || {
            let made = parse_time(header("bulla-backup-made")?)?;
            Some((number("bulla-backup-keys")?, number("bulla-backup-private-keys")?, made))
        };
        let missing = || Error::invalid_response("its headers do not say what the backup has");
        let (keys, private_keys, made) = read().ok_or_else(missing)?;
        let deadline = Box::pin(sleep(timeout));
        Ok(Self { keys, private_keys, made, body: answer.into_body(), timeout, deadline })
    }

    /// The next piece; none after the last.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), and
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if the piece takes longer than a call may.
    pub async fn try_next(&mut self) -> Result<Option<Bytes>> {
        // A caller may have done something else since the last piece.
        self.deadline.as_mut().reset(Instant::now() + self.timeout);
        poll_fn(|context| self.poll_piece(context)).await.transpose()
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
                ready!(self.deadline.as_mut().poll(context));
                return Poll::Ready(Some(Err(Error::timeout(self.timeout))));
            };
            self.deadline.as_mut().reset(Instant::now() + self.timeout);
            let Some(frame) = frame else { return Poll::Ready(None) };
            match frame.map_err(interrupted).map(|frame| frame.into_data()) {
                Ok(Ok(data)) => return Poll::Ready(Some(Ok(data))),
                // Trailers.
                Ok(Err(_)) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl Stream for Backup {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.get_mut().poll_piece(context)
    }
}

impl Client {
    /// Asks whether the service runs, and which version it has.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// println!("bulla {}", client.health().await?.version);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<Health> {
        self.call(Call::new(Operation::Health)).await
    }

    /// Asks whether the service answers requests. A sealed service does not.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// if client.readiness().await?.sealed {
    ///     println!("an operator must unseal the service");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn readiness(&self) -> Result<Readiness> {
        let call = Call::new(Operation::Readiness);
        self.call(call.expect_status(StatusCode::SERVICE_UNAVAILABLE)).await
    }

    /// Reads the metrics of the service, as OpenMetrics.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// print!("{}", client.metrics().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn metrics(&self) -> Result<String> {
        self.text(Call::new(Operation::Metrics)).await
    }

    /// Seals the service: no key can be used from now on.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// assert!(client.seal_service().await?.sealed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn seal_service(&self) -> Result<SealStatus> {
        self.call(Call::new(Operation::SealService)).await
    }

    /// Unseals the service with the passphrase of its keystore. Without one, the service uses what
    /// opened the keystore at its start: it reads its key file again, for example. Only an operator
    /// whom the service's settings name may do that.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let passphrase = std::fs::read_to_string("passphrase").unwrap();
    /// assert!(!client.unseal_service(Some(passphrase.trim_end())).await?.sealed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn unseal_service(&self, passphrase: Option<&str>) -> Result<SealStatus> {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            passphrase: Option<&'a str>,
        }
        // A character has at most six bytes in JSON.
        let length = 32 + 6 * passphrase.map_or(0, str::len);
        self.call(Call::new(Operation::UnsealService).secret_body(&Body { passphrase }, length)).await
    }

    /// Makes a backup of the whole keystore, encrypted to recipients.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use std::io::Write as _;
    ///
    /// let mut file = std::fs::File::create("backup").unwrap();
    /// let mut backup = client.backup(&["age1..."]).await?;
    /// while let Some(piece) = backup.try_next().await? {
    ///     file.write_all(&piece).unwrap();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn backup(&self, recipients: &[&str]) -> Result<Backup> {
        #[derive(Serialize)]
        struct Body<'a> {
            recipients: &'a [&'a str],
        }
        let call = Call::new(Operation::Backup).body(&Body { recipients });
        Backup::new(self.begin(call).await?, self.options.timeout)
    }
}
