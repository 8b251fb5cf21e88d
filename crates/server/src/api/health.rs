//! Whether the service runs, and whether it can work. Everybody may ask.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::service::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
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
    /// Whether the keystore is closed, and waits to be unsealed.
    sealed: bool,
}

/// Tell whether the service runs.
#[utoipa::path(get, path = "/api/v1/health", tag = "health", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service runs", body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Tell whether the service can sign.
#[utoipa::path(get, path = "/api/v1/ready", tag = "health", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service can sign", body = Readiness),
        (status = 503, description = "The service is sealed", body = Readiness)))]
async fn ready(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let sealed = app.service.is_sealed();
    let status = if sealed { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (status, Json(Readiness { ready: !sealed, sealed }))
}
