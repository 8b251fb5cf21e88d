//! Whether a connection is used, and the end of one that is not.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

/// When a connection was used. Its bytes do not count: a peer that only answers pings, or sends a
/// head byte by byte, uses nothing.
#[derive(Debug)]
pub(super) struct Activity {
    /// When it was accepted.
    begin: Instant,
    /// When it was last used, in milliseconds after `begin`.
    last: AtomicU64,
    /// How many requests are being answered.
    running: AtomicUsize,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct InUse(Arc<Activity>);

impl Activity {
    pub(super) fn since(begin: Instant) -> Arc<Self> {
        Arc::new(Self { begin, last: AtomicU64::new(0), running: AtomicUsize::new(0) })
    }

    /// Counts a request as being answered until the value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> InUse {
        self.running.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
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
            let is_running = self.running.load(Ordering::Relaxed) > 0;
            let (now, limit) = (Instant::now(), limit());
            if !is_running && last + limit <= now {
                return;
            }
            sleep_until(if is_running { now + limit } else { last + limit }).await;
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.used();
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most bytes of an answer that are handed to the connection at once. It asks for more when it
/// could send these.
const PIECE: usize = 16 << 10;

/// The body of an answer, which tells how its peer takes it.
pub(super) struct Answering {
    body: Body,
    /// What the connection has not asked for yet.
    rest: Bytes,
    activity: Arc<Activity>,
    /// There while the service makes the next part of the body: the peer cannot do anything then.
    making: Option<InUse>,
}

impl Answering {
    pub(super) fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, rest: Bytes::new(), activity, making: None }
    }
}

impl HttpBody for Answering {
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
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE);
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
