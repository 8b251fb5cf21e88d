//! The command `bulla`: hash, sign and verify files.
#![forbid(unsafe_code)]

mod algorithm;
mod args;
mod commands;
mod error;
mod exit;
mod files;
mod folder;
mod interrupt;
mod minisign;
mod output;
mod progress;
mod report;
mod store;
mod trust;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    output::choose_colour(cli.color);
    let run = || commands::run(cli.command);
    let done = match store::actor() {
        Some(actor) => actor.acting(run),
        None => run(),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => error.report(),
    }
}
