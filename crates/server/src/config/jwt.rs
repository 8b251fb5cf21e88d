//! The JWTs that the service signs, as their issuer.

use std::collections::HashSet;

use bulla_kms::{Name, Result};
use serde::{Deserialize, Serialize};

use super::{invalid, is_protected};

/// The longest life of a JWT: a day. Nobody can take one back.
const MAX_LIFETIME_SECONDS: u64 = 86_400;

/// The service as an issuer of JWTs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtConfig {
    /// The claim `iss`: a URL, below which the service answers at
    /// `.well-known/openid-configuration`.
    pub issuer: String,
    /// The keys that sign.
    #[serde(default)]
    pub key: Vec<JwtKeyConfig>,
}

/// The policy of a key that signs JWTs. Its purpose is [`bulla_kms::JWT_PURPOSE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtKeyConfig {
    /// The key's tenant.
    pub tenant: Name,
    /// The key's label.
    pub label: Name,
    /// Patterns of the claim `aud`, of which one must match each audience. A `*` stands for any
    /// text.
    pub audiences: Vec<String>,
    /// The longest life of a JWT.
    #[serde(default = "super::login::default_lifetime")]
    pub max_lifetime_seconds: u64,
}

impl JwtConfig {
    /// # Errors
    /// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(invalid(format!("[jwt]: {message}")));
        // Discovery compares this text, and its URLs are made from it.
        if !is_protected(&self.issuer) || self.issuer.ends_with('/') || self.issuer.contains(['?', '#']) {
            return wrong(
                "`issuer` is https://HOST or https://HOST/PATH, without a slash at its end, or http on this machine",
            );
        }
        let mut keys = HashSet::new();
        for JwtKeyConfig { tenant, label, audiences, max_lifetime_seconds } in &self.key {
            if !keys.insert((tenant, label)) {
                return wrong(&format!("the key {label} is there twice"));
            }
            if audiences.is_empty() || audiences.iter().any(String::is_empty) {
                return wrong(&format!("the key {label}: name at least one of `audiences`"));
            }
            if !(1..=MAX_LIFETIME_SECONDS).contains(max_lifetime_seconds) {
                return wrong(&format!(
                    "the key {label}: `max_lifetime_seconds` is from 1 to {MAX_LIFETIME_SECONDS}"
                ));
            }
        }
        Ok(())
    }
}
