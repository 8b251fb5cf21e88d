//! What a keystore may have on a device: the key that wraps its root key, its rollback guard,
//! private keys.
//!
//! A keystore does not remember the library of its device: otherwise anyone who can write to the
//! keystore could choose the library that a program loads.

use crate::error::{Error, ErrorCode, Result};
use crate::secrets::Secrets;
use bulla_kms::rollback::RollbackGuard;
use bulla_kms::{KmsError, Name};
use std::sync::Arc;

fn required() -> Error {
    Error::new(ErrorCode::DeviceRequired, "the keystore needs its device")
}

#[cfg(feature = "pkcs11")]
pub(crate) use with_pkcs11::{create_guard, find_guard, find_key, find_or_create_key, is_method};

#[cfg(feature = "pkcs11")]
mod with_pkcs11 {
    use super::*;
    use bulla_kms::pkcs11::{self, DeviceGuard, DeviceKeyProvider, Pkcs11};
    use bulla_kms::{Code, Unlock};

    fn device(secrets: &Secrets) -> Result<&Pkcs11> {
        secrets.device.as_ref().ok_or_else(required)
    }

    /// Whether a keystore that `method` opens is one whose root key a device unwraps.
    pub(crate) fn is_method(method: &str) -> bool {
        method == pkcs11::NAME
    }

    /// The secret of a keystore that opens with the key of this name on the device.
    pub(crate) fn find_key(secrets: &Secrets, name: &str) -> Result<Unlock> {
        Ok(Unlock::Provider(Arc::new(DeviceKeyProvider::new(device(secrets)?, name.parse()?)?)))
    }

    pub(crate) fn find_or_create_key(secrets: &Secrets, name: &Name) -> Result<Unlock> {
        let device = device(secrets)?;
        let provider = match DeviceKeyProvider::new(device, name.clone()) {
            Err(error) if error.code == Code::KeyNotFound => DeviceKeyProvider::create(device, name.clone())?,
            found => found?,
        };
        Ok(Unlock::Provider(Arc::new(provider)))
    }

    pub(crate) fn create_guard(
        secrets: &Secrets,
        name: &Name,
        explain: impl FnOnce(KmsError) -> Error,
    ) -> Result<Arc<dyn RollbackGuard>> {
        Ok(Arc::new(DeviceGuard::create(device(secrets)?, name.clone()).map_err(explain)?))
    }

    pub(crate) fn find_guard(secrets: &Secrets, name: &Name) -> Result<Arc<dyn RollbackGuard>> {
        Ok(Arc::new(DeviceGuard::new(device(secrets)?, name.clone())?))
    }
}

/// Without the feature `pkcs11`, a program has no device.
#[cfg(not(feature = "pkcs11"))]
pub(crate) fn create_guard(
    _secrets: &Secrets,
    _name: &Name,
    _explain: impl FnOnce(KmsError) -> Error,
) -> Result<Arc<dyn RollbackGuard>> {
    Err(required())
}

#[cfg(not(feature = "pkcs11"))]
pub(crate) fn find_guard(_secrets: &Secrets, _name: &Name) -> Result<Arc<dyn RollbackGuard>> {
    Err(required())
}
