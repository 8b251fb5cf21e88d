//! Issuers of JWTs, and the roles that their JWTs give.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use axum::http::Uri;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyId, Name, Result};
use serde::{Deserialize, Serialize};

use super::invalid;

/// An issuer of JWTs: a CI system, a cluster, a provider of identities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// The name by which roles refer to it, and with which the names of holders begin.
    pub name: Name,
    /// The claim `iss` of its JWTs. Without `jwks_url` and `keys_file`, its keys are found below
    /// this URL: at `.well-known/openid-configuration`.
    pub issuer: String,
    /// The URL of its keys (JWK set).
    pub jwks_url: Option<String>,
    /// A file with its keys: a JWK set, or public keys in PEM.
    pub keys_file: Option<PathBuf>,
    /// The authorities of its server's certificate, in PEM; those of the operating system by
    /// default.
    pub ca: Option<PathBuf>,
    /// The API server that says whether a JWT still counts, if the issuer is a Kubernetes cluster.
    pub token_review: Option<TokenReviewConfig>,
    /// By how many seconds its clock may differ.
    #[serde(default = "default_leeway")]
    pub leeway_seconds: u64,
}

/// The API server of a Kubernetes cluster, which is asked at each login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenReviewConfig {
    /// Its URL, without a path. Its certificate is of the issuer's authorities (`ca`).
    pub url: String,
    /// A file with the token of a service account that may ask (`system:auth-delegator`). It is
    /// read for each question.
    pub token_file: PathBuf,
}

/// What the holder of a JWT gets: a token for some operations, for some minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleConfig {
    /// The name that a login asks for.
    pub name: Name,
    /// The name of the issuer.
    pub issuer: Name,
    /// The audiences: the claim `aud` must contain one of them.
    pub audiences: Vec<String>,
    /// Patterns of the claim `sub`, of which one must match. A `*` stands for any text.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Patterns of other claims: of each, one must match. `/a/b` is the claim `b` in the object
    /// `a`.
    #[serde(default)]
    pub claims: BTreeMap<String, Vec<String>>,
    /// How often a JWT is accepted.
    #[serde(default)]
    pub jwt_use: JwtUse,
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

/// How often a JWT is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JwtUse {
    /// Until it expires.
    #[default]
    Repeated,
    /// Once, on one of the nodes. It must have the claim `jti`.
    Once,
}

const fn default_leeway() -> u64 {
    30
}

pub(super) const fn default_lifetime() -> u64 {
    600
}

/// More would accept JWTs long after their end.
const MAX_LEEWAY_SECONDS: u64 = 600;
/// A day: a login is for one job, and the next job logs in itself.
const MAX_LIFETIME_SECONDS: u64 = 86_400;

impl IssuerConfig {
    fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(invalid(format!("the issuer {}: {message}", self.name)));
        if self.jwks_url.is_some() && self.keys_file.is_some() {
            return wrong("name only one of `jwks_url` and `keys_file`");
        }
        if self.issuer.is_empty() {
            return wrong("`issuer` is the claim `iss` of its JWTs");
        }
        let url = match &self.jwks_url {
            Some(url) => Some(url),
            None if self.keys_file.is_none() => Some(&self.issuer),
            None => None,
        };
        // Whoever could change the keys on their way could log in as anybody.
        if url.is_some_and(|url| !is_protected(url)) {
            return wrong("its keys must come by https, or by http from this machine");
        }
        if self.token_review.as_ref().is_some_and(|review| !is_protected(&review.url)) {
            return wrong("`token_review.url` must begin with https, or be http on this machine");
        }
        if url.is_none() && self.token_review.is_none() && self.ca.is_some() {
            return wrong("`ca` is for keys that come by https, and for `token_review`");
        }
        if self.leeway_seconds > MAX_LEEWAY_SECONDS {
            return wrong(&format!("`leeway_seconds` is at most {MAX_LEEWAY_SECONDS}"));
        }
        Ok(())
    }
}

/// Whether nobody between this machine and a URL can change its answer.
pub(crate) fn is_protected(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    match (url.scheme_str(), url.host()) {
        (Some("https"), Some(_)) => true,
        (Some("http"), Some(host)) => matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
        _ => false,
    }
}

impl RoleConfig {
    fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(invalid(format!("the role {}: {message}", self.name)));
        if self.audiences.is_empty() || self.audiences.iter().any(String::is_empty) {
            return wrong("name at least one of `audiences`, which the JWT must be for");
        }
        if self.subjects.is_empty() && self.claims.is_empty() {
            return wrong(
                "it accepts every JWT of the issuer: bind `subjects` or `claims`, or write `subjects = [\"*\"]`",
            );
        }
        if self.claims.values().any(Vec::is_empty) {
            return wrong("a claim without patterns matches nothing");
        }
        if let Some(claim) =
            self.claims.keys().find(|claim| matches!(claim.as_str(), "" | "iss" | "sub" | "aud"))
        {
            return wrong(&format!("the claim {claim:?} is not bound by `claims`"));
        }
        self.token().check(&format!("the role {}", self.name))
    }

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
}

/// The token that a role of any kind gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleToken {
    /// The name of the role.
    pub(crate) name: Name,
    pub(crate) tenant: Name,
    pub(crate) operations: Vec<TokenOperation>,
    pub(crate) policies: Vec<Name>,
    pub(crate) keys: Option<Vec<String>>,
    pub(crate) lifetime_seconds: u64,
}

impl RoleToken {
    /// # Errors
    /// It permits nothing, lives too long, or names keys that nobody can have. `role` names the
    /// role.
    pub(super) fn check(&self, role: &str) -> Result<()> {
        let wrong = |message: &str| Err(invalid(format!("{role}: {message}")));
        if self.operations.is_empty() == self.policies.is_empty() {
            return wrong("name at least one of `operations`, or of `policies`, and not of both");
        }
        if !self.policies.is_empty() && self.keys.is_some() {
            return wrong("`keys` are for `operations`: the paths in policies name keys");
        }
        if !(1..=MAX_LIFETIME_SECONDS).contains(&self.lifetime_seconds) {
            return wrong(&format!("`lifetime_seconds` is from 1 to {MAX_LIFETIME_SECONDS}"));
        }
        let Some(keys) = &self.keys else { return Ok(()) };
        if keys.is_empty() {
            return wrong("name at least one of `keys`");
        }
        for key in keys {
            let id = key.contains('/').then(|| key.parse::<KeyId>()).transpose();
            match id {
                Ok(Some(id)) if *id.tenant() != self.tenant => {
                    return wrong(&format!("the key {key} is one of another tenant"));
                }
                Ok(None) if key.parse::<Name>().is_err() => return wrong(&format!("{key:?} is no label")),
                Err(error) => return wrong(&error.message),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

/// # Errors
/// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
pub(super) fn check(issuers: &[IssuerConfig], roles: &[RoleConfig]) -> Result<()> {
    let (mut names, mut urls) = (HashSet::new(), HashSet::new());
    for issuer in issuers {
        issuer.check()?;
        if !names.insert(&issuer.name) || !urls.insert(&issuer.issuer) {
            return Err(invalid(format!("the issuer {} is there twice", issuer.name)));
        }
    }
    let mut role_names = HashSet::new();
    for role in roles {
        role.check()?;
        if !names.contains(&role.issuer) {
            return Err(invalid(format!("the role {}: there is no issuer {}", role.name, role.issuer)));
        }
        if !role_names.insert((&role.tenant, &role.name)) {
            return Err(invalid(format!(
                "the role {} of the tenant {} is there twice",
                role.name, role.tenant
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_by_https_or_from_this_machine() {
        for (url, expected) in [
            ("https://example.org", true),
            ("https://", false),
            ("http://example.org", false),
            ("http://127.0.0.1:5556/dex", true),
            ("http://localhost/dex", true),
            ("http://[::1]:80", true),
            ("http://127.0.0.1.example.org", false),
            ("http://localhost.example.org:80/", false),
            ("http://127.0.0.1@example.org/", false),
            ("http://user:127.0.0.1@example.org/", false),
            ("http://localhost:80@example.org/", false),
            ("http://localhost:80/dex?a=b", true),
            ("file:///etc/keys", false),
            ("example.org", false),
        ] {
            assert_eq!(is_protected(url), expected, "{url}");
        }
    }
}
