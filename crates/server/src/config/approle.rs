//! Roles for programs that log in with a role id and a secret id (Vault's AppRole).

use std::collections::HashSet;

use bulla_kms::token::TokenOperation;
use bulla_kms::{Name, Result};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::invalid;
use super::login::{RoleToken, default_lifetime};

/// What a program gets that shows the role's id and a secret id: a token for some operations, for
/// some minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppRoleConfig {
    /// The name in the paths below `auth/approle/role`.
    pub name: Name,
    /// The id with which programs log in. By default one that the keystore derives from the tenant
    /// and the name.
    pub role_id: Option<String>,
    /// Whether a login needs a secret id. Without one, `secret_id_bound_cidrs` alone says who may
    /// log in.
    #[serde(default = "binds")]
    pub bind_secret_id: bool,
    /// How many logins a secret id is for; 0 is without a bound.
    #[serde(default)]
    pub secret_id_num_uses: u32,
    /// How long a secret id lives; 0 is without a bound.
    #[serde(default)]
    pub secret_id_ttl_seconds: u64,
    /// The networks from which programs log in; all by default.
    #[serde(default)]
    pub secret_id_bound_cidrs: Vec<IpNet>,
    /// The tenant whose keys the token is for.
    pub tenant: Name,
    /// What the token permits. A role has either these or `policies`.
    #[serde(default)]
    pub operations: Vec<TokenOperation>,
    /// The policies of the tenant that say what the token permits below `/v1`.
    #[serde(default)]
    pub policies: Vec<Name>,
    /// The keys, by their labels or names; all of the tenant by default.
    pub keys: Option<Vec<String>>,
    /// The token's lifetime.
    #[serde(default = "default_lifetime")]
    pub lifetime_seconds: u64,
}

const fn binds() -> bool {
    true
}

/// The longest role id.
const MAX_ROLE_ID_LEN: usize = 128;
/// The longest lifetime of a secret id: ten years. Longer is without a bound.
const MAX_SECRET_ID_TTL_SECONDS: u64 = 10 * 365 * 86_400;

impl AppRoleConfig {
    /// The token of the role.
    pub(crate) fn token(&self) -> RoleToken {
        RoleToken {
            name: self.name.clone(),
            tenant: self.tenant.clone(),
            operations: self.operations.clone(),
            policies: self.policies.clone(),
            keys: self.keys.clone(),
            lifetime_seconds: self.lifetime_seconds,
        }
    }

    fn check(&self) -> Result<()> {
        let role = format!("the AppRole {}", self.name);
        let wrong = |message: &str| Err(invalid(format!("{role}: {message}")));
        if !self.bind_secret_id && self.secret_id_bound_cidrs.is_empty() {
            return wrong("without secret ids, `secret_id_bound_cidrs` must say who may log in");
        }
        let is_id = |id: &String| {
            (1..=MAX_ROLE_ID_LEN).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if self.role_id.as_ref().is_some_and(|id| !is_id(id)) {
            return wrong(&format!("`role_id` has 1 to {MAX_ROLE_ID_LEN} visible ASCII characters"));
        }
        if self.secret_id_ttl_seconds > MAX_SECRET_ID_TTL_SECONDS {
            return wrong(&format!("`secret_id_ttl_seconds` is at most {MAX_SECRET_ID_TTL_SECONDS}"));
        }
        self.token().check(&role)
    }
}

/// # Errors
/// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check(roles: &[AppRoleConfig]) -> Result<()> {
    let (mut names, mut ids) = (HashSet::new(), HashSet::new());
    for role in roles {
        role.check()?;
        if !names.insert((&role.tenant, &role.name)) {
            let message = format!("the AppRole {} of the tenant {} is there twice", role.name, role.tenant);
            return Err(invalid(message));
        }
        if role.role_id.as_ref().is_some_and(|id| !ids.insert(id)) {
            return Err(invalid(format!("the AppRole {}: another one has its `role_id`", role.name)));
        }
    }
    Ok(())
}
