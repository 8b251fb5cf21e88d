//! The codes of PKCS #11, and the code for each error of the service.

use std::cell::Cell;
use std::fmt;

use bulla_client::{ErrorCode, ErrorKind, ServiceError};
use cryptoki_sys::*;

use crate::diagnostics;

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
    /// The name of the function that a program of this thread called, for diagnostics.
    pub(crate) static FUNCTION: Cell<&'static str> = const { Cell::new("") };
}

impl From<bulla_client::Error> for Failure {
    fn from(error: bulla_client::Error) -> Self {
        diagnostics::report(&format_args!("{error:#}"));
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
        diagnostics::report(&error);
        Self(code_of(&error.code))
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
        ErrorCode::NotExportable => CKR_KEY_UNEXTRACTABLE,
        ErrorCode::UnsupportedAlgorithm => CKR_MECHANISM_INVALID,
        ErrorCode::StorageFull => CKR_DEVICE_MEMORY,
        _ => CKR_DEVICE_ERROR,
    }
}
