//! One signature after the other, for every machine: verified by halved factors in general
//! registers, or by `curve25519-dalek`, which also signs.

use super::halved::{self, SingleVerifier};
use super::{Engine, EngineKey};
use crate::generic::field64::{Decoded64, Element64};
use crate::generic::halving::HalvedFactors;
use crate::generic::point64::{self, BaseTables64};
use crate::serial::{equation_holds, has_small_order_y, is_canonical_scalar};
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
use crate::wipe;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::IsIdentity as _;
use curve25519_dalek::{EdwardsPoint, Scalar};
use sha2::{Digest as _, Sha512};
use std::sync::LazyLock;
use zeroize::zeroize_stack;

/// The engine without vectors, with one of two ways to verify.
pub(crate) struct Portable {
    verify: fn(&[u8], &VerifyItem<'_>) -> Verdict,
}

impl Portable {
    /// By halved factors, where registers have 64 bits.
    pub(crate) const BEST: Self =
        Self { verify: if cfg!(target_pointer_width = "64") { by_halves } else { by_dalek } };
    /// By `curve25519-dalek`.
    pub(crate) const DALEK: Self = Self { verify: by_dalek };
}

/// One signature in general registers.
pub(super) struct GeneralRegisters;

/// Multiples of the base point, computed on first use.
static BASE_TABLES: LazyLock<BaseTables64> = LazyLock::new(point64::base_tables);

impl SingleVerifier for GeneralRegisters {
    fn decode<const N: usize>(&self, words: &[[[u64; 4]; 2]; N]) -> [[Decoded64; 2]; N] {
        words.map(|words| point64::decode(&words))
    }

    fn are_neutral<const N: usize>(
        &self,
        points: &[[[Element64; 2]; 2]; N],
        halved: &[HalvedFactors; N],
        base: &[[u64; 4]; N],
    ) -> [bool; N] {
        std::array::from_fn(|n| point64::is_neutral(&points[n], &halved[n], &base[n], &BASE_TABLES))
    }
}

fn by_halves(domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    halved::verify(&GeneralRegisters, domain, [item])[0]
}

fn by_dalek(domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    match check_strict(domain, item) {
        Ok(()) => Verdict::Valid,
        Err(reason) => Verdict::Invalid(reason),
    }
}

fn check_strict(domain: &[u8], item: &VerifyItem<'_>) -> Result<(), InvalidReason> {
    if !is_canonical_scalar(item.s()) {
        return Err(InvalidReason::ScalarNotCanonical);
    }
    let key = CompressedEdwardsY(*item.public_key).decompress().ok_or(InvalidReason::KeyNotAPoint)?;
    if key.is_small_order() {
        return Err(InvalidReason::KeyOfSmallOrder);
    }
    if has_small_order_y(item.r()) {
        return Err(InvalidReason::ROfSmallOrder);
    }
    let k = scalar_of([domain, item.r(), item.public_key, item.message]);
    let is_valid = equation_holds(&k, &key, &Scalar::from_bytes_mod_order(*item.s()), item.r());
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
        *signature = item.key.sign_serially(domain, &[item.message]);
    }
}

/// The reason why no signature under the key is valid, if there is one.
fn key_fault(public_key: &[u8; 32]) -> Option<InvalidReason> {
    match CompressedEdwardsY(*public_key).decompress() {
        None => Some(InvalidReason::KeyNotAPoint),
        Some(key) if key.is_small_order() => Some(InvalidReason::KeyOfSmallOrder),
        Some(_) => None,
    }
}

/// SHA-512 of the parts, modulo l.
pub(super) fn scalar_of(parts: [&[u8]; 4]) -> Scalar {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update(part);
    }
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}
