//! The flags of `bulla seal`, `open`, `reseal`, `identity`, and of `bulla keys reseal`, `guard`,
//! `backup` and `restore`.

use super::shared::{Bound, KeystoreArgs, ReportArgs};
use bulla_keystore::GuardLocation;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// The keys that can decrypt a sealed file.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SealToArgs {
    /// Encrypt to this recipient; may be given several times
    ///
    /// A recipient is age1... or x-wing:..., or a file that contains one or more of these, one a
    /// line, as `bulla identity` and age-keygen print them. Lines that begin with # are comments.
    /// It can also be a public key file that `bulla keys export-public` wrote, of a key that
    /// receives exported keys (ML-KEM or X-Wing).
    #[arg(short, long, value_name = "RECIPIENT|FILE")]
    pub(crate) recipient: Vec<String>,

    /// Encrypt to a passphrase; bulla asks for it twice
    #[arg(long)]
    pub(crate) passphrase: bool,

    /// Encrypt to the passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    /// Encrypt to this key file
    ///
    /// A key file has the line `bulla key file v1`, and 32 random bytes in base64. Only you may be
    /// able to read it. To make one: (umask 077 && { echo 'bulla key file v1'; head -c 32
    /// /dev/urandom | base64; } > FILE)
    #[arg(long, value_name = "FILE")]
    pub(crate) new_key_file: Option<PathBuf>,
}

/// Encrypt a file to passphrases, key files or recipients
///
/// bulla encrypts FILE into FILE.sealed, with XChaCha20-Poly1305. Any one of the given recipients,
/// passphrase and key file can decrypt it. bulla does not replace an existing file. With `-`, bulla
/// encrypts standard input, and writes to standard output unless --output names a file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla identity me.identity > me.recipient
  bulla seal report.pdf --recipient me.recipient
  bulla seal report.pdf --recipient age1... --recipient colleague.recipient
  bulla seal report.pdf --passphrase
  tar c src | bulla seal - --recipient me.recipient > src.tar.sealed

Exit status: 0 encrypted, 2 not encrypted.")]
pub(crate) struct SealArgs {
    /// The file to encrypt, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write to OUT, or to standard output for `-` [default: FILE.sealed]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) to: SealToArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// What decrypts a sealed file, besides the keystore and the passphrase.
#[derive(Args)]
pub(crate) struct OpenWithArgs {
    /// Decrypt with this key file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Decrypt a sealed file
///
/// bulla decrypts FILE.sealed into FILE. The sealed file says which keys can decrypt it: the
/// identity of --identity, the key file of --key-file, a key in your keystore, or a passphrase.
/// bulla reads the passphrase from --passphrase-file, or asks for it.
///
/// The output file appears only after bulla has authenticated every byte of it, and never replaces
/// an existing file. On standard output (`-o -`), bulla writes each piece as soon as it has
/// authenticated that piece. Then only exit status 0 tells you that the end is not missing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla open report.pdf.sealed --identity me.identity
  bulla open report.pdf.sealed -o /dev/shm/report.pdf
  bulla open report.pdf.sealed --server https://keys.example.org:8200 --token-file token
  bulla open - --identity me.identity < src.tar.sealed | tar x

Exit status: 0 decrypted, 1 the file was damaged or edited, 2 it could not be decrypted.")]
pub(crate) struct OpenArgs {
    /// The sealed file, or `-` for standard input
    #[arg(value_name = "FILE.sealed")]
    pub(crate) file: PathBuf,

    /// Write to OUT, or to standard output for `-` [default: the name without `.sealed`]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) with: OpenWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Change which keys can decrypt a sealed file
///
/// bulla replaces the keys of FILE.sealed in one step. It does not encrypt the content again, and a
/// program that is reading the file is not disturbed. With --keep, the present keys stay valid, so
/// that nobody is locked out before everybody has a new key.
///
/// This does not change copies: anybody who could decrypt the file and kept a copy can always
/// decrypt that copy.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla reseal report.pdf.sealed --identity old.identity --recipient new.recipient --keep
  bulla reseal report.pdf.sealed --identity new.identity --recipient new.recipient

Exit status: 0 the keys were changed, 1 the file was damaged or edited, 2 the keys could not be changed and the file is unchanged.")]
pub(crate) struct ResealArgs {
    /// The sealed file
    #[arg(value_name = "FILE.sealed")]
    pub(crate) file: PathBuf,

    /// Keep the present keys, and add the new ones
    #[arg(long)]
    pub(crate) keep: bool,

    #[command(flatten)]
    pub(crate) to: SealToArgs,

    #[command(flatten)]
    pub(crate) with: OpenWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Create a key pair that others can encrypt files to
///
/// bulla writes the identity to FILE and prints the recipient. The identity decrypts: it is secret,
/// and only you can read FILE. The recipient encrypts: you may publish it. The keys are X-Wing
/// keys, which combine X25519 and ML-KEM-768: a quantum computer that breaks X25519 does not break
/// them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla identity me.identity > me.recipient
  bulla identity --age me.identity      create an age identity

Exit status: 0 created, 2 not created.")]
pub(crate) struct IdentityArgs {
    /// The new file for the identity; it must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Create an age identity: only X25519, with a short recipient
    #[arg(long)]
    pub(crate) age: bool,

    /// Print a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
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
  bulla keys reseal --passphrase
  bulla keys reseal --key-file
  bulla keys reseal --recipient me.recipient

Exit status: 0 changed, 2 not changed.")]
pub(crate) struct KeysResealArgs {
    /// A passphrase; bulla asks for it twice
    #[arg(long, group = "new")]
    pub(crate) passphrase: bool,

    /// The passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", group = "new")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    /// A new key file beside the keystore
    #[arg(long, group = "new")]
    pub(crate) key_file: bool,

    /// The identity of this recipient
    #[arg(long, value_name = "RECIPIENT|FILE", group = "new")]
    pub(crate) recipient: Option<String>,

    /// This key on the token of --pkcs11; bulla creates the key if the token has none of that name
    #[arg(long, value_name = "NAME", group = "new")]
    pub(crate) token_key: Option<String>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Show or change the guard that detects older copies of the keystore
///
/// A guard records, outside the keystore, how many changes the keystore has had. A keystore with
/// fewer changes than its guard is an older copy, and every command refuses it. A guard is a new
/// file, best on another disk and not part of the keystore's backups, or a new object on the token
/// of --pkcs11. The keystore remembers its guard, and only somebody with the keystore's secret can
/// change that. Copies from before the guard do not know it.
///
/// With GUARD, bulla accepts the keystore in its present state and ignores the former guard. Use
/// this to replace a lost guard, or after you restored an older copy on purpose.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys guard                              show the present guard
  bulla keys guard file:/mnt/other/guard
  bulla keys guard none

Exit status: 0 shown or changed, 2 not.")]
pub(crate) struct KeysGuardArgs {
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
  bulla keys backup keys.backup --recipient safe.recipient
  bulla keys backup keys.backup --passphrase

Exit status: 0 written, 2 not written.")]
pub(crate) struct KeysBackupArgs {
    /// The file to write
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) to: SealToArgs,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Cancel a key's scheduled destruction, or restore a keystore from a backup
///
/// With LABEL|ID, bulla cancels the scheduled destruction of that key. Afterwards the key is
/// disabled.
///
/// With --from, bulla creates a new keystore from a backup. It checks the whole backup before it
/// writes anything: each record, each private key against its public key, and each key's
/// attestation. It never changes an existing keystore. A new key file beside the new keystore opens
/// it, unless you ask for a passphrase.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  bulla keys restore releases
  bulla keys restore --from keys.backup --keystore new-folder --identity safe.identity

Exit status: 0 restored, 2 not restored.")]
pub(crate) struct KeysRestoreArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", group = "what")]
    pub(crate) key: Option<String>,

    /// The backup file
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) from: Option<PathBuf>,

    /// Protect the new keystore with a passphrase; bulla asks for it twice
    #[arg(long, requires = "from")]
    pub(crate) passphrase: bool,

    /// Protect the new keystore with the passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", requires = "from", conflicts_with = "passphrase")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) with: OpenWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
