//! The test programs of the workspace: built once, with one set of features, for all suites.
//!
//! `cargo test -p PACKAGE` has another set of features for each package, and builds the dependencies that they touch anew each time.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{context::Context, process::quiet, program::Program};

/// Lets the harness of a stable compiler take options that are not stable. Whoever starts cargo from a test takes it away again: it
/// would build everything anew.
pub(super) const UNSTABLE_HARNESS: &str = "RUSTC_BOOTSTRAP";

/// Builds the test programs of all packages with all features but those that hold peers back.
pub(super) fn build(context: &Context) -> Result<Vec<Program>> {
    let metadata = metadata(context)?;
    let output = context
        .cargo()
        .args(["test", "--no-run", "--workspace", "--message-format=json-render-diagnostics", "--features"])
        .arg(all_features(&metadata).join(","))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo test")?;
    ensure!(output.status.success(), "cargo test --no-run: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs: Vec<_> = messages.filter_map(|message| program(&metadata, &message)).collect();
    ensure!(!programs.is_empty(), "cargo built no test program");
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// What `--features` takes for the same features as the test programs have.
pub(super) fn features(context: &Context) -> Result<String> {
    Ok(all_features(&metadata(context)?).join(","))
}

fn metadata(context: &Context) -> Result<Value> {
    let text = quiet(context.cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    Ok(serde_json::from_str(&text)?)
}

/// Every feature of every package, as `PACKAGE/FEATURE`.
fn all_features(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |package: &Value| {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let features = package["features"].as_object().into_iter().flatten();
        let wanted = features.filter(|(feature, _)| *feature != "default" && !feature.starts_with("peer-"));
        wanted.map(|(feature, _)| format!("{name}/{feature}")).collect::<Vec<_>>()
    };
    packages.iter().flat_map(of).collect()
}

/// The test program that a message of cargo is about, if it is about one.
fn program(metadata: &Value, message: &Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let packages = metadata["packages"].as_array()?;
    let package = packages.iter().find(|package| package["id"] == message["package_id"])?["name"].as_str()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let (kind, target) = (message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
    Some(Program { package: package.to_owned(), name: format!("{package}, {kind} {target}"), path, folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Value {
        serde_json::json!({ "packages": [
            { "id": "path+a", "name": "a", "features": { "default": [], "x": [], "y": [] } },
            { "id": "path+lab", "name": "lab", "features": { "peer-no-avx2": [] } },
        ]})
    }

    #[test]
    fn all_features_are_named_but_those_of_peers() {
        assert_eq!(all_features(&metadata()), ["a/x", "a/y"]);
    }

    #[test]
    fn programs_are_those_that_are_tests() {
        let message = |test: bool| {
            serde_json::json!({
                "package_id": "path+a", "manifest_path": "/checkout/a/Cargo.toml", "executable": "/t/a-1",
                "target": { "kind": ["test"], "name": "all" }, "profile": { "test": test },
            })
        };
        assert!(program(&metadata(), &message(false)).is_none());
        let program = program(&metadata(), &message(true)).unwrap();
        assert_eq!((program.package.as_str(), program.name.as_str()), ("a", "a, test all"));
        assert_eq!(program.folder, Path::new("/checkout/a"));
    }
}
