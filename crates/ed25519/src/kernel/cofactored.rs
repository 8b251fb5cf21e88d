//! The cofactored predicate: eight at a time, or all at once by a sum with random coefficients.

use super::lanes::{LaneEngine, give_verdicts};
use super::machine::Machine;
use crate::generic::msm::{Bucket, Decoded, Digits, EMPTY};
use crate::generic::point::{Addend, Point};
use crate::generic::scalar::Scalar;
use crate::generic::table::{AffineRow, EMPTY_KEY_TABLE, KeyTable};
use crate::generic::verify::Group;
use crate::lanes::{LANES, Lanes};
use crate::{Item, Reason, Verdict};
use curve25519_dalek::Scalar as OneScalar;

/// Bits of a coefficient: a wrong batch passes with a chance of 2^-126, and sixteen windows of eight bits hold it.
const COEFFICIENT_BITS: usize = 126;
/// Below this number one verdict each is faster.
const BATCH: usize = 32;
/// Where a search for what is wrong ends with one verdict each.
const SEARCHED: usize = 16;

/// What a signature brings into the sum: two points with the digits of their factors, block after block, and its part of the base
/// point's factor.
struct Term {
    points: [AffineRow; 2],
    digits: [Vec<Digits>; 2],
    base: OneScalar,
}

/// How a batch of some size is cut into windows.
#[derive(Clone, Copy)]
struct Plan {
    bits: usize,
}

impl Plan {
    /// More bits make fewer windows, and more buckets to be summed for each.
    fn for_size(items: usize) -> Self {
        Self {
            bits: if items < 128 {
                5
            } else if items < 320 {
                6
            } else {
                8
            },
        }
    }

    /// Blocks of eight windows for numbers of so many bits, and one bit for the last carry.
    fn blocks(self, bits: usize) -> usize {
        (bits + 1).div_ceil(self.bits).div_ceil(LANES)
    }

    /// Signed digits.
    fn digits(self, number: &[u8; 32], bits: usize) -> Vec<Digits> {
        let bit = |at: usize| number.get(at / 8).map_or(0, |byte| i32::from(byte >> (at % 8) & 1));
        let mut carry = 0;
        let mut blocks = vec![[0; LANES]; self.blocks(bits)];
        for (window, digit) in blocks.as_flattened_mut().iter_mut().enumerate() {
            let mut value = carry;
            for n in 0..self.bits {
                value += bit(window * self.bits + n) << n;
            }
            carry = i32::from(value >= 1 << (self.bits - 1));
            *digit = (value - (carry << self.bits)) as i16;
        }
        blocks
    }
}

impl<V: Lanes + 'static, M: Machine<V>> LaneEngine<V, M> {
    /// Verdicts of the cofactored predicate. `random` has 16 bytes for every item, from a cryptographic generator.
    pub(super) fn cofactored(&self, items: &[Item<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        if items.len() < BATCH {
            return self.each(items, out);
        }
        let plan = Plan::for_size(items.len());
        let mut terms = Vec::with_capacity(items.len());
        let chunks = items.chunks(LANES).zip(random.chunks(LANES)).zip(out.chunks_mut(LANES));
        for ((items, random), out) in chunks {
            self.take_terms(plan, items, random, &mut terms, out);
        }
        let sound: Vec<usize> = (0..items.len()).filter(|index| out[*index].is_valid()).collect();
        self.search(plan, items, &terms, &sound, out);
    }

    /// Leaves verdicts on encodings alone in `out`.
    fn take_terms(
        &self,
        plan: Plan,
        items: &[Item<'_>],
        random: &[[u8; 16]],
        terms: &mut Vec<Term>,
        out: &mut [Verdict],
    ) {
        let (mut group, r) = self.decode(items);
        let mut words = [[0; LANES]; 4];
        let mut coefficients = [[0; 32]; LANES];
        for (lane, bytes) in random.iter().enumerate() {
            let number = u128::from_le_bytes(*bytes) >> (128 - COEFFICIENT_BITS);
            (words[0][lane], words[1][lane]) = (number as u64, (number >> 64) as u64);
            coefficients[lane][..16].copy_from_slice(&number.to_le_bytes());
        }
        let z = Scalar::from_words(&words.map(|lanes| group.x.0[0].load(&lanes)));
        let mut rows = [[AffineRow([[0; 2]; 8]); LANES]; 2];
        self.machine.weigh(&mut group, &z, &r, &mut rows);
        let (k, s) = (group.k.to_words().map(Lanes::store), group.s.to_words().map(Lanes::store));
        for lane in 0..items.len() {
            let r_digits = plan.digits(&coefficients[lane], COEFFICIENT_BITS);
            let negative = r_digits.iter().map(|digits| digits.map(|digit| -digit)).collect();
            terms.push(Term {
                points: [rows[0][lane], rows[1][lane]],
                digits: [plan.digits(&bytes_of(&k, lane), 253), negative],
                base: OneScalar::from_bytes_mod_order(bytes_of(&s, lane)),
            });
        }
        give_verdicts(&group.passed, out);
    }

    /// Hashes and decodes up to eight items.
    fn decode(&self, items: &[Item<'_>]) -> (Group<V>, Decoded<V>) {
        let mut group = Group::new(self.machine.splat(0));
        self.take_groups(std::slice::from_mut(&mut group), &[], items);
        let mut r = (group.x, group.y, 0);
        self.machine.decode_key_and_r(&mut group, &mut r);
        self.machine.require_canonical(&mut group, &r);
        (group, r)
    }

    /// One verdict each.
    fn each(&self, items: &[Item<'_>], out: &mut [Verdict]) {
        let mut tables: [KeyTable; LANES] = [EMPTY_KEY_TABLE; LANES];
        for (items, out) in items.chunks(LANES).zip(out.chunks_mut(LANES)) {
            let (mut group, r) = self.decode(items);
            self.multiply(&mut group, &mut tables);
            self.machine.compare_cofactored(&mut group, &r);
            give_verdicts(&group.passed, out);
        }
    }

    /// Finds what is wrong among the items at `places`, whose verdicts are valid so far: halves of what does not sum up to 0.
    fn search(&self, plan: Plan, items: &[Item<'_>], terms: &[Term], places: &[usize], out: &mut [Verdict]) {
        if places.len() <= SEARCHED {
            let some: Vec<_> = places.iter().map(|place| items[*place]).collect();
            let mut verdicts = vec![Verdict::Invalid(Reason::Mismatch); some.len()];
            self.each(&some, &mut verdicts);
            for (place, verdict) in places.iter().zip(verdicts) {
                out[*place] = verdict;
            }
        } else if !self.sums_to_torsion(plan, terms, places) {
            let (left, right) = places.split_at(places.len() / 2);
            self.search(plan, items, terms, left, out);
            self.search(plan, items, terms, right, out);
        }
    }

    /// Whether the terms at `places` add up to a point that eight times is 0.
    fn sums_to_torsion(&self, plan: Plan, terms: &[Term], places: &[usize]) -> bool {
        let machine = self.machine;
        let like = machine.splat(0);
        let base: OneScalar = places.iter().map(|place| terms[*place].base).sum();
        let base_digits = plan.digits(base.as_bytes(), 253);
        let base_row = self.base(0)[1];
        let mut buckets: Vec<[Bucket; LANES]> = vec![[EMPTY; LANES]; (1 << (plan.bits - 1)) + 1];
        let mut total = Point::identity(like);
        for block in (0..plan.blocks(253)).rev() {
            buckets.fill([EMPTY; LANES]);
            let (mut points, mut digits) = (vec![base_row], vec![base_digits[block]]);
            for term in places.iter().map(|place| &terms[*place]) {
                for (point, all) in term.points.iter().zip(&term.digits) {
                    if let Some(block) = all.get(block) {
                        points.push(*point);
                        digits.push(*block);
                    }
                }
            }
            machine.accumulate(&like, &points, &digits, &mut buckets);
            machine.double_times(&mut total, (LANES * plan.bits) as u32);
            let mut sum = total;
            machine.sum_buckets(&like, &buckets, &mut sum);
            self.add(&mut total, &sum);
        }
        // Lane l has the windows of weight 2^(bits l): halves are folded onto each other.
        for distance in [1, 2, 4] {
            let mut upper = total;
            machine.double_times(&mut upper, (distance * plan.bits) as u32);
            self.add(&mut total, &moved_down(&upper, distance));
        }
        let mut mask = 0;
        machine.is_torsion(&total, &mut mask);
        mask & 1 == 1
    }

    fn add(&self, total: &mut Point<V>, other: &Point<V>) {
        let mut addend = Addend { plus: other.x, minus: other.x, t2d: other.x, z2: other.x };
        self.machine.addend(other, &mut addend);
        self.machine.add(total, &addend);
    }
}

/// Lane `l + distance` in lane l.
fn moved_down<V: Lanes>(point: &Point<V>, distance: usize) -> Point<V> {
    let mut moved = *point;
    for element in [&mut moved.x, &mut moved.y, &mut moved.z, &mut moved.t] {
        for limb in &mut element.0 {
            let mut lanes = limb.store();
            lanes.rotate_left(distance);
            *limb = limb.load(&lanes);
        }
    }
    moved
}

/// One lane of four words.
fn bytes_of(words: &[[u64; LANES]; 4], lane: usize) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (bytes, lanes) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = lanes[lane].to_le_bytes();
    }
    bytes
}
