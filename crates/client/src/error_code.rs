//! The codes of the service's errors.

use std::fmt;

use serde::{Deserialize, Deserializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident => $text:literal,)*) => {
        /// What went wrong, for programs. `spec/http-api.md` says what to do about each code.
        ///
        /// ```
        /// use bulla_client::ErrorCode;
        ///
        /// assert_eq!(ErrorCode::from("busy"), ErrorCode::Busy);
        /// assert_eq!(ErrorCode::from("of a newer service").as_str(), "of a newer service");
        /// ```
        #[non_exhaustive]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
            /// A code that this client does not know: the service is newer.
            Other(Box<str>),
        }

        impl ErrorCode {
            /// All codes that this client knows.
            pub const KNOWN: &[Self] = &[$(Self::$variant),*];

            /// The code as the service writes it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for ErrorCode {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    _ => Self::Other(text.into()),
                }
            }
        }
    };
}

codes! {
    /// Something is already there.
    AlreadyExists => "already_exists",
    /// The key is used only with approvals, and this use has too few, or another request has them.
    ApprovalRequired => "approval_required",
    /// The audit log was damaged or edited.
    AuditLogCorrupt => "audit_log_corrupt",
    /// The audit log has a newer format than the service reads.
    AuditLogTooNew => "audit_log_too_new",
    /// The body did not arrive within the time that the service allows.
    BodyTimeout => "body_timeout",
    /// The body is longer than `limits.max_body_bytes`, or than 4 KiB where no credential is
    /// needed.
    BodyTooLarge => "body_too_large",
    /// The service has too much to do.
    Busy => "busy",
    /// The system's clock is before 1970 or after 9998.
    ClockOutOfRange => "clock_out_of_range",
    /// Another change came first.
    Conflict => "conflict",
    /// The request has no token, and may come from a page of another site.
    CrossSiteRequest => "cross_site_request",
    /// The key's destruction is not scheduled, or for a later time.
    DestructionNotDue => "destruction_not_due",
    /// A device with private keys refused or failed an operation.
    DeviceFailed => "device_failed",
    /// The device with the private key cannot be reached.
    DeviceUnavailable => "device_unavailable",
    /// Encrypted data was changed, cut or moved, or is for another purpose.
    EncryptedFileCorrupt => "encrypted_file_corrupt",
    /// The data is encrypted in a newer format than the service reads.
    EncryptedFileTooNew => "encrypted_file_too_new",
    /// The path names no endpoint.
    EndpointNotFound => "endpoint_not_found",
    /// The credential is invalid, has expired or was revoked; or it does not permit the request; or
    /// what the request names does not exist.
    Forbidden => "forbidden",
    /// The rollback guard belongs to another keystore, or is damaged.
    GuardMismatch => "guard_mismatch",
    /// The `Idempotency-Key` was used for another request.
    IdempotencyKeyReused => "idempotency_key_reused",
    /// A part of the service failed in a way that it should not have; whether the request had an
    /// effect is not known.
    Internal => "internal",
    /// An argument breaks a rule of its description.
    InvalidArgument => "invalid_argument",
    /// The ciphertext was cut or changed, or is not for this key, key version, context or
    /// associated data.
    InvalidCiphertext => "invalid_ciphertext",
    /// A text is not a key's name, and not a label.
    InvalidId => "invalid_id",
    /// The bytes or the text are not a usable public key.
    InvalidPublicKey => "invalid_public_key",
    /// A token that the request contains is malformed, or cannot be attenuated further.
    InvalidToken => "invalid_token",
    /// Reading or writing failed in another way.
    Io => "io",
    /// The key was destroyed: it only verifies.
    KeyDestroyed => "key_destroyed",
    /// The key is disabled.
    KeyDisabled => "key_disabled",
    /// Users other than its owner may read or write the key file.
    KeyFileMode => "key_file_mode",
    /// The key file belongs to another user.
    KeyFileOwner => "key_file_owner",
    /// The key file is a symbolic link, or no regular file.
    KeyFileType => "key_file_type",
    /// The tenant has no such key.
    KeyNotFound => "key_not_found",
    /// The key's destruction is scheduled.
    KeyPendingDestruction => "key_pending_destruction",
    /// The key's algorithm cannot do that: for example, a key that signs does not decrypt.
    KeyUsageMismatch => "key_usage_mismatch",
    /// Another process changed the keystore, or replaced its file.
    KeystoreChanged => "keystore_changed",
    /// The keystore was damaged or edited.
    KeystoreCorrupt => "keystore_corrupt",
    /// The keystore has a newer format than the service reads.
    KeystoreTooNew => "keystore_too_new",
    /// Another key of the tenant has the label.
    LabelTaken => "label_taken",
    /// Another process has the keystore open.
    Locked => "locked",
    /// The decrypted content is not a backup of a keystore.
    MalformedBackup => "malformed_backup",
    /// The bytes are not an encrypted file.
    MalformedEncryptedFile => "malformed_encrypted_file",
    /// The bytes or the text are not a private key of their format, or it does not match its public
    /// key.
    MalformedKey => "malformed_key",
    /// The key file's content is not that of a key file.
    MalformedKeyFile => "malformed_key_file",
    /// The body of a folder's signature breaks its grammar.
    MalformedManifest => "malformed_manifest",
    /// The text is not a checkpoint, and not a proof about an audit log.
    MalformedProof => "malformed_proof",
    /// The body, a parameter or a header does not have the form that the endpoint takes.
    MalformedRequest => "malformed_request",
    /// A signature file breaks its grammar.
    MalformedSignature => "malformed_signature",
    /// The endpoint does not take this method.
    MethodNotAllowed => "method_not_allowed",
    /// The keystore has no audit log.
    NoAuditLog => "no_audit_log",
    /// Only a public key was imported: the key only verifies.
    NoPrivateKey => "no_private_key",
    /// The key was not made exportable.
    NotExportable => "not_exportable",
    /// A file is missing, or the audit log has no checkpoint yet.
    NotFound => "not_found",
    /// The version is not the key's latest one, and only the latest one signs.
    NotLatestVersion => "not_latest_version",
    /// The service does not offer this.
    NotSupported => "not_supported",
    /// The keystore's servers stopped answering in the middle of a change; or a change was made,
    /// and the audit log or the rollback guard could not record it yet.
    OutcomeUnknown => "outcome_unknown",
    /// The operating system refuses access to a file.
    PermissionDenied => "permission_denied",
    /// The device is locked after too many wrong PINs.
    PinLocked => "pin_locked",
    /// The quota of the tenant is used up: too many keys.
    QuotaExceeded => "quota_exceeded",
    /// The operating system gave no random bytes.
    RandomUnavailable => "random_unavailable",
    /// The credential's rate limit is reached, or there were too many tries to unseal.
    RateLimited => "rate_limited",
    /// The message begins with bytes that only signature files and tokens may begin with.
    ReservedMessage => "reserved_message",
    /// The node does not know the revision that the request wants.
    RevisionUnavailable => "revision_unavailable",
    /// The keystore is older than its rollback guard.
    RolledBack => "rolled_back",
    /// The service is sealed.
    Sealed => "sealed",
    /// The keystore is being closed.
    ShuttingDown => "shutting_down",
    /// A signature file has a newer format than the service reads.
    SignatureTooNew => "signature_too_new",
    /// The disk is full, or a quota is reached.
    StorageFull => "storage_full",
    /// A key has grown larger than the store takes.
    TooLarge => "too_large",
    /// A batch has more than `limits.max_batch_items` items, or another list more than its
    /// `maxItems`.
    TooManyItems => "too_many_items",
    /// The request carries no credential, one of an unknown form, or two different tokens.
    Unauthenticated => "unauthenticated",
    /// The keystore's servers cannot be reached; nothing was changed.
    Unavailable => "unavailable",
    /// The key has no such version.
    UnknownVersion => "unknown_version",
    /// The service does not support the algorithm.
    UnsupportedAlgorithm => "unsupported_algorithm",
    /// The format does not carry keys of the algorithm.
    UnsupportedFormat => "unsupported_format",
    /// The key version was used as often as is safe, or as its policy allows, and the service does
    /// not rotate the key by itself.
    UsesExhausted => "uses_exhausted",
    /// The version is below the key's minimum version, or was revoked.
    VersionNotUsable => "version_not_usable",
    /// The key has 2^32 - 1 versions.
    VersionsExhausted => "versions_exhausted",
    /// The key does not decrypt the data.
    WrongDecryptionKey => "wrong_decryption_key",
    /// The key file does not open the keystore.
    WrongKeyFile => "wrong_key_file",
    /// The passphrase does not open the keystore, or the private key to import.
    WrongPassphrase => "wrong_passphrase",
    /// The device refuses the PIN.
    WrongPin => "wrong_pin",
    /// The keystore opens with another kind of secret.
    WrongUnlockMethod => "wrong_unlock_method",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer).map(|text| Self::from(&*text))
    }
}
