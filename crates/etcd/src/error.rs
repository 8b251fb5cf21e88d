//! What can fail: a request that a node refused or did not answer, and the errors that callers get.

use std::fmt;

use etcd_client::Error;

/// The result of everything in this crate that can fail.
pub type Result<T, E = EtcdError> = std::result::Result<T, E>;

/// The message of etcd when its database has reached its quota.
const QUOTA_MESSAGE: &str = "space exceeded";

/// The kind of an [`EtcdError`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EtcdErrorKind {
    /// An option or a name breaks a rule that its documentation states.
    InvalidArgument,
    /// The nodes cannot be reached, or not enough of them. Nothing was changed.
    Unavailable,
    /// The user may not do this.
    PermissionDenied,
    /// The database has reached its quota.
    StorageFull,
    /// A value is larger than etcd accepts.
    TooLarge,
    /// The request failed in another way.
    Io,
}

/// An error of etcd: its kind, for programs, and a message that says what to do.
#[derive(Debug)]
pub struct EtcdError {
    kind: EtcdErrorKind,
    message: String,
    source: Option<std::io::Error>,
}

impl EtcdError {
    pub(crate) fn new(kind: EtcdErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn io(action: &str, error: std::io::Error) -> Self {
        let message = format!("{action}: {error}");
        Self { kind: EtcdErrorKind::Io, message, source: Some(error) }
    }

    /// The kind of this error.
    pub fn kind(&self) -> EtcdErrorKind {
        self.kind
    }

    /// The message, and the error of the operating system behind it, if there is one.
    pub fn into_parts(self) -> (String, Option<std::io::Error>) {
        (self.message, self.source)
    }
}

impl fmt::Display for EtcdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EtcdError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Why a request got no answer.
#[derive(Debug)]
pub enum RequestFailure {
    /// The server refused, with a reason. Nothing was done, unless [`RequestFailure::is_full`].
    Refused(Box<Error>),
    /// There was no answer, or one that does not tell whether anything was done.
    Unanswered(String),
}

/// Whether the server refused. Every error that leaves a doubt counts as no answer.
/// "Unauthenticated" is not a refusal: etcd returns it for an expired token, and the next
/// connection gets a new one.
pub(crate) fn classify(error: Error) -> RequestFailure {
    const REFUSALS: [&str; 6] = [
        "InvalidArgument",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "OutOfRange",
        "Unimplemented",
    ];
    match &error {
        Error::GRpcStatus(status) if REFUSALS.contains(&&*format!("{:?}", status.code())) => {
            RequestFailure::Refused(Box::new(error))
        }
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
            RequestFailure::Refused(Box::new(error))
        }
        error => RequestFailure::Unanswered(error.to_string()),
    }
}

impl RequestFailure {
    /// Whether the server refused for lack of space. etcd checks its quota when a request arrives,
    /// and again when it carries the request out. The second time it reports this although it made
    /// the change. So what is there has to be read.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Refused(error) if error.to_string().contains(QUOTA_MESSAGE))
    }

    /// Why there was no answer, for people.
    pub fn reason(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Unanswered(why) => why.clone(),
        }
    }

    /// The error for a request that changed nothing.
    pub fn into_error(self, prefix: &str) -> EtcdError {
        match self {
            Self::Unanswered(why) => EtcdError::new(
                EtcdErrorKind::Unavailable,
                format!(
                    "the keystore {prefix} in etcd is out of reach, or cut off from most of its nodes: {why}; \
                     nothing was changed, try again when the cluster is whole"
                ),
            ),
            Self::Refused(error) => refusal(prefix, &error),
        }
    }
}

fn refusal(prefix: &str, error: &Error) -> EtcdError {
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    let (code, advice) = if says(QUOTA_MESSAGE) {
        (
            EtcdErrorKind::StorageFull,
            "its database has reached its quota: compact it, defragment it and disarm the alarm",
        )
    } else if says("too large") || says("too many operations") || says("larger than max") {
        (EtcdErrorKind::TooLarge, "the nodes accept smaller requests than the usual limits")
    } else if says("too many requests") {
        (EtcdErrorKind::Unavailable, "try again when the cluster has less load")
    } else if says("permission denied") || says("authentication") || says("user name is empty") {
        (
            EtcdErrorKind::PermissionDenied,
            "check the user name, the password, and what the user's role permits",
        )
    } else {
        (EtcdErrorKind::Io, "check the endpoints and the nodes' own log")
    };
    EtcdError::new(code, format!("etcd refused a request of the keystore {prefix}: {text}; {advice}"))
}
