//! The command `bulla`: hash, sign and verify files.
//!
//! The program is [`main`]. The rest is for `bulla-serve`, which carries out the commands of
//! `bulla log` that read the settings of the service.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "only programs of this workspace use it, and its interface follows their needs"
)]

mod algorithm;
mod args;
mod commands;
mod files;
mod findings;
mod folder;
mod idle;
mod minisign;
mod programs;
mod store;
mod trust;

use bulla_command::{color, diagnostics, error, exit, interrupt, output, program, progress};
use bulla_kms::audit_log::Actor;
use bulla_kms::audit_log::AuditContext;
use std::process::ExitCode;

/// Runs the command, for the arguments of this process.
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some((program, args)) = programs::asked(&words) {
        return program::exit_code(program.start(&args));
    }
    let cli = match program::accept(args::Cli::from_command_line(words)) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    cli.color.apply();
    program::exit_code(run_as_user(|| commands::run(cli.command)))
}

/// Runs a command in the name of the user: audit logs have the user's number.
pub fn run_as_user<T>(run: impl FnOnce() -> T) -> T {
    match actor() {
        Some(actor) => AuditContext::scope(&actor, run),
        None => run(),
    }
}

/// The actor on whose behalf the command runs: the user, by number.
fn actor() -> Option<Actor> {
    #[cfg(unix)]
    return format!("uid:{}", rustix::process::getuid().as_raw()).parse().ok();
    #[cfg(not(unix))]
    return None;
}

/// The commands of `bulla log` that read the settings of the service: `bulla-serve` carries
/// them out.
pub mod audit_log {
    pub use crate::args::{LogVerifyArgs, LogWitnessArgs, ReportArgs};
    pub use crate::commands::log::{Trust, print_problems, read_checkpoints, verify, witness};
    pub use crate::store::{Log, LogCondition, LogFolder, Remote, WitnessPolicy};
    pub use crate::trust::GivenKey;
}

/// The flags that name a keystore, and what they mean.
pub mod keystore {
    pub use crate::args::{KeystoreArgs, NamedServer, ServerArgs};
    pub use crate::store::{keystore_folder, note_recovered, secrets};
}
