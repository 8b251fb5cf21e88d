//! The public keys and the certificates of OpenSSH, and what they verify.

use std::fmt;

use base64ct::{Base64, Base64Unpadded, Encoding as _};
use bulla_kms::prehash::HashFunction;
use bulla_kms::{Algorithm, PublicKey, transfer};
use p256::elliptic_curve::sec1::ToSec1Point as _;
use p384::pkcs8::DecodePublicKey as _;
use p384::pkcs8::{Document, ObjectIdentifier, SubjectPublicKeyInfoRef};
use sha2::{Digest as _, Sha256};
use ssh_encoding::{Decode as _, Encode as _};
use ssh_key::public::{EcdsaPublicKey, Ed25519PublicKey, KeyData, RsaPublicKey};
use ssh_key::{EcdsaCurve, HashAlg, Mpint, Signature};

use crate::error::FormatError;
use crate::verifying_key::{Padding, RsaKey, VerifyingKey, rsa_numbers};

/// How the names of certificates end.
pub(super) const CERTIFICATE: &str = "-cert-v01@openssh.com";
/// The object identifier of keys of RSA (RFC 3279).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// A public key of OpenSSH, of any algorithm. Keys of Ed25519, ECDSA and RSA verify; others are
/// read, and verify nothing.
///
/// ```
/// use bulla_formats::ssh::SshKey;
///
/// let line = "ssh-ed25519 \
///     AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr me@example.org";
/// let key = SshKey::parse(line)?;
/// assert_eq!(key.algorithm(), "ssh-ed25519");
/// assert!(key.fingerprint().starts_with("SHA256:"));
/// assert!(line.starts_with(&key.to_string()));
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SshKey {
    algorithm: String,
    blob: Vec<u8>,
    /// None for algorithms that nothing here verifies.
    data: Option<KeyData>,
}

impl SshKey {
    /// Reads a line `ALGORITHM BASE64`, with or without a comment.
    ///
    /// # Errors
    /// The line has another form, or its key is malformed.
    pub fn parse(line: &str) -> Result<Self, FormatError> {
        let invalid = || FormatError::new("it is not a line of the form `ssh-ed25519 BASE64 COMMENT`");
        let mut words = line.split_ascii_whitespace();
        let algorithm = words.next().ok_or_else(invalid)?;
        let blob = Base64::decode_vec(words.next().ok_or_else(invalid)?).map_err(|_| invalid())?;
        let key = Self::from_blob(&blob)?;
        if key.algorithm != algorithm {
            let message = format!("the line names {algorithm}, and the key in it is of {}", key.algorithm);
            return Err(FormatError::new(message));
        }
        Ok(key)
    }

    /// Whether a line begins like one of a public key.
    pub(crate) fn begins(line: &str) -> bool {
        let first = line.split_ascii_whitespace().next().unwrap_or_default();
        ["ssh-", "ecdsa-sha2-", "sk-"].iter().any(|prefix| first.starts_with(prefix))
    }

    pub(super) fn from_blob(blob: &[u8]) -> Result<Self, FormatError> {
        let malformed = || FormatError::new("the public key is malformed");
        let algorithm = String::decode(&mut &blob[..]).map_err(|_| malformed())?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-@._".contains(c);
        if algorithm.is_empty() || !algorithm.chars().all(is_name) {
            return Err(malformed());
        }
        if algorithm.ends_with(CERTIFICATE) {
            return Err(FormatError::new("it is a certificate, where a public key belongs"));
        }
        let is_verified = ["ssh-ed25519", "ssh-rsa"].contains(&&algorithm[..]);
        let data = if is_verified || algorithm.starts_with("ecdsa-sha2-") {
            let mut rest = blob;
            let data = KeyData::decode(&mut rest).map_err(|_| malformed())?;
            let mut again = Vec::new();
            data.encode(&mut again).map_err(|_| malformed())?;
            if !rest.is_empty() || again != blob {
                return Err(malformed());
            }
            Some(data)
        } else {
            None
        };
        Ok(Self { algorithm, blob: blob.to_vec(), data })
    }

    /// Reads a public key of RSA, or of ECDSA on P-384 or P-521, in PEM. Keys of P-256 are read by
    /// `bulla-kms`.
    ///
    /// # Errors
    /// It is not one.
    pub fn from_pem(text: &str) -> Result<Self, FormatError> {
        let p384 = p384::PublicKey::from_public_key_pem(text).ok();
        let point = p384.map(|key| key.to_sec1_point(false).as_bytes().to_vec()).or_else(|| {
            let key = p521::PublicKey::from_public_key_pem(text).ok()?;
            Some(key.to_sec1_point(false).as_bytes().to_vec())
        });
        let data = match point {
            Some(point) => EcdsaPublicKey::from_sec1_bytes(&point).ok().map(KeyData::Ecdsa),
            None => rsa_from_pem(text).map(KeyData::Rsa),
        };
        let unknown = || FormatError::new("it is not a public key of RSA, or of ECDSA on P-384 or P-521");
        let mut blob = Vec::new();
        data.ok_or_else(unknown)?.encode(&mut blob).map_err(|_| unknown())?;
        Self::from_blob(&blob)
    }

    /// The key in the form that verifies messages. None for algorithms that nothing here verifies.
    pub(crate) fn verifying_key(&self) -> Option<VerifyingKey> {
        Some(match self.data.as_ref()? {
            KeyData::Ecdsa(EcdsaPublicKey::NistP384(point)) => {
                VerifyingKey::P384(p384::ecdsa::VerifyingKey::from_sec1_bytes(point.as_bytes()).ok()?)
            }
            KeyData::Ecdsa(EcdsaPublicKey::NistP521(point)) => {
                VerifyingKey::P521(p521::ecdsa::VerifyingKey::from_sec1_bytes(point.as_bytes()).ok()?)
            }
            KeyData::Rsa(key) => {
                VerifyingKey::Rsa(RsaKey::new(key.n.as_positive_bytes()?, key.e.as_positive_bytes()?)?)
            }
            _ => VerifyingKey::Kms(self.public_key()?),
        })
    }

    /// Whether a signature of ECDSA in DER verifies.
    pub(crate) fn verifies_der(&self, message: &[u8], der: &[u8]) -> bool {
        use p384::ecdsa::signature::Verifier as _;
        let verdict = match self.verifying_key() {
            Some(VerifyingKey::P384(key)) => {
                p384::ecdsa::Signature::from_der(der).ok().and_then(|pair| key.verify(message, &pair).ok())
            }
            Some(VerifyingKey::P521(key)) => {
                p521::ecdsa::Signature::from_der(der).ok().and_then(|pair| key.verify(message, &pair).ok())
            }
            _ => None,
        };
        verdict.is_some()
    }

    /// The form of one of our keys.
    ///
    /// # Errors
    /// It is not one of Ed25519, ECDSA or RSA.
    pub fn of(key: &PublicKey) -> Result<Self, FormatError> {
        let unsupported = || {
            FormatError::new(format!(
                "is a {} key; OpenSSH gets Ed25519, ECDSA and RSA keys",
                key.algorithm()
            ))
        };
        let data = match key.algorithm() {
            Algorithm::Ed25519 => {
                let bytes = key.as_bytes().try_into().map_err(|_| unsupported())?;
                KeyData::Ed25519(Ed25519PublicKey(bytes))
            }
            algorithm if algorithm.is_rsa() => {
                let numbers = rsa_numbers(key.as_bytes()).ok_or_else(unsupported)?;
                KeyData::Rsa(rsa_key(&numbers).ok_or_else(unsupported)?)
            }
            algorithm => {
                let point = uncompressed(algorithm, key.as_bytes()).ok_or_else(unsupported)?;
                KeyData::Ecdsa(EcdsaPublicKey::from_sec1_bytes(&point).map_err(|_| unsupported())?)
            }
        };
        let mut blob = Vec::new();
        data.encode(&mut blob).map_err(|_| unsupported())?;
        Self::from_blob(&blob)
    }

    /// The key in our form, if `bulla-kms` knows its algorithm: of Ed25519 or P-256.
    ///
    /// ```
    /// # use bulla_formats::ssh::SshKey;
    /// let line = "ssh-ed25519 \
    ///     AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";
    /// let key = SshKey::parse(line)?;
    /// assert_eq!(SshKey::of(&key.public_key().unwrap())?, key);
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn public_key(&self) -> Option<PublicKey> {
        match self.data.as_ref()? {
            KeyData::Ed25519(key) => PublicKey::from_bytes(Algorithm::Ed25519, &key.0).ok(),
            KeyData::Ecdsa(key) if key.curve() == EcdsaCurve::NistP256 => {
                let point = p256::PublicKey::from_sec1_bytes(key.as_sec1_bytes()).ok()?;
                PublicKey::from_bytes(Algorithm::EcdsaP256, point.to_sec1_point(true).as_bytes()).ok()
            }
            _ => None,
        }
    }

    /// The algorithm's name in OpenSSH.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// Its bytes in the protocols of SSH.
    ///
    /// ```
    /// # use bulla_formats::ssh::SshKey;
    /// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";
    /// assert!(SshKey::parse(line)?.blob().starts_with(b"\0\0\0\x0bssh-ed25519\0\0\0\x20"));
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// The SHA-256 fingerprint, as OpenSSH prints it.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", Base64Unpadded::encode_string(&Sha256::digest(&self.blob)))
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        let verdict = match &self.data {
            Some(KeyData::Ed25519(_)) if signature.algorithm() == ssh_key::Algorithm::Ed25519 => {
                self.public_key().map(|key| key.verify(message, signature.as_bytes()).is_valid())
            }
            Some(KeyData::Ecdsa(key)) => verifies_ecdsa(key, message, signature),
            Some(KeyData::Rsa(key)) => verifies_rsa(key, message, signature),
            _ => None,
        };
        verdict == Some(true)
    }
}

impl fmt::Display for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm, Base64::encode_string(&self.blob))
    }
}

impl fmt::Debug for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A key of RSA in a SubjectPublicKeyInfo (RFC 5280).
fn rsa_from_pem(text: &str) -> Option<RsaPublicKey> {
    let (label, document) = Document::from_pem(text).ok()?;
    let info: SubjectPublicKeyInfoRef<'_> = document.decode_msg().ok()?;
    if label != "PUBLIC KEY" || info.algorithm.oid != RSA {
        return None;
    }
    rsa_key(&rsa_numbers(info.subject_public_key.as_bytes()?)?)
}

/// A key of RSA with this modulus and this exponent.
fn rsa_key([n, e]: &[Vec<u8>; 2]) -> Option<RsaPublicKey> {
    let number = |bytes: &[u8]| Mpint::from_positive_bytes(bytes).ok();
    Some(RsaPublicKey { e: number(e)?, n: number(n)? })
}

/// The point of a public key of ECDSA, uncompressed, as OpenSSH has it.
fn uncompressed(algorithm: Algorithm, point: &[u8]) -> Option<Vec<u8>> {
    Some(match algorithm {
        Algorithm::EcdsaP256 => {
            p256::PublicKey::from_sec1_bytes(point).ok()?.to_sec1_point(false).as_bytes().to_vec()
        }
        Algorithm::EcdsaP384 => {
            p384::PublicKey::from_sec1_bytes(point).ok()?.to_sec1_point(false).as_bytes().to_vec()
        }
        Algorithm::EcdsaP521 => {
            p521::PublicKey::from_sec1_bytes(point).ok()?.to_sec1_point(false).as_bytes().to_vec()
        }
        _ => return None,
    })
}

/// A signature of OpenSSH from one of ours.
pub(super) fn signature(key: &PublicKey, bytes: &[u8]) -> Result<Signature, FormatError> {
    let malformed = |_| FormatError::new("the key made a signature of another length");
    let curve = match key.algorithm() {
        Algorithm::EcdsaP256 => Some(EcdsaCurve::NistP256),
        Algorithm::EcdsaP384 => Some(EcdsaCurve::NistP384),
        Algorithm::EcdsaP521 => Some(EcdsaCurve::NistP521),
        _ => None,
    };
    let (algorithm, bytes) = match (key.algorithm(), curve) {
        (_, Some(curve)) => {
            let mut pair = Vec::new();
            for number in bytes.chunks(bytes.len().div_ceil(2).max(1)) {
                let number = Mpint::from_positive_bytes(number).map_err(malformed)?;
                number.encode(&mut pair).map_err(|error| malformed(error.into()))?;
            }
            (ssh_key::Algorithm::Ecdsa { curve }, pair)
        }
        (Algorithm::Ed25519, None) => (ssh_key::Algorithm::Ed25519, bytes.to_vec()),
        (algorithm, None) => {
            let message = format!("OpenSSH has no signature of {algorithm} without a hash function's name");
            return Err(FormatError::new(message));
        }
    };
    Signature::new(algorithm, bytes).map_err(malformed)
}

/// A signature of one of our keys, in the form that the protocols of SSH have.
///
/// # Errors
/// The key is neither one of Ed25519 nor of ECDSA, or the signature has another length.
///
/// ```
/// use bulla_formats::ssh::signature_blob;
/// use bulla_kms::{Algorithm, PublicKey};
///
/// let key = PublicKey::from_bytes(Algorithm::Ed25519, &[1; 32])?;
/// let blob = signature_blob(&key, &[7; 64])?;
/// assert!(blob.starts_with(b"\0\0\0\x0bssh-ed25519\0\0\0\x40\x07"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn signature_blob(key: &PublicKey, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut blob = Vec::new();
    let written = signature(key, bytes)?.encode(&mut blob);
    written.map_err(|_| FormatError::new("the signature cannot be written"))?;
    Ok(blob)
}

/// A signature of RSA by PKCS #1 version 1.5, in the form that the protocols of SSH have (RFC
/// 8332).
///
/// # Errors
/// OpenSSH has no signatures of RSA with this hash function.
///
/// ```
/// use bulla_formats::ssh::rsa_signature_blob;
/// use bulla_kms::prehash::HashFunction;
///
/// let blob = rsa_signature_blob(HashFunction::Sha512, &[7; 256])?;
/// assert!(blob.starts_with(b"\0\0\0\x0crsa-sha2-512\0\0\x01\0\x07"));
/// assert!(rsa_signature_blob(HashFunction::Sha384, &[7; 256]).is_err());
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
pub fn rsa_signature_blob(hash: HashFunction, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let hash = match hash {
        HashFunction::Sha256 => HashAlg::Sha256,
        HashFunction::Sha512 => HashAlg::Sha512,
        _ => return Err(FormatError::new("OpenSSH has RSA with SHA-256 and with SHA-512")),
    };
    let mut blob = Vec::new();
    let signature = Signature::new(ssh_key::Algorithm::Rsa { hash: Some(hash) }, bytes);
    let written = signature.and_then(|signature| Ok(signature.encode(&mut blob)?));
    written.map_err(|_| FormatError::new("the signature cannot be written"))?;
    Ok(blob)
}

/// Both values of s that satisfy the equation verify: OpenSSH writes either.
fn verifies_ecdsa(key: &EcdsaPublicKey, message: &[u8], signature: &Signature) -> Option<bool> {
    if signature.algorithm() != (ssh_key::Algorithm::Ecdsa { curve: key.curve() }) {
        return None;
    }
    let length = match key.curve() {
        EcdsaCurve::NistP256 => 32,
        EcdsaCurve::NistP384 => 48,
        EcdsaCurve::NistP521 => 66,
    };
    let mut rest = signature.as_bytes();
    let mut pair = Vec::with_capacity(2 * length);
    for _ in 0..2 {
        let number = Mpint::decode(&mut rest).ok()?;
        let number = number.as_positive_bytes()?;
        pair.resize(pair.len() + length.checked_sub(number.len())?, 0);
        pair.extend_from_slice(number);
    }
    if !rest.is_empty() {
        return None;
    }
    match key {
        EcdsaPublicKey::NistP256(point) => {
            let point = p256::PublicKey::from_sec1_bytes(point.as_bytes()).ok()?;
            let point = point.to_sec1_point(true);
            let key = PublicKey::from_bytes(Algorithm::EcdsaP256, point.as_bytes()).ok()?;
            let pair = transfer::with_lower_s(Algorithm::EcdsaP256, &pair)?;
            Some(key.verify(message, &pair).is_valid())
        }
        EcdsaPublicKey::NistP384(point) => {
            use p384::ecdsa::signature::Verifier as _;
            let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(point.as_bytes()).ok()?;
            let pair = p384::ecdsa::Signature::from_slice(&pair).ok()?;
            Some(key.verify(message, &pair).is_ok())
        }
        EcdsaPublicKey::NistP521(point) => {
            use p384::ecdsa::signature::Verifier as _;
            let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point.as_bytes()).ok()?;
            let pair = p521::ecdsa::Signature::from_slice(&pair).ok()?;
            Some(key.verify(message, &pair).is_ok())
        }
    }
}

/// PKCS #1 version 1.5 with SHA-2 (RFC 8332), never with SHA-1.
fn verifies_rsa(key: &RsaPublicKey, message: &[u8], signature: &Signature) -> Option<bool> {
    let key = RsaKey::new(key.n.as_positive_bytes()?, key.e.as_positive_bytes()?)?;
    let padding = match signature.algorithm() {
        ssh_key::Algorithm::Rsa { hash: Some(HashAlg::Sha256) } => Padding::Pkcs1v15Sha256,
        ssh_key::Algorithm::Rsa { hash: Some(HashAlg::Sha512) } => Padding::Pkcs1v15Sha512,
        _ => return None,
    };
    Some(key.verifies(padding, message, signature.as_bytes()))
}

/// Who made a signature: a key, or a key that a certificate authority vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SshSigner {
    /// A key.
    Key(SshKey),
    /// A certificate.
    Certificate(Box<SshCertificate>),
}

impl SshSigner {
    pub(super) fn parse(blob: &[u8]) -> Result<Self, FormatError> {
        let name = String::decode(&mut &blob[..]).unwrap_or_default();
        if name.ends_with(CERTIFICATE) {
            return Ok(Self::Certificate(Box::new(SshCertificate::parse(blob)?)));
        }
        SshKey::from_blob(blob).map(Self::Key)
    }

    /// Reads a line `ALGORITHM BASE64` of a public key or a certificate, with or without a comment.
    ///
    /// # Errors
    /// The line has another form; the key is malformed; the certificate's authority did not sign
    /// it.
    ///
    /// ```
    /// use bulla_formats::ssh::{SshKey, SshSigner};
    ///
    /// let line = "ssh-ed25519 \
    ///     AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr me@example.org";
    /// assert_eq!(SshSigner::parse_line(line)?, SshSigner::Key(SshKey::parse(line)?));
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn parse_line(line: &str) -> Result<Self, FormatError> {
        let mut words = line.split_ascii_whitespace();
        let (name, base64) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !name.ends_with(CERTIFICATE) {
            return SshKey::parse(line).map(Self::Key);
        }
        let malformed = |_| FormatError::new("the certificate is malformed");
        Ok(Self::Certificate(Box::new(SshCertificate::parse(
            &Base64::decode_vec(base64).map_err(malformed)?,
        )?)))
    }

    /// What OpenSSH calls keys of this kind in its messages.
    ///
    /// ```
    /// use bulla_formats::ssh::SshSigner;
    ///
    /// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";
    /// assert_eq!(SshSigner::parse_line(line)?.kind_name(), "ED25519");
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn kind_name(&self) -> String {
        let algorithm = self.key().algorithm();
        let is_token = algorithm.starts_with("sk-");
        let name = match algorithm.trim_start_matches("sk-") {
            "ssh-rsa" => "RSA",
            ecdsa if ecdsa.starts_with("ecdsa-sha2-") => "ECDSA",
            ed25519 if ed25519.starts_with("ssh-ed25519") => "ED25519",
            _ => "UNKNOWN",
        };
        let certificate = if matches!(self, Self::Certificate(_)) { "-CERT" } else { "" };
        format!("{name}{}{certificate}", if is_token { "-SK" } else { "" })
    }

    /// The key that signed.
    pub fn key(&self) -> &SshKey {
        match self {
            Self::Key(key) => key,
            Self::Certificate(certificate) => &certificate.key,
        }
    }

    pub(super) fn blob(&self) -> &[u8] {
        match self {
            Self::Key(key) => &key.blob,
            Self::Certificate(certificate) => &certificate.blob,
        }
    }

    /// The key of the authority, if this is a certificate.
    pub(super) fn authority(&self) -> Option<&SshKey> {
        match self {
            Self::Key(_) => None,
            Self::Certificate(certificate) => Some(certificate.authority()),
        }
    }
}

/// A certificate of OpenSSH (`PROTOCOL.certkeys`).
///
/// The crate `ssh-key` has certificates too, and refuses those that are valid for ever, which
/// ssh-keygen makes unless somebody asks for less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshCertificate {
    blob: Vec<u8>,
    key: SshKey,
    serial: u64,
    key_id: Vec<u8>,
    kind: u32,
    principals: Vec<String>,
    valid_after: u64,
    valid_before: u64,
    critical_options: Vec<u8>,
    authority: SshKey,
}

/// The kind of a user's certificate.
const USER: u32 = 1;

impl SshCertificate {
    fn parse(blob: &[u8]) -> Result<Self, FormatError> {
        let malformed = || FormatError::new("the certificate is malformed");
        let (certificate, signature) = Self::decode(blob).ok_or_else(malformed)?;
        if is_by_sha1(&signature) {
            return Err(FormatError::new(
                "its authority signed the certificate by SHA-1 (ssh-rsa), which is broken: have it signed again, \
                 by `ssh-keygen -t rsa-sha2-512 -s`",
            ));
        }
        let signature = Signature::try_from(&signature[..]).map_err(|_| malformed())?;
        let mut end = Vec::new();
        signature.encode_prefixed(&mut end).map_err(|_| malformed())?;
        let signed = blob.strip_suffix(&end[..]).ok_or_else(malformed)?;
        if !certificate.authority.verifies(signed, &signature) {
            return Err(FormatError::new("its authority did not sign the certificate"));
        }
        Ok(certificate)
    }

    /// The certificate, and its signature as it is there.
    fn decode(blob: &[u8]) -> Option<(Self, Vec<u8>)> {
        let mut rest = blob;
        let reader = &mut rest;
        let name = String::decode(reader).ok()?;
        let algorithm = name.strip_suffix(CERTIFICATE)?.to_owned();
        let _nonce = Vec::<u8>::decode(reader).ok()?;
        // The public key without its name: the key, a curve and a point, or an exponent and a
        // modulus.
        let fields = match &algorithm[..] {
            "ssh-ed25519" => 1,
            "ssh-rsa" => 2,
            ecdsa if ecdsa.starts_with("ecdsa-sha2-") => 2,
            _ => return None,
        };
        let mut key = Vec::new();
        algorithm.encode(&mut key).ok()?;
        for _ in 0..fields {
            Vec::<u8>::decode(reader).ok()?.encode(&mut key).ok()?;
        }
        let serial = u64::decode(reader).ok()?;
        let kind = u32::decode(reader).ok()?;
        let key_id = Vec::<u8>::decode(reader).ok()?;
        let principals = Vec::<u8>::decode(reader).ok()?;
        let (valid_after, valid_before) = (u64::decode(reader).ok()?, u64::decode(reader).ok()?);
        let critical_options = Vec::<u8>::decode(reader).ok()?;
        let _extensions = Vec::<u8>::decode(reader).ok()?;
        let _reserved = Vec::<u8>::decode(reader).ok()?;
        let authority = SshKey::from_blob(&Vec::<u8>::decode(reader).ok()?).ok()?;
        let signature = Vec::<u8>::decode(reader).ok()?;
        let certificate = Self {
            blob: blob.to_vec(),
            key: SshKey::from_blob(&key).ok()?,
            serial,
            key_id,
            kind,
            principals: strings(&principals)?,
            valid_after,
            valid_before,
            critical_options,
            authority,
        };
        rest.is_empty().then_some((certificate, signature))
    }

    /// Whether the certificate is for people, and asks for nothing that is unknown here.
    pub(super) fn is_plain(&self) -> bool {
        self.kind == USER && self.critical_options.is_empty()
    }

    /// The number by which it can be revoked.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Its name, which need not be a text.
    pub(super) fn key_id(&self) -> &[u8] {
        &self.key_id
    }

    pub(super) fn authority(&self) -> &SshKey {
        &self.authority
    }

    pub(super) fn principals(&self) -> &[String] {
        &self.principals
    }

    /// From when on it is valid, and until before when: seconds since 1970.
    pub(super) fn validity(&self) -> (u64, u64) {
        (self.valid_after, self.valid_before)
    }
}

/// Whether a signature is one of RSA by SHA-1, which is named as its key is.
fn is_by_sha1(signature: &[u8]) -> bool {
    String::decode(&mut &signature[..]).is_ok_and(|algorithm| algorithm == "ssh-rsa")
}

fn strings(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        found.push(String::decode(&mut bytes).ok()?);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_signature_is_an_error() {
        // The curve's own point.
        let point =
            b"\x03\x6b\x17\xd1\xf2\xe1\x2c\x42\x47\xf8\xbc\xe6\xe5\x63\xa4\x40\xf2\x77\x03\x7d\x81\x2d\xeb\
            \x33\xa0\xf4\xa1\x39\x45\xd8\x98\xc2\x96";
        let key = PublicKey::from_bytes(Algorithm::EcdsaP256, point).unwrap();
        assert!(signature_blob(&key, &[7; 64]).is_ok());
        assert!(signature_blob(&key, &[]).is_err());
    }
}
