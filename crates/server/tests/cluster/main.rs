//! Nodes of `bulla serve` over etcd as processes of their own, and what can befall them: see
//! `docs/cluster.md`.
#![cfg(feature = "etcd")]

mod audit;
mod client;
mod faults;
mod group;
mod group_faults;
mod group_liar;
mod group_memory;
mod history;
mod load;
mod node;
mod restored;
mod runbook;
mod tally;
mod upgrade;
