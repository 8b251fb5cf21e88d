//! Benchmark results in all languages: records, comparisons, tables, the gate.
//! - [`record`]: one implementation in one case and launch, as a line of JSON
//!   (`spec/bench-record.md`).
//! - [`archive`]: a run as `lab/runs` keeps it, without raw samples.
//! - [`compare`] compares ours with each peer, round by round and launch by launch.
//! - [`stats`] computes medians and their intervals.
//! - [`gate`] checks that ours is as fast as the limits demand.
//! - [`report`] prints tables for people: of a run, and over kept runs.
//! - [`scaling`] models what more threads do than were measured.
//! - [`suite`] describes each suite, and the work of one operation.
//! - [`lane`]: the classes of machines, from `lab/lanes.toml`, and this machine.
//! - [`page`]: the data of the laboratory's page, and [`summary`] the answers at its top.
//!
//! The crate measures nothing, and does not depend on our other crates, so that `cargo xtask`
//! builds quickly.
#![forbid(unsafe_code)]

pub mod archive;
pub mod compare;
pub mod gate;
pub mod lane;
pub mod page;
pub mod record;
pub mod report;
pub mod scaling;
pub mod stats;
pub mod suite;
pub mod summary;

/// The suites of the Rust laboratory, in the order in which they run.
pub const LABORATORY: [&str; 15] = [
    "oneshot",
    "streaming-dispatch",
    "parent-folding",
    "short-input-attribution",
    "many",
    "xof",
    "threads",
    "thread-scaling",
    "files",
    "kernel-ab",
    "blake2",
    "ed25519",
    "ed25519-threads",
    "kms",
    "kms-threads",
];
