//! Tables for the Ed25519 public keys that verify often. With tables, a batch of signatures takes
//! six tenths of the time, and a single signature half.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use arc_swap::ArcSwapOption;
use bulla_ed25519::{PreparedKey, VerifyItem, VerifyingKey, kernel};

use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;

/// A key gets tables after this many verifications without them. Making tables takes about as long
/// as one verification, so that keys that keep displacing each other cost almost nothing.
const USES_PER_TABLES: u32 = 64;

/// How many keys of the process can have tables at a time. All tables together take 5.3 MiB.
const MAX_KEYS_WITH_TABLES: usize = 512;

/// Whether this machine's kernel uses tables.
static USES_TABLES: LazyLock<bool> = LazyLock::new(|| kernel::active().name() != "portable");

static TABLE_CACHE: TableCache = TableCache(Mutex::new(TableCacheState { keys: Vec::new(), hand: 0 }));

/// A decoded public key, and its tables if it has any.
pub(crate) struct DecodedKey {
    key: VerifyingKey,
    shared: Arc<KeyTables>,
}

/// The tables of one key, and how often it verifies.
#[derive(Default)]
struct KeyTables {
    tables: ArcSwapOption<PreparedKey>,
    /// Verifications without tables.
    uses_without: AtomicU32,
    /// Whether the tables were used since the cache's hand last passed.
    used: AtomicBool,
}

impl From<VerifyingKey> for DecodedKey {
    fn from(key: VerifyingKey) -> Self {
        Self { key, shared: Arc::default() }
    }
}

impl DecodedKey {
    /// The key without its tables.
    pub(crate) fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// The strict predicate, computed with or without tables.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Verdict {
        match (self.tables(), signature.try_into()) {
            (Some(tables), Ok(signature)) => verdict(tables.verify(message, signature)),
            _ => verify_strict(&self.key, message, signature),
        }
    }

    /// The tables, for one verification. A key that needed them often enough gets them here.
    pub(super) fn tables(&self) -> Option<Arc<PreparedKey>> {
        let tables = self.shared.tables.load_full();
        if tables.is_some() {
            // Read first: a write would take the cache line from all other threads.
            if !self.shared.used.load(Ordering::Relaxed) {
                self.shared.used.store(true, Ordering::Relaxed);
            }
            return tables;
        }
        if !*USES_TABLES {
            return None;
        }
        let uses = self.shared.uses_without.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if !uses.is_multiple_of(USES_PER_TABLES) {
            return None;
        }
        TABLE_CACHE.put(&self.shared, || PreparedKey::new(self.key.as_bytes()));
        self.shared.tables.load_full()
    }
}

/// The library's verdict as this crate's type.
pub(crate) fn verdict(verdict: bulla_ed25519::Verdict) -> Verdict {
    match verdict {
        bulla_ed25519::Verdict::Valid => Verdict::Valid,
        bulla_ed25519::Verdict::Invalid(_) => Verdict::Invalid,
    }
}

/// The places for keys with tables.
struct TableCache(Mutex<TableCacheState>);

struct TableCacheState {
    keys: Vec<Weak<KeyTables>>,
    /// The place to look at first when a free one is needed: the hand of a clock (second-chance
    /// replacement).
    hand: usize,
}

impl TableCache {
    /// Gives a key its tables. If all places are taken, it drops the tables of a key that was not
    /// used lately. It never waits: if another thread has the lock, the key tries again at its next
    /// use.
    fn put(&self, key: &Arc<KeyTables>, make: impl FnOnce() -> PreparedKey) {
        let Ok(mut places) = self.0.try_lock() else { return };
        if key.tables.load().is_some() {
            return;
        }
        let place = places.free();
        key.used.store(true, Ordering::Relaxed);
        key.tables.store(Some(Arc::new(make())));
        places.keys[place] = Arc::downgrade(key);
    }
}

impl TableCacheState {
    /// Frees a place and returns it.
    fn free(&mut self) -> usize {
        if self.keys.len() < MAX_KEYS_WITH_TABLES {
            self.keys.push(Weak::new());
            return self.keys.len() - 1;
        }
        loop {
            let place = self.hand;
            self.hand = (place + 1) % MAX_KEYS_WITH_TABLES;
            match self.keys[place].upgrade() {
                Some(key) if key.used.swap(false, Ordering::Relaxed) => {}
                Some(key) => {
                    key.tables.store(None);
                    return place;
                }
                None => return place,
            }
        }
    }
}

/// Decodes a public key. Points of small order are refused: a signature under them proves nothing.
/// A y that is not reduced is refused too, although verification alone would accept it: the same
/// point would have two encodings, which a comparison of keys would call different.
pub(super) fn decode(bytes: &[u8]) -> Result<VerifyingKey> {
    let invalid =
        |why: &str| KmsError::new(Code::InvalidPublicKey, format!("not an Ed25519 public key: {why}"));
    let bytes = bytes.try_into().map_err(|_| invalid("it does not have 32 bytes"))?;
    if !is_reduced(bytes) {
        return Err(invalid("its y is not reduced"));
    }
    let key =
        VerifyingKey::from_bytes(bytes).map_err(|_| invalid("the bytes are not a point on the curve"))?;
    if key.is_weak() { Err(invalid("the point has small order")) } else { Ok(key) }
}

/// Whether y, which is all but the highest bit, is below 2^255 - 19.
fn is_reduced(bytes: &[u8; 32]) -> bool {
    let [low, middle @ .., high] = bytes;
    *low < 0xed || high & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

/// The strict predicate, computed without tables.
pub(super) fn verify_strict(key: &VerifyingKey, message: &[u8], signature: &[u8]) -> Verdict {
    let Ok(signature) = signature.try_into() else { return Verdict::Invalid };
    let item = VerifyItem { public_key: key.as_bytes(), message, signature };
    verdict(bulla_ed25519::verify_strict(&item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signature, Signer, SigningKey};
    use proptest::prelude::*;

    /// A key that is one verification short of getting tables, and its private key.
    fn warm(seed: u8) -> (SigningKey, DecodedKey) {
        let signing = SigningKey::from_bytes(&[seed; 32]);
        let key = DecodedKey::from(decode(signing.verifying_key().as_bytes()).unwrap());
        key.shared.uses_without.store(USES_PER_TABLES - 1, Ordering::Relaxed);
        (signing, key)
    }

    fn has_tables(key: &DecodedKey) -> bool {
        key.shared.tables.load().is_some()
    }

    #[test]
    fn a_key_that_verifies_often_gets_tables_where_there_are_lanes() {
        let signing = SigningKey::from_bytes(&[3; 32]);
        let signature = signing.sign(b"message").to_bytes();
        let key = DecodedKey::from(decode(signing.verifying_key().as_bytes()).unwrap());
        // More often than needed: a test that runs at the same time may have the lock.
        for uses in 1..=1000 * USES_PER_TABLES {
            assert_eq!(key.verify(b"message", &signature), Verdict::Valid);
            assert!(uses >= USES_PER_TABLES || !has_tables(&key), "{uses}");
            if has_tables(&key) || !*USES_TABLES && uses > 4 * USES_PER_TABLES {
                break;
            }
        }
        assert_eq!(has_tables(&key), *USES_TABLES);
        assert_eq!(key.verify(b"another", &signature), Verdict::Invalid);
    }

    #[test]
    fn the_shelf_keeps_those_that_are_used_and_forgets_those_that_are_gone() {
        let shelf = TableCache(Mutex::new(TableCacheState { keys: Vec::new(), hand: 0 }));
        let tables = PreparedKey::new(&[1; 32]);
        let new = || {
            let key = Arc::<KeyTables>::default();
            shelf.put(&key, || tables.clone());
            assert!(key.tables.load().is_some());
            key
        };
        let mut keys: Vec<_> = (0..MAX_KEYS_WITH_TABLES).map(|_| new()).collect();
        // A dropped key's place is free after the hand has gone round once.
        keys.remove(7);
        keys.push(new());
        let held = |keys: &[Arc<KeyTables>]| keys.iter().filter(|key| key.tables.load().is_some()).count();
        assert_eq!(held(&keys), MAX_KEYS_WITH_TABLES);
        let used = Arc::clone(&keys[100]);
        for _ in 0..3 * MAX_KEYS_WITH_TABLES {
            used.used.store(true, Ordering::Relaxed);
            keys.push(new());
            assert!(used.tables.load().is_some(), "it is used all the time");
        }
        assert_eq!(held(&keys), MAX_KEYS_WITH_TABLES);
        assert_eq!(shelf.0.lock().unwrap().keys.len(), MAX_KEYS_WITH_TABLES);
    }

    proptest! {
        #[test]
        fn with_tables_the_verdict_is_the_strict_one(
            seed: u8, message: Vec<u8>, flip in prop::option::of(0_usize..512), cut in 0_usize..66,
        ) {
            let (signing, key) = warm(seed);
            let mut signature = signing.sign(&message).to_bytes();
            if let Some(bit) = flip {
                signature[bit / 8] ^= 1 << (bit % 8);
            }
            let strict =
                signing.verifying_key().verify_strict(&message, &Signature::from_bytes(&signature)).is_ok();
            prop_assert_eq!(strict, flip.is_none());
            for _ in 0..2 {
                prop_assert_eq!(key.verify(&message, &signature).is_valid(), strict);
            }
            let cut = &[&signature[..], &[0]].concat()[..cut];
            prop_assert!(cut.len() == 64 || !key.verify(&message, cut).is_valid());
        }
    }
}
