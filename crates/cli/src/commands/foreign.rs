//! Signatures in the formats of other programs: what `bulla sign`, `bulla verify` and `bulla check`
//! do with all of them alike. `bulla-formats` reads and writes each format.

use super::attested::{ListedContent, find_subject};
use crate::args::SignatureFormat;
use crate::error::{Error, Result};
use crate::files::read::{ReadError, Source};
use crate::findings::{Finding, Problem, Signed};
use crate::progress::Progress;
use crate::store::Keys;
use crate::trust::Trust;
use bulla_files::escape_path;
use bulla_formats::dsse::Envelope;
use bulla_formats::in_toto::PAYLOAD_TYPE;
use bulla_formats::jws::{self, JwsAlgorithm, JwsSignature};
use bulla_formats::oms::ModelManifest;
use bulla_formats::sigstore::{KeyHint, MAX_BUNDLE_LEN, SigstoreBundle};
use bulla_formats::{
    ContentHasher, Coverage, ForeignFormat, ForeignSignature, FormatError, MessageKey, MessageSigner,
    MultiHasher, minisign, signify, ssh,
};
use bulla_kms::signature::Comment;
use bulla_kms::{Algorithm, Attestation, Code, KeyVersionId, PublicKey, Timestamp};
use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::path::Path;

/// The most bytes of a signature file: one of signify may have a list of checksums.
pub(super) const MAX_FILE_LEN: u64 = 16 << 20;

/// The most bytes of a statement: its base64 and the rest of a bundle fit into what is read.
pub(super) const MAX_STATEMENT_LEN: usize = MAX_BUNDLE_LEN / 4 * 3 - (64 << 10);

impl From<ForeignFormat> for SignatureFormat {
    fn from(format: ForeignFormat) -> Self {
        match format {
            ForeignFormat::Ssh => Self::Ssh,
            ForeignFormat::Signify => Self::Signify,
            ForeignFormat::Dsse => Self::Dsse,
            ForeignFormat::Sigstore => Self::Sigstore,
            ForeignFormat::Jws => Self::Jws,
            _ => Self::Minisign,
        }
    }
}

impl From<&ForeignSignature> for SignatureFormat {
    /// A model's signature is a bundle of Sigstore.
    fn from(signature: &ForeignSignature) -> Self {
        match signature {
            ForeignSignature::Sigstore(bundle) if bundle.envelope().is_some_and(ModelManifest::is_in) => {
                Self::Oms
            }
            other => other.format().into(),
        }
    }
}

impl SignatureFormat {
    /// What a signature covers of a file; None for bulla's own format, which covers a statement.
    pub(super) fn coverage(self) -> Option<Coverage> {
        match self {
            Self::Bulla | Self::Dsse | Self::Oms => None,
            Self::Minisign => Some(Coverage::Blake2b512),
            Self::Ssh => Some(Coverage::Sha512),
            Self::Signify | Self::Sigstore | Self::Jws => Some(Coverage::Whole),
        }
    }

    /// Refuses the keys that cannot sign in the format.
    pub(super) fn check_key(self, key: &Attestation) -> Result<()> {
        self.check_algorithm(key.algorithm)?;
        if self == Self::Minisign && key.rotation.max_uses == Some(NonZeroU64::MIN) {
            let message = "has a policy by which a version signs once, but a file of minisign has two signatures by one version";
            let hint =
                "allow two uses with `bulla keys policy NAME --max-uses 2`, or leave out --format minisign";
            return Err(Error::new("key_usage_mismatch", message).hint(hint));
        }
        Ok(())
    }

    /// Refuses the algorithms that the format does not have.
    fn check_algorithm(self, algorithm: Algorithm) -> Result<()> {
        let program = match self {
            Self::Bulla => return Ok(()),
            Self::Ssh | Self::Dsse | Self::Sigstore | Self::Oms if algorithm.is_ecdsa() => return Ok(()),
            Self::Jws if JwsAlgorithm::of(algorithm).is_some() => return Ok(()),
            Self::Oms => "models have only ECDSA signatures",
            _ if algorithm == Algorithm::Ed25519 => return Ok(()),
            Self::Dsse | Self::Sigstore => "this format has only signatures of Ed25519 and ECDSA",
            Self::Ssh => "bulla signs for OpenSSH only with keys of Ed25519 and ECDSA",
            Self::Jws => "this format has only signatures of Ed25519, ECDSA, RSA and ML-DSA",
            Self::Minisign => "minisign has only Ed25519 signatures",
            Self::Signify => "signify has only Ed25519 signatures",
        };
        let message = format!("is a {algorithm} key, but {program}");
        let wanted = if self == Self::Oms { "a P-256 key" } else { "an Ed25519 key" };
        let hint = format!("name {wanted} with --key, or leave out --format {}", self.name());
        Err(Error::new("unsupported_algorithm", message).hint(hint))
    }
}

/// Reads what a signature covers of a file.
pub(super) fn covered(
    source: &Source,
    coverage: Coverage,
    progress: &Progress,
) -> std::result::Result<Vec<u8>, CoverError> {
    coverage.check_len(source.len().unwrap_or(0)).map_err(CoverError::TooLong)?;
    let mut hasher = ContentHasher::new(coverage);
    source.for_each(progress, |bytes| hasher.update(bytes)).map_err(CoverError::Read)?;
    hasher.finish().map_err(CoverError::TooLong)
}

/// Why a file cannot be covered.
pub(super) enum CoverError {
    Read(ReadError),
    TooLong(FormatError),
}

impl From<CoverError> for Error {
    fn from(error: CoverError) -> Self {
        match error {
            CoverError::Read(error) => error.into(),
            CoverError::TooLong(error) => Error::new("file_too_large", error.to_string()),
        }
    }
}

/// An error while signing.
struct SignError(Error);

impl From<FormatError> for SignError {
    fn from(error: FormatError) -> Self {
        Self(Error::new("not_signed", error.to_string()))
    }
}

/// One version of a key: the latest one, from the first signature on, or the one that is chosen
/// before. A rotation policy may replace it between two signatures of one file: then it signs no
/// more, and the file is signed anew.
struct VersionSigner<'a> {
    keys: &'a dyn Keys,
    name: &'a str,
    version: Option<(KeyVersionId, PublicKey)>,
}

impl MessageSigner for VersionSigner<'_> {
    type Error = SignError;

    fn sign(&mut self, message: &[u8]) -> std::result::Result<(PublicKey, Vec<u8>), SignError> {
        if let Some((version, public_key)) = &self.version {
            let signature = self.keys.sign(&version.to_string(), message).map_err(SignError)?;
            return Ok((public_key.clone(), signature.bytes));
        }
        let signature = self.keys.sign(self.name, message).map_err(SignError)?;
        let public_key = self.keys.public_key(&signature.key).map_err(SignError)?;
        self.version = Some((signature.key, public_key.clone()));
        Ok((public_key, signature.bytes))
    }
}

/// How often a key may be rotated while one file is signed. Other programs that sign may use up a
/// version before its turn.
const MAX_ROTATIONS: u32 = 8;

/// Whether a version did not sign because a newer one took its place.
fn is_replaced(error: &Error) -> bool {
    error.code() == Code::NotLatestVersion.as_str()
}

/// A new signature.
pub(super) struct NewSignature {
    /// The signature file.
    pub(super) text: String,
    pub(super) key: KeyVersionId,
    pub(super) public_key: PublicKey,
    pub(super) signed_at: Timestamp,
}

/// What a signature covers.
pub(super) enum Covered {
    /// What the format covers of a file.
    File(Vec<u8>),
    /// A statement of in-toto.
    Statement(String),
}

/// What to sign, and how.
pub(super) struct SignJob<'a> {
    pub(super) keys: &'a dyn Keys,
    /// The key, as the user names it.
    pub(super) key: &'a str,
    pub(super) format: SignatureFormat,
    pub(super) namespace: &'a str,
    pub(super) path: &'a Path,
    pub(super) comment: &'a Comment,
}

impl SignJob<'_> {
    /// Signs what the format covers.
    pub(super) fn sign(&self, covered: &Covered) -> Result<NewSignature> {
        if matches!(covered, Covered::Statement(payload) if payload.len() > MAX_STATEMENT_LEN) {
            let message = format!("is too long: a list of files has at most {MAX_STATEMENT_LEN} bytes");
            return Err(Error::new("file_too_large", message).about(escape_path(self.path)));
        }
        let signed_at = Timestamp::now()?;
        // A user who names a version wants no other one.
        let max_rotations = if self.key.parse::<KeyVersionId>().is_ok() { 0 } else { MAX_ROTATIONS };
        let mut rotations = 0;
        let (text, signer) = loop {
            let mut signer = VersionSigner { keys: self.keys, name: self.key, version: None };
            match self.signature(&mut signer, covered, signed_at) {
                Ok(text) => break (text, signer),
                // The version reached its limit, and a newer one signs from now on.
                Err(SignError(error)) if is_replaced(&error) && rotations < max_rotations => rotations += 1,
                Err(SignError(error)) if error.code() == "not_signed" => {
                    return Err(error.about(escape_path(self.path)));
                }
                Err(SignError(error)) => return Err(error),
            }
        };
        let (key, public_key) = signer.version.expect("every format signs at least once");
        Ok(NewSignature { text, key, public_key, signed_at })
    }

    /// The text of a signature by one version of the key.
    fn signature(
        &self,
        signer: &mut VersionSigner<'_>,
        covered: &Covered,
        signed_at: Timestamp,
    ) -> std::result::Result<String, SignError> {
        let untrusted = "signature from a key of bulla";
        match (self.format, covered) {
            (SignatureFormat::Ssh, Covered::File(content)) => ssh::sign(signer, self.namespace, content),
            (SignatureFormat::Signify, Covered::File(content)) => signify::sign(signer, content, untrusted),
            (SignatureFormat::Sigstore, Covered::File(content)) => {
                SigstoreBundle::sign_file(signer, content).map(|bundle| bundle.to_string())
            }
            (SignatureFormat::Jws, Covered::File(content)) => self.sign_jws(signer, content),
            (_, Covered::File(content)) => {
                minisign::sign(signer, content, &self.trusted_comment(signed_at), untrusted)
            }
            (SignatureFormat::Dsse, Covered::Statement(payload)) => {
                Envelope::sign(signer, PAYLOAD_TYPE, payload.as_bytes()).map(|envelope| envelope.to_string())
            }
            (format, Covered::Statement(payload)) => {
                let hint = match format {
                    SignatureFormat::Oms => KeyHint::ModelSigning,
                    _ => KeyHint::Cosign,
                };
                SigstoreBundle::sign_payload(signer, PAYLOAD_TYPE, payload.as_bytes(), hint)
                    .map(|bundle| bundle.to_string())
            }
        }
    }

    /// Signs a file together with the name of the key version. So the version is chosen before, and
    /// no other one may sign.
    fn sign_jws(
        &self,
        signer: &mut VersionSigner<'_>,
        content: &[u8],
    ) -> std::result::Result<String, SignError> {
        let attestation = self.keys.key(self.key).map_err(SignError)?;
        let named = self.key.parse::<KeyVersionId>().ok();
        let wanted = named.map_or(attestation.latest_version, |id| id.version());
        let found = attestation.versions.iter().find(|one| one.version == wanted);
        let planned = found.and_then(|one| Some((one.id.clone(), one.public_key.clone()?)));
        let no_key = || SignError(Error::new("not_signed", "the key has no public key"));
        let (id, public_key) = planned.ok_or_else(no_key)?;
        signer.version = Some((id.clone(), public_key.clone()));
        jws::sign(signer, &public_key, &id.to_string(), content).map(|signature| signature.to_string())
    }

    /// The comment that minisign prints: the user's, or the time and the name as minisign writes
    /// them.
    fn trusted_comment(&self, signed_at: Timestamp) -> String {
        if !self.comment.as_str().is_empty() {
            return self.comment.to_string();
        }
        let name = self.path.file_name().map(Path::new).unwrap_or(Path::new(""));
        format!("timestamp:{}\tfile:{}\thashed", signed_at.unix_millis() / 1000, escape_path(name))
    }
}

/// Whether somebody who is trusted signed a content. `name` is the name that it must have if the
/// signature covers one. `content` reads what the signature covers of it, after the key was found
/// to be trusted.
pub(super) fn verify(
    signature: &ForeignSignature,
    trust: &Trust,
    name: Option<&OsStr>,
    content: impl FnOnce(Coverage) -> std::result::Result<Vec<u8>, Finding>,
) -> std::result::Result<Signed, Finding> {
    let changed = || Problem::Changed.because("its content is not what was signed");
    match signature {
        ForeignSignature::Minisign(file) => {
            let key = trust.numbered_key(file.number(), SignatureFormat::Minisign)?;
            if !file.comment_verifies(&key) {
                return Err(Problem::BadSignature.because(
                    "somebody edited the signature file, or another key than the named one made it",
                ));
            }
            if !file.verifies(&key, &content(file.coverage())?) {
                return Err(changed());
            }
            let comment = escape_path(Path::new(&file.trusted_comment().replace('\t', " ")));
            Ok(numbered(SignatureFormat::Minisign, file.number(), comment))
        }
        ForeignSignature::Signify(file) => {
            let key = trust.numbered_key(file.number(), SignatureFormat::Signify)?;
            if !file.verifies(&key, &content(Coverage::Whole)?) {
                return Err(changed());
            }
            Ok(numbered(SignatureFormat::Signify, file.number(), String::new()))
        }
        ForeignSignature::Jws(file) => verify_jws(file, trust, content),
        ForeignSignature::Dsse(_) | ForeignSignature::Sigstore(_) => {
            verify_message(signature, trust, name, content)
        }
        ForeignSignature::Ssh(file) => {
            let signed = trust.ssh_signer(file)?;
            if !file.verifies(&content(file.coverage())?) {
                return Err(changed());
            }
            Ok(signed)
        }
        other => {
            let message =
                format!("this program does not verify signatures of the format {:?}", other.format());
            Err(Error::new("unsupported_format", message).into())
        }
    }
}

/// Whether somebody who is trusted made an envelope or a bundle with an envelope, and what it
/// lists.
pub(super) fn verify_envelope(
    signature: &ForeignSignature,
    envelope: &Envelope,
    trust: &Trust,
) -> std::result::Result<(Signed, ListedContent), Finding> {
    let message = envelope.message();
    let format = SignatureFormat::from(signature);
    let verifies = |key: MessageKey<'_>| envelope.is_signed_by(&message, key);
    let mut signed = match signature {
        ForeignSignature::Sigstore(bundle) => trust.bundle_signer(format, bundle, None, verifies)?,
        _ => trust.message_signer(format, verifies)?,
    };
    let listed = ListedContent::read(envelope)?;
    signed.predicate_type = Some(escape_path(Path::new(listed.predicate_type())));
    Ok((signed, listed))
}

/// Verifies one content that is in memory.
fn verify_message(
    signature: &ForeignSignature,
    trust: &Trust,
    name: Option<&OsStr>,
    content: impl FnOnce(Coverage) -> std::result::Result<Vec<u8>, Finding>,
) -> std::result::Result<Signed, Finding> {
    if let Some(envelope) = signature.envelope() {
        let (signed, listed) = verify_envelope(signature, envelope, trust)?;
        let ListedContent::Subjects(statement) = listed else {
            return Err(Problem::BadSignature.because("it signs a model, not one file"));
        };
        let mut hasher = MultiHasher::new(&statement.algorithms());
        hasher.update(&content(Coverage::Whole)?);
        return find_subject(&statement, name, &hasher.finish()).map(|()| signed);
    }
    let ForeignSignature::Sigstore(bundle) = signature else {
        return Err(Problem::MalformedSignature.because("it has no envelope"));
    };
    let covered = content(bundle.coverage())?;
    let verifies = |key: MessageKey<'_>| bundle.is_file_signed_by(&covered, key);
    let found = trust.bundle_signer(SignatureFormat::Sigstore, bundle, Some(&covered), verifies);
    match found {
        Ok(signed) => Ok(signed),
        Err(_) if bundle.claims_another_digest(&covered) => {
            Err(Problem::Changed.because("its content is not what was signed, or somebody edited the bundle"))
        }
        Err(found) => Err(found),
    }
}

/// Verifies a JSON Web Signature of one content.
fn verify_jws(
    file: &JwsSignature,
    trust: &Trust,
    content: impl FnOnce(Coverage) -> std::result::Result<Vec<u8>, Finding>,
) -> std::result::Result<Signed, Finding> {
    trust.admit(SignatureFormat::Jws)?;
    let changed = || Problem::Changed.because("its content is not what was signed");
    let content = content(Coverage::Whole)?;
    // If the signature has the content in it, an intact signature of another content is known.
    let covered = file.payload().unwrap_or(&content);
    let message = file.message(covered).expect("it is the content in the signature, if there is one");
    let found = trust.message_signer(SignatureFormat::Jws, |key| file.is_signed_by(&message, key));
    match found {
        Ok(_) if covered != content => Err(changed()),
        Err(Finding::Problem(..)) if file.key_id().is_some_and(|id| trust.has_version(id)) => {
            Err(Problem::Changed
                .because("its content is not what was signed, or somebody edited the signature"))
        }
        found => found,
    }
}

fn numbered(format: SignatureFormat, number: minisign::KeyNumber, comment: String) -> Signed {
    let key = number.to_string();
    let by = format!("the key {key}");
    Signed { comment, ..Signed::new(format, key, by) }
}
