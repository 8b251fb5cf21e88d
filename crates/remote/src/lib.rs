//! What the command `bulla` does with the keys of a service, with tokens, with keys of groups, and
//! with X.509, with the certificates and logs of Sigstore, and the plugins for Kubernetes and for
//! age: the program `bulla-remote`.
//!
//! The client of the service, with HTTP and TLS, and the libraries of tokens, of keys of groups, of
//! certificates and of Sigstore are many crates. `bulla` has none of them: it starts this program,
//! which has all commands of bulla.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "only programs of this workspace use it, and its interface follows their needs"
)]

mod age_plugin;
mod approvals;
mod args;
mod audit_log;
mod bundles;
mod connection;
mod export;
mod keys;
mod kms_plugin;
mod threshold;
mod token;
mod x509;

pub use self::connection::ServiceConnection;

use crate::approvals::ApprovalsCli;
use crate::args::{AgePluginCli, Cli, KmsPluginCli};
use crate::threshold::ThresholdCli;
use crate::x509::X509Cli;
use bulla_cli::keystore::ServerArgs;
use bulla_cli::remote::{
    BundleTrust, BundleTrustArgs, KeysCsrArgs, KeysExportArgs, RemoteFunctions, Service,
    register_remote_functions, strip_command,
};
use bulla_command::error::Result;
use bulla_command::exit::Exit;
use bulla_command::program;
use clap::Parser;
use std::ffi::OsString;
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

    fn request_certificate(&self, args: &KeysCsrArgs) -> Result<()> {
        x509::request(args)
    }

    fn bundle_trust(&self, args: &BundleTrustArgs) -> Result<Box<dyn BundleTrust>> {
        Ok(Box::new(bundles::Trusted::new(args)?))
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
    if let Some(words) = strip_command(&words, "token") {
        return run(words, |cli: Cli| {
            cli.color.apply();
            token::run(&cli.command)
        });
    }
    if let Some(words) = strip_command(&words, "approvals") {
        return run(words, |cli: ApprovalsCli| {
            cli.color.apply();
            approvals::run(&cli.command)
        });
    }
    if let Some(words) = strip_command(&words, "threshold") {
        return run(words, |cli: ThresholdCli| {
            cli.color.apply();
            threshold::run(&cli.command)
        });
    }
    if let Some(words) = strip_command(&words, "x509") {
        return run(words, |cli: X509Cli| {
            cli.color.apply();
            x509::run(&cli.command)
        });
    }
    if let Some(words) = strip_command(&words, "kms-plugin") {
        return run(words, |cli: KmsPluginCli| {
            cli.color.apply();
            kms_plugin::run(&cli)
        });
    }
    if let Some(words) = strip_command(&words, "age-plugin") {
        if let Some(machine) = age_plugin::machine(&words) {
            return program::exit_code(age_plugin::converse(machine, &words));
        }
        return run(words, |cli: AgePluginCli| {
            cli.color.apply();
            age_plugin::print(&cli)
        });
    }
    bulla_cli::main()
}

fn run<Arguments: Parser>(words: Vec<OsString>, command: impl FnOnce(Arguments) -> Result<Exit>) -> ExitCode {
    match program::parse_from(words) {
        Ok(arguments) => program::exit_code(command(arguments)),
        Err(status) => status,
    }
}
