//! Keys with tables that are kept.

use super::engine::PreparedKey;
use super::lanes::{LaneEngine, give_verdicts};
use super::machine::Machine;
use crate::generic::point::Point;
use crate::generic::table::{self, BaseTable, EMPTY_KEY_TABLE, KeyTable};
use crate::generic::verify::Group;
use crate::item::Item;
use crate::lanes::{LANES, Lanes};
use crate::verdict::{Reason, Verdict};

impl<V: Lanes + 'static, M: Machine<V>> LaneEngine<V, M> {
    /// Decodes up to eight keys and fills their tables.
    pub(crate) fn prepare_eight(&self, keys: &[[u8; 32]], tables: usize) -> Vec<PreparedKey> {
        let machine = self.machine;
        let mut group = Group::new(machine.splat(0));
        let mut words = [[0; LANES]; 4];
        for (lane, key) in keys.iter().enumerate() {
            for (word, bytes) in words.iter_mut().zip(key.as_chunks().0) {
                word[lane] = u64::from_le_bytes(*bytes);
            }
        }
        group.key = words.map(|lanes| machine.splat(0).load(&lanes));
        let mut two = [group; 2];
        machine.decode_two(&mut two);
        let group = two[0];
        let fault = |lane: usize| match () {
            () if group.passed.point >> lane & 1 == 0 => Some(Reason::KeyNotAPoint),
            () if group.passed.large_key >> lane & 1 == 0 => Some(Reason::KeyOfSmallOrder),
            () => None,
        };
        let bare = |lane| PreparedKey {
            fault: fault(lane),
            tables: vec![EMPTY_KEY_TABLE; tables].into_boxed_slice(),
        };
        let mut prepared: Vec<_> = (0..keys.len()).map(bare).collect();
        let mut point = Point::identity(machine.splat(0));
        machine.key_point(&group, &mut point);
        let mut filled = [EMPTY_KEY_TABLE; LANES];
        for table in 0..tables {
            if table > 0 {
                machine.double_times(&mut point, 5 * table::key_step(tables));
            }
            machine.fill_key_tables(&point, &mut filled);
            for (key, filled) in prepared.iter_mut().zip(&filled) {
                key.tables[table] = *filled;
            }
        }
        prepared
    }

    /// Strict verdicts under prepared keys, `keys[i]` for item i; all have the same number of tables.
    pub(crate) fn verify_under(&self, items: &[Item<'_>], keys: &[&PreparedKey], out: &mut [Verdict]) {
        const GROUPS: usize = 16;
        // With all lanes working for it, a single last item takes half of a group's time.
        if items.len() % LANES == 1
            && let ([first @ .., item], [first_keys @ .., key], [first_out @ .., verdict]) =
                (items, keys, &mut *out)
            && let Ok(tables) = (&*key.tables).try_into()
        {
            self.verify_under(first, first_keys, first_out);
            return self.verify_alone(item, key, tables, verdict);
        }
        for ((items, keys), out) in
            items.chunks(GROUPS * LANES).zip(keys.chunks(GROUPS * LANES)).zip(out.chunks_mut(GROUPS * LANES))
        {
            let mut all = [Group::new(self.machine.splat(0)); GROUPS];
            let groups = &mut all[..items.len().div_ceil(LANES)];
            self.take_groups(groups, &[], items);
            for (group, keys) in groups.iter_mut().zip(keys.chunks(LANES)) {
                self.multiply_under(group, keys);
            }
            self.give_groups(groups, out);
        }
    }

    /// The strict verdict on one signature under a key with four tables.
    fn verify_alone(&self, item: &Item<'_>, key: &PreparedKey, tables: &[KeyTable; 4], out: &mut Verdict) {
        let mut group = Group::new(self.machine.splat(0));
        self.take_groups(std::slice::from_mut(&mut group), &[], std::slice::from_ref(item));
        self.machine.multiply_alone(&mut group, tables, &self.four_bases());
        pass_keys(&mut group, &[key]);
        give_verdicts(&group.passed, std::slice::from_mut(out));
    }

    /// Tables of the base point for keys with four tables.
    fn four_bases(&self) -> [&BaseTable; 4] {
        std::array::from_fn(|n| self.base(10 * n as u32 * table::base_step(4)))
    }

    fn multiply_under(&self, group: &mut Group<V>, keys: &[&PreparedKey]) {
        let key = |lane: usize| keys[lane.min(keys.len() - 1)];
        let table = |n: usize| -> [&KeyTable; LANES] { std::array::from_fn(|lane| &key(lane).tables[n]) };
        match keys[0].tables.len() {
            1 => self.machine.multiply_by_one(group, &[table(0)], &[self.base(0)]),
            2 => self.machine.multiply_by_two(
                group,
                &[table(0), table(1)],
                &[self.base(0), self.base(10 * table::base_step(2))],
            ),
            _ => self.machine.multiply_by_four(
                group,
                &[table(0), table(1), table(2), table(3)],
                &self.four_bases(),
            ),
        }
        pass_keys(group, keys);
    }
}

/// Takes the known properties of a group's keys.
fn pass_keys<V: Lanes>(group: &mut Group<V>, keys: &[&PreparedKey]) {
    for (lane, key) in keys.iter().enumerate() {
        let bit = |good: bool| u8::from(good) << lane;
        group.passed.point |= bit(key.fault != Some(Reason::KeyNotAPoint));
        group.passed.large_key |= bit(key.fault != Some(Reason::KeyOfSmallOrder));
    }
}
