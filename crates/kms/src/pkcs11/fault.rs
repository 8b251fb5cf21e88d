//! Interprets a library's errors.

use cryptoki::error::{Error, RvError};

use crate::error::{Code, KmsError};

/// The reason why an operation on a token failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The session, the token or the library was lost. The call may succeed in a new session, or
    /// when the token is back.
    Lost(String),
    /// Trying again does not help.
    Failed(KmsError),
}

impl Fault {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(KmsError::new(Code::DeviceFailed, message))
    }
}

impl From<KmsError> for Fault {
    fn from(error: KmsError) -> Self {
        Self::Failed(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let Error::Pkcs11(value, _) = &error else {
            return Self::Failed(
                KmsError::new(Code::DeviceFailed, format!("the token's library: {error}")).with_source(error),
            );
        };
        let code = match value {
            // Some libraries, such as SoftHSM, return only a general error for a token that is
            // gone.
            RvError::CryptokiNotInitialized
            | RvError::DeviceError
            | RvError::DeviceRemoved
            | RvError::FunctionFailed
            | RvError::GeneralError
            | RvError::KeyHandleInvalid
            | RvError::ObjectHandleInvalid
            | RvError::SessionClosed
            | RvError::SessionHandleInvalid
            | RvError::SlotIdInvalid
            | RvError::TokenNotPresent
            | RvError::TokenNotRecognized
            | RvError::UserNotLoggedIn => return Self::Lost(error.to_string()),
            RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange | RvError::PinExpired => {
                Code::WrongPin
            }
            RvError::PinLocked => Code::PinLocked,
            RvError::SessionCount | RvError::DeviceMemory | RvError::HostMemory => Code::Busy,
            RvError::MechanismInvalid | RvError::CurveNotSupported | RvError::FunctionNotSupported => {
                Code::UnsupportedAlgorithm
            }
            _ => Code::DeviceFailed,
        };
        let message = match code {
            Code::WrongPin => {
                "the token refuses the PIN; bulla does not try it again, because tokens lock themselves after a few wrong PINs"
                    .to_owned()
            }
            Code::PinLocked => {
                "the token is locked after too many wrong PINs; its security officer can unlock it".to_owned()
            }
            Code::Busy => format!("the token has no room now for another session or object: {error}"),
            _ => format!("the token refuses: {error}"),
        };
        Self::Failed(KmsError::new(code, message).with_source(error))
    }
}
