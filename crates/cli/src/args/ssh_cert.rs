//! The flags of `bulla ssh-cert`.

use super::shared::{KeystoreArgs, ReportArgs, duration};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Sign certificates of OpenSSH, for people and servers
///
/// A certificate says that a key belongs to a user or a server, for some hours or days. Servers
/// trust the key of the authority (`TrustedUserCAKeys`), and users trust it in a line
/// `@cert-authority` of known_hosts, so that no list of keys has to be kept.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla ssh-cert policy ca --user --principal ann --max-life 1d --extension permit-pty
  bulla ssh-cert sign id_ed25519.pub --ca ca --id ann --principal ann --extension permit-pty

Exit status: 0 done, 2 not done.")]
pub(crate) struct SshCertArgs {
    #[command(subcommand)]
    pub(crate) command: SshCertCommand,
}

#[derive(Subcommand)]
pub(crate) enum SshCertCommand {
    Policy(SshCertPolicyArgs),
    Sign(SshCertSignArgs),
}

/// Show or set which certificates a key signs
///
/// A key with a policy is an authority: it signs the certificates that the policy permits, and
/// otherwise only signature files of bulla and attestations, which pass for no certificate. The
/// keystore enforces that, also when a service has it. Without flags, bulla
/// prints the policy. Otherwise the flags are the new policy.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla ssh-cert policy ca
  bulla ssh-cert policy ca --user --principal '*' --max-life 8h --extension permit-pty
  bulla ssh-cert policy hosts --host --principal '*.example.org' --max-life 90d
  bulla ssh-cert policy ca --remove

Exit status: 0 shown or set, 2 not.")]
pub(crate) struct SshCertPolicyArgs {
    /// The key of the authority: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// Permit certificates for users
    #[arg(long, requires_all = ["principals", "max_life"])]
    pub(crate) user: bool,

    /// Permit certificates for servers
    #[arg(long, requires_all = ["principals", "max_life"])]
    pub(crate) host: bool,

    /// A user or a server that certificates may be for; a `*` at its beginning stands for any
    /// characters; may be given several times
    #[arg(long = "principal", value_name = "NAME")]
    pub(crate) principals: Vec<String>,

    /// How long certificates may be valid: a number and s, m, h, d, w or y
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_life: Option<Duration>,

    /// An extension that certificates may have, such as permit-pty; may be given several times
    #[arg(long = "extension", value_name = "NAME")]
    pub(crate) extensions: Vec<String>,

    /// A critical option that certificates may have, such as force-command; may be given several
    /// times
    #[arg(long = "option", value_name = "NAME")]
    pub(crate) options: Vec<String>,

    /// Remove the policy: the key signs anything again
    #[arg(long, conflicts_with_all = ["user", "host", "principals", "max_life", "extensions", "options"])]
    pub(crate) remove: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Sign a certificate for a public key
///
/// bulla writes it beside the public key, where ssh and sshd look for it: for id_ed25519.pub to
/// id_ed25519-cert.pub. It never replaces another file there. The audit log has the number, the
/// name and the principals of the certificate.
///
/// A certificate has the extensions that you name and no others. For a shell, a user needs
/// permit-pty.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla ssh-cert sign id_ed25519.pub --ca ca --id ann --principal ann --extension permit-pty
  bulla ssh-cert sign deploy.pub --ca ca --id deploy --principal web --option force-command=/bin/deploy
  bulla ssh-cert sign ssh_host_ed25519_key.pub --host --ca hosts --id web1 --principal web1.example.org --valid-for 90d

Exit status: 0 signed, 2 not signed.")]
pub(crate) struct SshCertSignArgs {
    /// The file with the public key
    #[arg(value_name = "FILE")]
    pub(crate) public_key: PathBuf,

    /// The key of the authority: its label or its id
    #[arg(long, value_name = "LABEL|ID")]
    pub(crate) ca: String,

    /// Make a certificate for a server instead of a user
    #[arg(long)]
    pub(crate) host: bool,

    /// The name of the certificate, which servers write into their logs
    #[arg(long, value_name = "TEXT")]
    pub(crate) id: String,

    /// A user or a server that the certificate is for; may be given several times
    #[arg(long = "principal", value_name = "NAME", required = true)]
    pub(crate) principals: Vec<String>,

    /// How long it is valid: a number and s, m, h, d, w or y
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1d")]
    pub(crate) valid_for: Duration,

    /// The number of the certificate [default: a random one]
    #[arg(long, value_name = "NUM")]
    pub(crate) serial: Option<u64>,

    /// An extension, such as permit-pty or permit-agent-forwarding; may be given several times
    #[arg(long = "extension", value_name = "NAME")]
    pub(crate) extensions: Vec<String>,

    /// A critical option, such as force-command or source-address; may be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = option)]
    pub(crate) options: Vec<(String, String)>,

    /// Write to FILE, or to standard output for `-`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// A critical option and its value.
fn option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not an option: write NAME=VALUE")),
    }
}
