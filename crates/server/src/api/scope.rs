//! The permission that an endpoint needs. The description of the service has it as the extension
//! `x-permission` of each operation.
//!
//! `open` needs no credential; `caller` any valid one; the name of an operation one with that
//! operation on the key or in the tenant; `operator:OPERATION` one with that operation in the
//! operators' tenant; `minter` a caller that may mint tokens.

use bulla_kms::Name;
use bulla_kms::token::{TOKEN_ROOT_PURPOSE, TokenOperation};

use crate::access::Session;
use crate::error::{ApiError, Result};
use crate::request::Caller;
use crate::service::Worker;

/// The caller may do `operation` in its tenant, and that is the operators' tenant.
///
/// # Errors
/// The caller may not, or it is another tenant.
pub(crate) fn check_operator(worker: &Worker, caller: &Caller, operation: TokenOperation) -> Result<()> {
    check_operator_session(worker, &caller.session, operation)
}

/// The same for a session, while the service is sealed for example.
///
/// # Errors
/// Those of [`check_operator`].
pub(crate) fn check_operator_session(
    worker: &Worker,
    session: &Session,
    operation: TokenOperation,
) -> Result<()> {
    if session.authority.tenant != worker.service.config.service.operator_tenant {
        return Err(ApiError::forbidden());
    }
    session.check_tenant(operation)
}

/// The caller may bring in and take out keys of this purpose. A caller who has a key that signs
/// tokens can mint, which no token permits.
///
/// # Errors
/// It is the purpose of keys that sign tokens, and the caller may not mint.
pub(crate) fn check_purpose(caller: &Caller, purpose: &Name) -> Result<()> {
    if purpose.as_str() == TOKEN_ROOT_PURPOSE && !caller.session.authority.can_mint_tokens {
        return Err(ApiError::forbidden());
    }
    Ok(())
}
