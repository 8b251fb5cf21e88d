//! The ways in which a call fails.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::error_code::ErrorCode;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of another crate.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The service's error: its answer to a request, or to one item of a batch.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServiceError {
    /// What went wrong, for programs.
    pub code: ErrorCode,
    /// What went wrong, for people.
    pub message: String,
    /// Whether the same request may succeed later. The service changed nothing then.
    pub retryable: bool,
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl StdError for ServiceError {}

/// The kind of an [`Error`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The service answered with an error: [`Error::service_error`].
    Service,
    /// There was no connection to the service: nothing was sent.
    Connect,
    /// The client does not trust the service's certificate, or the service refused the client's.
    /// The service did nothing, and the same request would fail again.
    Certificate,
    /// The connection ended before the answer did. A change may have been made.
    Interrupted,
    /// The call took longer than its timeout. A change may have been made.
    Timeout,
    /// The answer is not one of the service: a proxy sent it, or the service is too old or too new.
    /// A change may have been made.
    InvalidResponse,
    /// A setting or an argument cannot be used: nothing was sent.
    InvalidArgument,
    /// The [`TokenProvider`](crate::TokenProvider) gave no token: nothing was sent.
    TokenProvider,
    /// A [`Middleware`](crate::middleware::Middleware) failed.
    Middleware,
}

/// Why a call failed.
///
/// Its text does not repeat that of its [`source`](StdError::source): `{error:#}` prints both. No
/// text contains a token, a message or another secret.
///
/// ```no_run
/// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
/// use bulla_client::ErrorCode;
///
/// match client.key("invoices").await {
///     Ok(key) => println!("{} has {} versions", key.id, key.versions.len()),
///     Err(error) if error.code() == Some(&ErrorCode::KeyNotFound) => println!("no such key"),
///     Err(error) => return Err(error),
/// }
/// # Ok(())
/// # }
/// ```
///
/// ```
/// use bulla_client::Error;
///
/// /// What a program writes to its log.
/// fn log(error: &Error) {
///     let id = error.request_id().unwrap_or("-");
///     println!("{error:#} (status {:?}, request {id})", error.status());
///     if error.is_outcome_unknown() {
///         println!("the change may have been made: read the key");
///     } else if error.is_retryable() {
///         println!("worth another attempt after {:?}", error.retry_after());
///     }
///     if let Some(refusal) = error.service_error() {
///         println!("the service refused: {}", refusal.code.as_str());
///     }
/// }
/// ```
pub struct Error(Box<ErrorDetails>);

struct ErrorDetails {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
    service_error: Option<ServiceError>,
    response: ResponseInfo,
}

/// What is known of the answer that an error is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseInfo {
    pub(crate) status: Option<u16>,
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails {
            kind,
            message: message.into(),
            source: None,
            service_error: None,
            response: ResponseInfo::default(),
        }))
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    pub(crate) fn invalid_response(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidResponse, format!("the answer is not one of the service: {message}"))
    }

    pub(crate) fn timeout(timeout: Duration) -> Self {
        Self::new(ErrorKind::Timeout, format!("the service did not answer within {timeout:?}"))
    }

    pub(crate) fn service(error: ServiceError) -> Self {
        let mut new = Self::new(ErrorKind::Service, error.to_string());
        new.0.service_error = Some(error);
        new
    }

    /// The error of a middleware, for the answer of
    /// [`Middleware::handle`](crate::middleware::Middleware::handle).
    ///
    /// ```
    /// use bulla_client::{Error, ErrorKind};
    ///
    /// let error = Error::middleware("the circuit breaker is open");
    /// assert_eq!(error.kind(), ErrorKind::Middleware);
    /// ```
    pub fn middleware(error: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::Middleware, "a middleware failed").with_source(error)
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn with_response(mut self, response: ResponseInfo) -> Self {
        self.0.response = response;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The service's error, if the service answered with one.
    pub fn service_error(&self) -> Option<&ServiceError> {
        self.0.service_error.as_ref()
    }

    /// The code of the service's error.
    pub fn code(&self) -> Option<&ErrorCode> {
        self.service_error().map(|error| &error.code)
    }

    /// The HTTP status of the answer, if there was an answer with an error.
    pub fn status(&self) -> Option<u16> {
        self.0.response.status
    }

    /// The request's id in the service's log.
    pub fn request_id(&self) -> Option<&str> {
        self.0.response.request_id.as_deref()
    }

    /// Whether the same request may succeed later, and does no harm: the service says so, or it did
    /// not get the request.
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            ErrorKind::Service => self.service_error().is_some_and(|error| error.retryable),
            ErrorKind::Connect => true,
            _ => false,
        }
    }

    /// How long the answer asks to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.response.retry_after
    }

    /// Whether a change may have been made although the call failed. Read the key before you repeat
    /// the call.
    pub fn is_outcome_unknown(&self) -> bool {
        match self.kind() {
            ErrorKind::Interrupted | ErrorKind::Timeout | ErrorKind::InvalidResponse => true,
            _ => matches!(self.code(), Some(ErrorCode::OutcomeUnknown | ErrorCode::Internal)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.0;
        match (&details.service_error, &details.response.request_id) {
            (Some(ServiceError { code, message, .. }), Some(id)) => {
                write!(f, "{message} ({code}, request {id})")?;
            }
            _ => f.write_str(&details.message)?,
        }
        if !f.alternate() {
            return Ok(());
        }
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorDetails { kind, message, source, service_error, response } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("source", source)
            .field("service_error", service_error)
            .field("response", response)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Why [`Client::sign_many`](crate::Client::sign_many) or another call for a batch did not reach
/// the end of the batch.
///
/// ```no_run
/// # async fn example(client: &bulla_client::Client) {
/// use bulla_client::SignItem;
///
/// let items = vec![SignItem { key: "invoices", message: b"a message" }; 50_000];
/// match client.sign_many(&items).await {
///     Ok(results) => println!("{} results", results.len()),
///     Err(failed) => {
///         let rest = &items[failed.results.len()..];
///         println!("{} items are left: {}", rest.len(), failed.error);
///     }
/// }
/// # }
/// ```
#[non_exhaustive]
#[derive(Debug)]
pub struct BatchError<T> {
    /// The results of the items before the request that failed, in their order.
    pub results: Vec<Result<T, ServiceError>>,
    /// Why the request for the next items failed. The service may have done its work, as
    /// [`Error::is_outcome_unknown`] says; to repeat it does no harm.
    pub error: Error,
}

impl<T> fmt::Display for BatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the batch stopped after {} results", self.results.len())
    }
}

impl<T: fmt::Debug> StdError for BatchError<T> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}

/// Forgets the results.
impl<T> From<BatchError<T>> for Error {
    fn from(batch: BatchError<T>) -> Self {
        batch.error
    }
}
