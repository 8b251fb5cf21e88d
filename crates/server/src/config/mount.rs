//! Further mounts of the transit engine.

use std::collections::HashSet;

use bulla_kms::{Name, Result};
use serde::{Deserialize, Serialize};

use super::invalid;

/// A mount of the transit engine beside `transit/`, for clients of Vault. Its keys are those of a
/// tenant of its own, so that two mounts may have keys of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountConfig {
    /// The tenant whose tokens reach the mount.
    pub tenant: Name,
    /// Its path, in the namespace of the tenant.
    pub path: Name,
    /// The tenant whose keys are there.
    pub keys_tenant: Name,
}

/// How the paths within the engine begin. A mount of such a name could not be told from them.
pub(crate) const ENGINE_PATHS: [&str; 19] = [
    "backup",
    "byok-export",
    "cache-config",
    "cmac",
    "config",
    "datakey",
    "decrypt",
    "derived-keys",
    "encrypt",
    "export",
    "hash",
    "hmac",
    "keys",
    "random",
    "restore",
    "rewrap",
    "sign",
    "verify",
    "wrapping_key",
];

/// # Errors
/// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check(mounts: &[MountConfig], no_names: &[&str]) -> Result<()> {
    let (mut paths, mut keys) = (HashSet::new(), HashSet::new());
    for MountConfig { tenant, path, keys_tenant } in mounts {
        let wrong =
            |message: &str| Err(invalid(format!("the mount {path} of the tenant {tenant}: {message}")));
        if no_names.contains(&path.as_str()) || ENGINE_PATHS.contains(&path.as_str()) {
            return wrong("`path` has another meaning in the paths of Vault's clients: give it another name");
        }
        if !paths.insert((tenant, path)) {
            return wrong("it is there twice");
        }
        if !keys.insert(keys_tenant) {
            return wrong("another mount has its `keys_tenant`: then both would have the same keys");
        }
        if mounts.iter().any(|other| other.tenant == *keys_tenant) {
            return wrong("`keys_tenant` has mounts itself: name a tenant that has keys alone");
        }
    }
    Ok(())
}
