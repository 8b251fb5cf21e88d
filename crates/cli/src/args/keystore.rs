//! The flags of `bulla keystore`: what concerns the keystore as a whole.

use super::encrypt::{DecryptWithArgs, EncryptToArgs};
use super::shared::{Bound, KeystoreArgs, ReportArgs};
use bulla_keystore::GuardLocation;
use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;

/// Create, protect, back up and restore the keystore
///
/// A keystore is a folder with keys. It is encrypted, and a key file, a passphrase, an identity or
/// a device opens it. `bulla keys` is about the keys in it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keystore init --passphrase      create a keystore, protected by a passphrase
  bulla keystore rekey --generate-key-file    open it by a new key file instead
  bulla keystore guard file:/mnt/other/guard
  bulla keystore backup keys.backup --recipient safe.recipient
  bulla keystore restore keys.backup --keystore new-folder --identity safe.identity

Exit status: 0 done, 2 not done.")]
pub(crate) struct KeystoreCommandArgs {
    #[command(subcommand)]
    pub(crate) command: KeystoreCommand,
}

#[derive(Subcommand)]
pub(crate) enum KeystoreCommand {
    Init(KeystoreInitArgs),
    #[command(visible_alias = "reseal")]
    Rekey(KeystoreRekeyArgs),
    Guard(KeystoreGuardArgs),
    Backup(KeystoreBackupArgs),
    Restore(KeystoreRestoreArgs),
}

/// Create a keystore with the key `default`
///
/// Without --passphrase, bulla writes a key file beside the keystore. Only you can read it, and it
/// opens the keystore. On first use, `bulla sign` does the same in your data folder. A keystore in
/// another place, which --keystore or BULLA_KEYSTORE names, is created by this command alone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keystore init
  bulla keystore init --passphrase
  bulla keystore init --keystore /mnt/stick/keys
  bulla keystore init --guard file:/mnt/other/guard

Exit status: 0 created, 2 not created.")]
pub(crate) struct KeystoreInitArgs {
    /// Protect the keystore with a passphrase: bulla asks for it twice, or reads it from
    /// --passphrase-file
    #[arg(long)]
    pub(crate) passphrase: bool,

    /// Protect the keystore with this key on the device of --pkcs11; bulla creates the key if the
    /// device has none of that name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["passphrase", "passphrase_file"])]
    pub(crate) device_key: Option<String>,

    /// Detect and refuse older copies of the keystore, with a guard in another place: see `bulla
    /// keystore guard`
    #[arg(long, value_name = "file:PATH|pkcs11:NAME")]
    pub(crate) guard: Option<GuardLocation>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Change the secret that opens the keystore
///
/// Afterwards the new secret opens the keystore, and the old secret does not. The change is atomic:
/// if the command is interrupted, either the old or the new secret opens the keystore. The keys in
/// the keystore do not change.
///
/// Older copies of the keystore still open with the old secret. If somebody may have both, restore
/// a backup into a new keystore and rotate the keys.
#[derive(Args)]
#[command(group = ArgGroup::new("new").required(true), after_help = "\
Examples:
  bulla keystore rekey --passphrase
  bulla keystore rekey --generate-key-file
  bulla keystore rekey --recipient me.recipient

Exit status: 0 changed, 2 not changed.")]
pub(crate) struct KeystoreRekeyArgs {
    /// A passphrase; bulla asks for it twice
    #[arg(long, group = "new")]
    pub(crate) passphrase: bool,

    /// The passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", group = "new")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    /// A new key file beside the keystore
    #[arg(long, group = "new")]
    pub(crate) generate_key_file: bool,

    /// The identity of this recipient
    #[arg(long, value_name = "RECIPIENT|FILE", group = "new")]
    pub(crate) recipient: Option<String>,

    /// This key on the device of --pkcs11; bulla creates the key if the device has none of that
    /// name
    #[arg(long, value_name = "NAME", group = "new")]
    pub(crate) device_key: Option<String>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Show or change the guard that detects older copies of the keystore
///
/// A guard records, outside the keystore, how many changes the keystore has had. A keystore with
/// fewer changes than its guard is an older copy, and every command refuses it. A guard is a new
/// file, best on another disk and not part of the keystore's backups, or a new object on the device
/// of --pkcs11. The keystore remembers its guard, and only somebody with the keystore's secret can
/// change that. Copies from before the guard do not know it.
///
/// With GUARD, bulla accepts the keystore in its present state and ignores the former guard. Use
/// this to replace a lost guard, or after you restored an older copy on purpose.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keystore guard                              show the present guard
  bulla keystore guard file:/mnt/other/guard
  bulla keystore guard none

Exit status: 0 shown or changed, 2 not.")]
pub(crate) struct KeystoreGuardArgs {
    /// The new guard; `none` for no guard
    #[arg(value_name = "file:PATH|pkcs11:NAME|none", value_parser = guard_or_none)]
    pub(crate) guard: Option<Bound<GuardLocation>>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn guard_or_none(text: &str) -> Result<Bound<GuardLocation>, String> {
    if text == "none" {
        Ok(Bound::None)
    } else {
        text.parse().map(Bound::At).map_err(|error: bulla_keystore::Error| error.to_string())
    }
}

/// Back up all keys to one encrypted file
///
/// The backup contains the private keys. Only the given recipients, passphrase and key file can
/// decrypt it. bulla checks the backup before it gives the file its name OUT, and does not replace
/// an existing file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keystore backup keys.backup --recipient safe.recipient
  bulla keystore backup keys.backup --passphrase

Exit status: 0 written, 2 not written.")]
pub(crate) struct KeystoreBackupArgs {
    /// The file to write
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) to: EncryptToArgs,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Create a keystore from a backup
///
/// bulla checks the whole backup before it writes anything: each record, each private key against
/// its public key, and each key's attestation. It never changes an existing keystore. A new key
/// file beside the new keystore opens it, unless you ask for a passphrase.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keystore restore keys.backup --keystore new-folder --identity safe.identity

Exit status: 0 restored, 2 not restored.")]
pub(crate) struct KeystoreRestoreArgs {
    /// The backup file
    pub(crate) backup: PathBuf,

    /// Protect the new keystore with a passphrase; bulla asks for it twice
    #[arg(long)]
    pub(crate) passphrase: bool,

    /// Protect the new keystore with the passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) with: DecryptWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
