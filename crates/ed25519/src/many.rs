//! Strict verification and signing: one signature, and many at once.

use crate::kernel;
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};

/// The strict verdict on one signature: exactly the verdict of ed25519-dalek 3's `verify_strict`.
///
/// ```
/// use bulla_ed25519::{VerifyItem, InvalidReason, Verdict, verify_strict};
///
/// let item = VerifyItem { public_key: &[0; 32], message: b"any", signature: &[0; 64] };
/// assert_eq!(verify_strict(&item), Verdict::Invalid(InvalidReason::KeyOfSmallOrder));
/// ```
///
/// That is the equation without the cofactor, R compared as bytes, S below the order of the group,
/// and A and R not of small order.
///
/// # Panics
///
/// If the environment forces a kernel that this machine does not have: see [`kernel::active`].
pub fn verify_strict(item: &VerifyItem<'_>) -> Verdict {
    let mut out = [Verdict::Invalid(InvalidReason::Mismatch)];
    kernel::active().verify_many_into(std::slice::from_ref(item), &mut out);
    out[0]
}

/// Verifies every item. Verdict i is the verdict of [`verify_strict`] on item i. It does not depend
/// on the batch, the number of threads or the CPU.
///
/// # Panics
///
/// If the environment forces a kernel that this machine does not have: see [`kernel::active`].
pub fn verify_many(items: &[VerifyItem<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
    verify_many_into(items, &mut out);
    out
}

/// Like [`verify_many`], with the verdicts in `out`. It allocates nothing.
///
/// # Panics
///
/// If `out` is not as long as `items`, or if [`verify_many`] panics.
pub fn verify_many_into(items: &[VerifyItem<'_>], out: &mut [Verdict]) {
    kernel::active().verify_many_into(items, out);
}

/// Signs every item. Signature i is the one that [`sign`](crate::Signer::sign) makes for item i,
/// byte for byte.
///
/// If the kernel has vectors, it makes eight signatures at a time. The time depends only on the
/// messages' lengths, not on keys or content. Without the feature `lane-signing`, which is on by
/// default, signatures are made one after another.
///
/// # Panics
///
/// If the environment forces a kernel that this machine does not have: see [`kernel::active`].
#[must_use]
pub fn sign_many(items: &[SignItem<'_>]) -> Vec<[u8; 64]> {
    let mut out = vec![[0; 64]; items.len()];
    sign_many_into(items, &mut out);
    out
}

/// Like [`sign_many`], with the signatures in `out`. It allocates nothing.
///
/// # Panics
///
/// If `out` is not as long as `items`, or if [`sign_many`] panics.
pub fn sign_many_into(items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
    kernel::active().sign_many_into(items, out);
}
