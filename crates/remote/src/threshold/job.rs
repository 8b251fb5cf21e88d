//! What a group is asked to sign: a file, in a format. Everybody computes the signed bytes from
//! this text and from the own copy of the file.

use super::args::ThresholdFormat;
use base64ct::{Base64, Encoding as _};
use bulla_command::error::{Error, Result};
use bulla_command::progress::Progress;
use bulla_files::escape_path;
use bulla_formats::{ContentHasher, Coverage, FormatError, MessageSigner, minisign, ssh};
use bulla_kms::signature::Comment;
use bulla_kms::{KeyVersionId, PublicKey, SignatureFile, StatementKind, Timestamp};
use bulla_sums::{Links, Source};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is to be signed, as it goes round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The name of the file, for people: no signature covers it.
    pub(super) file: String,
    pub(super) size: u64,
    /// BLAKE3. Only a signature of bulla's own covers it: see [`Job::signed_digest`].
    pub(super) digest: String,
    #[serde(flatten)]
    pub(super) form: SignatureForm,
    /// When it was requested: the time in the signature.
    pub(super) time: Timestamp,
}

/// The format, with what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "lowercase")]
pub(super) enum SignatureForm {
    Bulla {
        comment: Comment,
    },
    /// `covered` is the BLAKE2b-512 digest of the file, in base64.
    Minisign {
        comment: Comment,
        covered: String,
    },
    /// `covered` is its SHA-512 digest.
    Ssh {
        namespace: String,
        covered: String,
    },
}

impl SignatureForm {
    /// What the name of the signature file ends with.
    pub(super) fn extension(&self) -> &'static str {
        match self {
            Self::Bulla { .. } => ".bulla",
            Self::Minisign { .. } => ".minisig",
            Self::Ssh { .. } => ".sig",
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bulla { .. } => "bulla",
            Self::Minisign { .. } => "minisign",
            Self::Ssh { .. } => "ssh",
        }
    }

    /// How many signatures a signature file needs: minisign signs the comment together with the
    /// first signature.
    pub(super) fn steps(&self) -> u8 {
        match self {
            Self::Minisign { .. } => 2,
            Self::Bulla { .. } | Self::Ssh { .. } => 1,
        }
    }
}

/// What the formats need to know of a file.
struct ReadFile {
    size: u64,
    digest: String,
    covered: String,
}

/// Reads a file once, for both of its digests.
fn read(path: &Path, coverage: Coverage) -> Result<ReadFile> {
    let about = |error: Error| error.about(escape_path(path));
    let source = Source::open_file(path, Links::Follow).map_err(|error| about(error.into()))?;
    let (mut blake3, mut covered) = (bulla_blake3::Hasher::new(), ContentHasher::new(coverage));
    let mut size = 0;
    source
        .for_each(&Progress::new(source.len()), |bytes| {
            size += bytes.len() as u64;
            blake3.update(bytes);
            covered.update(bytes);
        })
        .map_err(|error| about(error.into()))?;
    let covered = covered.finish().map_err(|error| about(Error::new("file_too_large", error.to_string())))?;
    let digest = blake3.finalize().to_hex().to_string();
    Ok(ReadFile { size, digest, covered: Base64::encode_string(&covered) })
}

fn coverage(format: ThresholdFormat) -> Coverage {
    match format {
        ThresholdFormat::Minisign => Coverage::Blake2b512,
        // bulla's own format covers the BLAKE3 digest, which is computed anyway.
        ThresholdFormat::Ssh | ThresholdFormat::Bulla => Coverage::Sha512,
    }
}

impl Job {
    /// Reads the file to sign.
    pub(super) fn of(
        path: &Path,
        format: ThresholdFormat,
        comment: Comment,
        namespace: Option<&str>,
    ) -> Result<Self> {
        let ReadFile { size, digest, covered } = read(path, coverage(format))?;
        let form = match format {
            ThresholdFormat::Bulla => SignatureForm::Bulla { comment },
            ThresholdFormat::Minisign => SignatureForm::Minisign { comment, covered },
            ThresholdFormat::Ssh => {
                let namespace = namespace.unwrap_or(ssh::FILE_NAMESPACE).to_owned();
                SignatureForm::Ssh { namespace, covered }
            }
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { file: name, size, digest, form, time: Timestamp::now()? })
    }

    /// Reads what [`Job::to_text`] wrote, and nothing else.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let job = serde_json::from_str(text).ok();
        job.filter(|job: &Self| job.to_text() == text && job.is_well_formed()).ok_or_else(|| {
            Error::new("malformed_message", "asks for something that this program does not know")
                .hint("use the version of bulla that the requester has")
        })
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("plain structures serialize")
    }

    /// The digest of the file that the signature covers: its name, and the digest in hexadecimal.
    /// The requester may have written another digest beside it.
    pub(super) fn signed_digest(&self) -> (&'static str, String) {
        let hex = |covered: &str| -> String {
            let bytes = Base64::decode_vec(covered).unwrap_or_default();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        match &self.form {
            SignatureForm::Bulla { .. } => ("BLAKE3", self.digest.clone()),
            SignatureForm::Minisign { covered, .. } => ("BLAKE2b", hex(covered)),
            SignatureForm::Ssh { covered, .. } => ("SHA-512", hex(covered)),
        }
    }

    /// Refuses a copy of the file whose content is another one.
    pub(super) fn check_file(&self, path: &Path) -> Result<()> {
        let (format, covered) = match &self.form {
            SignatureForm::Bulla { .. } => (ThresholdFormat::Bulla, None),
            SignatureForm::Minisign { covered, .. } => (ThresholdFormat::Minisign, Some(covered)),
            SignatureForm::Ssh { covered, .. } => (ThresholdFormat::Ssh, Some(covered)),
        };
        let found = read(path, coverage(format))?;
        let is_same = found.size == self.size
            && found.digest == self.digest
            && covered.is_none_or(|covered| *covered == found.covered);
        if is_same {
            return Ok(());
        }
        let message = format!(
            "is not what you are asked to approve: it has {} bytes and the digest {}",
            found.size, found.digest
        );
        Err(Error::new("changed", message)
            .about(escape_path(path))
            .hint("ask the requester over another channel; name another copy with --file FILE"))
    }

    /// What comes next, given the signatures so far: another message to sign, or the signature
    /// file.
    pub(super) fn next(
        &self,
        key: &KeyVersionId,
        public_key: &PublicKey,
        signatures: &[[u8; 64]],
    ) -> Result<NextStep, FormatError> {
        let mut signer = Replay { public_key, signatures: signatures.iter() };
        let untrusted = "signature from a group's key of bulla";
        let decoded = |text: &str| Base64::decode_vec(text).unwrap_or_default();
        let text = match &self.form {
            SignatureForm::Bulla { comment } => self.statement(key, public_key, comment, &mut signer),
            SignatureForm::Minisign { comment, covered } => {
                minisign::sign(&mut signer, &decoded(covered), &self.trusted_comment(comment), untrusted)
            }
            SignatureForm::Ssh { namespace, covered } => ssh::sign(&mut signer, namespace, &decoded(covered)),
        };
        match text {
            Ok(text) => Ok(NextStep::File(text)),
            Err(ReplayEnd::Wanted(message)) => Ok(NextStep::Message(message)),
            Err(ReplayEnd::Format(error)) => Err(error),
        }
    }

    fn statement(
        &self,
        key: &KeyVersionId,
        public_key: &PublicKey,
        comment: &Comment,
        signer: &mut Replay<'_>,
    ) -> Result<String, ReplayEnd> {
        let file = SignatureFile {
            kind: StatementKind::File,
            key: key.clone(),
            public_key: public_key.clone(),
            digest: self.blake3(),
            size: self.size,
            signed_at: self.time,
            comment: comment.clone(),
            name: None,
            prehash: None,
            signature: Vec::new(),
        };
        let (_, signature) = signer.sign(&file.signed_bytes())?;
        Ok(SignatureFile { signature, ..file }.to_string())
    }

    fn blake3(&self) -> bulla_blake3::Hash {
        bulla_blake3::Hash::from_hex(&self.digest).unwrap_or(bulla_blake3::Hash::from_bytes([0; 32]))
    }

    /// Whether all texts in it are what they should be. A digest of another length would be signed
    /// as another message, and a name with a slash would be that of a file elsewhere.
    fn is_well_formed(&self) -> bool {
        let covers_64_bytes =
            |covered: &str| Base64::decode_vec(covered).is_ok_and(|bytes| bytes.len() == 64);
        let form = match &self.form {
            SignatureForm::Bulla { .. } => true,
            SignatureForm::Minisign { covered, .. } => covers_64_bytes(covered),
            SignatureForm::Ssh { namespace, covered } => {
                covers_64_bytes(covered) && ssh::check_namespace(namespace).is_ok()
            }
        };
        let is_name = Path::new(&self.file).file_name() == Some(self.file.as_ref());
        is_name && form && self.blake3().to_hex().as_str() == self.digest
    }

    /// The comment that minisign prints, as `bulla sign` writes it.
    fn trusted_comment(&self, comment: &Comment) -> String {
        if !comment.as_str().is_empty() {
            return comment.to_string();
        }
        let name = escape_path(Path::new(&self.file));
        format!("timestamp:{}\tfile:{name}\thashed", self.time.unix_millis() / 1000)
    }
}

/// What follows the signatures so far.
pub(super) enum NextStep {
    /// This is signed next.
    Message(Vec<u8>),
    /// The signature file is complete.
    File(String),
}

/// Gives a writer of a format the signatures that exist, and finds out what it wants next.
struct Replay<'a> {
    public_key: &'a PublicKey,
    signatures: std::slice::Iter<'a, [u8; 64]>,
}

enum ReplayEnd {
    Wanted(Vec<u8>),
    Format(FormatError),
}

impl From<FormatError> for ReplayEnd {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl MessageSigner for Replay<'_> {
    type Error = ReplayEnd;

    fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), ReplayEnd> {
        let signature = self.signatures.next().ok_or_else(|| ReplayEnd::Wanted(message.to_vec()))?;
        Ok((self.public_key.clone(), signature.to_vec()))
    }
}
