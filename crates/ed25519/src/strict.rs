//! Strict verification: one verdict each.

use crate::item::Item;
use crate::kernel;
use crate::verdict::{Reason, Verdict};

/// The strict verdict on one signature: exactly that of `verify_strict` of ed25519-dalek 3.
///
/// ```
/// use bulla_ed25519::{Item, Reason, Verdict, verify_strict};
///
/// let item = Item { public_key: &[0; 32], message: b"any", signature: &[0; 64] };
/// assert_eq!(verify_strict(&item), Verdict::Invalid(Reason::KeyOfSmallOrder));
/// ```
///
/// That is the equation without the cofactor, R compared as bytes, S below the order of the group, and A and R not of small order.
pub fn verify_strict(item: &Item<'_>) -> Verdict {
    kernel::portable::verify_in(&[], item)
}

/// Verifies every item. Verdict i is that of [`verify_strict`] for item i, whatever its neighbours, their order and number, the threads
/// and the CPU.
///
/// # Panics
///
/// If the environment forces a kernel that this machine does not have: see [`kernel::active`].
pub fn verify_many(items: &[Item<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(Reason::Mismatch); items.len()];
    verify_many_into(items, &mut out);
    out
}

/// [`verify_many`] in place: allocates nothing.
///
/// # Panics
///
/// When `out` is not as long as `items`, and as [`verify_many`].
pub fn verify_many_into(items: &[Item<'_>], out: &mut [Verdict]) {
    kernel::active().verify_many_into(items, out);
}
