//! npm.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
    quiet,
};
use serde_json::Value;

use crate::{files, source::Source};

/// The files that the package must have beside its code.
const REQUIRED: [&str; 5] = ["package.json", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "dist/index.d.ts"];

/// One of our packages.
struct Package {
    name: &'static str,
    folder: &'static str,
    /// A program that shows that the package is complete, and its output.
    program: &'static str,
    output: &'static str,
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "bulla",
        folder: "js",
        program: "import { hash, toHex } from 'bulla'; import { hash as pure } from 'bulla/pure';\n\
            console.log(toHex(hash('abc')) === toHex(pure('abc')), toHex(hash('abc')))",
        output: "true 6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
    },
    Package {
        name: "bulla-kms",
        folder: "js/kms",
        program: "import { Client } from 'bulla-kms'; const none = { retries: 0 };\n\
            console.log(await new Client('http://127.0.0.1:1', none).key('k').catch(({ code }) => code))",
        output: "unreachable",
    },
];

pub(super) fn run(context: &Context, source: &Source) -> Result<()> {
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        install::debian(&DebianTool { program, package })?;
    }
    let tree = context.target.join("dist-npm/source");
    source.unpack(context, &tree)?;
    // The compiler is a package of `js/`, and both of ours find it there.
    npm(&tree.join("js"), &["ci", "--no-audit", "--no-fund", "--ignore-scripts"])?;
    for package in &PACKAGES {
        published(context, source, &tree, package).with_context(|| package.name)?;
    }
    files::fresh(&tree)
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<String> {
    quiet(Command::new("npm").args(arguments).current_dir(folder))
}

/// Does everything that publishing a package does, except the upload, and uses the package.
fn published(context: &Context, source: &Source, tree: &Path, package: &Package) -> Result<()> {
    let npm = |arguments: &[&str]| npm(&tree.join(package.folder), arguments);
    // It builds the package first, by the script `prepack`.
    let said = npm(&["publish", "--dry-run", "--access", "public", "--json"])?;
    let start = said.find("{\n").with_context(|| format!("npm publish says {said}"))?;
    let report: Value = serde_json::from_str(&said[start..])?;
    // npm 11 puts the report below the name of the package.
    let report = report.get(package.name).unwrap_or(&report);
    ensure!(report["version"] == source.version.as_str(), "npm would publish {}", report["version"]);
    let listed = report["files"].as_array().context("npm lists no files")?;
    for required in REQUIRED {
        ensure!(listed.iter().any(|file| file["path"] == required), "the package has no {required}");
    }
    println!("{}: {} files, {} bytes packed", report["id"], listed.len(), report["size"]);
    let packed = context.target.join("dist-npm/packed");
    files::fresh(&packed)?;
    npm(&["pack", "--ignore-scripts", "--pack-destination", &packed.to_string_lossy()])?;
    installed(&packed, &context.target.join("dist-npm/user"), package)
}

/// Installs the packed package in an empty folder, without the registry, and uses it with the Node
/// of this machine.
fn installed(packed: &Path, user: &Path, Package { program, output, .. }: &Package) -> Result<()> {
    let archive = files::list(packed)?.into_iter().next().context("npm packed nothing")?;
    files::fresh(user)?;
    files::write(&user.join("package.json"), "{ \"type\": \"module\" }\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]).arg(&archive);
    quiet(npm.current_dir(user)).context("cannot install the package")?;
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval", program]).current_dir(user);
    let said = quiet(&mut node)?;
    ensure!(said.trim() == *output, "the installed package says {said}");
    let version = quiet(Command::new("node").arg("--version"))?;
    println!("installed from its archive, and used with Node {}", version.trim());
    Ok(())
}
