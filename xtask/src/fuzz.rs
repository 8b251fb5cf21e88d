//! `cargo xtask fuzz`: runs the cargo-fuzz targets of the crates.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail};
use bulla_devtools::{
    Context,
    install::{self, CargoTool},
};

use crate::seeds;

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
        seeds::write(&context.root, &target.name, &target.folder.join("corpus").join(&target.name))?;
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
