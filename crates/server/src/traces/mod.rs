//! Traces: a span for each request, which another program may have begun (W3C Trace Context).

#[cfg(feature = "otel")]
mod otel;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use tracing::field::Empty;
use tracing::{Level, Span};

#[cfg(feature = "otel")]
pub use self::otel::TraceExporter;

/// The target of the spans. Only traces subscribe to it.
pub const SPAN_TARGET: &str = "bulla::request";

/// The span of a request; none without a collector.
pub(crate) fn span(request: &Request<Body>, id: &str) -> Span {
    if !tracing::span_enabled!(target: SPAN_TARGET, Level::INFO) {
        return Span::none();
    }
    let (method, path) = (request.method().as_str(), request.uri().path());
    let span = tracing::info_span!(
        target: SPAN_TARGET, "request", otel.name = method, otel.kind = "server", http.request.method = method, url.path = path,
        request.id = id, http.response.status_code = Empty, otel.status_code = Empty
    );
    #[cfg(feature = "otel")]
    otel::adopt_parent(&span, request.headers());
    span
}

/// Notes how a request was answered.
pub(crate) fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
