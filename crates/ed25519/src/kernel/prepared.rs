//! Keys with tables that are kept.

use super::EngineKey;
use super::halved::words;
use super::lane_engine::{self, LaneEngine};
use super::lane_steps::{EightLaneSteps, LaneSteps};
use super::portable;
use crate::generic::field64::{self, Element64};
use crate::generic::pair::Pair;
use crate::generic::pair_sums::{self, EMPTY_KEY_ROWS, KeyRows, PreparedDigits};
use crate::generic::point::Point;
use crate::generic::table::{self, BaseTable, EMPTY_KEY_TABLE, EMPTY_OWN_TABLES, KeyTable};
use crate::generic::verify::Group;
use crate::lanes::{EightLanes, LANES, Lanes};
use crate::serial;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};

/// The number of tables with which keys also get those for one signature alone.
const MAX_TABLES: usize = 4;

/// The number of signatures that are verified one by one under keys with tables for that: a group
/// takes less time than more.
const MAX_SINGLES: usize = 4;

impl<V: Lanes + 'static, M: LaneSteps<V>> LaneEngine<V, M> {
    /// Decodes a group of keys and fills their tables.
    pub(super) fn prepare_group(&self, keys: &[[u8; 32]], tables: usize) -> (Group<V>, Vec<EngineKey>) {
        let steps = self.steps;
        let mut group = Group::new(steps.splat(0));
        let mut words = [[0; LANES]; 4];
        for (lane, key) in keys.iter().enumerate() {
            for (word, bytes) in words.iter_mut().zip(key.as_chunks().0) {
                word[lane] = u64::from_le_bytes(*bytes);
            }
        }
        group.key = words.map(|lanes| steps.splat(0).load(&lanes));
        let mut two = [group; 2];
        steps.decode_two(&mut two);
        let group = two[0];
        let fault = |lane: usize| match () {
            () if group.passed.point >> lane & 1 == 0 => Some(InvalidReason::KeyNotAPoint),
            () if group.passed.large_key >> lane & 1 == 0 => Some(InvalidReason::KeyOfSmallOrder),
            () => None,
        };
        let bare = |lane| EngineKey {
            fault: fault(lane),
            tables: vec![EMPTY_KEY_TABLE; tables].into_boxed_slice(),
            rows: None,
        };
        let mut prepared: Vec<_> = (0..keys.len()).map(bare).collect();
        let mut point = Point::identity(steps.splat(0));
        steps.key_point(&group, &mut point);
        let (mut own, mut filled) = (EMPTY_OWN_TABLES, [EMPTY_KEY_TABLE; LANES]);
        for table in 0..tables {
            if table > 0 {
                steps.double_times(&mut point, 5 * table::key_step(tables));
            }
            steps.fill_own_tables(&point, &mut own);
            steps.scatter_tables(&steps.splat(0), &own, &mut filled);
            for (key, filled) in prepared.iter_mut().zip(&filled) {
                key.tables[table] = *filled;
            }
        }
        (group, prepared)
    }

    /// Strict verdicts under prepared keys, `keys[i]` for item i; all have the same number of
    /// tables. If at most so many as the number beside it are left for the last group, they take
    /// less time by `verify`.
    pub(super) fn verify_under_by(
        &self,
        (verify, few): (impl Fn(&[VerifyItem<'_>], &[&EngineKey], &mut [Verdict]), usize),
        items: &[VerifyItem<'_>],
        keys: &[&EngineKey],
        out: &mut [Verdict],
    ) {
        const MAX_GROUPS: usize = 16;
        let count = items.len();
        let last = Some(count % V::COUNT).filter(|last| *last <= few).unwrap_or(0);
        let ((items, last), (keys, last_keys)) = (items.split_at(count - last), keys.split_at(count - last));
        let (out, last_out) = out.split_at_mut(items.len());
        verify(last, last_keys, last_out);
        let together = MAX_GROUPS * V::COUNT;
        for ((items, keys), out) in
            items.chunks(together).zip(keys.chunks(together)).zip(out.chunks_mut(together))
        {
            let mut all = [Group::new(self.steps.splat(0)); MAX_GROUPS];
            let groups = &mut all[..items.len().div_ceil(V::COUNT)];
            self.take_groups(groups, &[], items);
            for (group, keys) in groups.iter_mut().zip(keys.chunks(V::COUNT)) {
                self.multiply_under(group, keys);
            }
            self.give_groups(groups, out);
        }
    }

    /// Tables of the base point for keys with four tables.
    fn four_bases(&self) -> [&BaseTable; 4] {
        std::array::from_fn(|n| self.base(10 * n as u32 * table::base_step(4)))
    }

    fn multiply_under(&self, group: &mut Group<V>, keys: &[&EngineKey]) {
        let key = |lane: usize| keys[lane.min(keys.len() - 1)];
        let table = |n: usize| -> [&KeyTable; LANES] { std::array::from_fn(|lane| &key(lane).tables[n]) };
        let steps = self.steps;
        match keys[0].tables.len() {
            1 => steps.multiply_prepared(group, &[table(0)], &[self.base(0)]),
            2 => steps.multiply_prepared(
                group,
                &[table(0), table(1)],
                &[self.base(0), self.base(10 * table::base_step(2))],
            ),
            _ => {
                steps.multiply_prepared(group, &[table(0), table(1), table(2), table(3)], &self.four_bases())
            }
        }
        pass_keys(group, keys);
    }
}

impl<V: EightLanes + 'static, M: EightLaneSteps<V>> LaneEngine<V, M> {
    /// Keys with tables, also those for one signature alone if they have four.
    pub(crate) fn prepare_all(&self, keys: &[[u8; 32]], tables: usize) -> Vec<EngineKey> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(LANES) {
            let (group, mut prepared) = self.prepare_group(keys, tables);
            if tables == MAX_TABLES {
                for (lane, key) in prepared.iter_mut().enumerate() {
                    let rows = key.rows.insert(Box::new(EMPTY_KEY_ROWS));
                    self.fill_key_rows(&group, lane, rows);
                }
            }
            all.append(&mut prepared);
        }
        all
    }

    /// Fills the tables of one lane's key, for one signature: see [`pair_sums`].
    fn fill_key_rows(&self, group: &Group<V>, lane: usize, rows: &mut KeyRows) {
        let (steps, like) = (self.steps, self.steps.splat(0));
        let (mut point, mut points) = ([Element64::ZERO; 2], Pair::neutral(like));
        steps.affine_point(group, lane, &mut point);
        steps.set_apart(&like, &point, &mut points);
        pair_sums::fill_key_rows(
            points,
            rows,
            |points, rows| steps.fill_own_rows(points, rows),
            |points, times| steps.double_pair(points, times),
        );
    }

    /// Strict verdicts under prepared keys, `keys[i]` for item i; all have the same number of
    /// tables.
    pub(crate) fn verify_under(&self, items: &[VerifyItem<'_>], keys: &[&EngineKey], out: &mut [Verdict]) {
        let few = match keys {
            [EngineKey { rows: Some(_), .. }, ..] => MAX_SINGLES,
            _ => lane_engine::MAX_SINGLES,
        };
        let verify = |items: &[VerifyItem<'_>], keys: &[&EngineKey], out: &mut [Verdict]| match keys {
            [EngineKey { rows: Some(_), .. }, ..] => {
                for ((item, key), verdict) in items.iter().zip(keys).zip(out) {
                    *verdict = self.verify_one(item, key);
                }
            }
            _ => self.verify_few((self, lane_engine::MAX_SINGLES), &[], items, out),
        };
        self.verify_under_by((verify, few), items, keys, out);
    }

    /// The strict verdict on one signature under a key with tables for that.
    fn verify_one(&self, item: &VerifyItem<'_>, key: &EngineKey) -> Verdict {
        let reason = match (key.fault, &key.rows) {
            _ if !serial::is_canonical_scalar(item.s()) => InvalidReason::ScalarNotCanonical,
            (Some(fault), _) => fault,
            _ if serial::has_small_order_y(item.r()) => InvalidReason::ROfSmallOrder,
            (None, Some(rows)) if self.is_sum(item, rows) => return Verdict::Valid,
            _ => InvalidReason::Mismatch,
        };
        Verdict::Invalid(reason)
    }

    /// Whether s B - k A has the encoding R.
    fn is_sum(&self, item: &VerifyItem<'_>, rows: &KeyRows) -> bool {
        let k = portable::scalar_of([&[], item.r(), item.public_key, item.message]);
        let factors = PreparedDigits::new(&words(k.as_bytes()), &words(item.s()));
        let mut sum = [Element64::ZERO; 3];
        self.steps.multiply_one(&self.steps.splat(0), &factors, rows, self.base_rows(), &mut sum);
        field64::encode_public(&sum) == words(item.r())
    }
}

/// Takes the known properties of a group's keys.
fn pass_keys<V: Lanes>(group: &mut Group<V>, keys: &[&EngineKey]) {
    for (lane, key) in keys.iter().enumerate() {
        let bit = |good: bool| u8::from(good) << lane;
        group.passed.point |= bit(key.fault != Some(InvalidReason::KeyNotAPoint));
        group.passed.large_key |= bit(key.fault != Some(InvalidReason::KeyOfSmallOrder));
    }
}
