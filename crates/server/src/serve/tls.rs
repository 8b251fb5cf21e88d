//! TLS: a listener's certificate and key, and the verification of client certificates.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bulla_kms::{Code, KmsError, Result, Timestamp};
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::validity::Validity;
use crate::config::TlsConfig;

/// The protocols that clients choose from, the better one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A listener's TLS, which a reload replaces.
pub(super) struct Tls(ArcSwap<Loaded>);

impl Tls {
    pub(super) fn new(loaded: Loaded) -> Self {
        Self(ArcSwap::from_pointee(loaded))
    }

    pub(super) fn replace(&self, loaded: Loaded) {
        self.0.store(Arc::new(loaded));
    }

    /// What makes the next handshake.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.load().config))
    }

    /// Until when its certificate is valid.
    pub(super) fn end(&self) -> Timestamp {
        self.0.load().validity.end()
    }
}

/// Certificates and a key that were read.
#[derive(Clone)]
pub(super) struct Loaded {
    config: Arc<ServerConfig>,
    validity: Validity,
    name: String,
}

impl Loaded {
    /// # Errors
    /// [`Code::InvalidArgument`]: the certificate has expired or is not valid yet.
    pub(super) fn check_time(&self, now: Timestamp) -> Result<()> {
        self.validity.check(now).map_err(|why| invalid(format!("the certificate {} {why}", self.name)))
    }

    /// Logs a warning for a certificate that expires soon or has expired.
    pub(super) fn remind(&self, now: Timestamp) {
        if let Err(error) = self.check_time(now) {
            tracing::warn!("{}: clients will refuse it", error.message);
        } else if self.validity.ends_soon(now) {
            tracing::warn!("the certificate {} expires at {}", self.name, self.validity.end());
        }
    }
}

/// Reads what the settings name.
///
/// # Errors
/// A file cannot be read, or is no PEM; the key is not that of the certificate.
pub(super) fn load(settings: &TlsConfig) -> Result<Loaded> {
    let name = settings.certificate.display().to_string();
    let chain = certificates(&settings.certificate)?;
    let validity = Validity::of(&chain[0])
        .ok_or_else(|| invalid(format!("{name}: the first certificate has no time of validity")))?;
    let key = PrivateKeyDer::from_pem_file(&settings.key)
        .map_err(|error| unreadable(&settings.key, "private key", &error))?;
    let provider = Arc::new(default_provider());
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| invalid(format!("TLS: {error}")))?;
    let verified = match &settings.client_ca {
        None => versions.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(authorities(path)?);
            // A client without a certificate may still show a token.
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots, provider).allow_unauthenticated().build();
            let verifier = verifier.map_err(|error| invalid(format!("{}: {error}", path.display())))?;
            versions.with_client_cert_verifier(verifier)
        }
    };
    let mut config = verified
        .with_single_cert(chain, key)
        .map_err(|error| invalid(format!("{name}, {}: {error}", settings.key.display())))?;
    config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    if settings.client_ca.is_none() {
        config.ticketer =
            Ticketer::new().map_err(|error| KmsError::new(Code::RandomUnavailable, error.to_string()))?;
    } else {
        // A resumed session would restore a client's certificate without verifying it again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Loaded { config: Arc::new(config), validity, name })
}

fn authorities(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    }
    Ok(roots)
}

/// At least one certificate.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wrong = |error| unreadable(path, "certificate", &error);
    let read = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let read: Vec<_> = read.collect::<std::result::Result<_, _>>().map_err(wrong)?;
    if read.is_empty() { Err(unreadable(path, "certificate", &pem::Error::NoItemsFound)) } else { Ok(read) }
}

/// The error about a file. It quotes nothing of the file.
fn unreadable(path: &Path, what: &str, error: &pem::Error) -> KmsError {
    let path = path.display();
    match error {
        pem::Error::Io(error) => {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => Code::NotFound,
                std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
                _ => Code::Io,
            };
            KmsError::new(code, format!("cannot read the {what} {path}: {error}"))
        }
        pem::Error::NoItemsFound => invalid(format!("{path} contains no {what} in PEM")),
        _ => invalid(format!("{path} is not PEM")),
    }
}

fn invalid(message: String) -> KmsError {
    KmsError::new(Code::InvalidArgument, message)
}
