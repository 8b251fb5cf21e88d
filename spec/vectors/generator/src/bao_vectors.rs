//! Encodings and slices of the crate `bao`.
use crate::input::pattern;
use crate::json::{Value, json};
use bao::encode::{SliceExtractor, encode, outboard};
use std::io::{Cursor, Read};

const LENGTHS: [usize; 16] =
    [0, 1, 10, 1023, 1024, 1025, 2048, 2049, 3072, 4095, 5120, 8193, 16384, 31744, 65537, 1 << 20];
const SLICES: [(u64, u64); 12] = [
    (0, 0),
    (0, 1),
    (0, 1024),
    (1, 1024),
    (1023, 2),
    (1024, 1),
    (2047, 2050),
    (3000, 5000),
    (4096, 100),
    (0, 1 << 30),
    (65536, 1),
    (1 << 40, 7),
];

/// Encodings and slices of inputs of many lengths, by their lengths and hashes.
pub(crate) fn cases() -> Value {
    let cases: Vec<Value> = LENGTHS
        .iter()
        .map(|&n| {
            let input = pattern(n);
            let (combined, hash) = encode(&input);
            let (tree, _) = outboard(&input);
            let slices: Vec<Value> =
                SLICES.iter().map(|&(start, len)| slice(&combined, start, len)).collect();
            json!({
                "input_len": n,
                "hash": hash.to_hex().as_str(),
                "combined": summary(&combined),
                "outboard": summary(&tree),
                "slices": slices,
            })
        })
        .collect();
    json!({ "source": "crate bao 0.13.1; inputs as in blake3.json", "cases": cases })
}

fn slice(combined: &[u8], start: u64, len: u64) -> Value {
    let mut out = Vec::new();
    SliceExtractor::new(Cursor::new(combined), start, len)
        .read_to_end(&mut out)
        .expect("reading from memory does not fail");
    json!({ "start": start.to_string(), "len": len.to_string(), "slice": summary(&out) })
}

fn summary(bytes: &[u8]) -> Value {
    json!({ "len": bytes.len(), "hash": blake3::hash(bytes).to_hex().as_str() })
}
