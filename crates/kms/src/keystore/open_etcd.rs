//! Making and opening a keystore in an etcd cluster.

use super::handle::Keystore;
use super::load;
use super::open::{new_rows, unseal};
use super::options::KeystoreOptions;
use crate::error::{Code, KmsError, Result};
use crate::seal::{Unlock, UnlockMethod};
use crate::store::etcd::{EtcdOptions, EtcdStore};
use crate::store::{Rows, STATE, Store as _};

impl KeystoreOptions {
    /// As [`Keystore::create_etcd`].
    ///
    /// # Errors
    /// Those of [`Keystore::create_etcd`].
    pub fn create_etcd(&self, etcd: &EtcdOptions, unlock: &Unlock) -> Result<Keystore> {
        create(etcd, unlock, self)
    }

    /// As [`Keystore::open_etcd`].
    ///
    /// # Errors
    /// Those of [`Keystore::open_etcd`].
    pub fn open_etcd(&self, etcd: &EtcdOptions, unlock: &Unlock) -> Result<Keystore> {
        open(etcd, unlock, self)
    }
}

impl Keystore {
    /// Makes an empty keystore in an etcd cluster that `unlock` opens.
    ///
    /// etcd sees only sealed rows. Its nodes, and anyone who may write to it, can destroy the keystore, and can put all of it back to
    /// an older state while nobody has it open: see `spec/keystore.md`.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] when there is anything under the prefix;
    /// [`Code::InvalidArgument`] for options that make no sense;
    /// [`Code::Unavailable`], [`Code::OutcomeUnknown`],
    /// [`Code::PermissionDenied`], [`Code::StorageFull`]; those
    /// of reading a key file.
    pub fn create_etcd(etcd: &EtcdOptions, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().create_etcd(etcd, unlock)
    }

    /// Opens a keystore in an etcd cluster and proves that all of it is as it was last written. Any number of processes
    /// may have it open at a time: each change is made to what its maker saw, or not at all, and is seen by the others
    /// within moments ([`Keystore::catch_up`]).
    ///
    /// Signing and verifying ask nobody: they go on with the keys as they were last seen when the cluster is out of reach,
    /// except that a key that counts its uses stops when those that this process reserved are used up. Changes then fail
    /// with [`Code::Unavailable`] within a few times the timeout of the options. A change to
    /// which the answer did not come, and of which it cannot be found out whether it was made, fails with
    /// [`Code::OutcomeUnknown`]. A key whose record would not fit into a request, or which
    /// has too many versions to destroy at once, fails with [`Code::TooLarge`].
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Unavailable`],
    /// [`Code::PermissionDenied`], [`Code::InvalidArgument`];
    /// those of [`Keystore::open`] but `Locked`.
    pub fn open_etcd(etcd: &EtcdOptions, unlock: &Unlock) -> Result<Self> {
        KeystoreOptions::default().open_etcd(etcd, unlock)
    }

    /// Which kind of secret opens a keystore in an etcd cluster.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Unavailable`],
    /// [`Code::StoreTooNew`], [`Code::StoreDamaged`].
    pub fn unlock_method_etcd(etcd: &EtcdOptions) -> Result<UnlockMethod> {
        unlock_method(etcd)
    }
}

fn create(etcd: &EtcdOptions, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let (rows, sealer) = new_rows(&*unlock.provider()?, &*options.guard)?;
    let store = EtcdStore::create(etcd, &rows)?;
    unseal(Box::new(store), rows, sealer, options)
}

fn open(etcd: &EtcdOptions, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
    let (store, rows) = read(etcd)?;
    let sealer = load::open_root(&rows, unlock)?;
    unseal(Box::new(store), rows, sealer, options)
}

fn unlock_method(etcd: &EtcdOptions) -> Result<UnlockMethod> {
    Ok(load::protection(&read(etcd)?.1)?.method())
}

fn read(etcd: &EtcdOptions) -> Result<(EtcdStore, Rows)> {
    let mut store = EtcdStore::open(etcd)?;
    let rows = store.load()?;
    if rows.meta.contains_key(STATE) {
        return Ok((store, rows));
    }
    let prefix = &etcd.prefix;
    Err(KmsError::new(Code::NotFound, format!("there is no keystore {prefix} in this etcd cluster")))
}
