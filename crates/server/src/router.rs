//! All endpoints, and their description.

use axum::Router;
use axum::http::{Method, Uri};
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::api;
use crate::error::{ApiError, Problem};
use crate::service::App;
use crate::ui;

/// The head of the description.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "bulla",
        description = "A key management service: it signs and verifies with keys that never leave it.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    security(("bearer" = []), ("vault" = [])),
)]
struct Head;

/// Everything that the service answers, for one thread.
pub(crate) fn router(app: App) -> Router {
    let (router, _) = described();
    router.fallback(no_endpoint).method_not_allowed_fallback(wrong_method).with_state(app)
}

/// The description of the service: OpenAPI 3.1, as JSON.
pub fn openapi() -> String {
    let (_, mut description) = described();
    let schemes = &mut description.components.get_or_insert_default().security_schemes;
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A capability token"));
    schemes.insert("bearer".to_owned(), SecurityScheme::Http(bearer.build()).into());
    let vault = ApiKeyValue::with_description("X-Vault-Token", "The same, as clients of Vault send it");
    schemes.insert("vault".to_owned(), SecurityScheme::ApiKey(ApiKey::Header(vault)).into());
    description.to_pretty_json().unwrap_or_default() + "\n"
}

fn described() -> (Router<App>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Head::openapi()).merge(api::routes()).merge(ui::routes()).split_for_parts()
}

async fn no_endpoint(uri: Uri) -> ApiError {
    ApiError::new(Problem::NoEndpoint, format!("there is no endpoint {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::new(Problem::WrongMethod, format!("{} does not take the method {method}", uri.path()))
}
