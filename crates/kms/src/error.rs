//! One error type with stable codes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The result of everything in this crate that can fail.
pub type Result<T, E = KmsError> = std::result::Result<T, E>;

/// Defines [`Code`] from a table of variants and their names.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// What went wrong, as a name that programs may depend on.
        ///
        /// The text form ([`Code::as_str`], serde) is snake case and never changes once released;
        /// new codes may be added.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The stable name: snake case, the same as in serde.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// An argument breaks a rule that its documentation states.
    InvalidArgument => "invalid_argument",
    /// A text is not a key id, key version id, name or label.
    InvalidId => "invalid_id",
    /// The bytes or the text are not a usable public key.
    InvalidPublicKey => "invalid_public_key",
    /// A signature file breaks its grammar.
    MalformedSignature => "malformed_signature",
    /// A signature file is of a newer format than this program reads.
    SignatureTooNew => "signature_too_new",
    /// The body of a folder's signature breaks its grammar.
    MalformedManifest => "malformed_manifest",
    /// A message starts with the bytes that are reserved for signature files.
    ReservedMessage => "reserved_message",
    /// There is no keystore, or no key file, at the path.
    NotFound => "not_found",
    /// Something is already there.
    AlreadyExists => "already_exists",
    /// No such key.
    KeyNotFound => "key_not_found",
    /// The key has no such version.
    UnknownVersion => "unknown_version",
    /// The version is not the key's latest one, and only the latest one signs.
    NotLatestVersion => "not_latest_version",
    /// The key is disabled: it does not sign, encrypt or decrypt.
    KeyDisabled => "key_disabled",
    /// The key is scheduled for destruction. It neither signs nor changes until that is canceled.
    KeyPendingDestruction => "key_pending_destruction",
    /// The key was destroyed; it can only verify.
    KeyDestroyed => "key_destroyed",
    /// The key cannot be destroyed yet: its destruction is not scheduled, or for a later time.
    DestructionNotDue => "destruction_not_due",
    /// The version is below the key's minimum version, or was revoked.
    VersionNotUsable => "version_not_usable",
    /// The key is not as the caller expected: another change came first.
    Conflict => "conflict",
    /// There is too much to do at the moment. A retry may help.
    Busy => "busy",
    /// The key's usage does not allow that: for example, a key that signs does not decrypt.
    KeyUsageMismatch => "key_usage_mismatch",
    /// The ciphertext is malformed or was changed, or it was made with another key, key version,
    /// context or associated data.
    InvalidCiphertext => "invalid_ciphertext",
    /// No backend of this build serves the algorithm.
    UnsupportedAlgorithm => "unsupported_algorithm",
    /// Another key of the tenant has the label.
    LabelTaken => "label_taken",
    /// The key version was used as often as is safe for its algorithm, or as its policy allows, and
    /// the keystore does not rotate the key by itself: rotate it.
    UsesExhausted => "uses_exhausted",
    /// The key has 2^32 - 1 versions: there is no number for another one.
    VersionsExhausted => "versions_exhausted",
    /// The passphrase does not open the keystore, or the private key to import.
    WrongPassphrase => "wrong_passphrase",
    /// The key file does not open the keystore.
    WrongKeyFile => "wrong_key_file",
    /// The keystore opens with another kind of secret: a passphrase, a key file, another provider's
    /// key.
    WrongUnlockMethod => "wrong_unlock_method",
    /// The identity, or another key provider's key, does not decrypt the file.
    WrongDecryptionKey => "wrong_decryption_key",
    /// The keystore is older than its rollback guard: somebody replaced it with an older copy.
    RolledBack => "rolled_back",
    /// The rollback guard belongs to another keystore, or is damaged.
    GuardMismatch => "guard_mismatch",
    /// The bytes are not an encrypted file.
    MalformedEncryptedFile => "malformed_encrypted_file",
    /// The encrypted file is of a newer format than this program reads.
    EncryptedFileTooNew => "encrypted_file_too_new",
    /// Encrypted data was changed, cut or moved, or is for another purpose.
    EncryptedFileCorrupt => "encrypted_file_corrupt",
    /// The decrypted content is not a backup of a keystore, or contradicts itself.
    MalformedBackup => "malformed_backup",
    /// Users other than its owner may read or write the key file.
    KeyFileMode => "key_file_mode",
    /// The key file belongs to another user.
    KeyFileOwner => "key_file_owner",
    /// The key file is a symbolic link or no regular file.
    KeyFileType => "key_file_type",
    /// The key file's content is not that of a key file.
    MalformedKeyFile => "malformed_key_file",
    /// The keystore is of a newer format than this program reads.
    KeystoreTooNew => "keystore_too_new",
    /// The keystore was damaged or edited, or the file is not a keystore.
    KeystoreCorrupt => "keystore_corrupt",
    /// Another process changed the keystore since it was opened, or replaced its file.
    KeystoreChanged => "keystore_changed",
    /// Another process has the keystore open.
    Locked => "locked",
    /// The keystore's servers cannot be reached, or not enough of them. Nothing was changed, and
    /// this process sees the keys as it last read them.
    Unavailable => "unavailable",
    /// The keystore's servers stopped answering in the middle of a change. They may have made the
    /// change or not. Or a change was made, and the audit log or the rollback guard could not
    /// record it yet.
    OutcomeUnknown => "outcome_unknown",
    /// A key has grown larger than the store takes.
    TooLarge => "too_large",
    /// The disk is full, or a quota or a file size limit was reached.
    StorageFull => "storage_full",
    /// The operating system refused permission.
    PermissionDenied => "permission_denied",
    /// The system's clock is before 1970 or after 9998.
    ClockOutOfRange => "clock_out_of_range",
    /// Reading or writing failed in another way.
    Io => "io",
    /// The operating system gave no random bytes.
    RandomUnavailable => "random_unavailable",
    /// The bytes or the text are not a private key of their format, or the private key does not
    /// match its public key.
    MalformedKey => "malformed_key",
    /// The format does not carry keys of the algorithm.
    UnsupportedFormat => "unsupported_format",
    /// Only a public key was imported: the key verifies, and does nothing else.
    NoPrivateKey => "no_private_key",
    /// The key was not created as exportable.
    NotExportable => "not_exportable",
    /// The token is malformed, or no trusted root signed it.
    InvalidToken => "invalid_token",
    /// The credential does not permit the operation, has expired, or was revoked.
    Forbidden => "forbidden",
    /// The key is used only with approvals, and this use has too few.
    ApprovalRequired => "approval_required",
    /// The audit log was damaged or edited.
    AuditLogCorrupt => "audit_log_corrupt",
    /// The audit log is of a newer format than this program reads.
    AuditLogTooNew => "audit_log_too_new",
    /// The bytes or the text are not a proof about an audit log, or not a checkpoint.
    MalformedProof => "malformed_proof",
    /// The keystore or its queue is being closed and accepts no more calls.
    ShuttingDown => "shutting_down",
    /// A part of this program failed in a way that it should not have. Whether the call had an
    /// effect is not known.
    Internal => "internal",
    /// The private key's device cannot be reached: it was removed, its session was lost, or its
    /// library fails.
    DeviceUnavailable => "device_unavailable",
    /// The device refused the PIN. This program does not try the PIN again: a device locks itself
    /// after a few wrong ones.
    WrongPin => "wrong_pin",
    /// The device is locked after too many wrong PINs.
    PinLocked => "pin_locked",
    /// A device with private keys refused or failed an operation.
    DeviceFailed => "device_failed",
}

impl Code {
    /// Whether the same call may succeed later without a change.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Locked
                | Self::Busy
                | Self::Unavailable
                | Self::StorageFull
                | Self::RandomUnavailable
                | Self::DeviceUnavailable
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
///
/// ```
/// use bulla_kms::{Code, KmsError};
///
/// /// Code of yours that uses the same errors.
/// fn read(path: &std::path::Path) -> Result<Vec<u8>, KmsError> {
///     std::fs::read(path).map_err(|error| KmsError::io(path.display(), error))
/// }
///
/// let error = read("no/such/file".as_ref()).unwrap_err();
/// assert_eq!(error.code, Code::NotFound);
/// assert!(!error.code.is_retryable());
///
/// let cause = "x".parse::<u32>().unwrap_err();
/// let error = KmsError::new(Code::InvalidArgument, "the size is not a number").with_source(cause);
/// assert!(std::error::Error::source(&error).is_some());
/// assert_eq!(error.code.as_str(), "invalid_argument");
/// ```
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

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// An input or output error. `what` reads like "cannot write /a/b". If `error` has an error of
    /// this crate inside, as those of a reader that decrypts do, the result is that error.
    pub fn io(what: impl fmt::Display, error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
            return inner.clone();
        }
        let code = match error.kind() {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::PermissionDenied,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Code::StorageFull,
            _ => Code::Io,
        };
        Self::new(code, format!("{what}: {error}")).with_source(error)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Code::KeystoreCorrupt, message)
    }
}

#[cfg(feature = "etcd")]
impl From<bulla_etcd::EtcdError> for KmsError {
    fn from(error: bulla_etcd::EtcdError) -> Self {
        use bulla_etcd::EtcdErrorKind as Kind;
        let code = match error.kind() {
            Kind::InvalidArgument => Code::InvalidArgument,
            Kind::Unavailable => Code::Unavailable,
            Kind::PermissionDenied => Code::PermissionDenied,
            Kind::StorageFull => Code::StorageFull,
            Kind::TooLarge => Code::TooLarge,
            _ => Code::Io,
        };
        match error.into_parts() {
            (message, None) => Self::new(code, message),
            (message, Some(source)) => Self::new(code, message).with_source(source),
        }
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
    fn every_code_has_a_name_of_its_own_which_is_that_in_serde() {
        let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
