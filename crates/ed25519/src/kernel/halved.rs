//! Strict verification of one signature by halved factors, for the kernels that have [`Steps`] for
//! it.

use super::encodings;
use crate::generic::halving::Halved;
use crate::generic::one_element::{Decoded, OneElement};
use crate::item::VerifyItem;
use crate::verdict::{InvalidReason, Verdict};
use curve25519_dalek::Scalar;
use curve25519_dalek::edwards::CompressedEdwardsY;

/// Bit 255 of an encoding: the sign of x.
const SIGN: u64 = 1 << 63;

/// What a kernel computes for one signature.
pub(super) trait Steps {
    /// x and y of two points, and whether they are points.
    fn decode(&self, words: &[[u64; 4]; 2]) -> [Decoded; 2];
    /// Whether d s B + c P + d Q is the neutral element, for `points` P and Q. `base` is d s modulo
    /// l.
    fn is_neutral(&self, points: &[[OneElement; 2]; 2], halved: &Halved, base: &[u64; 4]) -> bool;
}

/// The strict verdict on one signature.
pub(super) fn verify(steps: &impl Steps, domain: &[u8], item: &VerifyItem<'_>) -> Verdict {
    match is_valid(steps, domain, item) {
        Ok(true) => Verdict::Valid,
        Ok(false) => Verdict::Invalid(InvalidReason::Mismatch),
        Err(reason) => Verdict::Invalid(reason),
    }
}

fn is_valid(steps: &impl Steps, domain: &[u8], item: &VerifyItem<'_>) -> Result<bool, InvalidReason> {
    let [key, r] = [item.public_key, item.r()].map(words);
    if !encodings::is_canonical_scalar(item.s()) {
        return Err(InvalidReason::ScalarNotCanonical);
    }
    let [(key_x, key_y, is_key), (r_x, r_y, is_point)] = steps.decode(&[negative(&key), negative(&r)]);
    if !is_key {
        return Err(InvalidReason::KeyNotAPoint);
    }
    if encodings::has_small_order_y(item.public_key) {
        return Err(InvalidReason::KeyOfSmallOrder);
    }
    if encodings::has_small_order_y(item.r()) {
        return Err(InvalidReason::ROfSmallOrder);
    }
    // Only points have encodings, and only canonical ones are compared equal. x is not 0 here.
    if !is_point || r_y.to_words() != [r[0], r[1], r[2], r[3] & !SIGN] {
        return Ok(false);
    }
    let k = encodings::scalar_of([domain, item.r(), item.public_key, item.message]);
    Ok(equation_holds(steps, &k, &[[key_x, key_y], [r_x, r_y]], item))
}

/// Whether s B - k A is R. `points` are the negatives of A and R.
fn equation_holds(
    steps: &impl Steps,
    k: &Scalar,
    points: &[[OneElement; 2]; 2],
    item: &VerifyItem<'_>,
) -> bool {
    let Some(halved) = Halved::of(&words(k.as_bytes())) else {
        let key = CompressedEdwardsY(*item.public_key).decompress();
        return key.is_some_and(|key| encodings::equation_holds(k, &key, item));
    };
    let base = Scalar::from(halved.d) * Scalar::from_bytes_mod_order(*item.s());
    steps.is_neutral(points, &halved, &words(base.as_bytes()))
}

/// An encoding as little-endian words.
pub(super) fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// The encoding of the negative point.
fn negative(words: &[u64; 4]) -> [u64; 4] {
    [words[0], words[1], words[2], words[3] ^ SIGN]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::lanes::LaneEngine;
    use crate::kernel::machine::Scalars;
    use crate::kernel::portable::Halves;
    use crate::lanes::model::Model;
    use curve25519_dalek::EdwardsPoint;
    use curve25519_dalek::constants::EIGHT_TORSION;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    use {
        crate::kernel::fours::Fours,
        crate::kernel::machine::{Avx2, Ifma},
        crate::lanes::avx2,
        crate::lanes::ifma::Vector,
    };

    /// Whether s B - k A is R.
    fn holds(steps: &impl Steps, [a, r]: [&EdwardsPoint; 2], [k, s]: [&Scalar; 2]) -> bool {
        let points = steps.decode(&[a, r].map(|point| words(&(-point).compress().to_bytes())));
        let public_key = a.compress().to_bytes();
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(r.compress().as_bytes());
        signature[32..].copy_from_slice(s.as_bytes());
        let item = VerifyItem { public_key: &public_key, message: &[], signature: &signature };
        equation_holds(steps, k, &points.map(|(x, y, _)| [x, y]), &item)
    }

    /// Calls `check` with points, of which one may be of small order, and the factors of A and of
    /// the base point: 0, 1, their neighbors, and others.
    fn cases(samples: usize, mut check: impl FnMut([&EdwardsPoint; 2], [&Scalar; 2], bool)) {
        let mut random = fastrand::Rng::with_seed(61);
        let mut scalar = || {
            let mut wide = [0; 64];
            random.fill(&mut wide);
            Scalar::from_bytes_mod_order_wide(&wide)
        };
        let few = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(8_u64), scalar()];
        for a in EIGHT_TORSION {
            for r in EIGHT_TORSION {
                for s in &few[..3] {
                    for k in &few {
                        check([&a, &r], [k, s], EdwardsPoint::mul_base(s) - a * k == r);
                    }
                }
            }
        }
        for n in 0..samples {
            let (secret, k, s) = (scalar(), scalar(), scalar());
            let a = EdwardsPoint::mul_base(&secret) + EIGHT_TORSION[n % 8];
            let right = EdwardsPoint::mul_base(&s) - a * k;
            for torsion in EIGHT_TORSION {
                check([&a, &(right + torsion)], [&k, &s], torsion == EIGHT_TORSION[0]);
            }
            check([&a, &-right], [&k, &s], false);
            check([&a, &right], [&k, &(s + Scalar::ONE)], false);
            check([&a, &right], [&(k + Scalar::ONE), &s], false);
        }
    }

    #[test]
    fn halved_factors_decide_as_the_whole_ones_do() {
        let model: LaneEngine<Model, Scalars> = LaneEngine::new(Scalars);
        cases(3, |points, factors, expected| {
            assert_eq!(holds(&model, points, factors), expected, "{points:?} {factors:?}");
        });
        cases(300, |points, factors, expected| {
            assert_eq!(holds(&Halves, points, factors), expected, "{points:?} {factors:?}");
        });
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(avx2) = Avx2::detect() {
            let engine: Fours<avx2::Vector, Avx2> = Fours::new(avx2);
            cases(300, |points, factors, expected| {
                assert_eq!(holds(&engine, points, factors), expected, "{points:?} {factors:?}");
            });
        }
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(ifma) = Ifma::detect() {
            let engine: LaneEngine<Vector, Ifma> = LaneEngine::new(ifma);
            cases(300, |points, factors, expected| {
                assert_eq!(holds(&engine, points, factors), expected, "{points:?} {factors:?}");
            });
        }
    }

    /// No message with such a k is known.
    #[test]
    fn factors_that_are_too_long_go_another_way() {
        let (k, s, a) =
            (Scalar::from(2_u64).invert(), Scalar::from(5_u64), EdwardsPoint::mul_base(&Scalar::ONE));
        assert_eq!(Halved::of(&words(k.as_bytes())), None);
        for torsion in EIGHT_TORSION {
            let key = a + torsion;
            let right = EdwardsPoint::mul_base(&s) - key * k;
            assert!(holds(&Halves, [&key, &right], [&k, &s]));
            assert!(!holds(&Halves, [&key, &(right + EIGHT_TORSION[3])], [&k, &s]));
            assert!(!holds(&Halves, [&key, &a], [&k, &s]));
        }
    }
}
