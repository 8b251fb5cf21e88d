//! The vectors that all languages of the project share, by every kernel.

use crate::support::KEY;
use bulla_blake3::hazmat::{HasherExt, Mode, hash_derive_key_context};
use bulla_blake3::kernel;
use bulla_blake3::{Hasher, hash};
use serde_json::Value;
use std::path::Path;

const CONTEXT: &str = "BLAKE3 2019-12-27 16:29:52 test vectors context";

/// The modes by the names that the vectors have.
fn named_modes(context_key: &[u8; 32]) -> [(&'static str, Mode<'_>); 3] {
    [
        ("hash", Mode::Hash),
        ("keyed_hash", Mode::KeyedHash(&KEY)),
        ("derive_key", Mode::DeriveKeyMaterial(context_key)),
    ]
}

/// The file of that name.
fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A list of a file, which has at least so many entries.
fn list<'a>(file: &'a Value, field: &str, least: usize) -> &'a [Value] {
    let list = file[field].as_array().expect("a list");
    assert!(list.len() >= least, "{} entries in {field}", list.len());
    list
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number").try_into().expect("a length")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The input of `len` bytes that all vectors have.
fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn vectors_of_extended_output_in_every_mode() {
    let file = read("blake3.json");
    assert_eq!(text(&file["key"]).as_bytes(), KEY);
    assert_eq!(text(&file["context_string"]), CONTEXT);
    let context_key = hash_derive_key_context(CONTEXT);
    for case in list(&file, "cases", 43) {
        let input = pattern(number(&case["input_len"]));
        for kernel in kernel::runnable() {
            for (name, mode) in named_modes(&context_key) {
                let want = text(&case[name]);
                let mut out = vec![0; want.len() / 2];
                kernel.hasher(mode).update(&input).finalize_xof().fill(&mut out);
                assert_eq!(hex(&out), want, "{kernel}, {name}, {} bytes", input.len());
                let digest = kernel.hash_in(mode, &input);
                assert_eq!(digest.to_hex().as_str(), &want[..64], "{kernel}, {name}, {} bytes", input.len());
            }
        }
        let derived = Hasher::new_derive_key(CONTEXT).update(&input).finalize();
        assert_eq!(derived.to_hex().as_str(), &text(&case["derive_key"])[..64], "{} bytes", input.len());
    }
}

#[test]
fn vectors_of_pieces_of_the_output() {
    for piece in list(&read("blake3.json"), "output_pieces", 32) {
        let input = pattern(number(&piece["input_len"]));
        let position = text(&piece["position"]).parse().expect("a position");
        for kernel in kernel::runnable() {
            let mut out = vec![0; number(&piece["len"])];
            let mut reader = kernel.hasher(Mode::Hash).update(&input).finalize_xof();
            reader.set_position(position);
            reader.fill(&mut out);
            let at = format!("{kernel}, {} bytes, from {position}", input.len());
            assert_eq!(hash(&out).to_hex().as_str(), text(&piece["hash"]), "{at}");
        }
    }
}

#[test]
fn vectors_of_every_length_in_every_mode() {
    let file = read("blake3-lengths.json");
    let context_key = hash_derive_key_context(CONTEXT);
    let input = pattern(36 * 1024);
    let mut next = 0;
    for run in list(&file, "runs", 37) {
        let (from, to) = (number(&run["from"]), number(&run["to"]));
        assert_eq!(from, next, "a gap in the lengths");
        next = to + 1;
        for kernel in kernel::runnable() {
            for (name, mode) in named_modes(&context_key) {
                let mut all = Hasher::new();
                for len in from..=to {
                    all.update(kernel.hash_in(mode, &input[..len]).as_bytes());
                }
                let digest = all.finalize();
                assert_eq!(
                    digest.to_hex().as_str(),
                    text(&run[name]),
                    "{kernel}, {name}, {from} to {to} bytes"
                );
            }
        }
    }
    assert_eq!(next, input.len() + 1, "the lengths end early");
}

#[test]
fn vectors_of_saved_states() {
    let file = read("blake3-state.json");
    let context_key = hash_derive_key_context(CONTEXT);
    for case in list(&file, "cases", 84) {
        let (offset, count) = (number(&case["offset"]), number(&case["count"]));
        let input = pattern(count);
        for kernel in kernel::runnable() {
            let (name, mode) = *named_modes(&context_key)
                .iter()
                .find(|(name, _)| *name == text(&case["mode"]))
                .expect("a mode of ours");
            for step in [7, 1000, 1024, 20_000, 2 << 20] {
                let at = format!("{kernel}, {name}, {count} bytes at {offset} in updates of {step}");
                let mut hasher = kernel.hasher(mode);
                hasher.set_input_offset(offset as u64);
                for piece in input.chunks(step) {
                    hasher.update(piece);
                }
                let state = hasher.save();
                assert_eq!(state.len(), number(&case["len"]), "{at}");
                assert_eq!(hex(&state[..64]), text(&case["head"]), "{at}");
                assert_eq!(hash(&state).to_hex().as_str(), text(&case["hash"]), "{at}");
                goes_on(&state, hasher, offset, &at);
            }
        }
    }
}

/// Checks that the hasher of a state is the one that was saved, and takes the same input after it.
fn goes_on(state: &[u8], mut saved: Hasher, offset: usize, at: &str) {
    let mut restored = Hasher::restore(state).expect("our own state");
    assert_eq!(restored.count(), saved.count(), "{at}");
    assert_eq!(*restored.save(), *state, "{at}: saved again");
    if saved.count() > 0 {
        assert_eq!(restored.finalize_non_root(), saved.finalize_non_root(), "{at}: at once");
    }
    if offset > 0 {
        return;
    }
    assert_eq!(restored.finalize(), saved.finalize(), "{at}: at once");
    let more = pattern(5000);
    assert_eq!(restored.update(&more).finalize(), saved.update(&more).finalize(), "{at}: with more");
}
