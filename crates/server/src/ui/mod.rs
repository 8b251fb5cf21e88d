//! The page for operators at `/ui/`: static files in this program, without any data.
//!
//! The page reads and changes everything by the API, with the credential that its user enters.

use std::sync::LazyLock;

use crate::request::handler::routes;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use utoipa_axum::router::OpenApiRouter;

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
    answer(find_page(worker.service.config.service.development), &headers)
}

/// Load a file of the page.
#[utoipa::path(get, path = "/ui/{file}", tag = "page", params(("file" = String, Path, description = "The file's name", example = "app.js")),
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The file", content((String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"))),
        (status = 304, description = "The file has not changed"), (status = "default", body = ErrorBody)))]
async fn file(uri: Uri, headers: HeaderMap) -> Result<Response<Body>> {
    let found = uri.path().rsplit('/').next().and_then(find_file);
    let missing = || ApiError::new(ApiErrorCode::EndpointNotFound, "the page has no such file");
    Ok(answer(found.ok_or_else(missing)?, &headers))
}

/// Says of an answer that its bytes are the program's own, and take no memory.
#[derive(Clone, Copy)]
pub(crate) struct PartOfProgram;

fn answer(file: &'static File, request: &HeaderMap) -> Response<Body> {
    let known = request.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| {
        known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.tag || tag.trim() == "*")
    });
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(file.content) });
    response.extensions_mut().insert(PartOfProgram);
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

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file, as browsers get it.
struct File {
    name: &'static str,
    kind: &'static str,
    content: &'static str,
    /// The digest of the content, as an `ETag` has it.
    tag: String,
}

impl File {
    fn new((name, kind, content): (&'static str, &'static str, &'static str)) -> Self {
        let digest = bulla_blake3::hash(content.as_bytes()).to_hex();
        Self { name, kind, content, tag: format!("\"{}\"", &digest[..32]) }
    }
}

macro_rules! files {
    ($($name:literal $kind:expr;)*) => { [$(($name, $kind, include_str!(concat!("assets/", $name)))),*] };
}

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let files = files! {
        "actions.js" SCRIPT;
        "activity.js" SCRIPT;
        "api.js" SCRIPT;
        "app.js" SCRIPT;
        "audit.js" SCRIPT;
        "charts.js" SCRIPT;
        "dialog.js" SCRIPT;
        "dom.js" SCRIPT;
        "format.js" SCRIPT;
        "icon.svg" "image/svg+xml";
        "key.js" SCRIPT;
        "keys.js" SCRIPT;
        "metrics.js" SCRIPT;
        "session.js" SCRIPT;
        "signin.js" SCRIPT;
        "style.css" "text/css; charset=utf-8";
    };
    files.map(File::new).into()
});

const PAGE: &str = include_str!("assets/index.html");
const HTML: &str = "text/html; charset=utf-8";

/// The page itself. Its root element says whether the service is for development, so that the page
/// can warn.
static PAGES: LazyLock<[File; 2]> = LazyLock::new(|| {
    let development = PAGE.replace("data-mode=\"production\"", "data-mode=\"development\"").leak();
    [PAGE, development].map(|content| File::new(("index.html", HTML, content)))
});

fn find_page(development: bool) -> &'static File {
    &PAGES[usize::from(development)]
}

fn find_file(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ui/assets");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut served: BTreeSet<_> = FILES.iter().map(|file| file.name.to_owned()).collect();
        served.insert("index.html".to_owned());
        assert_eq!(served, files.collect());
    }

    #[test]
    fn only_the_page_of_development_says_so() {
        let [production, development] = PAGES.each_ref();
        assert!(production.content.contains("data-mode=\"production\""));
        assert!(development.content.contains("data-mode=\"development\""));
        assert!(!development.content.contains("data-mode=\"production\""));
        assert_ne!(production.tag, development.tag);
    }

    #[test]
    fn nothing_in_the_page_is_code_within_markup_or_comes_from_elsewhere() {
        let all = FILES.iter().chain(PAGES.iter());
        for file in all {
            let own = file.content.replace("http://www.w3.org/2000/svg", "");
            for never in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "localStorage",
                "sessionStorage",
                "cookie =",
                "://",
                "style=\"",
                "onclick=\"",
            ] {
                assert!(!own.contains(never), "{} has {never}", file.name);
            }
        }
    }
}
