//! The key that a request names.

use std::num::NonZeroU32;

use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyId, KeySelector, KeyVersionId, Name};

use super::caller::Caller;
use crate::error::{ApiError, Result};

/// Finds the key that a caller names by a label, by `TENANT/PURPOSE/ALGORITHM/UUID`, or by that
/// with a version, if the caller may do `operation` with it.
///
/// # Errors
/// The caller may not do it. A caller with rights on some keys only does not learn whether others
/// exist.
pub(crate) fn resolve(caller: &Caller, text: &str, operation: TokenOperation) -> Result<KeySelector> {
    let session = &caller.session;
    let key: KeySelector = if text.contains('/') {
        text.parse()?
    } else {
        let tenant = &session.authority.tenant;
        let label: Name = text.parse()?;
        match caller.unsealed.keystore.find(tenant, &label)? {
            Some(key_id) => key_id.into(),
            None => {
                session.check_tenant(operation)?;
                let message = format!("the tenant {tenant} has no key with the label {label}");
                return Err(bulla_kms::KmsError::new(bulla_kms::Code::KeyNotFound, message).into());
            }
        }
    };
    session.check(operation, key.as_ref().key_id())?;
    Ok(key)
}

/// The version of a key that a request is about: the one in its name, the one that it asks for, or
/// the newest.
///
/// # Errors
/// The two differ; the key does not exist.
pub(crate) fn exact(caller: &Caller, key: KeySelector, version: Option<NonZeroU32>) -> Result<KeyVersionId> {
    match (key, version) {
        (KeySelector::Version(id), None) => Ok(id),
        (KeySelector::Version(id), Some(version)) if id.version() == version.get() => Ok(id),
        (KeySelector::Version(_), Some(_)) => {
            Err(ApiError::malformed("the key's name and `version` name two versions"))
        }
        (KeySelector::Key(key_id), Some(version)) => Ok(key_id.version(version)),
        (KeySelector::Key(key_id), None) => head(caller, &key_id),
    }
}

fn head(caller: &Caller, key_id: &KeyId) -> Result<KeyVersionId> {
    Ok(caller.unsealed.keystore.latest_version_id(key_id)?)
}
