//! Nodes of a service that share a keystore in etcd: how current a node is, and what it tells the
//! others.
//!
//! etcd is the only place of truth. A node keeps a copy, follows changes, and has a lease: it uses
//! private keys only while it has asked the cluster recently enough. `docs/cluster.md` says what
//! callers can rely on.

mod answers;
mod checkpoints;
mod node;
mod open;
mod presence;
mod revision;
mod revocations;
mod unfinished;
#[cfg(not(feature = "etcd"))]
mod without_etcd;

#[cfg(not(feature = "etcd"))]
use self::without_etcd::{EtcdLease, EtcdTable as Table, InsertOutcome, TableRow};
#[cfg(feature = "etcd")]
use bulla_etcd::{EtcdLease, EtcdTable as Table, InsertOutcome, TableRow};

pub(crate) use self::answers::{Begun, Ticket};
pub use self::checkpoints::PublishedCheckpoint;
pub(crate) use self::node::{ClusterListener, ClusterNode, Freshness};
pub(crate) use self::revision::revisions;
pub(crate) use self::revocations::Revocation;
