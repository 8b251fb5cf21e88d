//! The engines with vectors: a group of signatures at a time, one in each lane, by [`LaneSteps`].
//! What is left after the groups is verified one by one.

use super::halved::SingleVerifier;
use super::lane_steps::{EightLaneSteps, FourLaneSteps, LaneSteps};
use super::portable::{GeneralRegisters, Portable};
use super::{Engine, EngineKey};
use crate::generic::field64::{Decoded64, Element64, PointDecoder};
use crate::generic::halving::HalvedFactors;
use crate::generic::pair::{Pair, Row};
use crate::generic::pair_sums::{BaseRows, EMPTY_OWN_ROWS, HalvedDigits, TABLES};
use crate::generic::point::{Addend, Point};
use crate::generic::sha512::{self, Block, FramedMessage};
use crate::generic::sign::Comb;
use crate::generic::table::{AffineRow, BaseTable, EMPTY_OWN_TABLES, OwnSum, OwnTables, base_step};
use crate::generic::verify::{Group, Passed};
use crate::lanes::{EightLanes, LANES, Lanes, Limbs, Mask};
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The maximum number of groups that share an inversion. More would gain a thousandth, and need
/// more stack than a small thread has.
const MAX_GROUPS: usize = 16;

/// The maximum number of signatures for each of which eight lanes work: more take less time with
/// two lanes each.
pub(super) const MAX_SINGLES: usize = 2;

/// How often the base point is doubled before each of its tables is made: for one, two and four
/// tables per key.
const SHIFTS: [u32; 5] = [0, 10 * base_step(2), 10 * base_step(4), 20 * base_step(4), 30 * base_step(4)];

/// The engine of one instruction set.
pub(crate) struct LaneEngine<V, M> {
    pub(super) steps: M,
    /// Multiples of the base point after each of [`SHIFTS`], computed on first use.
    base: [OnceLock<Box<BaseTable>>; SHIFTS.len()],
    /// Multiples of the base point for one signature, computed on first use.
    pub(super) base_rows: OnceLock<Box<BaseRows>>,
    /// The table for signing, computed on first use.
    pub(super) comb: OnceLock<Box<Comb>>,
    vectors: PhantomData<fn() -> V>,
}

impl<V: Lanes + 'static, M: LaneSteps<V>> LaneEngine<V, M> {
    pub(crate) const fn new(steps: M) -> Self {
        let base = [const { OnceLock::new() }; SHIFTS.len()];
        Self { steps, base, base_rows: OnceLock::new(), comb: OnceLock::new(), vectors: PhantomData }
    }

    /// Multiples of the base point after one of [`SHIFTS`].
    pub(super) fn base(&self, doublings: u32) -> &BaseTable {
        let place = SHIFTS.iter().position(|shift| *shift == doublings).expect("one of the shifts");
        self.base[place].get_or_init(|| base_table(self.steps, doublings))
    }

    /// Verifies the items of up to `G` groups.
    fn verify_groups<const G: usize>(
        &self,
        domain: &[u8],
        items: &[VerifyItem<'_>],
        tables: &mut OwnTables,
        out: &mut [Verdict],
    ) {
        let mut all = [Group::new(self.steps.splat(0)); G];
        let groups = &mut all[..items.len().div_ceil(V::COUNT)];
        self.verify_in_groups(groups, domain, items, tables, out);
    }

    /// Verifies the items of these groups.
    #[inline(never)]
    fn verify_in_groups(
        &self,
        groups: &mut [Group<V>],
        domain: &[u8],
        items: &[VerifyItem<'_>],
        tables: &mut OwnTables,
        out: &mut [Verdict],
    ) {
        let steps = self.steps;
        self.take_groups(groups, domain, items);
        if let [group] = groups {
            let mut r = (group.x, group.y, 0);
            steps.decode_key_and_r(group, &mut r);
            self.multiply(group, tables);
            steps.compare_decoded(group, &r);
            give_verdicts(&group.passed, out);
        } else {
            decode_keys(steps, groups);
            for group in groups.iter_mut() {
                self.multiply(group, tables);
            }
            self.give_groups(groups, out);
        }
    }

    /// Multiplies by tables of the group's own keys.
    pub(super) fn multiply(&self, group: &mut Group<V>, tables: &mut OwnTables) {
        let mut point = Point::identity(self.steps.splat(0));
        self.steps.key_point(group, &mut point);
        self.steps.fill_own_tables(&point, tables);
        self.steps.multiply_own(group, tables, &[self.base(0); 2], &OwnSum::WHOLE);
    }

    /// Hashes the items and takes their scalars.
    #[inline(never)]
    pub(super) fn take_groups(&self, groups: &mut [Group<V>], domain: &[u8], items: &[VerifyItem<'_>]) {
        for (group, items) in groups.iter_mut().zip(items.chunks(V::COUNT)) {
            take_items(self.steps, group, domain, items);
        }
    }

    /// Compares with R, and writes the verdicts.
    #[inline(never)]
    pub(super) fn give_groups(&self, groups: &mut [Group<V>], out: &mut [Verdict]) {
        self.steps.compare(groups);
        for (group, out) in groups.iter().zip(out.chunks_mut(V::COUNT)) {
            give_verdicts(&group.passed, out);
        }
    }

    /// Strict verdicts. If the last group would be at most half full, [`LaneEngine::verify_few`]
    /// takes less time. With eight lanes, five take less time as four and one.
    pub(super) fn verify_all(
        &self,
        single: (&impl SingleVerifier, usize),
        domain: &[u8],
        items: &[VerifyItem<'_>],
        out: &mut [Verdict],
    ) {
        let half = V::COUNT / 2;
        let few = half + usize::from(V::COUNT == LANES);
        let last = Some(items.len() % V::COUNT).filter(|last| *last <= few).unwrap_or(0);
        let (items, last) = items.split_at(items.len() - last);
        let (out, last_out) = out.split_at_mut(items.len());
        for (last, out) in last.chunks(half).zip(last_out.chunks_mut(half)) {
            self.verify_few(single, domain, last, out);
        }
        if items.is_empty() {
            return;
        }
        let mut tables = EMPTY_OWN_TABLES;
        if items.len() <= 2 * V::COUNT {
            return self.verify_groups::<2>(domain, items, &mut tables, out);
        }
        for (items, out) in items.chunks(MAX_GROUPS * V::COUNT).zip(out.chunks_mut(MAX_GROUPS * V::COUNT)) {
            self.verify_groups::<MAX_GROUPS>(domain, items, &mut tables, out);
        }
    }

    /// SHA-512 of every message.
    pub(super) fn hash_all(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        let empty: &[u8] = &[];
        for (messages, out) in messages.chunks(V::COUNT).zip(out.chunks_mut(V::COUNT)) {
            let mut framed = [FramedMessage::new([empty; 4]); LANES];
            for (framed, message) in framed.iter_mut().zip(messages) {
                *framed = FramedMessage::new([message, empty, empty, empty]);
            }
            for (n, lanes) in digests(self.steps, &mut framed).map(Limbs::store).iter().enumerate() {
                for (digest, word) in out.iter_mut().zip(lanes) {
                    digest.as_chunks_mut().0[n] = word.to_le_bytes();
                }
            }
        }
    }
}

impl<V: EightLanes + 'static, M: EightLaneSteps<V>> Engine for LaneEngine<V, M> {
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        self.verify_all((self, MAX_SINGLES), domain, items, out);
    }

    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<EngineKey> {
        self.prepare_all(keys, tables)
    }

    fn verify_prepared(&self, items: &[VerifyItem<'_>], keys: &[&EngineKey], out: &mut [Verdict]) {
        self.verify_under(items, keys, out);
    }

    fn verify_cofactored(&self, items: &[VerifyItem<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        self.cofactored(items, random, out);
    }

    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        self.hash_all(messages, out);
    }

    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        if cfg!(feature = "lane-signing") {
            self.sign_all(domain, items, out);
        } else {
            Portable::BEST.sign(domain, items, out);
        }
    }
}

/// Hashes a group's items and takes their scalars. Lanes without an item have zeros, and their
/// verdicts are not used.
pub(super) fn take_items<V: Lanes, M: LaneSteps<V>>(
    steps: M,
    group: &mut Group<V>,
    domain: &[u8],
    items: &[VerifyItem<'_>],
) {
    let like = steps.splat(0);
    let empty: &[u8] = &[];
    let mut framed = [FramedMessage::new([empty; 4]); LANES];
    let mut words = [[[0; LANES]; 4]; 3];
    for (lane, item) in items.iter().enumerate() {
        framed[lane] = FramedMessage::new([domain, item.r(), item.public_key, item.message]);
        for (words, bytes) in words.iter_mut().zip([item.public_key, item.r(), item.s()]) {
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                word[lane] = u64::from_le_bytes(*bytes);
            }
        }
    }
    let [key, r, s] = words.map(|words| words.map(|lanes| like.load(&lanes)));
    (group.key, group.r) = (key, r);
    steps.take_scalars(group, &s, &digests(steps, &mut framed));
}

/// SHA-512 of a framed message in each lane, as little-endian words.
pub(super) fn digests<V: Lanes, M: LaneSteps<V>>(
    steps: M,
    framed: &mut [FramedMessage<'_>; LANES],
) -> [V; 8] {
    let mut state = sha512::INITIAL_STATE.map(|word| steps.splat(word));
    let mut blocks: [Block; LANES] = [[[0; 2]; 8]; LANES];
    loop {
        let mut live: Mask = 0;
        for (lane, (framed, block)) in framed.iter_mut().zip(&mut blocks).take(V::COUNT).enumerate() {
            live |= Mask::from(framed.next_block(block)) << lane;
        }
        if live == 0 {
            return state.map(Lanes::swap_bytes);
        }
        steps.compress(&mut state, &blocks, live);
    }
}

/// SHA-512 of one framed message, in every lane.
pub(super) fn digest_one<V: Lanes, M: LaneSteps<V>>(steps: M, mut framed: FramedMessage<'_>) -> [V; 8] {
    let mut state = sha512::INITIAL_STATE.map(|word| steps.splat(word));
    let mut blocks: [Block; LANES] = [[[0; 2]; 8]; LANES];
    while framed.next_block(&mut blocks[0]) {
        blocks = [blocks[0]; LANES];
        steps.compress(&mut state, &blocks, Mask::MAX);
    }
    state.map(Lanes::swap_bytes)
}

/// Decodes the keys of all groups, four at a time: four chains hide each other's latency better
/// than two.
fn decode_keys<V: Lanes, M: LaneSteps<V>>(steps: M, groups: &mut [Group<V>]) {
    let (fours, rest) = groups.as_chunks_mut();
    fours.iter_mut().for_each(|four| steps.decode_four(four));
    let (twos, rest) = rest.as_chunks_mut();
    twos.iter_mut().for_each(|two| steps.decode_two(two));
    for group in rest {
        let mut two = [*group; 2];
        steps.decode_two(&mut two);
        *group = two[0];
    }
}

pub(super) fn give_verdicts(passed: &Passed, out: &mut [Verdict]) {
    let tests = [
        (passed.scalar, InvalidReason::ScalarNotCanonical),
        (passed.point, InvalidReason::KeyNotAPoint),
        (passed.large_key, InvalidReason::KeyOfSmallOrder),
        (passed.large_r, InvalidReason::ROfSmallOrder),
        (passed.equation, InvalidReason::Mismatch),
    ];
    for (lane, verdict) in out.iter_mut().enumerate() {
        let failed = tests.iter().find(|(mask, _)| mask >> lane & 1 == 0);
        *verdict = failed.map_or(Verdict::Valid, |(_, reason)| Verdict::Invalid(*reason));
    }
}

/// Multiples 0 to 512 of the base point doubled `doublings` times.
fn base_table<V: Lanes, M: LaneSteps<V>>(steps: M, doublings: u32) -> Box<BaseTable> {
    let mut point = Point::identity(steps.splat(0));
    let mut multiple = point;
    steps.base_point(&mut point);
    if doublings > 0 {
        steps.double_times(&mut point, doublings);
    }
    let mut step = Addend { plus: point.z, minus: point.z, t2d: point.z, z2: point.z };
    steps.addend(&point, &mut step);
    let mut table = vec![AffineRow::EMPTY; 513];
    let mut rows = [table[0]; LANES];
    for out in table.chunks_mut(V::COUNT) {
        steps.next_rows(&mut multiple, &step, &mut rows);
        out.copy_from_slice(&rows[..out.len()]);
    }
    table.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("513 rows"))
}

impl<V: EightLanes + 'static, M: EightLaneSteps<V>> SingleVerifier for LaneEngine<V, M> {
    fn decode<const N: usize>(&self, words: &[[[u64; 4]; 2]; N]) -> [[Decoded64; 2]; N] {
        let decoders = words.map(|words| PointDecoder::new(&words));
        let mut powers = decoders.map(|decoder| decoder.uv7);
        let like = self.steps.splat(0);
        for powers in powers.as_flattened_mut().chunks_mut(LANES) {
            self.steps.root_powers(&like, powers);
        }
        std::array::from_fn(|n| decoders[n].finish(&powers[n]))
    }

    fn are_neutral<const N: usize>(
        &self,
        points: &[[[Element64; 2]; 2]; N],
        halved: &[HalvedFactors; N],
        base: &[[u64; 4]; N],
    ) -> [bool; N] {
        let (mut rows, mut neutral) = ([EMPTY_OWN_ROWS; N], [false; N]);
        let like = self.steps.splat(0);
        for (points, rows) in points.iter().zip(&mut rows) {
            self.steps.fill_own_rows(&Pair::from_affine(like, points), rows);
        }
        let factors: [_; N] = std::array::from_fn(|n| HalvedDigits::new(&halved[n], &base[n]));
        let (factors, last) = factors.as_chunks();
        let (twos, last_rows) = rows.as_chunks();
        let (out, last_out) = neutral.as_chunks_mut();
        for ((factors, rows), out) in factors.iter().zip(twos).zip(out) {
            self.steps.are_neutral(&like, factors, rows, self.base_rows(), out);
        }
        for ((factors, rows), out) in last.iter().zip(last_rows).zip(last_out) {
            self.steps.is_neutral(&like, factors, rows, self.base_rows(), out);
        }
        neutral
    }
}

impl<V: EightLanes + 'static, M: EightLaneSteps<V>> LaneEngine<V, M> {
    /// The multiples of the base point.
    pub(super) fn base_rows(&self) -> &BaseRows {
        self.base_rows.get_or_init(|| {
            let mut rows: Box<BaseRows> =
                vec![[Row::NEUTRAL; 129]; TABLES].into_boxed_slice().try_into().expect("all tables");
            self.steps.fill_base_rows(&self.steps.splat(0), &mut rows);
            rows
        })
    }
}

/// The maximum number of signatures that are verified one by one with four lanes: two take less
/// time with two lanes each.
const MAX_SINGLES_OF_FOUR: usize = 1;

/// The engine of vectors with four lanes. Signing, and the cofactored predicate, are those of
/// [`Portable`].
pub(super) struct FourLaneEngine<V, M>(LaneEngine<V, M>);

impl<V: Lanes + 'static, M: LaneSteps<V>> FourLaneEngine<V, M> {
    pub(super) const fn new(steps: M) -> Self {
        Self(LaneEngine::new(steps))
    }
}

/// One signature: both points are decoded in lanes, and the sums are computed in general registers.
impl<V: Lanes + 'static, M: FourLaneSteps<V>> SingleVerifier for FourLaneEngine<V, M> {
    fn decode<const N: usize>(&self, words: &[[[u64; 4]; 2]; N]) -> [[Decoded64; 2]; N] {
        let mut out = [[(Element64::ZERO, Element64::ZERO, false); 2]; N];
        for (words, out) in words.iter().zip(&mut out) {
            self.0.steps.decode_pair(&self.0.steps.splat(0), words, out);
        }
        out
    }

    fn are_neutral<const N: usize>(
        &self,
        points: &[[[Element64; 2]; 2]; N],
        halved: &[HalvedFactors; N],
        base: &[[u64; 4]; N],
    ) -> [bool; N] {
        GeneralRegisters.are_neutral(points, halved, base)
    }
}

impl<V: Lanes + 'static, M: FourLaneSteps<V>> Engine for FourLaneEngine<V, M> {
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        self.0.verify_all((self, MAX_SINGLES_OF_FOUR), domain, items, out);
    }

    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<EngineKey> {
        keys.chunks(V::COUNT).flat_map(|keys| self.0.prepare_group(keys, tables).1).collect()
    }

    fn verify_prepared(&self, items: &[VerifyItem<'_>], keys: &[&EngineKey], out: &mut [Verdict]) {
        // Two under keys with more tables take less time as a group.
        let few = if keys.first().is_some_and(|key| key.tables.len() > 1) { 1 } else { 2 };
        let verify = |items: &[VerifyItem<'_>], _: &[&EngineKey], out: &mut [Verdict]| {
            self.0.verify_few((self, MAX_SINGLES_OF_FOUR), &[], items, out);
        };
        self.0.verify_under_by((verify, few), items, keys, out);
    }

    fn verify_cofactored(&self, items: &[VerifyItem<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        Portable::BEST.verify_cofactored(items, random, out);
    }

    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        self.0.hash_all(messages, out);
    }

    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        Portable::BEST.sign(domain, items, out);
    }
}
