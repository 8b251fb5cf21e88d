//! Benchmark results in all languages: records, comparisons, tables, the gate.
//! - [`record`]: one implementation in one case and launch, as a line of JSON
//!   (`spec/bench-record.md`).
//! - [`answer`] finds the fastest implementation, and the cases in which ours loses most.
//! - [`compare`] compares ours with each peer, round by round and launch by launch.
//! - [`table`] prints tables for people.
//! - [`work`]: the work of one operation, in bytes, signatures, or calls.
//! - [`gate`] checks that ours is as fast as [`limits`] demand.
//! - [`kept`]: a run as `lab/runs` keeps it, without raw samples.
//! - [`lane`]: the classes of machines, from `lab/lanes.toml`.
//! - [`machine`] describes this machine.
//! - [`page`]: the data of the laboratory's page.
//! - [`report`]: reports over kept runs on where ours is slower, what changed, and the README's
//!   table.
//! - [`short`]: tables about short inputs, and the cost of choosing the kernel.
//! - [`stats`] computes medians.
//! - [`suite`] describes each suite in a sentence.
//!
//! The crate measures nothing, and does not depend on our other crates, so that `cargo xtask`
//! builds quickly.
#![forbid(unsafe_code)]

pub mod answer;
pub mod compare;
pub mod gate;
pub mod kept;
pub mod lane;
pub mod limits;
pub mod machine;
pub mod page;
pub mod record;
pub mod report;
pub mod short;
pub mod stats;
pub mod suite;
pub mod table;
pub mod work;

/// The suites of the Rust laboratory, in the order in which they run.
pub const LABORATORY: [&str; 14] = [
    "oneshot",
    "streaming-dispatch",
    "parent-folding",
    "short-input-attribution",
    "many",
    "xof",
    "threads",
    "files",
    "kernel-ab",
    "blake2",
    "ed25519",
    "ed25519-threads",
    "kms",
    "kms-threads",
];
