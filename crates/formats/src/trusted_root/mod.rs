//! Certificates, transparency logs and timestamps of bundles of Sigstore, verified offline against
//! what the verifier trusts: a *trusted root* of Sigstore
//! (<https://github.com/sigstore/protobuf-specs>, `sigstore_trustroot.proto`), or a chain of
//! certificates.
//!
//! The libraries of the Sigstore project verify. Nothing here asks a network.
//!
//! ```
//! use bulla_formats::trusted_root::TrustedRoot;
//!
//! let text = br#"{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}"#;
//! let root = TrustedRoot::parse(text)?;
//! assert!(!root.has_logs());
//! # Ok::<(), bulla_formats::FormatError>(())
//! ```

mod chain;
mod provider;

pub use self::chain::{CertificateChain, ExpiredCertificates};

use bulla_kms::Timestamp;
use bulla_kms::transfer::{PublicFormat, export_public};
use p384::pkcs8::EncodePublicKey as _;
use sha2::{Digest as _, Sha256};
use sigstore_verify::trust_root::TrustedRoot as Root;
use sigstore_verify::types::bundle::VerificationMaterialContent;
use sigstore_verify::types::{
    Artifact, ArtifactDigest, DerPublicKey, HashAlgorithm, KindVersion, LogKeyId, SignatureContent,
    Statement, TransparencyLogEntry,
};
use sigstore_verify::{
    CertificateError, Error, Policy, PublicKeyVerificationPolicy, TimestampError, TransparencyLogError,
    VerificationPolicy, VerificationResult, Verifier,
};

use crate::content::Coverage;
use crate::digests::to_hex;
use crate::error::FormatError;
use crate::evidence::{CertificateSigner, Evidence, EvidenceError};
use crate::json;
use crate::message_key::MessageKey;
use crate::sigstore::{BundleSigner, SigstoreBundle};
use crate::verifying_key::VerifyingKey;

/// The most bytes of a trusted root, or of a file with certificates.
pub const MAX_ROOT_LEN: usize = 4 << 20;

/// The most entries of logs in a bundle, and the most timestamps: each takes time to verify.
const MAX_PARTS: usize = 64;

/// The logs and authorities that a verifier trusts.
pub struct TrustedRoot {
    verifier: Verifier,
    /// The ids of the transparency logs.
    logs: Vec<LogKeyId>,
    has_certificate_logs: bool,
}

/// Who must have signed, by a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedSigner {
    /// The email address or URI in the certificate.
    pub identity: String,
    /// The OpenID issuer that knew the signer.
    pub issuer: String,
}

impl std::fmt::Debug for TrustedRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustedRoot").field("logs", &self.logs).finish_non_exhaustive()
    }
}

impl TrustedRoot {
    /// Reads a trusted root.
    ///
    /// # Errors
    /// It is malformed, has a member twice, or has a key or certificate that cannot be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        provider::install();
        json::check(bytes)?;
        let text = std::str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))?;
        let no_root = || FormatError::new("it is not a trusted root of Sigstore");
        let root = Root::from_json(text).map_err(|_| no_root())?;
        if !root.media_type.starts_with("application/vnd.dev.sigstore.trustedroot") {
            return Err(no_root());
        }
        let unusable = |_| {
            FormatError::new(
                "one of its keys or certificates is malformed, is there twice, or is of an unknown kind",
            )
        };
        Ok(Self {
            verifier: Verifier::new(&root).map_err(unusable)?,
            logs: root.tlogs.iter().map(|log| log.log_id.key_id.clone()).collect(),
            has_certificate_logs: !root.ctlogs.is_empty(),
        })
    }

    /// Whether it names transparency logs. Then a bundle needs an entry of one of them.
    pub fn has_logs(&self) -> bool {
        !self.logs.is_empty()
    }

    /// Verifies what a bundle has beside its signature, which is one of `key`: each entry of a
    /// transparency log, and each timestamp. `covered` is what [`SigstoreBundle::coverage`] names,
    /// and None if the bundle has an envelope; whether that is about the right files is the
    /// caller's question.
    ///
    /// # Errors
    /// The bundle has no entry, although there are logs; something in it does not verify; the key
    /// is of an algorithm that Sigstore does not have.
    pub fn verify_key(
        &self,
        bundle: &SigstoreBundle,
        key: MessageKey<'_>,
        covered: Option<&[u8]>,
    ) -> Result<Evidence, EvidenceError> {
        if bundle.signer() != BundleSigner::Key {
            return Err(EvidenceError::WrongSigner("it was made under a certificate".to_owned()));
        }
        let der = key_der(key).ok_or_else(|| {
            let reason = "transparency logs have only keys of Ed25519 and of ECDSA on P-256 and P-384";
            EvidenceError::Invalid(reason.to_owned())
        })?;
        let policy = PublicKeyVerificationPolicy::new(DerPublicKey::new(der));
        let policy = if self.has_logs() { policy } else { policy.skip_tlog_unsafe() };
        // Without logs and timestamps, there is nothing that could be verified.
        if !self.has_logs() && bundle.evidence_counts() == [0, 0] {
            return Ok(Evidence::default());
        }
        let result = self.verify(bundle, covered, &policy)?;
        Ok(self.evidence(bundle, &result))
    }

    /// Verifies a bundle that was made under a certificate: signature, certificate, entries of
    /// transparency logs, and timestamps. `covered` is as in [`TrustedRoot::verify_key`].
    ///
    /// # Errors
    /// Somebody else signed; something is missing, or does not verify.
    pub fn verify_certificate(
        &self,
        bundle: &SigstoreBundle,
        wanted: &WantedSigner,
        covered: Option<&[u8]>,
    ) -> Result<Evidence, EvidenceError> {
        if bundle.signer() != BundleSigner::Certificate {
            let reason = "it was made with a key, and a certificate is wanted";
            return Err(EvidenceError::WrongSigner(reason.to_owned()));
        }
        let mut policy = VerificationPolicy::new(wanted.identity.clone(), wanted.issuer.clone());
        if !self.has_logs() {
            policy = policy.skip_tlog_unsafe();
        }
        if !self.has_certificate_logs {
            policy = policy.skip_sct();
        }
        let result = self.verify(bundle, covered, &policy)?;
        let mut evidence = self.evidence(bundle, &result);
        evidence.certificate = Some(CertificateSigner {
            identity: result.identity().map(ToString::to_string).unwrap_or_default(),
            issuer: result.issuer().map(str::to_owned),
            fingerprint: fingerprint(bundle),
        });
        Ok(evidence)
    }

    fn verify(
        &self,
        bundle: &SigstoreBundle,
        covered: Option<&[u8]>,
        policy: &dyn Policy,
    ) -> Result<VerificationResult, EvidenceError> {
        let entries = &bundle.bundle.verification_material.tlog_entries;
        if bundle.evidence_counts().iter().any(|count| *count > MAX_PARTS) {
            let reason = format!("it has more than {MAX_PARTS} entries of logs, or timestamps");
            return Err(EvidenceError::Invalid(reason));
        }
        if self.has_logs() {
            entries.iter().try_for_each(|entry| self.check_entry(entry))?;
        }
        let artifact = artifact(bundle, covered)?;
        self.verifier.verify(artifact, &bundle.bundle, policy).map_err(|error| refusal(&error))
    }

    /// What the library leaves out: it wants one proof among all entries, and passes over what an
    /// entry says beside what its log signed.
    fn check_entry(&self, entry: &TransparencyLogEntry) -> Result<(), EvidenceError> {
        let refuse = |reason: &str| Err(EvidenceError::Invalid(reason.to_owned()));
        if entry.inclusion_proof.is_none() && entry.inclusion_promise.is_none() {
            return refuse("an entry of a transparency log has neither a proof nor a promise of the log");
        }
        if !self.logs.contains(&entry.log_id.key_id) {
            return refuse("an entry is of a log that is not trusted");
        }
        let Some(proof) = &entry.inclusion_proof else { return Ok(()) };
        let Some(checkpoint) = proof.checkpoint.checkpoint() else { return Ok(()) };
        let id = entry.log_id.key_id.as_bytes();
        if !checkpoint.signatures().iter().any(|one| id.starts_with(one.key_id.as_bytes())) {
            return refuse("an entry names another log than its checkpoint");
        }
        // Logs of the second version sign no times, and only the checkpoint has the size and the
        // root of the tree.
        if entry.kind_version != KindVersion::HashedRekordV002 {
            return Ok(());
        }
        if entry.integrated_time.is_some() {
            return refuse("an entry has a time, which its log does not sign");
        }
        let agrees = proof.log_index == entry.log_index
            && proof.tree_size == checkpoint.tree_size()
            && proof.root_hash == *checkpoint.root_hash();
        if agrees { Ok(()) } else { refuse("a log's proof says something else than its checkpoint") }
    }

    fn evidence(&self, bundle: &SigstoreBundle, result: &VerificationResult) -> Evidence {
        let [log_entries, timestamps] = bundle.evidence_counts();
        let earliest = result.verified_timestamps().iter().min();
        let millis = earliest.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        Evidence {
            log_entries: if self.has_logs() { log_entries } else { 0 },
            timestamps,
            time: millis.and_then(|millis| Timestamp::from_unix_millis(millis).ok()),
            certificate: None,
        }
    }
}

/// A key in the form of SubjectPublicKeyInfo.
fn key_der(key: MessageKey<'_>) -> Option<Vec<u8>> {
    if let MessageKey::Kms(key) = key {
        return export_public(key, PublicFormat::Der).ok();
    }
    match key.verifying_key()? {
        VerifyingKey::Kms(key) => export_public(&key, PublicFormat::Der).ok(),
        VerifyingKey::P384(key) => Some(key.to_public_key_der().ok()?.into_vec()),
        _ => None,
    }
}

/// What the library compares with the bundle.
fn artifact<'a>(bundle: &SigstoreBundle, covered: Option<&'a [u8]>) -> Result<Artifact<'a>, EvidenceError> {
    let digest = |algorithm, bytes: &[u8]| {
        let digest = ArtifactDigest::new(algorithm, bytes.to_vec());
        digest.map(Artifact::from).map_err(|_| EvidenceError::Invalid("it has no digest".to_owned()))
    };
    match (covered, &bundle.bundle.content) {
        (Some(covered), _) if bundle.coverage() == Coverage::Sha256 => {
            digest(HashAlgorithm::Sha2256, covered)
        }
        (Some(covered), _) => Ok(Artifact::from(covered)),
        // Which files the statement is about, the caller compares. One of them is enough here.
        (None, SignatureContent::DsseEnvelope(envelope)) => {
            let statement: Option<Statement> = serde_json::from_slice(envelope.payload.as_bytes()).ok();
            let subjects = statement.map(|statement| statement.subject).unwrap_or_default();
            let known = subjects.iter().find_map(|subject| {
                let sha256 = subject.digest.sha256.as_ref();
                let sha512 = subject.digest.sha512.as_ref();
                sha256
                    .map(|found| (HashAlgorithm::Sha2256, found.as_bytes().to_vec()))
                    .or_else(|| sha512.map(|found| (HashAlgorithm::Sha2512, found.as_bytes().to_vec())))
            });
            let unknown = || {
                let reason = "no subject of its statement has a digest of SHA-256 or SHA-512";
                EvidenceError::Invalid(reason.to_owned())
            };
            let (algorithm, bytes) = known.ok_or_else(unknown)?;
            digest(algorithm, &bytes)
        }
        (None, _) => Err(EvidenceError::Invalid("the bundle has no envelope".to_owned())),
    }
}

/// The SHA-256 digest of the signer's certificate.
fn fingerprint(bundle: &SigstoreBundle) -> String {
    leaf(bundle).map(|der| to_hex(&Sha256::digest(der))).unwrap_or_default()
}

/// The signer's certificate in DER.
fn leaf(bundle: &SigstoreBundle) -> Option<&[u8]> {
    match &bundle.bundle.verification_material.content {
        VerificationMaterialContent::Certificate(found) => Some(found.raw_bytes.as_bytes()),
        VerificationMaterialContent::X509CertificateChain { certificates } => {
            certificates.first().map(|found| found.raw_bytes.as_bytes())
        }
        _ => None,
    }
}

/// Why a bundle is refused, in our words. The library's texts have parts of the bundle in them,
/// which anybody may have written.
fn refusal(error: &Error) -> EvidenceError {
    let invalid = |reason: &str| EvidenceError::Invalid(reason.to_owned());
    match error {
        Error::IdentityMismatch { actual, .. } => EvidenceError::WrongSigner(match actual {
            Some(actual) => format!("it is signed by {:?}", actual.as_str()),
            None => "its certificate names nobody".to_owned(),
        }),
        Error::IssuerMismatch { actual, .. } => EvidenceError::WrongSigner(match actual {
            Some(actual) => format!("the issuer {actual:?} knew the signer"),
            None => "its certificate names no issuer".to_owned(),
        }),
        Error::ArtifactMismatch(_) => EvidenceError::Changed(
            "its content is not what was signed, or somebody edited the bundle".to_owned(),
        ),
        Error::SignatureInvalid(_) => EvidenceError::Changed(
            "its content is not what was signed, or somebody edited the bundle".to_owned(),
        ),
        Error::Certificate(error) => certificate_refusal(error),
        Error::TransparencyLog(error) => invalid(match error {
            TransparencyLogError::UnknownLog { .. } => "an entry is of a log that is not trusted",
            TransparencyLogError::InclusionProof(_) => "a log's proof that it has the entry does not verify",
            TransparencyLogError::Checkpoint(_) => "a log's checkpoint is not signed by a trusted log",
            TransparencyLogError::InclusionPromise(_) => {
                "a log's promise does not verify, or is of no trusted log"
            }
            TransparencyLogError::EntryMismatch(_) => "an entry of a log is about another signature",
            TransparencyLogError::IntegratedTime(_) => {
                "the time of a log's entry is in the future, or not one of the certificate"
            }
            _ => "an entry of a log is malformed, or of an unknown kind",
        }),
        Error::Timestamp(TimestampError::NoVerifiedTimestamp(_)) => {
            invalid("nothing that is trusted says when it was signed")
        }
        Error::Timestamp(_) => invalid("a timestamp is not one of this signature by a trusted authority"),
        Error::Bundle(_) => invalid("it has no proof of a transparency log, or a malformed one"),
        _ => invalid("it has parts that are malformed, or of an unknown kind"),
    }
}

fn certificate_refusal(error: &CertificateError) -> EvidenceError {
    let invalid = |reason: &str| EvidenceError::Invalid(reason.to_owned());
    match error {
        CertificateError::NotYetValid { time, not_before } => EvidenceError::Expired(format!(
            "it was signed at {time}, and its certificate is valid from {not_before}"
        )),
        CertificateError::Expired { time, not_after } => EvidenceError::Expired(format!(
            "it was signed at {time}, and its certificate was valid until {not_after}"
        )),
        CertificateError::NoValidAuthority { time } => {
            EvidenceError::Expired(format!("no trusted authority was valid at {time}, when it was signed"))
        }
        CertificateError::Sct(_) => invalid("no trusted log of certificates vouches for its certificate"),
        CertificateError::Malformed(_) => invalid("its certificate is malformed"),
        _ => invalid("its certificate is not one of a trusted authority for signing code"),
    }
}
