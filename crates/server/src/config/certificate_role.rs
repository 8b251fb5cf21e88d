//! Roles for programs that log in with a client certificate.

use std::collections::HashSet;
use std::path::PathBuf;

use bulla_kms::token::TokenOperation;
use bulla_kms::{Name, Result};
use serde::{Deserialize, Serialize};

use super::invalid;
use super::login::{RoleToken, default_lifetime};

/// What the holder of a client certificate gets: a token for some operations, for some minutes.
/// Of each list of patterns that is not empty, one must match a value in the certificate. A `*` in
/// a pattern stands for any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateRoleConfig {
    /// The name that a login may ask for.
    pub name: Name,
    /// The authorities of the certificates, in PEM; all of the listener by default.
    pub ca: Option<PathBuf>,
    /// Patterns of the subject's common name.
    #[serde(default)]
    pub common_names: Vec<String>,
    /// Patterns of the subject's organizational units.
    #[serde(default)]
    pub organizational_units: Vec<String>,
    /// Patterns of the alternative names that are names of hosts.
    #[serde(default)]
    pub dns_names: Vec<String>,
    /// Patterns of the alternative names that are addresses of mail.
    #[serde(default)]
    pub email_addresses: Vec<String>,
    /// Patterns of the alternative names that are URIs.
    #[serde(default)]
    pub uris: Vec<String>,
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

impl CertificateRoleConfig {
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
        let role = format!("the certificate role {}", self.name);
        let lists = [
            &self.common_names,
            &self.organizational_units,
            &self.dns_names,
            &self.email_addresses,
            &self.uris,
        ];
        if lists.into_iter().all(Vec::is_empty) {
            let message = "it accepts every certificate of the authority: bind names, or write `common_names = [\"*\"]`";
            return Err(invalid(format!("{role}: {message}")));
        }
        self.token().check(&role)
    }
}

/// # Errors
/// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check(roles: &[CertificateRoleConfig]) -> Result<()> {
    let mut names = HashSet::new();
    for role in roles {
        role.check()?;
        if !names.insert((&role.tenant, &role.name)) {
            let message =
                format!("the certificate role {} of the tenant {} is there twice", role.name, role.tenant);
            return Err(invalid(message));
        }
    }
    Ok(())
}
