//! Members of etcd, from the tests of the keystore.

#[allow(dead_code, reason = "the tests of the keystore use more of it")]
#[path = "../../../../kms/tests/kms/support/etcd.rs"]
pub(crate) mod etcd;
#[allow(dead_code, reason = "the tests of the keystore use more of it")]
#[path = "../../../../kms/tests/kms/support/faults.rs"]
mod faults;
#[allow(dead_code, reason = "the tests of the keystore use more of it")]
#[path = "../../../../kms/tests/kms/support/proxy.rs"]
pub(crate) mod proxy;
