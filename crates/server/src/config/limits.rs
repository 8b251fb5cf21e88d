//! The limits of requests, in size and in time, and the quotas of tenants.

use std::collections::HashSet;
use std::time::Duration;

use bulla_kms::{Code, KmsError, Result};
use serde::{Deserialize, Serialize};

use super::invalid;
use crate::access::{QuotaConfig, RequestRate};

/// The most items that a batch may be permitted: so many are read before they are counted.
pub(crate) const MAX_ITEMS: usize = 100_000;

/// The limits of requests, in size and in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// The longest body of a request, in bytes.
    pub max_body_bytes: usize,
    /// The longest head of a request, in bytes.
    pub max_header_bytes: usize,
    /// The most bytes that the bodies of all requests take together, and all long answers that
    /// nobody has taken yet.
    pub max_total_body_bytes: usize,
    /// The most items of a batch, at most 100,000.
    pub max_batch_items: usize,
    /// How many seconds a TLS handshake or the head of a request may take, and a connection may be
    /// idle.
    pub idle_timeout_seconds: u64,
    /// How many seconds the body of a request may take to arrive.
    pub body_timeout_seconds: u64,
    /// The most connections of each listener at once.
    pub max_connections_per_listener: usize,
    /// The rate of each token and each caller of the settings; none by default.
    pub request_rate: Option<RequestRate>,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            max_total_body_bytes: 256 << 20,
            max_header_bytes: 64 << 10,
            max_batch_items: 10_000,
            idle_timeout_seconds: 60,
            body_timeout_seconds: 30,
            max_connections_per_listener: 20_000,
            request_rate: None,
        }
    }
}

impl LimitsConfig {
    /// The smallest limit of a head: the HTTP library does not accept less.
    const MIN_HEADER_BYTES: usize = 8 << 10;

    /// # Errors
    /// [`Code::InvalidArgument`] for a limit that no request passes.
    pub(super) fn check(&self) -> Result<()> {
        let zero = [self.max_body_bytes, self.max_batch_items, self.max_connections_per_listener]
            .contains(&0)
            || self.idle_timeout_seconds == 0
            || self.body_timeout_seconds == 0;
        if zero || self.max_header_bytes < Self::MIN_HEADER_BYTES {
            let message = format!(
                "[limits]: every limit must be at least 1, and max_header_bytes at least {}",
                Self::MIN_HEADER_BYTES
            );
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        if self.max_batch_items > MAX_ITEMS {
            let message = format!("[limits]: max_batch_items must be at most {MAX_ITEMS}");
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        if self.max_total_body_bytes < self.max_body_bytes {
            let message = "[limits]: max_total_body_bytes must be at least max_body_bytes";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        Ok(())
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_seconds)
    }

    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.body_timeout_seconds)
    }
}

/// # Errors
/// [`Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check_quotas(quotas: &[QuotaConfig], limits: &LimitsConfig) -> Result<()> {
    let mut tenants = HashSet::new();
    for QuotaConfig { tenant, request_rate, byte_rate, max_slow_jobs, max_keys } in quotas {
        let whose = tenant
            .as_ref()
            .map_or_else(|| "of the other tenants".to_owned(), |tenant| format!("of the tenant {tenant}"));
        let wrong = |message: &str| Err(invalid(format!("the quota {whose}: {message}")));
        if !tenants.insert(tenant) {
            return wrong("it is there twice");
        }
        if request_rate.is_none() && byte_rate.is_none() && max_slow_jobs.is_none() && max_keys.is_none() {
            return wrong("name at least one of `request_rate`, `byte_rate`, `max_slow_jobs` and `max_keys`");
        }
        // A longer body would never pass.
        if byte_rate.is_some_and(|rate| rate.burst.get() < limits.max_body_bytes as u64) {
            return wrong("`burst` of `byte_rate` is at least `limits.max_body_bytes`");
        }
    }
    Ok(())
}
