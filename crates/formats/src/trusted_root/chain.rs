//! Bundles under a certificate of an authority that is not one of Sigstore, as `model_signing sign
//! certificate` makes them.

use bulla_kms::Timestamp;
use bulla_kms::transfer::{PublicFormat, import_public};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use sha2::{Digest as _, Sha256};
use sigstore_verify::crypto::WEBPKI_VERIFICATION_ALGS;
use sigstore_verify::types::bundle::VerificationMaterialContent;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{Decode as _, Encode as _, EncodePem as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage as KeyUsageExtension, SubjectAltName};

use super::{leaf, provider};
use crate::digests::to_hex;
use crate::error::FormatError;
use crate::evidence::{CertificateSigner, Evidence, EvidenceError};
use crate::message_key::MessageKey;
use crate::sigstore::SigstoreBundle;
use crate::ssh::SshKey;

/// The purpose of signing code (RFC 5280, section 4.2.1.12), as DER has it without tag and length.
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];

/// What a certificate counts for after its last day. Nothing in such a bundle says when it was
/// signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiredCertificates {
    /// Nothing: somebody who found the key later could sign with it.
    Refuse,
    /// As much as before, as for `model_signing`.
    Accept,
}

/// The authorities that a verifier trusts, and certificates between them and the signers.
#[derive(Debug)]
pub struct CertificateChain {
    anchors: Vec<TrustAnchor<'static>>,
    intermediates: Vec<CertificateDer<'static>>,
}

impl CertificateChain {
    /// Reads certificates in PEM, with any text between them. Those that an authority issued to
    /// itself are trusted. The others help to find a way to one of these.
    ///
    /// # Errors
    /// One of them is malformed, or none is self-issued.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        provider::install();
        let malformed = || FormatError::new("it is not a list of certificates in PEM");
        let certificates = Certificate::load_pem_chain(&without_text(bytes)).ok();
        let certificates = certificates.filter(|found| !found.is_empty()).ok_or_else(malformed)?;
        let mut chain = Self { anchors: Vec::new(), intermediates: Vec::new() };
        for certificate in certificates {
            let tbs = certificate.tbs_certificate();
            let is_root = tbs.subject() == tbs.issuer();
            let der = CertificateDer::from(certificate.to_der().map_err(|_| malformed())?);
            if !is_root {
                chain.intermediates.push(der);
                continue;
            }
            let anchor = anchor_from_trusted_cert(&der)
                .map_err(|_| FormatError::new("a certificate in it cannot be one of an authority"))?;
            chain.anchors.push(anchor.to_owned());
        }
        if chain.anchors.is_empty() {
            let message = "it has no certificate that an authority issued to itself";
            return Err(FormatError::new(message));
        }
        Ok(chain)
    }

    /// Verifies a bundle that was made under a certificate of one of the authorities: the
    /// signature, and the way from the certificate to the authority. `covered` is what
    /// [`SigstoreBundle::coverage`] names, and None if the bundle has an envelope.
    ///
    /// # Errors
    /// Somebody else signed, or the certificate does not permit that, or has expired.
    pub fn verify(
        &self,
        bundle: &SigstoreBundle,
        covered: Option<&[u8]>,
        expired: ExpiredCertificates,
        now: Timestamp,
    ) -> Result<Evidence, EvidenceError> {
        let der = leaf(bundle).ok_or_else(|| {
            EvidenceError::WrongSigner("it was made with a key, and a certificate is wanted".to_owned())
        })?;
        let malformed = || EvidenceError::Invalid("its certificate is malformed".to_owned());
        let certificate = Certificate::from_der(der).map_err(|_| malformed())?;
        check_usage(&certificate)?;
        let time = check_time(&certificate, expired, now)?;
        self.check_path(bundle, der, time)?;
        if !is_signed(bundle, &certificate, covered).ok_or_else(malformed)? {
            let reason = "its content is not what was signed, or somebody edited the bundle";
            return Err(EvidenceError::Changed(reason.to_owned()));
        }
        let signer = CertificateSigner {
            identity: identity(&certificate),
            issuer: None,
            fingerprint: to_hex(&Sha256::digest(der)),
        };
        Ok(Evidence { certificate: Some(signer), ..Evidence::default() })
    }

    fn check_path(&self, bundle: &SigstoreBundle, der: &[u8], time: Duration) -> Result<(), EvidenceError> {
        let refused = || {
            let reason = "its certificate is not one of the given authorities";
            EvidenceError::WrongSigner(reason.to_owned())
        };
        let der = CertificateDer::from(der);
        let certificate = EndEntityCert::try_from(&der).map_err(|_| refused())?;
        let mut intermediates = self.intermediates.clone();
        if let VerificationMaterialContent::X509CertificateChain { certificates } =
            &bundle.bundle.verification_material.content
        {
            let others = certificates.iter().skip(1).map(|one| one.raw_bytes.as_bytes().to_vec());
            intermediates.extend(others.map(CertificateDer::from));
        }
        let path = certificate.verify_for_usage(
            WEBPKI_VERIFICATION_ALGS,
            &self.anchors,
            &intermediates,
            UnixTime::since_unix_epoch(time),
            KeyUsage::required_if_present(CODE_SIGNING),
            None,
            None,
        );
        path.map(|_| ()).map_err(|_| refused())
    }
}

/// The certificates of a file in PEM, without the text that programs write between them (RFC 7468,
/// section 2).
fn without_text(bytes: &[u8]) -> Vec<u8> {
    let mut is_inside = false;
    let is_kept = |line: &&[u8]| {
        let is_begin = line.trim_ascii_end() == b"-----BEGIN CERTIFICATE-----";
        let is_end = line.trim_ascii_end() == b"-----END CERTIFICATE-----";
        let is_kept = is_inside || is_begin;
        is_inside = is_kept && !is_end;
        is_kept
    };
    bytes.split_inclusive(|byte| *byte == b'\n').filter(is_kept).collect::<Vec<_>>().concat()
}

/// Refuses a certificate that is not for signatures.
fn check_usage(certificate: &Certificate) -> Result<(), EvidenceError> {
    let tbs = certificate.tbs_certificate();
    let malformed = |_| EvidenceError::Invalid("its certificate is malformed".to_owned());
    let usage = tbs.get_extension::<KeyUsageExtension>().map_err(malformed)?;
    let purposes = tbs.get_extension::<ExtendedKeyUsage>().map_err(malformed)?;
    let is_for_signatures = match (usage, purposes) {
        (Some((_, usage)), _) => usage.digital_signature(),
        // Which purposes there are is checked with the path.
        (None, purposes) => purposes.is_some(),
    };
    if is_for_signatures {
        return Ok(());
    }
    let reason = "its certificate is not for signatures";
    Err(EvidenceError::WrongSigner(reason.to_owned()))
}

/// The time for which the certificates are verified, since 1970: now, or the first second of the
/// certificate if expired ones count.
fn check_time(
    certificate: &Certificate,
    expired: ExpiredCertificates,
    now: Timestamp,
) -> Result<Duration, EvidenceError> {
    let validity = certificate.tbs_certificate().validity();
    let (from, until) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
    let now = Duration::from_millis(now.unix_millis());
    if now < from {
        let reason = format!("its certificate is valid from {}", validity.not_before);
        return Err(EvidenceError::Expired(reason));
    }
    match expired {
        ExpiredCertificates::Accept => Ok(from),
        ExpiredCertificates::Refuse if now <= until => Ok(now),
        ExpiredCertificates::Refuse => {
            let reason = format!("its certificate was valid until {}", validity.not_after);
            Err(EvidenceError::Expired(reason))
        }
    }
}

/// Whether the key in a certificate signed. None if it is of an algorithm that bundles do not have.
fn is_signed(bundle: &SigstoreBundle, certificate: &Certificate, covered: Option<&[u8]>) -> Option<bool> {
    let info = certificate.tbs_certificate().subject_public_key_info();
    let ours = import_public(&info.to_der().ok()?, PublicFormat::Der, None).ok();
    let theirs = SshKey::from_pem(&info.to_pem(LineEnding::LF).ok()?).ok();
    let key = match (&ours, &theirs) {
        (_, Some(key)) => MessageKey::Ssh(key),
        (Some(key), None) => MessageKey::Kms(key),
        (None, None) => return None,
    };
    Some(match (bundle.envelope(), covered) {
        (Some(envelope), _) => envelope.is_signed_by(&envelope.message(), key),
        (None, Some(covered)) => bundle.is_file_signed_by(covered, key),
        (None, None) => false,
    })
}

/// The first email address or URI of a certificate, or its subject.
fn identity(certificate: &Certificate) -> String {
    let tbs = certificate.tbs_certificate();
    let names = tbs.get_extension::<SubjectAltName>().ok().flatten().map(|(_, names)| names.0);
    let named = names.unwrap_or_default().into_iter().find_map(|name| match name {
        GeneralName::Rfc822Name(text) => Some(text.to_string()),
        GeneralName::UniformResourceIdentifier(text) => Some(text.to_string()),
        _ => None,
    });
    named.unwrap_or_else(|| tbs.subject().to_string())
}
