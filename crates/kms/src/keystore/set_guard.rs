//! Changing the rollback guard that a store remembers.

use std::path::Path;

use super::edit::unguarded;
use super::guard_name;
use super::handle::Keystore;
use super::observe::Subject;
use super::writer::Writer;
use crate::audit_log::AuditOperation;
use crate::error::Result;
use crate::record::StoreState;
use crate::rollback::RollbackGuard;
use crate::store::EmbeddedStore;

impl Keystore {
    /// The name of the rollback guard that the keystore at `path` remembers, if it remembers one.
    /// Nothing proves the name before the keystore is opened with that guard: anyone who may write
    /// to the file may have changed it, which is detected then.
    ///
    /// # Errors
    /// The errors of [`Keystore::unlock_method`].
    pub fn guard_name(path: &Path) -> Result<Option<String>> {
        Ok(guard_name::name(&EmbeddedStore::peek(path)?)?.map(str::to_owned))
    }

    /// Gives the store another rollback guard, and accepts the store in its present state: make
    /// sure that it is not an older copy. The store always forgets its former guard. It remembers
    /// the new one if that is a [`NamedGuard`](crate::rollback::NamedGuard). Afterwards, open it
    /// with the new guard.
    ///
    /// If the former guard is lost, open the store with another guard of the same name that accepts
    /// everything, for example a `NamedGuard` around a [`StoreGuard`](crate::rollback::StoreGuard).
    ///
    /// # Errors
    /// The errors of both guards; the new guard is asked before anything is written. Errors of
    /// writing.
    pub fn set_guard(self, guard: &dyn RollbackGuard) -> Result<()> {
        self.observed(Subject::store(AuditOperation::Guard), || {
            let mark = |writer: &Writer| writer.state.mark(self.cipher.store_name(), &writer.encrypted_state);
            guard.check(&mark(&self.writer()))?;
            self.persist(|writer, index| {
                let state = StoreState { guard: guard_name::digest(guard), ..writer.state };
                writer.commit_rows(&self.cipher, state, vec![guard_name::row(guard)], guard.time()?)?;
                Ok(Some((index.clone(), ())))
            })?;
            guard.advance(&mark(&self.writer())).map_err(unguarded)
        })
    }
}
