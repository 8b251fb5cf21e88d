//! Strict verification of one or two signatures by halved factors, for every kernel that is a
//! [`SingleVerifier`].

use super::portable;
use crate::generic::field64::{Decoded64, Element64};
use crate::generic::halving::HalvedFactors;
use crate::serial;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
use curve25519_dalek::Scalar;
use curve25519_dalek::edwards::CompressedEdwardsY;

/// Bit 255 of an encoding: the sign of x.
const SIGN: u64 = 1 << 63;

/// The steps for single signatures, as a kernel computes them. Several signatures in one call may
/// take less time.
pub(super) trait SingleVerifier {
    /// x and y of two points for each signature, and whether they are points.
    fn decode<const N: usize>(&self, words: &[[[u64; 4]; 2]; N]) -> [[Decoded64; 2]; N];
    /// Whether d s B + c P + d Q is the neutral element, for `points` P and Q of each signature.
    /// `base` is d s modulo l.
    fn are_neutral<const N: usize>(
        &self,
        points: &[[[Element64; 2]; 2]; N],
        halved: &[HalvedFactors; N],
        base: &[[u64; 4]; N],
    ) -> [bool; N];
}

/// The strict verdict on each of a few signatures.
pub(super) fn verify<const N: usize>(
    verifier: &impl SingleVerifier,
    domain: &[u8],
    items: [&VerifyItem<'_>; N],
) -> [Verdict; N] {
    let canonical = items.map(|item| serial::is_canonical_scalar(item.s()));
    let mut verdicts = [Verdict::Invalid(InvalidReason::ScalarNotCanonical); N];
    if canonical == [false; N] {
        return verdicts;
    }
    let encodings = items.map(|item| [item.public_key, item.r()].map(|encoding| negative(&words(encoding))));
    let decoded = verifier.decode(&encodings);
    let mut equations = Equations::NONE;
    for (n, item) in items.iter().enumerate() {
        if canonical[n] {
            verdicts[n] = match check_points(item, &decoded[n]) {
                Ok(points) => {
                    let k = portable::scalar_of([domain, item.r(), item.public_key, item.message]);
                    equations.put(n, &k, &points, item)
                }
                Err(reason) => Verdict::Invalid(reason),
            };
        }
    }
    equations.solve(verifier, &mut verdicts);
    verdicts
}

/// The negatives of A and R, if they are points that a valid signature may have.
fn check_points(
    item: &VerifyItem<'_>,
    [(key_x, key_y, is_key), (r_x, r_y, is_point)]: &[Decoded64; 2],
) -> Result<[[Element64; 2]; 2], InvalidReason> {
    if !is_key {
        return Err(InvalidReason::KeyNotAPoint);
    }
    if serial::has_small_order_y(item.public_key) {
        return Err(InvalidReason::KeyOfSmallOrder);
    }
    if serial::has_small_order_y(item.r()) {
        return Err(InvalidReason::ROfSmallOrder);
    }
    // Only points have encodings, and only canonical ones are compared equal. x is not 0 here.
    let r = words(item.r());
    if !is_point || r_y.to_words() != [r[0], r[1], r[2], r[3] & !SIGN] {
        return Err(InvalidReason::Mismatch);
    }
    Ok([[*key_x, *key_y], [*r_x, *r_y]])
}

/// Whether s B - k A is R, for each of a few signatures, by halved factors.
struct Equations<const N: usize> {
    /// The negatives of A and R.
    points: [[[Element64; 2]; 2]; N],
    halved: [HalvedFactors; N],
    /// d s modulo l.
    base: [[u64; 4]; N],
    /// Whether the signature's verdict is that of its equation. The others have factors of 0.
    pending: [bool; N],
}

impl<const N: usize> Equations<N> {
    const NONE: Self = Self {
        points: [[[Element64::ZERO, Element64::ONE]; 2]; N],
        halved: [HalvedFactors::ZERO; N],
        base: [[0; 4]; N],
        pending: [false; N],
    };

    /// Takes the equation of signature `n`, and returns its verdict if that is known at once.
    fn put(&mut self, n: usize, k: &Scalar, points: &[[Element64; 2]; 2], item: &VerifyItem<'_>) -> Verdict {
        match factors(k, item) {
            Ok((halved, base)) => {
                (self.points[n], self.halved[n], self.base[n]) = (*points, halved, base);
                self.pending[n] = true;
                Verdict::Invalid(InvalidReason::Mismatch)
            }
            Err(holds) => verdict(holds),
        }
    }

    /// Writes the verdicts of the signatures whose equations were taken.
    fn solve(&self, verifier: &impl SingleVerifier, verdicts: &mut [Verdict; N]) {
        if self.pending == [false; N] {
            return;
        }
        let neutral = verifier.are_neutral(&self.points, &self.halved, &self.base);
        for n in 0..N {
            if self.pending[n] {
                verdicts[n] = verdict(neutral[n]);
            }
        }
    }
}

/// The verdict of the equation.
fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Valid } else { Verdict::Invalid(InvalidReason::Mismatch) }
}

/// The halved factors of an equation, and d s modulo l. If they would be too long, whether the
/// equation holds.
pub(super) fn factors(k: &Scalar, item: &VerifyItem<'_>) -> Result<(HalvedFactors, [u64; 4]), bool> {
    let Some(halved) = HalvedFactors::of(&words(k.as_bytes())) else {
        let key = CompressedEdwardsY(*item.public_key).decompress();
        return Err(key.is_some_and(|key| {
            serial::equation_holds(k, &key, &Scalar::from_bytes_mod_order(*item.s()), item.r())
        }));
    };
    let base = Scalar::from(halved.d) * Scalar::from_bytes_mod_order(*item.s());
    Ok((halved, words(base.as_bytes())))
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
pub(super) mod tests {
    use super::*;
    use crate::kernel::lane_engine::LaneEngine;
    use crate::kernel::lane_steps::ModelSteps;
    use crate::kernel::portable::GeneralRegisters;
    use crate::lanes::model::Model;
    use curve25519_dalek::EdwardsPoint;
    use curve25519_dalek::constants::EIGHT_TORSION;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    use {
        crate::kernel::lane_engine::FourLaneEngine,
        crate::kernel::lane_steps::{Avx2Steps, IfmaSteps},
        crate::lanes::avx2,
        crate::lanes::ifma::Vector,
    };

    /// Whether s B - k A is R.
    fn holds(verifier: &impl SingleVerifier, [a, r]: [&EdwardsPoint; 2], [k, s]: [&Scalar; 2]) -> bool {
        let [points] = verifier.decode(&[[a, r].map(|point| words(&(-point).compress().to_bytes()))]);
        let public_key = a.compress().to_bytes();
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(r.compress().as_bytes());
        signature[32..].copy_from_slice(s.as_bytes());
        let item = VerifyItem { public_key: &public_key, message: &[], signature: &signature };
        let mut equations = Equations::<2>::NONE;
        // The other place has no signature.
        let place = usize::from(s.as_bytes()[0] & 1);
        let mut verdicts = [Verdict::Valid; 2];
        verdicts[place] = equations.put(place, k, &points.map(|(x, y, _)| [x, y]), &item);
        let mut alone = Equations::<1>::NONE;
        let mut verdict = [alone.put(0, k, &points.map(|(x, y, _)| [x, y]), &item)];
        equations.solve(verifier, &mut verdicts);
        alone.solve(verifier, &mut verdict);
        assert_eq!(verdicts[1 - place], Verdict::Valid, "nothing was asked");
        assert_eq!(verdicts[place], verdict[0]);
        verdict[0].is_valid()
    }

    /// Calls `check` with points, of which one may be of small order, and the factors of A and of
    /// the base point: 0, 1, their neighbors, and others.
    pub(in crate::kernel) fn cases(
        samples: usize,
        mut check: impl FnMut([&EdwardsPoint; 2], [&Scalar; 2], bool),
    ) {
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
        let model: LaneEngine<Model, ModelSteps> = LaneEngine::new(ModelSteps);
        cases(3, |points, factors, expected| {
            assert_eq!(holds(&model, points, factors), expected, "{points:?} {factors:?}");
        });
        cases(300, |points, factors, expected| {
            assert_eq!(holds(&GeneralRegisters, points, factors), expected, "{points:?} {factors:?}");
        });
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(avx2) = Avx2Steps::detect() {
            let engine: FourLaneEngine<avx2::Vector, Avx2Steps> = FourLaneEngine::new(avx2);
            cases(300, |points, factors, expected| {
                assert_eq!(holds(&engine, points, factors), expected, "{points:?} {factors:?}");
            });
        }
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(ifma) = IfmaSteps::detect() {
            let engine: LaneEngine<Vector, IfmaSteps> = LaneEngine::new(ifma);
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
        assert_eq!(HalvedFactors::of(&words(k.as_bytes())), None);
        for torsion in EIGHT_TORSION {
            let key = a + torsion;
            let right = EdwardsPoint::mul_base(&s) - key * k;
            assert!(holds(&GeneralRegisters, [&key, &right], [&k, &s]));
            assert!(!holds(&GeneralRegisters, [&key, &(right + EIGHT_TORSION[3])], [&k, &s]));
            assert!(!holds(&GeneralRegisters, [&key, &a], [&k, &s]));
        }
    }
}
