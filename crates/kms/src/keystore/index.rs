//! All keys, as one snapshot that never changes: a reader sees the store at one moment.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::quality::RandomState;
use rpds::{HashTrieMapSync, RedBlackTreeSetSync};
use zeroize::Zeroizing;

use crate::attestation::Attestation;
use crate::backend::{Backends, KeyMaterial, PrivateKey, hmac_key};
use crate::encryption::{EnvelopeKind, StoreCipher};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyVersionId, Name, TOKEN_ROOT_PURPOSE};
use crate::policy::{KeyState, VersionState};
use crate::record::{KeyRecord, VersionRecord};

/// A map of the index. Each use of a key looks into several of them, and `SipHash`, the default,
/// would take a hundredth of the time of a signature. This hash is seeded for each map, too:
/// callers choose labels.
type IndexMap<K, V> = HashTrieMapSync<K, V, RandomState>;

/// All keys at one moment. A change makes a new index, which shares the unchanged parts with the
/// old one.
#[derive(Clone, Default)]
pub(super) struct Index {
    /// So that what is done for one tenant does not take longer because others have many keys.
    tenants: IndexMap<Name, Arc<TenantKeys>>,
    /// The number of keys.
    len: usize,
    /// The number of the change that led here.
    generation: u64,
    /// The exclusive or of the bindings of all root keys of tokens.
    token_roots: [u8; 32],
}

/// The keys of one tenant.
#[derive(Default)]
struct TenantKeys {
    /// The keys as they were loaded; empty if the maps were made from others.
    loaded: Vec<Arc<LoadedKey>>,
    /// Made from `loaded` when first needed: of ten thousand tenants, few ask for a key in the
    /// second in which the keystore opens.
    maps: OnceLock<TenantMaps>,
}

/// The keys of one tenant by what finds them.
#[derive(Clone, Default)]
struct TenantMaps {
    keys: IndexMap<KeyId, Arc<LoadedKey>>,
    labels: IndexMap<Name, KeyId>,
    /// In the order of their names.
    order: RedBlackTreeSetSync<KeyId>,
    /// How many of them are counted.
    counted: usize,
}

/// The maps of a tenant with more keys are made when the keystore opens: otherwise the first
/// request of that tenant would wait for a millisecond or longer.
const MAX_LATER_MAPS: usize = 256;

/// Whether a key counts among those of its tenant.
fn is_counted(record: &KeyRecord) -> bool {
    record.state != KeyState::Destroyed && record.key.purpose().as_str() != TOKEN_ROOT_PURPOSE
}

impl TenantKeys {
    /// Adds a key that was not added before.
    fn push(&mut self, key: Arc<LoadedKey>) {
        match self.maps.get_mut() {
            Some(maps) => drop(maps.insert(key)),
            None => self.loaded.push(key),
        }
        if self.loaded.len() > MAX_LATER_MAPS {
            self.maps();
            self.loaded = Vec::new();
        }
    }

    fn maps(&self) -> &TenantMaps {
        self.maps.get_or_init(|| {
            let mut maps = TenantMaps::default();
            for key in &self.loaded {
                maps.insert(Arc::clone(key));
            }
            maps
        })
    }
}

impl From<TenantMaps> for TenantKeys {
    fn from(maps: TenantMaps) -> Self {
        Self { loaded: Vec::new(), maps: OnceLock::from(maps) }
    }
}

impl TenantMaps {
    /// Inserts a key, or replaces its former state, which it returns.
    fn insert(&mut self, key: Arc<LoadedKey>) -> Option<Arc<LoadedKey>> {
        let key_id = &key.record.key;
        let old = self.keys.get(key_id).cloned();
        match &old {
            None => self.order.insert_mut(key_id.clone()),
            Some(old) => {
                self.counted -= usize::from(is_counted(&old.record));
                if let Some(label) = &old.record.label {
                    self.labels.remove_mut(label);
                }
            }
        }
        self.counted += usize::from(is_counted(&key.record));
        if let Some(label) = &key.record.label {
            self.labels.insert_mut(label.clone(), key_id.clone());
        }
        self.keys.insert_mut(key_id.clone(), key);
        old
    }
}

/// Collects the keys of a store that is opened.
#[derive(Default)]
pub(super) struct IndexBuilder {
    index: Index,
    tenants: HashMap<Name, TenantKeys>,
    /// The tenant of the last key, which is not in `tenants`: a store has the keys of one tenant
    /// together.
    last: Option<(Name, TenantKeys)>,
}

impl IndexBuilder {
    /// Adds a key that was not added before.
    pub(super) fn push(&mut self, key: Arc<LoadedKey>) {
        self.index.add_token_root(None, &key);
        self.index.len += 1;
        let tenant = key.record.key.tenant();
        match &mut self.last {
            Some((last, keys)) if last == tenant => keys.push(key),
            last => {
                let (tenant, mut keys) = (tenant.clone(), self.tenants.remove(tenant).unwrap_or_default());
                keys.push(key);
                self.tenants.extend(last.replace((tenant, keys)));
            }
        }
    }

    /// The index of all keys that were added.
    pub(super) fn finish(self) -> Index {
        let Self { mut index, tenants, last } = self;
        for (tenant, mut keys) in tenants.into_iter().chain(last) {
            keys.loaded.shrink_to_fit();
            index.tenants.insert_mut(tenant, Arc::new(keys));
        }
        index
    }
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<LoadedKey>> {
        self.tenants.values().flat_map(|tenant| {
            let later = tenant.maps.get().map(|maps| maps.keys.values());
            let loaded = if later.is_some() { &[][..] } else { &tenant.loaded };
            later.into_iter().flatten().chain(loaded)
        })
    }

    fn tenant(&self, tenant: &Name) -> Option<&TenantMaps> {
        self.tenants.get(tenant).map(|keys| keys.maps())
    }

    pub(super) fn key(&self, key_id: &KeyId) -> Result<&Arc<LoadedKey>> {
        self.tenant(key_id.tenant()).and_then(|tenant| tenant.keys.get(key_id)).ok_or_else(|| {
            KmsError::new(Code::KeyNotFound, format!("there is no key {key_id} in this keystore"))
        })
    }

    /// Everything about a key except its private keys.
    pub(super) fn attest(&self, key_id: &KeyId) -> Result<Attestation> {
        Ok(Attestation::from(&self.key(key_id)?.record))
    }

    /// The attestations of all keys, sorted by their names.
    pub(super) fn list(&self) -> Vec<Attestation> {
        let mut keys: Vec<_> = self.keys().collect();
        keys.sort_unstable_by(|a, b| a.record.key.cmp(&b.record.key));
        keys.into_iter().map(|key| Attestation::from(&key.record)).collect()
    }

    pub(super) fn find(&self, tenant: &Name, label: &Name) -> Option<&KeyId> {
        self.tenant(tenant)?.labels.get(label)
    }

    /// The keys of a tenant after `after`, in the order of their names.
    pub(super) fn of_tenant<'a>(
        &'a self,
        tenant: &Name,
        after: Option<&'a KeyId>,
    ) -> impl Iterator<Item = &'a KeyId> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = (begin, Bound::<&KeyId>::Unbounded);
        self.tenant(tenant).into_iter().flat_map(move |tenant| tenant.order.range::<KeyId, _>(range))
    }

    /// See [`Keystore::count_keys`](crate::Keystore::count_keys).
    pub(super) fn count_keys(&self, tenant: &Name) -> usize {
        self.tenant(tenant).map_or(0, |tenant| tenant.counted)
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    pub(super) fn token_roots(&self) -> [u8; 32] {
        self.token_roots
    }

    /// Inserts a key, or replaces its former state.
    pub(super) fn insert(&mut self, key: Arc<LoadedKey>) {
        let tenant = key.record.key.tenant().clone();
        let mut maps = self.tenant(&tenant).cloned().unwrap_or_default();
        let old = maps.insert(Arc::clone(&key));
        self.len += usize::from(old.is_none());
        self.add_token_root(old.as_deref(), &key);
        self.tenants.insert_mut(tenant, Arc::new(maps.into()));
    }

    /// Adds a key to the root keys of tokens if it is one, in place of its former state.
    fn add_token_root(&mut self, old: Option<&LoadedKey>, key: &LoadedKey) {
        if key.record.key.purpose().as_str() == TOKEN_ROOT_PURPOSE {
            for binding in old.into_iter().chain([key]).map(|key| &key.binding) {
                self.token_roots.iter_mut().zip(binding).for_each(|(byte, other)| *byte ^= other);
            }
        }
    }
}

/// A key, ready for use. It is replaced as a whole when any part of it changes.
pub(super) struct LoadedKey {
    pub(super) record: KeyRecord,
    /// The record's contribution to the store's state.
    pub(super) binding: [u8; 32],
    pub(super) latest_key: Arc<StoredPrivateKey>,
    /// The private keys of older versions, for algorithms that need them: they decrypt old
    /// ciphertexts, and verify old MACs.
    pub(super) older: BTreeMap<u32, Arc<StoredPrivateKey>>,
}

/// A private key that stays encrypted until it is needed, so that a store of many keys opens
/// quickly and holds few of them in the clear.
#[derive(Default)]
pub(super) struct StoredPrivateKey {
    ciphertext: Vec<u8>,
    decrypted: OnceLock<Arc<dyn PrivateKey>>,
    /// How many uses are left of those that the store already counts.
    reserved: AtomicU64,
    /// The key with which the version makes HMACs.
    hmac_key: OnceLock<Zeroizing<Vec<u8>>>,
}

impl StoredPrivateKey {
    /// A private key from its row; the row is empty for a destroyed key.
    pub(super) fn new(ciphertext: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { ciphertext, decrypted: OnceLock::new(), ..Self::default() })
    }

    /// A private key that was just made, and its row.
    pub(super) fn with_key(ciphertext: Vec<u8>, key: Arc<dyn PrivateKey>) -> Arc<Self> {
        Arc::new(Self { ciphertext, decrypted: OnceLock::from(key), ..Self::default() })
    }

    /// Whether `row` holds this key.
    pub(super) fn is_from(&self, row: &[u8]) -> bool {
        self.ciphertext == row
    }

    /// Adds uses that the store now counts.
    pub(super) fn reserve(&self, uses: u64) {
        self.reserved.fetch_add(uses, Ordering::Relaxed);
    }

    /// Whether so many uses are reserved.
    pub(super) fn has_reserved(&self, uses: u64) -> bool {
        self.reserved.load(Ordering::Relaxed) >= uses
    }

    /// Takes one of the reserved uses, if there is one.
    pub(super) fn take_use(&self) -> bool {
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |uses| uses.checked_sub(1)).is_ok()
    }
}

impl LoadedKey {
    /// One version, whether or not it may be used.
    pub(super) fn version(&self, id: &KeyVersionId) -> Result<&VersionRecord> {
        self.record.version(id.version()).ok_or_else(|| {
            let latest = self.record.latest_number();
            KmsError::new(Code::UnknownVersion, format!("there is no {id}: the latest version is {latest}"))
        })
    }

    /// One version that may be used.
    pub(super) fn usable(&self, id: &KeyVersionId) -> Result<&VersionRecord> {
        let refused = |why: String| Err(KmsError::new(Code::VersionNotUsable, why));
        let version = self.version(id)?;
        if version.state == VersionState::Revoked {
            return refused(format!("{id} was revoked"));
        }
        let least = self.record.minimum_version;
        if id.version() < least {
            return refused(format!("{id} is too old: the key's minimum version is {least}"));
        }
        Ok(version)
    }

    /// The private key of a version, if the keystore keeps it.
    pub(super) fn stored(&self, id: &KeyVersionId) -> Option<&StoredPrivateKey> {
        if id.version() == self.record.latest_number().get() {
            return Some(&self.latest_key);
        }
        self.older.get(&id.version()).map(|stored| &**stored)
    }

    /// The private key of this version, if `record` (a record of the same key) has the version with
    /// the same private key. It may be open already, and keeps its reserved uses.
    pub(super) fn stored_key(&self, record: &KeyRecord, version: u32) -> Option<&Arc<StoredPrivateKey>> {
        let was = self.record.version(version)?;
        if !was.is_held() || !was.has_key_of(record.version(version)?) {
            return None;
        }
        if version == self.record.latest_number().get() {
            Some(&self.latest_key)
        } else {
            self.older.get(&version)
        }
    }

    /// The private key of the latest version. It is opened, and checked against the record, when
    /// first needed.
    pub(super) fn signer(&self, cipher: &StoreCipher, backends: &Backends) -> Result<&Arc<dyn PrivateKey>> {
        self.decrypt(&self.latest_key, self.record.latest_number(), cipher, backends)
    }

    /// The private key of a version that may be used. It is opened and checked like
    /// [`LoadedKey::signer`]'s.
    pub(super) fn private_key(
        &self,
        id: &KeyVersionId,
        cipher: &StoreCipher,
        backends: &Backends,
    ) -> Result<&Arc<dyn PrivateKey>> {
        self.usable(id)?;
        self.any_private_key(id, cipher, backends)
    }

    /// The private key of a version that the keystore keeps, whether or not it may be used. It is
    /// opened and checked like [`LoadedKey::signer`]'s.
    pub(super) fn any_private_key(
        &self,
        id: &KeyVersionId,
        cipher: &StoreCipher,
        backends: &Backends,
    ) -> Result<&Arc<dyn PrivateKey>> {
        let stored = self.stored(id).ok_or_else(|| destroyed(id))?;
        let version = NonZeroU32::new(id.version()).ok_or_else(|| destroyed(id))?;
        self.decrypt(stored, version, cipher, backends)
    }

    /// The key with which a version that may be used makes HMACs. It is computed when first needed.
    pub(super) fn hmac_key(
        &self,
        id: &KeyVersionId,
        cipher: &StoreCipher,
        backends: &Backends,
    ) -> Result<&[u8]> {
        self.usable(id)?;
        let stored = self.stored(id).ok_or_else(|| destroyed(id))?;
        if let Some(key) = stored.hmac_key.get() {
            return Ok(key);
        }
        let secret = self.material(id, cipher, backends)?;
        Ok(stored.hmac_key.get_or_init(|| hmac_key(id.key_id().algorithm(), &secret)))
    }

    /// The private key of a version that may be used, unencrypted.
    pub(super) fn material(
        &self,
        id: &KeyVersionId,
        cipher: &StoreCipher,
        backends: &Backends,
    ) -> Result<KeyMaterial> {
        // This also proves that it belongs to the public key.
        self.private_key(id, cipher, backends)?;
        let capabilities = backends.find(&self.record.backend, self.record.key.algorithm())?;
        let capabilities = capabilities.capabilities(self.record.key.algorithm());
        if !capabilities.is_some_and(|capabilities| capabilities.material_is_key) {
            let message = format!("the private key of {id} cannot leave the backend {}", self.record.backend);
            return Err(KmsError::new(Code::NotExportable, message));
        }
        self.decrypt_material(id, cipher)
    }

    /// The backend's material for a version whose private key the keystore still has.
    pub(super) fn decrypt_material(&self, id: &KeyVersionId, cipher: &StoreCipher) -> Result<KeyMaterial> {
        let stored = self.stored(id).ok_or_else(|| destroyed(id))?;
        cipher.decrypt(&EnvelopeKind::PrivateKey(id.to_string()), &stored.ciphertext)
    }

    fn decrypt<'a>(
        &self,
        stored: &'a StoredPrivateKey,
        version: NonZeroU32,
        cipher: &StoreCipher,
        backends: &Backends,
    ) -> Result<&'a Arc<dyn PrivateKey>> {
        if let Some(key) = stored.decrypted.get() {
            return Ok(key);
        }
        let id = self.record.key.version(version);
        let algorithm = self.record.key.algorithm();
        let material = cipher.decrypt(&EnvelopeKind::PrivateKey(id.to_string()), &stored.ciphertext)?;
        let key = backends.find(&self.record.backend, algorithm)?.load(algorithm, &material)?;
        if !self.version(&id)?.is_of(&*key)? {
            return Err(KmsError::corrupt(format!("the private key of {id} does not match its record")));
        }
        Ok(stored.decrypted.get_or_init(|| key))
    }
}

fn destroyed(id: &KeyVersionId) -> KmsError {
    KmsError::new(Code::KeyDestroyed, format!("the private key of {id} was destroyed"))
}

/// A keystore's keys as they were at one moment, for reading only: see
/// [`Keystore::snapshot`](crate::Keystore::snapshot).
///
/// It does not sign or decapsulate, because somebody may have disabled or replaced the key since
/// then.
pub struct Snapshot {
    index: Index,
}

impl Snapshot {
    pub(super) fn new(index: Index) -> Self {
        Self { index }
    }

    pub(super) fn into_index(self) -> Index {
        self.index
    }

    /// As [`Keystore::attest`](crate::Keystore::attest).
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn attest(&self, key_id: &KeyId) -> Result<Attestation> {
        self.index.attest(key_id)
    }

    /// All keys, sorted by their names.
    pub fn list(&self) -> Vec<Attestation> {
        self.index.list()
    }

    /// The tenant's key with this label.
    pub fn find(&self, tenant: &Name, label: &Name) -> Option<KeyId> {
        self.index.find(tenant, label).cloned()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("keys", &self.index.len()).finish()
    }
}
