//! The cryptography of this crate, for the libraries of Sigstore: they leave it to their caller.

use bulla_kms::{Algorithm, PublicKey};
use p384::ecdsa::signature::hazmat::PrehashVerifier as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use sigstore_verify::crypto::{
    CryptoProvider, Error, HashContext, Result, SigningScheme, install_default_provider,
};
use sigstore_verify::types::HashAlgorithm;

use crate::verifying_key::{Padding, RsaKey};

/// Lets the libraries of Sigstore verify with this crate. If the process chose other cryptography
/// for them before, that stays.
pub(super) fn install() {
    let _ = install_default_provider(&Provider);
}

#[derive(Debug)]
struct Provider;

struct Hasher<H>(H);

impl<H: sha2::Digest + Send> HashContext for Hasher<H> {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}

fn invalid() -> Error {
    Error::Verification("the signature does not verify".to_owned())
}

fn verdict(is_valid: bool) -> Result<()> {
    if is_valid { Ok(()) } else { Err(invalid()) }
}

fn verifies_message(algorithm: Algorithm, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    PublicKey::from_bytes(algorithm, key).is_ok_and(|key| key.verify(message, signature).is_valid())
}

fn padding(scheme: SigningScheme) -> Option<Padding> {
    Some(match scheme {
        SigningScheme::RsaPssSha256 => Padding::PssSha256,
        SigningScheme::RsaPssSha384 => Padding::PssSha384,
        SigningScheme::RsaPssSha512 => Padding::PssSha512,
        SigningScheme::RsaPkcs1Sha256 => Padding::Pkcs1v15Sha256,
        SigningScheme::RsaPkcs1Sha384 => Padding::Pkcs1v15Sha384,
        SigningScheme::RsaPkcs1Sha512 => Padding::Pkcs1v15Sha512,
        _ => return None,
    })
}

impl CryptoProvider for Provider {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        Ok(match algorithm {
            HashAlgorithm::Sha2256 => Box::new(Hasher(Sha256::new())),
            HashAlgorithm::Sha2384 => Box::new(Hasher(Sha384::new())),
            HashAlgorithm::Sha2512 => Box::new(Hasher(Sha512::new())),
            other => return Err(Error::UnsupportedAlgorithm(format!("{other} is not one of SHA-2"))),
        })
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<()> {
        match scheme {
            SigningScheme::Ed25519 => verdict(verifies_message(Algorithm::Ed25519, key, data, signature)),
            SigningScheme::MlDsa44 => verdict(verifies_message(Algorithm::MlDsa44, key, data, signature)),
            SigningScheme::MlDsa65 => verdict(verifies_message(Algorithm::MlDsa65, key, data, signature)),
            SigningScheme::MlDsa87 => verdict(verifies_message(Algorithm::MlDsa87, key, data, signature)),
            _ => {
                let algorithm = scheme.hash_algorithm().ok_or_else(invalid)?;
                let mut hasher = self.hash(algorithm)?;
                hasher.update(data);
                self.verify_prehashed(scheme, key, &hasher.finalize(), signature)
            }
        }
    }

    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        match scheme {
            SigningScheme::EcdsaP256Sha256 | SigningScheme::EcdsaP256Sha384 => {
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(|_| invalid())?;
                let pair = p256::ecdsa::Signature::from_der(signature).map_err(|_| invalid())?;
                verdict(key.verify_prehash(digest, &pair).is_ok())
            }
            SigningScheme::EcdsaP384Sha256 | SigningScheme::EcdsaP384Sha384 => {
                let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(|_| invalid())?;
                let pair = p384::ecdsa::Signature::from_der(signature).map_err(|_| invalid())?;
                verdict(key.verify_prehash(digest, &pair).is_ok())
            }
            _ => {
                let padding = padding(scheme).ok_or_else(invalid)?;
                let key = RsaKey::from_der(key).ok_or_else(invalid)?;
                verdict(key.verifies_digest(padding, digest, signature))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha_2() {
        let digest = |algorithm| {
            let mut hasher = Provider.hash(algorithm).unwrap();
            hasher.update(b"ab");
            hasher.update(b"c");
            hasher.finalize()
        };
        assert_eq!(digest(HashAlgorithm::Sha2256), Sha256::digest(b"abc").to_vec());
        assert_eq!(digest(HashAlgorithm::Sha2384), Sha384::digest(b"abc").to_vec());
        assert_eq!(digest(HashAlgorithm::Sha2512), Sha512::digest(b"abc").to_vec());
    }

    #[test]
    fn keys_and_signatures_that_are_malformed_verify_nothing() {
        let schemes = [
            SigningScheme::Ed25519,
            SigningScheme::EcdsaP256Sha256,
            SigningScheme::EcdsaP256Sha384,
            SigningScheme::EcdsaP384Sha256,
            SigningScheme::EcdsaP384Sha384,
            SigningScheme::RsaPkcs1Sha256,
            SigningScheme::RsaPssSha512,
            SigningScheme::MlDsa44,
        ];
        for scheme in schemes {
            for bytes in [&[][..], &[0; 32], &[4; 65], &[4; 97], &[255; 1312]] {
                assert!(Provider.verify_raw(scheme, bytes, b"message", bytes).is_err());
                assert!(Provider.verify_prehashed(scheme, bytes, &[0; 32], bytes).is_err());
            }
        }
    }
}
