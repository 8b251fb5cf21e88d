//! The suite `tidy`: checks of the code that need not run it.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, install, quiet};
use ignore::WalkBuilder;

use super::{programs, runner::Runner};
use crate::{dependencies, documents, forward::DIST, style};

/// Machines without an operating system, and so without `std`: one of 32 bits, and one that has our
/// vectors but may not use their registers, as in a kernel.
const BARE_TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "x86_64-unknown-none"];

/// Targets for which the libraries are linted, which needs no linker. Suite `lanes` runs them on
/// some.
const LINTED_TARGETS: [&str; 8] = [
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "aarch64-pc-windows-msvc",
    "x86_64-pc-windows-gnu",
    "aarch64-unknown-linux-gnu",
    "powerpc64le-unknown-linux-gnu",
    "riscv64gc-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
];

/// The libraries with kernels.
const KERNELS: [&str; 4] = ["bulla-simd", "bulla-blake2", "bulla-blake3", "bulla-ed25519"];

/// The libraries that read files by functions of the system. No suite builds them for macOS.
const FILES: [&str; 3] = ["bulla-files", "bulla-mmap", "bulla-sums"];

/// The libraries that must build without `std`, and with each feature alone.
const LIBRARIES: [&str; 3] = ["bulla-blake2", "bulla-blake3", "bulla-ed25519"];

pub(super) fn run(runner: &mut Runner<'_>) {
    for component in ["rustfmt", "clippy"] {
        runner.need(component, |_| install::rust_component(component));
    }
    runner.need("protobuf", |_| install::protobuf());
    runner.check("style", |context| style::check(&context.root));
    runner.check("links of the documents", documents::check_links);
    runner.check("decisions and their index", documents::check_decisions);
    runner.forward("what registries require", DIST, &["manifests".as_ref()]);
    let (context, parsers) = (runner.context, runner.parsers(Path::new("bulla")));
    runner.check("workflows", |context| documents::check_workflows(context, &parsers));
    runner.command("rustfmt", context.cargo().args(["fmt", "--all", "--check"]));
    runner.check("rustfmt, other workspaces", other_workspaces);
    runner.command("clippy", &mut clippy(context));
    runner.command("rustdoc", &mut rustdoc(context));
    runner.check("licenses and sources of the dependencies", dependencies::check);
    runner.check("versions in the fuzz targets", dependencies::check_fuzz_locks);
    for target in LINTED_TARGETS {
        runner.need(target, |_| install::rust_target(target));
    }
    runner.command("clippy for other targets", &mut clippy_elsewhere(context, &LINTED_TARGETS, &KERNELS));
    runner.command("clippy for macOS", &mut clippy_elsewhere(context, &LINTED_TARGETS[..1], &FILES));
    no_std(runner);
    features_alone(runner);
}

/// The separate workspaces: they need another compiler, or must not share code with the rest.
fn other_workspaces(context: &Context) -> Result<()> {
    let mut found = 0;
    for entry in WalkBuilder::new(&context.root).require_git(false).build() {
        let path = entry?.into_path();
        let is_apart = path.file_name().is_some_and(|name| name == "Cargo.toml")
            && path.parent() != Some(&context.root)
            && fs::read_to_string(&path)?.lines().any(|line| line == "[workspace]");
        if is_apart {
            quiet(context.cargo().args(["fmt", "--check", "--manifest-path"]).arg(&path))
                .with_context(|| format!("{}", path.display()))?;
            found += 1;
        }
    }
    ensure!(found > 0, "there is none");
    Ok(())
}

/// In the profile of the tests, which need the output of build scripts too.
fn clippy(context: &Context) -> Command {
    let mut command = context.cargo();
    command.args([
        "clippy",
        "--quiet",
        "--profile=test",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]);
    command
}

/// The libraries for other targets, with their default features. In the profile of tests, Cargo
/// would also build what tests depend on, for which some of these targets need a C compiler.
fn clippy_elsewhere(context: &Context, targets: &[&str], packages: &[&str]) -> Command {
    let mut command = context.cargo();
    command.args(["clippy", "--quiet"]);
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command.args(["--", "-D", "warnings"]);
    command
}

fn rustdoc(context: &Context) -> Command {
    let mut command = context.cargo();
    command
        .args(["doc", "--quiet", "--profile=test", "--workspace", "--all-features", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn no_std(runner: &mut Runner<'_>) {
    for target in BARE_TARGETS {
        runner.need(target, |_| install::rust_target(target));
        for library in LIBRARIES {
            // The crate sha2 does not compile where vectors have no registers.
            if library == "bulla-ed25519" && target == "x86_64-unknown-none" {
                continue;
            }
            let mut command = runner.context.cargo();
            command.args(["build", "--quiet", "-p", library, "--no-default-features", "--target", target]);
            runner.command(&format!("{library} for {target}"), &mut command);
        }
    }
}

fn features_alone(runner: &mut Runner<'_>) {
    let features = match programs::features(runner.context) {
        Ok(features) => features,
        Err(error) => return runner.need("features", |_| Err(error)),
    };
    let features = features.split(',').filter_map(|one| one.split_once('/'));
    for (library, feature) in features.filter(|(package, _)| LIBRARIES.contains(package)) {
        let mut command = runner.context.cargo();
        command.args(["clippy", "--quiet", "-p", library, "--no-default-features"]);
        command.args(["--features", feature, "--", "-D", "warnings"]);
        runner.command(&format!("{library} with the feature {feature} alone"), &mut command);
    }
}
