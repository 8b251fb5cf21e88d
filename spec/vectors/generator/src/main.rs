//! Writes the test vectors that all languages share, with the official crates `blake3` and `bao`,
//! `blake2b_simd` and `blake2s_simd`, those of dalek and RustCrypto, and `biscuit-auth`.
//!
//! Usage: `cargo run --release -p bulla-vectors -- FOLDER`. Except for BLAKE2 and Ed25519, the
//! input of n bytes is always the pattern 0, 1, ... 250, 0, 1, ...
#![forbid(unsafe_code)]

mod bao_vectors;
mod blake2;
mod ed25519;
mod hash;
mod input;
mod json;
mod keys;
mod nist;
mod post_quantum;
mod sealing;
mod state;
mod symmetric;
mod tokens;

use crate::json::Value;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: bulla-vectors FOLDER")?;
    let write = |name: &str, value: Value| {
        let text = serde_json::to_string_pretty(&value).expect("a JSON value can be written");
        std::fs::write(Path::new(&folder).join(name), text + "\n")
    };
    write("blake3.json", hash::cases())?;
    write("blake3-lengths.json", hash::lengths())?;
    write("blake3-state.json", state::cases())?;
    write("blake2.json", blake2::cases())?;
    write("bao.json", bao_vectors::cases())?;
    write("ed25519.json", ed25519::cases())?;
    write("keys.json", keys::cases())?;
    write("nist.json", nist::cases())?;
    write("post-quantum.json", post_quantum::cases())?;
    write("sealing.json", sealing::cases())?;
    write("symmetric.json", symmetric::cases())?;
    write("tokens.json", tokens::cases())?;
    Ok(())
}
