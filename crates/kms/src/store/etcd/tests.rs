//! A cluster for tests of the store itself; keystores in a cluster are tested in `tests/kms/etcd.rs`.

#[allow(dead_code, reason = "the programs of tests use the rest")]
#[path = "../../../tests/kms/support/etcd.rs"]
pub(crate) mod cluster;
#[allow(dead_code, reason = "the programs of tests use the rest")]
#[path = "../../../tests/kms/support/proxy.rs"]
mod proxy;
