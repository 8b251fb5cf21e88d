//! Requests to the servers of issuers: by HTTPS, to their own authorities or those of the operating
//! system, without redirects, for a bounded time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bulla_kms::{Code, KmsError};
use ureq::http::{HeaderValue, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use zeroize::Zeroizing;

/// How long a server may take.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What sends requests, and waits so long for an answer. Every status is an answer, and no error.
/// Without `ca`, a file in PEM, the operating system's authorities count.
///
/// # Errors
/// [`Code::InvalidArgument`]: the file cannot be used.
pub(super) fn agent(ca: Option<&Path>, patience: Duration) -> bulla_kms::Result<ureq::Agent> {
    let roots = match ca {
        Some(file) => authorities(file)?,
        None => system_authorities(),
    };
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&roots));
    let config = ureq::Agent::config_builder()
        .tls_config(tls.build())
        .timeout_global(Some(patience))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent("bulla");
    Ok(config.build().into())
}

/// Whether two URLs are of one server: scheme, host and port are equal.
pub(super) fn is_same_server(one: &str, other: &str) -> bool {
    let server = |url: &str| {
        let url = url.parse::<Uri>().ok()?;
        let scheme = url.scheme_str()?.to_owned();
        let port = url.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        Some((scheme, url.host()?.to_ascii_lowercase(), port))
    };
    server(one).is_some_and(|one| Some(one) == server(other))
}

/// The header `Authorization` with the token in a file. It is read for each request, because the
/// kubelet writes another token into it before the old one expires.
///
/// # Errors
/// A text for the log: the file cannot be read, or has no token.
pub(super) fn bearer(file: &Path) -> Result<HeaderValue, String> {
    let unusable = |why: &str| format!("{}: {why}", file.display());
    let text =
        std::fs::read_to_string(file).map(Zeroizing::new).map_err(|error| unusable(&error.to_string()))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable("it has no token"));
    }
    let text = Zeroizing::new(format!("Bearer {token}"));
    let mut value = HeaderValue::from_str(&text).map_err(|_| unusable("it has no token"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The certificates of a file in PEM.
fn authorities(file: &Path) -> bulla_kms::Result<Vec<Certificate<'static>>> {
    let unusable = |why: String| KmsError::new(Code::InvalidArgument, format!("{}: {why}", file.display()));
    let text = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
    let mut all = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| unusable(error.to_string()))? {
            all.push(certificate);
        }
    }
    if all.is_empty() { Err(unusable("it has no certificate in PEM".to_owned())) } else { Ok(all) }
}

/// The certificates that the operating system trusts.
fn system_authorities() -> Vec<Certificate<'static>> {
    let found = rustls_native_certs::load_native_certs().certs;
    found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_scheme_a_host_and_a_port() {
        let one = "https://kubernetes.default.svc";
        for (other, expected) in [
            ("https://kubernetes.default.svc/openid/v1/jwks", true),
            ("https://Kubernetes.default.svc:443/", true),
            ("https://kubernetes.default.svc:6443/", false),
            ("http://kubernetes.default.svc:443/", false),
            ("https://kubernetes.default.svc.example.org/", false),
            ("https://kubernetes.default.svc@example.org/", false),
            ("kubernetes.default.svc", false),
            ("", false),
        ] {
            assert_eq!(is_same_server(one, other), expected, "{other}");
        }
        assert!(!is_same_server("", ""));
    }

    #[test]
    fn a_token_is_one_line_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        assert!(bearer(&file).is_err());
        for (text, expected) in [("a.b.c\n", Some("Bearer a.b.c")), ("", None), (" \n", None), ("a\nb", None)]
        {
            std::fs::write(&file, text).unwrap();
            let value = bearer(&file).ok();
            assert_eq!(value.as_ref().and_then(|value| value.to_str().ok()), expected, "{text:?}");
            assert!(value.is_none_or(|value| value.is_sensitive()));
        }
    }
}
