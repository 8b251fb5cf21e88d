//! Answers in Vault's form: the envelope around data, and errors.
//!
//! An envelope is written by hand, because the names of most of its fields are the same in every
//! answer.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bulla_kms::{Code, KmsError, SecretBytes};
use hyper::body::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ApiErrorCode, ErrorBody};
use crate::request::no_store;
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

/// The form of errors that callers of a path know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorForm {
    Own,
    Vault,
}

impl ErrorForm {
    pub(crate) fn at(path: &str) -> Self {
        if path.starts_with(super::PREFIX) { Self::Vault } else { Self::Own }
    }

    pub(crate) fn response(self, error: ApiError) -> Response {
        match self {
            Self::Own => error.into_response(),
            Self::Vault => VaultError::from(error).into_response(),
        }
    }
}

/// Whether answers of a final status have a body (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
pub(super) fn has_body(status: StatusCode) -> bool {
    ![StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&status)
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
    let out = envelope(&id, length, warnings, write);
    with_request_id(json(StatusCode::OK, out), &id)
}

/// An answer with a secret in its data, which is wiped, and which no cache keeps. `length` is at
/// least the length of the data: a buffer that grows leaves copies behind.
pub(super) fn secret_written(
    worker: &Worker,
    status: StatusCode,
    length: usize,
    warnings: &[String],
    write: impl FnOnce(&mut Vec<u8>),
) -> Response {
    let id = worker.service.next_request_id();
    let warned: usize = warnings.iter().map(|warning| 6 * warning.len() + 8).sum();
    let out = SecretBytes::from(envelope(&id, length + warned, warnings, write));
    no_store(with_request_id(json(status, Bytes::from_owner(out)), &id))
}

fn envelope(id: &str, length: usize, warnings: &[String], write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
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
    out
}

fn with_request_id(mut response: Response, id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// Writes the results of a batch: of each item its fields, its error, and the text that it repeats.
pub(super) fn write_results<T>(
    out: &mut Vec<u8>,
    results: &[Result<T>],
    references: impl Iterator<Item = impl AsRef<str>>,
    write_fields: impl Fn(&mut Vec<u8>, &Result<T>),
) {
    out.extend_from_slice(b"{\"batch_results\":[");
    for (place, (result, reference)) in results.iter().zip(references).enumerate() {
        out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
        let begin = out.len();
        write_fields(out, result);
        if out.len() > begin {
            out.push(b',');
        }
        if let Err(error) = result {
            out.extend_from_slice(b"\"error\":");
            write_text(out, error.words());
            out.extend_from_slice(b",\"code\":");
            write_text(out, error.code());
            out.push(b',');
        }
        out.extend_from_slice(b"\"reference\":");
        write_text(out, reference.as_ref());
        out.extend_from_slice(b"}");
    }
    out.extend_from_slice(b"]}");
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing to a vector cannot fail, and every text can be written as JSON.
    let _ = serde_json::to_writer(out, text);
}

/// An answer without an envelope.
pub(super) fn bare(status: StatusCode, body: &impl Serialize) -> Response {
    json(status, serde_json::to_vec(body).unwrap_or_default())
}

fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The result of everything that answers a client of Vault.
pub(super) type Result<T, E = VaultError> = std::result::Result<T, E>;

/// A refused or failed request, in Vault's words and with Vault's statuses.
#[derive(Clone, Debug)]
pub(crate) struct VaultError {
    status: StatusCode,
    /// Vault's words; none where it answers with an empty list.
    words: Option<Cow<'static, str>>,
    body: ErrorBody,
}

/// An error as clients of Vault see it.
#[derive(Serialize, ToSchema)]
pub(super) struct VaultErrorBody<'a> {
    /// What went wrong, in Vault's words. Where Vault answers an empty list, to a question about
    /// what does not exist, there is nothing else.
    #[schema(value_type = Vec<String>, example = json!(["signing key not found"]))]
    errors: &'a [&'a str],
    /// What went wrong, for programs. Vault has no such codes.
    #[schema(example = "key_not_found", required = false)]
    code: &'a str,
    /// What went wrong, in bulla's words.
    #[schema(required = false)]
    message: &'a str,
    /// Whether the same request may succeed later without a change.
    #[schema(required = false)]
    retryable: bool,
}

/// What answers a batch of which items may fail, and then has another status.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(super) enum ErrorOrResults<'a, T> {
    Error(VaultErrorBody<'a>),
    Results(Envelope<T>),
}

impl VaultError {
    /// An error for which Vault has words of its own.
    pub(super) fn in_words(words: impl Into<Cow<'static, str>>, error: impl Into<ApiError>) -> Self {
        Self { words: Some(words.into()), ..error.into().into() }
    }

    /// An error in a request, in Vault's words.
    pub(super) fn invalid(words: impl Into<Cow<'static, str>>) -> Self {
        let words = words.into();
        let error = ApiError::malformed(words.clone());
        Self::in_words(words, error)
    }

    /// What Vault does and bulla does not.
    pub(super) fn not_supported(message: impl Into<String>) -> Self {
        ApiError::new(ApiErrorCode::NotSupported, message).into()
    }

    /// Vault's answer to a question about something that does not exist: 404 without a message.
    pub(super) fn empty_not_found(message: impl Into<String>) -> Self {
        let error = Self::from(ApiError::from(KmsError::new(Code::KeyNotFound, message)));
        Self { status: StatusCode::NOT_FOUND, words: None, ..error }
    }

    /// The same error in Vault's words, if it has this code.
    pub(super) fn in_vault_words(self, code: Code, words: &'static str) -> Self {
        if self.has(code) { self.replace_words(words) } else { self }
    }

    /// The same error in other words.
    pub(super) fn replace_words(self, words: impl Into<Cow<'static, str>>) -> Self {
        Self { words: Some(words.into()), ..self }
    }

    pub(super) fn has(&self, code: Code) -> bool {
        self.body.code == code.as_str()
    }

    /// The same error with status 400, if the caller may try something else.
    pub(super) fn into_bad_request(self) -> Self {
        if self.body.retryable { self } else { Self { status: StatusCode::BAD_REQUEST, ..self } }
    }

    /// The same error with status 404.
    pub(super) fn into_not_found(self) -> Self {
        Self { status: StatusCode::NOT_FOUND, ..self }
    }

    pub(super) fn words(&self) -> &str {
        self.words.as_deref().unwrap_or_default()
    }

    /// The same error in other words.
    pub(super) fn with_words(self, words: impl Into<Cow<'static, str>>) -> Self {
        Self { words: Some(words.into()), ..self }
    }

    /// The message in bulla's words.
    pub(super) fn message(&self) -> &str {
        &self.body.message
    }

    pub(super) fn code(&self) -> &str {
        self.body.code
    }
}

/// Vault answers 400 to every wrong request, and 403 also to a request without a token.
impl From<ApiError> for VaultError {
    fn from(ApiError { status, body }: ApiError) -> Self {
        let is = |code: ApiErrorCode| body.code == code.as_str();
        let own = is(ApiErrorCode::EndpointNotFound) || is(ApiErrorCode::MethodNotAllowed);
        let status = match status {
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            StatusCode::NOT_FOUND | StatusCode::CONFLICT if !own => StatusCode::BAD_REQUEST,
            status => status,
        };
        let words = if status == StatusCode::FORBIDDEN {
            Cow::Borrowed("permission denied")
        } else if is(ApiErrorCode::Sealed) {
            Cow::Borrowed("Vault is sealed")
        } else {
            Cow::Owned(body.message.clone())
        };
        Self { status, words: Some(words), body }
    }
}

impl From<KmsError> for VaultError {
    fn from(error: KmsError) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for VaultError {
    fn into_response(self) -> Response {
        let Self { status, words, body: ErrorBody { code, message, retryable } } = self;
        let json = match words.as_deref() {
            Some(words) => {
                let body = VaultErrorBody { errors: &[words], code, message: &message, retryable };
                serde_json::to_vec(&body).unwrap_or_default()
            }
            // Vault's client for Go reads this as no result, and anything longer as an error.
            None => b"{\"errors\":[]}".to_vec(),
        };
        let mut response = Response::new(Body::from(json));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if retryable {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
