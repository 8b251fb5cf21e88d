//! One signature after the other, for every machine: verified by halved factors in general
//! registers, or by `ed25519-dalek`, which also signs. The checks of encodings are those of every
//! kernel.

use super::halved::{self, SingleVerifier};
use super::{Engine, EngineKey};
use crate::generic::field64::{Decoded64, Element64};
use crate::generic::halving::HalvedFactors;
use crate::generic::point64::{self, BaseTables64};
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
use crate::wipe;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::IsIdentity as _;
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha512};
use std::sync::LazyLock;
use zeroize::{Zeroizing, zeroize_stack};

/// The engine without vectors, with one of two ways to verify.
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
pub(super) struct GeneralRegisters;

/// Multiples of the base point, computed on first use.
static BASE_TABLES: LazyLock<BaseTables64> = LazyLock::new(point64::base_tables);

impl SingleVerifier for GeneralRegisters {
    fn decode(&self, words: &[[u64; 4]; 2]) -> [Decoded64; 2] {
        point64::decode(words)
    }

    fn is_neutral(&self, points: &[[Element64; 2]; 2], halved: &HalvedFactors, base: &[u64; 4]) -> bool {
        point64::is_neutral(points, halved, base, &BASE_TABLES)
    }
}

fn by_halves(domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    halved::verify(&GeneralRegisters, domain, item)
}

fn by_dalek(domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    match check_strict(domain, item) {
        Ok(()) => Verdict::Valid,
        Err(reason) => Verdict::Invalid(reason),
    }
}

/// The tests other than the equation are made here too, because another package may enable a
/// feature of dalek that relaxes the one for S.
fn check_strict(domain: &[u8], item: &VerifyItem<'_>) -> Result<(), InvalidReason> {
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
    match check_cofactored(item) {
        Ok(()) => Verdict::Valid,
        Err(reason) => Verdict::Invalid(reason),
    }
}

fn check_cofactored(item: &VerifyItem<'_>) -> Result<(), InvalidReason> {
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

    fn prepare(&self, keys: &[[u8; 32]], _tables: usize) -> Vec<EngineKey> {
        keys.iter().map(|key| EngineKey::bare(key_fault(key))).collect()
    }

    fn verify_prepared(&self, items: &[VerifyItem<'_>], _keys: &[&EngineKey], out: &mut [Verdict]) {
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
        zeroize_stack::<{ wipe::SERIAL_STACK_LEN }>();
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

/// l, little-endian (RFC 8032, section 5.1).
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The y coordinates of all points of small order, with the sign bit cleared, little-endian: the
/// five below the prime, and 0 and 1 again with the prime added.
const SMALL_ORDER_Y: [[u8; 32]; 7] = {
    const LAST: u8 = 0x7f;
    const fn near_the_prime(first: u8) -> [u8; 32] {
        let mut bytes = [0xff; 32];
        bytes[0] = first;
        bytes[31] = LAST;
        bytes
    }
    let (zero, mut one) = ([0; 32], [0; 32]);
    one[0] = 1;
    [
        zero,
        one,
        near_the_prime(0xec),
        near_the_prime(0xed),
        near_the_prime(0xee),
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ],
    ]
};

/// Whether S is below the order.
pub(super) fn is_canonical_scalar(s: &[u8; 32]) -> bool {
    s.iter().rev().lt(ORDER.iter().rev())
}

/// Whether the y of an encoding belongs to a point of small order. The encoding need not be a
/// point.
pub(super) fn has_small_order_y(encoding: &[u8; 32]) -> bool {
    let mut y = *encoding;
    y[31] &= 0x7f;
    SMALL_ORDER_Y.contains(&y)
}

/// Whether s B - k A has the encoding R.
pub(super) fn equation_holds(k: &Scalar, key: &EdwardsPoint, item: &VerifyItem<'_>) -> bool {
    let s = Scalar::from_bytes_mod_order(*item.s());
    let r = EdwardsPoint::vartime_double_scalar_mul_basepoint(k, &-key, &s);
    r.compress().as_bytes() == item.r()
}

/// SHA-512 of the parts, modulo l.
pub(super) fn scalar_of(parts: [&[u8]; 4]) -> Scalar {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update(part);
    }
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}
