//! Private keys as the transit engine of Vault and OpenBao exports them: an Ed25519 key as the
//! base64 of its seed and its public key, and a P-256 key as PEM of an ECPrivateKey (RFC 5915) with
//! the curve and the public key.

use pkcs8::{LineEnding, SecretDocument};
use zeroize::Zeroizing;

use super::private_key::PrivateKeyData;
use super::public_key::malformed;
use crate::algorithm::Algorithm;
use crate::backend::p256;
use crate::encoding;
use crate::error::Result;

const EC_LABEL: &str = "EC PRIVATE KEY";

/// An ECPrivateKey up to its scalar, and between its scalar and its public key: the curve P-256,
/// and a BIT STRING.
const EC_BEGIN: &[u8] = &[0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
const EC_MIDDLE: &[u8] =
    &[0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0xa1, 0x44, 0x03, 0x42, 0x00];

/// Reads one value of `keys` in the answer of `export/signing-key/NAME`. It may end with a line
/// feed, as programs print it.
pub(super) fn parse_private(text: &str) -> Result<PrivateKeyData> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.starts_with("-----") { parse_ec(text) } else { parse_ed25519(text) }
}

fn parse_ed25519(text: &str) -> Result<PrivateKeyData> {
    let wrong = || {
        malformed(
            "it is neither the base64 of an Ed25519 key's 64 bytes nor PEM with the label EC PRIVATE KEY: \
             take one value of `keys` of what Vault exports",
        )
    };
    let bytes = Zeroizing::new(encoding::from_base64(text).ok_or_else(wrong)?);
    let (seed, public_key) =
        bytes.split_at_checked(32).filter(|(_, rest)| rest.len() == 32).ok_or_else(wrong)?;
    PrivateKeyData::new(Algorithm::Ed25519, Zeroizing::new(seed.to_vec()), Some(public_key))
}

fn parse_ec(text: &str) -> Result<PrivateKeyData> {
    let wrong = || malformed("it is not PEM of one ECPrivateKey of the curve P-256, as Vault writes it");
    let (label, document) = SecretDocument::from_pem(text).map_err(|_| wrong())?;
    if label != EC_LABEL {
        return Err(malformed("its label is not EC PRIVATE KEY"));
    }
    let again = document.to_pem(EC_LABEL, LineEnding::LF).map_err(|_| wrong())?;
    if again.trim_end() != text {
        return Err(wrong());
    }
    let rest = document.as_bytes().strip_prefix(EC_BEGIN).ok_or_else(wrong)?;
    let (scalar, rest) = rest.split_at_checked(32).ok_or_else(wrong)?;
    let point =
        rest.strip_prefix(EC_MIDDLE).filter(|point| p256::is_pair(scalar, point)).ok_or_else(wrong)?;
    PrivateKeyData::new(
        Algorithm::EcdsaP256,
        Zeroizing::new(scalar.to_vec()),
        p256::compress(point).as_deref(),
    )
}
