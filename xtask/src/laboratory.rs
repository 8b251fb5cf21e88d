//! The commands of the laboratory. They are the program `bulla-bench`, so that this one stays small.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};
use bulla_devtools::{Context, build_program};

/// The commands of `cargo xtask` that the program of the laboratory runs.
pub(crate) const COMMANDS: [&str; 7] =
    ["bench", "gate", "lanes", "report", "dashboard", "flame", "audit-matrix"];

/// What a command of the laboratory takes: its own program reads it.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Builds the program, runs it with this command, and has its exit status.
pub(crate) fn run(command: &str, args: &Args) -> Result<ExitCode> {
    let program = build(&Context::find()?)?;
    let status = Command::new(&program).arg(command).args(&args.arguments).status();
    let status = status.with_context(|| format!("cannot start {}", program.display()))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}

/// Builds the program, in the profile of this one, and returns its path.
pub(crate) fn build(context: &Context) -> Result<PathBuf> {
    build_program(context.cargo().args(["build", "--quiet", "-p", "bulla-bench"]))
}
