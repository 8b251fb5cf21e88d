//! The command `bulla`: hash, sign and verify files.
#![forbid(unsafe_code)]

mod algorithm;
mod args;
#[cfg(unix)]
mod closed_streams;
mod commands;
mod diagnostics;
mod error;
mod exit;
mod files;
mod findings;
mod folder;
mod idle;
mod interrupt;
mod minisign;
mod output;
mod progress;
mod service_log;
mod store;
mod style;
mod trust;

use crate::exit::Exit;
use crate::output::Out;
use bulla_kms::audit_log::Actor;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::Cli::from_command_line() {
        Ok(cli) => cli,
        Err(wrong) if wrong.use_stderr() => wrong.exit(),
        Err(wanted) => return explain(&wanted),
    };
    choose_colour(cli.color);
    let run = || commands::run(cli.command);
    let done = match actor() {
        Some(actor) => actor.acting(run),
        None => run(),
    };
    match done {
        // What a shell reports for a process that a signal ended.
        Ok(_) if let Some(signal) = interrupt::stopped() => ExitCode::from(128 + signal as u8),
        Ok(exit) => exit.into(),
        Err(error) => error.report(),
    }
}

/// Prints help or the version. The parser itself would ignore that it cannot print.
fn explain(wanted: &clap::Error) -> ExitCode {
    let mut out = Out::new();
    match out.styled(&wanted.render()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => error.report(),
    }
}

/// Decides for the whole process whether colours are used.
fn choose_colour(when: args::ColourWhen) {
    match when {
        // anstream itself checks the terminal, NO_COLOR, CLICOLOR and CLICOLOR_FORCE.
        args::ColourWhen::Auto => anstream::ColorChoice::Auto,
        args::ColourWhen::Always => anstream::ColorChoice::Always,
        args::ColourWhen::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// The actor on whose behalf the command runs: the user, by number.
fn actor() -> Option<Actor> {
    #[cfg(unix)]
    return format!("uid:{}", rustix::process::getuid().as_raw()).parse().ok();
    #[cfg(not(unix))]
    return None;
}
