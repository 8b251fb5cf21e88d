//! Bodies that nobody read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

/// How many bytes of an unwanted body are read.
const MOST: usize = 64 << 10;

/// For how long.
const TIME: Duration = Duration::from_secs(1);

/// The body of a request. When it is dropped before its end, because the request was refused for
/// example, the rest is read if it is short: a connection with an unread body is closed, and
/// closing it may take the answer away that the caller has not read yet.
pub(super) struct ReadToItsEnd(Option<Incoming>);

impl ReadToItsEnd {
    pub(super) fn new(body: Incoming) -> Self {
        Self(Some(body))
    }
}

impl Body for ReadToItsEnd {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for ReadToItsEnd {
    fn drop(&mut self) {
        let Some(body) = self.0.take() else { return };
        let is_short = body.size_hint().lower() <= MOST as u64;
        if !body.is_end_stream()
            && is_short
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Whether it ended, was too long or too slow: the connection closes then as it would
            // have.
            runtime.spawn(tokio::time::timeout(TIME, discard(body)));
        }
    }
}

/// Reads a body that is short, and keeps nothing of it.
async fn discard(mut body: Incoming) {
    let mut left = MOST;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(fewer) => left = fewer,
            None => return,
        }
    }
}
