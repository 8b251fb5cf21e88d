//! The access log: a line for each request, with nothing in it that a caller sent in a header, a
//! query or a body.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use tracing::Level;

use crate::request::CallerSlot;

/// The target of the lines, which are at the level debug.
pub const ACCESS_LOG_TARGET: &str = "bulla::access";

/// The most characters of a path that are logged.
const MOST: usize = 256;

/// A request that will be logged when it is answered.
pub(super) struct Entry {
    start: Instant,
    method: Method,
    path: String,
    caller: CallerSlot,
}

impl Entry {
    /// None where nobody reads the log.
    pub(super) fn begin(request: &Request<Body>) -> Option<Self> {
        if !tracing::enabled!(target: ACCESS_LOG_TARGET, Level::DEBUG) {
            return None;
        }
        let path = request.uri().path().chars().take(MOST).collect();
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
