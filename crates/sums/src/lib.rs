//! Checksums of many files: walks folders, reads and hashes files side by side, and returns the
//! results in order.
//!
//! [`in_order`] has the threads. It takes jobs from a [`Feed`], one after another, and hands on
//! their results in the order of the jobs, in bounded memory. [`Paths`] is the feed of paths as a
//! user gives them: its jobs are a [`Batch`] of files, or a folder to list. [`hash_files`] hashes a
//! batch: small files are read into one buffer, and hashed side by side. A large file is hashed by
//! all threads that have nothing else to do.
//!
//! ```
//! use bulla_sums::{
//!     Dash, Folders, Hashing, Job, Naming, Opening, Outcome, Paths, Plan, Reading, Rules, Unwatched, hash_files, in_order,
//! };
//! use std::sync::Arc;
//!
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("a"), "one")?;
//! # let path = folder.path().to_owned();
//! let reading = Reading {
//!     hashing: Arc::new(Hashing::plain_blake3()),
//!     opening: Opening::Anything,
//!     naming: Naming::Free,
//!     dash: Dash::Name,
//!     meter: &Unwatched,
//! };
//! let rules = Rules::default();
//! let plan = Plan { threads: 2, meter: &Unwatched, at_length: &|| {} };
//! let mut hashes = Vec::new();
//! in_order(
//!     &plan,
//!     Box::new(Paths::new([path].into_iter(), Folders::Walk)),
//!     |job, others| match job {
//!         Job::Folder(folder) => match folder.enter(&rules) {
//!             Ok(entered) => Outcome { result: Vec::new(), then: Some(entered.content) },
//!             Err(trouble) => panic!("{trouble:?}"),
//!         },
//!         Job::Batch(batch) => {
//!             let results = hash_files(&reading, batch.folder(), batch.names(), others);
//!             let then = batch.rest(results.len());
//!             Outcome { result: results, then }
//!         }
//!     },
//!     |results| {
//!         hashes.extend(results.into_iter().map(|result| result.map(|hashed| hashed.output.hash())));
//!         Ok::<_, std::io::Error>(())
//!     },
//! )?;
//! assert_eq!(hashes[0].as_ref().unwrap(), &bulla_blake3::hash(b"one"));
//! # std::io::Result::Ok(())
//! ```
#![forbid(unsafe_code)]

mod algorithm;
mod batch;
mod blocks;
mod buffer;
mod entries;
mod error;
mod folder;
mod hashing;
mod kind;
mod lines;
mod listing;
mod meter;
mod rules;
mod source;
mod stamp;
mod team;
mod threads;
mod tree;
mod walk;

pub use algorithm::{Algorithm, Digest};
pub use batch::{Dash, Hashed, Naming, Reading, hash_files};
pub use blocks::LARGE;
pub use entries::{Content, read_entries};
pub use error::{ReadError, Stopped};
pub use folder::{Folder, Opening, path_from};
pub use hashing::{HashMode, Hashing, Output};
pub use kind::Kind;
pub use lines::{Dialect, Ending, Line, Parsed, Reader as LineReader, Subject, SumName, TREE_TAG};
pub use listing::Listing;
pub use meter::{Meter, Unwatched};
pub use rules::{FileSystems, Hidden, Ignored, Reason, Rules, Trouble, What};
pub use source::{Digested, Links, Pace, Source};
pub use stamp::Stamp;
pub use team::{Feed, Others, Outcome, Plan, Shared, in_order};
pub use threads::Threads;
pub use tree::{EntryKind, Tree, TreeDigest, TreeError, tree_digest};
pub use walk::{Batch, Entered, Folders, Job, Paths, Pending};
