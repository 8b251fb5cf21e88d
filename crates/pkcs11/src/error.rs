//! The codes of PKCS #11, and the code for each error of the service and of a keystore.
//!
//! A code says little, so the variable `BULLA_PKCS11_DEBUG` makes the module write each reason to
//! standard error. No reason contains a token or a message.

use std::cell::Cell;
use std::env;
use std::fmt::{self, Display};
use std::io::Write as _;
use std::sync::OnceLock;

use bulla_client::{ErrorCode, ErrorKind, ServiceError};
use bulla_kms::{Code, KmsError};
use cryptoki_sys::*;

/// The variable that makes the module explain its codes.
const DEBUG: &str = "BULLA_PKCS11_DEBUG";

/// A code of PKCS #11 that is not `CKR_OK`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) CK_RV);

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:#x})", self.0)
    }
}

/// Fails with a code.
pub(crate) fn fail<T>(code: CK_RV) -> Result<T> {
    Err(Failure(code))
}

/// Fails with a code unless the condition holds.
pub(crate) fn require(condition: bool, code: CK_RV) -> Result<()> {
    if condition { Ok(()) } else { fail(code) }
}

thread_local! {
    /// The name of the function that a program of this thread called, which reasons begin with.
    pub(crate) static FUNCTION: Cell<&'static str> = const { Cell::new("") };
}

/// Writes why a call failed, if the user asked for that.
pub(crate) fn report(reason: &dyn Display) {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    if *IS_ON.get_or_init(|| env::var_os(DEBUG).is_some_and(|value| !value.is_empty())) {
        write_reason(reason);
    }
}

/// Writes what is wrong with the module's configuration. Nobody would find the mistake otherwise.
pub(crate) fn write_reason(reason: &dyn Display) {
    // Nobody can be told that this failed.
    let _ = writeln!(std::io::stderr(), "bulla-pkcs11: {}: {reason}", FUNCTION.get());
}

impl From<bulla_client::Error> for Failure {
    fn from(error: bulla_client::Error) -> Self {
        report(&format_args!("{error:#}"));
        match (error.kind(), error.code()) {
            (_, Some(code)) => Self(code_of(code)),
            (ErrorKind::InvalidArgument, _) => Self(CKR_ARGUMENTS_BAD),
            (ErrorKind::TokenProvider, _) => Self(CKR_USER_NOT_LOGGED_IN),
            // The service cannot be reached, or did not answer.
            _ => Self(CKR_DEVICE_ERROR),
        }
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        report(&error);
        Self(code_of(&error.code))
    }
}

impl From<KmsError> for Failure {
    fn from(error: KmsError) -> Self {
        report(&error);
        Self(code_of_keystore(error.code))
    }
}

impl From<bulla_keystore::Error> for Failure {
    fn from(error: bulla_keystore::Error) -> Self {
        report(&error);
        match error.code {
            bulla_keystore::ErrorCode::Kms(code) => Self(code_of_keystore(code)),
            bulla_keystore::ErrorCode::UnknownLabel => Self(CKR_KEY_HANDLE_INVALID),
            _ => Self(CKR_DEVICE_ERROR),
        }
    }
}

/// The code for an error of a keystore.
fn code_of_keystore(code: Code) -> CK_RV {
    match code {
        Code::KeyUsageMismatch | Code::KeyDisabled | Code::KeyPendingDestruction | Code::UsesExhausted => {
            CKR_KEY_FUNCTION_NOT_PERMITTED
        }
        Code::KeyNotFound
        | Code::KeyDestroyed
        | Code::NotLatestVersion
        | Code::UnknownVersion
        | Code::VersionNotUsable => CKR_KEY_HANDLE_INVALID,
        Code::ReservedMessage => CKR_DATA_INVALID,
        Code::InvalidCiphertext => CKR_ENCRYPTED_DATA_INVALID,
        Code::TooLarge => CKR_DATA_LEN_RANGE,
        Code::LabelTaken | Code::InvalidId | Code::InvalidArgument => CKR_ATTRIBUTE_VALUE_INVALID,
        Code::InvalidPublicKey => CKR_MECHANISM_PARAM_INVALID,
        Code::UnsupportedAlgorithm => CKR_MECHANISM_INVALID,
        // The keystore is on a disk that nobody may write to.
        Code::PermissionDenied => CKR_TOKEN_WRITE_PROTECTED,
        Code::StorageFull => CKR_DEVICE_MEMORY,
        _ => CKR_DEVICE_ERROR,
    }
}

/// The code for an error of the service.
fn code_of(code: &ErrorCode) -> CK_RV {
    match code {
        ErrorCode::Unauthenticated => CKR_USER_NOT_LOGGED_IN,
        ErrorCode::Forbidden | ErrorCode::KeyUsageMismatch => CKR_KEY_FUNCTION_NOT_PERMITTED,
        ErrorCode::KeyDisabled | ErrorCode::KeyPendingDestruction | ErrorCode::UsesExhausted => {
            CKR_KEY_FUNCTION_NOT_PERMITTED
        }
        ErrorCode::KeyNotFound
        | ErrorCode::KeyDestroyed
        | ErrorCode::NoPrivateKey
        | ErrorCode::NotLatestVersion
        | ErrorCode::UnknownVersion
        | ErrorCode::VersionNotUsable => CKR_KEY_HANDLE_INVALID,
        ErrorCode::ReservedMessage => CKR_DATA_INVALID,
        ErrorCode::InvalidCiphertext => CKR_ENCRYPTED_DATA_INVALID,
        ErrorCode::BodyTooLarge | ErrorCode::TooLarge => CKR_DATA_LEN_RANGE,
        ErrorCode::LabelTaken | ErrorCode::InvalidId | ErrorCode::InvalidArgument => {
            CKR_ATTRIBUTE_VALUE_INVALID
        }
        ErrorCode::InvalidPublicKey => CKR_MECHANISM_PARAM_INVALID,
        ErrorCode::NotExportable => CKR_KEY_UNEXTRACTABLE,
        ErrorCode::UnsupportedAlgorithm => CKR_MECHANISM_INVALID,
        ErrorCode::StorageFull => CKR_DEVICE_MEMORY,
        _ => CKR_DEVICE_ERROR,
    }
}
