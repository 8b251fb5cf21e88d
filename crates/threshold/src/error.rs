//! What can go wrong, and who caused it.

use std::fmt;

use bulla_kms::{KmsError, Name};

/// The kind of an error.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A text is not a message of this crate, or it was cut or edited.
    MalformedMessage,
    /// The message has a newer version.
    MessageTooNew,
    /// The message is not signed by the participant whose name it has.
    BadSignature,
    /// The sender is not in the group.
    UnknownSender,
    /// The message belongs to another session, or to shares that were refreshed since.
    WrongSession,
    /// A participant sent two different messages where there is one.
    Equivocation,
    /// A participant sent a message that is not what the protocol asks for.
    Misbehavior,
    /// The nonces of this session are used: it signs nothing else.
    NoncesSpent,
    /// An argument is not possible.
    InvalidArgument,
    /// The shares are too few, or do not belong together.
    NotEnoughShares,
    /// Encryption, decryption or randomness failed.
    Encryption,
}

/// An error of this crate: one sentence without a full stop, and the participants that caused it.
///
/// It has no secrets.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError {
    /// The kind.
    pub code: ErrorCode,
    /// What happened, in words.
    pub message: String,
    /// The participants that are proven to have caused it. Empty if it is nobody's fault, or if
    /// nothing proves whose it is.
    pub culprits: Vec<Name>,
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, ThresholdError>;

impl ThresholdError {
    /// An error of the function that [`SigningSession::advance`](crate::SigningSession::advance)
    /// asks what a step signs.
    pub fn invalid_job(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), culprits: Vec::new() }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::MalformedMessage, format!("not a threshold message: {}", message.into()))
    }

    pub(crate) fn misbehavior(culprit: &Name, message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Misbehavior, format!("{culprit} {message}")).caused_by([culprit.clone()])
    }

    pub(crate) fn caused_by(mut self, culprits: impl IntoIterator<Item = Name>) -> Self {
        self.culprits = culprits.into_iter().collect();
        self
    }
}

impl ErrorCode {
    /// Returns the code as text: `bad_signature`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MalformedMessage => "malformed_message",
            Self::MessageTooNew => "message_too_new",
            Self::BadSignature => "bad_signature",
            Self::UnknownSender => "unknown_sender",
            Self::WrongSession => "wrong_session",
            Self::Equivocation => "equivocation",
            Self::Misbehavior => "misbehavior",
            Self::NoncesSpent => "nonces_spent",
            Self::InvalidArgument => "invalid_argument",
            Self::NotEnoughShares => "not_enough_shares",
            Self::Encryption => "encryption",
        }
    }
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ThresholdError {}

impl From<KmsError> for ThresholdError {
    fn from(error: KmsError) -> Self {
        Self::new(ErrorCode::Encryption, error.message)
    }
}
