//! Vault's namespaces. The namespace of a tenant has the tenant's name: a token reaches the keys of
//! its tenant there, and nothing in any other namespace.

use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Request, Uri};

use crate::access::Session;
use crate::error::{ApiError, Result};

/// The headers in which clients name a namespace.
const HEADERS: [&str; 2] = ["x-vault-namespace", "x-bao-namespace"];

/// How the paths begin that have namespaces.
const PREFIX: &str = "/v1/";

/// What follows a namespace in a path.
const FIRST_PARTS: [&str; 3] = ["auth", "sys", "transit"];

/// The namespace that a request names: an extension of the request. There is none if the request
/// names none, or the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace(String);

impl Namespace {
    /// Its name, which may be that of no tenant.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// # Errors
    /// The request names another namespace than that of the caller's tenant. The answer does not
    /// say whether such a tenant exists, and nobody looks.
    pub(super) fn check(&self, session: &Session) -> Result<()> {
        if session.authority.tenant.as_str() == self.0 { Ok(()) } else { Err(ApiError::forbidden()) }
    }
}

/// Takes the namespace out of the path of a request, so that routes and policies see the path within
/// it: `/v1/team-a/transit/keys` is `/v1/transit/keys` in `team-a`, as it is with the header.
///
/// A namespace in another one has the names of both, as in Vault. No tenant has such a name.
pub(crate) fn enter_namespace<B>(request: &mut Request<B>) {
    if !request.uri().path().starts_with(PREFIX) {
        return;
    }
    let mut names = named_by_headers(request.headers());
    if let Some((name, uri)) = split_path(request.uri()) {
        names.push(name);
        *request.uri_mut() = uri;
    }
    if !names.is_empty() {
        request.extensions_mut().insert(Namespace(names.join("/")));
    }
}

/// The namespaces that headers name. Clients write them with a slash at the end, and some send both
/// headers.
fn named_by_headers(headers: &HeaderMap) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for value in HEADERS.iter().flat_map(|header| headers.get_all(*header)) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let name = text.trim_matches('/');
        if !name.is_empty() && name != "root" && names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The namespace at the begin of a path, and the path without it.
fn split_path(uri: &Uri) -> Option<(String, Uri)> {
    let below = uri.path_and_query()?.as_str().strip_prefix(PREFIX)?;
    let (name, rest) = below.split_once('/')?;
    let is_first = |text: &str| FIRST_PARTS.contains(&text);
    let follows = rest.split(['/', '?']).next()?;
    if name.is_empty() || is_first(name) || !is_first(follows) {
        return None;
    }
    let path = format!("{PREFIX}{rest}").parse::<PathAndQuery>().ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Some((name.to_owned(), Uri::from_parts(parts).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(path: &str, headers: &[(&str, &str)]) -> (String, Option<String>) {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        enter_namespace(&mut request);
        let namespace = request.extensions().get::<Namespace>().map(|namespace| namespace.0.clone());
        (request.uri().to_string(), namespace)
    }

    #[test]
    fn a_namespace_is_in_a_header_or_in_the_path() {
        let (vault, bao) = ("x-vault-namespace", "x-bao-namespace");
        for (path, headers, expected, namespace) in [
            ("/v1/transit/keys/a", vec![], "/v1/transit/keys/a", None),
            ("/v1/transit/keys/a", vec![(vault, "root")], "/v1/transit/keys/a", None),
            ("/v1/transit/keys/a", vec![(vault, "/")], "/v1/transit/keys/a", None),
            ("/v1/transit/keys/a", vec![(vault, "team-a")], "/v1/transit/keys/a", Some("team-a")),
            ("/v1/transit/keys/a", vec![(bao, "team-a/")], "/v1/transit/keys/a", Some("team-a")),
            ("/v1/transit/keys", vec![(vault, "a"), (bao, "/a//")], "/v1/transit/keys", Some("a")),
            ("/v1/transit/keys", vec![(vault, "a"), (vault, "b")], "/v1/transit/keys", Some("a/b")),
            ("/v1/team-a/transit/keys?list=true", vec![], "/v1/transit/keys?list=true", Some("team-a")),
            ("/v1/team-a/sys?a=b", vec![], "/v1/sys?a=b", Some("team-a")),
            ("/v1/b/auth/token/lookup-self", vec![(vault, "a")], "/v1/auth/token/lookup-self", Some("a/b")),
            ("/v1/a/b/transit/keys", vec![], "/v1/a/b/transit/keys", None),
            ("/v1/transit/transit/keys", vec![], "/v1/transit/transit/keys", None),
            ("/v1/a%2fb/transit/keys", vec![], "/v1/transit/keys", Some("a%2fb")),
            ("/v1//transit/keys", vec![], "/v1//transit/keys", None),
            ("/v1/secret/data/a", vec![], "/v1/secret/data/a", None),
            ("/api/v1/keys", vec![(vault, "a")], "/api/v1/keys", None),
            ("/team-a/v1/transit/keys", vec![], "/team-a/v1/transit/keys", None),
        ] {
            let (uri, name) = entered(path, &headers);
            assert_eq!((uri.as_str(), name.as_deref()), (expected, namespace), "{path} {headers:?}");
        }
    }
}
