//! The form of Vault's answers: the result in `data`, and around it the fields that clients expect
//! in every answer.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Worker;

/// An answer of Vault.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(super) struct Envelope<T> {
    /// The request, as the header `X-Request-Id` names it.
    #[schema(example = "9f3a1c07-0000000042")]
    request_id: String,
    /// Always empty: nothing here has a lease.
    lease_id: String,
    /// Always false.
    renewable: bool,
    /// Always 0.
    lease_duration: u64,
    /// What the answer is about.
    data: T,
    /// Always null.
    wrap_info: Option<String>,
    /// Warnings for the client, although the request succeeded.
    warnings: Option<Vec<String>>,
    /// Always null.
    auth: Option<String>,
}

/// An answer with these data.
pub(super) fn data(worker: &Worker, data: &impl Serialize) -> Response {
    data_and_warnings(worker, data, &[])
}

/// An answer with these data and warnings.
pub(super) fn data_and_warnings(worker: &Worker, data: &impl Serialize, warnings: &[String]) -> Response {
    let json = serde_json::to_vec(data).unwrap_or_default();
    written(worker, json.len(), warnings, |out| out.extend_from_slice(&json))
}

/// An answer whose data `write` appends. `length` is about their length.
pub(super) fn written(
    worker: &Worker,
    length: usize,
    warnings: &[String],
    write: impl FnOnce(&mut Vec<u8>),
) -> Response {
    let id = worker.service.next_request_id();
    let mut out = Vec::with_capacity(192 + length);
    out.extend_from_slice(b"{\"request_id\":\"");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b"\",\"lease_id\":\"\",\"renewable\":false,\"lease_duration\":0,\"data\":");
    write(&mut out);
    out.extend_from_slice(b",\"wrap_info\":null,\"warnings\":");
    if warnings.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        out.extend_from_slice(&serde_json::to_vec(warnings).unwrap_or_default());
    }
    out.extend_from_slice(b",\"auth\":null}");
    let mut response = json(StatusCode::OK, out);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// An answer without an envelope.
pub(super) fn bare(status: StatusCode, body: &impl Serialize) -> Response {
    json(status, serde_json::to_vec(body).unwrap_or_default())
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
