//! Signatures in the formats of other programs: what `bulla sign`, `bulla verify` and `bulla check`
//! do with all of them alike. `bulla-formats` reads and writes each format.

use crate::args::SignatureFormat;
use crate::error::{Error, Result};
use crate::files::read::{ReadError, Source};
use crate::findings::{Finding, Problem, Signed};
use crate::progress::Progress;
use crate::store::Keys;
use crate::trust::Trust;
use bulla_files::escape_path;
use bulla_formats::{
    ContentHasher, Coverage, ForeignFormat, ForeignSignature, FormatError, MessageSigner, minisign, signify,
    ssh,
};
use bulla_kms::signature::Comment;
use bulla_kms::{Algorithm, KeyVersionId, PublicKey, Timestamp};
use std::path::Path;

/// The most bytes of a signature file: one of signify may have a list of checksums.
pub(super) const MAX_FILE_LEN: u64 = 16 << 20;

impl From<ForeignFormat> for SignatureFormat {
    fn from(format: ForeignFormat) -> Self {
        match format {
            ForeignFormat::Ssh => Self::Ssh,
            ForeignFormat::Signify => Self::Signify,
            _ => Self::Minisign,
        }
    }
}

impl SignatureFormat {
    /// What a signature covers of a file; None for bulla's own format, which covers a statement.
    pub(super) fn coverage(self) -> Option<Coverage> {
        match self {
            Self::Bulla => None,
            Self::Minisign => Some(Coverage::Blake2b512),
            Self::Ssh => Some(Coverage::Sha512),
            Self::Signify => Some(Coverage::Whole),
        }
    }

    /// Refuses the algorithms that the format does not have.
    pub(super) fn check_algorithm(self, algorithm: Algorithm) -> Result<()> {
        let program = match self {
            Self::Bulla => return Ok(()),
            Self::Ssh if algorithm == Algorithm::EcdsaP256 => return Ok(()),
            _ if algorithm == Algorithm::Ed25519 => return Ok(()),
            Self::Ssh => "bulla signs for OpenSSH only with keys of Ed25519 and P-256",
            Self::Minisign => "minisign has only Ed25519 signatures",
            Self::Signify => "signify has only Ed25519 signatures",
        };
        let message = format!("is a {algorithm} key, but {program}");
        let hint = format!("name an Ed25519 key with --key, or leave out --format {}", self.name());
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

/// One version of a key: the latest one, from the first signature on. A rotation policy may replace
/// the latest version between two signatures of one file.
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

/// A new signature.
pub(super) struct NewSignature {
    /// The signature file.
    pub(super) text: String,
    pub(super) key: KeyVersionId,
    pub(super) public_key: PublicKey,
    pub(super) signed_at: Timestamp,
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
    /// Signs what the format covers of the file.
    pub(super) fn sign(&self, content: &[u8]) -> Result<NewSignature> {
        let signed_at = Timestamp::now()?;
        let mut signer = VersionSigner { keys: self.keys, name: self.key, version: None };
        let untrusted = "signature from a key of bulla";
        let text = match self.format {
            SignatureFormat::Ssh => ssh::sign(&mut signer, self.namespace, content),
            SignatureFormat::Signify => signify::sign(&mut signer, content, untrusted),
            SignatureFormat::Minisign | SignatureFormat::Bulla => {
                minisign::sign(&mut signer, content, &self.trusted_comment(signed_at), untrusted)
            }
        };
        let text = text.map_err(|SignError(error)| match error.code() {
            "not_signed" => error.about(escape_path(self.path)),
            _ => error,
        })?;
        let (key, public_key) = signer.version.expect("every format signs at least once");
        Ok(NewSignature { text, key, public_key, signed_at })
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

/// Whether somebody who is trusted signed a content. `content` reads what the signature covers of
/// it, after the key was found to be trusted.
pub(super) fn verify(
    signature: &ForeignSignature,
    trust: &Trust,
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

fn numbered(format: SignatureFormat, number: minisign::KeyNumber, comment: String) -> Signed {
    let key = number.to_string();
    let by = format!("the key {key}");
    Signed { format, key, principal: None, by, signed_at: None, comment }
}
