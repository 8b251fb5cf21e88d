//! Benchmark results in all languages: records, comparisons, tables, the gate.
//!
//! - [`record`] is one implementation in one case and launch, as a line of JSON: `spec/bench-record.md`.
//! - [`answer`] says which implementation is fastest, and where ours loses most.
//! - [`compare`] puts ours beside each peer, round by round and launch by launch.
//! - [`table`] is what people read.
//! - [`work`] is what one operation gets done: bytes, signatures, or a call.
//! - [`gate`] says whether ours is as fast as it must be, by [`limits`].
//! - [`kept`] is a run as `lab/runs` keeps it: without raw samples.
//! - [`lane`] knows the classes of machines, `lab/lanes.toml`.
//! - [`machine`] says what this machine is.
//! - [`page`] is what the page of the laboratory shows.
//! - [`report`] reads kept runs: where we are behind, what changed, the table of the README.
//! - [`short`] is about short inputs: what ours needs, and what choosing the kernel costs.
//! - [`stats`] has the medians.
//! - [`suite`] describes each suite in a sentence.
//!
//! The crate measures nothing, and depends on none of our other crates, so that `cargo xtask` builds quickly.
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
