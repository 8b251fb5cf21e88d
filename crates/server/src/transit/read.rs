//! `/v1/transit/keys`: reading and listing.

#![allow(unused_qualifications, reason = "what utoipa makes of the parameters of a query has them")]

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use bulla_kms::KeyId;
use bulla_kms::token::TokenOperation;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use super::envelope::{self, Envelope};
use super::error::{Result, VaultError, VaultErrorBody};
use super::extract::{By, Named};
use super::key::{NAME, find, is_visible};
use super::view::KeyData;
use crate::error::{ApiError, ApiErrorCode};
use crate::request::Caller;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    let listed = axum::routing::get(transit_list).fallback(list_method);
    OpenApiRouter::new()
        .routes(routes!(transit_list).map(|router| router.fallback(list_method)))
        .route("/v1/transit/keys/", listed)
        .routes(routes!(transit_read))
}

/// How Vault's clients ask for a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// `true`, in any case: clients that cannot send the method LIST send GET with this.
    list: Option<String>,
}

/// The names of keys.
#[derive(Serialize, ToSchema)]
pub(super) struct KeyNames {
    /// The names, sorted. Keys without a label have none and are not here.
    keys: Vec<String>,
}

/// List the names of the keys that the caller may read. The method LIST does the same. No key at
/// all is 404, as in Vault.
#[utoipa::path(get, path = "/v1/transit/keys", tag = "transit", params(ListQuery), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The names", body = Envelope<KeyNames>), (status = "default", body = VaultErrorBody)))]
async fn transit_list(
    State(worker): State<Worker>,
    By(caller): By,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response> {
    check(&caller)?;
    let Query(query) = query.map_err(|_| VaultError::invalid("`list` is given more than once"))?;
    // Python's clients send `True`.
    let wants = |text: &String| ["true", "t", "1"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if !query.list.as_ref().is_some_and(wants) {
        return Err(ApiError::new(
            ApiErrorCode::MethodNotAllowed,
            "list keys with the method LIST, or with GET and list=true",
        )
        .into());
    }
    list(&worker, &caller).await
}

/// The method LIST. HTTP does not define it.
async fn list_method(method: Method, State(worker): State<Worker>, caller: Result<By>) -> Response {
    if method.as_str() != "LIST" {
        let message = format!("/v1/transit/keys does not take the method {method}");
        return VaultError::from(ApiError::new(ApiErrorCode::MethodNotAllowed, message)).into_response();
    }
    match caller {
        Ok(By(caller)) => list(&worker, &caller).await.into_response(),
        Err(error) => error.into_response(),
    }
}

/// # Errors
/// The caller may read no key.
fn check(caller: &Caller) -> Result<()> {
    let may_read = caller.session.authority.operations.contains(TokenOperation::Read);
    if may_read { Ok(()) } else { Err(ApiError::forbidden().into()) }
}

async fn list(worker: &Worker, caller: &Caller) -> Result<Response> {
    check(caller)?;
    let session = Arc::clone(&caller.session);
    let found = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let authority = &session.authority;
        let may_read = |key: &KeyId| is_visible(key) && authority.permits(TokenOperation::Read, key);
        let found = keystore.list_page(&authority.tenant, None, usize::MAX, &may_read);
        let names = found.into_iter().filter_map(|key| key.label.map(|label| label.to_string()));
        Ok(names.collect::<Vec<_>>())
    });
    let mut keys = found.await?;
    if keys.is_empty() {
        return Err(VaultError::nothing_there("the caller may read no key with a label"));
    }
    keys.sort_unstable();
    Ok(envelope::data(worker, &KeyNames { keys }))
}

/// Read a key.
#[utoipa::path(get, path = "/v1/transit/keys/{name}", tag = "transit", params(("name" = String, Path, description = NAME)),
    extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The key", body = Envelope<KeyData>), (status = "default", body = VaultErrorBody)))]
async fn transit_read(
    State(worker): State<Worker>,
    By(caller): By,
    Named(name): Named<String>,
) -> Result<Response> {
    let missing = || VaultError::nothing_there("the tenant has no key of this name");
    let key_id = find(&caller, &name, TokenOperation::Read, missing)?;
    Ok(envelope::data(&worker, &KeyData::from(&caller.unsealed.keystore.attest(&key_id)?)))
}
