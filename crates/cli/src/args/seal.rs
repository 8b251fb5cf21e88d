//! The flags of `bulla seal`, `open`, `reseal`, `identity`, and of `bulla keys reseal`, `guard`, `backup` and `restore`.

use super::guard_place::GuardPlace;
use super::shared::{Bound, KeystoreArgs, ReportArgs};
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// Who can open what is sealed.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SealToArgs {
    /// Seal to this recipient; may be given several times
    ///
    /// A recipient is age1..., x-wing:..., a file with one of these in it as `bulla identity` prints it, or the file of a
    /// public key that encapsulates, as `bulla keys export-public` writes it.
    #[arg(short, long, value_name = "RECIPIENT|FILE")]
    pub(crate) recipient: Vec<String>,

    /// Seal by a passphrase, asked for twice
    #[arg(long)]
    pub(crate) passphrase: bool,

    /// Seal by the passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    /// Seal by this key file
    #[arg(long, value_name = "FILE")]
    pub(crate) new_key_file: Option<PathBuf>,
}

/// Seal a file for those who may open it
///
/// Encrypts FILE (XChaCha20-Poly1305) into FILE.sealed, to recipients, a passphrase, or a key file: to any of them when
/// several are given. Nothing that exists is replaced. With `-`, standard input is sealed, to standard output unless
/// --output names a file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla identity me.identity > me.recipient
  bulla seal report.pdf --recipient me.recipient
  bulla seal report.pdf --recipient age1... --recipient colleague.recipient
  bulla seal report.pdf --passphrase
  tar c src | bulla seal - --recipient me.recipient > src.tar.sealed

Exit status: 0 sealed, 2 not.")]
pub(crate) struct SealArgs {
    /// The file to seal, or `-` for standard input
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

/// What opens what is sealed, besides the keystore and the passphrase.
#[derive(Args)]
pub(crate) struct OpenWithArgs {
    /// Open with this key file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Open a sealed file
///
/// Decrypts FILE.sealed into FILE. Which key opens it stands in it: the identity of --identity, the key file of --key-file,
/// a key in your keystore, or a passphrase, which is read from --passphrase-file or asked for.
///
/// The output appears once every byte of it is proven to be what was sealed, and replaces nothing. To standard output
/// (`-o -`) proven pieces are written as they come, and only the exit status says that none is missing at the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla open report.pdf.sealed --identity me.identity
  bulla open report.pdf.sealed -o /dev/shm/report.pdf
  bulla open - --identity me.identity < src.tar.sealed | tar x

Exit status: 0 opened, 1 it was damaged or edited, 2 it could not be opened.")]
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

/// Seal a sealed file to other keys
///
/// Replaces the keys that open FILE.sealed in one step. What is sealed is not encrypted again, and who is reading the file
/// goes on. With --keep those who can open it still can, so that nobody is locked out before all have the new key.
///
/// Who could open the old file and kept a copy can open that copy for ever.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla reseal report.pdf.sealed --identity old.identity --recipient new.recipient --keep
  bulla reseal report.pdf.sealed --identity new.identity --recipient new.recipient

Exit status: 0 sealed to the new keys, 1 it was damaged or edited, 2 it could not be done, and is as it was.")]
pub(crate) struct ResealArgs {
    /// The sealed file
    #[arg(value_name = "FILE.sealed")]
    pub(crate) file: PathBuf,

    /// Keep those who can open it, and add the new ones
    #[arg(long)]
    pub(crate) keep: bool,

    #[command(flatten)]
    pub(crate) to: SealToArgs,

    #[command(flatten)]
    pub(crate) with: OpenWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Make a key pair that others seal to
///
/// Writes the identity, which opens, to FILE, for you alone; prints the recipient, which seals, and which anybody may know.
/// Its keys are X25519 and ML-KEM-768 together (X-Wing), so that a quantum computer alone opens nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla identity me.identity > me.recipient
  bulla identity --age me.identity      for those who use age")]
pub(crate) struct IdentityArgs {
    /// Where to write the identity; nothing may be there
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Make an identity of age: X25519 alone, with a short recipient
    #[arg(long)]
    pub(crate) age: bool,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Change what opens the keystore
///
/// The new secret opens it from then on, and the old one does not. The change is made in one step: a command that is
/// interrupted leaves a keystore that one of the two opens. No key changes.
///
/// A copy of the keystore from before still opens with the old secret. If somebody may have both, restore a backup into a new
/// keystore and rotate the keys.
#[derive(Args)]
#[command(group = ArgGroup::new("new").required(true), after_help = "\
Examples:
  bulla keys reseal --passphrase
  bulla keys reseal --key-file
  bulla keys reseal --recipient me.recipient")]
pub(crate) struct KeysResealArgs {
    /// A passphrase, asked for twice
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

    /// A key on the token of --pkcs11, which is made there if there is none of that name
    #[arg(long, value_name = "NAME", group = "new")]
    pub(crate) token_key: Option<String>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Show or change what notices older copies of the keystore
///
/// A guard remembers, outside of the keystore, how far it has come. A keystore that is behind its guard is an older copy, and every
/// command refuses it. The guard is a new file, best on another disk and not in the keystore's backups, or a new object on the
/// token of --pkcs11. The keystore remembers its guard, and nobody who lacks its secret can make it forget; copies from before know of none.
///
/// With GUARD the keystore is accepted as it is now, whatever its former guard says: that is how a lost guard is replaced, and how a backup
/// that was restored on purpose is accepted.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys guard                              which one is it?
  bulla keys guard file:/mnt/other/guard
  bulla keys guard none")]
pub(crate) struct KeysGuardArgs {
    /// The new guard
    #[arg(value_name = "file:PATH|pkcs11:NAME|none", value_parser = guard_or_none)]
    pub(crate) guard: Option<Bound<GuardPlace>>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn guard_or_none(text: &str) -> Result<Bound<GuardPlace>, String> {
    if text == "none" { Ok(Bound::None) } else { text.parse().map(Bound::At) }
}

/// Write all keys to one sealed file
///
/// The backup has the private keys; it opens for those alone to whom it is sealed. It is proven before it is named OUT, and
/// replaces nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys backup keys.backup --recipient safe.recipient
  bulla keys backup keys.backup --passphrase")]
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

/// Take a key back that waits for its destruction, or make a keystore of a backup
///
/// With LABEL|ID: the key's destruction is called off; it is disabled then.
///
/// With --from: a new keystore is made of a backup. All of the backup is proven before anything is written: each record,
/// each private key against its public key, and what each key says of itself. A keystore that is there is not touched.
/// The new one is opened by a new key file beside it, unless a passphrase is asked for.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  bulla keys restore releases
  bulla keys restore --from keys.backup --keystore new-folder --identity safe.identity")]
pub(crate) struct KeysRestoreArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", group = "what")]
    pub(crate) key: Option<String>,

    /// The backup
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) from: Option<PathBuf>,

    /// Seal the new keystore by a passphrase, asked for twice
    #[arg(long, requires = "from")]
    pub(crate) passphrase: bool,

    /// Seal the new keystore by the passphrase in the first line of FILE
    #[arg(long, value_name = "FILE", requires = "from", conflicts_with = "passphrase")]
    pub(crate) new_passphrase_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) with: OpenWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
