//! `/v1/auth/token`: looking tokens up, revoking them, and why none is renewed.
//!
//! A token is verified by itself, and the service keeps none. Of a token that was created here it
//! has a [`TokenRow`], by the accessor: so the accessor is enough to look the token up and to
//! revoke it, for the token that it was made from and for callers who may mint.

use std::borrow::Cow;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::TokenOperation;
use bulla_kms::{Keystore, Name, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::request::{OptionalSecret, OptionalText, SecretVaultContent, VaultBody, VaultCaller};
use crate::access::Session;
use crate::cluster::Revocation;
use crate::request::{Caller, no_store, token};
use crate::service::{RevokedBy, RowFolder, RowKind, Worker, run_off_thread};

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_lookup_self))
        .routes(routes!(transit_lookup, transit_lookup_own).map(|router| router.put(erased(transit_lookup))))
        .routes(routes!(transit_lookup_accessor).map(|router| router.put(erased(transit_lookup_accessor))))
        .routes(routes!(transit_renew_self).map(|router| router.put(erased(transit_renew_self))))
        .routes(routes!(transit_renew).map(|router| router.put(erased(transit_renew))))
        .routes(routes!(transit_renew_accessor).map(|router| router.put(erased(transit_renew_accessor))))
        .routes(routes!(transit_revoke_self).map(|router| router.put(erased(transit_revoke_self))))
        .routes(routes!(transit_revoke).map(|router| router.put(erased(transit_revoke))))
        .routes(routes!(transit_revoke_accessor).map(|router| router.put(erased(transit_revoke_accessor))))
}

/// What a token permits, and for how long.
#[derive(Serialize, ToSchema)]
struct TokenData<'a> {
    /// The token that the caller presented; empty for a caller without one, and where the accessor
    /// named the token. Clients store it as their token.
    id: &'a str,
    /// The last of the token's revocation ids.
    accessor: String,
    /// The token's name in the audit log.
    display_name: String,
    /// When the token was made, in seconds since 1970, where the accessor named it. A token itself
    /// does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_time: Option<u64>,
    /// For how many seconds it was made, where the accessor named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_ttl: Option<u64>,
    /// When the token was made, where the accessor named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    issue_time: Option<String>,
    /// When the token ends; null for a caller without one.
    expire_time: Option<String>,
    /// The seconds until then; 0 for a caller without a token.
    ttl: u64,
    /// The keys' tenant.
    meta: TokenMeta,
    /// The namespace of the tenant, with a slash at its end.
    namespace_path: String,
    /// The policies of the token, or the operations that it permits.
    policies: Vec<String>,
    /// Always false: nothing renews a token.
    renewable: bool,
    /// Always 0: nothing renews a token, so there is no greatest time to live.
    explicit_max_ttl: u64,
    /// False for a token that was made from another one: it ends with that one.
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
struct TokenMeta {
    /// The keys' tenant.
    tenant: String,
}

impl<'a> TokenData<'a> {
    /// The data of a session; `id` is its token.
    fn new(id: &'a str, session: &Session) -> Result<Self> {
        let authority = &session.authority;
        let now = Timestamp::now()?.unix_millis() / 1000;
        let permitted = TokenOperation::ALL.iter().copied();
        let permitted = permitted.filter(|operation| authority.operations.contains(*operation));
        let policies = authority.policies.last().cloned().unwrap_or_default();
        Ok(Self {
            id,
            accessor: session.revocation_ids.last().cloned().unwrap_or_default(),
            display_name: session.actor.to_string(),
            creation_time: None,
            creation_ttl: None,
            issue_time: None,
            expire_time: authority.expires.map(|time| time.to_string()),
            ttl: authority.expires.map_or(0, |time| (time.unix_millis() / 1000).saturating_sub(now)),
            meta: TokenMeta { tenant: authority.tenant.to_string() },
            namespace_path: format!("{}/", authority.tenant),
            policies: policy_names(&policies, permitted),
            renewable: false,
            explicit_max_ttl: 0,
            orphan: session.revocation_ids.len() <= 1,
            num_uses: 0,
            entity_id: "",
            path: "auth/token/create",
            kind: "service",
        })
    }
}

/// What Vault calls the policies of a token: its policies, or else the operations that it permits.
pub(super) fn policy_names(
    policies: &[Name],
    operations: impl Iterator<Item = TokenOperation>,
) -> Vec<String> {
    if policies.is_empty() {
        operations.map(|operation| operation.to_string()).collect()
    } else {
        policies.iter().map(Name::to_string).collect()
    }
}

/// What the service keeps of a token that was created: nothing by which it could be used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenRow {
    /// The revocation ids of its blocks. The last one is the accessor.
    pub(super) revocation_ids: Vec<String>,
    pub(super) operations: Vec<TokenOperation>,
    #[serde(default)]
    pub(super) policies: Vec<Name>,
    pub(super) display_name: String,
    pub(super) created: Timestamp,
    pub(super) expires: Timestamp,
}

impl TokenRow {
    /// Keeps the row until the token expires.
    ///
    /// # Errors
    /// There are too many; the row cannot be written.
    pub(super) fn keep(&self, worker: &Worker, keystore: &Keystore, tenant: &str) -> bulla_kms::Result<()> {
        let folder = RowFolder::new(keystore, RowKind::Token, tenant);
        let accessor = self.revocation_ids.last().map_or("", String::as_str);
        let content = serde_json::to_vec(self).unwrap_or_default();
        // The id is a signature, so no other token has it.
        worker.service.rows.insert(keystore, &folder, accessor, &content, Some(self.expires)).map(drop)
    }

    /// Whether the caller may look the token up and revoke it: it was made from the caller's token,
    /// or the caller may revoke every token of its tenant.
    fn is_open_to(&self, session: &Session) -> bool {
        let is_made_from = |own: &String| self.revocation_ids.contains(own);
        session.authority.can_mint_tokens || session.revocation_ids.last().is_some_and(is_made_from)
    }

    fn data(&self, tenant: &str) -> Result<TokenData<'static>> {
        let seconds = |time: Timestamp| time.unix_millis() / 1000;
        let (created, expires) = (seconds(self.created), seconds(self.expires));
        Ok(TokenData {
            id: "",
            accessor: self.revocation_ids.last().cloned().unwrap_or_default(),
            display_name: self.display_name.clone(),
            creation_time: Some(created),
            creation_ttl: Some(expires.saturating_sub(created)),
            issue_time: Some(self.created.to_string()),
            expire_time: Some(self.expires.to_string()),
            ttl: expires.saturating_sub(seconds(Timestamp::now()?)),
            meta: TokenMeta { tenant: tenant.to_owned() },
            namespace_path: format!("{tenant}/"),
            policies: policy_names(&self.policies, self.operations.iter().copied()),
            renewable: false,
            explicit_max_ttl: 0,
            orphan: self.revocation_ids.len() <= 1,
            num_uses: 0,
            entity_id: "",
            path: "auth/token/create",
            kind: "service",
        })
    }
}

/// The token with an accessor, if the caller may look it up and it is still valid.
async fn find_row(worker: &Worker, caller: &Caller, accessor: &str) -> Result<Option<TokenRow>> {
    let (service, tenant) = (worker.service.clone(), caller.session.authority.tenant.clone());
    let accessor = accessor.to_owned();
    // The folder is that of the caller's tenant: those of others are not looked at.
    let find = move |keystore: &Keystore| {
        let folder = RowFolder::new(keystore, RowKind::Token, tenant.as_str());
        let Some(row) = service.rows.get(keystore, &folder, &accessor)? else { return Ok(None) };
        let row: Option<TokenRow> = serde_json::from_slice(&row.content).ok();
        let is_valid = |row: &TokenRow| !service.revoked_tokens().contains_any(&tenant, &row.revocation_ids);
        Ok(row.filter(is_valid))
    };
    let row = worker.run_blocking(&caller.unsealed, &caller.session, find).await?;
    Ok(row.filter(|row| row.is_open_to(&caller.session)))
}

/// Which token.
#[derive(Deserialize, ToSchema)]
struct VaultToken<'a> {
    /// The token.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    token: OptionalSecret<'a>,
}

impl VaultToken<'_> {
    fn given(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }
}

/// Which token, by its accessor.
#[derive(Deserialize, ToSchema)]
struct TokenAccessor<'a> {
    /// The accessor of the token.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    accessor: OptionalText<'a>,
}

impl TokenAccessor<'_> {
    fn named(&self) -> Result<Cow<'_, str>> {
        let accessor = self.accessor.given().map(Cow::Borrowed);
        accessor.ok_or_else(|| VaultError::invalid("missing accessor"))
    }
}

/// The session of a token in a body, if it is valid.
fn session_of(worker: &Worker, caller: &Caller, token: &str) -> Option<std::sync::Arc<Session>> {
    let session = worker.session(&caller.unsealed, token.as_bytes()).ok()?;
    session.check_time(Timestamp::now().ok()?).ok()?;
    Some(session)
}

fn own_data(worker: &Worker, caller: &Caller, headers: &HeaderMap) -> Result<Response> {
    // A token that was verified is text.
    let id = token(headers)?.and_then(|token| std::str::from_utf8(token).ok()).unwrap_or_default();
    Ok(no_store(answer::data(worker, &TokenData::new(id, &caller.session)?)))
}

/// Tell what the caller's token permits, and for how long.
#[utoipa::path(get, path = "/v1/auth/token/lookup-self", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token", body = Envelope<TokenData>), (status = "default", body = VaultErrorBody)))]
async fn transit_lookup_self(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    headers: HeaderMap,
) -> Result<Response> {
    own_data(&worker, &caller, &headers)
}

/// Tell what the caller's token permits, as `lookup-self` does.
#[utoipa::path(get, path = "/v1/auth/token/lookup", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token", body = Envelope<TokenData>), (status = "default", body = VaultErrorBody)))]
async fn transit_lookup_own(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    headers: HeaderMap,
) -> Result<Response> {
    own_data(&worker, &caller, &headers)
}

/// Tell what a token permits, and for how long; the caller's own without `token`. PUT does the
/// same.
#[utoipa::path(post, path = "/v1/auth/token/lookup", tag = "transit", request_body = VaultToken, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token", body = Envelope<TokenData>), (status = "default", body = VaultErrorBody)))]
async fn transit_lookup(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    headers: HeaderMap,
    body: SecretVaultContent,
) -> Result<Response> {
    let request: VaultToken<'_> = body.parse()?;
    let Some(token) = request.given() else { return own_data(&worker, &caller, &headers) };
    let bad = || VaultError::in_words("bad token", crate::error::ApiError::forbidden());
    let session = session_of(&worker, &caller, token).ok_or_else(bad)?;
    Ok(no_store(answer::data(&worker, &TokenData::new(token, &session)?)))
}

/// Tell what a token permits whose accessor the caller has. It was created at
/// `auth/token/create`, from the caller's token or by a caller who may mint. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/lookup-accessor", tag = "transit", request_body = TokenAccessor, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token", body = Envelope<TokenData>), (status = "default", body = VaultErrorBody)))]
async fn transit_lookup_accessor(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    let request: TokenAccessor<'_> = body.parse()?;
    let accessor = request.named()?;
    if is_own(&caller, &accessor) {
        return Ok(answer::data(&worker, &TokenData::new("", &caller.session)?));
    }
    let row = find_row(&worker, &caller, &accessor).await?.ok_or_else(invalid_accessor)?;
    Ok(answer::data(&worker, &row.data(caller.session.authority.tenant.as_str())?))
}

fn is_own(caller: &Caller, accessor: &str) -> bool {
    caller.session.revocation_ids.last().is_some_and(|own| own == accessor)
}

fn invalid_accessor() -> VaultError {
    VaultError::invalid("invalid accessor")
}

/// Vault's words about a token that was made so that nothing renews it.
fn not_renewable() -> VaultError {
    VaultError::invalid("lease is not renewable")
}

/// Answer that the caller's token is not renewed: no token is. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/renew-self", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 204, description = "Never: no token is renewed"), (status = "default", body = VaultErrorBody)))]
async fn transit_renew_self(VaultCaller(_): VaultCaller) -> VaultError {
    not_renewable()
}

/// Answer that a token is not renewed: no token is. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/renew", tag = "transit", request_body = VaultToken, extensions(("x-permission" = json!("caller"))),
    responses((status = 204, description = "Never: no token is renewed"), (status = "default", body = VaultErrorBody)))]
async fn transit_renew(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: SecretVaultContent,
) -> Result<Response> {
    let request: VaultToken<'_> = body.parse()?;
    let token = request.given().ok_or_else(|| VaultError::invalid("missing token ID"))?;
    Err(match session_of(&worker, &caller, token) {
        Some(_) => not_renewable(),
        None => VaultError::invalid("token not found"),
    })
}

/// Answer that a token is not renewed: no token is. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/renew-accessor", tag = "transit", request_body = TokenAccessor, extensions(("x-permission" = json!("caller"))),
    responses((status = 204, description = "Never: no token is renewed"), (status = "default", body = VaultErrorBody)))]
async fn transit_renew_accessor(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    let request: TokenAccessor<'_> = body.parse()?;
    let accessor = request.named()?;
    let is_known = is_own(&caller, &accessor) || find_row(&worker, &caller, &accessor).await?.is_some();
    Err(if is_known { not_renewable() } else { invalid_accessor() })
}

/// Revokes a token, and all tokens that were made from it.
async fn revoke(worker: &Worker, caller: &Caller, revocation: Revocation, by: RevokedBy) -> Result<Response> {
    let service = worker.service.clone();
    // It waits behind no slow work, not even that of the same token, which may be stolen.
    run_off_thread(move || service.revoke(revocation, by)).await??;
    tracing::info!(actor = %caller.session.actor, "a token was revoked");
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Revokes the token of a session.
async fn revoke_session(worker: &Worker, caller: &Caller, session: &Session) -> Result<Response> {
    let authority = &session.authority;
    let id = session.revocation_ids.last().cloned().ok_or_else(|| VaultError::invalid("missing token ID"))?;
    let revocation = Revocation { tenant: Some(authority.tenant.clone()), id, expires: authority.expires };
    revoke(worker, caller, revocation, RevokedBy::Holder).await
}

/// Revoke the caller's token, and all tokens that were made from it. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/revoke-self", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 204, description = "The token is revoked"), (status = "default", body = VaultErrorBody)))]
async fn transit_revoke_self(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
) -> Result<Response> {
    revoke_session(&worker, &caller, &caller.session).await
}

/// Revoke a token that the caller has, and all tokens that were made from it. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/revoke", tag = "transit", request_body = VaultToken, extensions(("x-permission" = json!("caller"))),
    responses((status = 204, description = "The token is revoked, or was no valid one"), (status = "default", body = VaultErrorBody)))]
async fn transit_revoke(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: SecretVaultContent,
) -> Result<Response> {
    let request: VaultToken<'_> = body.parse()?;
    let token = request.given().ok_or_else(|| VaultError::invalid("missing token ID"))?;
    match session_of(&worker, &caller, token) {
        Some(session) => revoke_session(&worker, &caller, &session).await,
        // As in Vault: it is refused anyway.
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// The characters of a revocation id: a signature of Ed25519 in hexadecimal.
const REVOCATION_ID_LEN: usize = 128;

/// Revoke a token whose accessor the caller has, and all tokens that were made from it. PUT does
/// the same.
#[utoipa::path(post, path = "/v1/auth/token/revoke-accessor", tag = "transit", request_body = TokenAccessor, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "There is no such token of the caller's", body = Envelope<Option<String>>),
        (status = 204, description = "The token is revoked"), (status = "default", body = VaultErrorBody)))]
async fn transit_revoke_accessor(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    let request: TokenAccessor<'_> = body.parse()?;
    let accessor = request.named()?;
    if is_own(&caller, &accessor) {
        return revoke_session(&worker, &caller, &caller.session).await;
    }
    let authority = &caller.session.authority;
    let (expires, by) = match find_row(&worker, &caller, &accessor).await? {
        Some(row) if authority.can_mint_tokens => (Some(row.expires), RevokedBy::Minter),
        Some(row) => (Some(row.expires), RevokedBy::Holder),
        // The service does not know the token: it may be one of a login, for example.
        None if authority.can_mint_tokens && is_revocation_id(&accessor) => (None, RevokedBy::Minter),
        None => {
            let warning = "No token found with this accessor".to_owned();
            return Ok(answer::data_and_warnings(&worker, &None::<String>, &[warning]));
        }
    };
    let (tenant, id) = (Some(authority.tenant.clone()), accessor.into_owned());
    revoke(&worker, &caller, Revocation { tenant, id, expires }, by).await
}

fn is_revocation_id(text: &str) -> bool {
    text.len() == REVOCATION_ID_LEN
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
