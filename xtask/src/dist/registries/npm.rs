//! npm.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    context::Context,
    dist::{files, source::Source},
    install::{self, DebianTool},
    process::quiet,
};

/// What the package must have beside its code.
const REQUIRED: [&str; 5] = ["package.json", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "dist/index.d.ts"];

pub(super) fn run(context: &Context, source: &Source) -> Result<()> {
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        install::debian(&DebianTool { program, package })?;
    }
    let tree = context.target.join("dist-npm/source");
    source.unpack(context, &tree)?;
    let npm = |arguments: &[&str]| {
        let mut command = Command::new("npm");
        command.args(arguments).current_dir(tree.join("js"));
        quiet(&mut command)
    };
    npm(&["ci", "--no-audit", "--no-fund", "--ignore-scripts"])?;
    // It builds the package first, by the script `prepack`.
    let said = npm(&["publish", "--dry-run", "--access", "public", "--json"])?;
    let start = said.find("{\n").with_context(|| format!("npm publish says {said}"))?;
    let report: Value = serde_json::from_str(&said[start..])?;
    // npm 11 puts the report below the name of the package.
    let report = report.get("bulla").unwrap_or(&report);
    ensure!(report["version"] == source.version.as_str(), "npm would publish {}", report["version"]);
    let listed = report["files"].as_array().context("npm lists no files")?;
    for required in REQUIRED {
        ensure!(listed.iter().any(|file| file["path"] == required), "the package has no {required}");
    }
    println!("{}: {} files, {} bytes packed", report["id"], listed.len(), report["size"]);
    files::fresh(&tree)
}
