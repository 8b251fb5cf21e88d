//! The flags of `bulla token`.

use super::shared::{KeystoreArgs, duration};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Make, weaken and read capability tokens
///
/// Whoever has a token may do what it says, until it ends. Its holder can make a weaker one without asking. The keystore's key
/// `tokens` signs them; it is made when it is first needed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla token new --operation export --key releases --expires-in 1h --output token
  bulla token attenuate token --expires-in 5m --output shorter
  bulla token inspect shorter")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    New(Box<TokenNewArgs>),
    Attenuate(TokenAttenuateArgs),
    Inspect(TokenInspectArgs),
}

fn operation() -> impl TypedValueParser<Value = bulla_kms::token::Operation> {
    PossibleValuesParser::new(bulla_kms::token::Operation::ALL.map(bulla_kms::token::Operation::as_str))
        .try_map(|name| name.parse::<bulla_kms::token::Operation>())
}

/// Make a token
///
/// Without --key it is for all keys of the keystore. It is printed, or written to a file that only you can read.
#[derive(Args)]
pub(crate) struct TokenNewArgs {
    /// What it permits; may be given several times
    #[arg(long = "operation", value_name = "NAME", value_parser = operation(), required = true)]
    pub(crate) operations: Vec<bulla_kms::token::Operation>,

    /// With which key: its label or its id; may be given several times
    #[arg(long = "key", value_name = "LABEL|ID")]
    pub(crate) keys: Vec<String>,

    /// For how long: a number and s, m, h or d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) expires_in: Duration,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Make a weaker token of one
///
/// No keystore is needed. What is named remains, and everything else is taken away.
#[derive(Args)]
pub(crate) struct TokenAttenuateArgs {
    /// The file with the token, or `-` for standard input
    pub(crate) token: PathBuf,

    /// What remains permitted; may be given several times
    #[arg(long = "operation", value_name = "NAME", value_parser = operation())]
    pub(crate) operations: Vec<bulla_kms::token::Operation>,

    /// With which key, by its id; may be given several times
    #[arg(long = "key", value_name = "ID")]
    pub(crate) keys: Vec<bulla_kms::KeyFamily>,

    /// For how long from now: a number and s, m, h or d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) expires_in: Option<Duration>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Print what a token says
///
/// It proves nothing of who made it. The revocation id of a block revokes it, and all tokens that were made of it.
#[derive(Args)]
pub(crate) struct TokenInspectArgs {
    /// The file with the token, or `-` for standard input
    pub(crate) token: PathBuf,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
