//! Keys of groups of nodes: no node has the whole key, and a number of them sign together.
//!
//! Such a key is an ordinary Ed25519 key of the keystore, whose backend is this one. Its record has
//! the group's id and public key. The shares are on the nodes, one on each, and never in etcd.
//! `docs/decisions/0378-keys-of-groups-of-nodes.md` says who may ask whom for what.

mod backend;
mod change;
mod channel;
mod coordinator;
mod fail_points;
mod generation;
mod memory;
mod node;
mod peer;
mod repair;
mod shares;
mod wire;

pub use self::node::GroupNode;
pub(crate) use self::wire::fuzz;

#[cfg(test)]
mod tests;
