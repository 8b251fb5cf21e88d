//! Files with policies.

use std::collections::HashSet;
use std::path::PathBuf;

use bulla_kms::token::TokenOperation;
use bulla_kms::{Name, Result};
use serde::{Deserialize, Serialize};

use super::invalid;

/// A policy in Vault's language, in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// The name by which roles and tokens of the tenant refer to it.
    pub name: Name,
    /// The tenant. The paths in the policy are those of its keys.
    pub tenant: Name,
    /// The file, HCL or JSON.
    pub file: PathBuf,
}

/// # Errors
/// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check(policies: &[PolicyConfig]) -> Result<()> {
    let mut names = HashSet::new();
    for PolicyConfig { name, tenant, file: _ } in policies {
        let wrong =
            |message: &str| Err(invalid(format!("the policy {name} of the tenant {tenant}: {message}")));
        if !names.insert((tenant, name)) {
            return wrong("it is there twice");
        }
        // A list of policies may also have operations.
        if name.as_str() == "root" || name.as_str().parse::<TokenOperation>().is_ok() {
            return wrong("`root` and the names of operations are no names of policies");
        }
    }
    Ok(())
}
