//! The flags of `bulla agent`.

use super::shared::{Deadline, KeystoreArgs, deadline};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Offer keys to ssh, git and other programs of OpenSSH
///
/// bulla is an agent as `ssh-agent` is, but no private key leaves the keystore or the service: the
/// agent signs with it. It offers every key of Ed25519, ECDSA or RSA that signs, with its latest
/// version. After a rotation, put the new public key where the old one was: `ssh-add -L` prints it.
///
/// bulla prints the line for your shell that names the socket, and answers until it is stopped, or
/// its terminal is closed. With a COMMAND, it runs this command with SSH_AUTH_SOCK set, and ends
/// with it. Started by systemd for a socket, it takes that one.
///
/// An ssh server to which you forward the agent can log in with its keys while you are connected.
/// With OpenSSH 8.9 and later, it gets signatures of files and commits only if you confirm each one
/// (--confirm). Keys cannot be added with ssh-add: see `bulla keys import`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla agent ssh git@example.org
  bulla agent --socket ~/.ssh/bulla &
  bulla agent --key work --confirm --lifetime 8h
  bulla agent --server https://keys.example.org:8200 --token-file token git tag -s v1.2
  SSH_AUTH_SOCK=~/.ssh/bulla ssh-keygen -Y sign -n file -f work.pub app.tar.gz

Exit status: 0 the agent was stopped, 2 it could not start; with a COMMAND, its exit status.")]
pub(crate) struct AgentArgs {
    /// A key to offer: its label or its id; may be given several times
    #[arg(short, long = "key", value_name = "LABEL|ID")]
    pub(crate) keys: Vec<String>,

    /// Listen at PATH instead of bulla/agent in $XDG_RUNTIME_DIR
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,

    /// Ask before each signature, by the program that SSH_ASKPASS names
    #[arg(long)]
    pub(crate) confirm: bool,

    /// When the agent ends: a number and s, m, h, d, w or y from now, or a time such as
    /// 2030-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = deadline, conflicts_with = "command")]
    pub(crate) lifetime: Option<Deadline>,

    /// A command to run with the agent, and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}
