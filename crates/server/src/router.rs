//! All endpoints, and their description.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::api;
use crate::cluster::require_revision;
use crate::error::{ApiError, ApiErrorCode};
use crate::service::Worker;
use crate::transit::{self, ErrorForm};
use crate::ui;

/// The head of the description.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "bulla",
        description = "A key management service: it signs and verifies with keys that never leave it. \
            The extension `x-permission` of an operation says who may call it: `open` is everybody, `caller` every caller with a valid \
            credential, the name of an operation a caller who may do that with the key or in its tenant, `operator:OPERATION` a caller \
            of the operators' tenant who may do that, `minter` a caller that the configuration permits to mint tokens. \
            `spec/http-api.md` describes authentication, errors, idempotency and limits.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    security(("bearer" = []), ("vault" = [])),
)]
struct Head;

/// All routes of the service, for one thread.
pub(crate) fn router(worker: Worker) -> Router {
    let changes = api::changes().layer(from_fn_with_state(Arc::clone(&worker), api::idempotent));
    let vault = transit::routes().layer(from_fn_with_state(Arc::clone(&worker), transit::wrap_answers));
    let (router, _) = api::routes().merge(vault).merge(ui::routes()).merge(changes).split_for_parts();
    let cluster = worker.service.cluster.clone();
    let router = router
        .fallback(endpoint_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(worker);
    match cluster {
        // A single node has no require_revision: its requests need no check.
        None => router,
        Some(cluster) => router.layer(from_fn_with_state(cluster, require_revision)),
    }
}

/// The description of the service: OpenAPI 3.1, as JSON.
pub fn openapi() -> String {
    let described = OpenApiRouter::<Worker>::with_openapi(Head::openapi())
        .merge(api::routes())
        .merge(transit::routes())
        .merge(ui::routes());
    let mut description = described.merge(api::changes()).into_openapi();
    api::complete(&mut description);
    let schemes = &mut description.components.get_or_insert_default().security_schemes;
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A capability token"));
    schemes.insert("bearer".to_owned(), SecurityScheme::Http(bearer.build()).into());
    let vault = ApiKeyValue::with_description("X-Vault-Token", "The same, as clients of Vault send it");
    schemes.insert("vault".to_owned(), SecurityScheme::ApiKey(ApiKey::Header(vault)).into());
    description.to_pretty_json().unwrap_or_default() + "\n"
}

async fn endpoint_not_found(uri: Uri) -> Response {
    let message = format!("there is no endpoint {}", uri.path());
    ErrorForm::at(uri.path()).response(ApiError::new(ApiErrorCode::EndpointNotFound, message))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Response {
    let message = format!("{} does not take the method {method}", uri.path());
    ErrorForm::at(uri.path()).response(ApiError::new(ApiErrorCode::MethodNotAllowed, message))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::policy::{Capability, Endpoint};

    /// What Vault calls a request of this method.
    fn capability(method: &str, path: &str) -> Capability {
        match method {
            "get" if ["/v1/transit/keys", "/v1/sys/policies/acl"].contains(&path) => Capability::List,
            "get" => Capability::Read,
            "delete" => Capability::Delete,
            _ => Capability::Update,
        }
    }

    #[test]
    fn policies_know_every_endpoint_below_v1_and_what_it_does() {
        let description: Value = serde_json::from_str(&super::openapi()).unwrap();
        for (path, operations) in description["paths"].as_object().unwrap() {
            let Some(below) = path.strip_prefix("/v1/") else { continue };
            let parts = below.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
            let endpoint = Endpoint::at(&parts.collect::<Vec<_>>().join("/"));
            for (method, operation) in operations.as_object().unwrap() {
                let permission = operation["x-permission"].as_str().unwrap();
                if permission == "minter" {
                    assert!(endpoint.is_none(), "{path}: no token may do this, so no policy permits it");
                }
                if ["minter", "open"].contains(&permission) {
                    continue;
                }
                let what = format!("{method} {path} is missing in the table of `policy/endpoints.rs`");
                let endpoint = endpoint.unwrap_or_else(|| panic!("{what}"));
                let demand = endpoint.demand(capability(method, path)).unwrap_or_else(|| panic!("{what}"));
                let permission = permission.trim_start_matches("operator:");
                if let Ok(permission) = permission.parse() {
                    assert!(demand.operations.contains(&permission), "{what}: {permission}");
                }
                let has_body = !operation["requestBody"].is_null();
                assert!(method == "get" || method == "delete" || endpoint.reads_body() == has_body, "{what}");
            }
        }
    }
}
