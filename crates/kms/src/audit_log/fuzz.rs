//! The fuzzers' entry point to the readers of logs.

use super::checkpoint::Checkpoint;
use super::proof::InclusionProof;
use super::walk::{End, Walk};

/// Reads bytes as a file of a log; for the fuzzers.
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut walk = Walk::new(None, Vec::new());
    let mut whole = true;
    let read = walk.file("fuzz", bytes, End::Last, &mut |_, line| {
        whole &= bytes.windows(line.len()).any(|window| window == line.as_bytes());
        Ok(())
    });
    assert!(whole, "an entry is a line of the file");
    if read.is_ok() {
        let _ = walk.finish();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(checkpoint) = text.parse::<Checkpoint>() {
            assert_eq!(checkpoint.to_string(), text);
        }
        if let Ok(proof) = serde_json::from_str::<InclusionProof>(text) {
            let _ = proof.entry();
        }
    }
}
