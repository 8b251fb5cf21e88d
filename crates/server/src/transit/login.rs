//! Logging in as clients of Vault do: by JWT, and as a pod of Kubernetes.

use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Result, VaultError, VaultErrorBody};
use super::auth::{Auth, AuthAnswer};
use super::request::{OptionalText, SecretVaultBody};
use crate::api::{MadeLogin, log_in};
use crate::error::ApiErrorCode;
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

/// Log in with a JWT.
#[utoipa::path(post, path = "/v1/auth/jwt/login", tag = "transit", request_body = VaultLogin,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
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
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_login_kubernetes(State(worker): State<Worker>, body: SecretVaultBody) -> Result<Response> {
    logged_in(&worker, &body).await
}

async fn logged_in(worker: &Worker, body: &SecretVaultBody) -> Result<Response> {
    let VaultLogin { role, jwt } = body.parse()?;
    let jwt = jwt.given().ok_or_else(|| VaultError::invalid("missing token"))?;
    let role = role.given().ok_or_else(|| VaultError::invalid("missing role"))?;
    let MadeLogin { token, revocation_id, holder, role, .. } = log_in(worker, role, jwt).await?;
    let policies = role.operations.iter().copied().map(TokenOperation::as_str).collect();
    let mut auth = Auth::new(token, revocation_id, policies, role.lifetime_seconds);
    auth.metadata = Some([("role", role.name.to_string()), ("holder", holder)].into());
    Ok(auth.answer(worker, role.tenant, Vec::new()))
}
