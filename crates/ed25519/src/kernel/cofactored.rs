//! The cofactored predicate: eight at a time, or all at once by a sum with random coefficients.

use super::lanes::{LaneEngine, give_verdicts};
use super::machine::Machine;
use crate::generic::msm::{Bucket, Decoded, Digits, EMPTY};
use crate::generic::point::{Addend, Point};
use crate::generic::scalar::Scalar;
use crate::generic::table::{AffineRow, EMPTY_OWN_TABLES};
use crate::generic::verify::Group;
use crate::lanes::{LANES, Lanes};
use crate::{Item, Reason, Verdict, cofactored};
use curve25519_dalek::Scalar as OneScalar;

/// Bits of a coefficient: a wrong batch passes with a chance of 2^-126, and sixteen windows of eight bits hold it.
const COEFFICIENT_BITS: usize = 126;
/// Below this number one verdict each is faster.
const BATCH: usize = 32;
/// Where a search for what is wrong ends with one verdict each.
const SEARCHED: usize = 16;

/// Bits of a factor of A: what is below l.
const KEY_BITS: usize = 253;
/// Blocks of eight windows that the longest factor has with the smallest windows.
const MOST_BLOCKS: usize = 7;

/// What the signatures bring into the sum.
struct Terms {
    /// How many signatures.
    count: usize,
    plan: Plan,
    /// -A of every signature.
    keys: Vec<AffineRow>,
    /// R of every signature.
    rs: Vec<AffineRow>,
    /// The digits of the factors: those of all signatures for the first block, for the second, and so on.
    key_digits: Vec<Digits>,
    r_digits: Vec<Digits>,
    /// The factors of the base point, below l.
    base: Vec<[u64; 4]>,
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

    /// Windows of numbers of so many bits, and of one bit for the last carry.
    fn windows(self, bits: usize) -> usize {
        (bits + 1).div_ceil(self.bits)
    }

    /// Blocks of eight windows.
    fn blocks(self, bits: usize) -> usize {
        self.windows(bits).div_ceil(LANES)
    }

    /// Signed digits of a number, block after block: half a window is added to every window beforehand, and subtracted again from each
    /// digit.
    fn digits(self, number: &[u64; 4], bits: usize) -> [Digits; MOST_BLOCKS] {
        let (windows, half) = (self.windows(bits), 1 << (self.bits - 1));
        let mut words = [number[0], number[1], number[2], number[3], 0, 0];
        let mut offset = [0_u64; 6];
        for window in 0..windows {
            let bit = window * self.bits + self.bits - 1;
            offset[bit / 64] |= 1 << (bit % 64);
        }
        let mut carry = 0;
        for (word, offset) in words.iter_mut().zip(offset) {
            let sum = u128::from(*word) + u128::from(offset) + carry;
            (*word, carry) = (sum as u64, sum >> 64);
        }
        let mut blocks = [[0; LANES]; MOST_BLOCKS];
        for (window, digit) in blocks.as_flattened_mut()[..windows].iter_mut().enumerate() {
            let bit = window * self.bits;
            let both = u128::from(words[bit / 64]) | u128::from(words[bit / 64 + 1]) << 64;
            *digit = (both >> (bit % 64)) as i16 & ((1 << self.bits) - 1);
            *digit -= half;
        }
        blocks
    }
}

impl Terms {
    /// Room for those of `count` signatures.
    fn new(count: usize) -> Self {
        let plan = Plan::for_size(count);
        Self {
            count,
            plan,
            keys: Vec::with_capacity(count),
            rs: Vec::with_capacity(count),
            key_digits: vec![[0; LANES]; count * plan.blocks(KEY_BITS)],
            r_digits: vec![[0; LANES]; count * plan.blocks(COEFFICIENT_BITS)],
            base: Vec::with_capacity(count),
        }
    }

    /// The next signature's: the points, and the factors of -A, R and the base point.
    fn push(&mut self, points: [&AffineRow; 2], k: &[u64; 4], z: u128, base: [u64; 4]) {
        let (count, place) = (self.count, self.keys.len());
        for (block, digits) in self.key_digits.chunks_mut(count).zip(self.plan.digits(k, KEY_BITS)) {
            block[place] = digits;
        }
        let z = [z as u64, (z >> 64) as u64, 0, 0];
        for (block, digits) in self.r_digits.chunks_mut(count).zip(self.plan.digits(&z, COEFFICIENT_BITS)) {
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

impl<V: Lanes + 'static, M: Machine<V>> LaneEngine<V, M> {
    /// Verdicts of the cofactored predicate. `random` has 16 bytes for every item, from a cryptographic generator.
    pub(super) fn cofactored(&self, items: &[Item<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        if items.len() < BATCH {
            return self.each(items, out);
        }
        let mut terms = Terms::new(items.len());
        let chunks = items.chunks(LANES).zip(random.chunks(LANES)).zip(out.chunks_mut(LANES));
        for ((items, random), out) in chunks {
            self.take_terms(items, random, &mut terms, out);
        }
        let sound: Vec<usize> = (0..items.len()).filter(|index| out[*index].is_valid()).collect();
        self.search(items, &terms, &sound, out);
    }

    /// Leaves verdicts on encodings alone in `out`.
    fn take_terms(&self, items: &[Item<'_>], random: &[[u8; 16]], terms: &mut Terms, out: &mut [Verdict]) {
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
        self.machine.weigh(&mut group, &z, &r, &mut rows);
        let (k, s) = (group.k.to_words().map(Lanes::store), group.s.to_words().map(Lanes::store));
        for lane in 0..items.len() {
            let [k, s] = [k, s].map(|words| words.map(|lanes| lanes[lane]));
            terms.push([&rows[0][lane], &rows[1][lane]], &k, coefficients[lane], s);
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
        let mut tables = EMPTY_OWN_TABLES;
        for (items, out) in items.chunks(LANES).zip(out.chunks_mut(LANES)) {
            // A group takes longer than one alone.
            if let ([item], [verdict]) = (items, &mut *out) {
                *verdict = cofactored::verify(item);
                continue;
            }
            let (mut group, r) = self.decode(items);
            self.multiply(&mut group, &mut tables);
            self.machine.compare_cofactored(&mut group, &r);
            give_verdicts(&group.passed, out);
        }
    }

    /// Finds what is wrong among the items at `places`, whose verdicts are valid so far: halves of what does not sum up to 0.
    fn search(&self, items: &[Item<'_>], terms: &Terms, places: &[usize], out: &mut [Verdict]) {
        if places.len() <= SEARCHED {
            let some: Vec<_> = places.iter().map(|place| items[*place]).collect();
            let mut verdicts = vec![Verdict::Invalid(Reason::Mismatch); some.len()];
            self.each(&some, &mut verdicts);
            for (place, verdict) in places.iter().zip(verdicts) {
                out[*place] = verdict;
            }
        } else if !self.sums_to_torsion(terms, places) {
            let (left, right) = places.split_at(places.len() / 2);
            self.search(items, terms, left, out);
            self.search(items, terms, right, out);
        }
    }

    /// Whether the terms at `places` add up to a point that eight times is 0.
    fn sums_to_torsion(&self, terms: &Terms, places: &[usize]) -> bool {
        let (machine, plan, count) = (self.machine, terms.plan, terms.count);
        let like = machine.splat(0);
        let base_row = self.base(0)[1];
        let base_digits = plan.digits(&terms.base(places), KEY_BITS);
        let mut buckets: Vec<[Bucket; LANES]> = vec![[EMPTY; LANES]; (1 << (plan.bits - 1)) + 1];
        let mut total = Point::identity(like);
        for block in (0..plan.blocks(KEY_BITS)).rev() {
            buckets.fill([EMPTY; LANES]);
            let digits = &terms.key_digits[block * count..][..count];
            machine.accumulate(&like, (&terms.keys, digits), places, &mut buckets);
            if let Some(digits) = terms.r_digits.chunks(count).nth(block) {
                machine.accumulate(&like, (&terms.rs, digits), places, &mut buckets);
            }
            machine.accumulate(&like, (&[base_row], &[base_digits[block]]), &[0], &mut buckets);
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
        let mut addend = Addend { plus: other.z, minus: other.z, t2d: other.z, z2: other.z };
        self.machine.addend(other, &mut addend);
        self.machine.add(total, &addend);
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
