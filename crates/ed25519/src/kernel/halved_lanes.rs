//! Strict verification of a few signatures by halved factors: one or two with all lanes for each
//! signature, then up to half as many as there are lanes, with two lanes for each.

use super::halved::{self, SingleVerifier, words};
use super::lane_engine::{LaneEngine, give_verdicts, take_items};
use super::lane_steps::LaneSteps;
use crate::generic::halving::HalvedFactors;
use crate::generic::point::Point;
use crate::generic::table::{self, EMPTY_OWN_TABLES, HalvedLanes};
use crate::generic::verify::Group;
use crate::lanes::{LANES, Lanes, Limbs, Mask};
use crate::verdict::{Verdict, VerifyItem};
use curve25519_dalek::Scalar;

impl<V: Lanes + 'static, M: LaneSteps<V>> LaneEngine<V, M> {
    /// Strict verdicts on at most half as many items as there are lanes. If there are at most so
    /// many, each takes less time by the steps for single signatures.
    #[inline(never)]
    pub(super) fn verify_few(
        &self,
        (single, singles): (&impl SingleVerifier, usize),
        domain: &[u8],
        items: &[VerifyItem<'_>],
        out: &mut [Verdict],
    ) {
        match items {
            [] => {}
            [item] => out.copy_from_slice(&halved::verify(single, domain, [item])),
            [first, second] if singles >= 2 => {
                out.copy_from_slice(&halved::verify(single, domain, [first, second]));
            }
            _ => self.verify_in_halves(domain, items, out),
        }
    }

    /// Verifies the items with two lanes each: one has the sum of the multiples of -A and of the
    /// lower half of the base point's factor, the other that of -R and of the upper half.
    fn verify_in_halves(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        let steps = self.steps;
        let mut group = Group::new(steps.splat(0));
        take_items(steps, &mut group, domain, items);
        self.verify_taken(&mut group, items, out);
    }

    /// Verifies the items, whose scalars the group has.
    fn verify_taken(&self, group: &mut Group<V>, items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        let steps = self.steps;
        let (factors, refused) = self.halved_lanes(group, items);
        let mut encodings = [[0; LANES]; 4];
        for (lane, item) in items.iter().enumerate() {
            put(&mut encodings, lane, &words(item.public_key));
            put(&mut encodings, lane + V::COUNT / 2, &words(item.r()));
        }
        group.key = self.loaded(&encodings);
        steps.decode_halves(group);
        let mut point = Point::identity(steps.splat(0));
        steps.key_point(group, &mut point);
        let mut tables = EMPTY_OWN_TABLES;
        steps.fill_own_tables(&point, &mut tables);
        let base = [self.base(0), self.base(10 * table::base_step(2))];
        steps.multiply_halved(group, &factors, &tables, &base);
        group.passed.equation &= !refused;
        give_verdicts(&group.passed, out);
    }

    /// Halves the factors of a group's signatures. If they would be too long, they are 0 instead,
    /// for which every equation holds. The mask has those of them whose equation does not hold.
    fn halved_lanes(&self, group: &Group<V>, items: &[VerifyItem<'_>]) -> (HalvedLanes<V>, Mask) {
        let half = V::COUNT / 2;
        let (mut own, mut of_base) = ([[0; LANES]; 4], [[0; LANES]; 4]);
        let (mut negative, mut refused, mut bits) = (0, 0, 0);
        let k = group.k.to_words().map(Limbs::store);
        for (lane, item) in items.iter().enumerate() {
            let mut bytes = [0; 32];
            for (bytes, words) in bytes.as_chunks_mut().0.iter_mut().zip(&k) {
                *bytes = words[lane].to_le_bytes();
            }
            let (halved, base) =
                halved::factors(&Scalar::from_bytes_mod_order(bytes), item).unwrap_or_else(|holds| {
                    refused |= Mask::from(!holds) << lane;
                    (HalvedFactors::ZERO, [0; 4])
                });
            let ([c, d], longest) = halved.words();
            put(&mut own, lane, &c);
            put(&mut own, lane + half, &d);
            put(&mut of_base, lane, &base);
            put(&mut of_base, lane + half, &base);
            negative |= Mask::from(halved.negative) << lane;
            bits = longest.max(bits);
        }
        (HalvedLanes { own: self.loaded(&own), base: self.loaded(&of_base), negative, bits }, refused)
    }

    /// Words in lanes.
    fn loaded(&self, words: &[[u64; LANES]; 4]) -> [V; 4] {
        words.map(|lanes| self.steps.splat(0).load(&lanes))
    }
}

/// Writes the words of one lane.
fn put(to: &mut [[u64; LANES]; 4], lane: usize, words: &[u64; 4]) {
    for (lanes, word) in to.iter_mut().zip(words) {
        lanes[lane] = *word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::halved::tests::cases;
    use crate::kernel::lane_steps::ModelSteps;
    use crate::lanes::model::Model;
    use curve25519_dalek::EdwardsPoint;
    use curve25519_dalek::constants::EIGHT_TORSION;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    use {
        crate::kernel::lane_steps::{Avx2Steps, IfmaSteps},
        crate::lanes::{avx2, ifma},
    };

    /// A, R and S, the factor of A instead of the hash, and whether the signature is valid.
    type Made = ([u8; 32], [u8; 64], Scalar, bool);

    fn made([a, r]: [&EdwardsPoint; 2], [k, s]: [&Scalar; 2], holds: bool) -> Made {
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(r.compress().as_bytes());
        signature[32..].copy_from_slice(s.as_bytes());
        let is_valid = holds && !a.is_small_order() && !r.is_small_order();
        (a.compress().to_bytes(), signature, *k, is_valid)
    }

    /// Signatures with points and factors of every kind, and with factors that cannot be halved.
    fn signatures(samples: usize) -> Vec<Made> {
        let mut all = Vec::new();
        cases(samples, |points, factors, holds| all.push(made(points, factors, holds)));
        let (k, s) = (Scalar::from(2_u64).invert(), Scalar::from(5_u64));
        for torsion in EIGHT_TORSION {
            let key = EdwardsPoint::mul_base(&Scalar::ONE) + torsion;
            let r = EdwardsPoint::mul_base(&s) - key * k;
            all.insert(all.len() / 2, made([&key, &r], [&k, &s], true));
            all.push(made([&key, &(r + EIGHT_TORSION[3])], [&k, &s], false));
        }
        all
    }

    /// Every signature beside others, as many as there is room for.
    fn check<V: Lanes + 'static, M: LaneSteps<V>>(engine: &LaneEngine<V, M>, signatures: &[Made]) {
        for (n, some) in signatures.chunks(V::COUNT / 2).enumerate() {
            // Sometimes one less, so that a lane is left over.
            let some = &some[..some.len() - usize::from(n % 8 == 7 && some.len() > 1)];
            let items: Vec<_> = some
                .iter()
                .map(|(public_key, signature, ..)| VerifyItem { public_key, message: &[], signature })
                .collect();
            let mut group = Group::new(engine.steps.splat(0));
            take_items(engine.steps, &mut group, &[], &items);
            let mut k = [[0; LANES]; 4];
            for (lane, (.., factor, _)) in some.iter().enumerate() {
                put(&mut k, lane, &words(factor.as_bytes()));
            }
            group.k = crate::generic::scalar::Scalar::from_words(&engine.loaded(&k));
            let mut verdicts = vec![Verdict::Valid; items.len()];
            engine.verify_taken(&mut group, &items, &mut verdicts);
            for ((.., is_valid), verdict) in some.iter().zip(verdicts) {
                assert_eq!(verdict.is_valid(), *is_valid, "{some:x?}");
            }
        }
    }

    #[test]
    fn two_lanes_for_each_signature_decide_as_the_curve_does() {
        check(&LaneEngine::<Model, _>::new(ModelSteps), &signatures(2));
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(steps) = IfmaSteps::detect() {
            check(&LaneEngine::<ifma::Vector, _>::new(steps), &signatures(200));
        }
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(steps) = Avx2Steps::detect() {
            check(&LaneEngine::<avx2::Vector, _>::new(steps), &signatures(200));
        }
    }
}
