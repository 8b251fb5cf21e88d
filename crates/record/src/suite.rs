//! Descriptions of the suites, for readers who see a suite's name for the first time.

use serde::Serialize;

/// A suite as the page introduces it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct About {
    /// The name in records.
    pub name: &'static str,
    /// A short title.
    pub title: &'static str,
    /// A description of one operation, with the facts that a reader needs to be fair to a peer.
    pub about: &'static str,
}

const fn about(name: &'static str, title: &'static str, about: &'static str) -> About {
    About { name, title, about }
}

/// Every suite.
pub const ALL: [About; 18] = [
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_laboratory_is_described_once() {
        for name in crate::LABORATORY {
            assert_eq!(ALL.iter().filter(|about| about.name == name).count(), 1, "{name}");
        }
        assert!(ALL.iter().all(|about| about.about.ends_with('.') && !about.title.ends_with('.')));
    }
}
