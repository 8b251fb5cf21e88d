//! The cofactored predicate, under which a random batch and single verification agree.
//!
//! A signature is valid here if A, R and S are canonical encodings, A and R are not of small order,
//! and `8 s B = 8 R + 8 k A`. A signature that is valid under the strict predicate is valid here,
//! except under a key whose y is not reduced: such a key is never valid here. The reverse fails for
//! signatures whose A or R has a part of small order, which no honest signer makes. Choose one
//! predicate for all verifiers of a system.
//!
//! With 32 signatures or more, one sum with random coefficients checks all of them. The
//! coefficients have 126 bits and are new for every call: a wrong signature passes with a
//! probability of 2^-126. If the sum fails, halves are searched for wrong signatures, so that each
//! signature always gets its own verdict.

use crate::kernel;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};

/// The verdict on one signature.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, VerifyItem, cofactored};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let (public_key, signature) = (signer.verifying_key(), signer.sign(b"message").to_bytes());
/// let (public_key, signature) = (public_key.as_bytes(), &signature);
/// let item = VerifyItem { public_key, message: b"message", signature };
/// assert!(cofactored::verify(&item).is_valid());
/// ```
pub fn verify(item: &VerifyItem<'_>) -> Verdict {
    kernel::portable::verify_cofactored(item)
}

/// Verifies every item: verdict i is the verdict of [`verify`] on item i.
///
/// # Panics
///
/// If the operating system gives no random bytes, or if [`kernel::active`] panics.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, Verdict, VerifyItem, cofactored};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let (public_key, signature) = (signer.verifying_key(), signer.sign(b"message").to_bytes());
/// let (public_key, signature) = (public_key.as_bytes(), &signature);
/// let items = [VerifyItem { public_key, message: b"message", signature }; 20];
/// assert_eq!(cofactored::verify_many(&items), [Verdict::Valid; 20]);
/// ```
pub fn verify_many(items: &[VerifyItem<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
    verify_many_by(kernel::active(), items, &mut out);
    out
}

/// Like [`verify_many`], by a kernel of the caller's choice, with the verdicts in `out`.
///
/// # Panics
///
/// If `out` is not as long as `items`, or if [`verify_many`] panics.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, Verdict, VerifyItem, cofactored, kernel};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let (public_key, signature) = (signer.verifying_key(), signer.sign(b"message").to_bytes());
/// let (public_key, signature) = (public_key.as_bytes(), &signature);
/// let items = [VerifyItem { public_key, message: b"message", signature }; 20];
/// let mut verdicts = [Verdict::Valid; 20];
/// cofactored::verify_many_by(kernel::active(), &items, &mut verdicts);
/// assert_eq!(verdicts, [Verdict::Valid; 20]);
/// ```
pub fn verify_many_by(kernel: kernel::Kernel, items: &[VerifyItem<'_>], out: &mut [Verdict]) {
    assert_eq!(items.len(), out.len(), "one verdict for each item");
    let mut random = vec![[0; 16]; items.len()];
    getrandom::fill(random.as_flattened_mut()).expect("the operating system gives random bytes");
    kernel.verify_cofactored(items, &random, out);
}
