//! Signatures of messages as DSSE and Sigstore have them: ECDSA in DER.

use bulla_kms::prehash::{HashFunction, Prehashed};
use bulla_kms::{Algorithm, PublicKey, transfer};

use crate::error::{FormatError, MessageSigner};
use crate::ssh::SshKey;
use crate::verifying_key::VerifyingKey;

/// A public key that may verify a message.
#[derive(Clone, Copy, Debug)]
pub enum MessageKey<'a> {
    /// A key of an algorithm that `bulla-kms` verifies.
    Kms(&'a PublicKey),
    /// A key of another algorithm.
    Ssh(&'a SshKey),
}

impl MessageKey<'_> {
    /// The key in the form that verifies signatures of any algorithm.
    pub(crate) fn verifying_key(self) -> Option<VerifyingKey> {
        match self {
            Self::Kms(key) => VerifyingKey::of(key),
            Self::Ssh(key) => key.verifying_key(),
        }
    }

    /// Whether a signature of ECDSA on P-256, in DER, verifies with this key, by the SHA-256 digest
    /// of the message.
    pub(crate) fn verifies_sha256(self, digest: &[u8], signature: &[u8]) -> bool {
        let Some(VerifyingKey::Kms(key)) = self.verifying_key() else { return false };
        let pair = match key.algorithm() {
            Algorithm::EcdsaP256 => transfer::ecdsa_from_der(key.algorithm(), signature),
            _ => None,
        };
        let digest = HashFunction::Sha256.digest(digest).and_then(|digest| Prehashed::new(digest, b"").ok());
        let (Some(pair), Some(digest)) = (pair, digest) else { return false };
        key.verify_prehashed(&digest, &pair).is_valid()
    }

    /// Whether a signature of the message verifies with this key. One of ECDSA is in DER, and
    /// either value of s verifies.
    pub(crate) fn verifies(self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ssh(key) => key.verifies_der(message, signature),
            Self::Kms(key) => match key.algorithm() {
                Algorithm::Ed25519 => key.verify(message, signature).is_valid(),
                algorithm if algorithm.is_ecdsa() => transfer::ecdsa_from_der(algorithm, signature)
                    .is_some_and(|pair| key.verify(message, &pair).is_valid()),
                _ => false,
            },
        }
    }
}

/// Signs a message. A signature of ECDSA is in DER.
pub(crate) fn sign_message<S: MessageSigner>(
    signer: &mut S,
    message: &[u8],
) -> Result<(PublicKey, Vec<u8>), S::Error> {
    let (key, signature) = signer.sign(message)?;
    let signature = match key.algorithm() {
        Algorithm::Ed25519 => Some(signature),
        algorithm if algorithm.is_ecdsa() => transfer::ecdsa_to_der(algorithm, &signature),
        _ => None,
    };
    let unsupported = || {
        let message = "this format has only signatures of Ed25519 and of ECDSA on P-256, P-384 and P-521";
        FormatError::new(message)
    };
    Ok((key, signature.ok_or_else(unsupported)?))
}
