//! The ways in which a call fails.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The service's refusal of a request, or of one item of a batch.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Refusal {
    /// What went wrong, for programs. Codes never change: `spec/http-api.md` lists them.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// Whether the same request may succeed later. The service changed nothing then.
    pub retryable: bool,
    /// The HTTP status; 200 for an item of a batch.
    #[serde(skip, default = "item_status")]
    pub status: u16,
    /// The request's id in the service's log; none for an item of a batch.
    #[serde(skip)]
    pub request_id: Option<String>,
}

fn item_status() -> u16 {
    200
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.request_id {
            Some(id) => write!(f, "{} ({}, request {id})", self.message, self.code),
            None => write!(f, "{} ({})", self.message, self.code),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a call failed. No error contains a token, a message or another secret.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The service refused the request.
    Refused(Box<Refusal>),
    /// There was no connection to the service: nothing was sent.
    Unreachable(String),
    /// The client does not trust the service's certificate, or the service refused the client's.
    /// The service did nothing, and the same request would fail again.
    Certificate(String),
    /// The connection ended before the answer did. A change may have been made.
    Interrupted(String),
    /// The call took longer than its deadline. A change may have been made.
    Deadline(Duration),
    /// The answer is not one of the service: something in between sent it, or the service is too
    /// old or too new. A change may have been made.
    Unexpected(String),
    /// A setting or an argument cannot be used.
    Invalid(String),
}

impl Error {
    /// The refusal, if the service refused the request.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        self.refusal().map(|refusal| refusal.code.as_str())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unreachable(why) => write!(f, "cannot reach the service: {why}"),
            Self::Interrupted(why) => {
                write!(f, "the connection to the service ended before its answer: {why}")
            }
            Self::Deadline(deadline) => write!(f, "the service did not answer within {deadline:?}"),
            Self::Unexpected(why) => write!(f, "the answer is not one of the service: {why}"),
            Self::Certificate(why) | Self::Invalid(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
