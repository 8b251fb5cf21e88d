//! Keys with kept tables, because a service often verifies many signatures under few keys.

use crate::generic::{alone::KeyRows, table::KeyTable};
use crate::kernel::{self, Kernel, PreparedKey};
use crate::{InvalidReason, Verdict, VerifyItem};
use bulla_simd::cpu::second_level_cache;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The size in bytes up to which more tables are faster: four times a core's second-level cache, as
/// measured with caches of 1 MiB and 2 MiB.
static ROOM: LazyLock<usize> = LazyLock::new(|| 4 * second_level_cache().unwrap_or(1 << 20));

/// How many tables a key gets. More save doublings, and need more memory that should stay near the
/// CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecomputedTables {
    /// 2.7 KiB per key: worthwhile from two signatures per key.
    One,
    /// 5.3 KiB per key: half the doublings.
    Two,
    /// 21.9 KiB per key: a quarter of the doublings. 11.3 KiB of it serve up to four signatures
    /// that come alone; kernels with four lanes do not have these.
    Four,
}

impl PrecomputedTables {
    /// The choice with the least total time, for this number of keys and of signatures under each.
    ///
    /// More tables are slower once those of all keys are larger than four times a core's
    /// second-level cache.
    #[must_use]
    pub fn for_use(keys: usize, signatures_for_each: usize) -> Self {
        let fits = |tables: Self| keys.saturating_mul(tables.bytes_for_groups()) <= *ROOM;
        match signatures_for_each {
            0..4 => Self::One,
            12.. if fits(Self::Four) => Self::Four,
            4.. if fits(Self::Two) => Self::Two,
            _ => Self::One,
        }
    }

    pub(crate) const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The size of a key's tables in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::One | Self::Two => self.bytes_for_groups(),
            Self::Four => self.bytes_for_groups() + size_of::<KeyRows>(),
        }
    }

    /// The size in bytes of the tables that groups of signatures use.
    const fn bytes_for_groups(self) -> usize {
        self.count() * size_of::<KeyTable>()
    }
}

/// How many times a key is seen before a learning cache prepares it.
const HOT: u8 = 3;

/// The most unprepared keys that are counted at a time.
const COUNTED: usize = 4096;

/// Prepared keys, and a bounded cache that learns which keys are used.
///
/// The verdicts are those of [`verify_many`](crate::verify_many), whatever the cache contains.
#[derive(Debug)]
pub struct KeyCache {
    kernel: Kernel,
    tables: PrecomputedTables,
    /// The most keys in addition to those that were given at the start.
    limit: usize,
    /// The keys that were given at the start come first.
    slots: Vec<Slot>,
    /// The number of keys that were given at the start. They are never dropped.
    given: usize,
    places: HashMap<[u8; 32], usize>,
    /// How often keys without a slot were seen.
    seen: HashMap<[u8; 32], u8>,
    /// The learnt slot to look at first when one must be dropped.
    hand: usize,
}

struct Slot {
    public_key: [u8; 32],
    key: PreparedKey,
    /// Whether the key was used since it was last looked at. If not, a learnt key may be dropped.
    used: bool,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}

impl KeyCache {
    /// Prepares the given keys, each with that many tables, and never other keys. Some of them may
    /// not be points: signatures under those are invalid.
    ///
    /// # Panics
    ///
    /// If [`kernel::active`] panics.
    #[must_use]
    pub fn new(keys: &[[u8; 32]], tables: PrecomputedTables) -> Self {
        Self::with_kernel(kernel::active(), keys, tables)
    }

    /// Like [`KeyCache::new`], by a kernel of the caller's choice.
    #[must_use]
    pub fn with_kernel(kernel: Kernel, keys: &[[u8; 32]], tables: PrecomputedTables) -> Self {
        let mut this = Self {
            kernel,
            tables,
            limit: 0,
            slots: Vec::new(),
            given: 0,
            places: HashMap::new(),
            seen: HashMap::new(),
            hand: 0,
        };
        this.insert(keys, usize::MAX);
        this.given = this.slots.len();
        this
    }

    /// Lets the cache learn keys by itself, as many as fit into `bytes` of tables. Half of a core's
    /// second-level cache is a good size, 512 KiB on a server. The cache prepares a key when it has
    /// seen it three times. It drops a key that was not used recently when it needs room.
    #[must_use]
    pub fn with_capacity_bytes(mut self, bytes: usize) -> Self {
        self.limit = bytes / self.tables.bytes();
        self
    }

    /// The number of prepared keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no key is prepared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether the key is prepared.
    #[must_use]
    pub fn contains(&self, public_key: &[u8; 32]) -> bool {
        self.places.contains_key(public_key)
    }

    /// Verifies every item. Items under prepared keys are faster.
    pub fn verify_many(&mut self, items: &[VerifyItem<'_>]) -> Vec<Verdict> {
        self.learn(items);
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match self.places.get(item.public_key) {
                Some(place) => {
                    self.slots[*place].used = true;
                    known.push((index, *place));
                }
                None => unknown.push(index),
            }
        }
        let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
        let known_items: Vec<_> = known.iter().map(|(index, _)| items[*index]).collect();
        let keys: Vec<_> = known.iter().map(|(_, place)| &self.slots[*place].key).collect();
        let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); known.len()];
        self.kernel.verify_prepared(&known_items, &keys, &mut verdicts);
        for ((index, _), verdict) in known.iter().zip(&verdicts) {
            out[*index] = *verdict;
        }
        let unknown_items: Vec<_> = unknown.iter().map(|index| items[*index]).collect();
        verdicts.resize(unknown.len(), Verdict::Invalid(InvalidReason::Mismatch));
        self.kernel.verify_many_into(&unknown_items, &mut verdicts);
        for (index, verdict) in unknown.iter().zip(&verdicts) {
            out[*index] = *verdict;
        }
        out
    }

    /// Counts keys that are not prepared, and prepares those that were seen often enough.
    fn learn(&mut self, items: &[VerifyItem<'_>]) {
        if self.limit == 0 {
            return;
        }
        let (mut hot, mut chosen) = (Vec::new(), HashSet::new());
        for item in items {
            if self.places.contains_key(item.public_key) || chosen.contains(item.public_key) {
                continue;
            }
            // Forgetting all counts is crude, but cheap, and it bounds the memory: hot keys come
            // back soon.
            if self.seen.len() == COUNTED {
                self.seen.clear();
            }
            let times = self.seen.entry(*item.public_key).or_default();
            *times = times.saturating_add(1);
            // A key that finds no room in this call is still hot in the next.
            if *times >= HOT && hot.len() < self.limit {
                hot.push(*item.public_key);
                chosen.insert(item.public_key);
                self.seen.remove(item.public_key);
            }
        }
        self.insert(&hot, self.limit);
    }

    /// Adds keys: at most `limit` in addition to those that were given at the start.
    fn insert(&mut self, keys: &[[u8; 32]], limit: usize) {
        let prepared = self.kernel.prepare(keys, self.tables.count());
        for (public_key, key) in keys.iter().zip(prepared) {
            if self.places.contains_key(public_key) {
                continue;
            }
            let slot = Slot { public_key: *public_key, key, used: true };
            let place = if self.slots.len() - self.given < limit {
                self.slots.push(slot);
                self.slots.len() - 1
            } else {
                let place = self.least_used();
                self.places.remove(&self.slots[place].public_key);
                self.slots[place] = slot;
                place
            };
            self.places.insert(*public_key, place);
        }
    }

    /// The place of a learnt key that was not used since the hand of the clock last passed it.
    fn least_used(&mut self) -> usize {
        loop {
            let place = self.given + self.hand % (self.slots.len() - self.given);
            self.hand = place + 1 - self.given;
            if !std::mem::take(&mut self.slots[place].used) {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(public_key: &[u8; 32]) -> VerifyItem<'_> {
        VerifyItem { public_key, message: &[], signature: &[0; 64] }
    }

    #[test]
    fn a_key_that_finds_no_room_is_prepared_when_it_is_seen_again() {
        let given = [[9; 32]];
        let kernel = Kernel::by_name("portable").unwrap();
        let mut keys = KeyCache::with_kernel(kernel, &given, PrecomputedTables::One)
            .with_capacity_bytes(PrecomputedTables::One.bytes());
        for _ in 0..HOT {
            keys.verify_many(&[item(&[1; 32]), item(&[2; 32])]);
        }
        assert!(keys.contains(&[1; 32]) && !keys.contains(&[2; 32]));
        keys.verify_many(&[item(&[2; 32])]);
        assert!(keys.contains(&[2; 32]) && !keys.contains(&[1; 32]), "the second one takes the only place");
        assert!(keys.contains(&given[0]), "a key that was given never goes");
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn keys_that_are_seen_once_take_bounded_memory() {
        let kernel = Kernel::by_name("portable").unwrap();
        let mut keys = KeyCache::with_kernel(kernel, &[], PrecomputedTables::One)
            .with_capacity_bytes(PrecomputedTables::One.bytes());
        let mut public_key = [7; 32];
        for n in 0..3 * COUNTED {
            public_key[..8].copy_from_slice(&n.to_le_bytes());
            keys.learn(&[item(&public_key)]);
            assert!(keys.seen.len() <= COUNTED, "{} counts after {n} keys", keys.seen.len());
        }
        assert!(keys.is_empty());
        for _ in 0..HOT {
            keys.learn(&[item(&[1; 32])]);
        }
        assert!(keys.contains(&[1; 32]), "a key that is used is learnt as before");
    }
}
