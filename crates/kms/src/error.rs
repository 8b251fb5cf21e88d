//! One error type with stable codes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The result of everything in this crate that can fail.
pub type Result<T, E = KmsError> = std::result::Result<T, E>;

/// What went wrong, as a name that programs may depend on.
///
/// The text form ([`Code::as_str`], serde) is snake case and never changes once released; new codes
/// may be added.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// An argument breaks a rule that its documentation states.
    InvalidArgument,
    /// A text is not a key id, key version id, name or label.
    InvalidId,
    /// The bytes or the text are not a usable public key.
    InvalidPublicKey,
    /// A signature file breaks its grammar.
    MalformedSignature,
    /// A signature file is of a newer format than this program reads.
    SignatureTooNew,
    /// The body of a folder's signature breaks its grammar.
    MalformedManifest,
    /// A message starts with the bytes that are reserved for signature files.
    ReservedMessage,
    /// There is no keystore, or no key file, at the path.
    NotFound,
    /// Something is already there.
    AlreadyExists,
    /// No such key.
    KeyNotFound,
    /// The key has no such version.
    UnknownVersion,
    /// The version is not the newest one, and only the newest one signs.
    NotHead,
    /// The key is disabled and does not sign.
    KeyDisabled,
    /// The key waits for its destruction and neither signs nor changes until it is restored.
    KeyPendingDestruction,
    /// The key was destroyed; it can only verify.
    KeyDestroyed,
    /// The key cannot be destroyed yet: its destruction is not scheduled, or for a later time.
    DestructionNotDue,
    /// The version is below the key's minimum version, or was revoked.
    VersionRefused,
    /// The key is not as the caller expected: another change came first.
    Conflict,
    /// There is too much to do at the moment; trying again may help.
    Busy,
    /// The key's algorithm cannot do that: one that signs does not encapsulate, and the reverse.
    WrongUse,
    /// The ciphertext is malformed, or was made for another key.
    InvalidCiphertext,
    /// No backend of this build serves the algorithm.
    UnsupportedAlgorithm,
    /// Another key of the tenant has the label.
    LabelTaken,
    /// The key has 2^32 - 1 versions: there is no number for another one.
    VersionsExhausted,
    /// The passphrase does not open the keystore, or the private key to import.
    WrongPassphrase,
    /// The key file does not open the keystore.
    WrongKeyFile,
    /// The keystore opens with another kind of secret: a passphrase, a key file, another provider's
    /// key.
    WrongUnlockMethod,
    /// The key of a provider does not open it.
    WrongIdentity,
    /// The keystore is older than its rollback guard: somebody replaced it with an older copy.
    RolledBack,
    /// The rollback guard belongs to another keystore, or is damaged.
    GuardMismatch,
    /// The bytes are not sealed data.
    MalformedSealed,
    /// The data is sealed in a newer format than this program reads.
    SealedTooNew,
    /// Sealed data was changed, cut or moved, or is for another purpose.
    SealedDamaged,
    /// The decrypted content is not a backup of a keystore, or contradicts itself.
    MalformedBackup,
    /// Others than its owner may read or write the key file.
    KeyFileMode,
    /// The key file belongs to another user.
    KeyFileOwner,
    /// The key file is a symbolic link or no regular file.
    KeyFileType,
    /// The key file's content is not that of a key file.
    MalformedKeyFile,
    /// The keystore is of a newer format than this program reads.
    StoreTooNew,
    /// The keystore was damaged or edited, or the file is not a keystore.
    StoreDamaged,
    /// Another process changed the keystore since it was opened, or replaced its file.
    StoreChanged,
    /// Another process has the keystore open.
    Locked,
    /// The keystore's servers cannot be reached, or not enough of them. Nothing was changed, and
    /// this process sees the keys as it last read them.
    Unavailable,
    /// The keystore's servers stopped answering in the middle of a change. They may have made the
    /// change or not. Or a change was made, and the audit log or the rollback guard could not
    /// record it yet.
    OutcomeUnknown,
    /// A key has grown larger than the store takes.
    TooLarge,
    /// The disk is full, or a quota or a file size limit was reached.
    StorageFull,
    /// The operating system refused permission.
    PermissionDenied,
    /// The system's clock is before 1970 or after 9998.
    ClockOutOfRange,
    /// Reading or writing failed in another way.
    Io,
    /// The operating system gave no random bytes.
    RandomUnavailable,
    /// The bytes or the text are not a private key of their format, or the private key does not
    /// match its public key.
    MalformedKey,
    /// The format does not carry keys of the algorithm.
    UnsupportedFormat,
    /// Only a public key was imported: the key verifies, and does nothing else.
    NoPrivateKey,
    /// The key was not created as exportable.
    NotExportable,
    /// The token is malformed, or no trusted root signed it.
    InvalidToken,
    /// The token does not permit the operation, has expired, or was revoked.
    TokenRefused,
    /// The audit log was damaged or edited.
    LogDamaged,
    /// The audit log is of a newer format than this program reads.
    LogTooNew,
    /// The bytes or the text are not a proof about an audit log, or not a checkpoint.
    MalformedProof,
    /// The queue is closed and accepts no more calls.
    Closed,
    /// A part of this program failed in a way that it should not have. Whether the call had an
    /// effect is not known.
    Internal,
    /// The private key's token cannot be reached: it was removed, its session was lost, or its
    /// library fails.
    TokenUnavailable,
    /// The token refused the PIN. This program does not try the PIN again: a token locks itself
    /// after a few wrong ones.
    WrongPin,
    /// The token is locked after too many wrong PINs.
    PinLocked,
    /// A device with private keys refused or failed an operation.
    DeviceFailed,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 65] = [
        Self::InvalidArgument,
        Self::InvalidId,
        Self::InvalidPublicKey,
        Self::MalformedSignature,
        Self::SignatureTooNew,
        Self::MalformedManifest,
        Self::ReservedMessage,
        Self::NotFound,
        Self::AlreadyExists,
        Self::KeyNotFound,
        Self::UnknownVersion,
        Self::NotHead,
        Self::KeyDisabled,
        Self::KeyPendingDestruction,
        Self::KeyDestroyed,
        Self::DestructionNotDue,
        Self::VersionRefused,
        Self::Conflict,
        Self::Busy,
        Self::WrongUse,
        Self::InvalidCiphertext,
        Self::UnsupportedAlgorithm,
        Self::LabelTaken,
        Self::VersionsExhausted,
        Self::WrongPassphrase,
        Self::WrongKeyFile,
        Self::WrongUnlockMethod,
        Self::WrongIdentity,
        Self::RolledBack,
        Self::GuardMismatch,
        Self::MalformedSealed,
        Self::SealedTooNew,
        Self::SealedDamaged,
        Self::MalformedBackup,
        Self::KeyFileMode,
        Self::KeyFileOwner,
        Self::KeyFileType,
        Self::MalformedKeyFile,
        Self::StoreTooNew,
        Self::StoreDamaged,
        Self::StoreChanged,
        Self::Locked,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::TooLarge,
        Self::StorageFull,
        Self::PermissionDenied,
        Self::ClockOutOfRange,
        Self::Io,
        Self::RandomUnavailable,
        Self::MalformedKey,
        Self::UnsupportedFormat,
        Self::NoPrivateKey,
        Self::NotExportable,
        Self::InvalidToken,
        Self::TokenRefused,
        Self::LogDamaged,
        Self::LogTooNew,
        Self::MalformedProof,
        Self::Closed,
        Self::Internal,
        Self::TokenUnavailable,
        Self::WrongPin,
        Self::PinLocked,
        Self::DeviceFailed,
    ];

    /// The stable name: snake case, the same as in serde.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::InvalidId => "invalid_id",
            Self::InvalidPublicKey => "invalid_public_key",
            Self::MalformedSignature => "malformed_signature",
            Self::SignatureTooNew => "signature_too_new",
            Self::MalformedManifest => "malformed_manifest",
            Self::ReservedMessage => "reserved_message",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::KeyNotFound => "key_not_found",
            Self::UnknownVersion => "unknown_version",
            Self::NotHead => "not_head",
            Self::KeyDisabled => "key_disabled",
            Self::KeyPendingDestruction => "key_pending_destruction",
            Self::KeyDestroyed => "key_destroyed",
            Self::DestructionNotDue => "destruction_not_due",
            Self::VersionRefused => "version_refused",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::WrongUse => "wrong_use",
            Self::InvalidCiphertext => "invalid_ciphertext",
            Self::UnsupportedAlgorithm => "unsupported_algorithm",
            Self::LabelTaken => "label_taken",
            Self::VersionsExhausted => "versions_exhausted",
            Self::WrongPassphrase => "wrong_passphrase",
            Self::WrongKeyFile => "wrong_key_file",
            Self::WrongUnlockMethod => "wrong_unlock_method",
            Self::WrongIdentity => "wrong_identity",
            Self::RolledBack => "rolled_back",
            Self::GuardMismatch => "guard_mismatch",
            Self::MalformedSealed => "malformed_sealed",
            Self::SealedTooNew => "sealed_too_new",
            Self::SealedDamaged => "sealed_damaged",
            Self::MalformedBackup => "malformed_backup",
            Self::KeyFileMode => "key_file_mode",
            Self::KeyFileOwner => "key_file_owner",
            Self::KeyFileType => "key_file_type",
            Self::MalformedKeyFile => "malformed_key_file",
            Self::StoreTooNew => "store_too_new",
            Self::StoreDamaged => "store_damaged",
            Self::StoreChanged => "store_changed",
            Self::Locked => "locked",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::TooLarge => "too_large",
            Self::StorageFull => "storage_full",
            Self::PermissionDenied => "permission_denied",
            Self::ClockOutOfRange => "clock_out_of_range",
            Self::Io => "io",
            Self::RandomUnavailable => "random_unavailable",
            Self::MalformedKey => "malformed_key",
            Self::UnsupportedFormat => "unsupported_format",
            Self::NoPrivateKey => "no_private_key",
            Self::NotExportable => "not_exportable",
            Self::InvalidToken => "invalid_token",
            Self::TokenRefused => "token_refused",
            Self::LogDamaged => "log_damaged",
            Self::LogTooNew => "log_too_new",
            Self::MalformedProof => "malformed_proof",
            Self::Closed => "closed",
            Self::Internal => "internal",
            Self::TokenUnavailable => "token_unavailable",
            Self::WrongPin => "wrong_pin",
            Self::PinLocked => "pin_locked",
            Self::DeviceFailed => "device_failed",
        }
    }

    /// Whether the same call may succeed later without a change.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Locked
                | Self::Busy
                | Self::Unavailable
                | Self::StorageFull
                | Self::RandomUnavailable
                | Self::TokenUnavailable
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error: a stable code, a message for people, and whether a retry may help.
///
/// It contains no secret. `Display` is the message; serde gives `{"code", "message", "retryable"}`.
#[derive(Clone, Debug, Serialize)]
pub struct KmsError {
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong and, if there is a remedy, what to do next.
    pub message: String,
    /// Whether the same call may succeed later without a change.
    pub retryable: bool,
    #[serde(skip)]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl KmsError {
    /// An error with this code, for implementations of this crate's traits. `message` says what
    /// happened and what to do next.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code.is_retryable(), source: None }
    }

    pub(crate) fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// An input or output error; `what` reads like "cannot write /a/b".
    pub(crate) fn io(what: impl fmt::Display, error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let code = match error.kind() {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::PermissionDenied,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Code::StorageFull,
            _ => Code::Io,
        };
        Self::new(code, format!("{what}: {error}")).with_source(error)
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(Code::StoreDamaged, message)
    }
}

impl fmt::Display for KmsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for KmsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_codes_has_every_code_once() {
        // The compiler holds that this match names every code.
        let named = include_str!("error.rs").lines().filter(|line| {
            let line = line.trim_start();
            line.starts_with("Self::") && line.contains(" => \"")
        });
        assert_eq!(named.count(), Code::ALL.len());
        let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
