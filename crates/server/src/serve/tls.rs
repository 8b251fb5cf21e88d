//! TLS: certificates and their validity, a key, and the verification of client certificates.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bulla_kms::{Code, KmsError, Result, Timestamp};
use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode as _, Header, SliceReader, Tag, TagNumber};
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsConfig;
use crate::login::CertificateNames;

/// The protocols that clients choose from, the better one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A listener's TLS, which a reload replaces.
pub(super) struct ListenerTls(ArcSwap<LoadedCertificate>);

impl ListenerTls {
    pub(super) fn new(loaded: LoadedCertificate) -> Self {
        Self(ArcSwap::from_pointee(loaded))
    }

    pub(super) fn replace(&self, loaded: LoadedCertificate) {
        self.0.store(Arc::new(loaded));
    }

    /// The acceptor of the next handshake.
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
pub(super) struct LoadedCertificate {
    config: Arc<ServerConfig>,
    validity: CertificateValidity,
    name: String,
}

impl LoadedCertificate {
    /// # Errors
    /// [`Code::InvalidArgument`]: the certificate has expired or is not valid yet.
    pub(super) fn check_time(&self, now: Timestamp) -> Result<()> {
        self.validity.check(now).map_err(|why| invalid(format!("the certificate {} {why}", self.name)))
    }

    /// Logs a warning for a certificate that expires soon or has expired.
    pub(super) fn warn_if_expiring(&self, now: Timestamp) {
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
pub(super) fn load(settings: &TlsConfig) -> Result<LoadedCertificate> {
    let name = settings.certificate.display().to_string();
    let chain = certificates(&settings.certificate)?;
    let validity = CertificateValidity::of(&chain[0])
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
    Ok(LoadedCertificate { config: Arc::new(config), validity, name })
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

/// How long before its end a certificate is worth a warning.
const EXPIRY_WARNING_TIME: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CertificateValidity {
    begin: Timestamp,
    end: Timestamp,
}

impl CertificateValidity {
    /// Reads it from a certificate in DER. None if the bytes are no certificate.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let (begin, end) = times(certificate).ok()?;
        let stamp = |time: Duration| Timestamp::from_unix_millis(u64::try_from(time.as_millis()).ok()?).ok();
        Some(Self { begin: stamp(begin)?, end: stamp(end)? })
    }

    /// # Errors
    /// The end of a sentence that says why the certificate is not valid now.
    pub(super) fn check(self, now: Timestamp) -> Result<(), String> {
        if now < self.begin {
            Err(format!("is not valid before {}", self.begin))
        } else if now > self.end {
            Err(format!("expired at {}", self.end))
        } else {
            Ok(())
        }
    }

    pub(super) fn end(self) -> Timestamp {
        self.end
    }

    pub(super) fn ends_soon(self, now: Timestamp) -> bool {
        let left = self.end.unix_millis().saturating_sub(now.unix_millis());
        Duration::from_millis(left) < EXPIRY_WARNING_TIME
    }
}

/// Reads a certificate up to its two times. rustls reads the rest.
fn times(certificate: &[u8]) -> der::Result<(Duration, Duration)> {
    let mut reader = SliceReader::new(certificate)?;
    // Certificate, and TBSCertificate in it.
    sequence(&mut reader)?;
    sequence(&mut reader)?;
    if matches!(Tag::peek(&reader)?, Tag::ContextSpecific { number: TagNumber(0), .. }) {
        AnyRef::decode(&mut reader)?;
    }
    // The serial number, the algorithm of the signature, and the issuer.
    for _ in 0..3 {
        AnyRef::decode(&mut reader)?;
    }
    sequence(&mut reader)?;
    Ok((time(&mut reader)?, time(&mut reader)?))
}

fn sequence(reader: &mut SliceReader<'_>) -> der::Result<()> {
    Header::decode(reader)?.tag().assert_eq(Tag::Sequence).map(|_| ())
}

/// A time since 1970.
fn time(reader: &mut SliceReader<'_>) -> der::Result<Duration> {
    match Tag::peek(reader)? {
        Tag::UtcTime => UtcTime::decode(reader).map(|time| time.to_unix_duration()),
        _ => GeneralizedTime::decode(reader).map(|time| time.to_unix_duration()),
    }
}

/// Reads bytes as a certificate; for the fuzzers.
pub(crate) fn fuzz_certificate(bytes: &[u8]) {
    // What is read here, a listener's authority has signed; nobody else's certificates come here.
    let _ = CertificateNames::read(bytes);
    if let Some(validity) = CertificateValidity::of(bytes) {
        let is_valid = validity.check(validity.begin).is_ok();
        assert_eq!(is_valid, validity.begin <= validity.end);
        assert!(validity.ends_soon(validity.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn certificate(begin: (i32, u8, u8), end: (i32, u8, u8)) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(begin.0, begin.1, begin.2);
        params.not_after = rcgen::date_time_ymd(end.0, end.1, end.2);
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_says_from_when_until_when() {
        // Years before 2050 have two digits in a certificate, later ones four.
        let der = certificate((2024, 2, 29), (2051, 1, 2));
        let validity = CertificateValidity::of(&der).unwrap();
        assert_eq!(
            (validity.begin, validity.end()),
            (at("2024-02-29T00:00:00.000Z"), at("2051-01-02T00:00:00.000Z"))
        );
        assert!(validity.check(at("2024-02-28T23:59:59.999Z")).unwrap_err().contains("not valid before"));
        assert!(validity.check(at("2024-02-29T00:00:00.000Z")).is_ok());
        assert!(validity.check(at("2051-01-02T00:00:00.001Z")).unwrap_err().contains("expired"));
        assert!(!validity.ends_soon(at("2050-12-18T00:00:00.000Z")));
        assert!(validity.ends_soon(at("2050-12-20T00:00:00.000Z")));
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_times() {
        let der = certificate((2024, 1, 1), (2025, 1, 1));
        for end in 0..60 {
            assert_eq!(CertificateValidity::of(&der[..end]), None);
        }
        assert_eq!(CertificateValidity::of(b"not a certificate"), None);
    }
}
