//! The import and export of public keys in any format, and the errors of all formats.

use super::{der, jwk, minisign, openssh};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;

/// The format of a public key.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PublicFormat {
    /// SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7) as PEM (RFC 7468): the label `PUBLIC KEY`,
    /// lines of 64 characters, only line feeds. The object identifiers and the bytes are those of
    /// RFC 8410 (Ed25519, X25519), RFC 5480 (ECDSA and ECDH: the point is written uncompressed, and
    /// may be compressed when read on P-256), RFC 3279 (RSA), RFC 9881 (ML-DSA), RFC 9909
    /// (SLH-DSA), RFC 9935 (ML-KEM), draft-ietf-lamps-pq-composite-sigs and
    /// draft-connolly-cfrg-xwing-kem.
    Pem,
    /// SubjectPublicKeyInfo as DER.
    Der,
    /// Only the bytes of the algorithm's specification. To read them, the algorithm must be known.
    Raw,
    /// A line of `authorized_keys` without options, with or without a comment: `ssh-ed25519
    /// BASE64`. Only Ed25519.
    OpenSsh,
    /// A JSON Web Key: `OKP` for Ed25519 and X25519 (RFC 8037), `EC` for ECDSA and ECDH, and `RSA`
    /// (RFC 7518), `AKP` for ML-DSA
    /// (RFC 9964). It may have the members of the key, `alg`, `kid`, `use` and `key_ops`. Other
    /// members are refused, and so is a private key.
    Jwk,
    /// A public key of minisign, its file or its second line. Only Ed25519.
    Minisign,
}

/// Writes a public key.
///
/// # Errors
/// [`Code::UnsupportedFormat`] if the format does not define the key's algorithm.
///
/// ```
/// use bulla_kms::transfer::{PublicFormat, export_public, import_public};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let public_key = keystore.public_key(&key)?;
/// let pem = export_public(&public_key, PublicFormat::Pem)?;
/// assert_eq!(import_public(&pem, PublicFormat::Pem, None)?, public_key);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn export_public(key: &PublicKey, format: PublicFormat) -> Result<Vec<u8>> {
    match format {
        PublicFormat::Pem => Ok(der::public_pem(key)?.into_bytes()),
        PublicFormat::Der => der::public_der(key),
        PublicFormat::Raw => Ok(key.as_bytes().to_vec()),
        PublicFormat::OpenSsh => Ok(openssh::public(key)?.into_bytes()),
        PublicFormat::Jwk => Ok(jwk::public(key)?.into_bytes()),
        PublicFormat::Minisign => Ok(minisign::public(key)?.into_bytes()),
    }
}

/// Reads a public key. If `algorithm` is given, the key must have that algorithm;
/// [`PublicFormat::Raw`] needs it. A point of P-256, P-384 or P-521 is a key of ECDSA, unless
/// `algorithm` is one of ECDH.
///
/// # Errors
/// [`Code::InvalidPublicKey`]; [`Code::InvalidArgument`] if the key has another algorithm, or the
/// algorithm of raw bytes is not given; [`Code::UnsupportedAlgorithm`] if this build does not
/// support it.
pub fn import_public(bytes: &[u8], format: PublicFormat, algorithm: Option<Algorithm>) -> Result<PublicKey> {
    if bytes.len() > MAX_INPUT_LEN {
        return Err(invalid_public(format_args!("it is longer than {MAX_INPUT_LEN} bytes")));
    }
    let key = match format {
        PublicFormat::Pem => der::parse_public_pem(text(bytes)?, algorithm)?,
        PublicFormat::Der => der::parse_public_der(bytes, algorithm)?,
        PublicFormat::Raw => PublicKey::from_bytes(algorithm.ok_or_else(raw_without_algorithm)?, bytes)?,
        PublicFormat::OpenSsh => openssh::parse_public(text(bytes)?)?,
        PublicFormat::Jwk => jwk::parse_public(bytes, algorithm)?,
        PublicFormat::Minisign => minisign::parse_public(text(bytes)?)?.key,
    };
    check_algorithm(key.algorithm(), algorithm)?;
    Ok(key)
}

pub(super) fn raw_without_algorithm() -> KmsError {
    let message = "raw bytes do not say which algorithm they are a key of: name the algorithm";
    KmsError::new(Code::InvalidArgument, message)
}

/// An error unless the algorithm is the wanted one.
pub(super) fn check_algorithm(found: Algorithm, wanted: Option<Algorithm>) -> Result<()> {
    match wanted {
        Some(wanted) if wanted != found => {
            let message = format!("the key is one of {found}, and one of {wanted} is wanted");
            Err(KmsError::new(Code::InvalidArgument, message))
        }
        _ => Ok(()),
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| invalid_public("it is not text"))
}

/// The maximum length of input in bytes: no key in any format is longer.
pub const MAX_INPUT_LEN: usize = 64 << 10;

/// The error for bytes that are not a public key in a format.
pub(super) fn invalid_public(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::InvalidPublicKey, format!("not a public key: {why}"))
}

/// The error for bytes that are not a private key in a format. It quotes nothing of the bytes.
pub(super) fn malformed(why: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::MalformedKey, format!("not a private key that can be imported: {why}"))
}

pub(super) fn unsupported(format: &str, algorithm: Algorithm) -> KmsError {
    KmsError::new(Code::UnsupportedFormat, format!("{format} has no form for keys of {algorithm}"))
}
