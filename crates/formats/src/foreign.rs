//! The formats, and a signature in any of them.

use crate::dsse::Envelope;
use crate::error::FormatError;
use crate::jws::JwsSignature;
use crate::minisign::MinisignSignature;
use crate::signify::SignifySignature;
use crate::sigstore::SigstoreBundle;
use crate::ssh::SshSignature;
use crate::{jws, minisign, ssh};

/// The most bytes of a signature file, without an embedded message.
pub const MAX_SIGNATURE_LEN: usize = 64 << 10;

/// How many bytes of a file in JSON tell its format.
const DETECTED_LEN: usize = 4 << 10;

/// A format of another program.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForeignFormat {
    /// That of minisign.
    Minisign,
    /// That of `ssh-keygen -Y sign`, which git uses too.
    Ssh,
    /// That of OpenBSD's signify.
    Signify,
    /// An envelope of DSSE, with a statement of in-toto.
    Dsse,
    /// A bundle of Sigstore.
    Sigstore,
    /// A JSON Web Signature in the compact form.
    Jws,
}

impl ForeignFormat {
    /// The format of a signature file, by its first bytes. None if they begin no signature.
    ///
    /// ```
    /// use bulla_formats::ForeignFormat;
    ///
    /// let ssh = b"-----BEGIN SSH SIGNATURE-----\nU1NIU0lH";
    /// assert_eq!(ForeignFormat::detect(ssh), Some(ForeignFormat::Ssh));
    /// assert_eq!(ForeignFormat::detect(b"a file"), None);
    /// ```
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        if ssh::begins_like_one(bytes) {
            return Some(Self::Ssh);
        }
        if jws::begins_like_one(bytes) {
            return Some(Self::Jws);
        }
        if bytes.trim_ascii_start().starts_with(b"{") {
            return detect_json(bytes);
        }
        if !bytes.starts_with(minisign::UNTRUSTED.as_bytes()) {
            return None;
        }
        let third = bytes.split(|byte| *byte == b'\n').nth(2).unwrap_or_default();
        let is_minisign = third.starts_with(minisign::TRUSTED.as_bytes());
        Some(if is_minisign { Self::Minisign } else { Self::Signify })
    }
}

/// A signature of one of the formats.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum ForeignSignature {
    /// One of minisign.
    Minisign(MinisignSignature),
    /// One of OpenSSH.
    Ssh(Box<SshSignature>),
    /// One of signify.
    Signify(SignifySignature),
    /// An envelope of DSSE.
    Dsse(Envelope),
    /// A bundle of Sigstore.
    Sigstore(Box<SigstoreBundle>),
    /// A JSON Web Signature.
    Jws(JwsSignature),
}

impl ForeignSignature {
    /// Reads a signature file. None if it does not begin like one of these formats.
    ///
    /// # Errors
    /// The file begins like a signature, and is malformed: the error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, FormatError> {
        Ok(match ForeignFormat::detect(bytes) {
            None => None,
            Some(ForeignFormat::Minisign) => Some(Self::Minisign(MinisignSignature::parse(text(bytes)?)?)),
            Some(ForeignFormat::Ssh) => Some(Self::Ssh(Box::new(SshSignature::parse(text(bytes)?)?))),
            Some(ForeignFormat::Signify) => Some(Self::Signify(SignifySignature::parse(bytes)?)),
            Some(ForeignFormat::Dsse) => Some(Self::Dsse(Envelope::parse(bytes)?)),
            Some(ForeignFormat::Sigstore) => Some(Self::Sigstore(Box::new(SigstoreBundle::parse(bytes)?))),
            Some(ForeignFormat::Jws) => Some(Self::Jws(JwsSignature::parse(bytes)?)),
        })
    }

    /// The format.
    ///
    /// ```
    /// use bulla_formats::{ForeignFormat, ForeignSignature};
    ///
    /// let zeros = "A".repeat(95);
    /// let text = format!("untrusted comment: verify with k.pub\nRWQA{zeros}=\n");
    /// let signature = ForeignSignature::parse(text.as_bytes())?.unwrap();
    /// assert_eq!(signature.format(), ForeignFormat::Signify);
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn format(&self) -> ForeignFormat {
        match self {
            Self::Minisign(_) => ForeignFormat::Minisign,
            Self::Ssh(_) => ForeignFormat::Ssh,
            Self::Signify(_) => ForeignFormat::Signify,
            Self::Dsse(_) => ForeignFormat::Dsse,
            Self::Sigstore(_) => ForeignFormat::Sigstore,
            Self::Jws(_) => ForeignFormat::Jws,
        }
    }

    /// The envelope of DSSE, if this is one or has one.
    ///
    /// ```
    /// use bulla_formats::ForeignSignature;
    ///
    /// let text = br#"{"payloadType":"text/x","payload":"aGk=","signatures":[{"sig":"AAAA"}]}"#;
    /// let signature = ForeignSignature::parse(text)?.unwrap();
    /// assert_eq!(signature.envelope().unwrap().payload(), b"hi");
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn envelope(&self) -> Option<&Envelope> {
        match self {
            Self::Dsse(envelope) => Some(envelope),
            Self::Sigstore(bundle) => bundle.envelope(),
            _ => None,
        }
    }
}

/// The format of an object of JSON, by the names of its members. `bytes` may be only the beginning
/// of the file.
fn detect_json(bytes: &[u8]) -> Option<ForeignFormat> {
    let begin = &bytes[..bytes.len().min(DETECTED_LEN)];
    let has = |name: &&str| begin.windows(name.len()).any(|part| part == name.as_bytes());
    if ["\"mediaType\"", "\"verificationMaterial\""].iter().any(has) {
        return Some(ForeignFormat::Sigstore);
    }
    let is_envelope = ["\"payloadType\"", "\"payload\"", "\"signatures\""].iter().any(has);
    is_envelope.then_some(ForeignFormat::Dsse)
}

fn text(bytes: &[u8]) -> Result<&str, FormatError> {
    std::str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))
}
