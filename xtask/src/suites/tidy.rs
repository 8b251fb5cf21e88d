//! The suite `tidy`: what a program can say about the code without running it.

use std::process::Command;

use anyhow::{Result, bail};

use super::runner::Runner;
use crate::{
    context::Context,
    install::{self, CargoTool},
    process::quiet,
    style,
};

const CARGO_DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2" };

/// A machine without an operating system, so without `std`: 32 bits, no vectors that we know.
const BARE_TARGET: &str = "thumbv7em-none-eabihf";

/// The library that must build without `std`, and with each of its features alone.
const LIBRARY: &str = "bulla-blake3";

pub(super) fn run(runner: &mut Runner<'_>) {
    for component in ["rustfmt", "clippy"] {
        runner.need(component, |_| install::rust_component(component));
    }
    runner.check("style", |context| style::check(&context.root));
    let context = runner.context;
    runner.command("rustfmt", context.cargo().args(["fmt", "--all", "--check"]));
    runner.command("clippy", &mut clippy(context));
    runner.command("rustdoc", &mut rustdoc(context));
    runner.check("licences, bans, sources", deny);
    no_std(runner);
    features_alone(runner);
}

fn clippy(context: &Context) -> Command {
    let mut command = context.cargo();
    command.args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]);
    command
}

fn rustdoc(context: &Context) -> Command {
    let mut command = context.cargo();
    command
        .args(["doc", "--quiet", "--workspace", "--all-features", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn deny(context: &Context) -> Result<()> {
    let program = install::cargo_tool(context, &CARGO_DENY)?;
    let status = Command::new(program)
        .current_dir(&context.root)
        // Two versions of one crate are a warning, and a long one: the inclusion graphs add nothing here.
        .args(["check", "--hide-inclusion-graph", "licenses", "bans", "sources"])
        .status()?;
    if !status.success() {
        bail!("cargo deny: {status}");
    }
    Ok(())
}

fn no_std(runner: &mut Runner<'_>) {
    runner.need(BARE_TARGET, |_| install::rust_target(BARE_TARGET));
    let mut command = runner.context.cargo();
    command.args(["build", "--quiet", "-p", LIBRARY, "--no-default-features", "--target", BARE_TARGET]);
    runner.command(&format!("{LIBRARY} for {BARE_TARGET}"), &mut command);
}

fn features_alone(runner: &mut Runner<'_>) {
    let features = match features(runner.context, LIBRARY) {
        Ok(features) => features,
        Err(error) => return runner.need("features", |_| Err(error)),
    };
    for feature in features {
        let mut command = runner.context.cargo();
        command.args(["clippy", "--quiet", "-p", LIBRARY, "--no-default-features", "--features", &feature]);
        command.args(["--", "-D", "warnings"]);
        runner.command(&format!("{LIBRARY} with the feature {feature} alone"), &mut command);
    }
}

/// The features of one package of the workspace, without `default`.
fn features(context: &Context, package: &str) -> Result<Vec<String>> {
    let text = quiet(context.cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(features) =
        packages.iter().find(|p| p["name"] == package).and_then(|p| p["features"].as_object())
    else {
        bail!("the workspace has no package {package}");
    };
    Ok(features.keys().filter(|name| *name != "default").cloned().collect())
}
