//! The flags of `bulla keys`, of `keys create`, `list`, `show` and of the commands that change
//! one key.

use super::shared::algorithm;
use super::{
    ExportPublicArgs, KeysAttestArgs, KeysDestroyArgs, KeysExportArgs, KeysImportArgs, KeysPolicyArgs,
    KeysRevokeArgs, KeysSuccessionArgs, KeystoreArgs, ReportArgs,
};
use bulla_keystore::{DEFAULT_LABEL, DEFAULT_PURPOSE};
use bulla_kms::backend::SOFTWARE;
use bulla_kms::pkcs11;
use clap::{Args, Subcommand, ValueEnum};

/// Where the private keys of a new key are made and kept.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// In the keystore
    Software,
    /// On the device of --pkcs11, or on that of the service of --server; they never leave it
    Pkcs11,
}

impl Backend {
    /// The backend's name in the keystore.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Software => SOFTWARE,
            Self::Pkcs11 => pkcs11::NAME,
        }
    }
}

/// Create, list, rotate, import, export and destroy keys
///
/// A key has versions. The latest version signs. Every version verifies what it signed,
/// unless it is revoked or below the minimum version.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys create releases            create a key with the label `releases`
  bulla keys create lasting --algorithm ml-dsa-65-ed25519
  bulla keys list
  bulla keys rotate releases            add a version; older signatures still verify
  bulla keys export-public releases > releases.pub
  BULLA_ADDR=unix:/run/bulla/socket bulla keys list    the keys of a service

Exit status: 0 done, 2 not done.")]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    #[command(visible_alias = "new")]
    Create(KeysCreateArgs),
    List(KeysListArgs),
    /// Show a key and all its versions
    #[command(after_help = "\
Examples:
  bulla keys show
  bulla keys show releases --json

Exit status: 0 shown, 2 the keystore or the key could not be read.")]
    Show(KeysShowArgs),
    /// Rotate a key: a new version signs from now on
    ///
    /// Signatures by older versions still verify. The new version is on disk when the command ends.
    /// People who have only an older public key need the new one: publish it with `bulla keys
    /// export-public`, or publish the output of `bulla keys succession`.
    #[command(after_help = "\
Examples:
  bulla keys rotate
  bulla keys rotate releases

Exit status: 0 rotated, 2 not rotated.")]
    Rotate(KeyArgs),
    Succession(KeysSuccessionArgs),
    Attest(KeysAttestArgs),
    /// Disable a key
    ///
    /// A disabled key does not sign. What it signed before still verifies. `bulla keys enable`
    /// undoes this.
    #[command(after_help = "\
Examples:
  bulla keys disable releases

Exit status: 0 disabled, 2 not disabled.")]
    Disable(KeyArgs),
    /// Enable a disabled key
    #[command(after_help = "\
Examples:
  bulla keys enable releases

Exit status: 0 enabled, 2 not enabled.")]
    Enable(KeyArgs),
    Policy(KeysPolicyArgs),
    Revoke(KeysRevokeArgs),
    Destroy(KeysDestroyArgs),
    /// Cancel a key's scheduled destruction
    ///
    /// Afterwards the key is disabled: `bulla keys enable` lets it sign again.
    #[command(after_help = "\
Examples:
  bulla keys cancel-destruction releases

Exit status: 0 canceled, 2 not canceled.")]
    CancelDestruction(KeyArgs),
    ExportPublic(ExportPublicArgs),
    Import(KeysImportArgs),
    Export(KeysExportArgs),
}

/// Create a key
///
/// Algorithms that sign: ed25519 and ecdsa-p256. Post-quantum algorithms that sign: ml-dsa-44,
/// ml-dsa-65 and ml-dsa-87, and slh-dsa-sha2-128s to slh-dsa-shake-256f. ml-dsa-65-ed25519 combines
/// one of each kind.
///
/// Algorithms that do not sign: ml-kem-512, ml-kem-768, ml-kem-1024 and x-wing. Their keys receive
/// exported keys: `bulla keys export` wraps a private key for them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys create releases
  bulla keys create lasting --algorithm ml-dsa-65-ed25519
  bulla keys create moving --exportable                    see `bulla keys export`
  bulla keys create transport --algorithm x-wing           a key that receives exported keys

Exit status: 0 created, 2 not created.")]
pub(crate) struct KeysCreateArgs {
    /// The key's label: a-z and 0-9, and `-`, `_`, `.` after the first character
    pub(crate) label: String,

    /// What the key is for; part of its id
    #[arg(long, default_value = DEFAULT_PURPOSE)]
    pub(crate) purpose: String,

    /// Where the private keys are made and kept
    #[arg(long, value_enum, default_value_t = Backend::Software)]
    pub(crate) backend: Backend,

    /// The algorithm
    #[arg(short, long, value_name = "NAME", value_parser = algorithm(), default_value = "ed25519", hide_possible_values = true)]
    pub(crate) algorithm: bulla_kms::Algorithm,

    /// Allow exports of the private key, to callers whose token permits it; this cannot be changed
    /// later
    #[arg(long)]
    pub(crate) exportable: bool,

    /// Have it sign digests that callers hash themselves, for ecdsa-p256; this cannot be changed
    /// later
    ///
    /// Such a key signs no files, folders, attestations or other statements of bulla, because a
    /// digest could be that of a statement. Clients of HashiCorp Vault need it to sign with
    /// `prehashed`.
    #[arg(long)]
    pub(crate) signs_digests: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// List all keys
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys list
  bulla keys list --json

Exit status: 0 listed, 2 the keystore could not be read.")]
pub(crate) struct KeysListArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print JSON Lines, one object per key, instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

// No documentation comments here: the commands that take these arguments have their own.
#[derive(Args)]
pub(crate) struct KeysShowArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct KeyArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
