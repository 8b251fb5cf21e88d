//! One connection, from its first byte to its end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, Response};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tower_service::Service as _;
use tracing::Instrument as _;

use super::access_log::Entry;
use super::activity::{Activity, Answering};
use super::live::Live;
use super::peers::Evidence;
use super::unread::ReadToItsEnd;
use crate::access::Session;
use crate::config::LimitsConfig;
use crate::request::{Connection, Peer, Proof};
use crate::service::WorkerState;
use crate::traces;

/// The header that names a request, in answers and in the service's log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Waits until the service shuts down.
pub(super) async fn shut_down(down: &mut watch::Receiver<bool>) {
    // The sender lives as long as the service.
    let _ = down.wait_for(|down| *down).await;
}

/// The bytes of a connection, however they travel: so HTTP is compiled once.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What a connection proves by the settings as they are now.
struct Proving {
    live: Arc<Live>,
    evidence: Evidence,
}

impl fmt::Debug for Proving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.evidence.fmt(f)
    }
}

impl Connection for Proving {
    fn session(&self) -> Option<Arc<Session>> {
        self.live.peers.load().session(&self.evidence)
    }

    fn is_local(&self) -> bool {
        matches!(self.evidence, Evidence::User(_))
    }

    fn proof(&self) -> Proof {
        self.evidence.proof()
    }
}

/// How long a connection that ends because nobody uses it may take to say so to its peer.
const FAREWELL: Duration = Duration::from_secs(5);

/// How a thread serves its connections.
pub(super) struct Connections {
    router: Router,
    worker: Arc<WorkerState>,
    live: Arc<Live>,
}

impl Connections {
    pub(super) fn new(worker: Arc<WorkerState>, live: Arc<Live>) -> Self {
        Self { router: crate::router::router(Arc::clone(&worker)), worker, live }
    }

    /// Serves a connection until it ends or, when the service shuts down, until its last request is
    /// answered.
    pub(super) async fn serve(
        &self,
        stream: Box<dyn Stream>,
        evidence: Evidence,
        accepted: Instant,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let (router, worker, activity) =
            (self.router.clone(), Arc::clone(&self.worker), Activity::since(accepted));
        let proving: Arc<dyn Connection> = Arc::new(Proving { live: Arc::clone(&self.live), evidence });
        let used = Arc::clone(&activity);
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let mut request = request.map(|body| Body::new(ReadToItsEnd::new(body)));
            let entry = Entry::begin(&request);
            let (connection, caller_slot) = (Arc::clone(&proving), entry.as_ref().map(Entry::caller_slot));
            request.extensions_mut().insert(Peer { connection, caller_slot });
            let (used, in_use) = (Arc::clone(&used), used.begin());
            let answer = answer(router.clone(), Arc::clone(&worker), request, entry);
            async move {
                let _in_use = in_use;
                answer.await.map(|response| response.map(|body| Answering::new(body, used)))
            }
        });
        let builder = builder(&self.worker.service.limits());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = activity.idle(|| self.worker.service.limits().idle_timeout()) => {
                connection.as_mut().graceful_shutdown();
                let grace = self.worker.service.config.service.time_for_requests().min(FAREWELL);
                timeout(grace, connection).await.unwrap_or(Ok(()))
            }
            () = shut_down(&mut shutdown) => {
                connection.as_mut().graceful_shutdown();
                let grace = self.worker.service.config.service.time_for_requests();
                timeout(grace, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            // A peer that disconnects or does not speak HTTP is not an error of the service.
            tracing::debug!("a connection ended: {error}");
        }
    }
}

/// Answers one request.
async fn answer(
    mut router: Router,
    worker: Arc<WorkerState>,
    request: Request<Body>,
    entry: Option<Entry>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let start = Instant::now();
    let id = worker.service.next_request_id();
    let span = traces::span(&request, &id);
    let answer = router.call(request).instrument(span.clone()).await;
    answer.map(|mut response| {
        worker.service.counts.answered(worker.number, response.status(), start.elapsed());
        traces::answered(&span, response.status());
        if let Some(entry) = entry {
            entry.end(&id, response.status());
        }
        if let Ok(id) = HeaderValue::from_str(&id) {
            // Some answers have the request id already, because it is also in their body.
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
        }
        response
    })
}

/// The settings for a connection that begins now.
fn builder(limits: &LimitsConfig) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout())
        .max_buf_size(limits.max_header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.idle_timeout())
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(256);
    builder
}
