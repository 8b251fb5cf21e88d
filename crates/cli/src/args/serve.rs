//! The flags of `bulla serve`.

use super::shared::KeystoreArgs;
use bulla_server::LogLevel;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Run the key management service over HTTP
///
/// The service signs and verifies with the keys of one keystore, for callers with capability tokens
/// (`bulla token`), client certificates, or users of this machine on a Unix socket. While it runs,
/// other commands cannot change the keystore. A keystore with a passphrase that nobody gave starts
/// sealed: an operator unseals it over HTTP.
#[derive(Args, Clone)]
#[command(after_help = "\
Examples:
  bulla serve --dev                                   try it out: all in memory, every caller may do everything
  bulla serve --listen 127.0.0.1:8200                 serve your keystore to this machine
  bulla serve --config /etc/bulla/serve.toml
  bulla serve --config serve.toml --check-config
  bulla serve --print-openapi > openapi.json
  bulla serve --config serve.toml --print-config

SIGHUP has the service read its settings and certificates again. SIGTERM has it answer what was asked, and stop.
docs/operations.md lists all settings.

Exit status: 0 the service was shut down, 2 it could not start.")]
pub(crate) struct ServeArgs {
    /// Read the settings from FILE (TOML); variables such as BULLA_SERVE__LIMITS__MAX_BATCH_ITEMS override
    /// them
    #[arg(long, value_name = "FILE", env = "BULLA_SERVE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// Listen on this address, beside those of the settings; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,

    /// Check the settings and the certificates that they name, and exit
    #[arg(long, conflicts_with = "dev")]
    pub(crate) check_config: bool,

    /// Print the description of the endpoints (OpenAPI, JSON), and exit
    #[arg(long, conflicts_with_all = ["dev", "check_config"])]
    pub(crate) print_openapi: bool,
    /// Print the settings as they count, with every default, as TOML, and exit; secrets are never
    /// printed
    #[arg(long, conflicts_with = "check_config")]
    pub(crate) print_config: bool,

    /// Write lines of this level and of those above it to standard error [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    pub(crate) log_level: Option<LogLevel>,

    /// Keep all keys in memory, and let every caller do everything; for trying the service out
    ///
    /// It listens on 127.0.0.1:8200 unless --listen names another address of this machine.
    #[arg(long)]
    pub(crate) dev: bool,

    /// Create what the settings name, in etcd or for this node, and exit
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["dev", "check_config", "print_config", "print_openapi"])]
    pub(crate) create: Option<Create>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// What a service over etcd needs before its first node starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Create {
    /// The keystore, once for all nodes
    Keystore,
    /// The rollback guard of this node
    Guard,
    /// The key that signs the audit logs, once for all nodes: each node then keeps a log
    AuditLog,
}

/// The parser of levels, which knows their names.
fn level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str))
        .map(|name| LogLevel::ALL.into_iter().find(|level| level.as_str() == name).unwrap_or_default())
}
