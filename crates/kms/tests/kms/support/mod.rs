//! What several modules of tests use.

pub(crate) mod chaos;
pub(crate) mod child;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "etcd")]
mod faults;
#[cfg(feature = "etcd")]
pub(crate) mod proxy;
#[cfg(feature = "pkcs11")]
pub(crate) mod softhsm;
pub(crate) mod strikes;
