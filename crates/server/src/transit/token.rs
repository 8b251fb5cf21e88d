//! `/v1/auth/token`: a client reads about its own token.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bulla_kms::Timestamp;
use bulla_kms::token::TokenOperation;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::envelope::{self, Envelope};
use super::error::{Result, VaultErrorBody};
use super::extract::By;
use crate::request::{no_store, token};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(transit_lookup_self))
}

/// The caller's own token.
#[derive(Serialize, ToSchema)]
pub(super) struct TokenData<'a> {
    /// The token that the caller presented; empty for a caller without one. Clients store it as
    /// their token.
    id: &'a str,
    /// The last of the token's revocation ids.
    accessor: String,
    /// The caller's name in the audit log.
    display_name: String,
    /// When the token ends; null for a caller without one.
    expire_time: Option<String>,
    /// The same, in seconds from now; 0 for a caller without a token.
    ttl: u64,
    /// The keys' tenant.
    meta: TokenMeta,
    /// The operations that the token permits.
    policies: Vec<&'static str>,
    /// Always false: nothing renews a token.
    renewable: bool,
    /// Always 0: nothing renews a token, so there is no greatest time to live.
    explicit_max_ttl: u64,
    /// Always true.
    orphan: bool,
    /// Always 0: without a bound.
    num_uses: u64,
    /// Always empty.
    entity_id: &'static str,
    /// Always `auth/token/create`.
    path: &'static str,
    /// Always `service`.
    #[serde(rename = "type")]
    kind: &'static str,
}

/// What bulla knows beyond Vault.
#[derive(Serialize, ToSchema)]
pub(super) struct TokenMeta {
    /// The keys' tenant.
    tenant: String,
}

/// Tell what the caller's token permits, and for how long.
#[utoipa::path(get, path = "/v1/auth/token/lookup-self", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token", body = Envelope<TokenData>), (status = "default", body = VaultErrorBody)))]
async fn transit_lookup_self(
    State(worker): State<Worker>,
    By(caller): By,
    headers: HeaderMap,
) -> Result<Response> {
    let session = &caller.session;
    let authority = &session.authority;
    let now = Timestamp::now()?.unix_millis() / 1000;
    let permitted =
        TokenOperation::ALL.into_iter().filter(|operation| authority.operations.contains(*operation));
    // A token that was verified is text.
    let id = token(&headers)?.and_then(|token| std::str::from_utf8(token).ok()).unwrap_or_default();
    let token = TokenData {
        id,
        accessor: session.revocation_ids.last().cloned().unwrap_or_default(),
        display_name: session.actor.to_string(),
        expire_time: authority.expires.map(|time| time.to_string()),
        ttl: authority.expires.map_or(0, |time| (time.unix_millis() / 1000).saturating_sub(now)),
        meta: TokenMeta { tenant: authority.tenant.to_string() },
        policies: permitted.map(TokenOperation::as_str).collect(),
        renewable: false,
        explicit_max_ttl: 0,
        orphan: true,
        num_uses: 0,
        entity_id: "",
        path: "auth/token/create",
        kind: "service",
    };
    Ok(no_store(envelope::data(&worker, &token)))
}
