//! `cargo xtask fuzz`: runs the cargo-fuzz targets of the crates.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{
    Context,
    install::{self, CargoTool},
};
use serde_json::Value;

const CARGO_FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", version: "0.13.2" };

/// What `cargo xtask fuzz` takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask fuzz\n  cargo xtask fuzz key_id --seconds 600\n\n\
    A target writes the inputs that it finds to crates/*/fuzz/artifacts.\n\n\
    Exit status: 0 no target found anything, 1 a target found something.")]
pub(crate) struct Args {
    /// The target to run [default: all, one after another]
    target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u32,
}

/// One file of `crates/*/fuzz/fuzz_targets`.
struct Target {
    name: String,
    folder: PathBuf,
}

/// Installs what is missing and runs the targets.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let mut targets = find(&context.root)?;
    if let Some(name) = &args.target {
        let names = targets.iter().map(|target| target.name.clone()).collect::<Vec<_>>().join(", ");
        targets.retain(|target| target.name == *name);
        if targets.is_empty() {
            bail!("no fuzz target {name}; there are: {names}");
        }
    }
    if targets.is_empty() {
        bail!("no crate has fuzz targets");
    }
    // cargo-fuzz needs the sanitizers, which only a nightly compiler has.
    install::nightly(&[])?;
    let program = install::cargo_tool(&context, &CARGO_FUZZ)?;
    let mut failed = Vec::new();
    for target in &targets {
        println!("== {} for {} s", target.name, args.seconds);
        write_seeds(&context.root, &target.name, &target.folder.join("corpus").join(&target.name))?;
        let status = Command::new("rustup")
            .args(["run", "nightly"])
            .arg(&program)
            .args(["run", "--fuzz-dir"])
            .arg(&target.folder)
            .args([&target.name, "--", &format!("-max_total_time={}", args.seconds)])
            // The cargo that runs this program sets it, and that is not the nightly one.
            .env_remove("CARGO")
            .current_dir(&context.root)
            .status()
            .context("cannot start rustup")?;
        if !status.success() {
            failed.push(target.name.as_str());
        }
    }
    println!(
        "{} targets run; failed: {}",
        targets.len(),
        if failed.is_empty() { "none".to_owned() } else { failed.join(", ") }
    );
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of all targets.
pub(crate) fn names(root: &Path) -> Result<BTreeSet<String>> {
    Ok(find(root)?.into_iter().map(|target| target.name).collect())
}

fn find(root: &Path) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for package in fs::read_dir(root.join("crates"))? {
        let folder = package?.path().join("fuzz");
        let Ok(files) = fs::read_dir(folder.join("fuzz_targets")) else { continue };
        for file in files {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "rs") {
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                targets.push(Target { name, folder: folder.clone() });
            }
        }
    }
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

/// The encoding of the bytes in a vector.
#[derive(Clone, Copy)]
enum Encoding {
    Text,
    Hex,
}

/// Where a target's seeds are: a file below the root, a place in it (an object, or an array of
/// them), and fields there.
struct Seeds {
    target: &'static str,
    file: &'static str,
    place: &'static str,
    fields: &'static [(&'static str, Encoding)],
}

const KEYS: &str = "spec/vectors/keys.json";
const SEALING: &str = "spec/vectors/sealing.json";
/// Texts and files that a keystore and the programs `age` and `ssh-keygen` made; tests of
/// `bulla-kms` read most of them too.
const KEPT: &str = "crates/kms/fuzz/seeds.json";

/// Bodies, requests, values, settings and certificates as the service gets them. The first
/// character of a body chooses the operation.
const SERVICE: &str = "crates/server/fuzz/seeds.json";

/// Signatures and lists that OpenSSH, signify, minisign, cosign and model_signing made.
const FOREIGN: &str = "crates/formats/fuzz/seeds.json";

/// One message of each kind.
const THRESHOLD: &str = "crates/threshold/fuzz/seeds.json";

const SEEDS: [Seeds; 26] = [
    Seeds {
        target: "foreign_signature",
        file: FOREIGN,
        place: "/signatures",
        fields: &[("text", Encoding::Text)],
    },
    Seeds { target: "listed_files", file: FOREIGN, place: "/payloads", fields: &[("text", Encoding::Text)] },
    Seeds { target: "trusted_root", file: FOREIGN, place: "/logged", fields: &[("text", Encoding::Text)] },
    Seeds { target: "ssh_signers", file: FOREIGN, place: "/signers", fields: &[("text", Encoding::Text)] },
    Seeds { target: "ssh_revoked", file: FOREIGN, place: "/revoked", fields: &[("list", Encoding::Hex)] },
    Seeds { target: "x509_request", file: FOREIGN, place: "/requests", fields: &[("text", Encoding::Text)] },
    Seeds {
        target: "ciphertext",
        file: "spec/vectors/symmetric.json",
        place: "/ciphertexts",
        fields: &[("ciphertext", Encoding::Hex)],
    },
    Seeds { target: "key_id", file: KEYS, place: "/key_ids/valid", fields: &[("id", Encoding::Text)] },
    Seeds {
        target: "public_key",
        file: KEYS,
        place: "/public_keys",
        fields: &[
            ("pem", Encoding::Text),
            ("openssh", Encoding::Text),
            ("jwk", Encoding::Text),
            ("minisign", Encoding::Text),
            ("der", Encoding::Hex),
        ],
    },
    Seeds {
        target: "private_key",
        file: SEALING,
        place: "/wrapped_key",
        fields: &[("text", Encoding::Text), ("pkcs8", Encoding::Hex)],
    },
    Seeds { target: "envelope", file: SEALING, place: "/envelopes", fields: &[("envelope", Encoding::Hex)] },
    Seeds {
        target: "token",
        file: "spec/vectors/tokens.json",
        place: "/tokens",
        fields: &[("token", Encoding::Text)],
    },
    Seeds {
        target: "threshold_message",
        file: THRESHOLD,
        place: "/messages",
        fields: &[("text", Encoding::Text)],
    },
    Seeds {
        target: "signature_file",
        file: KEPT,
        place: "/signature_files",
        fields: &[("text", Encoding::Text)],
    },
    Seeds { target: "succession", file: KEPT, place: "/successions", fields: &[("text", Encoding::Text)] },
    Seeds {
        target: "age",
        file: KEPT,
        place: "/age",
        fields: &[("file", Encoding::Hex), ("identity", Encoding::Text), ("recipient", Encoding::Text)],
    },
    Seeds {
        target: "ssh_certificate",
        file: KEPT,
        place: "/ssh_certificates",
        fields: &[("certificate", Encoding::Hex)],
    },
    Seeds {
        target: "x509_certificate",
        file: KEPT,
        place: "/x509_certificates",
        fields: &[("certificate", Encoding::Hex)],
    },
    Seeds { target: "service_body", file: SERVICE, place: "/bodies", fields: &[("text", Encoding::Text)] },
    Seeds { target: "service_head", file: SERVICE, place: "/heads", fields: &[("text", Encoding::Text)] },
    Seeds { target: "service_group", file: SERVICE, place: "/group", fields: &[("text", Encoding::Text)] },
    Seeds { target: "service_login", file: SERVICE, place: "/logins", fields: &[("text", Encoding::Text)] },
    Seeds {
        target: "service_policy",
        file: SERVICE,
        place: "/policies",
        fields: &[("text", Encoding::Text)],
    },
    Seeds { target: "service_values", file: SERVICE, place: "/values", fields: &[("text", Encoding::Text)] },
    Seeds {
        target: "service_settings",
        file: SERVICE,
        place: "/settings",
        fields: &[("text", Encoding::Text)],
    },
    Seeds {
        target: "service_certificate",
        file: SERVICE,
        place: "/certificates",
        fields: &[("der", Encoding::Hex)],
    },
];

/// Writes the seeds of a target, if it has any, into its corpus.
fn write_seeds(root: &Path, target: &str, corpus: &Path) -> Result<()> {
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

fn bytes(text: &str, form: Encoding) -> Result<Vec<u8>> {
    match form {
        Encoding::Text => Ok(text.as_bytes().to_vec()),
        Encoding::Hex => hex::decode(text).context("a seed is not hexadecimal"),
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
            assert!(["formats", "kms", "server", "threshold"].iter().any(is_target), "{}", seeds.target);
        }
    }
}
