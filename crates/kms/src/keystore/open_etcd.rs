//! Making and opening a keystore in an etcd cluster.

use super::Keystore;
use super::KeystoreOptions;
use super::load;
use super::open::{load_keystore, new_rows};
use crate::encryption::{Unlock, UnlockMethod};
use crate::error::{Code, KmsError, Result};
use crate::store::etcd::{EtcdOptions, EtcdStore};
use crate::store::{Rows, STATE, Store as _};

impl KeystoreOptions {
    /// As [`Keystore::create_etcd`].
    ///
    /// # Errors
    /// The errors of [`Keystore::create_etcd`].
    pub fn create_etcd(&self, etcd: &EtcdOptions, unlock: &Unlock) -> Result<Keystore> {
        create(etcd, unlock, self)
    }

    /// As [`Keystore::open_etcd`].
    ///
    /// # Errors
    /// The errors of [`Keystore::open_etcd`].
    pub fn open_etcd(&self, etcd: &EtcdOptions, unlock: &Unlock) -> Result<Keystore> {
        open(etcd, unlock, self)
    }
}

impl Keystore {
    /// Creates an empty keystore in an etcd cluster. `unlock` opens the keystore.
    ///
    /// etcd sees only encrypted rows. Its nodes, and anyone who may write to it, can destroy the
    /// keystore, and can put all of it back to an older state while nobody has it open: see
    /// `spec/keystore.md`.
    ///
    /// ```no_run
    /// use bulla_kms::{EtcdOptions, Keystore, KeystoreOptions, Unlock, UnlockMethod};
    ///
    /// let etcd = EtcdOptions::new(["http://localhost:2379"], "bulla/keystore/");
    /// let unlock = Unlock::KeyFile("/etc/bulla/keystore.key".into());
    /// drop(Keystore::create_etcd(&etcd, &unlock)?);
    ///
    /// // On each machine:
    /// assert_eq!(Keystore::unlock_method_etcd(&etcd)?, UnlockMethod::KeyFile);
    /// let keystore = KeystoreOptions::default().open_etcd(&etcd, &unlock)?;
    /// assert!(keystore.list()?.is_empty());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if there is anything under the prefix;
    /// [`Code::InvalidArgument`] for invalid options;
    /// [`Code::Unavailable`], [`Code::OutcomeUnknown`],
    /// [`Code::PermissionDenied`], [`Code::StorageFull`]; those
    /// of reading a key file.
    pub fn create_etcd(etcd: &EtcdOptions, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().create_etcd(etcd, unlock)
    }

    /// Opens a keystore in an etcd cluster and checks that all of it is as last written. Any number
    /// of processes may have it open at a time. A change takes effect only if the store is still as
    /// its author saw it, and the other processes see the change within moments
    /// ([`Keystore::catch_up`]).
    ///
    /// Signing and verifying send no requests. If the cluster is out of reach, they continue with
    /// the keys as last seen, except that a key with a limited number of signatures stops when this
    /// process has used up its reservation. Changes then fail with [`Code::Unavailable`] within a
    /// few times the timeout in the options. If no answer to a change arrives, and it cannot be
    /// found out whether the change was made, the change fails with [`Code::OutcomeUnknown`]. A
    /// change fails with [`Code::TooLarge`] if a key's record would not fit into a request, or the
    /// key has too many versions to destroy at once.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Unavailable`],
    /// [`Code::PermissionDenied`], [`Code::InvalidArgument`];
    /// the errors of [`Keystore::open`] except `Locked`.
    pub fn open_etcd(etcd: &EtcdOptions, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().open_etcd(etcd, unlock)
    }

    /// Which kind of secret opens a keystore in an etcd cluster.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Unavailable`],
    /// [`Code::KeystoreTooNew`], [`Code::KeystoreCorrupt`].
    pub fn unlock_method_etcd(etcd: &EtcdOptions) -> Result<UnlockMethod> {
        unlock_method(etcd)
    }
}

fn create(etcd: &EtcdOptions, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let (rows, cipher) = new_rows(&*unlock.provider()?, &*options.guard)?;
    let store = EtcdStore::create(etcd, &rows)?;
    load_keystore(Box::new(store), rows, cipher, options)
}

fn open(etcd: &EtcdOptions, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let (store, rows) = read(etcd)?;
    let cipher = load::open_root(&rows.meta, unlock)?;
    load_keystore(Box::new(store), rows, cipher, options)
}

fn unlock_method(etcd: &EtcdOptions) -> Result<UnlockMethod> {
    Ok(load::protection(&complete(etcd, EtcdStore::open(etcd)?.meta()?)?.meta)?.method())
}

fn read(etcd: &EtcdOptions) -> Result<(EtcdStore, Rows)> {
    let mut store = EtcdStore::open(etcd)?;
    let rows = store.load()?;
    Ok((store, complete(etcd, rows)?))
}

/// The rows, if they are those of a keystore.
fn complete(etcd: &EtcdOptions, rows: Rows) -> Result<Rows> {
    if rows.meta.contains_key(STATE) {
        return Ok(rows);
    }
    let prefix = &etcd.prefix;
    Err(KmsError::new(Code::NotFound, format!("there is no keystore {prefix} in this etcd cluster")))
}
