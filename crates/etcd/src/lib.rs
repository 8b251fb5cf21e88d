//! How bulla speaks to an etcd cluster, and a table of rows that programs share in it.
//!
//! - [`EtcdOptions`] has the addresses of the nodes, the prefix of all keys, and the credentials.
//! - [`EtcdTable`] is a table of rows beside a keystore. The nodes of a service keep there what
//!   they must know of each other.
//! - [`EtcdNodes`] sends requests to one node after another until one answers, on a
//!   [`ConnectionThread`]. The keystores of `bulla-kms` are above it.
//! - [`EtcdError`] says what failed, and what to do.
//!
//! ```no_run
//! use bulla_etcd::{EtcdOptions, EtcdTable, InsertOutcome};
//!
//! let options = EtcdOptions::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379"], "bulla/files");
//! let table = EtcdTable::open(&options)?;
//! let outcome = table.insert("nodes/a", b"here", None)?;
//! assert_eq!(outcome, InsertOutcome::New { rows: 1 });
//! # Ok::<(), bulla_etcd::EtcdError>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod connection;
mod error;
mod options;
mod table;

pub use self::connection::{ConnectionThread, EtcdNodes, START_TIMEOUT, watch_keys};
pub use self::error::{EtcdError, EtcdErrorKind, RequestFailure, Result};
pub use self::options::{EtcdClientCertificate, EtcdOptions, EtcdTls, EtcdUser};
pub use self::table::{EtcdLease, EtcdTable, InsertOutcome, TableRow};

/// The maximum number of operations that etcd accepts in a transaction (`--max-txn-ops`).
pub const MAX_OPERATIONS: usize = 128;
/// The maximum number of bytes that etcd accepts in a request (`--max-request-bytes`), less the
/// bytes that it adds to ours.
pub const MAX_REQUEST_BYTES: usize = (3 << 19) - 4096;
