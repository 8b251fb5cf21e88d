//! The flags of `bulla git`, and those of `ssh-keygen -Y` with which git starts bulla.

use super::shared::{KeystoreArgs, ReportArgs};
use bulla_keystore::DEFAULT_LABEL;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Let git sign commits and tags, and verify them, with keys of bulla
///
/// git signs in OpenSSH's format: `gpg.format` is `ssh`. As `gpg.ssh.program` it starts bulla as it
/// starts ssh-keygen: `bulla -Y sign`, `-Y verify`, `-Y find-principals`, `-Y match-principals`,
/// `-Y check-novalidate`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla git setup
  bulla git setup --global --key work

Exit status: 0 done, 2 not done.")]
pub(crate) struct GitArgs {
    #[command(subcommand)]
    pub(crate) command: GitCommand,
}

#[derive(Subcommand)]
pub(crate) enum GitCommand {
    Setup(GitSetupArgs),
}

/// Set what git needs to sign with a key of bulla
///
/// Afterwards each commit is signed, and `git log --show-signature` says by whom. bulla sets
/// gpg.format, gpg.ssh.program, user.signingkey, commit.gpgsign and gpg.ssh.allowedSignersFile,
/// adds your address and the public key to that file, and prints what it set and how to undo it.
///
/// Where the keys are, and what opens the keystore, is written to git's settings too, as
/// bulla.keystore, bulla.server and so on: git starts bulla without flags. BULLA_KEYSTORE and the
/// other variables of bulla go first.
///
/// After a rotation, run the command again: the settings name the public key. The line of the old
/// public key stays, so that older commits verify.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla git setup
  bulla git setup --global --key work
  bulla git setup --server https://keys.example.org:8200 --token-file ~/.config/bulla/token --key work
  bulla agent git rebase main    # a passphrase is asked for once, not for each commit

Exit status: 0 set, 2 not set.")]
pub(crate) struct GitSetupArgs {
    /// Set it for all your repositories
    #[arg(long, conflicts_with = "local")]
    pub(crate) global: bool,

    /// Set it for this repository, as without this flag
    #[arg(long)]
    pub(crate) local: bool,

    /// The key to sign with: its label or its id
    #[arg(short, long, value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The settings `bulla.NAME` of git: the flags that say where the keys are.
#[derive(Parser)]
#[command(name = "git's settings for bulla")]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Sign, and verify signatures, as `ssh-keygen -Y` does
#[derive(Parser)]
#[command(name = "bulla", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla -Y sign -n git -f key.pub file
  bulla -Y verify -n git -f allowed_signers -I me@example.org -s file.sig < file
  bulla -Y match-principals -f allowed_signers -I me@example.org

Exit status: 0 signed, verified or found, 255 not.")]
pub(crate) struct SshKeygenArgs {
    /// What to do
    #[arg(short = 'Y', value_enum, value_name = "MODE")]
    pub(crate) mode: SshKeygenMode,

    /// What the signature is for
    #[arg(short = 'n', value_name = "NAMESPACE", required_if_eq_any = [
        ("mode", "sign"), ("mode", "verify"), ("mode", "check-novalidate"),
    ])]
    pub(crate) namespace: Option<String>,

    /// The public key or the certificate to sign with; or the allowed signers
    #[arg(short = 'f', value_name = "FILE", required_if_eq_any = [
        ("mode", "sign"), ("mode", "verify"), ("mode", "find-principals"), ("mode", "match-principals"),
    ])]
    pub(crate) file: Option<PathBuf>,

    /// Who must have signed, or who is looked for
    #[arg(short = 'I', value_name = "PRINCIPAL", required_if_eq_any = [
        ("mode", "verify"), ("mode", "match-principals"),
    ])]
    pub(crate) principal: Option<String>,

    /// The signature
    #[arg(short = 's', value_name = "FILE", required_if_eq_any = [
        ("mode", "verify"), ("mode", "find-principals"), ("mode", "check-novalidate"),
    ])]
    pub(crate) signature: Option<PathBuf>,

    /// The revoked keys: a public key on each line, or a list that `ssh-keygen -k` wrote
    #[arg(short = 'r', value_name = "FILE")]
    pub(crate) revoked: Option<PathBuf>,

    /// verify-time=YYYYMMDD[HHMM[SS]][Z]: when the key must have been valid
    #[arg(short = 'O', value_name = "OPTION")]
    pub(crate) options: Vec<String>,

    /// Changes nothing: bulla asks the agent of SSH_AUTH_SOCK first in any case. git gives it
    #[arg(short = 'U')]
    pub(crate) by_agent: bool,

    /// Print no verdict
    #[arg(short = 'q')]
    pub(crate) quiet: bool,

    /// What to sign; without it, standard input. git gives an empty name to commands that take none
    #[arg(value_name = "FILE")]
    pub(crate) content: Option<OsString>,
}

/// What `ssh-keygen -Y` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SshKeygenMode {
    /// Sign, and write the signature to FILE.sig
    Sign,
    /// Verify what is on standard input
    Verify,
    /// Print who may have signed
    FindPrincipals,
    /// Print the lists of principals that match a name
    MatchPrincipals,
    /// Verify what is on standard input, and accept any key
    CheckNovalidate,
}
