//! Whether the service runs, and whether it can sign. These endpoints need no credential.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::cluster::Freshness;
use crate::error::ErrorBody;
use crate::request::Query;
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready))
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
struct Asked {
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
#[utoipa::path(get, path = "/api/v1/ready", params(Asked), tag = "health", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service can sign", body = Readiness),
        (status = 503, description = "The service is sealed, or not current where the request asks for that", body = Readiness),
        (status = "default", body = ErrorBody)))]
async fn ready(State(worker): State<Worker>, Query(asked): Query<Asked>) -> (StatusCode, Json<Readiness>) {
    let sealed = worker.service.is_sealed();
    let store = worker.service.cluster.as_ref().and_then(|cluster| cluster.freshness()).map(StoreView::from);
    let is_stale = store.as_ref().is_some_and(|store| store.stale);
    let ready = !sealed && (!asked.current || !is_stale);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready, sealed, store }))
}
