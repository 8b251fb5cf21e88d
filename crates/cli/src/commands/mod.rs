//! What the commands do.

mod about;
#[cfg(unix)]
mod agent;
mod attested;
mod check;
mod encrypt;
mod encrypt_value;
mod file_digests;
mod foreign;
pub(crate) mod git;
mod hashing;
mod key_change;
mod keys;
mod keystore;
pub(crate) mod log;
mod sign;
mod sign_report;
mod sign_target;
mod ssh_cert;
mod ssh_keys;
mod sum;
mod sum_lines;
mod sum_resume;
mod transfer;
mod trees;
mod verify;
mod walking;

pub use self::keys::{public_key_text, write_public_key};
pub(crate) use self::walking::report;

use crate::args::Command;
use crate::error::Result;
use crate::exit::Exit;

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Exit> {
    about::check_forced()?;
    match command {
        Command::Sign(args) => sign::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Encrypt(args) => encrypt::encrypt(&args),
        Command::Decrypt(args) => encrypt::decrypt(&args),
        Command::Rekey(args) => encrypt::rekey(&args),
        Command::Keygen(args) => encrypt::keygen(&args),
        Command::Keys(args) => keys::run(&args.command),
        Command::Keystore(args) => keystore::run(&args.command),
        Command::Sum(args) => sum::run(&args),
        Command::Check(args) => check::run(&check::Options::of_check(&args)?),
        Command::Kernels(args) => about::print_kernels(&args),
        Command::Log(args) => log::run(&args.command),
        #[cfg(unix)]
        Command::Agent(args) => agent::run(&args),
        Command::Git(args) => git::run(&args),
        Command::SshCert(args) => ssh_cert::run(&args),
        Command::Completions(args) => about::print_completions(&args),
        Command::Man(args) => about::print_manual_page(&args),
        Command::Version(args) => about::print_version(&args),
    }
}
