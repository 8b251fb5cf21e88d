//! One connection, from its first byte to its end: requests, bodies, idle time, access log.
//!
//! The access log names the method and the path of a request. It never has a query or a body.

use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use bulla_kms::{Code, KmsError};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tower_service::Service as _;
use tracing::{Instrument as _, Level};

use super::named_callers::Evidence;
use super::reload::LiveSettings;
use super::unfinished::{Counted, Unfinished};
use crate::access::Session;
use crate::config::LimitsConfig;
use crate::error::{ApiError, Result};
use crate::request::{CallerSlot, CertificateChain, Connection, ConnectionProof, Peer, enter_namespace};
use crate::service::{BodyReservation, Service, WorkerState};
use crate::traces;
use crate::transit::ErrorForm;
use crate::ui::PartOfProgram;

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

/// A connection whose caller is looked up in the current settings at each request.
struct PeerConnection {
    live: Arc<LiveSettings>,
    origin: Origin,
}

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) evidence: Evidence,
    /// None for a Unix socket.
    pub(super) address: Option<IpAddr>,
}

impl fmt::Debug for PeerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.evidence.fmt(f)
    }
}

impl Connection for PeerConnection {
    fn session(&self) -> Option<Arc<Session>> {
        self.live.peers.load().session(&self.origin.evidence)
    }

    fn is_local(&self) -> bool {
        matches!(self.origin.evidence, Evidence::User(_))
    }

    fn proof(&self) -> ConnectionProof {
        self.origin.evidence.proof()
    }

    fn address(&self) -> Option<IpAddr> {
        self.origin.address
    }

    fn certificate_chain(&self) -> Option<CertificateChain> {
        self.origin.evidence.chain()
    }
}

/// How long a connection that ends because nobody uses it may take to say so to its peer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a thread serves its connections.
pub(super) struct ConnectionServer {
    router: Router,
    worker: Arc<WorkerState>,
    live: Arc<LiveSettings>,
}

impl ConnectionServer {
    pub(super) fn new(worker: Arc<WorkerState>, live: Arc<LiveSettings>) -> Self {
        Self { router: crate::router::router(Arc::clone(&worker)), worker, live }
    }

    /// Serves a connection until it ends or, when the service shuts down, until its last request is
    /// answered. `message` is what its bytes come in, if they come by TLS.
    pub(super) async fn serve(
        &self,
        stream: Box<dyn Stream>,
        message: Option<Arc<Unfinished>>,
        origin: Origin,
        accepted: Instant,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let (router, worker, activity) =
            (self.router.clone(), Arc::clone(&self.worker), ConnectionActivity::since(accepted));
        // As with bodies, callers on the network cannot lock out those on a Unix socket.
        let most_answers = match origin.evidence {
            Evidence::User(_) => usize::MAX,
            Evidence::Nothing | Evidence::Certificate(_) => self.worker.service.limits().max_total_body_bytes,
        };
        let head = Unfinished::head(&self.worker.service, origin.address);
        let max_head_len = self.worker.service.limits().max_header_bytes;
        let answering = Arc::clone(&activity);
        let is_body = move || answering.is_used();
        let stream = Counted::http(stream, Arc::clone(&head), message, max_head_len, is_body);
        let proving: Arc<dyn Connection> = Arc::new(PeerConnection { live: Arc::clone(&self.live), origin });
        let used = Arc::clone(&activity);
        let service = service_fn(move |request: Request<Incoming>| {
            if request.version() < Version::HTTP_2 {
                head.end();
            }
            let mut request = request.map(|body| Body::new(DrainedBody::new(body, Arc::clone(&used))));
            let entry = AccessLogEntry::begin(&request);
            let (connection, caller_slot) =
                (Arc::clone(&proving), entry.as_ref().map(AccessLogEntry::caller_slot));
            request.extensions_mut().insert(Peer { connection, caller_slot });
            let (used, in_use) = (Arc::clone(&used), used.begin());
            let answer = answer(router.clone(), Arc::clone(&worker), request, entry, most_answers);
            async move {
                let _in_use = in_use;
                let (response, counted) = answer.await;
                Ok::<_, Infallible>(response.map(|body| TrackedBody::new(body, counted, used)))
            }
        });
        let builder = builder(&self.worker.service.limits());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = activity.idle(|| self.worker.service.limits().idle_timeout()) => {
                connection.as_mut().graceful_shutdown();
                let grace = self.worker.service.config.service.request_drain_time().min(CLOSE_TIMEOUT);
                timeout(grace, connection).await.unwrap_or(Ok(()))
            }
            () = shut_down(&mut shutdown) => {
                connection.as_mut().graceful_shutdown();
                let grace = self.worker.service.config.service.request_drain_time();
                timeout(grace, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            // A peer that disconnects or does not speak HTTP is not an error of the service.
            tracing::debug!("a connection ended: {error}");
        }
    }
}

async fn answer(
    mut router: Router,
    worker: Arc<WorkerState>,
    mut request: Request<Body>,
    entry: Option<AccessLogEntry>,
    most_answers: usize,
) -> (Response<Body>, Option<BodyReservation>) {
    let start = Instant::now();
    let id = worker.service.next_request_id();
    let span = traces::span(&request, &id);
    let errors = ErrorForm::at(request.uri().path());
    enter_namespace(&mut request);
    let Ok(mut response) = router.call(request).instrument(span.clone()).await;
    let counted = match response.extensions_mut().remove::<ApiError>() {
        Some(error) => Err(error),
        None => count_answer(&worker.service, &response, most_answers),
    };
    let (mut response, counted) = match counted {
        Ok(counted) => (response, counted),
        Err(error) => (errors.response(error), None),
    };
    worker.service.http_metrics.record_answer(worker.number, response.status(), start.elapsed());
    traces::answered(&span, response.status());
    if let Some(entry) = entry {
        entry.end(&id, response.status());
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        // Some answers have the request id already, because it is also in their body.
        response.headers_mut().entry(REQUEST_ID).or_insert(id);
    }
    (response, counted)
}

/// Answers of this length do not count: a connection has few of them.
const MAX_FREE_ANSWER_LEN: u64 = 16 << 10;

/// Counts a long answer, which is there until its peer has taken it. Nobody knows when that will
/// be.
///
/// # Errors
/// All that wait for their peers would be longer than `most`, and this one is not the only one.
fn count_answer(
    service: &Service,
    response: &Response<Body>,
    most: usize,
) -> Result<Option<BodyReservation>> {
    let length = response.body().size_hint().lower();
    if length <= MAX_FREE_ANSWER_LEN || response.extensions().get::<PartOfProgram>().is_some() {
        return Ok(None);
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let mut counted = service.answers_under_way.begin();
    if counted.grow(length, most.max(length)) {
        return Ok(Some(counted));
    }
    let message = "answers that nobody has taken yet have as much memory as they may: try again";
    Err(KmsError::new(Code::Busy, message).into())
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

/// When a connection was used. Its bytes do not count: a peer that only answers pings, or sends a
/// head byte by byte, uses nothing.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    /// When it was accepted.
    begin: Instant,
    /// When it was last used, in milliseconds after `begin`.
    last: AtomicU64,
    /// How many requests are being answered.
    running: AtomicUsize,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

impl ConnectionActivity {
    pub(super) fn since(begin: Instant) -> Arc<Self> {
        Arc::new(Self { begin, last: AtomicU64::new(0), running: AtomicUsize::new(0) })
    }

    /// Whether a request is being answered.
    fn is_used(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Counts a request as being answered until the value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.running.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(self))
    }

    fn used(&self) {
        let millis = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    /// Returns when nothing has used the connection for as long as `limit` says. The limit may
    /// change meanwhile.
    pub(super) async fn idle(&self, limit: impl Fn() -> Duration) {
        loop {
            let last = self.begin + Duration::from_millis(self.last.load(Ordering::Relaxed));
            let is_running = self.is_used();
            let (now, limit) = (Instant::now(), limit());
            if !is_running && last + limit <= now {
                return;
            }
            sleep_until(if is_running { now + limit } else { last + limit }).await;
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.used();
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most bytes of an answer that are handed to the connection at once. It asks for more when it
/// could send these.
const MAX_FRAME_LEN: usize = 16 << 10;

/// The bytes of a long answer. The HTTP library may keep a part of them for longer than the body,
/// and each part keeps all bytes in memory. So the answer counts until the last part is gone.
struct CountedAnswer {
    bytes: Bytes,
    _counted: BodyReservation,
}

impl AsRef<[u8]> for CountedAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer, which tells how its peer takes it.
pub(super) struct TrackedBody {
    body: Body,
    /// What a long answer counts for, until its bytes are there.
    counted: Option<BodyReservation>,
    /// The part of the last frame that the connection has not taken yet.
    rest: Bytes,
    activity: Arc<ConnectionActivity>,
    /// There while the service makes the next part of the body: the peer cannot do anything then.
    making: Option<ActiveRequest>,
}

impl TrackedBody {
    pub(super) fn new(
        body: Body,
        counted: Option<BodyReservation>,
        activity: Arc<ConnectionActivity>,
    ) -> Self {
        Self { body, counted, rest: Bytes::new(), activity, making: None }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.activity.used();
        if self.rest.is_empty() {
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let Self { making, activity, .. } = &mut *self;
                    making.get_or_insert_with(|| activity.begin());
                    return Poll::Pending;
                }
            };
            self.making = None;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                // A long answer has one part.
                Some(Ok(Ok(bytes))) => {
                    self.rest = match self.counted.take() {
                        Some(counted) => Bytes::from_owner(CountedAnswer { bytes, _counted: counted }),
                        None => bytes,
                    }
                }
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(MAX_FRAME_LEN);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// How many bytes of an unwanted body are read.
const MAX_DRAINED_BYTES: usize = 64 << 10;

/// How long reading an unwanted body may take.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a request. When it is dropped before its end, because the request was refused for
/// example, the rest is read if it is short: a connection with an unread body is closed, and
/// closing it may take the answer away that the caller has not read yet.
pub(super) struct DrainedBody {
    body: Option<Incoming>,
    activity: Arc<ConnectionActivity>,
}

impl DrainedBody {
    pub(super) fn new(body: Incoming, activity: Arc<ConnectionActivity>) -> Self {
        Self { body: Some(body), activity }
    }
}

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        let is_short = body.size_hint().lower() <= MAX_DRAINED_BYTES as u64;
        if !body.is_end_stream()
            && is_short
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Whether it ended, was too long or too slow: the connection closes then as it would
            // have.
            let active = self.activity.begin();
            runtime.spawn(async move {
                let _active = active;
                timeout(DRAIN_TIMEOUT, discard(body)).await
            });
        }
    }
}

/// Reads a body that is short, and keeps nothing of it.
async fn discard(mut body: Incoming) {
    let mut left = MAX_DRAINED_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(fewer) => left = fewer,
            None => return,
        }
    }
}

/// The target of the lines, which are at the level debug.
pub const ACCESS_LOG_TARGET: &str = "bulla::access";

/// The most characters of a path that are logged.
const MAX_LOGGED_PATH_LEN: usize = 256;

/// A request that will be logged when it is answered.
pub(super) struct AccessLogEntry {
    start: Instant,
    method: Method,
    path: String,
    caller: CallerSlot,
}

impl AccessLogEntry {
    /// None where nobody reads the log.
    pub(super) fn begin(request: &Request<Body>) -> Option<Self> {
        if !tracing::enabled!(target: ACCESS_LOG_TARGET, Level::DEBUG) {
            return None;
        }
        let path = request.uri().path().chars().take(MAX_LOGGED_PATH_LEN).collect();
        Some(Self { start: Instant::now(), method: request.method().clone(), path, caller: Arc::default() })
    }

    /// The handler stores the caller here.
    pub(super) fn caller_slot(&self) -> CallerSlot {
        Arc::clone(&self.caller)
    }

    pub(super) fn end(self, id: &str, status: StatusCode) {
        let microseconds = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let actor = self.caller.get().map_or("", |session| session.actor.as_str());
        let (method, path, status) = (self.method.as_str(), self.path.as_str(), status.as_u16());
        tracing::debug!(target: ACCESS_LOG_TARGET, request = id, method, path, status, microseconds, actor, "request");
    }
}

#[cfg(test)]
mod tests {
    use bulla_kms::metrics::Metrics;
    use bulla_kms::{Keystore, SecretString};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::runtime::Builder as RuntimeBuilder;

    use super::*;
    use crate::config::Config;
    use crate::service::{KeystoreSource, OpenKeystore};

    struct Empty;

    impl KeystoreSource for Empty {
        fn needs_passphrase(&self) -> bool {
            false
        }

        fn open(&self, _: Option<SecretString>, _: &Arc<Metrics>) -> bulla_kms::Result<OpenKeystore> {
            Ok(OpenKeystore { keystore: Keystore::in_memory()?, audit: None })
        }
    }

    /// A service that is not sealed.
    fn server(mut config: Config) -> Arc<ConnectionServer> {
        config.service.development = true;
        let service = Arc::new(Service::new(config.clone(), 1, Box::new(Empty)).unwrap());
        service.unseal(None).unwrap();
        let live = Arc::new(LiveSettings::new(Arc::clone(&service), config).unwrap());
        Arc::new(ConnectionServer::new(WorkerState::new(service, 0), live))
    }

    /// A new connection, whose ends keep at most 1 KiB that the other has not read.
    fn connect(server: &Arc<ConnectionServer>, address: Option<IpAddr>) -> DuplexStream {
        let (client, served) = duplex(1 << 10);
        let server = Arc::clone(server);
        tokio::spawn(async move {
            let origin = Origin { evidence: Evidence::Nothing, address };
            // Nobody tells it to end.
            let (_sender, shutdown) = watch::channel(false);
            server.serve(Box::new(served), None, origin, Instant::now(), shutdown).await;
        });
        client
    }

    /// A request whose answer is longer than all answers together may be, on a new connection. Of
    /// the answer, only the head was read.
    async fn ask(server: &Arc<ConnectionServer>) -> (u16, DuplexStream) {
        let mut client = connect(server, None);
        let items = vec![r#"{"key":"none","message":"","signature":""}"#; 1900].join(",");
        let body = format!(r#"{{"items":[{items}]}}"#);
        let length = body.len();
        let head =
            format!("POST /api/v1/verify HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        client.write_all((head + &body).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(client.read_u8().await.unwrap());
        }
        let status = String::from_utf8_lossy(&answer)[9..12].parse().unwrap();
        (status, client)
    }

    /// A connection of HTTP/1 with a head that has not ended.
    struct LongHead(DuplexStream);

    impl LongHead {
        /// One from an address, whose head has this length and some more; none if it is closed.
        async fn send(server: &Arc<ConnectionServer>, address: [u8; 4], length: usize) -> Option<Self> {
            let mut client = connect(server, Some(IpAddr::from(address)));
            let head = format!("GET /none HTTP/1.1\r\nhost: localhost\r\nx: {}", "x".repeat(length));
            client.write_all(head.as_bytes()).await.ok()?;
            // It is there once these bytes are, too.
            client.write_all(&[b'x'; 2 << 10]).await.ok()?;
            Some(Self(client))
        }

        /// Ends the head, and returns the status of the answer.
        async fn end_head(mut self) -> u16 {
            self.0.write_all(b"\r\n\r\n").await.unwrap();
            let mut answer = [0; 12];
            self.0.read_exact(&mut answer).await.unwrap();
            String::from_utf8_lossy(&answer[9..]).parse().unwrap()
        }
    }

    #[test]
    fn long_heads_without_an_end_have_a_bound_by_address_and_short_ones_are_free() {
        let server = server(Config::default());
        let runtime = RuntimeBuilder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut open = Vec::new();
            while let Some(head) = LongHead::send(&server, [192, 0, 2, 1], 50 << 10).await {
                open.push(head);
                assert!(open.len() < 100, "there is no bound");
            }
            assert!((15..=20).contains(&open.len()), "1 MiB has room for {} of 52 KiB", open.len());
            // Others go on, and so do usual heads from there, and those that are there.
            for (address, length) in [([192, 0, 2, 2], 50 << 10), ([192, 0, 2, 1], 5 << 10)] {
                assert_eq!(LongHead::send(&server, address, length).await.unwrap().end_head().await, 404);
            }
            assert_eq!(open.pop().unwrap().end_head().await, 404);
            // An end gives the memory back, and so does a connection that ends.
            let again = LongHead::send(&server, [192, 0, 2, 1], 50 << 10).await.unwrap();
            assert!(LongHead::send(&server, [192, 0, 2, 1], 50 << 10).await.is_none());
            drop(open);
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            drop(LongHead::send(&server, [192, 0, 2, 1], 50 << 10).await.unwrap());
            assert_eq!(again.end_head().await, 404);
        });
    }

    /// A connection of HTTP/2 from an address, with a head that a second frame ends; none if it is
    /// closed.
    async fn open_head(server: &Arc<ConnectionServer>, address: [u8; 4]) -> Option<DuplexStream> {
        let mut client = connect(server, Some(IpAddr::from(address)));
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let first_part = [0, 0, 1, 1, 1, 0, 0, 0, 3, 0x82];
        // The end of another head does not hide the open one.
        let whole = [0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, b'a'];
        let sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &whole, &first_part].concat();
        client.write_all(&sent).await.unwrap();
        // The service has read all of that when it confirms the settings.
        until_frame(&mut client, [4, 1, 0]).await.then_some(client)
    }

    /// Reads frames until one of this type comes with this flag and for this stream, or the
    /// connection ends.
    async fn until_frame(client: &mut DuplexStream, [kind, flag, stream]: [u8; 3]) -> bool {
        let mut start = [0; 9];
        while client.read_exact(&mut start).await.is_ok() {
            let mut payload = vec![0; usize::from(start[1]) << 8 | usize::from(start[2])];
            client.read_exact(&mut payload).await.unwrap();
            if [start[3], start[4] & flag, start[8]] == [kind, flag, stream] {
                return true;
            }
        }
        false
    }

    #[test]
    fn open_heads_of_http_2_have_a_bound_by_address() {
        let server = server(Config::default());
        let runtime = RuntimeBuilder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut open = Vec::new();
            for _ in 0..4 {
                open.push(open_head(&server, [192, 0, 2, 1]).await.unwrap());
            }
            assert!(open_head(&server, [192, 0, 2, 1]).await.is_none());
            open.push(open_head(&server, [192, 0, 2, 2]).await.unwrap());
            let rest_of_head = [0, 0, 5, 9, 4, 0, 0, 0, 3, 0x86, 0x84, 0x41, 1, b'a'];
            for client in &mut open {
                client.write_all(&rest_of_head).await.unwrap();
                assert!(until_frame(client, [1, 4, 3]).await, "there is an answer");
            }
            assert!(open_head(&server, [192, 0, 2, 1]).await.is_some());
        });
    }

    #[test]
    fn long_answers_have_a_bound_until_they_are_taken_or_their_connections_end() {
        let mut config = Config::default();
        (config.limits.max_body_bytes, config.limits.max_total_body_bytes) = (100 << 10, 100 << 10);
        let server = server(config);
        let runtime = RuntimeBuilder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // The only one may be longer.
            let (status, mut first) = ask(&server).await;
            assert_eq!(status, 200);
            let (status, mut second) = ask(&server).await;
            assert_eq!(status, 503);
            let mut refused = vec![0; 20];
            second.read_exact(&mut refused).await.unwrap();
            assert_eq!(&refused[..14], br#"{"code":"busy""#);

            // It is taken, of which the service hears some time later.
            let mut rest = vec![0; 100 << 10];
            first.read_exact(&mut rest).await.unwrap();
            let reading = tokio::spawn(async move { first.read_to_end(&mut Vec::new()).await });
            let third = until_answered(&server).await;
            assert_eq!(ask(&server).await.0, 503);
            drop(third);
            until_answered(&server).await;
            reading.abort();
        });
    }

    async fn until_answered(server: &Arc<ConnectionServer>) -> DuplexStream {
        for _ in 0..1000 {
            let (status, client) = ask(server).await;
            if status == 200 {
                return client;
            }
        }
        panic!("the memory of answers is not given back");
    }
}
