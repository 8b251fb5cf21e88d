//! Changes of the whole store: the secret that opens it, and the mark that it is still maintained.

use std::path::Path;

use super::Keystore;
use super::changes::Writer;
use super::changes::unguarded;
use super::load;
use super::observe::Subject;
use crate::audit_log::AuditOperation;
use crate::encryption::{Unlock, WrappedRootKey};
use crate::error::{Code, KmsError, Result};
use crate::record::StoreState;
use crate::rollback::RollbackGuard;
use crate::store::{EmbeddedStore, GUARD, Meta, PROTECTION, Row, Table};

impl Keystore {
    /// Replaces the secret that opens the store with another passphrase, key file or provider. It
    /// is a single change of the store: if the process is killed at any moment, exactly one of the
    /// two secrets opens the store afterwards. No key changes, and other processes that have the
    /// store open continue.
    ///
    /// The root key under the secret stays the same. Somebody with an older copy of the store and
    /// the old secret can open that copy, and with its root key also everything that is encrypted
    /// later. If the old secret became known to somebody who may have a copy, restore a backup,
    /// which makes a new root key, and rotate the keys.
    ///
    /// # Errors
    /// The errors of opening with `old`: [`Code::WrongPassphrase`], [`Code::WrongKeyFile`],
    /// [`Code::WrongDecryptionKey`], [`Code::WrongUnlockMethod`]; [`Code::NotFound`] for a keystore
    /// in memory, which no secret opens; the errors of `new`; errors of writing; errors of
    /// recording, after which the change is still made.
    ///
    /// ```
    /// use bulla_kms::{Keystore, SecretString, Unlock};
    ///
    /// # fn change(path: &std::path::Path, old: &str, new: &str) -> bulla_kms::Result<()> {
    /// let old = Unlock::Passphrase(SecretString::from(old));
    /// let new = Unlock::Passphrase(SecretString::from(new));
    /// Keystore::open(path, &old)?.rekey(&old, &new)
    /// # }
    /// ```
    pub fn rekey(&self, old: &Unlock, new: &Unlock) -> Result<()> {
        self.observed(Subject::store(AuditOperation::Rekey), || self.change_secret(old, new))
    }

    fn change_secret(&self, old: &Unlock, new: &Unlock) -> Result<()> {
        let (old, new) = (old.provider()?, new.provider()?);
        self.change_store(|writer| {
            let rows = writer.store.load()?;
            if !rows.meta.contains_key(PROTECTION) {
                let message = "a keystore in memory has no secret";
                return Err(KmsError::new(Code::NotFound, message));
            }
            let root = load::protection(&rows.meta)?.unwrap(&*old)?;
            let protection = WrappedRootKey::wrap(&root, &*new)?;
            Ok(vec![(Table::Meta, PROTECTION.to_owned(), Some(protection.to_bytes()))])
        })
    }

    /// Marks the store as maintained at this time, and changes nothing else. Use it with a
    /// [`TimeGuard`](crate::rollback::TimeGuard), which refuses a store that did not change for a
    /// long time.
    ///
    /// ```
    /// let keystore = bulla_kms::Keystore::in_memory()?;
    /// let before = keystore.revision();
    /// // Once a day, for example.
    /// keystore.refresh()?;
    /// assert!(keystore.revision() > before);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// Errors of writing and of the guard.
    pub fn refresh(&self) -> Result<()> {
        self.change_store(|_| Ok(Vec::new()))
    }

    /// Writes rows other than records.
    fn change_store(&self, mut rows: impl FnMut(&mut Writer) -> Result<Vec<Row>>) -> Result<()> {
        let written = self.persist(|writer, index| {
            let rows = rows(writer)?;
            writer.commit_rows(&self.cipher, writer.state, rows, self.guard.time()?)?;
            Ok(Some((index.clone(), ())))
        });
        written.map(drop)
    }
}

impl Keystore {
    /// The name of the rollback guard that the keystore at `path` remembers, if it remembers one.
    /// Nothing proves the name before the keystore is opened with that guard: anyone who may write
    /// to the file may have changed it, which is detected then.
    ///
    /// # Errors
    /// The errors of [`Keystore::unlock_method`].
    pub fn guard_name(path: &Path) -> Result<Option<String>> {
        Ok(guard_name(&EmbeddedStore::peek_meta(path)?)?.map(str::to_owned))
    }

    /// Gives the store another rollback guard, and accepts the store in its present state: make
    /// sure that it is not an older copy. The store always forgets its former guard. It remembers
    /// the new one if that is a [`NamedGuard`](crate::rollback::NamedGuard). Afterwards, open it
    /// with the new guard.
    ///
    /// If the former guard is lost, open the store with another guard of the same name that accepts
    /// everything, for example a `NamedGuard` around a [`StoreGuard`](crate::rollback::StoreGuard).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use bulla_kms::rollback::{FileGuard, NamedGuard};
    /// use bulla_kms::{Code, KeyFile, Keystore, KeystoreOptions, Unlock};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (path, key, counter) = ["keystore", "key", "counter"].map(|name| folder.path().join(name)).into();
    /// KeyFile::create(&key)?;
    /// let unlock = Unlock::KeyFile(key);
    /// drop(Keystore::create(&path, &unlock)?);
    /// assert_eq!(Keystore::guard_name(&path)?, None);
    ///
    /// let guard = NamedGuard::new("file:counter", Arc::new(FileGuard::create(&counter)?))?;
    /// Keystore::open(&path, &unlock)?.set_guard(&guard)?;
    /// assert_eq!(Keystore::guard_name(&path)?.as_deref(), Some("file:counter"));
    ///
    /// // From now on, it opens with that guard only.
    /// assert_eq!(Keystore::open(&path, &unlock).unwrap_err().code, Code::GuardMismatch);
    /// KeystoreOptions::default().guard(Arc::new(guard)).open(&path, &unlock)?;
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of both guards; the new guard is asked before anything is written. Errors of
    /// writing.
    pub fn set_guard(self, guard: &dyn RollbackGuard) -> Result<()> {
        self.observed(Subject::store(AuditOperation::Guard), || {
            let mark = |writer: &Writer| writer.state.mark(self.cipher.store_name(), &writer.encrypted_state);
            guard.check(&mark(&self.writer()))?;
            self.persist(|writer, index| {
                let state = StoreState { guard: guard_digest(guard), ..writer.state };
                writer.commit_rows(&self.cipher, state, vec![guard_row(guard)], guard.time()?)?;
                Ok(Some((index.clone(), ())))
            })?;
            guard.advance(&mark(&self.writer())).map_err(unguarded)
        })
    }
}

/// The digest of a guard's name that the state contains.
pub(super) fn guard_digest(guard: &dyn RollbackGuard) -> Option<[u8; 32]> {
    guard.name().map(|name| bulla_blake3::hash(name.as_bytes()).into())
}

/// The row with a guard's name. Without a value, the row is deleted.
pub(super) fn guard_row(guard: &dyn RollbackGuard) -> Row {
    (Table::Meta, GUARD.to_owned(), guard.name().map(|name| name.as_bytes().to_vec()))
}

/// The name in the rows. It is not authenticated.
pub(super) fn guard_name(meta: &Meta) -> Result<Option<&str>> {
    let edited = |_| KmsError::corrupt("the name of the keystore's rollback guard is not text");
    meta.get(GUARD).map(|name| std::str::from_utf8(name).map_err(edited)).transpose()
}

/// Checks that `guard` is the one that the store remembers, if it remembers one.
///
/// # Errors
/// [`Code::GuardMismatch`]; [`Code::KeystoreCorrupt`] if the state binds another name.
pub(super) fn check_guard_name(state: &StoreState, meta: &Meta, guard: &dyn RollbackGuard) -> Result<()> {
    let name = guard_name(meta)?;
    if state.guard != name.map(|name| bulla_blake3::hash(name.as_bytes()).into()) {
        return Err(KmsError::corrupt("the keystore was edited: its rollback guard has another name"));
    }
    match name {
        Some(name) if guard.name() != Some(name) => Err(KmsError::new(
            Code::GuardMismatch,
            format!("the keystore has the rollback guard {name}: open it with that guard"),
        )),
        _ => Ok(()),
    }
}

/// An error if another process replaced the guard: this one must not continue with the old guard.
pub(super) fn check_guard_unchanged(old: &StoreState, new: &StoreState) -> Result<()> {
    if old.guard == new.guard {
        return Ok(());
    }
    let message = "another process changed the keystore's rollback guard: open the keystore again";
    Err(KmsError::new(Code::GuardMismatch, message))
}
