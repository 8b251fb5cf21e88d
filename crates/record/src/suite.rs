//! Descriptions of the suites, for readers who see a suite's name for the first time, and the work
//! of one operation of a case.
//!
//! By the work, a reader can convert the time of an operation to a familiar figure: bytes or
//! signatures per second, or cycles per byte.

use serde::Serialize;

use crate::record::Record;

/// A suite as the page introduces it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SuiteDescription {
    /// The name in records.
    pub name: &'static str,
    /// A short title.
    pub title: &'static str,
    /// A description of one operation, with the facts that a reader needs to be fair to a peer.
    pub about: &'static str,
}

const fn about(name: &'static str, title: &'static str, about: &'static str) -> SuiteDescription {
    SuiteDescription { name, title, about }
}

/// Every suite.
pub const ALL_SUITES: [SuiteDescription; 19] = [
    about(
        "oneshot",
        "BLAKE3 in one call",
        "One call hashes one input, on one thread: plain, with a key, or as a key derivation.",
    ),
    about(
        "streaming-dispatch",
        "BLAKE3 in a stream",
        "A hasher takes its input in updates. “1M-by” cuts 1 MiB into updates of that size. “single” is one update.",
    ),
    about(
        "parent-folding",
        "BLAKE3’s tree",
        "Inputs around the sizes at which the tree changes its shape, and the merge of two nodes alone.",
    ),
    about(
        "short-input-attribution",
        "Steps of a short BLAKE3 call",
        "Each step of a call, timed alone. Ours does in “finalize” what its peers do in “update”, so read the two together. “stream” is their sum.",
    ),
    about(
        "many",
        "Many inputs at once",
        "64 inputs of one length: one call of ours, but 64 calls of a peer, since no peer has such a call.",
    ),
    about("xof", "BLAKE3’s long output", "One call turns a short input into an output of that size."),
    about("threads", "BLAKE3 on two threads", "One call hashes one input, shared by two threads."),
    about(
        "thread-scaling",
        "BLAKE3 by threads",
        "One call hashes one input, shared by all threads of a pool. Each size has a curve: the time by the number of threads.",
    ),
    about(
        "files",
        "BLAKE3 of files",
        "Hashes a file that is already in memory: read, mapped, or mapped and shared by two threads.",
    ),
    about(
        "kernel-ab",
        "BLAKE3, kernel by kernel",
        "One kernel of ours is forced, and the official crate is held back to the same instruction set.",
    ),
    about("blake2", "BLAKE2", "BLAKE2b, 2s, 2bp and 2sp: in one call, in a stream, and 64 inputs at once."),
    about("ed25519", "Ed25519", "Strict verification of that many signatures, with one verdict each."),
    about(
        "ed25519-native",
        "Ed25519, native peers",
        "Peers are compiled for this processor alone, ours is not. Under “cofactored” peers give one verdict for all signatures, ours one for each.",
    ),
    about(
        "ed25519-threads",
        "Ed25519 on all threads",
        "Strict verification of that many signatures, shared by all threads.",
    ),
    about(
        "kms",
        "The keystore",
        "Signing and verifying by a key’s name, on one thread. Peers have their keys decoded beforehand. “above” compares the keystore with its own lower layer.",
    ),
    about(
        "kms-threads",
        "The keystore on all threads",
        "Batches of verifications, shared by all threads. “callers” is 64 tasks that make one call after the other.",
    ),
    about(
        "c",
        "BLAKE3 in C",
        "Our C libraries beside the official one with its assembly: “one-shot” is one call, “state” a hasher on the caller’s stack, “names” the official library’s own names. “nasm” is our C with one kernel in NASM, for AVX2 alone.",
    ),
    about("go", "BLAKE3 in Go", "The Go module beside the Go modules that programs use."),
    about(
        "js",
        "BLAKE3 in JavaScript",
        "The npm package beside others, in Node: plain JavaScript with plain, WebAssembly with WebAssembly.",
    ),
];

/// The work of one operation of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// This many bytes, read or written.
    Bytes(u64),
    /// This many signatures, made or verified.
    Signatures(u64),
    /// One call. Its input is empty, or does not determine the amount of work.
    Call,
}

/// The suites whose cases end in a number of signatures.
const SIGNATURE_SUITES: [&str; 5] = ["ed25519", "ed25519-native", "ed25519-threads", "kms", "kms-threads"];

/// The group in which each of several callers makes [`CALLS_PER_CALLER`] calls.
const CALLERS_GROUP: &str = "callers";
const CALLS_PER_CALLER: u64 = 8;

/// Steps of a call: most do not process all bytes.
const STEP_GROUPS: (&str, [&str; 2]) = ("short-input-attribution", ["update", "finalize"]);

impl Work {
    /// The work of a record's case.
    pub fn of(record: &Record) -> Self {
        let (group, last) = record.case.rsplit_once('/').unwrap_or(("", &record.case));
        if SIGNATURE_SUITES.contains(&record.suite.as_str()) {
            let count: u64 = last.parse().unwrap_or(0);
            let each = if group == CALLERS_GROUP { CALLS_PER_CALLER } else { 1 };
            return if count > 0 { Self::Signatures(count * each) } else { Self::Call };
        }
        let is_step = record.suite == STEP_GROUPS.0 && STEP_GROUPS.1.contains(&group);
        if record.bytes == 0 || is_step { Self::Call } else { Self::Bytes(record.bytes) }
    }

    /// The word for one unit of work.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Bytes(_) => "byte",
            Self::Signatures(_) => "signature",
            Self::Call => "call",
        }
    }

    /// The number of units that one operation does.
    pub fn count(self) -> f64 {
        match self {
            Self::Bytes(count) | Self::Signatures(count) => count as f64,
            Self::Call => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_laboratory_is_described_once() {
        for name in crate::LABORATORY {
            assert_eq!(ALL_SUITES.iter().filter(|about| about.name == name).count(), 1, "{name}");
        }
        assert!(ALL_SUITES.iter().all(|about| about.about.ends_with('.') && !about.title.ends_with('.')));
    }
}

#[cfg(test)]
mod work_tests {
    use super::*;
    use crate::record::example;

    fn work(suite: &str, case: &str, bytes: u64) -> Work {
        Work::of(&Record { suite: suite.into(), case: case.into(), bytes, ..example() })
    }

    #[test]
    fn the_unit_is_what_the_case_is_about() {
        assert_eq!(work("oneshot", "hash/64", 64), Work::Bytes(64));
        assert_eq!(work("streaming-dispatch", "hash/1M-by/64", 1 << 20), Work::Bytes(1 << 20));
        assert_eq!(work("ed25519", "strict/512", 65536), Work::Signatures(512));
        assert_eq!(work("kms", "sign/1", 128), Work::Signatures(1));
        assert_eq!(work("oneshot", "hash/0", 0), Work::Call);
        assert_eq!(work("short-input-attribution", "finalize/64", 64), Work::Call);
        assert_eq!(work("short-input-attribution", "stream/64", 64), Work::Bytes(64));
        assert_eq!(work("kms-threads", "callers/64", 8192), Work::Signatures(512));
        assert_eq!(work("kms", "open", 128), Work::Call);
        let (bytes, call) = (work("oneshot", "hash/64", 64), work("oneshot", "hash/0", 0));
        assert_eq!((bytes.unit(), bytes.count(), call.unit(), call.count()), ("byte", 64.0, "call", 1.0));
    }
}
