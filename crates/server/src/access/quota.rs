//! What each tenant may use of the service.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bulla_kms::{Keystore, Name};
use serde::{Deserialize, Serialize};

use super::rate_limit::{NodeCount, RateLimiter, RequestRate};
use crate::error::{ApiError, ApiErrorCode, Result};

/// A rate of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteRate {
    /// Bytes a second over a long time.
    pub per_second: NonZeroU64,
    /// The most bytes at once after a pause.
    pub burst: NonZeroU64,
}

/// What a tenant may use of the service: all of its callers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaConfig {
    /// The tenant. Without one, the quota is that of each tenant that has none of its own.
    pub tenant: Option<Name>,
    /// Requests; each item of a batch is one.
    pub request_rate: Option<RequestRate>,
    /// Bytes in the bodies of requests.
    pub byte_rate: Option<ByteRate>,
    /// How many pieces of slow work are done at once. Others wait.
    pub max_slow_jobs: Option<NonZeroUsize>,
    /// How many keys it may have. Destroyed ones do not count.
    pub max_keys: Option<usize>,
}

/// Bytes are counted in units of so many: with single bytes, intervals would be too short for a
/// clock of nanoseconds.
const UNIT: u64 = 1024;

impl ByteRate {
    fn in_units(self) -> RequestRate {
        let units = |bytes: NonZeroU64| {
            let units = u32::try_from(bytes.get().div_ceil(UNIT)).unwrap_or(u32::MAX);
            NonZeroU32::new(units).unwrap_or(NonZeroU32::MIN)
        };
        RequestRate { per_second: units(self.per_second), burst: units(self.burst) }
    }
}

/// What a tenant has used of its quota.
#[derive(Debug)]
pub(crate) struct TenantQuota {
    config: QuotaConfig,
    requests: Option<RateLimiter>,
    units: Option<RateLimiter>,
    /// The name under which slow work of the whole tenant waits.
    queue: String,
    /// Keys that are being made.
    coming_keys: AtomicUsize,
}

impl TenantQuota {
    fn new(tenant: &Name, config: &QuotaConfig, nodes: &NodeCount) -> Self {
        Self {
            config: config.clone(),
            requests: config.request_rate.map(|rate| RateLimiter::new(rate, nodes)),
            units: config.byte_rate.map(|rate| RateLimiter::new(rate.in_units(), nodes)),
            queue: format!("all of {tenant}"),
            coming_keys: AtomicUsize::new(0),
        }
    }

    /// Counts so many requests.
    ///
    /// # Errors
    /// The tenant has made too many.
    pub(crate) fn count_requests(&self, requests: u32) -> Result<()> {
        let used = "the tenant has used its quota of requests";
        self.requests.as_ref().map_or(Ok(()), |limiter| limiter.check(requests, used))
    }

    /// Under which name slow work of the tenant waits, and how much of it is done at once; none if
    /// each caller waits for itself.
    pub(crate) fn slow_jobs(&self) -> Option<(&str, usize)> {
        self.config.max_slow_jobs.map(|most| (self.queue.as_str(), most.get()))
    }
}

/// The bytes of one body, as a quota counts them.
#[derive(Debug)]
pub(crate) struct BodyCount {
    quota: Option<Arc<TenantQuota>>,
    bytes: u64,
    counted: u64,
}

impl BodyCount {
    /// A body of which nothing was counted.
    pub(crate) fn new(quota: Option<Arc<TenantQuota>>) -> Self {
        Self { quota, bytes: 0, counted: 0 }
    }

    /// Counts more bytes.
    ///
    /// # Errors
    /// The tenant has sent too many.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        let Some(quota) = &self.quota else { return Ok(()) };
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let units = self.bytes.div_ceil(UNIT);
        let more = u32::try_from(units - self.counted).unwrap_or(u32::MAX);
        if more > 0 {
            let used = "the tenant has used its quota of bytes";
            quota.units.as_ref().map_or(Ok(()), |limiter| limiter.check(more, used))?;
            self.counted = units;
        }
        Ok(())
    }
}

/// Room for a key that is being made, until it is dropped.
#[derive(Debug)]
pub(crate) struct KeyRoom(Option<Arc<TenantQuota>>);

impl KeyRoom {
    /// Room for one more key of a tenant. Of several that are made at the same time, no more get
    /// room than there is.
    ///
    /// # Errors
    /// The tenant has as many keys as it may have.
    pub(crate) fn hold(quota: Option<&Arc<TenantQuota>>, keystore: &Keystore, tenant: &Name) -> Result<Self> {
        let limited = quota.and_then(|quota| Some((quota, quota.config.max_keys?)));
        let Some((quota, most)) = limited else { return Ok(Self(None)) };
        let coming = quota.coming_keys.fetch_add(1, Ordering::AcqRel);
        // Dropped, it gives the room back.
        let room = Self(Some(Arc::clone(quota)));
        if keystore.count_keys(tenant).saturating_add(coming) < most {
            return Ok(room);
        }
        let message =
            format!("the tenant may have {most} keys, and has them: destroy one first, or ask an operator");
        Err(ApiError::new(ApiErrorCode::QuotaExceeded, message))
    }
}

impl Drop for KeyRoom {
    fn drop(&mut self) {
        if let Some(quota) = &self.0 {
            quota.coming_keys.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The quotas of all tenants.
#[derive(Debug)]
pub(crate) struct TenantQuotas {
    own: HashMap<Name, QuotaConfig>,
    /// That of each other tenant.
    others: Option<QuotaConfig>,
    nodes: NodeCount,
    by_tenant: Mutex<HashMap<Name, Arc<TenantQuota>>>,
}

impl TenantQuotas {
    /// Those of the settings. Nodes share the rates. What was used of a quota that is the same as
    /// before stays used.
    pub(crate) fn new(quotas: &[QuotaConfig], nodes: &NodeCount, before: Option<&Self>) -> Self {
        let own = quotas.iter().filter_map(|quota| Some((quota.tenant.clone()?, quota.clone())));
        let others = quotas.iter().find(|quota| quota.tenant.is_none()).cloned();
        let new = Self { own: own.collect(), others, nodes: nodes.clone(), by_tenant: Mutex::default() };
        if let Some(before) = before {
            let known = before.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
            let same = known.iter().filter(|(tenant, quota)| new.config(tenant) == Some(&quota.config));
            let same = same.map(|(tenant, quota)| (tenant.clone(), Arc::clone(quota))).collect();
            *new.by_tenant.lock().unwrap_or_else(PoisonError::into_inner) = same;
        }
        new
    }

    /// How many nodes share the rates.
    pub(crate) fn nodes(&self) -> &NodeCount {
        &self.nodes
    }

    fn config(&self, tenant: &Name) -> Option<&QuotaConfig> {
        self.own.get(tenant).or(self.others.as_ref())
    }

    /// That of a tenant: the same one each time.
    pub(crate) fn of(&self, tenant: &Name) -> Option<Arc<TenantQuota>> {
        let config = self.config(tenant)?;
        let mut known = self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quota) = known.get(tenant) {
            return Some(Arc::clone(quota));
        }
        let quota = Arc::new(TenantQuota::new(tenant, config, &self.nodes));
        known.insert(tenant.clone(), Arc::clone(&quota));
        Some(quota)
    }
}

#[cfg(test)]
mod tests {
    use bulla_kms::{Algorithm, KeyChange, NewKey};

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn quota(tenant: Option<&str>, burst: u32) -> QuotaConfig {
        let rate = RequestRate { per_second: NonZeroU32::MIN, burst: burst.try_into().unwrap() };
        QuotaConfig {
            tenant: tenant.map(name),
            request_rate: Some(rate),
            byte_rate: Some(ByteRate { per_second: NonZeroU64::MIN, burst: 4096.try_into().unwrap() }),
            max_slow_jobs: None,
            max_keys: Some(2),
        }
    }

    #[test]
    fn a_tenant_has_its_own_quota_or_one_like_all_others_and_keeps_it() {
        let nodes = NodeCount::one();
        let quotas = TenantQuotas::new(&[quota(None, 2), quota(Some("a"), 3)], &nodes, None);
        let passing = |tenant: &str| {
            let quota = quotas.of(&name(tenant)).unwrap();
            (0..10).filter(|_| quota.count_requests(1).is_ok()).count()
        };
        assert_eq!((passing("a"), passing("b"), passing("c")), (3, 2, 2));
        assert_eq!((passing("a"), passing("b")), (0, 0), "what was used stays used");
        let again = TenantQuotas::new(&[quota(None, 5), quota(Some("a"), 3)], &nodes, Some(&quotas));
        assert!(again.of(&name("a")).unwrap().count_requests(1).is_err(), "the same quota");
        assert!(again.of(&name("b")).unwrap().count_requests(1).is_ok(), "another one");
        assert!(TenantQuotas::new(&[quota(Some("a"), 3)], &nodes, None).of(&name("b")).is_none());
    }

    #[test]
    fn nodes_share_the_rates() {
        let nodes = NodeCount::one();
        let quotas = TenantQuotas::new(&[quota(None, 6)], &nodes, None);
        nodes.set(3);
        let quota = quotas.of(&name("a")).unwrap();
        assert_eq!((0..10).filter(|_| quota.count_requests(1).is_ok()).count(), 2);
    }

    #[test]
    fn bytes_count_as_begun_kibibytes_of_a_body() {
        let quotas = TenantQuotas::new(&[quota(None, 1)], &NodeCount::one(), None);
        let body = || BodyCount::new(quotas.of(&name("a")));
        let mut one = body();
        (0..1000).for_each(|_| one.add(1).unwrap());
        let mut other = body();
        other.add(2049).unwrap();
        assert!(one.add(24).is_ok() && one.add(1).is_err() && body().add(1).is_err());
        assert!(body().add(0).is_ok());
        BodyCount::new(None).add(usize::MAX).unwrap();
    }

    #[test]
    fn keys_that_are_being_made_count_and_destroyed_ones_do_not() {
        let keystore = Keystore::in_memory().unwrap();
        let quotas = TenantQuotas::new(&[quota(None, 1)], &NodeCount::one(), None);
        let (tenant, other) = (name("a"), name("b"));
        keystore.create_token_root(&tenant).unwrap();
        let room = |tenant: &Name| KeyRoom::hold(quotas.of(tenant).as_ref(), &keystore, tenant);
        let create =
            || keystore.create_key(NewKey::new(tenant.clone(), name("files"), Algorithm::Ed25519)).unwrap();
        let (first, second) = (room(&tenant).unwrap(), room(&tenant).unwrap());
        assert_eq!(room(&tenant).unwrap_err().body.code, "quota_exceeded");
        let key = create();
        drop((first, second));
        drop(room(&tenant).unwrap());
        create();
        assert!(room(&tenant).is_err() && room(&other).is_ok());
        let now = bulla_kms::Timestamp::now().unwrap();
        for change in [KeyChange::ScheduleDestruction(now), KeyChange::Destroy] {
            keystore.update(key.key_id(), None, &change).unwrap();
        }
        assert!(room(&tenant).is_ok());
    }
}
