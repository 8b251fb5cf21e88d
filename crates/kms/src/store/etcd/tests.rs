//! A cluster for tests of the store itself; keystores in a cluster are tested in `tests/etcd.rs`.

#[allow(dead_code, unreachable_pub, reason = "the programs of tests use the rest")]
#[path = "../../../tests/support/etcd.rs"]
pub(crate) mod cluster;
#[allow(dead_code, unreachable_pub, reason = "the programs of tests use the rest")]
#[path = "../../../tests/support/proxy.rs"]
mod proxy;
