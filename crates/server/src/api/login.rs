//! Logging in with a JWT: a token for minutes.

use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::{Grant, GrantedKeys, Holder, TOKEN_ROOT_PURPOSE, TokenOperation};
use bulla_kms::{Code, Keystore, KmsError, Name, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::tokens::{ensure_root, find_key, last_revocation_id};
use crate::access::{Authority, Session};
use crate::config::RoleToken;
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::login::{LoggedIn, OneTimeJwt, Refusal};
use crate::policy::with_default;
use crate::request::{SecretProof, parse};
use crate::service::{BatchCost, RowInsertion, Worker};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(login))
}

/// A login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LogIn {
    /// A role of the settings. `TENANT/ROLE` is that of one tenant, if others have a role of the
    /// same name.
    #[schema(example = "release")]
    role: String,
    /// The JWT that an issuer of the settings has made for the caller.
    jwt: String,
}

/// The token of a caller who has logged in.
#[derive(Serialize, ToSchema)]
struct LoginToken {
    /// The token. The service does not keep it.
    token: String,
    /// The id that revokes it, and all tokens that are made from it.
    revocation_id: String,
    /// When it expires.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    expires: String,
    /// The caller's name in the audit log: the issuer's name, and the subject of the JWT.
    #[schema(example = "github/repo:acme/app:ref:refs/tags/v1")]
    holder: String,
    /// What the token permits.
    #[schema(value_type = Vec<String>, example = json!(["sign"]))]
    operations: Vec<TokenOperation>,
}

/// Log in with a JWT.
///
/// The settings name issuers of JWTs, for example a CI system, and roles: which JWTs give which
/// token. A refused login says why only if the issuer has signed the JWT.
#[utoipa::path(post, path = "/api/v1/login", tag = "tokens", request_body = LogIn,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 201, description = "The token", body = LoginToken), (status = "default", body = ErrorBody)))]
async fn login(State(worker): State<Worker>, body: SecretProof) -> Result<Response> {
    let LogIn { role, jwt } = parse(&body)?;
    let (tenant, role) = match role.split_once('/') {
        Some((tenant, role)) => (Some(tenant), role),
        None => (None, role.as_str()),
    };
    let made = log_in(&worker, tenant, role, &jwt).await?;
    let answer = LoginToken {
        token: made.token,
        revocation_id: made.revocation_id,
        expires: made.expires.to_string(),
        holder: made.holder,
        operations: made.role.operations,
    };
    let mut response = (StatusCode::CREATED, Json(answer)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What a login makes.
pub(crate) struct MadeLogin {
    pub(crate) token: String,
    pub(crate) revocation_id: String,
    pub(crate) expires: Timestamp,
    pub(crate) holder: String,
    pub(crate) role: RoleToken,
}

/// Verifies a JWT, and mints the token of the role. Without a tenant, only one may have a role of
/// this name.
///
/// # Errors
/// The login is refused; the service is sealed; a key of the role does not exist.
pub(crate) async fn log_in(
    worker: &Worker,
    tenant: Option<&str>,
    role: &str,
    jwt: &str,
) -> Result<MadeLogin> {
    let logins = worker.service.logins();
    let LoggedIn { role, holder, once } = logins.login(tenant, role, jwt).await.map_err(refused)?;
    if let Some(jwt) = once {
        use_once(worker, jwt, role.tenant.clone()).await?;
    }
    mint_login(worker, role.token(), holder).await
}

/// Remembers that a JWT was used.
///
/// # Errors
/// It was used before, on this node or on another one; that cannot be remembered.
async fn use_once(worker: &Worker, jwt: OneTimeJwt, tenant: Name) -> Result<()> {
    let (service, unsealed) = (Arc::clone(&worker.service), worker.service.unsealed()?);
    let queue = format!("used JWTs {tenant}");
    let insertion = worker.run_anonymous(&queue, move || {
        let OneTimeJwt { issuer, id, expires } = jwt;
        service.rows.use_jwt(&unsealed.keystore, (&issuer, &tenant), &id, expires)
    });
    match insertion.await? {
        RowInsertion::Added => Ok(()),
        RowInsertion::Exists => Err(refused(Refusal::NotPermitted("the JWT was used before".to_owned()))),
    }
}

/// Mints the token of a role for a caller who has logged in.
///
/// # Errors
/// The service is sealed; a key of the role does not exist.
pub(crate) async fn mint_login(worker: &Worker, role: RoleToken, holder: Holder) -> Result<MadeLogin> {
    let unsealed = worker.service.unsealed()?;
    let role = with_policies(worker, role);
    let now = Timestamp::now()?.unix_millis();
    let expires =
        Timestamp::from_unix_millis(now.saturating_add(role.lifetime_seconds.saturating_mul(1000)))?;
    let authority = Authority {
        tenant: role.tenant.clone(),
        operations: role.operations.iter().collect(),
        keys: None,
        policies: Vec::new(),
        expires: Some(expires),
        can_mint_tokens: false,
    };
    // The audit log names who logs in as the one who makes the token.
    let session = Session {
        authority,
        home: None,
        actor: holder.as_str().parse()?,
        limiter: None,
        quota: worker.service.quotas().of(&role.tenant),
        revocation_ids: Vec::new(),
        acls: Vec::new(),
    };
    session.count(1)?;
    let session = Arc::new(session);
    let cost = BatchCost::quick_if(mints_quickly(&unsealed.keystore, &role.tenant)?);
    let minting = worker.run_at_cost(&unsealed, &session, cost, move |keystore| {
        let keys = granted_keys(keystore, &role)?;
        ensure_root(keystore, &role.tenant)?;
        let grant = Grant::new(role.tenant.clone(), keys, role.operations.clone(), expires);
        let grant = grant.policies(role.policies.clone()).holder(holder.clone());
        let token = keystore.mint_token(&grant)?;
        let revocation_id = last_revocation_id(&token)?;
        let token = token.expose().to_owned();
        Ok(MadeLogin { token, revocation_id, expires, holder: holder.to_string(), role })
    });
    let made = minting.await?;
    tracing::info!(role = %made.role.name, holder = made.holder, id = &made.revocation_id[..16], "a caller has logged in");
    Ok(made)
}

/// Whether a token of the tenant is minted within microseconds: its root key is there, and signs
/// without a device and without a change of the keystore.
fn mints_quickly(keystore: &Keystore, tenant: &Name) -> bulla_kms::Result<bool> {
    let root = keystore.find(tenant, &TOKEN_ROOT_PURPOSE.parse()?)?;
    Ok(root.is_some_and(|root| keystore.signs_quickly(&root)))
}

/// A role with the operations that its policies reach, and with the policy `default`.
pub(crate) fn with_policies(worker: &Worker, mut role: RoleToken) -> RoleToken {
    if !role.policies.is_empty() {
        role.policies = with_default(role.policies);
        role.operations = worker.service.policies().operations(&role.tenant, &role.policies);
    }
    role
}

/// The error for a refused login.
fn refused(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::NotProven(reason) => {
            tracing::debug!("a login is refused: {reason}");
            ApiError::new(ApiErrorCode::Forbidden, "the login is refused: the service's log says why")
        }
        Refusal::NotPermitted(reason) => {
            tracing::info!("a login is refused: {reason}");
            ApiError::new(ApiErrorCode::Forbidden, format!("the login is refused: {reason}"))
        }
        Refusal::NoKeys => {
            let message = "the keys of the issuer cannot be fetched: the service's log says why";
            KmsError::new(Code::Unavailable, message).into()
        }
        Refusal::NoReview => {
            let message = "the cluster gives no verdict about the JWT: the service's log says why";
            KmsError::new(Code::Unavailable, message).into()
        }
    }
}

/// The keys of a role, by their labels or names.
fn granted_keys(keystore: &Keystore, role: &RoleToken) -> bulla_kms::Result<GrantedKeys> {
    let Some(keys) = &role.keys else { return Ok(GrantedKeys::All) };
    let key_id = |text: &String| {
        find_key(keystore, &role.tenant, text)?.ok_or_else(|| {
            let message = format!("the role {}: there is no key {text}", role.name);
            KmsError::new(Code::KeyNotFound, message)
        })
    };
    Ok(GrantedKeys::These(keys.iter().map(key_id).collect::<bulla_kms::Result<_>>()?))
}
