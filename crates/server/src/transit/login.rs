//! Logging in as clients of Vault do: by JWT, as a pod of Kubernetes, with a client certificate.

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{Result, VaultError, VaultErrorBody};
use super::auth::{Auth, AuthAnswer};
use super::request::{NamespaceOf, OptionalText, SecretVaultBody};
use super::tokens::policy_names;
use crate::api::{MadeLogin, log_in, mint_login};
use crate::error::ApiErrorCode;
use crate::request::{ConnectionCaller, Namespace};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_login_jwt).map(|router| router.put(erased(transit_login_jwt))))
        .routes(routes!(transit_login_kubernetes).map(|router| router.put(erased(transit_login_kubernetes))))
        .routes(
            routes!(transit_login_certificate).map(|router| router.put(erased(transit_login_certificate))),
        )
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
async fn transit_login_jwt(
    State(worker): State<Worker>,
    namespace: NamespaceOf,
    body: SecretVaultBody,
) -> Result<Response> {
    // Vault calls a JWT that it refuses a bad request, and says why.
    let refused = |error: VaultError| {
        let words = error.message().to_owned();
        if error.code() == ApiErrorCode::Forbidden.as_str() {
            error.with_words(words).into_bad_request()
        } else {
            error
        }
    };
    logged_in(&worker, namespace, &body).await.map_err(refused)
}

/// Log in as a pod, with the JWT of its service account.
#[utoipa::path(post, path = "/v1/auth/kubernetes/login", tag = "transit", request_body = VaultLogin,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_login_kubernetes(
    State(worker): State<Worker>,
    namespace: NamespaceOf,
    body: SecretVaultBody,
) -> Result<Response> {
    logged_in(&worker, namespace, &body).await
}

async fn logged_in(
    worker: &Worker,
    NamespaceOf(namespace): NamespaceOf,
    body: &SecretVaultBody,
) -> Result<Response> {
    let VaultLogin { role, jwt } = body.parse()?;
    let jwt = jwt.given().ok_or_else(|| VaultError::invalid("missing token"))?;
    let role = role.given().ok_or_else(|| VaultError::invalid("missing role"))?;
    let MadeLogin { token, revocation_id, holder, role, .. } =
        log_in(worker, namespace.as_ref().map(Namespace::as_str), role, jwt).await?;
    let policies = policy_names(&role.policies, role.operations.iter().copied());
    let mut auth = Auth::new(token, revocation_id, policies, role.lifetime_seconds);
    auth.metadata = Some([("role".to_owned(), role.name.to_string()), ("holder".to_owned(), holder)].into());
    Ok(auth.answer(worker, role.tenant, Vec::new()))
}

/// A login with a client certificate.
#[derive(Deserialize, ToSchema)]
struct CertificateLogin<'a> {
    /// A role of the settings; the first that accepts the certificate when absent.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    name: OptionalText<'a>,
}

/// Log in with the client certificate of the connection. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/cert/login", tag = "transit", request_body = CertificateLogin,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_login_certificate(
    State(worker): State<Worker>,
    NamespaceOf(namespace): NamespaceOf,
    connection: ConnectionCaller,
    body: SecretVaultBody,
) -> Result<Response> {
    let request: CertificateLogin<'_> = body.parse()?;
    let refused = || VaultError::invalid("invalid certificate or no client certificate supplied");
    let chain = connection.certificate_chain()?.ok_or_else(refused)?;
    let logins = worker.service.logins();
    let namespace = namespace.as_ref().map(Namespace::as_str);
    let found = logins.login_by_certificate(namespace, request.name.given(), &chain);
    let (role, names, holder) = found.ok_or_else(refused)?;
    let MadeLogin { token, revocation_id, role, .. } = mint_login(&worker, role.token(), holder).await?;
    let policies = policy_names(&role.policies, role.operations.iter().copied());
    let mut auth = Auth::new(token, revocation_id, policies, role.lifetime_seconds);
    let shown = [
        ("cert_name", role.name.as_str()),
        ("common_name", names.common_name()),
        ("serial_number", names.serial_number.as_str()),
    ];
    auth.metadata = Some(shown.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    Ok(auth.answer(&worker, role.tenant, Vec::new()))
}
