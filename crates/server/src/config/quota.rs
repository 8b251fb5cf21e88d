//! The quotas of tenants.

use std::collections::HashSet;

use bulla_kms::Result;

use super::{LimitsConfig, invalid};
use crate::access::QuotaConfig;

/// # Errors
/// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check(quotas: &[QuotaConfig], limits: &LimitsConfig) -> Result<()> {
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
