//! A caller whose credential was verified.

use std::sync::Arc;

use bulla_kms::audit_log::Actor;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyId, Timestamp};

use super::authority::Authority;
use super::limiter::Limiter;
use crate::error::{ApiError, ApiErrorCode, Result};

/// A caller whose credential was verified, what it may do, and how much of its rate it has used.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) authority: Authority,
    /// The name of the caller in the audit log.
    pub(crate) actor: Actor,
    /// None for a caller without a limit. Tokens that were made from each other share one.
    pub(crate) limiter: Option<Arc<Limiter>>,
    /// The revocation ids of a token's blocks.
    pub(crate) revocation_ids: Vec<String>,
}

impl Session {
    /// The name under which slow work of the caller waits. All tokens that were made from each
    /// other have one.
    pub(crate) fn caller(&self) -> &str {
        self.revocation_ids.first().map_or(self.actor.as_str(), String::as_str)
    }

    /// # Errors
    /// The caller may not do this with the key, or its time has ended.
    pub(crate) fn check(&self, operation: TokenOperation, key: &KeyId) -> Result<()> {
        if self.authority.permits(operation, key) { Ok(()) } else { Err(ApiError::forbidden()) }
    }

    /// # Errors
    /// The caller may not do this in its tenant.
    pub(crate) fn check_tenant(&self, operation: TokenOperation) -> Result<()> {
        if self.authority.permits_in_tenant(operation) { Ok(()) } else { Err(ApiError::forbidden()) }
    }

    /// # Errors
    /// The credential has expired.
    pub(crate) fn check_time(&self, now: Timestamp) -> Result<()> {
        if self.authority.has_expired(now) { Err(ApiError::forbidden()) } else { Ok(()) }
    }

    /// Counts so many requests.
    ///
    /// # Errors
    /// The caller has made too many.
    pub(crate) fn count(&self, requests: u32) -> Result<()> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        limiter.take(requests).map_err(|wait| {
            let message = format!("too many requests: try again in {} ms", wait.as_millis() + 1);
            ApiError::new(ApiErrorCode::RateLimited, message)
        })
    }
}
