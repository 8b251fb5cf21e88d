//! Closing the keystore, and opening it again.

use axum::Json;
use axum::extract::State;
use bulla_kms::SecretString;
use bulla_kms::token::TokenOperation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::scope::{check_operator, check_operator_session};
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{Caller, Connected, SecretProof, SecretText, parse};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(seal)).routes(routes!(unseal))
}

/// Whether the keystore is closed.
#[derive(Serialize, ToSchema)]
struct SealState {
    /// Whether the keystore is closed until somebody unseals it.
    sealed: bool,
}

/// Close the keystore.
///
/// From the next request on, every endpoint that needs the keystore answers that the service is
/// sealed. Requests that are being answered end as usual, except slow ones: they end between two
/// steps, and are answered in the same way.
// It stops every key at once, as disabling each of them would, and disabling needs the permission
// to update.
#[utoipa::path(post, path = "/api/v1/operator/seal", tag = "operator", extensions(("x-permission" = json!("operator:update"))),
    responses((status = 200, description = "The service is sealed", body = SealState), (status = "default", body = ErrorBody)))]
async fn seal(State(worker): State<Worker>, caller: Caller) -> Result<Json<SealState>> {
    check_operator(&worker, &caller, TokenOperation::Update)?;
    let Caller { session, unsealed } = caller;
    worker.service.close(unsealed, &session.actor).await?;
    Ok(Json(SealState { sealed: true }))
}

/// What opens the keystore.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Unseal<'a> {
    /// The keystore's passphrase. Without it, the service uses what opened the keystore at its
    /// start: it reads its key file again, for example.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, format = Password)]
    passphrase: Option<SecretText<'a>>,
}

/// Open the keystore.
///
/// A passphrase is the proof: with it, the endpoint takes no other credential. Each identity of the
/// settings has three tries, and then one every 20 seconds. All other callers together have as
/// many. Without it, the caller must be an operator whom the settings name: a user on a Unix socket
/// or a client certificate, with the operation `update`. If the service is not sealed, nothing
/// happens.
#[utoipa::path(post, path = "/api/v1/operator/unseal", tag = "operator", request_body = Unseal,
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service is not sealed", body = SealState), (status = "default", body = ErrorBody)))]
async fn unseal(
    State(worker): State<Worker>,
    connected: Connected,
    body: SecretProof,
) -> Result<Json<SealState>> {
    match parse(&body)? {
        Unseal { passphrase: Some(passphrase) } => {
            worker
                .service
                .try_passphrase(SecretString::from(&*passphrase), connected.peer()?.as_deref())
                .await?;
        }
        Unseal { passphrase: None } => open_again(&worker, connected).await?,
    }
    Ok(Json(SealState { sealed: false }))
}

/// Opens the keystore without a passphrase, if it is not open, for an operator whom the settings
/// name.
///
/// # Errors
/// The connection does not prove that the caller is such an operator; those of opening the
/// keystore.
pub(crate) async fn open_again(worker: &Worker, connected: Connected) -> Result<()> {
    if !worker.service.is_sealed() {
        return Ok(());
    }
    let message = "a sealed service cannot verify tokens: send the passphrase, or connect to the Unix socket or with a client certificate as an operator whom the settings name";
    // Asked only now, when the body is there.
    let session = connected.caller()?.ok_or_else(|| ApiError::new(ApiErrorCode::Unauthenticated, message))?;
    session.count(1)?;
    check_operator_session(worker, &session, TokenOperation::Update)?;
    worker.service.open_again(&session.actor).await
}
