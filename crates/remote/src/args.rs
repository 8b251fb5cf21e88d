//! The flags of `bulla token`, `bulla kms-plugin` and `bulla age-plugin`.

use bulla_cli::keystore::{KeystoreArgs, ServerArgs};
use bulla_cli::remote::{Deadline, deadline};
use bulla_command::color::ColorWhen;
use bulla_kms::KeyId;
use bulla_kms::token::{Holder, TokenOperation};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Mint, attenuate and inspect capability tokens, and log in for one
///
/// A token permits operations with keys until it expires. It works for anyone who holds it: give it
/// a short lifetime. The holder can make a weaker token from it, without the keystore. The
/// keystore's key `tokens` signs tokens; bulla creates that key when it is first needed.
#[derive(Parser)]
#[command(name = "bulla-remote", bin_name = "bulla token", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla token new --operation export --key releases --expires 1h --output token
  bulla token login release jwt --server https://keys.example.org --output token
  bulla token attenuate token --expires 5m --output shorter
  bulla token inspect shorter

Exit status: 0 done, 2 not done.")]
pub(crate) struct Cli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    New(Box<TokenNewArgs>),
    Login(TokenLoginArgs),
    Attenuate(TokenAttenuateArgs),
    Inspect(TokenInspectArgs),
}

/// The parser of operations, which knows their names.
fn operation() -> impl TypedValueParser<Value = TokenOperation> {
    PossibleValuesParser::new(TokenOperation::ALL.iter().copied().map(TokenOperation::as_str))
        .try_map(|name| name.parse::<TokenOperation>())
}

/// Mint a token
///
/// Without --key, the token is valid for all keys of the keystore. bulla prints the token, or
/// writes it to a file that only you can read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla token new --operation export --key releases --expires 1h --output token
  bulla token new --operation sign --expires 1d --server unix:/run/bulla/socket

Exit status: 0 minted, 2 not minted.")]
pub(crate) struct TokenNewArgs {
    /// An operation that the token permits; may be given several times
    #[arg(long = "operation", value_name = "NAME", value_parser = operation(), required = true)]
    pub(crate) operations: Vec<TokenOperation>,

    /// A key that the token is valid for: its label or its id; may be given several times
    #[arg(long = "key", value_name = "LABEL|ID")]
    pub(crate) keys: Vec<String>,

    /// When the token expires: a number and s, m, h, d, w or y from now, or a time such as
    /// 2030-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    pub(crate) expires: Deadline,

    /// Who gets the token: the audit log names them, and approvers see who asks
    #[arg(long, value_name = "NAME")]
    pub(crate) holder: Option<Holder>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Log in at a service, and get a token for some minutes
///
/// A job in CI, a pod or a machine in a cloud shows the service a JWT of its platform, which says
/// what it is. The service's settings say which JWTs get a token for a role, and what the token
/// permits. So no secret of bulla is stored anywhere.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla token login release jwt --server https://keys.example.org --output token
  bulla token login release /var/run/secrets/bulla/token --output token
  curl -H \"Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN\" \\
    \"$ACTIONS_ID_TOKEN_REQUEST_URL&audience=https://keys.example.org\" |
    jq -r .value | bulla token login release - --output token

Exit status: 0 logged in, 2 not logged in.")]
pub(crate) struct TokenLoginArgs {
    /// The role, as the service's settings name it
    #[arg(value_name = "ROLE")]
    pub(crate) role: String,

    /// The file with the JWT, or `-` for standard input
    #[arg(value_name = "JWT")]
    pub(crate) jwt: PathBuf,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Make a weaker token from a token
///
/// The new token permits only what you name here and what the old token permits. You need no
/// keystore for this.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla token attenuate token --expires 5m --output shorter
  bulla token attenuate - --operation sign < token

Exit status: 0 made, 2 not made.")]
pub(crate) struct TokenAttenuateArgs {
    /// The file with the token, or `-` for standard input
    pub(crate) token: PathBuf,

    /// An operation that stays permitted; may be given several times
    #[arg(long = "operation", value_name = "NAME", value_parser = operation())]
    pub(crate) operations: Vec<TokenOperation>,

    /// A key that the token stays valid for, by its id; may be given several times
    #[arg(long = "key", value_name = "ID")]
    pub(crate) keys: Vec<KeyId>,

    /// When the new token expires: a number and s, m, h, d, w or y from now, or a time such as
    /// 2030-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    pub(crate) expires: Option<Deadline>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Print the content of a token
///
/// The output does not prove who made the token. Each block has a revocation id. It revokes the
/// token that the block made, and all tokens made from that token: see `bulla keys export
/// --revoked`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla token inspect token
  bulla token inspect token --json

Exit status: 0 printed, 2 the token could not be read.")]
pub(crate) struct TokenInspectArgs {
    /// The file with the token, or `-` for standard input
    pub(crate) token: PathBuf,

    /// Print a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let the API server of Kubernetes encrypt with a key of a service (KMS v2)
///
/// The API server encrypts Secrets and other resources before etcd gets them. With this plugin, the
/// secret from which it derives its keys is encrypted with a key of a service, which never leaves
/// the service. When the key is rotated, the API server soon encrypts what is written with the new
/// version. The plugin needs a token that permits the operations encrypt, decrypt and read with the
/// key. It reads the file of --token-file again for each request, so that a token can be replaced.
#[derive(Parser)]
#[cfg_attr(not(unix), expect(dead_code, reason = "the plugin is for Unix only"))]
#[command(name = "bulla-remote", bin_name = "bulla kms-plugin", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla token new --operation encrypt --operation decrypt --operation read --key kubernetes \\
    --expires 90d --server unix:/run/bulla/socket --output token
  bulla kms-plugin --socket /run/bulla-kms/socket --key kubernetes \\
    --server https://keys.example.org --token-file token

Exit status: 0 stopped by a signal, 2 not started.")]
pub(crate) struct KmsPluginCli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    /// Listen on the Unix socket FILE, as the API server's EncryptionConfiguration names it
    ///
    /// The owner and the group of the plugin may connect. Whoever can connect can decrypt what the
    /// API server encrypted.
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: PathBuf,

    /// The key that encrypts: its label or its id
    #[arg(long, value_name = "LABEL|ID")]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Let age encrypt and decrypt with a key of a keystore or a service
///
/// The command prints the recipient and the identity of KEY, a key of x-wing, for age.
///
/// age starts the program `age-plugin-bulla` for recipients age1bulla1... and for identities
/// AGE-PLUGIN-BULLA-1..., and that program starts this command. To encrypt, age needs only the
/// recipient, no keystore and no service. To decrypt, the plugin asks the keystore or the service,
/// which BULLA_KEYSTORE or BULLA_ADDR names; the private key does not leave it. A token must permit
/// the operations decapsulate and read. The identity is not a secret: it names the key.
#[derive(Parser)]
#[command(name = "bulla-remote", bin_name = "bulla age-plugin", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla keys create backups --algorithm x-wing
  bulla age-plugin backups > backups.identity
  bulla age-plugin backups --server https://keys.example.org --json

With age:
  age -r age1bulla1... -o photos.tar.age photos.tar
  age -d -i backups.identity -o photos.tar photos.tar.age

Exit status: 0 printed, 2 not printed.")]
pub(crate) struct AgePluginCli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", required_unless_present = "age_plugin")]
    key: Option<String>,

    /// What age asks of its plugins
    #[arg(long, value_name = "MACHINE", hide = true, conflicts_with = "key")]
    age_plugin: Option<String>,

    /// Print a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

impl AgePluginCli {
    /// The key to print, if age did not start the command.
    pub(crate) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::ApprovalsCli;
    use crate::threshold::ThresholdCli;
    use crate::x509::X509Cli;
    use bulla_command::tree::CommandTree;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_every_command_has_examples_and_exit_statuses() {
        let tree = CommandTree::of(&Cli::command());
        assert_eq!(tree.missing_help("bulla token"), Vec::<String>::new());
        assert_eq!(tree.count(), 5);
        let tree = CommandTree::of(&ThresholdCli::command());
        assert_eq!(tree.missing_help("bulla threshold"), Vec::<String>::new());
        assert_eq!(tree.count(), 10);
        let tree = CommandTree::of(&ApprovalsCli::command());
        assert_eq!(tree.missing_help("bulla approvals"), Vec::<String>::new());
        assert_eq!(tree.count(), 7);
        let tree = CommandTree::of(&X509Cli::command());
        assert_eq!(tree.missing_help("bulla x509"), Vec::<String>::new());
        assert_eq!(tree.count(), 4);
        let tree = CommandTree::of(&KmsPluginCli::command());
        assert_eq!(tree.missing_help("bulla kms-plugin"), Vec::<String>::new());
        let tree = CommandTree::of(&AgePluginCli::command());
        assert_eq!(tree.missing_help("bulla age-plugin"), Vec::<String>::new());
    }
}
