//! The answer to a request that was refused or failed.

use std::fmt;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bulla_kms::{Code, KmsError};
use serde::Serialize;
use utoipa::ToSchema;

/// The result of everything that answers a request.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Errors in requests for which the keystore has no code. The names never change once released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiErrorCode {
    /// The request carries no credential.
    Unauthenticated,
    /// The credential does not permit the request, or what it names does not exist. The caller
    /// learns no more.
    Forbidden,
    /// The request has no credential but its connection, and may come from a page of another site.
    CrossSiteRequest,
    /// The credential's rate limit is reached.
    RateLimited,
    /// The tenant has as much as its quota permits.
    QuotaExceeded,
    /// The service is sealed.
    Sealed,
    /// The body is not the JSON that the endpoint takes.
    MalformedRequest,
    /// The body is longer than the service accepts.
    BodyTooLarge,
    /// A batch has more items than the service accepts.
    TooManyItems,
    /// The node does not have the revision that the request wants.
    RevisionUnavailable,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The path names no endpoint.
    EndpointNotFound,
    /// The endpoint does not take this method.
    MethodNotAllowed,
    /// An idempotency key was used before for another request.
    IdempotencyKeyReused,
    /// The keystore has no audit log.
    NoAuditLog,
    /// The service does not offer this.
    NotSupported,
}

impl ApiErrorCode {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 16] = [
        Self::Unauthenticated,
        Self::Forbidden,
        Self::CrossSiteRequest,
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::Sealed,
        Self::MalformedRequest,
        Self::BodyTooLarge,
        Self::TooManyItems,
        Self::RevisionUnavailable,
        Self::BodyTimeout,
        Self::EndpointNotFound,
        Self::MethodNotAllowed,
        Self::IdempotencyKeyReused,
        Self::NoAuditLog,
        Self::NotSupported,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => Code::Forbidden.as_str(),
            Self::CrossSiteRequest => "cross_site_request",
            Self::RateLimited => "rate_limited",
            Self::QuotaExceeded => "quota_exceeded",
            Self::Sealed => "sealed",
            Self::MalformedRequest => "malformed_request",
            Self::BodyTooLarge => "body_too_large",
            Self::TooManyItems => "too_many_items",
            Self::RevisionUnavailable => "revision_unavailable",
            Self::BodyTimeout => "body_timeout",
            Self::EndpointNotFound => "endpoint_not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::NoAuditLog => "no_audit_log",
            Self::NotSupported => "not_supported",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::CrossSiteRequest => StatusCode::FORBIDDEN,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::Sealed | Self::RevisionUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::MalformedRequest | Self::TooManyItems | Self::NotSupported => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::EndpointNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::IdempotencyKeyReused | Self::NoAuditLog | Self::QuotaExceeded => StatusCode::CONFLICT,
        }
    }

    const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Sealed | Self::RevisionUnavailable | Self::BodyTimeout)
    }
}

/// The HTTP status for a code of the keystore.
pub(crate) const fn status_of(code: Code) -> StatusCode {
    match code {
        Code::KeyNotFound | Code::UnknownVersion | Code::NotFound => StatusCode::NOT_FOUND,
        Code::InvalidToken | Code::Forbidden | Code::ApprovalRequired => StatusCode::FORBIDDEN,
        Code::AlreadyExists
        | Code::NotLatestVersion
        | Code::KeyDisabled
        | Code::KeyPendingDestruction
        | Code::KeyDestroyed
        | Code::DestructionNotDue
        | Code::VersionNotUsable
        | Code::Conflict
        | Code::LabelTaken
        | Code::VersionsExhausted
        | Code::UsesExhausted
        | Code::NoPrivateKey
        | Code::NotExportable
        | Code::WrongUnlockMethod => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Busy
        | Code::Locked
        | Code::Unavailable
        | Code::ShuttingDown
        | Code::RandomUnavailable
        | Code::DeviceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::OutcomeUnknown => StatusCode::GATEWAY_TIMEOUT,
        Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        Code::InvalidArgument
        | Code::InvalidId
        | Code::InvalidPublicKey
        | Code::MalformedSignature
        | Code::SignatureTooNew
        | Code::MalformedManifest
        | Code::ReservedMessage
        | Code::KeyUsageMismatch
        | Code::InvalidCiphertext
        | Code::UnsupportedAlgorithm
        | Code::MalformedEncryptedFile
        | Code::EncryptedFileTooNew
        | Code::EncryptedFileCorrupt
        | Code::MalformedBackup
        | Code::MalformedKey
        | Code::UnsupportedFormat
        | Code::WrongPassphrase
        | Code::WrongDecryptionKey
        | Code::MalformedProof => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// An error as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What went wrong, for programs. Codes never change once released.
    #[schema(example = "key_not_found")]
    pub(crate) code: &'static str,
    /// What went wrong, for people.
    #[schema(example = "the tenant local has no key with the label invoices")]
    pub(crate) message: String,
    /// Whether the same request may succeed later without a change.
    pub(crate) retryable: bool,
}

/// A refused or failed request: a status and what the body says.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: ErrorBody,
}

impl ApiError {
    pub(crate) fn new(code: ApiErrorCode, message: impl Into<String>) -> Self {
        let (status, retryable) = (code.status(), code.is_retryable());
        Self { status, body: ErrorBody { code: code.as_str(), message: message.into(), retryable } }
    }

    /// The answer to a caller without the right. It is the same whether or not the key exists.
    pub(crate) fn forbidden() -> Self {
        let message = "the credential does not permit this, or what the request names does not exist";
        Self::new(ApiErrorCode::Forbidden, message)
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ApiErrorCode::MalformedRequest, message)
    }

    /// A part of the service failed unexpectedly.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        KmsError::new(Code::Internal, message).into()
    }

    /// Code of the service panicked, and its log says where.
    pub(crate) fn panicked() -> Self {
        Self::internal("a part of the service failed; its log says where")
    }
}

impl From<KmsError> for ApiError {
    fn from(error: KmsError) -> Self {
        let status = status_of(error.code);
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(code = error.code.as_str(), "{}", error.message);
        }
        let KmsError { code, message, retryable, .. } = error;
        Self { status, body: ErrorBody { code: code.as_str(), message, retryable } }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body.message)
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.body.retryable {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_that_says_failure() {
        for code in ApiErrorCode::ALL {
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{code:?}");
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code:?}");
        }
    }

    #[test]
    fn a_retryable_error_says_when_to_try_again() {
        let response = ApiError::from(KmsError::new(Code::Busy, "busy")).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let response = ApiError::forbidden().into_response();
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }

    /// The rows of the table of errors: code, status, whether a retry may help, when, and what to
    /// do.
    fn documented() -> Vec<[&'static str; 5]> {
        let text = include_str!("../../../spec/http-api.md");
        let (_, table) = text.split_once("| code | status |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = |line: &'static str| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            cells.try_into().unwrap_or_else(|_| panic!("{line}"))
        };
        rows.map(cells).collect()
    }

    #[test]
    fn the_table_of_errors_has_every_code_and_says_what_the_service_answers() {
        let of_server =
            ApiErrorCode::ALL.map(|code| (code.as_str(), code.status(), code.is_retryable())).into_iter();
        let of_keystore = Code::ALL.iter().map(|code| (code.as_str(), status_of(*code), code.is_retryable()));
        // A refused credential has the name that the keystore gives it.
        let of_keystore = of_keystore.filter(|(code, ..)| *code != ApiErrorCode::Forbidden.as_str());
        let mut expected: Vec<_> = of_server
            .chain(of_keystore)
            .map(|(code, status, retry)| (code, status.as_str().to_owned(), if retry { "yes" } else { "" }))
            .collect();
        expected.sort_unstable();
        let documented = documented();
        let found: Vec<_> = documented
            .iter()
            .map(|[code, status, retry, ..]| (code.trim_matches('`'), (*status).to_owned(), *retry))
            .collect();
        assert_eq!(found, expected);
        for [code, .., when, what_to_do] in documented {
            assert!(when.len() > 10 && what_to_do.len() > 5, "{code}");
        }
    }
}
