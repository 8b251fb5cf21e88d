//! The table of rows that the nodes share.

use bulla_kms::Result;

use super::Table;
use crate::config::EtcdConfig;

/// Connects to the cluster, without asking it for anything yet.
///
/// # Errors
/// Those of the settings, and of reading certificates and the password.
#[cfg(feature = "etcd")]
pub(super) fn open(settings: &EtcdConfig) -> Result<Table> {
    Table::open(&settings.options()?).map_err(Into::into)
}

#[cfg(not(feature = "etcd"))]
pub(super) fn open(_settings: &EtcdConfig) -> Result<Table> {
    use bulla_kms::{Code, KmsError};
    Err(KmsError::new(Code::InvalidArgument, "this program was built without etcd (the feature `etcd`)"))
}
