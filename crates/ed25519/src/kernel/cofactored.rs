//! The cofactored predicate: eight at a time, or all at once by a sum with random coefficients.

use super::lane_engine::{LaneEngine, give_verdicts};
use super::lane_steps::EightLaneSteps;
use super::portable;
use crate::generic::msm::{Bucket, Digits, EMPTY_BUCKET};
use crate::generic::point::{Addend, DecodedPoint, Point};
use crate::generic::scalar::Scalar;
use crate::generic::table::{AffineRow, EMPTY_OWN_TABLES};
use crate::generic::verify::Group;
use crate::lanes::{EightLanes, LANES, Lanes, Limbs};
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
use curve25519_dalek::Scalar as OneScalar;

/// The number of bits of a coefficient. A wrong batch passes with a probability of 2^-126, and half
/// of all windows hold a coefficient with its last carry.
const COEFFICIENT_BITS: usize = 126;
/// The minimum number of signatures that are summed: for fewer, separate verdicts are faster.
const MIN_BATCH: usize = 32;
/// The number of signatures at which a search for wrong ones ends, and verifies each of them
/// separately.
const MAX_SEPARATE: usize = 16;
/// How often a search may sum each term at most, on average, before it verifies each signature
/// separately. If one signature is wrong, the search sums each term at most three times; if many
/// are wrong, separate verdicts are faster than any search.
const MAX_SUMS_PER_TERM: usize = 3;

/// The number of bits of each half of a number whose windows one lane has.
const LANE_BITS: usize = 16;
const HALF_BITS: usize = LANES * LANE_BITS;
/// The number of blocks of windows of a number with both halves, in the finest plan.
const MAX_BLOCKS: usize = 6;

/// The signatures' terms of the sum.
struct Terms {
    /// The number of signatures.
    count: usize,
    plan: WindowPlan,
    /// -A of every signature.
    keys: Vec<AffineRow>,
    /// R of every signature.
    rs: Vec<AffineRow>,
    /// The digits of the factors: first the digits of all signatures for the first block, then for
    /// the second, and so on.
    key_digits: Vec<Digits>,
    r_digits: Vec<Digits>,
    /// The factors of the base point, below l.
    base: Vec<[u64; 4]>,
}

/// How numbers are cut into windows: the widths, from the lowest bit up, of the windows that make
/// sixteen bits. Lane l has sixteen bits from bit 16 l on, of each half of a number.
#[derive(Clone, Copy)]
struct WindowPlan(&'static [usize]);

/// One window of every lane. All have one width, and are sixteen bits apart from lane to lane.
#[derive(Clone, Copy)]
struct WindowBlock {
    /// The lowest bit of lane 0.
    bit: usize,
    bits: usize,
}

impl WindowPlan {
    /// The plan for this number of items: wider windows are fewer, but have more buckets to sum.
    fn for_size(items: usize) -> Self {
        Self(if items < 320 { &[5, 5, 6] } else { &[8, 8] })
    }

    /// The blocks of a number with one half or both, from the lowest up.
    fn blocks(self, halves: usize) -> impl DoubleEndedIterator<Item = WindowBlock> + ExactSizeIterator {
        let in_half = self.0.len();
        (0..halves * in_half).map(move |block| {
            let below: usize = self.0[..block % in_half].iter().sum();
            WindowBlock { bit: block / in_half * HALF_BITS + below, bits: self.0[block % in_half] }
        })
    }

    /// The signed digits, block after block, of a number that leaves two bits for the last carry.
    /// Half a window is first added to every window, and then subtracted from each digit.
    fn digits<const HALVES: usize>(self, number: &[u128; HALVES]) -> [Digits; MAX_BLOCKS] {
        let tops =
            self.blocks(1).fold(0_u128, |tops, WindowBlock { bit, bits }| tops | 1 << (bit + bits - 1));
        let offset = u128::MAX / 0xffff * tops;
        let (mut parts, mut carry) = ([[0; LANES]; HALVES], false);
        for (parts, half) in parts.iter_mut().zip(number) {
            let sum;
            (sum, carry) = half.carrying_add(offset, carry);
            *parts = std::array::from_fn(|lane| (sum >> (lane * LANE_BITS)) as u16);
        }
        let mut digits = [[0; LANES]; MAX_BLOCKS];
        for (digits, WindowBlock { bit, bits }) in digits.iter_mut().zip(self.blocks(HALVES)) {
            let below = bit % HALF_BITS;
            for (digit, part) in digits.iter_mut().zip(parts[bit / HALF_BITS]) {
                *digit = (part >> below & ((1 << bits) - 1)) as i16 - (1 << (bits - 1));
            }
        }
        digits
    }
}

/// A number as its halves.
fn halves(words: &[u64; 4]) -> [u128; 2] {
    [0, 2].map(|low| u128::from(words[low]) | u128::from(words[low + 1]) << 64)
}

impl Terms {
    /// Room for the terms of `count` signatures.
    fn new(count: usize) -> Self {
        let plan = WindowPlan::for_size(count);
        Self {
            count,
            plan,
            keys: Vec::with_capacity(count),
            rs: Vec::with_capacity(count),
            key_digits: vec![[0; LANES]; count * plan.blocks(2).len()],
            r_digits: vec![[0; LANES]; count * plan.blocks(1).len()],
            base: Vec::with_capacity(count),
        }
    }

    /// Adds the next signature's terms: the points, and the factors of -A, R and the base point.
    fn push(&mut self, points: [&AffineRow; 2], k: &[u64; 4], z: u128, base: [u64; 4]) {
        let (count, place) = (self.count, self.keys.len());
        for (block, digits) in self.key_digits.chunks_mut(count).zip(self.plan.digits(&halves(k))) {
            block[place] = digits;
        }
        for (block, digits) in self.r_digits.chunks_mut(count).zip(self.plan.digits(&[z])) {
            block[place] = digits.map(|digit| -digit);
        }
        self.keys.push(*points[0]);
        self.rs.push(*points[1]);
        self.base.push(base);
    }

    /// The base point's factor for the signatures at `places`, modulo l.
    fn base(&self, places: &[usize]) -> [u64; 4] {
        let mut columns = [0_u128; 8];
        for place in places {
            for (column, word) in columns.iter_mut().zip(self.base[*place]) {
                *column += u128::from(word);
            }
        }
        let (mut bytes, mut carry) = ([0; 64], 0);
        for (bytes, column) in bytes.as_chunks_mut().0.iter_mut().zip(columns) {
            let sum = column + carry;
            (*bytes, carry) = ((sum as u64).to_le_bytes(), sum >> 64);
        }
        let sum = OneScalar::from_bytes_mod_order_wide(&bytes);
        std::array::from_fn(|n| u64::from_le_bytes(sum.as_bytes().as_chunks().0[n]))
    }
}

impl<V: EightLanes + 'static, M: EightLaneSteps<V>> LaneEngine<V, M> {
    /// Verdicts of the cofactored predicate. `random` has 16 bytes for every item, from a
    /// cryptographic generator.
    pub(super) fn cofactored(&self, items: &[VerifyItem<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        if items.len() < MIN_BATCH {
            return self.each(items, out);
        }
        let mut terms = Terms::new(items.len());
        let chunks = items.chunks(LANES).zip(random.chunks(LANES)).zip(out.chunks_mut(LANES));
        for ((items, random), out) in chunks {
            self.take_terms(items, random, &mut terms, out);
        }
        let sound: Vec<usize> = (0..items.len()).filter(|index| out[*index].is_valid()).collect();
        search(
            &sound,
            &mut (MAX_SUMS_PER_TERM * sound.len()),
            &|places| self.sums_to_torsion(&terms, places),
            &mut |places| {
                let some: Vec<_> = places.iter().map(|place| items[*place]).collect();
                let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); some.len()];
                self.each(&some, &mut verdicts);
                for (place, verdict) in places.iter().zip(verdicts) {
                    out[*place] = verdict;
                }
            },
        );
    }

    /// Collects the terms, and writes verdicts only on the encodings to `out`.
    fn take_terms(
        &self,
        items: &[VerifyItem<'_>],
        random: &[[u8; 16]],
        terms: &mut Terms,
        out: &mut [Verdict],
    ) {
        let (mut group, r) = self.decode(items);
        let mut words = [[0; LANES]; 4];
        let mut coefficients = [0; LANES];
        for (lane, bytes) in random.iter().enumerate() {
            let number = u128::from_le_bytes(*bytes) >> (128 - COEFFICIENT_BITS);
            (words[0][lane], words[1][lane]) = (number as u64, (number >> 64) as u64);
            coefficients[lane] = number;
        }
        let z = Scalar::from_words(&words.map(|lanes| group.x.0[0].load(&lanes)));
        let mut rows = [[AffineRow::EMPTY; LANES]; 2];
        self.steps.weigh(&mut group, &z, &r, &mut rows);
        let (k, s) = (group.k.to_words().map(Limbs::store), group.s.to_words().map(Limbs::store));
        for lane in 0..items.len() {
            let [k, s] = [k, s].map(|words| words.map(|lanes| lanes[lane]));
            terms.push([&rows[0][lane], &rows[1][lane]], &k, coefficients[lane], s);
        }
        give_verdicts(&group.passed, out);
    }

    /// Hashes and decodes up to eight items.
    fn decode(&self, items: &[VerifyItem<'_>]) -> (Group<V>, DecodedPoint<V>) {
        let mut group = Group::new(self.steps.splat(0));
        self.take_groups(std::slice::from_mut(&mut group), &[], items);
        let mut r = (group.x, group.y, 0);
        self.steps.decode_key_and_r(&mut group, &mut r);
        self.steps.require_canonical(&mut group, &r);
        (group, r)
    }

    /// Verifies each item separately.
    fn each(&self, items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        let mut tables = EMPTY_OWN_TABLES;
        for (items, out) in items.chunks(LANES).zip(out.chunks_mut(LANES)) {
            // A group takes longer than a single signature.
            if let ([item], [verdict]) = (items, &mut *out) {
                *verdict = portable::verify_cofactored(item);
                continue;
            }
            let (mut group, r) = self.decode(items);
            self.multiply(&mut group, &mut tables);
            self.steps.compare_cofactored(&mut group, &r);
            give_verdicts(&group.passed, out);
        }
    }

    /// Whether eight times the sum of the terms at `places` is 0.
    fn sums_to_torsion(&self, terms: &Terms, places: &[usize]) -> bool {
        let (steps, plan, count) = (self.steps, terms.plan, terms.count);
        let like = steps.splat(0);
        let base_row = self.base(0)[1];
        let base_digits = plan.digits(&halves(&terms.base(places)));
        let blocks: Vec<_> = plan.blocks(2).enumerate().collect();
        let widest = plan.0.iter().max().copied().unwrap_or_default();
        let mut buckets: Vec<[Bucket; LANES]> = vec![[EMPTY_BUCKET; LANES]; (1 << (widest - 1)) + 1];
        let mut total = Point::identity(like);
        let mut above = None;
        for (number, WindowBlock { bit, bits }) in blocks.into_iter().rev() {
            let buckets = &mut buckets[..=1 << (bits - 1)];
            buckets.fill([EMPTY_BUCKET; LANES]);
            let digits = &terms.key_digits[number * count..][..count];
            steps.accumulate(&like, (&terms.keys, digits), places, buckets);
            if let Some(digits) = terms.r_digits.chunks(count).nth(number) {
                steps.accumulate(&like, (&terms.rs, digits), places, buckets);
            }
            steps.accumulate(&like, (&[base_row], &[base_digits[number]]), &[0], buckets);
            if let Some(above) = above.replace(bit) {
                steps.double_times(&mut total, (above - bit) as u32);
            }
            let mut sum = total;
            steps.sum_buckets(&like, buckets, &mut sum);
            self.add(&mut total, &sum);
        }
        // Lane l has the weight 2^(16 l): fold the halves onto each other.
        for distance in [1, 2, 4] {
            let mut upper = total;
            steps.double_times(&mut upper, (distance * LANE_BITS) as u32);
            self.add(&mut total, &moved_down(&upper, distance));
        }
        let mut mask = 0;
        steps.is_torsion(&total, &mut mask);
        mask & 1 == 1
    }

    fn add(&self, total: &mut Point<V>, other: &Point<V>) {
        let mut addend = Addend { plus: other.z, minus: other.z, t2d: other.z, z2: other.z };
        self.steps.addend(other, &mut addend);
        self.steps.add(total, &addend);
    }
}

/// Finds the wrong items among those at `places`, by halving every part that does not sum to 0
/// (`is_zero`). `verify` gives each item of a small part its own verdict. `budget` is the number of
/// terms that may still be summed.
fn search(
    places: &[usize],
    budget: &mut usize,
    is_zero: &dyn Fn(&[usize]) -> bool,
    verify: &mut dyn FnMut(&[usize]),
) {
    if places.len() <= MAX_SEPARATE || *budget < places.len() {
        return verify(places);
    }
    *budget -= places.len();
    if !is_zero(places) {
        let (left, right) = places.split_at(places.len() / 2);
        search(left, budget, is_zero, verify);
        search(right, budget, is_zero, verify);
    }
}

/// Lane `l + distance` in lane l.
fn moved_down<V: Lanes>(point: &Point<V>, distance: usize) -> Point<V> {
    let mut moved = *point;
    for element in [&mut moved.plus, &mut moved.minus, &mut moved.z, &mut moved.t] {
        for limb in &mut element.0 {
            let mut lanes = limb.store();
            lanes.rotate_left(distance);
            *limb = limb.load(&lanes);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that the digits represent, modulo l.
    fn number(plan: WindowPlan, digits: &[Digits]) -> OneScalar {
        let mut sum = OneScalar::ZERO;
        for (digits, WindowBlock { bit, .. }) in digits.iter().zip(plan.blocks(2)) {
            for (lane, digit) in digits.iter().enumerate() {
                let mut weight = [0; 32];
                let bit = bit + lane * LANE_BITS;
                weight[bit / 8] = 1 << (bit % 8);
                let size = OneScalar::from(digit.unsigned_abs());
                sum += OneScalar::from_bytes_mod_order(weight) * if *digit < 0 { -size } else { size };
            }
        }
        sum
    }

    #[test]
    fn digits_are_the_number_and_have_a_bucket() {
        let mut random = fastrand::Rng::with_seed(1);
        for size in (32..500).chain([usize::MAX]) {
            let plan = WindowPlan::for_size(size);
            // The largest ones too.
            let [low, high] = if size % 10 == 0 { [u128::MAX; 2] } else { [(); 2].map(|()| random.u128(..)) };
            let (key, z) = ([low, high >> 3], low >> (128 - COEFFICIENT_BITS));
            for (halves, digits) in [(key, plan.digits(&key)), ([z, 0], plan.digits(&[z]))] {
                let bytes = halves.map(u128::to_le_bytes).concat().try_into().unwrap();
                assert_eq!(number(plan, &digits), OneScalar::from_bytes_mod_order(bytes), "{halves:x?}");
                for (digits, WindowBlock { bits, .. }) in digits.iter().zip(plan.blocks(2)) {
                    assert!(digits.iter().all(|digit| digit.unsigned_abs() <= 1 << (bits - 1)));
                }
            }
        }
    }

    #[test]
    fn a_search_finds_all_wrong_items_and_sums_a_bounded_number_of_terms() {
        for count in [33, 520, 4096] {
            for every in [1, 2, 16, 100, 5000] {
                let is_wrong = |place: &usize| place % every == every / 2;
                let places: Vec<usize> = (0..count).collect();
                let summed = std::cell::Cell::new(0);
                let is_zero = |part: &[usize]| {
                    summed.set(summed.get() + part.len());
                    !part.iter().any(is_wrong)
                };
                let mut verified = Vec::new();
                search(&places, &mut (MAX_SUMS_PER_TERM * count), &is_zero, &mut |part| {
                    verified.extend_from_slice(part)
                });
                assert!(
                    summed.get() <= MAX_SUMS_PER_TERM * count,
                    "{count}, {every}: {} terms",
                    summed.get()
                );
                assert!(verified.is_sorted_by(|a, b| a < b), "{count}, {every}: no item is verified twice");
                for wrong in places.iter().filter(|place| is_wrong(place)) {
                    assert!(verified.contains(wrong), "{count}, {every}: {wrong}");
                }
                if places.iter().filter(|place| is_wrong(place)).count() == 1 {
                    assert!(
                        verified.len() <= 2 * MAX_SEPARATE,
                        "{count}, {every}: {} verified",
                        verified.len()
                    );
                }
            }
        }
    }
}
