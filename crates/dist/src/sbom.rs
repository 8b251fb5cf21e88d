//! The bill of materials of a binary, in the format CycloneDX: every crate in it, with version,
//! license and digest.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use bulla_devtools::{
    Context,
    install::{self, CargoTool},
    quiet,
};
use serde_json::Value;

use super::{archive, files, platform::Platform, source::Source};

const CYCLONEDX: CargoTool = CargoTool { name: "cargo-cyclonedx", version: "0.5.9" };

/// The version of the format.
const FORMAT: &str = "1.5";

/// The folders of the packages with programs, and what the names of their bills end with.
const BILLS: [(&str, &str); 4] = [
    ("crates/cli", ""),
    ("crates/audit", "-audit"),
    ("crates/remote", "-remote"),
    ("crates/server", "-serve"),
];

/// Writes the bills of materials of a platform's programs into `out`.
pub(super) fn write(
    context: &Context,
    platform: Platform,
    source: &Source,
    work: &Path,
    out: &Path,
) -> Result<()> {
    let program = install::cargo_tool(context, &CYCLONEDX)?;
    let tree = work.join("source");
    for (package, end) in BILLS {
        let name = format!("{}{end}.cdx", archive::name(platform, &source.version));
        let features = if package == "crates/server" { platform.features() } else { "" };
        let text = bill(&program, &tree, platform, package, &name, features, source)?;
        files::write(&out.join(format!("{name}.json")), text)?;
    }
    Ok(())
}

/// The bill of one package.
fn bill(
    program: &Path,
    tree: &Path,
    platform: Platform,
    package: &str,
    name: &str,
    features: &str,
    source: &Source,
) -> Result<String> {
    let mut command = Command::new(program);
    command.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", FORMAT]);
    command.args(["--no-build-deps", "--target", platform.triple(), "--override-filename", name]);
    command.args(["--features", features, "--manifest-path", &format!("{package}/Cargo.toml")]);
    command.current_dir(tree).env("SOURCE_DATE_EPOCH", source.time.to_string());
    quiet(&mut command)?;
    let file = format!("{name}.json");
    let written = tree.join(package).join(&file);
    let text = fs::read_to_string(&written).with_context(|| format!("cannot read {}", written.display()))?;
    stable(&text, &tree.display().to_string(), &source.commit)
}

/// The bill without what differs between two runs: the folder of the build, and a random number,
/// for which the commit stands.
fn stable(text: &str, folder: &str, commit: &str) -> Result<String> {
    let mut bill: Value = serde_json::from_str(&text.replace(folder, "/bulla/source"))?;
    let bill_of = bill.as_object_mut().context("the bill of materials is no object")?;
    bill_of.remove("serialNumber");
    let components = bill_of.get("components").and_then(Value::as_array).map_or(0, Vec::len);
    anyhow::ensure!(components > 50, "the bill of materials has {components} components");
    bill_of["metadata"]["properties"] = serde_json::json!([{ "name": "bulla:commit", "value": commit }]);
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}
