//! The predicate by which Ed25519 keys and signatures are accepted, computed by `ed25519-dalek`.
//! Other implementations must agree with it.

use ed25519_dalek::{Signature, VerifyingKey};

use crate::error::{Code, KmsError, Result};
use crate::verdict::Verdict;

/// Decodes a public key. Points of small order are refused: a signature under them proves nothing.
/// A y that is not reduced is refused too, although verification alone would accept it: the same
/// point would have two encodings, which a comparison of keys would call different.
pub(super) fn decode(bytes: &[u8]) -> Result<VerifyingKey> {
    let invalid =
        |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not an Ed25519 public key: {why}"));
    let bytes = bytes.try_into().map_err(|_| invalid("it does not have 32 bytes"))?;
    if !is_reduced(bytes) {
        return Err(invalid("its y is not reduced"));
    }
    let key =
        VerifyingKey::from_bytes(bytes).map_err(|_| invalid("the bytes are not a point on the curve"))?;
    if key.is_weak() { Err(invalid("the point has small order")) } else { Ok(key) }
}

/// Whether y, which is all but the highest bit, is below 2^255 - 19.
fn is_reduced(bytes: &[u8; 32]) -> bool {
    let [low, middle @ .., high] = bytes;
    *low < 0xed || high & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

/// The strict predicate.
pub(super) fn verify(key: &VerifyingKey, message: &[u8], signature: &[u8]) -> Verdict {
    match Signature::from_slice(signature) {
        Ok(signature) if key.verify_strict(message, &signature).is_ok() => Verdict::Valid,
        _ => Verdict::Invalid,
    }
}
