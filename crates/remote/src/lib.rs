//! What the command `bulla` does with the keys of a service, and with tokens: the program
//! `bulla-remote`.
//!
//! The client of the service, with HTTP and TLS, and the library of tokens are many crates. `bulla`
//! has none of them: it starts this program, which has all commands of bulla.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "only programs of this workspace use it, and its interface follows their needs"
)]

mod args;
mod audit_log;
mod connection;
mod export;
mod keys;
mod token;

pub use self::connection::ServiceConnection;

use crate::args::Cli;
use bulla_cli::keystore::ServerArgs;
use bulla_cli::remote::{KeysExportArgs, RemoteFunctions, Service, register_remote_functions, strip_command};
use bulla_command::error::Result;
use bulla_command::program;
use bulla_command::tree::DESCRIBE;
use clap::Parser as _;
use std::process::ExitCode;

/// The functions that commands of bulla need.
struct Functions;

impl RemoteFunctions for Functions {
    fn service(&self, address: &str, args: &ServerArgs) -> Result<Box<dyn Service>> {
        Ok(Box::new(ServiceConnection::new(address, args)?))
    }

    fn export_key(&self, args: &KeysExportArgs) -> Result<()> {
        export::export_key(args)
    }
}

/// Lets the library of the command use the keys of services.
pub fn register() {
    register_remote_functions(&Functions);
}

/// Runs the command, for the arguments of this process.
pub fn main() -> ExitCode {
    register();
    let words: Vec<_> = std::env::args_os().collect();
    let parsed = match strip_command(&words, "token") {
        Some(words) => program::accept(Cli::try_parse_from(words)),
        None if words.get(1).is_some_and(|word| word == DESCRIBE) => program::parse::<Cli>(),
        None => return bulla_cli::main(),
    };
    let cli = match parsed {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    cli.color.apply();
    program::exit_code(token::run(&cli.command))
}
