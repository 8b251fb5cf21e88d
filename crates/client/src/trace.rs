//! Spans of requests, by OpenTelemetry's conventions for clients of HTTP.

use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

use crate::address::{Address, Peer};
use crate::error::{Error, ErrorKind, Result};
use crate::middleware::Response;
use crate::operation::Operation;

/// Makes a request in a span of its own.
pub(crate) async fn trace_request(
    operation: Operation,
    address: &Address,
    attempt: u32,
    request: impl Future<Output = Result<Response>>,
) -> Result<Response> {
    let span = request_span(operation, address, attempt);
    let response = request.instrument(span.clone()).await;
    match &response {
        Ok(response) => record_status(&span, response.status()),
        Err(error) => record_failure(&span, error_type(error)),
    }
    response
}

/// The span of a request. The path names its parameters, not their values: keys are not shown.
fn request_span(operation: Operation, address: &Address, attempt: u32) -> Span {
    let (method, path) = (operation.method(), operation.path());
    let span = info_span!(
        "request",
        otel.kind = "client",
        otel.name = format_args!("{method} {path}"),
        otel.status_code = Empty,
        http.request.method = method.as_str(),
        http.request.resend_count = Empty,
        http.response.status_code = Empty,
        url.template = path,
        server.address = Empty,
        server.port = Empty,
        error.r#type = Empty,
        bulla.operation = operation.id(),
    );
    match address.peer() {
        Peer::Network(network) => {
            span.record("server.address", network.host.as_str());
            span.record("server.port", network.port);
        }
        Peer::Unix(path) => {
            span.record("server.address", tracing::field::display(path.display()));
        }
    }
    if attempt > 0 {
        span.record("http.request.resend_count", attempt);
    }
    span
}

fn record_status(span: &Span, status: u16) {
    span.record("http.response.status_code", status);
    if status >= 400 {
        record_failure(span, &status.to_string());
    }
}

fn record_failure(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

fn error_type(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Connect => "connect",
        ErrorKind::Certificate => "certificate",
        ErrorKind::Interrupted => "interrupted",
        ErrorKind::InvalidArgument => "invalid_argument",
        ErrorKind::TokenProvider => "token_provider",
        ErrorKind::Middleware => "middleware",
        _ => "_OTHER",
    }
}
