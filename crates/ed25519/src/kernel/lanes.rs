//! A group of signatures at a time, one in each lane, by the steps of a [`Machine`].

use super::engine::{Engine, PreparedKey};
use super::halved::{self, Steps};
use super::machine::{EightMachine, Machine};
use super::portable::Portable;
use crate::generic::comb::Comb;
use crate::generic::point::{Addend, Point};
use crate::generic::sha512::{self, Block};
use crate::generic::single::BaseRows;
use crate::generic::table::{AffineRow, BaseTable, EMPTY_OWN_TABLES, OwnTables, base_step};
use crate::generic::verify::{Group, Passed};
use crate::item::VerifyItem;
use crate::lanes::{EightLanes, LANES, Lanes, Mask};
use crate::message::Framed;
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The number of groups that share an inversion. More would gain a thousandth, and need more stack
/// than a small thread has.
const GROUPS: usize = 16;

/// The number of signatures that are verified one by one, if eight lanes work for each: a group
/// takes less time than three.
pub(super) const SINGLES: usize = 2;

/// How often the base point is doubled before each of its tables is made: for one, two and four
/// tables per key.
const SHIFTS: [u32; 5] = [0, 10 * base_step(2), 10 * base_step(4), 20 * base_step(4), 30 * base_step(4)];

/// The engine of one kind of machine.
pub(crate) struct LaneEngine<V, M> {
    pub(super) machine: M,
    /// Multiples of the base point after each of [`SHIFTS`], computed on first use.
    base: [OnceLock<Box<BaseTable>>; SHIFTS.len()],
    /// Multiples of the base point for one signature, computed on first use.
    pub(super) base_rows: OnceLock<Box<BaseRows>>,
    /// The table for signing, computed on first use.
    pub(super) comb: OnceLock<Box<Comb>>,
    vectors: PhantomData<fn() -> V>,
}

impl<V: Lanes + 'static, M: Machine<V>> LaneEngine<V, M> {
    /// The engine for this kind of machine.
    pub(crate) const fn new(machine: M) -> Self {
        let base = [const { OnceLock::new() }; SHIFTS.len()];
        Self { machine, base, base_rows: OnceLock::new(), comb: OnceLock::new(), vectors: PhantomData }
    }

    /// Multiples of the base point after one of [`SHIFTS`].
    pub(super) fn base(&self, doublings: u32) -> &BaseTable {
        let place = SHIFTS.iter().position(|shift| *shift == doublings).expect("one of the shifts");
        self.base[place].get_or_init(|| base_table(self.machine, doublings))
    }

    /// Verifies the items of up to `G` groups.
    fn verify_groups<const G: usize>(
        &self,
        domain: &[u8],
        items: &[VerifyItem<'_>],
        tables: &mut OwnTables,
        out: &mut [Verdict],
    ) {
        let machine = self.machine;
        let mut all = [Group::new(machine.splat(0)); G];
        let groups = &mut all[..items.len().div_ceil(V::COUNT)];
        self.take_groups(groups, domain, items);
        if let [group] = groups {
            let mut r = (group.x, group.y, 0);
            machine.decode_key_and_r(group, &mut r);
            self.multiply(group, tables);
            machine.compare_decoded(group, &r);
            give_verdicts(&group.passed, out);
        } else {
            decode_keys(machine, groups);
            for group in groups.iter_mut() {
                self.multiply(group, tables);
            }
            self.give_groups(groups, out);
        }
    }

    /// Multiplies by tables of the group's own keys.
    pub(super) fn multiply(&self, group: &mut Group<V>, tables: &mut OwnTables) {
        let mut point = Point::identity(self.machine.splat(0));
        self.machine.key_point(group, &mut point);
        self.machine.fill_own_tables(&point, tables);
        self.machine.multiply_own(group, tables, self.base(0));
    }

    /// Hashes the items and takes their scalars.
    pub(super) fn take_groups(&self, groups: &mut [Group<V>], domain: &[u8], items: &[VerifyItem<'_>]) {
        for (group, items) in groups.iter_mut().zip(items.chunks(V::COUNT)) {
            take_items(self.machine, group, domain, items);
        }
    }

    /// Compares with R, and writes the verdicts.
    pub(super) fn give_groups(&self, groups: &mut [Group<V>], out: &mut [Verdict]) {
        self.machine.compare(groups);
        for (group, out) in groups.iter().zip(out.chunks_mut(V::COUNT)) {
            give_verdicts(&group.passed, out);
        }
    }

    /// Strict verdicts. If at most so many are left for the last group, each takes less time by the
    /// steps for one.
    pub(super) fn verify_all(
        &self,
        (one, singles): (&impl Steps, usize),
        domain: &[u8],
        items: &[VerifyItem<'_>],
        out: &mut [Verdict],
    ) {
        let last = Some(items.len() % V::COUNT).filter(|last| *last <= singles).unwrap_or(0);
        let (items, last) = items.split_at(items.len() - last);
        let (out, last_out) = out.split_at_mut(items.len());
        for (item, verdict) in last.iter().zip(last_out) {
            *verdict = halved::verify(one, domain, item);
        }
        if items.is_empty() {
            return;
        }
        let mut tables = EMPTY_OWN_TABLES;
        if items.len() <= 2 * V::COUNT {
            return self.verify_groups::<2>(domain, items, &mut tables, out);
        }
        for (items, out) in items.chunks(GROUPS * V::COUNT).zip(out.chunks_mut(GROUPS * V::COUNT)) {
            self.verify_groups::<GROUPS>(domain, items, &mut tables, out);
        }
    }

    /// SHA-512 of every message.
    pub(super) fn hash_all(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        let empty: &[u8] = &[];
        for (messages, out) in messages.chunks(V::COUNT).zip(out.chunks_mut(V::COUNT)) {
            let mut framed = [Framed::new([empty; 4]); LANES];
            for (framed, message) in framed.iter_mut().zip(messages) {
                *framed = Framed::new([message, empty, empty, empty]);
            }
            for (n, lanes) in digests(self.machine, &mut framed).map(Lanes::store).iter().enumerate() {
                for (digest, word) in out.iter_mut().zip(lanes) {
                    digest.as_chunks_mut().0[n] = word.to_le_bytes();
                }
            }
        }
    }
}

impl<V: EightLanes + 'static, M: EightMachine<V>> Engine for LaneEngine<V, M> {
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        self.verify_all((self, SINGLES), domain, items, out);
    }

    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<PreparedKey> {
        self.prepare_all(keys, tables)
    }

    fn verify_prepared(&self, items: &[VerifyItem<'_>], keys: &[&PreparedKey], out: &mut [Verdict]) {
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
fn take_items<V: Lanes, M: Machine<V>>(
    machine: M,
    group: &mut Group<V>,
    domain: &[u8],
    items: &[VerifyItem<'_>],
) {
    let like = machine.splat(0);
    let empty: &[u8] = &[];
    let mut framed = [Framed::new([empty; 4]); LANES];
    let mut words = [[[0; LANES]; 4]; 3];
    for (lane, item) in items.iter().enumerate() {
        framed[lane] = Framed::new([domain, item.r(), item.public_key, item.message]);
        for (words, bytes) in words.iter_mut().zip([item.public_key, item.r(), item.s()]) {
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                word[lane] = u64::from_le_bytes(*bytes);
            }
        }
    }
    let [key, r, s] = words.map(|words| words.map(|lanes| like.load(&lanes)));
    (group.key, group.r) = (key, r);
    machine.take_scalars(group, &s, &digests(machine, &mut framed));
}

/// SHA-512 of a framed message in each lane, as little-endian words.
pub(super) fn digests<V: Lanes, M: Machine<V>>(machine: M, framed: &mut [Framed<'_>; LANES]) -> [V; 8] {
    let mut state = sha512::START.map(|word| machine.splat(word));
    let mut blocks: [Block; LANES] = [[[0; 2]; 8]; LANES];
    loop {
        let mut live: Mask = 0;
        for (lane, (framed, block)) in framed.iter_mut().zip(&mut blocks).take(V::COUNT).enumerate() {
            live |= Mask::from(framed.next_block(block)) << lane;
        }
        if live == 0 {
            return state.map(Lanes::swap_bytes);
        }
        machine.compress(&mut state, &blocks, live);
    }
}

/// SHA-512 of one framed message, in every lane.
pub(super) fn digest_alone<V: Lanes, M: Machine<V>>(machine: M, mut framed: Framed<'_>) -> [V; 8] {
    let mut state = sha512::START.map(|word| machine.splat(word));
    let mut blocks: [Block; LANES] = [[[0; 2]; 8]; LANES];
    while framed.next_block(&mut blocks[0]) {
        blocks = [blocks[0]; LANES];
        machine.compress(&mut state, &blocks, Mask::MAX);
    }
    state.map(Lanes::swap_bytes)
}

/// Decodes the keys of all groups, four at a time: four chains hide each other's latency better
/// than two.
fn decode_keys<V: Lanes, M: Machine<V>>(machine: M, groups: &mut [Group<V>]) {
    let (fours, rest) = groups.as_chunks_mut();
    fours.iter_mut().for_each(|four| machine.decode_four(four));
    let (twos, rest) = rest.as_chunks_mut();
    twos.iter_mut().for_each(|two| machine.decode_two(two));
    for group in rest {
        let mut two = [*group; 2];
        machine.decode_two(&mut two);
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
fn base_table<V: Lanes, M: Machine<V>>(machine: M, doublings: u32) -> Box<BaseTable> {
    let mut point = Point::identity(machine.splat(0));
    let mut multiple = point;
    machine.base_point(&mut point);
    if doublings > 0 {
        machine.double_times(&mut point, doublings);
    }
    let mut step = Addend { plus: point.z, minus: point.z, t2d: point.z, z2: point.z };
    machine.addend(&point, &mut step);
    let mut table = vec![AffineRow::EMPTY; 513];
    let mut rows = [table[0]; LANES];
    for out in table.chunks_mut(V::COUNT) {
        machine.next_rows(&mut multiple, &step, &mut rows);
        out.copy_from_slice(&rows[..out.len()]);
    }
    table.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("513 rows"))
}
