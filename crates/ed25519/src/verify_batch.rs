//! The batch verification of `ed25519-dalek`: one verdict for all signatures, under another
//! predicate than those of single verification.

use crate::error::{InputError, SignatureError, signature_error};
use crate::serial;
use crate::verdict::InvalidReason;
use crate::verifying_key::VerifyingKey;
use alloc::vec::Vec;
use core::iter;
use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::{IsIdentity as _, VartimeMultiscalarMul as _};
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519::Signature;
use sha2::{Digest as _, Sha512};
use strobe_rs::{SecParam, Strobe};

/// Whether the random combination of all equations holds, without the cofactor: the function of
/// this name in `ed25519-dalek`, with the same result for every batch.
///
/// This is **not** the strict predicate. For a signature with a part of small order, which no
/// honest signer makes, the result depends on chance and on its neighbors.
/// [`verify_many`](crate::verify_many) gives one verdict for each signature, which depends on
/// nothing else, and [`cofactored`](crate::cofactored) is a batch that agrees with single
/// verification. An empty batch is valid.
///
/// # Errors
///
/// [`SignatureError`] if a signature is not valid, or if there are not as many messages as
/// signatures and keys.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, verify_batch};
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let messages = [b"one".as_slice(), b"two"];
/// let signatures = messages.map(|message| key.sign(message));
/// assert!(verify_batch(&messages, &signatures, &[key.verifying_key(); 2]).is_ok());
/// assert!(verify_batch(&[b"one", b"three"], &signatures, &[key.verifying_key(); 2]).is_err());
/// assert!(verify_batch(&messages, &signatures, &[]).is_err());
/// ```
pub fn verify_batch(
    messages: &[&[u8]],
    signatures: &[Signature],
    verifying_keys: &[VerifyingKey],
) -> Result<(), SignatureError> {
    let lengths = [messages.len(), signatures.len(), verifying_keys.len()];
    if lengths != [messages.len(); 3] {
        return Err(signature_error(InputError::BatchLengths(lengths)));
    }
    let digests: Vec<[u8; 64]> = iter::zip(signatures, verifying_keys)
        .zip(messages)
        .map(|((signature, key), message)| {
            Sha512::new_with_prefix(signature.r_bytes())
                .chain_update(key.as_bytes())
                .chain_update(message)
                .finalize()
                .into()
        })
        .collect();
    let mut coefficients = Coefficients::new(&digests, signatures);
    let s: Vec<_> = signatures
        .iter()
        .map(|signature| serial::accepted_scalar(signature.s_bytes()))
        .collect::<Result<_, _>>()
        .map_err(signature_error)?;
    let z: Vec<_> = s.iter().map(|_| coefficients.next()).collect();
    let of_base: Scalar = iter::zip(&s, &z).map(|(s, z)| s * z).sum();
    let of_keys = iter::zip(&digests, &z).map(|(digest, z)| Scalar::from_bytes_mod_order_wide(digest) * z);
    let rs = signatures.iter().map(|signature| CompressedEdwardsY(*signature.r_bytes()).decompress());
    let keys = verifying_keys.iter().map(|key| Some(key.to_edwards()));
    let sum = EdwardsPoint::optional_multiscalar_mul(
        iter::once(-of_base).chain(z.iter().copied()).chain(of_keys),
        iter::once(Some(ED25519_BASEPOINT_POINT)).chain(rs).chain(keys),
    );
    if sum.is_some_and(|sum| sum.is_identity()) {
        Ok(())
    } else {
        Err(signature_error(InvalidReason::Mismatch))
    }
}

/// The coefficients of a batch. They follow from what is verified: a Merlin transcript
/// (<https://merlin.cool>) of all digests and all S, and its generator without outer randomness.
struct Coefficients(Strobe);

impl Coefficients {
    fn new(digests: &[[u8; 64]], signatures: &[Signature]) -> Self {
        let mut this = Self(Strobe::new(b"Merlin v1.0", SecParam::B128));
        this.append(b"dom-sep", b"ed25519 batch verification");
        digests.iter().for_each(|digest| this.append(b"hram", digest));
        signatures.iter().for_each(|signature| this.append(b"sig.s", signature.s_bytes()));
        this.0.meta_ad(b"rng", false);
        this.0.key(&[0; 32], false);
        this
    }

    /// A message of the transcript.
    fn append(&mut self, label: &[u8], message: &[u8]) {
        let len = u32::try_from(message.len()).expect("messages of the transcript are short");
        self.0.meta_ad(label, false);
        self.0.meta_ad(&len.to_le_bytes(), true);
        self.0.ad(message, false);
    }

    /// The next coefficient, of 128 bits.
    fn next(&mut self) -> Scalar {
        let mut bytes = [0; 16];
        self.0.meta_ad(&(bytes.len() as u32).to_le_bytes(), false);
        self.0.prf(&mut bytes, false);
        u128::from_le_bytes(bytes).into()
    }
}
