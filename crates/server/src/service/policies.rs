//! The policies of the settings, by tenant and name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KmsError, Name};

use crate::config::{Config, PolicyConfig};
use crate::policy::{Acl, DEFAULT, Decision, Demand, Endpoint, Policy, Rule, default_policy, read_file};

/// The policies of the settings.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// By tenant and name.
    policies: HashMap<(Name, Name), Arc<Policy>>,
}

impl Policies {
    /// Reads the files of the settings, and checks that each role's policies are there.
    ///
    /// # Errors
    /// A file cannot be read, or is no policy; a role names one that its tenant does not have, or
    /// some that permit nothing.
    pub(crate) fn new(config: &Config) -> bulla_kms::Result<Self> {
        let mut all = Self::default();
        for policy in &config.policy {
            let read = read_file(&policy.file)?;
            check_mounts(config, policy, &read)?;
            all.policies.insert((policy.tenant.clone(), policy.name.clone()), Arc::new(read));
        }
        let wrong = |message: String| KmsError::new(Code::InvalidArgument, message);
        for (role, token) in config.role_tokens() {
            if token.policies.is_empty() {
                continue;
            }
            if let Some(name) = token.policies.iter().find(|name| !all.has(&token.tenant, name)) {
                return Err(wrong(format!("{role}: the tenant {} has no policy {name}", token.tenant)));
            }
            if all.operations(&token.tenant, &token.policies).is_empty() {
                return Err(wrong(format!("{role}: its policies permit nothing with keys")));
            }
        }
        Ok(all)
    }

    /// Whether there is a policy of this name.
    pub(crate) fn has(&self, tenant: &Name, name: &Name) -> bool {
        name.as_str() == DEFAULT || self.policies.contains_key(&(tenant.clone(), name.clone()))
    }

    /// A policy by its name.
    pub(crate) fn get(&self, tenant: &Name, name: &Name) -> Option<Arc<Policy>> {
        let found = self.policies.get(&(tenant.clone(), name.clone())).cloned();
        found.or_else(|| (name.as_str() == DEFAULT).then(default_policy))
    }

    /// The names of a tenant's policies, sorted.
    pub(crate) fn names(&self, tenant: &Name) -> Vec<Name> {
        let own = self.policies.keys().filter(|(owner, _)| owner == tenant).map(|(_, name)| name.clone());
        let mut names: Vec<_> = own.chain(DEFAULT.parse()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What these policies permit together. One that is not there any more may have denied
    /// something, so then nothing is permitted.
    pub(crate) fn acl(&self, tenant: &Name, names: &[Name]) -> Acl {
        let found = names.iter().map(|name| Some((name.clone(), self.get(tenant, name)?)));
        Acl::new(found.collect::<Option<_>>().unwrap_or_default())
    }

    /// The operations that some request could do which these policies permit.
    pub(crate) fn operations(&self, tenant: &Name, names: &[Name]) -> Vec<TokenOperation> {
        let acl = self.acl(tenant, names);
        let demands = Endpoint::ALL.iter().flat_map(|endpoint| {
            let permitted =
                |demand: &&Demand| demand.is_about_keys() && acl.may_permit(endpoint, demand.capability);
            endpoint.demands.iter().filter(permitted)
        });
        let reached: Vec<_> = demands.flat_map(|demand| demand.operations).copied().collect();
        TokenOperation::ALL.iter().copied().filter(|operation| reached.contains(operation)).collect()
    }
}

/// # Errors
/// A statement permits something at a mount that the tenant does not have.
fn check_mounts(config: &Config, policy: &PolicyConfig, read: &Policy) -> bulla_kms::Result<()> {
    let has = |path: &str| {
        let mut own = config.mount.iter().filter(|mount| mount.tenant == policy.tenant);
        own.any(|mount| mount.path.as_str() == path)
    };
    let Some((mount, line)) = read.rules.iter().filter_map(Rule::mount).find(|(mount, _)| !has(mount)) else {
        return Ok(());
    };
    let message =
        format!("{}:{line}: the tenant {} has no mount {mount}", policy.file.display(), policy.tenant);
    Err(KmsError::new(Code::InvalidArgument, message))
}

/// Reads a policy in a file, as the service reads those of its settings.
///
/// # Errors
/// [`Code::NotFound`], [`Code::Io`]; [`Code::InvalidArgument`], with the line, for a text that is
/// no policy or says what bulla cannot do.
///
/// ```
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, "path \"transit/sign/release\" {\n  capabilities = [\"update\"]\n}\n")?;
/// bulla_server::check_policy(file.path())?;
/// std::fs::write(&file, "path \"secret/data/a\" {\n  capabilities = [\"read\"]\n}\n")?;
/// let error = bulla_server::check_policy(file.path()).unwrap_err();
/// assert!(error.message.contains(":1: bulla has nothing at"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_policy(file: &Path) -> bulla_kms::Result<()> {
    read_file(file).map(drop)
}

/// Which statements decide about a path.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    /// The policies that were asked together.
    pub policies: Vec<Name>,
    /// The path of the statements that decide; none if no statement is about the path.
    pub pattern: Option<String>,
    /// The policies with the lines of these statements.
    pub sources: Vec<(Name, usize)>,
    /// What they permit, in Vault's words: `deny` alone if that is nothing.
    pub capabilities: Vec<&'static str>,
    /// Whether the statements also bind parameters, or the time of wrapped answers.
    pub has_conditions: bool,
}

/// Which statements of a tenant's policies decide about a path below `/v1/`. A token permits what
/// each of its sets of policies permits.
///
/// # Errors
/// Those of reading the files of the settings; [`Code::NotFound`] for a policy that they do not
/// have.
///
/// ```
/// use bulla_server::{Config, explain_policies};
///
/// let sets = [vec!["default".parse()?]];
/// let found = explain_policies(&Config::default(), &"local".parse()?, &sets, "auth/token/lookup-self")?;
/// assert_eq!(found[0].capabilities, ["read"]);
/// assert_eq!(found[0].pattern.as_deref(), Some("auth/token/lookup-self"));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn explain_policies(
    config: &Config,
    tenant: &Name,
    sets: &[Vec<Name>],
    path: &str,
) -> bulla_kms::Result<Vec<PolicyDecision>> {
    let policies = Policies::new(config)?;
    let path = path.trim_start_matches('/');
    let path = path.strip_prefix("v1/").unwrap_or(path);
    let explain = |names: &Vec<Name>| {
        if let Some(name) = names.iter().find(|name| !policies.has(tenant, name)) {
            let message = format!("the settings have no policy {name} of the tenant {tenant}");
            return Err(KmsError::new(Code::NotFound, message));
        }
        let acl = policies.acl(tenant, names);
        let decision = acl.decision(path);
        Ok(PolicyDecision {
            policies: names.clone(),
            pattern: decision.as_ref().map(|decision| decision.pattern.to_owned()),
            sources: decision.as_ref().map_or_else(Vec::new, Decision::sources),
            capabilities: acl.capabilities(path).words(),
            has_conditions: decision.is_some_and(|decision| decision.permissions.has_conditions()),
        })
    };
    sets.iter().map(explain).collect()
}
