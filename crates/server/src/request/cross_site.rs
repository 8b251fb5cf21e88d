//! Whether a request that proves itself by its connection comes from a page of another site.
//!
//! A browser sends such a request with the identity of its user, whichever page asks for it.
//! Programs that are not browsers send none of these headers, except `Host`.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderName, header};

use crate::error::{ApiError, ApiErrorCode, Result};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The types of bodies that a form of any page can send. `curl -d` names the third such type, which
/// is accepted: with it, browsers always send `Origin`.
const FORM_CONTENT_TYPES: [&str; 2] = ["text/plain", "multipart/form-data"];

/// How a connection proves its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionProof {
    /// Nothing: in development, everybody who reaches the address may do everything. A browser can
    /// be led there by a name of any site.
    #[default]
    Nothing,
    /// A Unix socket, which browsers do not open, or TLS with a client certificate, for which they
    /// check the service's name.
    Connection,
}

/// # Errors
/// The request comes from a page of another site, or may come from one.
pub(super) fn check_site(parts: &Parts, proof: ConnectionProof) -> Result<()> {
    let refused = |what: &str| {
        let message = format!("{what}: without a token, only programs and the service's own page may ask");
        ApiError::new(ApiErrorCode::CrossSiteRequest, message)
    };
    // Vault's clients and HTTP/1.0 may name no host, but browsers always do.
    let host = match parts.headers.get(header::HOST) {
        Some(host) => Some(host.as_bytes()),
        None => parts.uri.authority().map(|authority| authority.as_str().as_bytes()),
    };
    if proof == ConnectionProof::Nothing && !host.is_none_or(is_this_machine) {
        return Err(refused("the host is neither localhost nor an IP address"));
    }
    let all = |name: HeaderName| parts.headers.get_all(name).iter().map(|value| value.as_bytes());
    if !all(header::ORIGIN).all(|origin| host.is_some_and(|host| is_origin(origin, host))) {
        return Err(refused("the header Origin names another site"));
    }
    if !all(SEC_FETCH_SITE).all(|site| matches!(site, b"same-origin" | b"none")) {
        return Err(refused("the header Sec-Fetch-Site names another site"));
    }
    if all(header::CONTENT_TYPE).any(is_of_forms) {
        return Err(refused("the body is of a type that forms send, and not application/json"));
    }
    Ok(())
}

/// Whether only this machine can be meant: a name of another site may lead here, too.
fn is_this_machine(host: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(host) else { return false };
    let name = authority.host();
    let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    literal.parse::<IpAddr>().is_ok() || is_localhost(name)
}

/// `localhost` and the names below it, which never leave the machine (RFC 6761).
fn is_localhost(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn is_origin(origin: &[u8], host: &[u8]) -> bool {
    let place = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}

fn is_of_forms(kind: &[u8]) -> bool {
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    FORM_CONTENT_TYPES.iter().any(|form| kind.eq_ignore_ascii_case(form.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_an_address_or_localhost() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8200",
            "[::1]:8200",
            "[::1]",
            "10.0.0.7:80",
            "LocalHost:1",
            "a.localhost",
        ] {
            assert!(is_this_machine(host.as_bytes()), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:8200", "127.0.0.1.evil.example", "notlocalhost", "[::1", "a b"]
        {
            assert!(!is_this_machine(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn an_origin_is_the_host_with_its_port() {
        let is = |origin: &str| is_origin(origin.as_bytes(), b"localhost:8200");
        assert!(is("http://localhost:8200") && is("https://LOCALHOST:8200"));
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:82000",
            "http://evil.example",
            "localhost:8200",
        ] {
            assert!(!is(origin), "{origin}");
        }
    }
}
