//! Vault's namespaces, of which bulla has the root alone.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::VaultError;
use crate::error::{ApiError, ApiErrorCode};

/// The headers in which clients name a namespace.
const HEADERS: [&str; 2] = ["x-vault-namespace", "x-bao-namespace"];

/// Refuses a request in a namespace. Otherwise two namespaces would share the keys of one tenant.
pub(super) async fn root_only(request: Request, next: Next) -> Response {
    if is_root(request.headers()) {
        return next.run(request).await;
    }
    let message = "bulla has no namespaces: leave X-Vault-Namespace (VAULT_NAMESPACE, BAO_NAMESPACE) out; \
                   a token is for the keys of its tenant";
    VaultError::from(ApiError::new(ApiErrorCode::EndpointNotFound, message)).into_response()
}

fn is_root(headers: &HeaderMap) -> bool {
    let mut named = HEADERS.iter().flat_map(|name| headers.get_all(*name));
    named.all(|value| matches!(trimmed(value), b"" | b"root"))
}

/// A namespace without the slashes around it, with which Vault's clients write it.
fn trimmed(namespace: &HeaderValue) -> &[u8] {
    let (mut name, slash) = (namespace.as_bytes(), b"/".as_slice());
    while let Some(rest) = name.strip_prefix(slash).or_else(|| name.strip_suffix(slash)) {
        name = rest;
    }
    name
}
