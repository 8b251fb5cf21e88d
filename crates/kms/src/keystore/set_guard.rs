//! Changing the rollback guard that a store remembers.

use std::path::Path;

use super::guard_name;
use super::handle::Keystore;
use super::observe::Subject;
use super::writer::Writer;
use crate::audit_log::Operation;
use crate::error::Result;
use crate::record::StoreState;
use crate::rollback::RollbackGuard;
use crate::store::EmbeddedStore;

impl Keystore {
    /// The name of the rollback guard that the keystore at `path` remembers, if it does. Nothing proves it before the keystore is
    /// opened with that guard: who may write to the file may have changed it, and is found out then.
    ///
    /// # Errors
    /// Those of [`Keystore::unlock_method`].
    pub fn guard_name(path: &Path) -> Result<Option<String>> {
        Ok(guard_name::name(&EmbeddedStore::peek(path)?)?.map(str::to_owned))
    }

    /// Gives the store another rollback guard, and accepts the store as it is now: make sure that it is no older copy. It remembers
    /// the guard if that is a [`NamedGuard`](crate::rollback::NamedGuard), and forgets the one that it had in any case. Afterwards it
    /// is to be opened with the new one.
    ///
    /// When the former guard is lost, open the store with another one of its name that accepts everything, such as a `NamedGuard` around
    /// a [`StoreGuard`](crate::rollback::StoreGuard).
    ///
    /// # Errors
    /// Those of either guard, of which the new one is asked before anything is written; those of writing.
    pub fn set_guard(self, guard: &dyn RollbackGuard) -> Result<()> {
        self.observed(Subject::store(Operation::Guard), || {
            let mark = |writer: &Writer| writer.state.mark(self.sealer.store(), &writer.sealed_state);
            guard.check(&mark(&self.writer()))?;
            self.persist(|writer, index| {
                let state = StoreState { guard: guard_name::digest(guard), ..writer.state };
                writer.commit_rows(&self.sealer, state, vec![guard_name::row(guard)], guard.time()?)?;
                Ok(Some((index.clone(), ())))
            })?;
            guard.advance(&mark(&self.writer()))
        })
    }
}
