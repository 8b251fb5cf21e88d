//! Mounts of the transit engine beside `transit/`.

use std::collections::{BTreeMap, HashMap};

use bulla_kms::Name;

use crate::config::MountConfig;

/// The mounts of all tenants.
#[derive(Debug, Default)]
pub(crate) struct Mounts(HashMap<Name, BTreeMap<Name, Name>>);

impl Mounts {
    /// Those of the settings.
    pub(crate) fn new(mounts: &[MountConfig]) -> Self {
        let mut all: HashMap<_, BTreeMap<_, _>> = HashMap::new();
        for MountConfig { tenant, path, keys_tenant } in mounts {
            all.entry(tenant.clone()).or_default().insert(path.clone(), keys_tenant.clone());
        }
        Self(all)
    }

    /// The tenant whose keys are at a mount of a tenant.
    pub(crate) fn keys_tenant(&self, tenant: &Name, path: &str) -> Option<&Name> {
        self.0.get(tenant)?.get(&path.parse::<Name>().ok()?)
    }

    /// The paths of a tenant's mounts, sorted.
    pub(crate) fn paths(&self, tenant: &Name) -> impl Iterator<Item = &Name> {
        self.0.get(tenant).into_iter().flat_map(BTreeMap::keys)
    }
}
