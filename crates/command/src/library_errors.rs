//! Errors of our libraries as errors of a program, with hints.

use crate::error::Error;
#[cfg(feature = "keystore")]
use bulla_keystore::ErrorCode;
#[cfg(feature = "kms")]
use bulla_kms::{Code, KmsError};
#[cfg(feature = "sums")]
use bulla_sums::ReadError;

#[cfg(feature = "kms")]
impl From<KmsError> for Error {
    fn from(error: KmsError) -> Self {
        let hint = match error.code {
            Code::Locked => {
                Some("another process is using the keystore; run the command again when it is done")
            }
            Code::KeystoreTooNew | Code::SignatureTooNew | Code::EncryptedFileTooNew => {
                Some("install a newer version of bulla; nothing was changed")
            }
            Code::KeystoreCorrupt => Some("restore the keystore's folder from a copy; nothing was changed"),
            Code::KeyNotFound | Code::UnknownVersion => Some("`bulla keys list` lists the keys"),
            Code::KeyDisabled => Some("enable it with `bulla keys enable`"),
            Code::KeyPendingDestruction => {
                Some("to keep it, run `bulla keys cancel-destruction` and then `bulla keys enable`")
            }
            Code::WrongPassphrase => Some("check the passphrase; without it nobody can decrypt this data"),
            Code::AuditLogCorrupt => Some(
                "`bulla log verify` lists the problems; keep the folder as it is, and start another log elsewhere",
            ),
            Code::UnsupportedAlgorithm => Some(
                "if the key is on a device, name the device with --pkcs11 URI; if nodes of a service have it together, name one of them with --server URL",
            ),
            Code::RolledBack | Code::GuardMismatch => Some(
                "restore the newest keystore and its guard; to accept the present keystore, run `bulla keystore guard` with a new guard",
            ),
            Code::OutcomeUnknown => Some("`bulla keys list` shows whether the change was made"),
            Code::StorageFull => Some("free some space and run the command again; this change was not made"),
            _ => None,
        };
        let converted = Error::new(error.code.as_str(), error.message);
        match hint {
            Some(hint) => converted.hint(hint),
            None => converted,
        }
    }
}

#[cfg(feature = "keystore")]
impl From<bulla_keystore::Error> for Error {
    fn from(error: bulla_keystore::Error) -> Self {
        // The keystore's error has the hint, and the error around it the whole message.
        let converted = match error.kms_error().map(|kms| kms.code) {
            Some(code) => Error::from(KmsError::new(code, error.message)),
            None => Error::new(error.code.as_str(), error.message),
        };
        let converted = match error.subject {
            Some(subject) => converted.about(subject),
            None => converted,
        };
        match error.hint.as_deref().or_else(|| keystore_hint(error.code)) {
            Some(hint) => converted.hint(hint),
            None => converted,
        }
    }
}

/// The hints that name flags and commands.
#[cfg(feature = "keystore")]
fn keystore_hint(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::NoKeystore => {
            "create one with `bulla keystore init`; to verify, give the signer's public key with --public-key FILE"
        }
        ErrorCode::KeystoreLost => {
            "restore keystore.redb from a copy, or run `bulla keystore restore BACKUP`; to start with new keys, move keystore.key elsewhere"
        }
        ErrorCode::NoHome => "name the keystore's folder with --keystore DIR or BULLA_KEYSTORE",
        ErrorCode::DeviceRequired => "name the device with --pkcs11 URI or BULLA_PKCS11",
        ErrorCode::IdentityRequired => "name the file with that identity: --identity FILE",
        ErrorCode::UnknownLabel => {
            "list the keys with `bulla keys list`, or create one with `bulla keys create LABEL`"
        }
        ErrorCode::InvalidKeyId => "`bulla keys list` prints the ids of your keys",
        ErrorCode::NoAuditLog => "start one with `bulla log init`",
        ErrorCode::AuditLogMissing => {
            "restore its folder from a copy, or start another log with `bulla log init`"
        }
        ErrorCode::AuditLogUnfinished => "complete it with `bulla log init`",
        _ => return None,
    })
}

#[cfg(feature = "sums")]
impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::from(&error)
    }
}

#[cfg(feature = "sums")]
impl From<&ReadError> for Error {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::Io(error) => Error::io("cannot read", error),
            ReadError::Changed => Error::new("changed_while_read", "changed while it was read")
                .hint("run the command again when no program writes to it"),
            ReadError::Replaced => Error::new("changed_while_read", "was replaced while it was read")
                .hint("run the command again when no program writes to it"),
            ReadError::NotAFile(kind) => Error::new("not_a_file", format!("is {kind}, not a file")),
            ReadError::StdinHeldTheKey => {
                Error::new("io", "cannot read: in keyed mode, standard input contains the key")
            }
            ReadError::Stopped => Error::new("interrupted", "was not read: the command was interrupted"),
        }
    }
}
