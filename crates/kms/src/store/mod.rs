//! Stores keep a keystore's rows. A store sees only sealed bytes and gives them no meaning, with
//! one exception: the row `state` shows whether the store is still as its keystore last saw it.

#[cfg(test)]
mod conformance;
mod embedded;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
mod file_identity;
mod interface;
mod memory;
mod packed;

pub(crate) use self::embedded::{EmbeddedStore, run_in_parallel};
pub(crate) use self::file_identity::FileIdentity;
pub(crate) use self::interface::{
    Change, Changed, Changes, FORMAT, GUARD, Meta, PROTECTION, ReadRows, Row, Rows, STATE, Store, Table,
};
pub(crate) use self::memory::{MemoryStore, ReadOnlyStore};
pub(crate) use self::packed::PackedRows;
