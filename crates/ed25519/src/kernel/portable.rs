//! One signature after the other, for every machine: verified by halved factors in general
//! registers, or by `ed25519-dalek`, which also signs.

use super::encodings::{equation_holds, has_small_order_y, is_canonical_scalar, scalar_of};
use super::engine::{Engine, PreparedKey};
use super::halved::{self, Steps};
use crate::generic::halving::Halved;
use crate::generic::one_by_one::{self, BaseTables};
use crate::generic::one_element::{Decoded, OneElement};
use crate::item::VerifyItem;
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict};
use crate::wipe;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::IsIdentity as _;
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha512};
use std::sync::LazyLock;
use zeroize::{Zeroizing, zeroize_stack};

/// The engine, with one of two ways to verify.
pub(crate) struct Portable {
    verify: fn(&[u8], &VerifyItem<'_>) -> Verdict,
}

impl Portable {
    /// By halved factors, where registers have 64 bits.
    pub(crate) const BEST: Self =
        Self { verify: if cfg!(target_pointer_width = "64") { by_halves } else { by_dalek } };
    /// By `ed25519-dalek`.
    pub(crate) const DALEK: Self = Self { verify: by_dalek };
}

/// One signature in general registers.
pub(super) struct Halves;

/// Multiples of the base point, computed on first use.
static BASE_TABLES: LazyLock<BaseTables> = LazyLock::new(one_by_one::base_tables);

impl Steps for Halves {
    fn decode(&self, words: &[[u64; 4]; 2]) -> [Decoded; 2] {
        one_by_one::decode(words)
    }

    fn is_neutral(&self, points: &[[OneElement; 2]; 2], halved: &Halved, base: &[u64; 4]) -> bool {
        one_by_one::is_neutral(points, halved, base, &BASE_TABLES)
    }
}

fn by_halves(domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    halved::verify(&Halves, domain, item)
}

fn by_dalek(domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    match strict(domain, item) {
        Ok(()) => Verdict::Valid,
        Err(reason) => Verdict::Invalid(reason),
    }
}

/// The tests other than the equation are made here too, because another package may enable a
/// feature of dalek that relaxes the one for S.
fn strict(domain: &[u8], item: &VerifyItem<'_>) -> Result<(), InvalidReason> {
    if !is_canonical_scalar(item.s()) {
        return Err(InvalidReason::ScalarNotCanonical);
    }
    let key = VerifyingKey::from_bytes(item.public_key).map_err(|_| InvalidReason::KeyNotAPoint)?;
    if key.is_weak() {
        return Err(InvalidReason::KeyOfSmallOrder);
    }
    if has_small_order_y(item.r()) {
        return Err(InvalidReason::ROfSmallOrder);
    }
    let is_valid = if domain.is_empty() {
        key.verify_strict(item.message, &Signature::from_bytes(item.signature)).is_ok()
    } else {
        equation_holds(&scalar_of([domain, item.r(), item.public_key, item.message]), &key.to_edwards(), item)
    };
    if is_valid { Ok(()) } else { Err(InvalidReason::Mismatch) }
}

/// The verdict on one signature by the cofactored predicate.
pub(crate) fn verify_cofactored(item: &VerifyItem<'_>) -> Verdict {
    match cofactored(item) {
        Ok(()) => Verdict::Valid,
        Err(reason) => Verdict::Invalid(reason),
    }
}

fn cofactored(item: &VerifyItem<'_>) -> Result<(), InvalidReason> {
    if !is_canonical_scalar(item.s()) {
        return Err(InvalidReason::ScalarNotCanonical);
    }
    let key = decode(item.public_key).ok_or(InvalidReason::KeyNotAPoint)?;
    if key.is_small_order() {
        return Err(InvalidReason::KeyOfSmallOrder);
    }
    if has_small_order_y(item.r()) {
        return Err(InvalidReason::ROfSmallOrder);
    }
    let r = decode(item.r()).ok_or(InvalidReason::Mismatch)?;
    let s = Scalar::from_bytes_mod_order(*item.s());
    let k = scalar_of([&[], item.r(), item.public_key, item.message]);
    let difference = EdwardsPoint::vartime_double_scalar_mul_basepoint(&k, &-key, &s) - r;
    if difference.mul_by_cofactor().is_identity() { Ok(()) } else { Err(InvalidReason::Mismatch) }
}

/// Decodes a point, if this is the canonical encoding of one. The second encoding of x = 0 belongs
/// to points of small order, which are never accepted.
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

/// A signature with a domain (RFC 8032, section 5.1.6).
fn sign_in(domain: &[u8], item: &SignItem<'_>) -> [u8; 64] {
    let nonce = Zeroizing::new(scalar_of([domain, item.key.prefix(), item.message, &[]]));
    let r = EdwardsPoint::mul_base(&nonce).compress();
    let k = scalar_of([domain, r.as_bytes(), item.key.public_key(), item.message]);
    let s = *nonce + k * item.key.secret_scalar();
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(r.as_bytes());
    signature[32..].copy_from_slice(s.as_bytes());
    signature
}

impl Engine for Portable {
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        for (item, verdict) in items.iter().zip(out) {
            *verdict = (self.verify)(domain, item);
        }
    }

    fn prepare(&self, keys: &[[u8; 32]], _tables: usize) -> Vec<PreparedKey> {
        keys.iter().map(|key| PreparedKey::bare(key_fault(key))).collect()
    }

    fn verify_prepared(&self, items: &[VerifyItem<'_>], _keys: &[&PreparedKey], out: &mut [Verdict]) {
        self.verify(&[], items, out);
    }

    fn verify_cofactored(&self, items: &[VerifyItem<'_>], _random: &[[u8; 16]], out: &mut [Verdict]) {
        for (item, verdict) in items.iter().zip(out) {
            *verdict = verify_cofactored(item);
        }
    }

    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        for (message, digest) in messages.iter().zip(out) {
            *digest = Sha512::digest(message).into();
        }
    }

    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        sign_each(domain, items, out);
        zeroize_stack::<{ wipe::ONE_BY_ONE }>();
    }
}

/// Leaves nonces in its own frame and in the frames below it, which the caller wipes.
#[inline(never)]
fn sign_each(domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
    for (item, signature) in items.iter().zip(out) {
        *signature =
            if domain.is_empty() { item.key.sign_portable(item.message) } else { sign_in(domain, item) };
    }
}

/// The reason why no signature under the key is valid, if there is one.
fn key_fault(public_key: &[u8; 32]) -> Option<InvalidReason> {
    match VerifyingKey::from_bytes(public_key) {
        Err(_) => Some(InvalidReason::KeyNotAPoint),
        Ok(key) if key.is_weak() => Some(InvalidReason::KeyOfSmallOrder),
        Ok(_) => None,
    }
}
