//! The types of etcd's tables in a program without the feature `etcd`. No value of them can exist.

use std::convert::Infallible;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bulla_kms::KmsError;

/// What fails in a table.
#[derive(Debug)]
pub(super) struct EtcdError(Infallible);

impl From<EtcdError> for KmsError {
    fn from(error: EtcdError) -> Self {
        match error.0 {}
    }
}

type Result<T> = std::result::Result<T, EtcdError>;

/// It has no constructor: the service refuses settings with `store = "etcd"`.
#[derive(Debug)]
pub(super) struct EtcdTable(Infallible);

#[derive(Clone, Debug)]
pub(super) struct TableRow {
    pub(super) name: String,
    pub(super) value: Vec<u8>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "nobody makes one without etcd")]
pub(super) enum InsertOutcome {
    New { rows: u64 },
    Exists(TableRow),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EtcdLease(Infallible);

impl EtcdTable {
    pub(super) fn read(&self, _folder: &str, _since: i64) -> Result<(Vec<TableRow>, i64)> {
        match self.0 {}
    }

    pub(super) fn get(&self, _name: &str) -> Result<Option<TableRow>> {
        match self.0 {}
    }

    pub(super) fn count(&self, _folder: &str) -> Result<u64> {
        match self.0 {}
    }

    pub(super) fn oldest(&self, _folder: &str, _most: u32) -> Result<Vec<TableRow>> {
        match self.0 {}
    }

    pub(super) fn insert(
        &self,
        _name: &str,
        _value: &[u8],
        _lease: Option<EtcdLease>,
    ) -> Result<InsertOutcome> {
        match self.0 {}
    }

    pub(super) fn replace(&self, _name: &str, _old: &[u8], _new: Option<&[u8]>) -> Result<bool> {
        match self.0 {}
    }

    pub(super) fn lease(&self, _time: Duration) -> Result<EtcdLease> {
        match self.0 {}
    }

    pub(super) fn renew(&self, lease: EtcdLease) -> Result<bool> {
        match lease.0 {}
    }

    pub(super) fn notify(&self, _folder: &str, _changed: SyncSender<()>) {
        match self.0 {}
    }
}
