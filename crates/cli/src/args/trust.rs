//! The flags that say whose signatures count.

use super::KeystoreArgs;
use bulla_formats::ssh;
use clap::Args;
use std::path::PathBuf;

/// Whose signatures count: without a flag, those of the keystore's keys.
#[derive(Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArgs {
    /// Trust this public key instead of the keystore
    ///
    /// It is a file with one or more keys, or the key itself: in bulla's form, or in that of
    /// minisign, signify, OpenSSH, PEM or JSON Web Keys. The flag may be given several times.
    #[arg(short, long, value_name = "FILE|KEY")]
    pub(crate) public_key: Vec<String>,

    /// Also trust the newer public keys that the given keys vouch for
    ///
    /// FILE has the statements of `bulla keys succession`. The flag may be given several times. The
    /// older version's private key signs a statement. If that private key leaked, do not trust
    /// the statement.
    #[arg(long, value_name = "FILE", requires = "public_key")]
    pub(crate) succession: Vec<PathBuf>,

    /// Trust the signers in FILE instead of the keystore, for signatures of OpenSSH and git
    ///
    /// FILE is the list of allowed signers of `ssh-keygen -Y verify`, with principals, namespaces,
    /// times and certificate authorities. A line that bulla does not understand is an error.
    #[arg(long, value_name = "FILE")]
    pub(crate) allowed_signers: Option<PathBuf>,

    /// Accept only signatures of this principal [default: any in the list of allowed signers]
    #[arg(long, value_name = "NAME", requires = "allowed_signers")]
    pub(crate) principal: Option<String>,

    /// Refuse signatures of OpenSSH by the keys in FILE, or by certificates that these keys signed
    ///
    /// FILE has one public key on each line, or is a key revocation list of `ssh-keygen -k`, which
    /// also has certificates by number or name.
    #[arg(long, value_name = "FILE")]
    pub(crate) revoked: Option<PathBuf>,

    /// What signatures of OpenSSH must be for: `git` for commits and tags
    #[arg(long, value_name = "NAME", default_value = ssh::FILE_NAMESPACE)]
    pub(crate) namespace: String,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

impl TrustArgs {
    /// Whether the keystore says which keys are trusted.
    pub(crate) fn needs_keystore(&self) -> bool {
        self.public_key.is_empty() && self.allowed_signers.is_none()
    }
}
