//! A cluster for tests of the store itself; keystores in a cluster are tested in
//! `tests/kms/etcd.rs`.

#[path = "../../../tests/kms/support/etcd.rs"]
pub(crate) mod cluster;
#[path = "../../../tests/kms/support/proxy.rs"]
mod proxy;
