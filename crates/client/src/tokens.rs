//! Capability tokens: minting, attenuating and revoking them.

use hyper::Method;
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::Zeroizing;

use crate::call::{Call, Effect};
use crate::client::Client;
use crate::error::Result;

/// What a token to mint permits.
#[derive(Clone, Debug, Serialize)]
pub struct Grant {
    /// Operations. The caller must be permitted them, too.
    pub operations: Vec<String>,
    /// The keys, by their labels or names. None means all keys of the tenant, and the operations
    /// that concern no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The token's lifetime in seconds.
    pub expires_in_seconds: u64,
}

/// The restrictions of a weaker token. An absent field restricts nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Attenuation {
    /// Only these operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// Only these keys, by their labels or names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// No longer than this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A token that was made. It works for anyone who holds it.
#[non_exhaustive]
#[derive(Clone, Deserialize)]
pub struct Minted {
    /// The token.
    #[serde(deserialize_with = "secret_text")]
    pub token: Zeroizing<String>,
    /// The id that revokes it, and all tokens that are made from it.
    pub revocation_id: String,
    /// When it expires, at the latest: RFC 3339 in UTC.
    pub expires: Option<String>,
}

fn secret_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

/// Shows no token.
impl std::fmt::Debug for Minted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Minted").field("revocation_id", &self.revocation_id).finish_non_exhaustive()
    }
}

/// What a caller's credential permits.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct Authority {
    /// The caller's name in the audit log.
    pub name: String,
    /// The tenant whose keys the caller uses.
    pub tenant: String,
    /// What the caller may do.
    pub operations: Vec<String>,
    /// The keys. None means all keys of the tenant, and the operations that concern no key.
    pub keys: Option<Vec<String>>,
    /// When they end; none for a caller without a token.
    pub expires: Option<String>,
    /// Whether the caller may mint tokens, and revoke those of others.
    pub can_mint_tokens: bool,
    /// The ids that revoke the token: the last id names this token, the others those that it was
    /// made from.
    pub revocation_ids: Vec<String>,
}

#[derive(Serialize)]
struct Revoke<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<&'a str>,
}

impl Client {
    /// Mints a token of the caller's tenant. Only callers that the service's configuration names
    /// may do this.
    ///
    /// If the answer is lost, so is the token: nobody can use it.
    pub async fn mint_token(&self, grant: &Grant) -> Result<Minted> {
        self.call(Call::change(Method::POST, "/api/v1/tokens").body(grant)).await
    }

    /// Has a weaker token made from the client's own.
    pub async fn attenuate_token(&self, limits: &Attenuation) -> Result<Minted> {
        self.call(Call::post("/api/v1/tokens/attenuate", Effect::None).body(limits)).await
    }

    /// Says what the client's credential permits.
    pub async fn authority(&self) -> Result<Authority> {
        self.call(Call::get("/api/v1/tokens/self")).await
    }

    /// Revokes the client's own token, and all tokens that were made from it.
    pub async fn revoke_own_token(&self) -> Result<()> {
        self.revoke(&Revoke { revocation_id: None, expires: None }).await
    }

    /// Revokes a token by its revocation id, for callers who may mint tokens. If the service knows
    /// when the token expires (RFC 3339 in UTC), it forgets the id a day later.
    pub async fn revoke_token(&self, revocation_id: &str, expires: Option<&str>) -> Result<()> {
        self.revoke(&Revoke { revocation_id: Some(revocation_id), expires }).await
    }

    async fn revoke(&self, body: &Revoke<'_>) -> Result<()> {
        let call = Call::change(Method::POST, "/api/v1/tokens/revoke").body(body);
        self.call::<serde::de::IgnoredAny>(call).await.map(drop)
    }
}
