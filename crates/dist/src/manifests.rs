//! Checks that the manifests have what registries require, and that all packages of a release have
//! one version.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, quiet};
use serde_json::Value;

/// The version of every package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The oldest Rust for every package.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The files in every package of a crate.
const REQUIRED: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The files in no package: they work only in the repository.
const FORBIDDEN: [&str; 3] = ["fuzz/", "matrix/", "builds/"];

/// A crate's most bytes of files, before they are packed. crates.io takes 10 MiB, packed.
const MAX_BYTES: u64 = 4 << 20;

/// Checks all manifests and the lists of files of all crates that are published.
///
/// # Errors
/// What a registry would refuse, or what differs.
pub(crate) fn check(context: &Context) -> Result<()> {
    versions(&context.root)?;
    let text = quiet(context.cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let published: Vec<_> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    ensure!(!published.is_empty(), "no crate is published");
    for package in &published {
        let name = package["name"].as_str().context("a package without a name")?;
        let wrong = wrong(package);
        ensure!(wrong.is_empty(), "{name}: {}", wrong.join("; "));
        let bytes = files(context, name)?;
        println!("{name} {VERSION}: {} KiB", bytes.div_ceil(1024));
    }
    let names: BTreeSet<_> = published.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in &published {
        own_dependencies(package, &names)?;
    }
    Ok(())
}

/// What crates.io would refuse in a manifest, or what its page would lack.
fn wrong(package: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut require = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let list = |key: &str| package[key].as_array().map(Vec::as_slice).unwrap_or_default();
    require(package["version"] == VERSION, "another version");
    require(package["license"] == "MIT OR Apache-2.0", "another license");
    require(package["description"].as_str().is_some_and(|text| !text.is_empty()), "no description");
    require(package["repository"].as_str().is_some(), "no repository");
    require(package["rust_version"] == RUST, "another rust-version");
    require((1..=5).contains(&list("categories").len()), "not one to five categories");
    require((1..=5).contains(&list("keywords").len()), "not one to five keywords");
    let is_keyword = |word: &Value| word.as_str().is_some_and(|word| word.len() <= 20 && word.is_ascii());
    require(list("keywords").iter().all(is_keyword), "a keyword of more than 20 letters");
    let is_library = |target: &Value| target["kind"].as_array().is_some_and(|k| k.iter().any(|k| k == "lib"));
    if list("targets").iter().any(is_library) {
        let docs = &package["metadata"]["docs"]["rs"];
        require(docs["all-features"] == true, "docs.rs would not show every feature");
        require(docs["rustdoc-args"][1] == "docsrs", "docs.rs would not say which feature an item needs");
    }
    wrong
}

/// Our own crates that a crate needs must be published too, in this version. Those for its tests
/// may be without a version: then they are left out.
fn own_dependencies(package: &Value, published: &BTreeSet<&str>) -> Result<()> {
    let name = &package["name"];
    for dependency in package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default() {
        if dependency["path"].is_null() || (dependency["kind"] == "dev" && dependency["req"] == "*") {
            continue;
        }
        let of = dependency["name"].as_str().unwrap_or_default();
        ensure!(published.contains(of), "{name} needs {of}, which is not published");
        ensure!(dependency["req"] == format!("^{VERSION}"), "{name} needs {of} {}", dependency["req"]);
    }
    Ok(())
}

/// Checks the list of files in a package, and returns how many bytes they have.
fn files(context: &Context, name: &str) -> Result<u64> {
    let listed =
        quiet(context.cargo().args(["package", "--list", "--allow-dirty", "--quiet", "--package", name]))?;
    for required in REQUIRED {
        ensure!(listed.lines().any(|file| file == required), "the package of {name} has no {required}");
    }
    if let Some(file) = listed.lines().find(|file| FORBIDDEN.iter().any(|folder| file.starts_with(folder))) {
        bail!("the package of {name} has {file}");
    }
    let folder = context.root.join("crates").join(name.strip_prefix("bulla-").unwrap_or("cli"));
    // Cargo makes the others.
    let bytes = listed.lines().filter_map(|file| fs::metadata(folder.join(file)).ok()).map(|data| data.len());
    let bytes = bytes.sum();
    ensure!(bytes <= MAX_BYTES, "the package of {name} has {bytes} bytes");
    Ok(bytes)
}

/// Checks that the manifests of the other languages, and the description of the service, have the
/// version of the crates.
fn versions(root: &Path) -> Result<()> {
    for (file, pointer) in [
        ("js/package.json", "/version"),
        ("js/kms/package.json", "/version"),
        ("js/package-lock.json", "/version"),
        ("js/package-lock.json", "/packages//version"),
        ("spec/openapi.json", "/info/version"),
    ] {
        let json: Value = serde_json::from_str(&read(root, file)?)?;
        let found = json.pointer(pointer).and_then(Value::as_str);
        ensure!(found == Some(VERSION), "{file}: {pointer} is {found:?}, and the crates have {VERSION}");
    }
    for (file, table) in [("python/Cargo.toml", "package"), ("python/kms/pyproject.toml", "project")] {
        let manifest: toml::Value = toml::from_str(&read(root, file)?)?;
        let found = manifest.get(table).and_then(|table| table.get("version")).and_then(|v| v.as_str());
        ensure!(found == Some(VERSION), "{file} has {found:?}, and the crates have {VERSION}");
    }
    let heading = format!("## [{VERSION}]");
    let changelog = read(root, "CHANGELOG.md")?;
    ensure!(changelog.lines().any(|line| line.starts_with(&heading)), "CHANGELOG.md has no `{heading}`");
    oldest_rust(&read(root, "rust-toolchain.toml")?)
}

/// All tests run with the toolchain of the repository. So it must be the oldest that the crates
/// promise to build with.
fn oldest_rust(toolchain: &str) -> Result<()> {
    let toolchain: toml::Value = toml::from_str(toolchain)?;
    let channel = toolchain.get("toolchain").and_then(|toolchain| toolchain.get("channel"));
    let channel = channel.and_then(toml::Value::as_str).context("rust-toolchain.toml names no channel")?;
    ensure!(
        channel.strip_prefix(RUST).is_some_and(|patch| patch.is_empty() || patch.starts_with('.')),
        "the crates promise to build with Rust {RUST}, and the tests run with {channel}"
    );
    Ok(())
}

fn read(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package as `cargo metadata` describes it.
    fn package() -> Value {
        serde_json::json!({
            "name": "bulla-x", "version": VERSION, "license": "MIT OR Apache-2.0", "description": "x",
            "repository": "https://example.org", "rust_version": RUST, "categories": ["cryptography"],
            "keywords": ["hash"], "targets": [{ "kind": ["lib"] }],
            "metadata": { "docs": { "rs": { "all-features": true, "rustdoc-args": ["--cfg", "docsrs"] } } },
            "dependencies": [{ "name": "bulla-y", "path": "y", "kind": null, "req": format!("^{VERSION}") }],
        })
    }

    #[test]
    fn what_a_manifest_lacks_is_named() {
        assert!(wrong(&package()).is_empty());
        for (key, value, what) in [
            ("version", "9.9.9".into(), "another version"),
            ("license", Value::Null, "another license"),
            ("repository", Value::Null, "no repository"),
            ("rust_version", "1.0".into(), "another rust-version"),
            ("categories", serde_json::json!([]), "not one to five categories"),
            ("keywords", serde_json::json!(["a word of more than twenty letters"]), "a keyword"),
            ("metadata", Value::Null, "docs.rs would not show every feature"),
        ] {
            let mut package = package();
            package[key] = value;
            assert!(wrong(&package).iter().any(|wrong| wrong.starts_with(what)), "{key}");
        }
    }

    #[test]
    fn tests_run_with_the_oldest_rust() {
        assert!(oldest_rust(&format!("[toolchain]\nchannel = \"{RUST}.1\"\n")).is_ok());
        assert!(oldest_rust(&format!("[toolchain]\nchannel = \"{RUST}0.1\"\n")).is_err());
        assert!(oldest_rust("[toolchain]\nchannel = \"stable\"\n").is_err());
    }

    #[test]
    fn a_crate_that_needs_an_unpublished_one_is_found() {
        assert!(own_dependencies(&package(), &["bulla-y"].into()).is_ok());
        assert!(own_dependencies(&package(), &[].into()).is_err());
        let mut other = package();
        other["dependencies"][0]["req"] = "^0.0.1".into();
        assert!(own_dependencies(&other, &["bulla-y"].into()).is_err());
        other["dependencies"][0]["kind"] = "dev".into();
        other["dependencies"][0]["req"] = "*".into();
        assert!(own_dependencies(&other, &[].into()).is_ok());
    }
}
