//! Vault's namespaces, and mounts in them. The namespace of a tenant has the tenant's name: a token
//! reaches the keys of its tenant there, and nothing in any other namespace.

use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Request, Uri};

use crate::access::Session;
use crate::config::ENGINE_PATHS;
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

/// The path of another mount of the transit engine that a request names: an extension of the
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPath(String);

impl MountPath {
    /// Its path, which may be that of no mount.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Takes the namespace out of the path of a request, so that routes and policies see the path
/// within it: `/v1/team-a/transit/keys` is `/v1/transit/keys` in `team-a`, as it is with the
/// header. The path of another mount becomes `transit`. It is not looked up here, so every name of
/// a mount is answered alike.
///
/// A namespace in another one has the names of both, as in Vault. No tenant has such a name.
pub(crate) fn enter_namespace<B>(request: &mut Request<B>) {
    if !request.uri().path().starts_with(PREFIX) {
        return;
    }
    let mut names = named_by_headers(request.headers());
    if let Some(Split { namespace, mount, uri }) = split_path(request.uri()) {
        names.extend(namespace);
        *request.uri_mut() = uri;
        if let Some(mount) = mount {
            request.extensions_mut().insert(MountPath(mount));
        }
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

/// The parts of a path before those that routes know, and the path without them.
struct Split {
    namespace: Option<String>,
    mount: Option<String>,
    uri: Uri,
}

fn split_path(uri: &Uri) -> Option<Split> {
    let below = uri.path_and_query()?.as_str().strip_prefix(PREFIX)?;
    let (first, rest) = below.split_once('/')?;
    if FIRST_PARTS.contains(&first) || first.is_empty() {
        return None;
    }
    let begin = |text: &str| text.split(['/', '?']).next().unwrap_or_default().to_owned();
    let second = begin(rest);
    let is_engine = |part: &str| ENGINE_PATHS.contains(&part);
    let (namespace, mount, path) = if FIRST_PARTS.contains(&second.as_str()) {
        (Some(first), None, format!("{PREFIX}{rest}"))
    } else if is_engine(&second) {
        (None, Some(first), format!("{PREFIX}transit/{rest}"))
    } else {
        let (mount, within) = rest.split_once('/').filter(|(mount, _)| !mount.is_empty())?;
        if !is_engine(&begin(within)) {
            return None;
        }
        (Some(first), Some(mount), format!("{PREFIX}transit/{within}"))
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    let uri = Uri::from_parts(parts).ok()?;
    Some(Split { namespace: namespace.map(str::to_owned), mount: mount.map(str::to_owned), uri })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Endpoint;

    #[test]
    fn every_path_of_the_engine_is_found_at_other_mounts() {
        for endpoint in Endpoint::ALL {
            let Some(within) = endpoint.path.strip_prefix("transit/") else { continue };
            let (uri, _, name) = mount(&format!("/v1/pay/{}", within.replace('+', "a")));
            let expected = format!("/v1/transit/{}", within.replace('+', "a"));
            assert_eq!((uri, name.as_deref()), (expected, Some("pay")), "{within}");
        }
    }

    fn mount(path: &str) -> (String, Option<String>, Option<String>) {
        let mut request = Request::builder().uri(path).body(()).unwrap();
        enter_namespace(&mut request);
        let namespace = request.extensions().get::<Namespace>().map(|namespace| namespace.0.clone());
        let mount = request.extensions().get::<MountPath>().map(|mount| mount.0.clone());
        (request.uri().to_string(), namespace, mount)
    }

    #[test]
    fn another_mount_is_in_the_path_whether_or_not_it_is_there() {
        for (path, expected, namespace, name) in [
            ("/v1/pay/keys?list=true", "/v1/transit/keys?list=true", None, Some("pay")),
            ("/v1/pay/sign/a/sha2-256", "/v1/transit/sign/a/sha2-256", None, Some("pay")),
            ("/v1/team/pay/wrapping_key", "/v1/transit/wrapping_key", Some("team"), Some("pay")),
            ("/v1/transit/sign/a", "/v1/transit/sign/a", None, None),
            ("/v1/team/transit/sign/a", "/v1/transit/sign/a", Some("team"), None),
            ("/v1/pay/nothing", "/v1/pay/nothing", None, None),
            ("/v1/a/team/pay/sign/a", "/v1/a/team/pay/sign/a", None, None),
            ("/v1/sys/sign/a", "/v1/sys/sign/a", None, None),
            ("/v1//sign/a", "/v1//sign/a", None, None),
            ("/v1/team//sign/a", "/v1/team//sign/a", None, None),
        ] {
            let (uri, namespace_of, mount) = mount(path);
            let found = (uri.as_str(), namespace_of.as_deref(), mount.as_deref());
            assert_eq!(found, (expected, namespace, name), "{path}");
        }
    }

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
