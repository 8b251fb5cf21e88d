//! Requests with a long body: once the body is there, their handlers go on on other threads.
//!
//! To read 32 MiB of JSON and base64 takes tenths of a second, and the thread that serves has other
//! connections. So what such a handler does is slow work of the caller, and waits for its turn.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};

use super::caller::session_of;
use super::handler::Answer;
use crate::access::Session;
use crate::service::Worker;

/// Bodies of this length are read on the thread that serves: that takes less than a millisecond.
const MAX_QUICK_LEN: usize = 128 << 10;

/// An extension of each request whose body may be long: its caller, as soon as the body is there
/// and is long.
#[derive(Clone, Default)]
pub(super) struct LongBody(Arc<OnceLock<Arc<Session>>>);

impl LongBody {
    /// None for a request whose body is short, as its head says.
    pub(super) fn may_come(request: &mut Request) -> Option<Self> {
        let most = request.body().size_hint().upper();
        if most.is_some_and(|most| most <= MAX_QUICK_LEN as u64) {
            return None;
        }
        let long = Self::default();
        request.extensions_mut().insert(long.clone());
        Some(long)
    }

    /// Has the handler of a request go on on another thread, if its body, which is there now, is
    /// long.
    pub(super) async fn leave_thread(parts: &Parts, length: usize) {
        if length <= MAX_QUICK_LEN {
            return;
        }
        // A long body has a caller: without one, bodies are short.
        if let (Some(Self(caller)), Some(session)) = (parts.extensions.get(), session_of(parts))
            && caller.set(session).is_ok()
        {
            // Ends this poll. The next one is on the other thread.
            let mut ended = false;
            poll_fn(|_| if mem::replace(&mut ended, true) { Poll::Ready(()) } else { Poll::Pending }).await;
        }
    }

    /// The answer of the request's handler. If the handler cannot go on, the answer carries the
    /// error as an extension: who sends it knows the form of errors at the request's path.
    pub(super) async fn answer(self, mut handler: Answer, worker: Worker) -> Response {
        let with_body = poll_fn(|context| match (handler.as_mut().poll(context), self.0.get()) {
            (Poll::Ready(response), _) => Poll::Ready(Ok(response)),
            (Poll::Pending, Some(session)) => Poll::Ready(Err(Arc::clone(session))),
            (Poll::Pending, None) => Poll::Pending,
        });
        match with_body.await {
            Ok(response) => response,
            Err(session) => {
                let answered = worker.answer_blocking(&session, handler).await;
                answered.unwrap_or_else(|error| {
                    let mut response = error.clone().into_response();
                    response.extensions_mut().insert(error);
                    response
                })
            }
        }
    }
}
