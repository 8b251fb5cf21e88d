//! The key that a request names.

use std::num::NonZeroU32;

use bulla_kms::token::Operation;
use bulla_kms::{KeyFamily, KeyId, KeyName, Name};

use super::caller::Caller;
use crate::error::{ApiError, Result};

/// Finds the key that a caller names by a label, by `TENANT/PURPOSE/ALGORITHM/UUID`, or by that with a version, if the caller may do
/// `operation` with it.
///
/// # Errors
/// The caller may not do it. A caller with rights on some keys only does not learn whether others exist.
pub(crate) fn resolve(caller: &Caller, text: &str, operation: Operation) -> Result<KeyName> {
    let session = &caller.session;
    let key: KeyName = if text.contains('/') {
        text.parse()?
    } else {
        let tenant = &session.authority.tenant;
        let label: Name = text.parse()?;
        match caller.opened.keystore.find(tenant, &label)? {
            Some(family) => family.into(),
            None => {
                session.check_tenant(operation)?;
                let message = format!("the tenant {tenant} has no key with the label {label}");
                return Err(bulla_kms::KmsError::new(bulla_kms::Code::KeyNotFound, message).into());
            }
        }
    };
    session.check(operation, key.as_ref().family())?;
    Ok(key)
}

/// The version of a key that a request is about: the one in its name, the one that it asks for, or the newest.
///
/// # Errors
/// The two differ; the key does not exist.
pub(crate) fn exact(caller: &Caller, key: KeyName, version: Option<NonZeroU32>) -> Result<KeyId> {
    match (key, version) {
        (KeyName::Version(id), None) => Ok(id),
        (KeyName::Version(id), Some(version)) if id.version() == version.get() => Ok(id),
        (KeyName::Version(_), Some(_)) => {
            Err(ApiError::malformed("the key's name and `version` name two versions"))
        }
        (KeyName::Family(family), Some(version)) => Ok(family.version(version)),
        (KeyName::Family(family), None) => head(caller, &family),
    }
}

fn head(caller: &Caller, family: &KeyFamily) -> Result<KeyId> {
    Ok(caller.opened.keystore.head_id(family)?)
}
