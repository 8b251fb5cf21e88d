//! Logging in as clients of Vault do: by JWT, and as a pod of Kubernetes.

use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{self, Result, VaultError, VaultErrorBody};
use super::request::{OptionalText, SecretVaultBody};
use crate::api::{MadeLogin, log_in};
use crate::error::ApiErrorCode;
use crate::request::no_store;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(transit_login_jwt)).routes(routes!(transit_login_kubernetes))
}

/// A login.
#[derive(Deserialize, ToSchema)]
struct VaultLogin<'a> {
    /// A role of the settings.
    #[serde(borrow, default)]
    #[schema(value_type = String)]
    role: OptionalText<'a>,
    /// The JWT of the caller.
    #[serde(borrow, default)]
    #[schema(value_type = String)]
    jwt: OptionalText<'a>,
}

/// The answer to a login: as other answers, with `auth` in place of `data`.
#[derive(Serialize, ToSchema)]
struct LoginAnswer {
    /// The request, as the header `X-Request-Id` names it.
    request_id: String,
    /// Always empty.
    lease_id: &'static str,
    /// Always false.
    renewable: bool,
    /// Always 0.
    lease_duration: u64,
    /// Always null.
    data: Option<&'static str>,
    /// Always null.
    wrap_info: Option<&'static str>,
    /// Always null.
    warnings: Option<&'static str>,
    /// The token.
    auth: Auth,
}

/// The token of a caller who has logged in.
#[derive(Serialize, ToSchema)]
struct Auth {
    /// The token.
    client_token: String,
    /// The id that revokes it.
    accessor: String,
    /// The operations that the token permits.
    policies: Vec<&'static str>,
    /// The same.
    token_policies: Vec<&'static str>,
    /// The role, and the caller's name in the audit log.
    metadata: AuthMetadata,
    /// For how many seconds it is valid.
    lease_duration: u64,
    /// Always false: who needs another token logs in again.
    renewable: bool,
    /// Always empty.
    entity_id: &'static str,
    /// Always `service`.
    token_type: &'static str,
    /// Always true.
    orphan: bool,
    /// Always null.
    mfa_requirement: Option<&'static str>,
    /// Always 0: without a bound.
    num_uses: u64,
}

/// What is known of a caller who has logged in.
#[derive(Serialize, ToSchema)]
struct AuthMetadata {
    /// The role.
    role: String,
    /// The caller's name in the audit log.
    holder: String,
}

/// Log in with a JWT.
#[utoipa::path(post, path = "/v1/auth/jwt/login", tag = "transit", request_body = VaultLogin,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The token", body = LoginAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_login_jwt(State(worker): State<Worker>, body: SecretVaultBody) -> Result<Response> {
    // Vault calls a JWT that it refuses a bad request, and says why.
    let refused = |error: VaultError| {
        let words = error.message().to_owned();
        if error.code() == ApiErrorCode::Forbidden.as_str() {
            error.with_words(words).into_bad_request()
        } else {
            error
        }
    };
    logged_in(&worker, &body).await.map_err(refused)
}

/// Log in as a pod, with the JWT of its service account.
#[utoipa::path(post, path = "/v1/auth/kubernetes/login", tag = "transit", request_body = VaultLogin,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The token", body = LoginAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_login_kubernetes(State(worker): State<Worker>, body: SecretVaultBody) -> Result<Response> {
    logged_in(&worker, &body).await
}

async fn logged_in(worker: &Worker, body: &SecretVaultBody) -> Result<Response> {
    let VaultLogin { role, jwt } = body.parse()?;
    let jwt = jwt.given().ok_or_else(|| VaultError::invalid("missing token"))?;
    let role = role.given().ok_or_else(|| VaultError::invalid("missing role"))?;
    let MadeLogin { token, revocation_id, holder, role, .. } = log_in(worker, role, jwt).await?;
    let policies: Vec<_> = role.operations.iter().copied().map(TokenOperation::as_str).collect();
    let auth = Auth {
        client_token: token,
        accessor: revocation_id,
        token_policies: policies.clone(),
        policies,
        metadata: AuthMetadata { role: role.name.to_string(), holder },
        lease_duration: role.lifetime_seconds,
        renewable: false,
        entity_id: "",
        token_type: "service",
        orphan: true,
        mfa_requirement: None,
        num_uses: 0,
    };
    let answer = LoginAnswer {
        request_id: worker.service.next_request_id(),
        lease_id: "",
        renewable: false,
        lease_duration: 0,
        data: None,
        wrap_info: None,
        warnings: None,
        auth,
    };
    Ok(no_store(answer::bare(axum::http::StatusCode::OK, &answer)))
}
