//! Private keys as the transit engine of Vault and OpenBao exports them: an Ed25519 key as the
//! base64 of its seed and its public key, a key of ECDSA as PEM of an ECPrivateKey (RFC 5915) with
//! the curve and the public key, and an RSA key as PEM of an RSAPrivateKey (RFC 8017).

use pkcs8::{LineEnding, SecretDocument};
use zeroize::Zeroizing;

use super::der;
use super::private_key::PrivateKeyData;
use super::public_key::malformed;
use crate::algorithm::Algorithm;
use crate::encoding;
use crate::error::Result;
#[cfg(feature = "tokens")]
use crate::public_key::PublicKey;

const EC_LABEL: &str = "EC PRIVATE KEY";
const RSA_LABEL: &str = "RSA PRIVATE KEY";

/// Reads one value of `keys` in the answer of `export/signing-key/NAME`. It may end with a line
/// feed, as programs print it.
pub(super) fn parse_private(text: &str) -> Result<PrivateKeyData> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.starts_with("-----") { parse_pem(text) } else { parse_ed25519(text) }
}

/// One value of `keys` in the answer of `export/signing-key/NAME` or `export/encryption-key/NAME`.
#[cfg(feature = "tokens")]
pub(super) fn private(key: &PrivateKeyData) -> Result<Zeroizing<String>> {
    let (algorithm, material) = (key.algorithm(), key.material());
    let pem =
        |document: SecretDocument, label| document.to_pem(label, LineEnding::LF).map_err(der::unwritable);
    let public_key = key.public_key().map(PublicKey::as_bytes).unwrap_or_default();
    if algorithm.is_symmetric() {
        return Ok(Zeroizing::new(encoding::base64(material)));
    }
    if algorithm == Algorithm::Ed25519 {
        let both = Zeroizing::new([material.as_slice(), public_key].concat());
        return Ok(Zeroizing::new(encoding::base64(&both)));
    }
    if algorithm.is_rsa() {
        return pem(SecretDocument::try_from(material.as_slice()).map_err(der::unwritable)?, RSA_LABEL);
    }
    match der::ec_key_of_curve(algorithm, material, public_key) {
        Some(document) => {
            let mut text = pem(document, EC_LABEL)?;
            // Vault writes no line feed after the last line of this one.
            let end = text.trim_end().len();
            text.truncate(end);
            Ok(text)
        }
        None => pem(der::private_der(algorithm, material)?, der::PRIVATE_LABEL),
    }
}

fn parse_ed25519(text: &str) -> Result<PrivateKeyData> {
    let wrong = || {
        malformed(
            "it is neither the base64 of an Ed25519 key's 64 bytes nor PEM with the label EC PRIVATE KEY or RSA PRIVATE KEY: \
             take one value of `keys` of what Vault exports",
        )
    };
    let bytes = Zeroizing::new(encoding::from_base64(text).ok_or_else(wrong)?);
    let (seed, public_key) =
        bytes.split_at_checked(32).filter(|(_, rest)| rest.len() == 32).ok_or_else(wrong)?;
    PrivateKeyData::new(Algorithm::Ed25519, Zeroizing::new(seed.to_vec()), Some(public_key))
}

fn parse_pem(text: &str) -> Result<PrivateKeyData> {
    let wrong = || {
        malformed(
            "it is not PEM of one ECPrivateKey of P-256, P-384 or P-521, or of one RSAPrivateKey of 2048, 3072 or 4096 bits, as Vault writes it",
        )
    };
    let (label, document) = SecretDocument::from_pem(text).map_err(|_| wrong())?;
    let label = [EC_LABEL, RSA_LABEL]
        .into_iter()
        .find(|known| *known == label)
        .ok_or_else(|| malformed("its label is neither EC PRIVATE KEY nor RSA PRIVATE KEY"))?;
    let again = document.to_pem(label, LineEnding::LF).map_err(|_| wrong())?;
    if again.trim_end() != text {
        return Err(wrong());
    }
    let bytes = document.as_bytes();
    if label == RSA_LABEL {
        let algorithms = [Algorithm::Rsa2048, Algorithm::Rsa3072, Algorithm::Rsa4096];
        let algorithm = algorithms.into_iter().find(|known| der::is_rsa_private_key(*known, bytes));
        let material = Zeroizing::new(bytes.to_vec());
        return PrivateKeyData::new(algorithm.ok_or_else(wrong)?, material, None);
    }
    let curves = [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::EcdsaP521];
    let key = curves.into_iter().find_map(|curve| Some((curve, der::ec_pair_of_curve(curve, bytes)?)));
    let (algorithm, scalar) = key.ok_or_else(wrong)?;
    PrivateKeyData::new(algorithm, scalar, None)
}
