//! Where a keystore's rows lie. A store sees sealed bytes only and gives them no meaning, except that one row, the
//! state, tells whether the store is still as its keystore last saw it.

#[cfg(test)]
mod conformance;
mod embedded;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
mod interface;
mod memory;
mod panics;

pub(crate) use self::embedded::EmbeddedStore;
pub(crate) use self::interface::{
    Change, Changed, Changes, FORMAT, GUARD, PROTECTION, Row, Rows, STATE, Store, Table,
};
pub(crate) use self::memory::MemoryStore;
