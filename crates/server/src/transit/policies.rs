//! `/v1/sys/policies/acl` and the older `/v1/sys/policy`: the policies of the caller's tenant.
//!
//! They are files of the settings, so nothing here changes them.

use crate::request::handler::{erased, routes};
use axum::extract::{Query, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::get;
use bulla_kms::Name;
use bulla_kms::token::TokenOperation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::request::{PathName, VaultCaller};
use crate::error::{ApiError, ApiErrorCode};
use crate::request::Caller;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    let listed = get(erased(policies_list)).fallback(erased(policies_other_method));
    let old_listed = get(erased(policies_old_list)).fallback(erased(policies_old_other_method));
    OpenApiRouter::new()
        .route("/v1/sys/policies/acl/", listed)
        .route("/v1/sys/policy/", old_listed)
        .routes(routes!(policies_list).map(|router| router.fallback(erased(policies_other_method))))
        .routes(routes!(policies_read).map(|router| router.fallback(erased(policies_unchanged))))
        .routes(routes!(policies_old_list).map(|router| router.fallback(erased(policies_old_other_method))))
        .routes(routes!(policies_old_read).map(|router| router.fallback(erased(policies_unchanged))))
}

/// The names of policies.
#[derive(Serialize, ToSchema)]
struct PolicyNames {
    /// The names.
    keys: Vec<String>,
    /// The same, in the older endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<Vec<String>>,
}

/// A policy.
#[derive(Serialize, ToSchema)]
struct PolicyText {
    /// Its name.
    name: String,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The same, in the older endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
}

/// How a GET asks for a list.
#[derive(Deserialize, utoipa::IntoParams)]
struct PolicyListQuery {
    /// `true`: GET then does what the method LIST does.
    list: Option<String>,
}

fn names(worker: &Worker, caller: &Caller) -> Result<Vec<String>> {
    caller.session.check_tenant(TokenOperation::Read)?;
    let names = worker.service.policies().names(&caller.session.authority.tenant);
    Ok(names.iter().map(Name::to_string).collect())
}

fn text(worker: &Worker, caller: &Caller, name: &str) -> Result<String> {
    caller.session.check_tenant(TokenOperation::Read)?;
    let tenant = &caller.session.authority.tenant;
    let found = name.parse().ok().and_then(|name| worker.service.policies().get(tenant, &name));
    let found = found.ok_or_else(|| VaultError::empty_not_found(format!("there is no policy {name:?}")))?;
    Ok(found.text.clone())
}

fn wrong_method(method: &Method) -> VaultError {
    let message = format!("policies are files of the settings: the method {method} changes none");
    ApiError::new(ApiErrorCode::MethodNotAllowed, message).into()
}

/// List the policies of the caller's tenant. LIST does the same.
#[utoipa::path(get, path = "/v1/sys/policies/acl", tag = "transit", params(PolicyListQuery), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The names", body = Envelope<PolicyNames>), (status = "default", body = VaultErrorBody)))]
async fn policies_list(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    Query(query): Query<PolicyListQuery>,
) -> Result<Response> {
    let keys = names(&worker, &caller)?;
    let wants = |text: &String| ["true", "t", "1"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if !query.list.as_ref().is_some_and(wants) {
        let message = "list policies with the method LIST, or with GET and list=true";
        return Err(ApiError::new(ApiErrorCode::MethodNotAllowed, message).into());
    }
    Ok(answer::data(&worker, &PolicyNames { keys, policies: None }))
}

async fn policies_other_method(
    method: Method,
    State(worker): State<Worker>,
    caller: Result<VaultCaller>,
) -> Result<Response> {
    if method.as_str() != "LIST" {
        return Err(wrong_method(&method));
    }
    let VaultCaller(caller) = caller?;
    let keys = names(&worker, &caller)?;
    Ok(answer::data(&worker, &PolicyNames { keys, policies: None }))
}

async fn policies_unchanged(method: Method) -> VaultError {
    wrong_method(&method)
}

/// Read a policy of the caller's tenant.
#[utoipa::path(get, path = "/v1/sys/policies/acl/{policy}", tag = "transit",
    params(("policy" = String, Path, description = "A policy of the settings, or `default`", example = "default")),
    extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The policy", body = Envelope<PolicyText>), (status = "default", body = VaultErrorBody)))]
async fn policies_read(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let policy = Some(text(&worker, &caller, &name)?);
    Ok(answer::data(&worker, &PolicyText { name, policy, rules: None }))
}

/// List the policies of the caller's tenant, as older clients do. LIST does the same.
#[utoipa::path(get, path = "/v1/sys/policy", tag = "transit", extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The names", body = Envelope<PolicyNames>), (status = "default", body = VaultErrorBody)))]
async fn policies_old_list(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
) -> Result<Response> {
    let keys = names(&worker, &caller)?;
    Ok(answer::data(&worker, &PolicyNames { policies: Some(keys.clone()), keys }))
}

async fn policies_old_other_method(
    method: Method,
    worker: State<Worker>,
    caller: Result<VaultCaller>,
) -> Result<Response> {
    if method.as_str() != "LIST" {
        return Err(wrong_method(&method));
    }
    policies_old_list(worker, caller?).await
}

/// Read a policy of the caller's tenant, as older clients do.
#[utoipa::path(get, path = "/v1/sys/policy/{policy}", tag = "transit",
    params(("policy" = String, Path, description = "A policy of the settings, or `default`", example = "default")),
    extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The policy", body = Envelope<PolicyText>), (status = "default", body = VaultErrorBody)))]
async fn policies_old_read(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let rules = Some(text(&worker, &caller, &name)?);
    Ok(answer::data(&worker, &PolicyText { name, policy: None, rules }))
}
