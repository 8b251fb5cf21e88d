//! Changes of the store as a whole: what opens it, and that it is still looked after.

use super::handle::Keystore;
use super::load;
use super::observe::Subject;
use super::writer::Writer;
use crate::audit_log::Operation;
use crate::error::{Code, KmsError, Result};
use crate::seal::{Protection, Unlock};
use crate::store::{PROTECTION, Row, Table};

impl Keystore {
    /// Puts another secret in the place of the one that opens the store: another passphrase, key file or provider. It
    /// takes one change of the store, so that after a kill at any moment one of the two secrets opens it, and never
    /// both. No key is touched, and other processes that have the store open go on.
    ///
    /// The root key under the secret stays the same: who has an older copy of the store and the old secret opens that copy,
    /// and with its root key what is sealed later too. After the old secret became known to somebody who may have a copy,
    /// restore a backup, which makes a new root key, and rotate the keys.
    ///
    /// # Errors
    /// Those of opening with `old`: [`Code::WrongPassphrase`],
    /// [`Code::WrongKeyFile`], [`Code::WrongIdentity`],
    /// [`Code::WrongUnlockMethod`]; [`Code::NotFound`] for a keystore
    /// in memory, which no secret opens; those of `new`; those of writing, and of recording a change that
    /// then stands.
    pub fn reseal(&self, old: &Unlock, new: &Unlock) -> Result<()> {
        self.observed(Subject::store(Operation::Reseal), || self.change_secret(old, new))
    }

    fn change_secret(&self, old: &Unlock, new: &Unlock) -> Result<()> {
        let (old, new) = (old.provider()?, new.provider()?);
        self.change_store(|writer| {
            let rows = writer.store.load()?;
            if !rows.meta.contains_key(PROTECTION) {
                let message = "a keystore in memory is opened by no secret";
                return Err(KmsError::new(Code::NotFound, message));
            }
            let root = load::protection(&rows)?.open(&*old)?;
            let protection = Protection::of(&root, &*new)?;
            Ok(vec![(Table::Meta, PROTECTION.to_owned(), Some(protection.to_bytes()))])
        })
    }

    /// Marks the store as looked after at this time, and changes nothing else: for a
    /// [`TimeGuard`](crate::rollback::TimeGuard), which refuses a store that was not changed for long.
    ///
    /// # Errors
    /// Those of writing and of the guard.
    pub fn refresh(&self) -> Result<()> {
        self.change_store(|_| Ok(Vec::new()))
    }

    /// Writes rows beside the records.
    fn change_store(&self, mut rows: impl FnMut(&mut Writer) -> Result<Vec<Row>>) -> Result<()> {
        let written = self.persist(|writer, index| {
            let rows = rows(writer)?;
            writer.commit_rows(&self.sealer, writer.state, rows, self.guard.time()?)?;
            Ok(Some((index.clone(), ())))
        });
        written.map(drop)
    }
}
