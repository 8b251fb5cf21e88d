//! `cargo xtask advisories`: asks the database of RustSec about every dependency.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use bulla_devtools::{
    Context,
    install::{self, CARGO_DENY},
};

/// What `cargo xtask advisories` takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask advisories\n\n\
    It needs GitHub, so it is not a test: docs/decisions/0030-cargo-deny.md. Run it before a release, and when a dependency changes.\n\n\
    Exit status: 0 no dependency has an advisory, 1 one has, or the database could not be read.")]
pub(crate) struct Args {}

/// Runs cargo-deny.
pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let program = install::cargo_tool(&context, &CARGO_DENY)?;
    let status = Command::new(program)
        .current_dir(&context.root)
        .args(["check", "--hide-inclusion-graph", "advisories"])
        .status()
        .context("cannot start cargo-deny")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
