//! The page for operators at `/ui/`: static files in this program, without any data.
//!
//! The page reads and changes everything by the API, with the credential that its user enters.

mod files;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::files::File;
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(to_page)).routes(routes!(page)).routes(routes!(file))
}

/// The page may load its own files and ask this service, and nothing else. Text never runs as code.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers for browsers that every answer has, beside its type and its digest.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    // A browser asks whether its copy is still the newest: another version of the service has
    // another page.
    ("cache-control", "no-cache"),
];

/// Go to the page for operators.
#[utoipa::path(get, path = "/ui", tag = "page", extensions(("x-permission" = json!("open"))),
    responses((status = 308, description = "The page is at `/ui/`")))]
async fn to_page() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    // Relative, so that it is right behind a proxy that puts a path before ours.
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("ui/"));
    response
}

/// Load the page for operators.
#[utoipa::path(get, path = "/ui/", tag = "page", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The page", content_type = "text/html"),
        (status = 304, description = "The page has not changed")))]
async fn page(State(worker): State<Worker>, headers: HeaderMap) -> Response<Body> {
    answer(files::page(worker.service.config.service.development), &headers)
}

/// Load a file of the page.
#[utoipa::path(get, path = "/ui/{file}", tag = "page", params(("file" = String, Path, description = "The file's name", example = "app.js")),
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The file", content((String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"))),
        (status = 304, description = "The file has not changed"), (status = "default", body = ErrorBody)))]
async fn file(uri: Uri, headers: HeaderMap) -> Result<Response<Body>> {
    let found = uri.path().rsplit('/').next().and_then(files::find);
    let missing = || ApiError::new(ApiErrorCode::EndpointNotFound, "the page has no such file");
    Ok(answer(found.ok_or_else(missing)?, &headers))
}

fn answer(file: &'static File, request: &HeaderMap) -> Response<Body> {
    let known = request.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| {
        known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.tag || tag.trim() == "*")
    });
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(file.content) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::ETAG, HeaderValue::from_static(&file.tag));
    response
}
