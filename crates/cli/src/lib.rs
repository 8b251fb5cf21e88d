//! The command `bulla`: hash, sign and verify files.
//!
//! The program is [`main`]. The rest is for `bulla-remote`, which carries out the commands that use
//! the keys of a service, and for `bulla-serve`, which carries out the commands of `bulla log` that
//! read the settings of the service.
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
mod programs;
mod ssh_trust;
mod store;
mod trust;

use bulla_command::{color, diagnostics, error, exit, interrupt, output, program, progress};
use std::process::ExitCode;

/// Runs the command, for the arguments of this process.
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some((program, args)) = programs::asked(&words) {
        return program.start(&args).report();
    }
    if commands::git::is_asked(&words) {
        return commands::git::answer(words);
    }
    let cli = match program::accept(args::Cli::from_command_line(words)) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    cli.color.apply();
    if let Err(missing) = cli.command.ensure_reachable() {
        return missing.report();
    }
    program::exit_code(commands::run(cli.command))
}

/// The commands of `bulla log` that read the settings of the service: `bulla-serve` carries
/// them out.
pub mod audit_log {
    pub use crate::args::{LogVerifyArgs, LogWitnessArgs, ReportArgs};
    pub use crate::commands::log::{Trust, print_problems, read_checkpoints, verify, witness};
    pub use crate::store::{Log, LogCondition, LogFolder, WitnessPolicy};
    pub use crate::trust::GivenKey;
}

/// The flags that name a keystore, and what they mean.
pub mod keystore {
    pub use crate::args::{KeystoreArgs, ServerArgs};
    pub use crate::store::{LocalKeystore, keystore_folder, note_recovered, secrets, service_address};
}

/// What commands do with keys, wherever these are, and what `bulla-remote` adds to them.
pub mod remote {
    pub use crate::args::{
        BundleTrustArgs, Deadline, KeysCsrArgs, KeysExportArgs, NameArgs, PublicKeyFormat, ReportArgs,
        deadline, duration, duration_text,
    };
    pub use crate::commands::{public_key_text, write_public_key};
    pub use crate::programs::{start_age_plugin, strip_command};
    pub use crate::store::{
        BackedUp, BundleTrust, ImportTarget, KeySource, Keys, Material, PrivateFile, ReadKeys,
        RemoteFunctions, Service, parse_name, register_remote_functions,
    };
    pub use crate::trust::public_key;
}

/// Files with secrets, and files that are either complete or absent.
pub mod file {
    pub use crate::files::{atomic, secret, sidecar};
}
