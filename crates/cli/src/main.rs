//! The command `bulla`: hash, sign and verify files.
#![forbid(unsafe_code)]

mod algorithm;
mod args;
mod commands;
mod files;
mod findings;
mod folder;
mod idle;
mod minisign;
mod programs;
mod service_log;
mod store;
mod trust;

use bulla_command::{color, diagnostics, error, exit, file_name, interrupt, output, program, progress};
use bulla_kms::audit_log::Actor;
use bulla_kms::audit_log::AuditContext;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some((program, args)) = programs::asked(&words) {
        return program::exit_code(program.start(&args));
    }
    let cli = match program::accept(args::Cli::from_command_line(words)) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    cli.color.apply();
    let run = || commands::run(cli.command);
    program::exit_code(match actor() {
        Some(actor) => AuditContext::scope(&actor, run),
        None => run(),
    })
}

/// The actor on whose behalf the command runs: the user, by number.
fn actor() -> Option<Actor> {
    #[cfg(unix)]
    return format!("uid:{}", rustix::process::getuid().as_raw()).parse().ok();
    #[cfg(not(unix))]
    return None;
}
