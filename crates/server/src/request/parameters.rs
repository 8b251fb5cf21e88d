//! The parameters of a path and of a query, and the key that a request names.

use std::num::NonZeroU32;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyId, KeySelector, KeyVersionId, Name};
use serde::de::DeserializeOwned;

use super::caller::Caller;
use crate::error::{ApiError, Result};
use crate::service::Worker;

/// The parameters of a path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Worker> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        match axum::extract::Path::from_request_parts(parts, worker).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(_) => Err(ApiError::malformed("a parameter of the path does not have the expected form")),
        }
    }
}

/// The parameters of a query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Worker> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        match axum::extract::Query::from_request_parts(parts, worker).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(_) => {
                let message = "a parameter of the query is unknown, or does not have the expected form";
                Err(ApiError::malformed(message))
            }
        }
    }
}

/// Finds the key that a caller names by a label, by `TENANT/PURPOSE/ALGORITHM/UUID`, or by that
/// with a version, if the caller may do `operation` with it.
///
/// # Errors
/// The caller may not do it. A caller with rights on some keys only does not learn whether others
/// exist.
pub(crate) fn resolve_key(caller: &Caller, text: &str, operation: TokenOperation) -> Result<KeySelector> {
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
pub(crate) fn resolve_version(
    caller: &Caller,
    key: KeySelector,
    version: Option<NonZeroU32>,
) -> Result<KeyVersionId> {
    match (key, version) {
        (KeySelector::Version(id), None) => Ok(id),
        (KeySelector::Version(id), Some(version)) if id.version() == version.get() => Ok(id),
        (KeySelector::Version(_), Some(_)) => {
            Err(ApiError::malformed("the key's name and `version` name two versions"))
        }
        (KeySelector::Key(key_id), Some(version)) => Ok(key_id.version(version)),
        (KeySelector::Key(key_id), None) => latest_version(caller, &key_id),
    }
}

fn latest_version(caller: &Caller, key_id: &KeyId) -> Result<KeyVersionId> {
    Ok(caller.unsealed.keystore.latest_version_id(key_id)?)
}
