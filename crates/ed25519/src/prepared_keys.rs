//! Keys with precomputed tables, because a service often verifies many signatures under few keys: a
//! [`PreparedKey`] for programs that manage keys themselves, and a [`KeyCache`].

use crate::generic::{pair_sums::KeyRows, table::KeyTable};
use crate::kernel::{self, EngineKey, Kernel};
use crate::{InvalidReason, Verdict, VerifyItem};
use bulla_simd::cpu::second_level_cache;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

/// The size in bytes up to which more tables are faster: four times a core's second-level cache, as
/// measured with caches of 1 MiB and 2 MiB.
static MAX_TABLES_LEN: LazyLock<usize> = LazyLock::new(|| 4 * second_level_cache().unwrap_or(1 << 20));

/// How many tables a key gets. More save doublings, and need more memory that should stay near the
/// CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecomputedTables {
    /// 2.7 KiB per key: worthwhile from two signatures per key.
    One,
    /// 5.3 KiB per key: half the doublings.
    Two,
    /// 21.9 KiB per key: a quarter of the doublings. 11.3 KiB of it serve batches of up to four
    /// signatures; kernels with four lanes do not have these.
    Four,
}

impl PrecomputedTables {
    /// The choice with the least total time, for this number of keys and of signatures under each.
    ///
    /// More tables are slower once those of all keys are larger than four times a core's
    /// second-level cache.
    #[must_use]
    pub fn for_use(keys: usize, signatures_for_each: usize) -> Self {
        let fits = |tables: Self| keys.saturating_mul(tables.bytes_for_groups()) <= *MAX_TABLES_LEN;
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

/// How many times a key is seen before a cache prepares it.
const MIN_SIGHTINGS: u8 = 3;

/// The maximum number of unprepared keys that are counted at a time.
const MAX_COUNTED_KEYS: usize = 4096;

/// A cache of prepared keys. It has the given keys, and if it has a capacity, it learns which other
/// keys are used.
///
/// The verdicts are those of [`verify_many`](crate::verify_many), whatever the cache contains.
///
/// ```
/// use bulla_ed25519::{KeyCache, PrecomputedTables, Signer, SigningKey, VerifyItem};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let (key, signature) = (signer.verifying_key().to_bytes(), signer.sign(b"message").to_bytes());
/// let tables = PrecomputedTables::for_use(1, 1000);
/// let mut cache = KeyCache::new(&[key], tables).with_capacity_bytes(8 * tables.bytes());
/// assert!(cache.contains(&key) && !cache.is_empty());
/// let item = VerifyItem { public_key: &key, message: b"message", signature: &signature };
/// assert!(cache.verify_many(&[item])[0].is_valid());
/// ```
#[derive(Debug)]
pub struct KeyCache {
    kernel: Kernel,
    tables: PrecomputedTables,
    /// The maximum number of learned keys, in addition to those that were given at the start.
    limit: usize,
    /// The keys that were given at the start come first.
    cached: Vec<CachedKey>,
    /// The number of keys that were given at the start. They are never dropped.
    given: usize,
    positions: HashMap<[u8; 32], usize>,
    /// How often keys that are not prepared were seen.
    sightings: HashMap<[u8; 32], u8>,
    /// The learned key to look at first when one must be dropped, as in the clock algorithm.
    clock_hand: usize,
}

struct CachedKey {
    public_key: [u8; 32],
    key: EngineKey,
    /// Whether the key was used since it was last looked at. If not, a learned key may be dropped.
    used: bool,
}

impl fmt::Debug for CachedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedKey").field("public_key", &self.public_key).finish_non_exhaustive()
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
            cached: Vec::new(),
            given: 0,
            positions: HashMap::new(),
            sightings: HashMap::new(),
            clock_hand: 0,
        };
        this.insert(keys, usize::MAX);
        this.given = this.cached.len();
        this
    }

    /// Lets the cache learn keys by itself, as many as fit into `bytes` of tables. Half of a core's
    /// second-level cache is a good size, 512 KiB on a server. The cache prepares a key when it has
    /// seen it three times. It drops a key that was not used recently when it needs memory.
    #[must_use]
    pub fn with_capacity_bytes(mut self, bytes: usize) -> Self {
        self.limit = bytes / self.tables.bytes();
        self
    }

    /// The number of prepared keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cached.len()
    }

    /// Whether no key is prepared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cached.is_empty()
    }

    /// Whether the key is prepared.
    #[must_use]
    pub fn contains(&self, public_key: &[u8; 32]) -> bool {
        self.positions.contains_key(public_key)
    }

    /// Verifies every item. Items under prepared keys are faster.
    pub fn verify_many(&mut self, items: &[VerifyItem<'_>]) -> Vec<Verdict> {
        self.learn(items);
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match self.positions.get(item.public_key) {
                Some(position) => {
                    self.cached[*position].used = true;
                    known.push((index, *position));
                }
                None => unknown.push(index),
            }
        }
        let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
        let known_items: Vec<_> = known.iter().map(|(index, _)| items[*index]).collect();
        let keys: Vec<_> = known.iter().map(|(_, position)| &self.cached[*position].key).collect();
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
        let (mut frequent, mut chosen) = (Vec::new(), HashSet::new());
        for item in items {
            if self.positions.contains_key(item.public_key) || chosen.contains(item.public_key) {
                continue;
            }
            // Forgetting all counts is crude, but cheap, and it bounds the memory: frequent keys
            // come back soon.
            if self.sightings.len() == MAX_COUNTED_KEYS {
                self.sightings.clear();
            }
            let times = self.sightings.entry(*item.public_key).or_default();
            *times = times.saturating_add(1);
            // A key that finds no place in this call is still frequent in the next.
            if *times >= MIN_SIGHTINGS && frequent.len() < self.limit {
                frequent.push(*item.public_key);
                chosen.insert(item.public_key);
                self.sightings.remove(item.public_key);
            }
        }
        self.insert(&frequent, self.limit);
    }

    /// Adds keys: at most `limit` in addition to those that were given at the start.
    fn insert(&mut self, keys: &[[u8; 32]], limit: usize) {
        let prepared = self.kernel.prepare(keys, self.tables.count());
        for (public_key, key) in keys.iter().zip(prepared) {
            if self.positions.contains_key(public_key) {
                continue;
            }
            let cached_key = CachedKey { public_key: *public_key, key, used: true };
            let position = if self.cached.len() - self.given < limit {
                self.cached.push(cached_key);
                self.cached.len() - 1
            } else {
                let position = self.least_used();
                self.positions.remove(&self.cached[position].public_key);
                self.cached[position] = cached_key;
                position
            };
            self.positions.insert(*public_key, position);
        }
    }

    /// The position of a learned key that was not used since the hand of the clock last passed it.
    fn least_used(&mut self) -> usize {
        loop {
            let position = self.given + self.clock_hand % (self.cached.len() - self.given);
            self.clock_hand = position + 1 - self.given;
            if !std::mem::take(&mut self.cached[position].used) {
                return position;
            }
        }
    }
}

/// A public key with the tables of [`PrecomputedTables::Four`], 22 KiB, made once. If the kernel
/// has no vectors, there are no tables.
///
/// Making the tables takes about as long as one strict verification without them. Many signatures
/// under such keys take half of the time. With eight lanes, a single one takes a third of the time,
/// because all lanes work for it. With four lanes it takes as long as without tables. Verdicts are
/// those of [`verify_strict`](crate::verify_strict).
///
/// ```
/// use bulla_ed25519::{PreparedItem, PreparedKey, Signer, SigningKey, verify_many_prepared};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let signature = signer.sign(b"message").to_bytes();
/// let key = PreparedKey::new(signer.verifying_key().as_bytes());
/// assert!(key.verify(b"message", &signature).is_valid());
///
/// let items = [PreparedItem { key: &key, message: b"message", signature: &signature }; 20];
/// assert!(verify_many_prepared(&items).iter().all(|verdict| verdict.is_valid()));
/// assert_eq!(key.public_key(), signer.verifying_key().as_bytes());
/// ```
#[derive(Clone)]
pub struct PreparedKey {
    public_key: [u8; 32],
    kernel: Kernel,
    key: EngineKey,
}

impl PreparedKey {
    /// Prepares a key. Under a key that is not a point, or has small order, all signatures are
    /// invalid.
    ///
    /// # Panics
    ///
    /// If [`kernel::active`] panics.
    #[must_use]
    pub fn new(public_key: &[u8; 32]) -> Self {
        Self::with_kernel(kernel::active(), public_key)
    }

    /// Like [`PreparedKey::new`], by a kernel of the caller's choice.
    ///
    /// ```
    /// use bulla_ed25519::{PreparedKey, kernel::Kernel};
    ///
    /// let portable = Kernel::by_name("portable").unwrap();
    /// let key = PreparedKey::with_kernel(portable, &[3; 32]);
    /// assert!(!key.verify(b"message", &[0; 64]).is_valid());
    /// ```
    #[must_use]
    pub fn with_kernel(kernel: Kernel, public_key: &[u8; 32]) -> Self {
        let mut keys = kernel.prepare(&[*public_key], PrecomputedTables::Four.count());
        Self { public_key: *public_key, kernel, key: keys.pop().expect("one key was prepared") }
    }

    /// The public key: 32 bytes.
    #[must_use]
    pub fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// The verdict on one signature.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Verdict {
        let mut verdict = [Verdict::Invalid(InvalidReason::Mismatch)];
        let item = VerifyItem { public_key: &self.public_key, message, signature };
        self.kernel.verify_prepared(&[item], &[&self.key], &mut verdict);
        verdict[0]
    }
}

impl fmt::Debug for PreparedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedKey").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}

/// One signature under a prepared key.
#[derive(Clone, Copy, Debug)]
pub struct PreparedItem<'a> {
    /// The prepared key.
    pub key: &'a PreparedKey,
    /// The message that was signed.
    pub message: &'a [u8],
    /// The signature: R and S.
    pub signature: &'a [u8; 64],
}

/// Like [`PreparedKey::verify`] for every item, eight at a time. Verdict i belongs to item i, and
/// does not depend on its neighbors.
///
/// # Panics
///
/// If different kernels prepared the keys.
pub fn verify_many_prepared(items: &[PreparedItem<'_>]) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
    let Some(first) = items.first() else { return verdicts };
    let kernel = first.key.kernel;
    assert!(items.iter().all(|item| item.key.kernel == kernel), "all keys are prepared by the same kernel");
    let keys: Vec<_> = items.iter().map(|item| &item.key.key).collect();
    let items = items.iter().map(|PreparedItem { key, message, signature }| VerifyItem {
        public_key: &key.public_key,
        message,
        signature,
    });
    let items: Vec<_> = items.collect();
    kernel.verify_prepared(&items, &keys, &mut verdicts);
    verdicts
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
        for _ in 0..MIN_SIGHTINGS {
            keys.verify_many(&[item(&[1; 32]), item(&[2; 32])]);
        }
        assert!(keys.contains(&[1; 32]) && !keys.contains(&[2; 32]));
        keys.verify_many(&[item(&[2; 32])]);
        assert!(
            keys.contains(&[2; 32]) && !keys.contains(&[1; 32]),
            "the second one takes the only position"
        );
        assert!(keys.contains(&given[0]), "a key that was given never goes");
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn keys_that_are_seen_once_take_bounded_memory() {
        let kernel = Kernel::by_name("portable").unwrap();
        let mut keys = KeyCache::with_kernel(kernel, &[], PrecomputedTables::One)
            .with_capacity_bytes(PrecomputedTables::One.bytes());
        let mut public_key = [7; 32];
        for n in 0..3 * MAX_COUNTED_KEYS {
            public_key[..8].copy_from_slice(&n.to_le_bytes());
            keys.learn(&[item(&public_key)]);
            assert!(
                keys.sightings.len() <= MAX_COUNTED_KEYS,
                "{} counts after {n} keys",
                keys.sightings.len()
            );
        }
        assert!(keys.is_empty());
        for _ in 0..MIN_SIGHTINGS {
            keys.learn(&[item(&[1; 32])]);
        }
        assert!(keys.contains(&[1; 32]), "a key that is used is learned as before");
    }
}
