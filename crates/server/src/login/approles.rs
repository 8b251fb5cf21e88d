//! The AppRoles of the settings, and which of them has a role id.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bulla_kms::Keystore;

use super::secret_ids::role_id;
use crate::config::AppRoleConfig;

/// The AppRoles of the settings.
#[derive(Debug, Default)]
pub(crate) struct AppRoles {
    roles: Vec<AppRoleConfig>,
    /// Only an unsealed service can compute it.
    places: Mutex<Option<Places>>,
}

/// The role of each id, by a digest that only the keystore can compute. So the time of a look-up
/// tells nothing of the ids, and does not grow with the number of roles.
#[derive(Debug)]
struct Places {
    /// What only this keystore computes.
    keystore: [u8; 32],
    by_id: HashMap<[u8; 32], usize>,
}

fn digest(keystore: &Keystore, id: &str) -> [u8; 32] {
    keystore.data_cipher().keyed_digest(format!("role of id\n{id}").as_bytes())
}

impl Places {
    fn new(keystore: &Keystore, of_keystore: [u8; 32], roles: &[AppRoleConfig]) -> Self {
        let place = |(place, role)| (digest(keystore, &role_id(keystore, role)), place);
        Self { keystore: of_keystore, by_id: roles.iter().enumerate().map(place).collect() }
    }
}

impl AppRoles {
    pub(super) fn new(roles: &[AppRoleConfig]) -> Self {
        Self { roles: roles.to_vec(), places: Mutex::default() }
    }

    /// The role with an id.
    pub(crate) fn with_id(&self, keystore: &Keystore, id: &str) -> Option<&AppRoleConfig> {
        // No role has the empty id.
        let of_keystore = digest(keystore, "");
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.as_ref().is_none_or(|places| places.keystore != of_keystore) {
            *places = Some(Places::new(keystore, of_keystore, &self.roles));
        }
        let place = *places.as_ref()?.by_id.get(&digest(keystore, id))?;
        self.roles.get(place)
    }

    /// The role of a tenant with a name.
    pub(crate) fn named(&self, tenant: &str, name: &str) -> Option<&AppRoleConfig> {
        self.roles.iter().find(|role| role.name.as_str() == name && role.tenant.as_str() == tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_its_role_in_each_keystore() {
        let role = |name: &str, id: Option<&str>| AppRoleConfig {
            name: name.parse().unwrap(),
            role_id: id.map(str::to_owned),
            bind_secret_id: true,
            secret_id_num_uses: 0,
            secret_id_ttl_seconds: 0,
            secret_id_bound_cidrs: Vec::new(),
            tenant: "local".parse().unwrap(),
            operations: Vec::new(),
            policies: Vec::new(),
            keys: None,
            lifetime_seconds: 60,
        };
        let all = [role("a", None), role("b", Some("b-id")), role("c", None)];
        let roles = AppRoles::new(&all);
        let keystores = [Keystore::in_memory().unwrap(), Keystore::in_memory().unwrap()];
        for _ in 0..2 {
            for (own, other) in [(&keystores[0], &keystores[1]), (&keystores[1], &keystores[0])] {
                for role in &all {
                    assert_eq!(roles.with_id(own, &role_id(own, role)), Some(role));
                }
                assert_eq!(roles.with_id(own, &role_id(other, &all[0])), None);
                for id in ["", "a", "B-id", "b-id "] {
                    assert_eq!(roles.with_id(own, id), None, "{id:?}");
                }
            }
        }
        assert_eq!((roles.named("local", "c"), roles.named("other", "c")), (Some(&all[2]), None));
    }
}
