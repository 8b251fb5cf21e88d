//! The cofactored predicate, under which a random batch and single verification agree.
//!
//! A signature is valid here when A, R and S are canonical encodings, A and R are not of small order, and `8 s B = 8 R + 8 k A`. What is valid
//! by the strict predicate is valid here; the reverse fails for signatures whose A or R has a part of small order, which no honest signer makes
//! (and, of encodings, for a key whose y is not reduced, which is valid nowhere here). Choose one predicate for all verifiers of a system.
//!
//! With 32 signatures and more, all are checked by one sum with random coefficients of 126 bits, fresh for every call: what is wrong passes with
//! a chance of 2^-126. When the sum fails, halves are searched for what is wrong, so that there is one verdict each in any case.

use crate::kernel::{self, portable};
use crate::{Item, Reason, Verdict};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::IsIdentity as _;
use curve25519_dalek::{EdwardsPoint, Scalar};

/// The verdict on one signature.
pub fn verify(item: &Item<'_>) -> Verdict {
    match check(item) {
        Ok(()) => Verdict::Valid,
        Err(reason) => Verdict::Invalid(reason),
    }
}

/// Verifies every item: verdict i is that of [`verify`] for item i.
///
/// # Panics
///
/// When the operating system gives no random bytes, and as [`kernel::active`].
pub fn verify_many(items: &[Item<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(Reason::Mismatch); items.len()];
    verify_many_by(kernel::active(), items, &mut out);
    out
}

/// [`verify_many`] by a kernel of the caller's choice, in place.
///
/// # Panics
///
/// When `out` is not as long as `items`, and as [`verify_many`].
pub fn verify_many_by(kernel: kernel::Kernel, items: &[Item<'_>], out: &mut [Verdict]) {
    assert_eq!(items.len(), out.len(), "one verdict for each item");
    let mut random = vec![[0; 16]; items.len()];
    getrandom::fill(random.as_flattened_mut()).expect("the operating system gives random bytes");
    kernel.verify_cofactored(items, &random, out);
}

fn check(item: &Item<'_>) -> Result<(), Reason> {
    if !portable::is_canonical_scalar(item.s()) {
        return Err(Reason::ScalarNotCanonical);
    }
    let key = decode(item.public_key).ok_or(Reason::KeyNotAPoint)?;
    if key.is_small_order() {
        return Err(Reason::KeyOfSmallOrder);
    }
    if portable::has_small_order_y(item.r()) {
        return Err(Reason::ROfSmallOrder);
    }
    let r = decode(item.r()).ok_or(Reason::Mismatch)?;
    let s = Scalar::from_bytes_mod_order(*item.s());
    let k = portable::scalar_of([&[], item.r(), item.public_key, item.message]);
    let difference = EdwardsPoint::vartime_double_scalar_mul_basepoint(&k, &-key, &s) - r;
    if difference.mul_by_cofactor().is_identity() { Ok(()) } else { Err(Reason::Mismatch) }
}

/// The point, if it is one and this is its canonical encoding. The other encoding of an x of 0 belongs to points of small order, which nobody
/// accepts.
fn decode(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    const PRIME: [u8; 32] = {
        let mut prime = [0xff; 32];
        (prime[0], prime[31]) = (0xed, 0x7f);
        prime
    };
    let mut y = *bytes;
    y[31] &= 0x7f;
    if y.iter().rev().ge(PRIME.iter().rev()) {
        return None;
    }
    CompressedEdwardsY(*bytes).decompress()
}
