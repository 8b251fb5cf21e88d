//! The keystore: which keys there are, who may sign with them, and that nothing of it is lost.

mod load;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::attestation::{Attestation, KeyState};
use crate::backend::{self, KeyMaterial, SIGNATURE_LENGTH, Signer};
use crate::error::{Code, KmsError, Result};
use crate::id::{Algorithm, KeyFamily, KeyId, KeyRef, Name};
use crate::public_key::{PublicKey, Verdict};
use crate::record::{KeyRecord, StoreState, VersionRecord};
use crate::seal::{self, Place, Sealer};
use crate::signature;
use crate::store::{Change, STATE, Store, Table};
use crate::time::Timestamp;
use crate::unlock::{Unlock, UnlockMethod};

/// What [`Keystore::create_key`] is to make.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Whose key it is.
    pub tenant: Name,
    /// What it is for.
    pub purpose: Name,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// A name by which [`Keystore::find`] finds it; unique within the tenant.
    pub label: Option<Name>,
}

/// A signature and the key version that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The key version.
    pub key: KeyId,
    /// R and S (RFC 8032, section 5.1.6).
    pub bytes: [u8; SIGNATURE_LENGTH],
}

/// Keys, in memory or in a sealed file.
///
/// All calls may be made from many threads at once. Signing and verifying share a lock that is held for a look-up only;
/// they never wait for the disk. Calls that change something are made one after the other, and what they changed is
/// on the disk when they return.
///
/// The file stays locked for other processes as long as the keystore lives: open it late, drop it early.
pub struct Keystore {
    index: RwLock<Index>,
    writer: Mutex<Writer>,
}

/// The keys that are there.
#[derive(Default)]
struct Index {
    keys: HashMap<KeyFamily, Arc<LoadedKey>>,
    /// By tenant and label.
    labels: HashMap<(Name, Name), KeyFamily>,
}

/// A key, ready for use. It is replaced as a whole when something of it changes.
struct LoadedKey {
    record: KeyRecord,
    /// What the record adds to the store's state.
    binding: [u8; 32],
    /// The head's private key.
    signer: Arc<dyn Signer>,
}

/// The store and what is needed to write to it.
struct Writer {
    store: Box<dyn Store>,
    sealer: Sealer,
    state: StoreState,
    /// The row in which the state is stored.
    sealed_state: Vec<u8>,
}

impl Keystore {
    /// An empty keystore in memory: nothing of it reaches the disk, and it is gone when it is dropped.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn in_memory() -> Self {
        load::in_memory().expect("the operating system gives random bytes")
    }

    /// Makes an empty keystore in a new file (mode 0600) that `unlock` opens. Its folder is made, with mode 0700, if it
    /// is missing. The file appears whole, or not at all.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] when there is something at `path`; those of reading a key file; those of writing.
    pub fn create(path: &Path, unlock: &Unlock) -> Result<Self> {
        load::create(path, unlock, seal::Argon2Cost::DEFAULT)
    }

    /// Opens a keystore and proves that all of it is as it was last written.
    ///
    /// Waits for up to five seconds when another process has it open.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Locked`], [`Code::WrongPassphrase`], [`Code::WrongKeyFile`],
    /// [`Code::WrongUnlockMethod`], [`Code::StoreTooNew`], [`Code::StoreDamaged`]; those of reading a key file:
    /// [`Code::KeyFileMode`], [`Code::KeyFileOwner`], [`Code::KeyFileType`], [`Code::MalformedKeyFile`].
    pub fn open(path: &Path, unlock: &Unlock) -> Result<Self> {
        load::open(path, unlock)
    }

    /// Which kind of secret opens the keystore at `path`.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Locked`], [`Code::StoreTooNew`], [`Code::StoreDamaged`].
    pub fn unlock_method(path: &Path) -> Result<UnlockMethod> {
        load::unlock_method(path)
    }

    /// Makes a key with its version 1.
    ///
    /// # Errors
    /// [`Code::LabelTaken`] when another key of the tenant has the label; those of writing.
    pub fn create_key(&self, new: NewKey) -> Result<KeyId> {
        let mut writer = self.writer();
        let label = new.label.clone().map(|label| (new.tenant.clone(), label));
        if let Some((tenant, name)) = &label
            && self.find(tenant, name)?.is_some()
        {
            return Err(KmsError::new(
                Code::LabelTaken,
                format!("the tenant {tenant} already has a key with the label {name}"),
            ));
        }
        let now = Timestamp::now();
        let family = KeyFamily::new(new.tenant, new.purpose, new.algorithm, new_uuid(now)?);
        let (material, signer) = generate(new.algorithm)?;
        let record = KeyRecord {
            key: family.clone(),
            label: new.label,
            state: KeyState::Enabled,
            versions: vec![VersionRecord { created: now, public_key: signer.public_key() }],
        };
        let id = family.version(record.head());
        let binding = writer.put(None, &record, Some((&id, &material)))?;
        self.publish(LoadedKey { record, binding, signer });
        Ok(id)
    }

    /// Signs `message` with the head of a key.
    ///
    /// The message is signed as it is. Messages that begin with [`signature::RESERVED_PREFIX`] are refused: a
    /// signature of one would be that of a signature file.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::NotHead`] for an older version,
    /// [`Code::KeyDisabled`], [`Code::ReservedMessage`].
    pub fn sign<'a>(&self, key: impl Into<KeyRef<'a>>, message: &[u8]) -> Result<Signature> {
        let (id, loaded) = self.head(key.into())?;
        if message.starts_with(signature::RESERVED_PREFIX) {
            return Err(KmsError::new(
                Code::ReservedMessage,
                "the message begins like what a signature file signs; sign it as a file or as a message statement",
            ));
        }
        Ok(Signature { bytes: loaded.signer.sign(message)?, key: id })
    }

    /// Signs what `message` makes of the head's id and public key, which are settled first. Whatever it makes begins
    /// with [`signature::RESERVED_PREFIX`].
    pub(crate) fn sign_statement(
        &self,
        key: KeyRef<'_>,
        message: impl FnOnce(&KeyId, &PublicKey) -> Vec<u8>,
    ) -> Result<Signature> {
        let (id, loaded) = self.head(key)?;
        let message = message(&id, &loaded.signer.public_key());
        Ok(Signature { bytes: loaded.signer.sign(&message)?, key: id })
    }

    /// The head of a key, if it may sign.
    fn head(&self, key: KeyRef<'_>) -> Result<(KeyId, Arc<LoadedKey>)> {
        let loaded = self.key(key.family())?;
        let head = loaded.record.head();
        if let KeyRef::Exact(id) = key {
            loaded.version(id)?;
            if id.version() != head.get() {
                return Err(KmsError::new(
                    Code::NotHead,
                    format!("{id} is an older version and does not sign; version {head} does"),
                ));
            }
        }
        if loaded.record.state == KeyState::Disabled {
            let message = format!("the key {} is disabled; enable it to sign", key.family());
            return Err(KmsError::new(Code::KeyDisabled, message));
        }
        Ok((loaded.record.key.version(head), loaded))
    }

    /// Whether `signature` is one of `message` under exactly this version of a key: see [`PublicKey::verify`].
    ///
    /// A disabled key verifies as an enabled one does: what it signed remains signed.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`].
    pub fn verify(&self, key: &KeyId, message: &[u8], signature: &[u8]) -> Result<Verdict> {
        let loaded = self.key(key.family())?;
        let version = loaded.version(key)?;
        let backend = backend::for_algorithm(key.family().algorithm());
        Ok(backend.verify(&version.public_key, message, signature))
    }

    /// The public key of one version.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`].
    pub fn public_key(&self, key: &KeyId) -> Result<PublicKey> {
        Ok(self.key(key.family())?.version(key)?.public_key)
    }

    /// Makes the next version of a key, which is its head from now on. It is on the disk when this returns.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::KeyDisabled`], [`Code::VersionsExhausted`]; those of writing.
    pub fn rotate(&self, family: &KeyFamily) -> Result<KeyId> {
        let mut writer = self.writer();
        let old = self.key(family)?;
        if old.record.state == KeyState::Disabled {
            return Err(KmsError::new(
                Code::KeyDisabled,
                format!("the key {family} is disabled; enable it to rotate it"),
            ));
        }
        let head = old.record.head().checked_add(1).ok_or_else(|| {
            KmsError::new(
                Code::VersionsExhausted,
                format!("the key {family} has no number for another version"),
            )
        })?;
        let (material, signer) = generate(family.algorithm())?;
        let mut record = old.record.clone();
        // A clock that was put back does not make a version older than the one before it.
        let created =
            record.versions.last().map_or(Timestamp::now(), |last| last.created.max(Timestamp::now()));
        record.versions.push(VersionRecord { created, public_key: signer.public_key() });
        let id = family.version(head);
        let binding = writer.put(Some(&old), &record, Some((&id, &material)))?;
        self.publish(LoadedKey { record, binding, signer });
        Ok(id)
    }

    /// All that may be known of a key.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn attest(&self, family: &KeyFamily) -> Result<Attestation> {
        Ok(Attestation::from(&self.key(family)?.record))
    }

    /// All keys, sorted by their names.
    ///
    /// # Errors
    /// None today; a store on another machine may fail.
    pub fn list(&self) -> Result<Vec<Attestation>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let mut keys: Vec<_> = index.keys.values().map(Arc::clone).collect();
        drop(index);
        keys.sort_unstable_by(|a, b| a.record.key.cmp(&b.record.key));
        Ok(keys.iter().map(|key| Attestation::from(&key.record)).collect())
    }

    /// The key of a tenant that has the label.
    ///
    /// # Errors
    /// None today; a store on another machine may fail.
    pub fn find(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        Ok(index.labels.get(&(tenant.clone(), label.clone())).cloned())
    }

    /// Makes a key sign no more, until it is enabled. What it signed still verifies. Does nothing to a disabled key.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`]; those of writing.
    pub fn disable(&self, family: &KeyFamily) -> Result<()> {
        self.set_state(family, KeyState::Disabled)
    }

    /// Makes a disabled key sign again. Does nothing to an enabled one.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`]; those of writing.
    pub fn enable(&self, family: &KeyFamily) -> Result<()> {
        self.set_state(family, KeyState::Enabled)
    }

    fn set_state(&self, family: &KeyFamily, state: KeyState) -> Result<()> {
        let mut writer = self.writer();
        let old = self.key(family)?;
        if old.record.state == state {
            return Ok(());
        }
        let record = KeyRecord { state, ..old.record.clone() };
        let binding = writer.put(Some(&old), &record, None)?;
        self.publish(LoadedKey { record, binding, signer: Arc::clone(&old.signer) });
        Ok(())
    }

    /// A panic while a lock is held leaves nothing half-changed: keys are replaced as a whole, and the store compares
    /// its state before each change.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, family: &KeyFamily) -> Result<Arc<LoadedKey>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.keys.get(family).map(Arc::clone).ok_or_else(|| {
            KmsError::new(Code::KeyNotFound, format!("there is no key {family} in this keystore"))
        })
    }

    fn publish(&self, key: LoadedKey) {
        self.index.write().unwrap_or_else(PoisonError::into_inner).insert(key);
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Keystore").field("keys", &index.keys.len()).finish_non_exhaustive()
    }
}

impl Index {
    fn insert(&mut self, key: LoadedKey) {
        let family = key.record.key.clone();
        if let Some(label) = &key.record.label {
            self.labels.insert((family.tenant().clone(), label.clone()), family.clone());
        }
        self.keys.insert(family, Arc::new(key));
    }
}

impl LoadedKey {
    fn version(&self, id: &KeyId) -> Result<&VersionRecord> {
        self.record.version(id.version()).ok_or_else(|| {
            let head = self.record.head();
            KmsError::new(Code::UnknownVersion, format!("there is no {id}: the newest version is {head}"))
        })
    }
}

impl Writer {
    /// Writes a record, in place of an old one, with a private key if there is a new one; returns what the record
    /// adds to the store's state.
    fn put(
        &mut self,
        old: Option<&LoadedKey>,
        record: &KeyRecord,
        private_key: Option<(&KeyId, &KeyMaterial)>,
    ) -> Result<[u8; 32]> {
        let family = record.key.to_string();
        let sealed = self.sealer.seal(Place::KeyRecord(family.clone()), &record.to_bytes())?;
        let binding = self.sealer.bind(&sealed);
        let mut state = self.state;
        state.generation += 1;
        state.replace(old.map(|old| &old.binding), &binding);
        let sealed_state = self.sealer.seal(Place::StoreState, &state.to_bytes())?;
        let mut rows =
            vec![(Table::Records, family, sealed), (Table::Meta, STATE.to_owned(), sealed_state.clone())];
        if let Some((id, material)) = private_key {
            let id = id.to_string();
            let sealed = self.sealer.seal(Place::PrivateKey(id.clone()), material)?;
            rows.push((Table::PrivateKeys, id, sealed));
        }
        self.store.commit(Change { expected_state: &self.sealed_state, rows })?;
        (self.state, self.sealed_state) = (state, sealed_state);
        Ok(binding)
    }
}

/// A new private key: what is to be sealed, and the key ready to sign.
fn generate(algorithm: Algorithm) -> Result<(KeyMaterial, Arc<dyn Signer>)> {
    let backend = backend::for_algorithm(algorithm);
    let material = backend.generate()?;
    let signer = backend.load(&material)?.into();
    Ok((material, signer))
}

/// A version 7 UUID (RFC 9562, section 5.7).
fn new_uuid(now: Timestamp) -> Result<Uuid> {
    let mut random = [0; 10];
    seal::random(&mut random)?;
    Ok(uuid::Builder::from_unix_timestamp_millis(now.unix_millis(), &random).into_uuid())
}

/// serde as the text form of the key and base64.
impl Serialize for Signature {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SignatureText { key: self.key.clone(), signature: crate::encoding::base64(&self.bytes) }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SignatureText { key, signature } = SignatureText::deserialize(deserializer)?;
        match crate::encoding::from_base64(&signature) {
            Some(bytes) => Ok(Self { key, bytes }),
            None => Err(serde::de::Error::custom("a signature is the base64 of 64 bytes")),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SignatureText {
    key: KeyId,
    signature: String,
}
