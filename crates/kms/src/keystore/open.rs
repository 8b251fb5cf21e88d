//! Making a keystore, and opening one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::Keystore;
use super::KeystoreOptions;
use super::changes::Writer;
use super::index::Snapshot;
use super::{follow, load, maintenance};
use crate::encryption::{
    EnvelopeKind, KeyProvider, RootKey, StoreCipher, Unlock, UnlockMethod, WrappedRootKey,
};
use crate::error::{Code, Result};
use crate::files;
use crate::record::StoreState;
use crate::rollback::{RollbackGuard, StoreGuard};
use crate::store::{
    EmbeddedStore, FORMAT, MemoryStore, Meta, PROTECTION, PackedRows, ReadOnlyStore, ReadRows as _, Rows,
    STATE, Store, run_in_parallel,
};

impl Keystore {
    /// An empty keystore in memory. Nothing of it reaches the disk, and dropping it deletes it.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub fn in_memory() -> Result<Self> {
        KeystoreOptions::default().in_memory()
    }

    /// Creates an empty keystore in a new file (mode 0600) that `unlock` opens. A missing folder is
    /// created with mode 0700. The file appears complete, or not at all.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyFile, Keystore, NewKey, Unlock};
    ///
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let (path, key_file) = (folder.path().join("keys.redb"), folder.path().join("secret"));
    /// KeyFile::create(&key_file)?;
    /// let unlock = Unlock::KeyFile(key_file);
    /// let keystore = Keystore::create(&path, &unlock)?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// drop(keystore);
    ///
    /// // Readers take a snapshot, and lock nothing.
    /// assert_eq!(Keystore::snapshot(&path, &unlock)?.list().len(), 1);
    /// let keystore = Keystore::open(&path, &unlock)?;
    /// assert_eq!(keystore.sign(&key, b"a message")?.key, key);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if something exists at `path`; errors of reading a key file; errors
    /// of writing.
    pub fn create(path: &Path, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().create(path, unlock)
    }

    /// Opens a keystore and checks that all of it is as last written.
    ///
    /// It waits for up to twenty seconds if another process has it open.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Locked`], [`Code::WrongPassphrase`], [`Code::WrongKeyFile`],
    /// [`Code::WrongUnlockMethod`], [`Code::KeystoreTooNew`], [`Code::KeystoreCorrupt`]; errors of
    /// reading a key file: [`Code::KeyFileMode`], [`Code::KeyFileOwner`], [`Code::KeyFileType`],
    /// [`Code::MalformedKeyFile`].
    pub fn open(path: &Path, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().open(path, unlock)
    }

    /// The keys of the keystore at `path` at this moment, checked like [`Keystore::open`] does.
    ///
    /// It writes and syncs nothing, and needs only permission to read the file: it also works with
    /// a keystore on a read-only disk. The file is locked while it is read, only against writers.
    /// It waits for up to twenty seconds if another process has the keystore open for writing.
    ///
    /// # Errors
    /// The errors of [`Keystore::open`].
    pub fn snapshot(path: &Path, unlock: &Unlock) -> Result<Snapshot> {
        KeystoreOptions::default().snapshot(path, unlock)
    }

    /// Which kind of secret opens the keystore at `path`.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Locked`], [`Code::KeystoreTooNew`], [`Code::KeystoreCorrupt`].
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use bulla_kms::{Keystore, SecretString, Unlock, UnlockMethod};
    ///
    /// # fn open(path: &Path, ask: impl Fn() -> String) -> bulla_kms::Result<Keystore> {
    /// let unlock = match Keystore::unlock_method(path)? {
    ///     UnlockMethod::Passphrase => Unlock::Passphrase(SecretString::from(ask())),
    ///     _ => Unlock::KeyFile(path.with_extension("key")),
    /// };
    /// Keystore::open(path, &unlock)
    /// # }
    /// ```
    pub fn unlock_method(path: &Path) -> Result<UnlockMethod> {
        unlock_method(path)
    }
}

impl KeystoreOptions {
    /// As [`Keystore::in_memory`].
    ///
    /// # Errors
    /// The errors of [`Keystore::in_memory`].
    pub fn in_memory(&self) -> Result<Keystore> {
        in_memory(self)
    }

    /// As [`Keystore::create`].
    ///
    /// # Errors
    /// The errors of [`Keystore::create`].
    pub fn create(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        create(path, unlock, self)
    }

    /// As [`Keystore::open`].
    ///
    /// # Errors
    /// The errors of [`Keystore::open`].
    pub fn open(&self, path: &Path, unlock: &Unlock) -> Result<Keystore> {
        open(path, unlock, self)
    }

    /// Like [`Keystore::snapshot`]. It asks the guard but tells it nothing, and records nothing.
    ///
    /// # Errors
    /// The errors of [`Keystore::snapshot`].
    pub fn snapshot(&self, path: &Path, unlock: &Unlock) -> Result<Snapshot> {
        view_store(path, unlock, self).map(|StoreView { loaded: (_, _, index), .. }| Snapshot::new(index))
    }

    /// Opens a keystore for writing only if `writes` says, of its keys, that the caller will change
    /// something. Otherwise the keystore is read as [`Keystore::snapshot`] does it, and the file is
    /// not locked afterwards: it signs and verifies with its keys as they are now, also from a
    /// read-only disk, and a change fails.
    ///
    /// A signature changes something if its key has a rotation policy.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Code, KeyFile, Keystore, KeystoreOptions, NewKey, RotationPolicy, Unlock};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let [path, key_file] = ["keystore", "key"].map(|name| folder.path().join(name));
    /// KeyFile::create(&key_file)?;
    /// let unlock = Unlock::KeyFile(key_file);
    /// let keystore = Keystore::create(&path, &unlock)?;
    /// let new = || NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    /// let key = keystore.create_key(new())?;
    /// drop(keystore);
    ///
    /// let options = KeystoreOptions::default();
    /// let keystore = options.open_as_needed(&path, &unlock, |keys| {
    ///     keys.attest(key.key_id()).is_ok_and(|key| key.rotation != RotationPolicy::default())
    /// })?;
    /// keystore.sign(&key, b"a message")?;
    /// assert_eq!(keystore.create_key(new()).unwrap_err().code, Code::PermissionDenied);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Keystore::open`]; later, for a change to a keystore that is not open for
    /// writing, [`Code::PermissionDenied`].
    pub fn open_as_needed(
        &self,
        path: &Path,
        unlock: &Unlock,
        writes: impl FnOnce(&Snapshot) -> bool,
    ) -> Result<Keystore> {
        let StoreView { rows, cipher, loaded: (state, encrypted_state, index) } =
            view_store(path, unlock, self)?;
        let snapshot = Snapshot::new(index);
        if writes(&snapshot) {
            // The root key is known, so a passphrase is not derived twice.
            let mut store = EmbeddedStore::open(path)?;
            let rows = store.load()?;
            return load_keystore(Box::new(store), rows, cipher, self);
        }
        let loaded = (state, encrypted_state, snapshot.into_index());
        Ok(assemble(Box::new(ReadOnlyStore::new(rows)), cipher, loaded, self))
    }
}

fn in_memory(options: &KeystoreOptions) -> Result<Keystore> {
    let cipher = StoreCipher::new(&RootKey::random()?);
    let guard = Arc::new(StoreGuard::default());
    let rows = Rows { meta: BTreeMap::from([empty_state(&cipher, &*guard)?]), ..Rows::default() };
    let options = KeystoreOptions { guard, ..options.clone() };
    load_keystore(Box::new(MemoryStore::new(rows.clone())), rows, cipher, &options)
}

fn create(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    if path.symlink_metadata().is_ok() {
        return Err(files::already_exists(path));
    }
    let (rows, cipher) = new_rows(&*unlock.provider()?, &*options.guard)?;
    let store = EmbeddedStore::create(path, &rows)?;
    load_keystore(Box::new(store), rows, cipher, options)
}

/// The rows of a store without keys, and the cipher that encrypts them.
pub(super) fn new_rows(provider: &dyn KeyProvider, guard: &dyn RollbackGuard) -> Result<(Rows, StoreCipher)> {
    let (protection, root) = WrappedRootKey::generate(provider)?;
    let cipher = StoreCipher::new(&root);
    let mut meta = BTreeMap::from([
        (FORMAT.to_owned(), load::STORE_FORMAT.to_be_bytes().to_vec()),
        (PROTECTION.to_owned(), protection.to_bytes()),
        empty_state(&cipher, guard)?,
    ]);
    if let (_, name, Some(value)) = maintenance::guard_row(guard) {
        meta.insert(name, value);
    }
    Ok((Rows { meta, ..Rows::default() }, cipher))
}

fn empty_state(cipher: &StoreCipher, guard: &dyn RollbackGuard) -> Result<(String, Vec<u8>)> {
    let state = StoreState {
        changed: guard.time()?,
        guard: maintenance::guard_digest(guard),
        ..StoreState::default()
    };
    Ok((STATE.to_owned(), cipher.encrypt(EnvelopeKind::StoreState, &state.to_bytes())?))
}

/// The root key is opened first, from a read-only look at the file: a wrong secret or a newer
/// format leaves the file unchanged, and no other process waits while a key is derived from the
/// passphrase.
fn open(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let rows = EmbeddedStore::peek(path)?;
    let cipher = load::open_root(rows.meta(), unlock)?;
    // Opening the database checks the whole file, which takes long for a large one. Decrypt its
    // rows meanwhile.
    let (loaded, store) = run_in_parallel(|| EmbeddedStore::open(path), || load::index(&cipher, &rows, None));
    let mut store = store?;
    // Each change replaces the state, so nothing has changed since that look.
    if store.state()?.as_ref() == rows.meta().get(STATE) {
        return begin(Box::new(store), rows.meta(), cipher, loaded?, options);
    }
    let rows = store.load()?;
    load_keystore(Box::new(store), rows, cipher, options)
}

fn unlock_method(path: &Path) -> Result<UnlockMethod> {
    Ok(load::protection(&EmbeddedStore::peek_meta(path)?)?.method())
}

/// A store as it was read once, and checked.
struct StoreView {
    rows: PackedRows,
    cipher: StoreCipher,
    loaded: load::Loaded,
}

/// The current keys, verified as [`open`] does it. The guard is asked, but told nothing.
fn view_store(path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<StoreView> {
    let mut rows = EmbeddedStore::peek(path)?;
    let cipher = load::open_root(rows.meta(), unlock)?;
    loop {
        let loaded = load::index(&cipher, &rows, None)?;
        let (state, encrypted_state, _) = &loaded;
        maintenance::check_guard_name(state, rows.meta(), &*options.guard)?;
        match options.guard.check(&state.mark(cipher.store_name(), encrypted_state)) {
            Ok(()) => return Ok(StoreView { rows, cipher, loaded }),
            // Since the store was read, another process may have changed it and told the guard.
            Err(error) if error.code == Code::RolledBack => {
                rows = EmbeddedStore::peek(path)?;
                if rows.meta().get(STATE) == Some(encrypted_state) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Opens any given store.
#[cfg(test)]
pub(super) fn open_store(mut store: Box<dyn Store>, unlock: &Unlock) -> Result<Keystore> {
    let rows = store.load()?;
    let cipher = load::open_root(rows.meta(), unlock)?;
    load_keystore(store, rows, cipher, &KeystoreOptions::default())
}

/// The keystore on a store with these rows.
pub(super) fn load_keystore(
    store: Box<dyn Store>,
    rows: Rows,
    cipher: StoreCipher,
    options: &KeystoreOptions,
) -> Result<Keystore> {
    let loaded = load::index(&cipher, &rows, None)?;
    begin(store, &rows.meta, cipher, loaded, options)
}

/// The keystore on a store with these rows in [`Table::Meta`](crate::store::Table::Meta), whose
/// other rows were loaded already.
fn begin(
    mut store: Box<dyn Store>,
    meta: &Meta,
    cipher: StoreCipher,
    (state, encrypted_state, index): load::Loaded,
    options: &KeystoreOptions,
) -> Result<Keystore> {
    maintenance::check_guard_name(&state, meta, &*options.guard)?;
    let mark = state.mark(cipher.store_name(), &encrypted_state);
    options.guard.check(&mark)?;
    options.guard.advance(&mark)?;
    let changed = store.watch();
    let keystore = assemble(store, cipher, (state, encrypted_state, index), options);
    if let Some(changed) = changed {
        follow::follow(&keystore, changed)?;
    }
    Ok(keystore)
}

fn assemble(
    store: Box<dyn Store>,
    cipher: StoreCipher,
    (state, encrypted_state, index): load::Loaded,
    options: &KeystoreOptions,
) -> Keystore {
    let file = store.file();
    Keystore {
        index: Arc::new(ArcSwap::from_pointee(index)),
        writer: Arc::new(Mutex::new(Writer { store, state, encrypted_state })),
        cipher: Arc::new(cipher),
        backends: Arc::new(options.backends.clone()),
        guard: Arc::clone(&options.guard),
        observers: Arc::new(options.into()),
        actor: options.actor.clone(),
        approved: None,
        handles: Some(Arc::default()),
        file,
        lease: None,
        change_listener: Arc::default(),
        long_rotation: Arc::default(),
    }
}
