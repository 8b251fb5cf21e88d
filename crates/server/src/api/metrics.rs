//! The service's metrics, for Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::scope::check_operator_session;
use crate::error::{ErrorBody, Result};
use crate::request::{Caller, Connected};
use crate::service::{Service, Worker, run_off_thread};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(metrics))
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
    connected: Result<Connected>,
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
    service.counts.register(&mut registry, service.is_sealed());
    if let Some(cluster) = &service.cluster {
        cluster.register(&mut registry);
    }
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}
