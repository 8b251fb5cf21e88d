//! The command line of `bulla serve`.

use bulla_cli::audit_log::{LogVerifyArgs, LogWitnessArgs};
use bulla_cli::keystore::ServerArgs;
use bulla_command::color::ColorWhen;
use bulla_kms::pkcs11::DeviceConfig;
use bulla_server::LogLevel;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Run the key management service over HTTP
///
/// The service signs and verifies with the keys of one keystore, for callers with capability tokens
/// (`bulla token`), client certificates, or users of this machine on a Unix socket. While it runs,
/// other commands cannot change the keystore. A keystore with a passphrase that nobody gave starts
/// sealed: an operator unseals it over HTTP.
#[derive(Parser)]
#[command(name = "bulla-serve", bin_name = "bulla serve", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  bulla serve --dev                          try it out: all in memory, every caller may do everything
  bulla serve --listen 127.0.0.1:8200        serve your keystore to this machine
  bulla serve --config /etc/bulla/serve.toml
  bulla serve check-config --config serve.toml

SIGHUP makes the service read its settings and certificates again. SIGTERM shuts it down gracefully.
docs/operations.md lists all settings.

Exit status: 0 the service was shut down, 2 it could not start.")]
pub(crate) struct Cli {
    /// When to use color; NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,

    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
}

#[derive(Subcommand)]
pub(crate) enum ServeCommand {
    /// Check the settings and the certificates that they name
    #[command(after_help = "\
Examples:
  bulla serve check-config --config serve.toml

Exit status: 0 the settings are valid, 2 they are not.")]
    CheckConfig(ServeArgs),
    /// Print the effective configuration, with every default, as TOML; secrets are never printed
    #[command(after_help = "\
Examples:
  bulla serve print-config --config serve.toml

Exit status: 0 printed, 2 the settings are not valid.")]
    PrintConfig(ServeArgs),
    /// Print the description of the endpoints (OpenAPI, JSON)
    #[command(after_help = "\
Examples:
  bulla serve print-openapi > openapi.json

Exit status: 0 printed, 2 not printed.")]
    PrintOpenapi,
    /// Create what nodes with a keystore in etcd need
    #[command(after_help = "\
Examples:
  bulla serve init keystore --config /etc/bulla/serve.toml
  bulla serve init guard --config /etc/bulla/serve.toml
  bulla serve init audit-log --config /etc/bulla/serve.toml

Exit status: 0 created, 2 not created.")]
    Init(InitArgs),
    /// Carry out a command of `bulla log` that reads the settings of the service
    #[command(
        name = "log",
        hide = true,
        after_help = "\
Examples:
  bulla serve log verify --config /etc/bulla/serve.toml

Exit status: 0 success, 1 a log does not verify, 2 something could not be checked."
    )]
    Log(LogArgs),
}

/// The settings, and what opens the keystore.
#[derive(Args, Clone)]
pub(crate) struct ServeArgs {
    /// Read the settings from FILE (TOML); variables such as BULLA_SERVE__LIMITS__MAX_BATCH_ITEMS
    /// override them
    #[arg(long, value_name = "FILE", env = "BULLA_SERVE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// Listen on this address, beside those of the settings; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,

    /// Write lines of this level and of those above it to standard error [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    pub(crate) log_level: Option<LogLevel>,

    /// Keep all keys in memory, and let every caller do everything; for trying the service out
    ///
    /// It listens on 127.0.0.1:8200 unless --listen names another address of this machine.
    #[arg(long)]
    pub(crate) dev: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Where the keystore is, and what opens it.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Keystore")]
pub(crate) struct KeystoreArgs {
    /// The keystore's folder [default: `bulla` in your data folder]
    #[arg(long, value_name = "DIR", env = "BULLA_KEYSTORE", hide_env_values = true)]
    pub(crate) keystore: Option<PathBuf>,

    /// Read the keystore's passphrase from the first line of FILE
    #[arg(long, value_name = "FILE", env = "BULLA_PASSPHRASE_FILE", hide_env_values = true)]
    pub(crate) passphrase_file: Option<PathBuf>,

    /// Unwrap the keystore's root key with the identity in FILE
    #[arg(long, value_name = "FILE", env = "BULLA_IDENTITY", hide_env_values = true)]
    pub(crate) identity: Option<PathBuf>,

    /// The PKCS#11 device that holds the private keys of the backend `pkcs11`, as a URI (RFC 7512)
    #[arg(long, value_name = "URI", env = "BULLA_PKCS11", hide_env_values = true)]
    pub(crate) pkcs11: Option<DeviceConfig>,
}

impl KeystoreArgs {
    /// The flags as the library of the command knows them: there, a service may have the keys, and
    /// a user whose variable names one is told that the service needs a keystore.
    pub(crate) fn to_command(&self) -> bulla_cli::keystore::KeystoreArgs {
        let Self { keystore, passphrase_file, identity, pkcs11 } = self.clone();
        let server = ServerArgs::of_variable();
        bulla_cli::keystore::KeystoreArgs { keystore, passphrase_file, identity, pkcs11, server }
    }
}

#[derive(Args)]
pub(crate) struct InitArgs {
    /// What to create
    #[arg(value_name = "WHAT")]
    pub(crate) what: NewPart,

    /// Read the settings from FILE (TOML)
    #[arg(long, value_name = "FILE", env = "BULLA_SERVE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// What a service over etcd needs before its first node starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewPart {
    /// The keystore, once for all nodes
    Keystore,
    /// The rollback guard of this node
    Guard,
    /// The key that signs the audit logs, once for all nodes: each node then keeps a log
    AuditLog,
}

#[derive(Args)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    pub(crate) command: LogCommand,
}

/// The commands of `bulla log` that read the settings of the service.
#[derive(Subcommand)]
pub(crate) enum LogCommand {
    Verify(Box<LogVerifyArgs>),
    Witness(Box<LogWitnessArgs>),
}

/// The parser of levels, which knows their names.
fn level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str))
        .map(|name| LogLevel::ALL.into_iter().find(|level| level.as_str() == name).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_command::tree::CommandTree;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_every_command_has_examples_and_exit_statuses() {
        // The commands of `bulla log` have those of bulla.
        let tree = CommandTree::of(&Cli::command());
        let missing = tree.missing_help("bulla serve");
        assert!(missing.iter().all(|text| text.starts_with("bulla serve log ")), "{missing:?}");
    }
}
