//! The shared part of the backends for `bulla-pq`'s post-quantum signatures.

use bulla_pq::VerifyingKey;

use super::interface::{PrivateKey, VerifyRequest};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::random;

/// A private key, which signs in an empty context.
pub(super) struct SigningKey(pub(super) Box<dyn bulla_pq::SigningKey>);

impl PrivateKey for SigningKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.0.public_key())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.0.sign(message, b"").map_err(random::unavailable)
    }
}

/// The verdict under a key that was prepared as a `Box<dyn VerifyingKey>`.
pub(super) fn verify(request: VerifyRequest<'_>) -> Verdict {
    match request.public_key.prepared::<Box<dyn VerifyingKey>>() {
        Some(key) if key.verify(request.message, b"", request.signature) => Verdict::Valid,
        _ => Verdict::Invalid,
    }
}

/// The error for a public key whose length is not its algorithm's.
pub(super) fn wrong_length(algorithm: Algorithm) -> KmsError {
    let length = algorithm.public_key_length();
    let message = format!("not a public key of {algorithm}: it does not have {length} bytes");
    KmsError::new(Code::InvalidPublicKey, message)
}
