//! Capability tokens: minting, attenuating and revoking them.

use std::num::NonZeroU64;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::{Grant, GrantedKeys, Holder, TOKEN_ROOT_PURPOSE, Token, TokenLimits, TokenOperation};
use bulla_kms::{Code, KeyId, KeySelector, Keystore, Name, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use crate::cluster::Revocation;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, List, parse, token};
use crate::service::{RevokedBy, Worker, run_off_thread};

/// What changes nothing in the keystore.
pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(own)).routes(routes!(attenuate))
}

/// Endpoints that change the keystore or the list of revoked tokens.
pub(crate) fn changes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(mint)).routes(routes!(revoke))
}

/// The keys that a token is for. With more names it would be longer than a token may be.
type NamedKeys = List<String, 256>;

/// A token to mint.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MintToken {
    /// What the token permits. The caller must be permitted it, too.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 32, example = json!(["sign", "verify"]))]
    operations: List<TokenOperation, 32>,
    /// The keys, by their labels or names. When absent: all keys of the tenant, and the operations
    /// that concern no key.
    #[schema(value_type = Option<Vec<String>>, max_items = 256, example = json!(["invoices"]))]
    keys: Option<NamedKeys>,
    /// The token's lifetime. It cannot be made longer later.
    #[schema(value_type = u64, minimum = 1, example = 3600)]
    expires_in_seconds: NonZeroU64,
    /// The name of the person or program that gets it, for the audit log and for approvers: 1 to 96
    /// printable ASCII characters without spaces.
    #[schema(example = "ann")]
    holder: Option<String>,
}

/// A token. It works for anyone who holds it.
#[derive(Serialize, ToSchema)]
struct Minted {
    /// The token. The service does not keep it.
    token: String,
    /// The id that revokes it, and all tokens that are made from it.
    revocation_id: String,
    /// When it expires, at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    expires: Option<String>,
}

/// Mint a token of the caller's tenant.
///
/// Only callers that the configuration names can be permitted this, never the holder of a token. If
/// the tenant has no root key yet, it gets one: the key with the label `tokens`.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", request_body = MintToken,
    extensions(("x-permission" = json!("minter"))),
    responses((status = 201, description = "The token", body = Minted), (status = "default", body = ErrorBody)))]
async fn mint(State(worker): State<Worker>, caller: Caller, BodyBytes(body): BodyBytes) -> Result<Response> {
    let authority = &caller.session.authority;
    if !authority.can_mint_tokens {
        return Err(ApiError::forbidden());
    }
    let MintToken { operations, keys, expires_in_seconds, holder } = parse(&body)?;
    let holder = holder.map(|holder| holder.parse::<Holder>()).transpose()?;
    let operations: Vec<_> = operations.into();
    let expires = from_now(expires_in_seconds)?;
    let keys = match keys {
        Some(keys) => GrantedKeys::These(key_ids(&caller, &keys, &operations)?),
        // A caller grants no more than it has.
        None if operations.iter().all(|operation| authority.permits_in_tenant(*operation)) => {
            GrantedKeys::All
        }
        None => return Err(ApiError::forbidden()),
    };
    let mut grant = Grant::new(authority.tenant.clone(), keys, operations, expires);
    grant.holder = holder;
    let minted = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        ensure_root(keystore, &grant.tenant)?;
        let token = keystore.mint_token(&grant)?;
        minted(&token, Some(expires))
    });
    Ok(secret(StatusCode::CREATED, minted.await?))
}

/// Makes the tenant's root key, if it has none.
pub(crate) fn ensure_root(keystore: &Keystore, tenant: &Name) -> bulla_kms::Result<()> {
    if keystore.find(tenant, &TOKEN_ROOT_PURPOSE.parse()?)?.is_some() {
        return Ok(());
    }
    match keystore.create_token_root(tenant) {
        // Another request was first.
        Err(error) if error.code == Code::LabelTaken => Ok(()),
        made => made.map(drop),
    }
}

/// The id that revokes a token, and all tokens that are made from it.
pub(super) fn last_revocation_id(token: &Token) -> bulla_kms::Result<String> {
    Ok(token.revocation_ids()?.pop().unwrap_or_default())
}

fn minted(token: &Token, expires: Option<Timestamp>) -> bulla_kms::Result<Minted> {
    Ok(Minted {
        token: token.expose().to_owned(),
        revocation_id: last_revocation_id(token)?,
        expires: expires.map(|expires| expires.to_string()),
    })
}

/// An answer that nobody keeps.
fn secret(status: StatusCode, minted: Minted) -> Response {
    let mut response = (status, Json(minted)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The time that long from now.
fn from_now(seconds: NonZeroU64) -> Result<Timestamp> {
    let millis = seconds.get().saturating_mul(1000);
    Ok(Timestamp::from_unix_millis(Timestamp::now()?.unix_millis().saturating_add(millis))?)
}

/// The key with a label or a name; none if the tenant has no key with the label.
///
/// # Errors
/// The text is neither.
pub(super) fn find_key(keystore: &Keystore, tenant: &Name, text: &str) -> bulla_kms::Result<Option<KeyId>> {
    if text.contains('/') {
        return Ok(Some(text.parse::<KeySelector>()?.as_ref().key_id().clone()));
    }
    keystore.find(tenant, &text.parse()?)
}

/// The keys that a caller names, with which it may do all of `operations`.
///
/// # Errors
/// It may not, or one of them does not exist.
fn key_ids(caller: &Caller, keys: &[String], operations: &[TokenOperation]) -> Result<Vec<KeyId>> {
    let (authority, keystore) = (&caller.session.authority, &caller.unsealed.keystore);
    let key_id = |text: &String| {
        let key_id = find_key(keystore, &authority.tenant, text)?.ok_or_else(ApiError::forbidden)?;
        // Without operations, too, nobody learns whether the key of another tenant exists.
        let may = operations.iter().all(|operation| authority.permits(*operation, &key_id));
        if !may || !authority.is_about(&key_id) {
            return Err(ApiError::forbidden());
        }
        keystore.latest_version_id(&key_id)?;
        Ok(key_id)
    };
    keys.iter().map(key_id).collect()
}

/// Restrictions of a token. An absent field restricts nothing.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AttenuateToken {
    /// Only these operations.
    #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 32, example = json!(["sign"]))]
    operations: Option<List<TokenOperation, 32>>,
    /// Only these keys, by their labels or names.
    #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 256, example = json!(["invoices"]))]
    keys: Option<NamedKeys>,
    /// No longer than this.
    #[schema(value_type = Option<u64>, minimum = 1, example = 60)]
    expires_in_seconds: Option<NonZeroU64>,
}

/// Make a weaker token from the caller's own.
///
/// The holder of a token can do the same without the service: `bulla token attenuate`.
#[utoipa::path(post, path = "/api/v1/tokens/attenuate", tag = "tokens", request_body = AttenuateToken,
    extensions(("x-permission" = json!("caller"))),
    responses((status = 201, description = "The weaker token", body = Minted), (status = "default", body = ErrorBody)))]
async fn attenuate(
    State(worker): State<Worker>,
    caller: Caller,
    headers: HeaderMap,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let none = || ApiError::malformed("the request carries no token that could be attenuated");
    let own = std::str::from_utf8(token(&headers)?.ok_or_else(none)?).map_err(|_| ApiError::forbidden())?;
    let own: Token = own.parse()?;
    let AttenuateToken { operations, keys, expires_in_seconds } = parse(&body)?;
    let keys =
        keys.map(|keys| key_ids(&caller, &keys, operations.as_deref().unwrap_or_default())).transpose()?;
    let expires = expires_in_seconds.map(from_now).transpose()?;
    let until = [caller.session.authority.expires, expires].into_iter().flatten().min();
    let limits = TokenLimits::default().keys(keys).operations(operations.map(Into::into)).expires(expires);
    let made = worker
        .run_blocking(&caller.unsealed, &caller.session, move |_| minted(&own.attenuate(&limits)?, until));
    Ok(secret(StatusCode::CREATED, made.await?))
}

/// What a caller's credential permits.
#[derive(Serialize, ToSchema)]
struct OwnAuthority {
    /// The caller's name in the audit log.
    name: String,
    /// Whose keys.
    tenant: String,
    /// What the caller may do.
    #[schema(value_type = Vec<String>)]
    operations: Vec<TokenOperation>,
    /// The keys. None means all keys of the tenant, and the operations that concern no key.
    keys: Option<Vec<String>>,
    /// When they end; none for a caller without a token.
    expires: Option<String>,
    /// Whether the caller may mint tokens, and revoke those of others.
    can_mint_tokens: bool,
    /// The ids that revoke the token: the last id names this token, the others those that it was
    /// made from.
    revocation_ids: Vec<String>,
}

/// Read what the caller's credential permits.
#[utoipa::path(get, path = "/api/v1/tokens/self", tag = "tokens", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "What the credential permits", body = OwnAuthority), (status = "default", body = ErrorBody)))]
async fn own(caller: Caller) -> Json<OwnAuthority> {
    let (session, authority) = (&caller.session, &caller.session.authority);
    Json(OwnAuthority {
        name: session.actor.to_string(),
        tenant: authority.tenant.to_string(),
        operations: TokenOperation::ALL
            .iter()
            .copied()
            .filter(|one| authority.operations.contains(*one))
            .collect(),
        keys: authority.keys.as_ref().map(|keys| keys.iter().map(ToString::to_string).collect()),
        expires: authority.expires.map(|expires| expires.to_string()),
        can_mint_tokens: authority.can_mint_tokens,
        revocation_ids: session.revocation_ids.clone(),
    })
}

/// Which token to revoke.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RevokeToken {
    /// The revocation id of another token of the caller's tenant; only callers that may mint
    /// tokens name one. The caller's own token when absent.
    #[schema(pattern = "^([0-9a-f]{2})+$")]
    revocation_id: Option<String>,
    /// When that token expires: more than a day later the service forgets the id. Without it, the
    /// id is kept for good, and no later request changes that. Of two times, the later one counts.
    #[schema(value_type = Option<String>, example = "2026-01-31T09:30:00.000Z")]
    expires: Option<Timestamp>,
}

/// A revoked token.
#[derive(Serialize, ToSchema)]
struct RevokedToken {
    /// The revocation id.
    revocation_id: String,
}

/// The longest revocation id: twice that of today.
const MAX_REVOCATION_ID_LEN: usize = 256;

/// Revoke a token, and all tokens that were made from it.
///
/// They are refused from the next request on, also after the service is started again.
/// A revocation concerns tokens of the caller's tenant alone.
#[utoipa::path(post, path = "/api/v1/tokens/revoke", tag = "tokens", request_body = RevokeToken,
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token is revoked", body = RevokedToken), (status = "default", body = ErrorBody)))]
async fn revoke(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<Json<RevokedToken>> {
    let RevokeToken { revocation_id, expires } = parse(&body)?;
    let session = &caller.session;
    let (id, expires, by) = match revocation_id {
        Some(_) if !session.authority.can_mint_tokens => return Err(ApiError::forbidden()),
        Some(id) => {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if id.is_empty()
                || id.len() > MAX_REVOCATION_ID_LEN
                || id.len() % 2 != 0
                || !id.bytes().all(is_digit)
            {
                return Err(ApiError::malformed("a revocation id is lower-case hexadecimal"));
            }
            (id, expires, RevokedBy::Minter)
        }
        None => {
            let none = || ApiError::malformed("the request carries no token: name one by `revocation_id`");
            let own = session.revocation_ids.last().cloned().ok_or_else(none)?;
            // For its own token, the caller's time does not count: the token itself says when it
            // expires.
            (own, session.authority.expires, RevokedBy::Holder)
        }
    };
    let tenant = Some(session.authority.tenant.clone());
    let (service, revoked) =
        (std::sync::Arc::clone(&worker.service), Revocation { tenant, id: id.clone(), expires });
    // It waits behind no slow work, not even that of the same token, which may be stolen.
    run_off_thread(move || service.revoke(revoked, by)).await??;
    tracing::info!(actor = %session.actor, "a token was revoked");
    Ok(Json(RevokedToken { revocation_id: id }))
}
