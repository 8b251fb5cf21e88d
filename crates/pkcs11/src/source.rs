//! Where the keys of a slot are, before anybody has logged in.

use std::sync::Arc;

use crate::backend::Backend;
use crate::error::Result;

/// Where the keys of a slot are.
pub(crate) trait Source: Send + Sync {
    /// The keys of a slot that needs no login.
    ///
    /// # Errors
    /// `CKR_HOST_MEMORY` if the operating system has no resources for it; `CKR_GENERAL_ERROR` if
    /// the settings do not open a keystore, and then the reason is on standard error.
    fn open(&self) -> Result<Arc<dyn Backend>>;

    /// The keys of the caller who has this PIN.
    ///
    /// # Errors
    /// `CKR_PIN_INCORRECT`; `CKR_DEVICE_ERROR`; `CKR_HOST_MEMORY`.
    fn log_in(&self, pin: &[u8]) -> Result<Arc<dyn Backend>>;
}
