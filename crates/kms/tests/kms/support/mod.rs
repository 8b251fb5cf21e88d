//! What several modules of tests use.

pub(crate) mod chaos;
pub(crate) mod child;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "etcd")]
#[allow(dead_code, reason = "the tests of the service use more of it")]
mod faults;
#[cfg(feature = "etcd")]
pub(crate) mod proxy;
#[cfg(feature = "pkcs11")]
pub(crate) mod softhsm;
pub(crate) mod strikes;
