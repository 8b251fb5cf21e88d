//! Checksums of many files: walks folders, reads and hashes files side by side, and returns the
//! results in order.
//!
//! [`run_in_order`] has the threads. It takes jobs from a [`Feed`], one after another, and delivers
//! their results in the order of the jobs, in bounded memory. [`PathFeed`] is the feed of paths as
//! a user gives them: its jobs are a [`FileBatch`], or a folder to list. [`hash_files`] hashes a
//! batch: small files are read into one buffer, and hashed side by side. A large file is hashed by
//! all threads that have nothing else to do.
//!
//! ```
//! use bulla_sums::{
//!     Dash, FolderPolicy, HashParams, Job, JobOutcome, NamePolicy, NoProgress, OpenPolicy, PathFeed,
//!     PoolOptions, ReadOptions, Rules, Threads, hash_files, run_in_order,
//! };
//! use std::sync::Arc;
//!
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("a"), "one")?;
//! # let path = folder.path().to_owned();
//! let reading = ReadOptions {
//!     hashing: Arc::new(HashParams::plain_blake3()),
//!     open_policy: OpenPolicy::AnyKind,
//!     name_policy: NamePolicy::MayChange,
//!     dash: Dash::FileName,
//!     by_blocks: true,
//!     meter: &NoProgress,
//! };
//! let rules = Rules::default();
//! let options = PoolOptions { threads: Threads::AtMost(2), meter: &NoProgress, on_large: &|| {} };
//! let mut hashes = Vec::new();
//! run_in_order(
//!     &options,
//!     Box::new(PathFeed::new([path].into_iter(), FolderPolicy::Walk)),
//!     |job, helpers| match job {
//!         Job::Folder(folder) => match folder.list(&rules) {
//!             Ok(listed) => JobOutcome { result: Vec::new(), then: Some(listed.jobs) },
//!             Err(error) => panic!("{error:?}"),
//!         },
//!         Job::Batch(batch) => {
//!             let results = hash_files(&reading, batch.folder(), batch.names(), helpers);
//!             let then = batch.rest(results.len());
//!             JobOutcome { result: results, then }
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

mod blocks;
mod checksum_list;
mod folder;
mod hash_files;
mod hashing;
mod map_trial;
mod ordered_pool;
mod reading;
mod rules;
mod source;
mod tree_digest;
mod walk;

pub use blocks::MIN_SHARED_LEN;
pub use checksum_list::{
    ChecksumLine, Dialect, EscapedName, LineEnding, LineParser, ParsedLine, Subject, TREE_TAG,
};
pub use folder::{FileKind, Folder, Links, Listing, OpenPolicy, Stamp, path_from};
pub use hash_files::{Dash, EntryContent, HashedFile, NamePolicy, ReadOptions, hash_files, read_entries};
pub use hashing::{Algorithm, Digest, HashMode, HashParams, Output};
pub use ordered_pool::{Feed, Helpers, JobOutcome, PoolOptions, SharedWork, run_in_order};
pub use reading::{Meter, NoProgress, ReadError, StreamError, Threads};
pub use rules::{EntryFilter, FileSystems, Hidden, Ignored, Rules, WalkError, WalkErrorKind};
pub use source::{ReadMode, Source, SourceDigest};
pub use tree_digest::{EntryKind, TreeDigest, TreeError, TreeHasher, tree_digest};
pub use walk::{FileBatch, FolderPolicy, Job, ListedFolder, PathFeed, PendingFolder};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
