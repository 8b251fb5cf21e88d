//! Nodes of a service that share a keystore in etcd: how current a node is, and what it tells the
//! others.
//!
//! etcd is the only place of truth. A node keeps a copy, follows changes, and has a lease: it uses
//! private keys only while it has asked the cluster recently enough. `docs/cluster.md` says what
//! callers can rely on.

mod answers;
mod checkpoints;
mod node;
mod presence;
mod revision;
mod revocations;
mod rows;
mod table;

pub(crate) use self::answers::{ClaimOutcome, RequestClaim};
pub use self::checkpoints::{NodeCheckpoint, PublishedCheckpoint, read_peer_checkpoints};
pub(crate) use self::node::{ClusterListener, ClusterNode, Freshness};
pub(crate) use self::revision::require_revision;
pub(crate) use self::revocations::Revocation;
