//! What concerns the whole service: permissions of operators, sealing, health, metrics.
//!
//! `x-permission` of each operation.
//! `open` needs no credential; `caller` any valid one; the name of an operation one with that
//! operation on the key or in the tenant; `operator:OPERATION` one with that operation in the
//! operators' tenant; `minter` a caller that may mint tokens.

use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Name, SecretString};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use crate::access::{Session, grants_access};
use crate::cluster::Freshness;
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{Caller, ConnectionCaller, Query, SecretProof, SecretText, parse};
use crate::service::{Service, Worker, run_off_thread};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(seal))
        .routes(routes!(unseal))
        .routes(routes!(health))
        .routes(routes!(ready))
        .routes(routes!(metrics))
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
    worker.service.seal_by_operator(unsealed, &session.actor).await?;
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
/// A passphrase is the proof: with it, the endpoint takes no other credential. Each caller of the
/// settings has three tries, and then one every 20 seconds. All other callers together have as
/// many. Without it, the caller must be an operator whom the settings name: a user on a Unix socket
/// or a client certificate, with the operation `update`. If the service is not sealed, nothing
/// happens.
#[utoipa::path(post, path = "/api/v1/operator/unseal", tag = "operator", request_body = Unseal,
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service is not sealed", body = SealState), (status = "default", body = ErrorBody)))]
async fn unseal(
    State(worker): State<Worker>,
    connected: ConnectionCaller,
    body: SecretProof,
) -> Result<Json<SealState>> {
    match parse(&body)? {
        Unseal { passphrase: Some(passphrase) } => {
            worker
                .service
                .try_passphrase(SecretString::from(&*passphrase), connected.peer()?.as_deref())
                .await?;
        }
        Unseal { passphrase: None } => unseal_by_operator(&worker, connected).await?,
    }
    Ok(Json(SealState { sealed: false }))
}

/// Opens the keystore without a passphrase, if it is not open, for an operator whom the settings
/// name.
///
/// # Errors
/// The connection does not prove that the caller is such an operator; those of opening the
/// keystore.
pub(crate) async fn unseal_by_operator(worker: &Worker, connected: ConnectionCaller) -> Result<()> {
    if !worker.service.is_sealed() {
        return Ok(());
    }
    let message = "a sealed service cannot verify tokens: send the passphrase, or connect to the Unix socket or with a client certificate as an operator whom the settings name";
    // Asked only now, when the body is there.
    let session = connected.caller()?.ok_or_else(|| ApiError::new(ApiErrorCode::Unauthenticated, message))?;
    session.count(1)?;
    check_operator_session(worker, &session, TokenOperation::Update)?;
    worker.service.unseal_by_operator(&session.actor).await
}

/// The caller may do `operation` in its tenant, and that is the operators' tenant.
///
/// # Errors
/// The caller may not, or it is another tenant.
pub(crate) fn check_operator(worker: &Worker, caller: &Caller, operation: TokenOperation) -> Result<()> {
    check_operator_session(worker, &caller.session, operation)
}

/// Checks a session as [`check_operator`] checks a caller, for example while the service is sealed.
///
/// # Errors
/// Those of [`check_operator`].
pub(crate) fn check_operator_session(
    worker: &Worker,
    session: &Session,
    operation: TokenOperation,
) -> Result<()> {
    if session.authority.tenant != worker.service.config.service.operator_tenant {
        return Err(ApiError::forbidden());
    }
    session.check_tenant(operation)
}

/// The caller may make keys of this purpose, bring them in and take them out. A caller who has a
/// key that signs tokens can mint, which no token permits.
///
/// # Errors
/// Keys of this purpose sign tokens or JWTs, and the caller may not mint.
pub(crate) fn check_purpose(caller: &Caller, purpose: &Name) -> Result<()> {
    if grants_access(purpose) && !caller.session.authority.can_mint_tokens {
        return Err(ApiError::forbidden());
    }
    Ok(())
}

/// The service runs.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The service's version.
    version: &'static str,
}

/// Whether the service can sign.
#[derive(Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Whether requests are served.
    ready: bool,
    /// Whether the keystore is closed until somebody unseals it.
    sealed: bool,
    /// How current the node is, if it shares the keystore with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreView>,
}

/// How current a node is.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreView {
    /// The newest change that the node knows.
    revision: u64,
    /// For how long it has not known whether there is a newer one, in milliseconds.
    age: u64,
    /// Whether that is so long that the node uses no private keys. It still verifies.
    stale: bool,
    /// How many nodes were there when this node counted them last. They share the rates of callers.
    nodes: u32,
}

impl From<Freshness> for StoreView {
    fn from(Freshness { revision, age, stale, nodes }: Freshness) -> Self {
        Self { revision, age: u64::try_from(age.as_millis()).unwrap_or(u64::MAX), stale, nodes }
    }
}

/// What is asked.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ReadyQuery {
    /// Whether a node that uses no private keys, because it cannot reach the store, counts as not
    /// ready.
    #[serde(default)]
    current: bool,
}

/// Tell whether the service runs.
#[utoipa::path(get, path = "/api/v1/health", tag = "health", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service runs", body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Tell whether the service can sign.
///
/// A node that shares its keystore in etcd also says how current it is. By default it is ready as
/// long as it can verify.
#[utoipa::path(get, path = "/api/v1/ready", params(ReadyQuery), tag = "health", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service can sign", body = Readiness),
        (status = 503, description = "The service is sealed, or not current where the request asks for that", body = Readiness),
        (status = "default", body = ErrorBody)))]
async fn ready(
    State(worker): State<Worker>,
    Query(asked): Query<ReadyQuery>,
) -> (StatusCode, Json<Readiness>) {
    let sealed = worker.service.is_sealed();
    let store = worker.service.cluster.as_ref().and_then(|cluster| cluster.freshness()).map(StoreView::from);
    let is_stale = store.as_ref().is_some_and(|store| store.stale);
    let ready = !sealed && (!asked.current || !is_stale);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready, sealed, store }))
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Read the metrics of the keystore and of the service.
///
/// A sealed service cannot verify tokens. Then only callers that the configuration names can read
/// the metrics.
#[utoipa::path(get, path = "/metrics", tag = "metrics", extensions(("x-permission" = json!("operator:read"))),
    responses((status = 200, description = "The metrics, as OpenMetrics", body = String, content_type = "application/openmetrics-text"),
        (status = "default", body = ErrorBody)))]
async fn metrics(
    State(worker): State<Worker>,
    caller: Result<Caller>,
    connected: Result<ConnectionCaller>,
) -> Result<Response> {
    let session = match caller {
        Ok(caller) => caller.session,
        Err(error) if worker.service.is_sealed() => connected?.caller()?.ok_or(error)?,
        Err(error) => return Err(error),
    };
    check_operator_session(&worker, &session, TokenOperation::Read)?;
    let service = Arc::clone(&worker.service);
    let text = run_off_thread(move || text(&service)).await?;
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    Ok(response)
}

fn text(service: &Service) -> String {
    let (mut registry, mut text) = (Registry::default(), String::new());
    service.metrics.register(&mut registry);
    service.http_metrics.register(&mut registry, service.is_sealed());
    if let Some(cluster) = &service.cluster {
        cluster.register(&mut registry);
    }
    if let Some(group) = service.group() {
        group.register(&mut registry);
    }
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}
