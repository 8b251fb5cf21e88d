//! Closing the keystore, and opening it again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bulla_kms::SecretString;
use bulla_kms::token::Operation;
use hyper::body::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroize as _;

use super::scope::check_operator;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{Caller, Content, parse};
use crate::service::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(seal)).routes(routes!(unseal))
}

/// Whether the keystore is closed.
#[derive(Serialize, ToSchema)]
struct SealState {
    /// Whether the keystore is closed, and waits to be unsealed.
    sealed: bool,
}

/// Close the keystore.
///
/// From the next request on, every endpoint that needs the keystore answers that the service is sealed. Requests that are being answered
/// end as usual. A keystore that opens with a passphrase can be unsealed; with another one, the service must be started again.
// It stops every key at once, as disabling each of them would, and disabling needs the permission to update.
#[utoipa::path(post, path = "/api/v1/operator/seal", tag = "operator", extensions(("x-permission" = json!("operator:update"))),
    responses((status = 200, description = "The service is sealed", body = SealState), (status = "default", body = ErrorBody)))]
async fn seal(State(app): State<App>, caller: Caller) -> Result<Json<SealState>> {
    check_operator(&app, &caller, Operation::Update)?;
    let actor = caller.session.actor.clone();
    let service = Arc::clone(&app.service);
    // Whoever drops the keystore last closes its files, which takes long.
    let sealed = spawn_blocking(move || {
        service.seal();
        drop(caller);
    });
    sealed.await.map_err(|_| ApiError::internal("a part of the service failed; its log says where"))?;
    tracing::warn!(%actor, "the service was sealed");
    Ok(Json(SealState { sealed: true }))
}

/// What opens the keystore.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Unseal {
    /// The keystore's passphrase.
    #[serde(deserialize_with = "secret")]
    #[schema(value_type = String, format = Password)]
    passphrase: SecretString,
}

/// A text that is wiped when it is dropped.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// Open the keystore with its passphrase.
///
/// The passphrase is the proof: the endpoint takes no other credential. All callers together have three tries, and then one every 20
/// seconds. If the service is not sealed, nothing happens.
#[utoipa::path(post, path = "/api/v1/operator/unseal", tag = "operator", request_body = Unseal,
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service is not sealed", body = SealState), (status = "default", body = ErrorBody)))]
async fn unseal(State(app): State<App>, Content(body): Content) -> Result<Json<SealState>> {
    let parsed = parse(&body);
    wipe(body);
    let Unseal { passphrase } = parsed?;
    if app.service.is_sealed() {
        app.service.count_try()?;
        let service = Arc::clone(&app.service);
        let opened = spawn_blocking(move || service.unseal(Some(passphrase))).await;
        let opened =
            opened.map_err(|_| ApiError::internal("a part of the service failed; its log says where"))?;
        opened.inspect_err(|error| tracing::warn!(code = error.code.as_str(), "unsealing failed"))?;
        tracing::warn!("the service was unsealed");
    }
    Ok(Json(SealState { sealed: false }))
}

/// Wipes a body, if nobody else has it: the connection may still have its own copy of what it read.
fn wipe(body: Bytes) {
    if let Ok(mut body) = body.try_into_mut() {
        body.as_mut().zeroize();
    }
}
