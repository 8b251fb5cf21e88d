//! The rollback guard that a store remembers by its name: see
//! [`NamedGuard`](crate::rollback::NamedGuard).
//!
//! The name is in a plain row, so that it can be read before the store is opened. The sealed state
//! has its digest, so that nobody can remove or replace it.

use crate::error::{Code, KmsError, Result};
use crate::record::StoreState;
use crate::rollback::RollbackGuard;
use crate::store::{GUARD, Row, Rows, Table};

/// The digest of a guard's name that the state contains.
pub(super) fn digest(guard: &dyn RollbackGuard) -> Option<[u8; 32]> {
    guard.name().map(|name| bulla_blake3::hash(name.as_bytes()).into())
}

/// The row with a guard's name. Without a value, the row is deleted.
pub(super) fn row(guard: &dyn RollbackGuard) -> Row {
    (Table::Meta, GUARD.to_owned(), guard.name().map(|name| name.as_bytes().to_vec()))
}

/// The name in the rows. It is not authenticated.
pub(super) fn name(rows: &Rows) -> Result<Option<&str>> {
    let edited = |_| KmsError::corrupt("the name of the keystore's rollback guard is not text");
    rows.meta.get(GUARD).map(|name| std::str::from_utf8(name).map_err(edited)).transpose()
}

/// Checks that `guard` is the one that the store remembers, if it remembers one.
///
/// # Errors
/// [`Code::GuardMismatch`]; [`Code::KeystoreCorrupt`] if the state binds another name.
pub(super) fn check_name(state: &StoreState, rows: &Rows, guard: &dyn RollbackGuard) -> Result<()> {
    let name = name(rows)?;
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
pub(super) fn check_unchanged(old: &StoreState, new: &StoreState) -> Result<()> {
    if old.guard == new.guard {
        return Ok(());
    }
    let message = "another process changed the keystore's rollback guard: open the keystore again";
    Err(KmsError::new(Code::GuardMismatch, message))
}
