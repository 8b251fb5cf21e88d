//! The vectors of `spec/vectors` as lines of words, for programs in C.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::Context;
use serde_json::Value;

/// Writes the file.
pub(super) fn write(context: &Context, path: &Path) -> Result<()> {
    let read = |name: &str| -> Result<Value> {
        let path = context.root.join("spec/vectors").join(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    };
    let mut text = String::new();
    blake3(&read("blake3.json")?, &mut text)?;
    for run in list(&read("blake3-lengths.json")?, "runs")? {
        writeln!(text, "lengths {} {} {}", run["from"], run["to"], word(run, "hash")?)?;
    }
    blake2(&read("blake2.json")?, &mut text)?;
    ed25519(&read("ed25519.json")?, &mut text)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn blake3(vectors: &Value, text: &mut String) -> Result<()> {
    for case in list(vectors, "cases")? {
        let [hash, keyed, derived] = ["hash", "keyed_hash", "derive_key"].map(|key| word(case, key));
        writeln!(text, "blake3 {} {} {} {}", case["input_len"], hash?, keyed?, derived?)?;
    }
    Ok(())
}

/// The algorithms in the order of their numbers in `bulla.h`.
fn blake2(vectors: &Value, text: &mut String) -> Result<()> {
    for (number, name) in ["blake2b", "blake2s", "blake2bp", "blake2sp"].iter().enumerate() {
        let key = if number % 2 == 0 { 64 } else { 32 };
        for (mode, key) in [("hash", 0), ("keyed_hash", key)] {
            for (len, digest) in list(&vectors[name], mode)?.iter().enumerate() {
                writeln!(text, "blake2 {number} {key} {len} {}", digest.as_str().context("a digest")?)?;
            }
        }
    }
    Ok(())
}

fn ed25519(vectors: &Value, text: &mut String) -> Result<()> {
    for case in list(vectors, "rfc8032")? {
        let [seed, key] = ["seed", "public_key"].map(|name| word(case, name));
        let [message, signature] = ["message", "signature"].map(|name| word(case, name));
        writeln!(text, "ed25519 {} {} {} {}", seed?, key?, message?, signature?)?;
    }
    for case in list(vectors, "predicates")? {
        let [key, message, signature] = ["public_key", "message", "signature"].map(|name| word(case, name));
        let strict = u8::from(case["strict"].as_bool().context("a verdict")?);
        writeln!(text, "predicate {} {} {} {strict}", key?, message?, signature?)?;
    }
    Ok(())
}

fn list<'v>(vectors: &'v Value, name: &str) -> Result<&'v [Value]> {
    let list = vectors[name].as_array().with_context(|| format!("the vectors have no {name}"))?;
    ensure!(!list.is_empty(), "{name} is empty");
    Ok(list)
}

/// A value as one word: a dash, if it is empty.
fn word<'v>(case: &'v Value, name: &str) -> Result<&'v str> {
    let word = case[name].as_str().with_context(|| format!("a case has no {name}"))?;
    Ok(if word.is_empty() { "-" } else { word })
}
