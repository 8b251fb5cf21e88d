//! The table of rows that the nodes share in etcd.

#[cfg(feature = "etcd")]
pub(super) use bulla_etcd::{EtcdLease, EtcdTable as Table, InsertOutcome, TableRow};
use bulla_kms::Result;

#[cfg(not(feature = "etcd"))]
pub(super) use self::without_etcd::{EtcdLease, EtcdTable as Table, InsertOutcome, TableRow};
use crate::config::EtcdConfig;

/// Connects to the cluster, without asking it for anything yet.
///
/// # Errors
/// Those of the settings, and of reading certificates and the password.
#[cfg(feature = "etcd")]
pub(super) fn open_table(settings: &EtcdConfig) -> Result<Table> {
    Table::open(&settings.options()?).map_err(Into::into)
}

#[cfg(not(feature = "etcd"))]
pub(super) fn open_table(_settings: &EtcdConfig) -> Result<Table> {
    use bulla_kms::{Code, KmsError};
    Err(KmsError::new(Code::InvalidArgument, "this program was built without etcd (the feature `etcd`)"))
}

/// The types of etcd's tables in a program without the feature `etcd`. No value of them can exist.
#[cfg(not(feature = "etcd"))]
mod without_etcd {
    use std::convert::Infallible;
    use std::sync::mpsc::SyncSender;
    use std::time::Duration;

    use bulla_kms::KmsError;

    /// What fails in a table.
    #[derive(Debug)]
    pub(crate) struct EtcdError(Infallible);

    impl From<EtcdError> for KmsError {
        fn from(error: EtcdError) -> Self {
            match error.0 {}
        }
    }

    type Result<T> = std::result::Result<T, EtcdError>;

    /// It has no constructor: the service refuses settings with `store = "etcd"`.
    #[derive(Debug)]
    pub(crate) struct EtcdTable(Infallible);

    #[derive(Clone, Debug)]
    pub(crate) struct TableRow {
        pub(crate) name: String,
        pub(crate) value: Vec<u8>,
    }

    #[derive(Debug)]
    #[expect(dead_code, reason = "nobody makes one without etcd")]
    pub(crate) enum InsertOutcome {
        New { rows: u64 },
        Exists(TableRow),
    }

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct EtcdLease(Infallible);

    impl EtcdTable {
        pub(crate) fn read(&self, _folder: &str, _since: i64) -> Result<(Vec<TableRow>, i64)> {
            match self.0 {}
        }

        pub(crate) fn page(&self, _folder: &str, _after: &str, _most: usize) -> Result<Vec<TableRow>> {
            match self.0 {}
        }

        pub(crate) fn get(&self, _name: &str) -> Result<Option<TableRow>> {
            match self.0 {}
        }

        pub(crate) fn count(&self, _folder: &str) -> Result<u64> {
            match self.0 {}
        }

        pub(crate) fn oldest(&self, _folder: &str, _most: u32) -> Result<Vec<TableRow>> {
            match self.0 {}
        }

        pub(crate) fn insert(
            &self,
            _name: &str,
            _value: &[u8],
            _lease: Option<EtcdLease>,
        ) -> Result<InsertOutcome> {
            match self.0 {}
        }

        pub(crate) fn replace(&self, _name: &str, _old: &[u8], _new: Option<&[u8]>) -> Result<bool> {
            match self.0 {}
        }

        pub(crate) fn replace_until(
            &self,
            _name: &str,
            _old: &[u8],
            _new: &[u8],
            _lease: EtcdLease,
        ) -> Result<bool> {
            match self.0 {}
        }

        pub(crate) fn lease(&self, _time: Duration) -> Result<EtcdLease> {
            match self.0 {}
        }

        pub(crate) fn renew(&self, lease: EtcdLease) -> Result<bool> {
            match lease.0 {}
        }

        pub(crate) fn notify(&self, _folder: &str, _changed: SyncSender<()>) {
            match self.0 {}
        }
    }
}
