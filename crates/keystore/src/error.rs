//! The error of this crate.

use bulla_files::escape_path;
use bulla_kms::{Code, KmsError};
use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Programs match on it, and show their own hints for it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// There is no keystore in the folder.
    NoKeystore,
    /// There is a keystore in the folder already.
    KeystoreExists,
    /// There is a key file in the folder, and no keystore that opens with it.
    KeystoreLost,
    /// Other users may change the keystore.
    KeystoreMode,
    /// Other users may read or write a file with a secret.
    SecretFileMode,
    /// A file with a secret belongs to another user.
    SecretFileOwner,
    /// A passphrase opens the keystore, and the program has no source for it.
    NoPassphrase,
    /// A file with a passphrase is too long, empty or not UTF-8.
    MalformedPassphrase,
    /// The program was not started with the passphrase that its settings name.
    NoCredential,
    /// The keystore, its guard or a key is on a device, and the program has none.
    DeviceRequired,
    /// An identity opens the keystore, and the program has none.
    IdentityRequired,
    /// The keystore remembers a rollback guard of a kind that this program does not know.
    UnknownGuard,
    /// The location of a rollback guard is malformed, or inside the keystore's folder.
    InvalidGuardLocation,
    /// There is a rollback guard at this location already.
    GuardExists,
    /// The user has no home folder, so the keystore has no default location.
    NoHome,
    /// No key has this label.
    UnknownLabel,
    /// No key can have this id.
    InvalidKeyId,
    /// The keystore has no audit log.
    NoAuditLog,
    /// The keystore has a key that signs an audit log, and the log is missing.
    AuditLogMissing,
    /// The start of the audit log was interrupted before its first checkpoint.
    AuditLogUnfinished,
    /// There is an audit log, and the keystore has no key that signs it.
    AuditLogWithoutKey,
    /// An error of the keystore itself.
    Kms(Code),
    /// An error of the operating system.
    Io(io::ErrorKind),
}

impl ErrorCode {
    /// Returns the stable name of the code, in snake case. Causes that a program handles in the
    /// same way have the same name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoKeystore | Self::NoCredential | Self::NoAuditLog => "not_found",
            Self::KeystoreExists | Self::GuardExists => "already_exists",
            Self::KeystoreLost => "keystore_lost",
            Self::KeystoreMode => "keystore_mode",
            Self::SecretFileMode => "secret_file_mode",
            Self::SecretFileOwner => "secret_file_owner",
            Self::NoPassphrase => "no_passphrase",
            Self::MalformedPassphrase => "passphrase_file",
            Self::DeviceRequired | Self::IdentityRequired => Code::WrongUnlockMethod.as_str(),
            Self::UnknownGuard => Code::GuardMismatch.as_str(),
            Self::InvalidGuardLocation => Code::InvalidArgument.as_str(),
            Self::NoHome => "no_home",
            Self::UnknownLabel => Code::KeyNotFound.as_str(),
            Self::InvalidKeyId => Code::InvalidId.as_str(),
            Self::AuditLogMissing => "audit_log_missing",
            Self::AuditLogUnfinished | Self::AuditLogWithoutKey => "audit_log_unfinished",
            Self::Kms(code) => code.as_str(),
            Self::Io(kind) => match kind {
                io::ErrorKind::NotFound => "not_found",
                io::ErrorKind::PermissionDenied => "permission_denied",
                io::ErrorKind::IsADirectory => "is_a_folder",
                io::ErrorKind::NotADirectory => "not_a_folder",
                io::ErrorKind::StorageFull => "storage_full",
                io::ErrorKind::FileTooLarge => "file_too_large",
                _ => "io",
            },
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error about a keystore's folder, as a person reads it, with a code for programs.
///
/// ```
/// use bulla_keystore::{Error, ErrorCode};
/// use bulla_kms::{Code, KmsError};
/// use std::io;
///
/// let error = Error::unknown_label("relase").hint("list the keys with: bulla keys list");
/// assert_eq!((error.code, error.code.as_str()), (ErrorCode::UnknownLabel, "key_not_found"));
/// assert_eq!(error.to_string(), "there is no key with the label \"relase\"");
///
/// let error = Error::no_audit_log().about("/srv/keys");
/// assert_eq!(error.to_string(), "/srv/keys: the keystore has no audit log");
///
/// // Errors of the system and of the keystore itself keep their source.
/// let error = Error::io("cannot read", io::Error::from(io::ErrorKind::StorageFull));
/// assert_eq!((error.code.as_str(), error.kms_error().is_none()), ("storage_full", true));
/// let error = Error::from(KmsError::new(Code::KeyDisabled, "the key is disabled"));
/// assert_eq!(error.kms_error().unwrap().code, Code::KeyDisabled);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Error {
    /// What went wrong.
    pub code: ErrorCode,
    /// What the error is about, ready to print: most often an escaped path.
    pub subject: Option<String>,
    /// The message, without its subject.
    pub message: String,
    /// What to do next, for errors where that does not depend on the program.
    pub hint: Option<String>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error without subject, hint and source.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, subject: None, message: message.into(), hint: None, source: None }
    }

    /// Makes the error for a label that no key has.
    pub fn unknown_label(label: &str) -> Self {
        Self::new(ErrorCode::UnknownLabel, format!("there is no key with the label {label:?}"))
    }

    /// Makes the error for a keystore without an audit log.
    pub fn no_audit_log() -> Self {
        Self::new(ErrorCode::NoAuditLog, "the keystore has no audit log")
    }

    /// Makes an error of the operating system while `doing`, for example `cannot read`.
    pub fn io(doing: &str, error: io::Error) -> Self {
        let made = Self::new(ErrorCode::Io(error.kind()), format!("{doing}: {error}"));
        Self { source: Some(Arc::new(error)), ..made }
    }

    /// Sets the subject, which is printed as it is.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Sets a path as the subject. Characters that could mislead a reader are escaped.
    #[must_use]
    pub(crate) fn about_path(self, path: &Path) -> Self {
        self.about(escape_path(path))
    }

    /// Sets the hint on what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Replaces the code by one that says more of the cause.
    #[must_use]
    pub(crate) fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    /// Returns the error of the keystore itself, if it is one.
    pub fn kms_error(&self) -> Option<&KmsError> {
        self.source.as_deref().and_then(|source| source.downcast_ref())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => write!(f, "{subject}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<KmsError> for Error {
    fn from(error: KmsError) -> Self {
        let made = Self::new(ErrorCode::Kms(error.code), error.message.clone());
        Self { source: Some(Arc::new(error)), ..made }
    }
}

/// For a service, whose errors are those of its keystore. The hint is left out.
impl From<Error> for KmsError {
    fn from(error: Error) -> Self {
        let code = match error.code {
            ErrorCode::Kms(code) => code,
            ErrorCode::NoKeystore | ErrorCode::NoCredential | ErrorCode::NoAuditLog => Code::NotFound,
            ErrorCode::DeviceRequired | ErrorCode::IdentityRequired => Code::WrongUnlockMethod,
            ErrorCode::UnknownGuard => Code::GuardMismatch,
            ErrorCode::Io(io::ErrorKind::NotFound) => Code::NotFound,
            ErrorCode::Io(io::ErrorKind::PermissionDenied) => Code::PermissionDenied,
            _ => Code::Io,
        };
        Self::new(code, error.to_string()).with_source(error)
    }
}
