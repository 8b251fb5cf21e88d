//! What fuzz targets begin with: the test vectors, and kept inputs where a format has no vectors,
//! so that they need not find the formats by themselves.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The encoding of the bytes in a vector.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Hex,
}

/// Where a target's seeds are: a file below the root, a place in it (an object, or an array of
/// them), and fields there.
struct Seeds {
    target: &'static str,
    file: &'static str,
    place: &'static str,
    fields: &'static [(&'static str, Form)],
}

const KEYS: &str = "spec/vectors/keys.json";
const SEALING: &str = "spec/vectors/sealing.json";
/// Texts and files that a keystore and the program `age` made; a test of `bulla-kms` reads them
/// too.
const KEPT: &str = "crates/kms/fuzz/seeds.json";

/// Bodies, requests, values, settings and certificates as the service gets them. The first
/// character of a body chooses the operation.
const SERVICE: &str = "crates/server/fuzz/seeds.json";

const SEEDS: [Seeds; 12] = [
    Seeds { target: "key_id", file: KEYS, place: "/key_ids/valid", fields: &[("id", Form::Text)] },
    Seeds {
        target: "public_key",
        file: KEYS,
        place: "/public_keys",
        fields: &[
            ("pem", Form::Text),
            ("openssh", Form::Text),
            ("jwk", Form::Text),
            ("minisign", Form::Text),
            ("der", Form::Hex),
        ],
    },
    Seeds {
        target: "private_key",
        file: SEALING,
        place: "/wrapped_key",
        fields: &[("text", Form::Text), ("pkcs8", Form::Hex)],
    },
    Seeds { target: "envelope", file: SEALING, place: "/envelopes", fields: &[("envelope", Form::Hex)] },
    Seeds {
        target: "token",
        file: "spec/vectors/tokens.json",
        place: "/tokens",
        fields: &[("token", Form::Text)],
    },
    Seeds { target: "succession", file: KEPT, place: "/successions", fields: &[("text", Form::Text)] },
    Seeds {
        target: "age",
        file: KEPT,
        place: "/age",
        fields: &[("file", Form::Hex), ("identity", Form::Text), ("recipient", Form::Text)],
    },
    Seeds { target: "service_body", file: SERVICE, place: "/bodies", fields: &[("text", Form::Text)] },
    Seeds { target: "service_head", file: SERVICE, place: "/heads", fields: &[("text", Form::Text)] },
    Seeds { target: "service_values", file: SERVICE, place: "/values", fields: &[("text", Form::Text)] },
    Seeds { target: "service_settings", file: SERVICE, place: "/settings", fields: &[("text", Form::Text)] },
    Seeds {
        target: "service_certificate",
        file: SERVICE,
        place: "/certificates",
        fields: &[("der", Form::Hex)],
    },
];

/// Writes the seeds of a target, if it has any, into its corpus.
pub(crate) fn write(root: &Path, target: &str, corpus: &Path) -> Result<()> {
    let Some(seeds) = SEEDS.iter().find(|seeds| seeds.target == target) else { return Ok(()) };
    fs::create_dir_all(corpus)?;
    for (name, bytes) in read(root, seeds)? {
        fs::write(corpus.join(name), bytes)?;
    }
    Ok(())
}

/// The seeds by their names.
fn read(root: &Path, seeds: &Seeds) -> Result<Vec<(String, Vec<u8>)>> {
    let file = root.join(seeds.file);
    let vectors: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let place =
        vectors.pointer(seeds.place).with_context(|| format!("{} has no {}", file.display(), seeds.place))?;
    let cases = place.as_array().map_or_else(|| std::slice::from_ref(place), Vec::as_slice);
    let mut found = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        for (field, form) in seeds.fields {
            // Not every case has every field: a key has no form in some formats.
            let Some(text) = case[*field].as_str() else { continue };
            found.push((format!("vector-{number}-{field}"), bytes(text, *form)?));
        }
    }
    ensure!(!found.is_empty(), "{} has nothing for the fuzz target {}", file.display(), seeds.target);
    Ok(found)
}

fn bytes(text: &str, form: Form) -> Result<Vec<u8>> {
    match form {
        Form::Text => Ok(text.as_bytes().to_vec()),
        Form::Hex => hex::decode(text).context("a seed is not hexadecimal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_with_seeds_finds_them_in_the_vectors() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for seeds in &SEEDS {
            assert!(read(root, seeds).unwrap().len() > 1, "{}", seeds.target);
            let is_target = |name: &&str| {
                root.join(format!("crates/{name}/fuzz/fuzz_targets/{}.rs", seeds.target)).is_file()
            };
            assert!(["kms", "server"].iter().any(is_target), "{}", seeds.target);
        }
    }
}
