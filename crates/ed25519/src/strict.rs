//! Strict verification: a separate verdict on each signature.

use crate::item::VerifyItem;
use crate::kernel;
use crate::verdict::{InvalidReason, Verdict};

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
/// on its neighbors, their order and number, the threads or the CPU.
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
