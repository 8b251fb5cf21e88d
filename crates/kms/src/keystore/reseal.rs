//! Changes of the whole store: the secret that opens it, and the mark that it is still maintained.

use super::handle::Keystore;
use super::load;
use super::observe::Subject;
use super::writer::Writer;
use crate::audit_log::AuditOperation;
use crate::encryption::{Unlock, WrappedRootKey};
use crate::error::{Code, KmsError, Result};
use crate::store::{PROTECTION, Row, Table};

impl Keystore {
    /// Replaces the secret that opens the store with another passphrase, key file or provider. It
    /// is a single change of the store: if the process is killed at any moment, exactly one of the
    /// two secrets opens the store afterwards. No key changes, and other processes that have the
    /// store open continue.
    ///
    /// The root key under the secret stays the same. Somebody with an older copy of the store and
    /// the old secret can open that copy, and with its root key also everything that is sealed
    /// later. If the old secret became known to somebody who may have a copy, restore a backup,
    /// which makes a new root key, and rotate the keys.
    ///
    /// # Errors
    /// The errors of opening with `old`: [`Code::WrongPassphrase`], [`Code::WrongKeyFile`],
    /// [`Code::WrongDecryptionKey`], [`Code::WrongUnlockMethod`]; [`Code::NotFound`] for a keystore in
    /// memory, which no secret opens; the errors of `new`; errors of writing; errors of recording,
    /// after which the change is still made.
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
            let root = load::protection(&rows)?.unwrap(&*old)?;
            let protection = WrappedRootKey::wrap(&root, &*new)?;
            Ok(vec![(Table::Meta, PROTECTION.to_owned(), Some(protection.to_bytes()))])
        })
    }

    /// Marks the store as maintained at this time, and changes nothing else. Use it with a
    /// [`TimeGuard`](crate::rollback::TimeGuard), which refuses a store that did not change for a
    /// long time.
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
