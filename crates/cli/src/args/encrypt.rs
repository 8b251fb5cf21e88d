//! The flags of `bulla encrypt`, `decrypt`, `rekey` and `keygen`.

use super::shared::{KeystoreArgs, ReportArgs};
use clap::Args;
use std::path::PathBuf;

/// The keys that can decrypt an encrypted file.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct EncryptToArgs {
    /// Encrypt to this recipient; may be given several times
    ///
    /// A recipient is age1... or x-wing:..., or a file that contains one or more of these, one a
    /// line, as `bulla keygen` and age-keygen print them. Lines that begin with # are comments.
    /// It can also be a public key file that `bulla keys export-public` wrote, of a key that
    /// receives exported keys (ML-KEM or X-Wing).
    #[arg(long, value_name = "RECIPIENT|FILE")]
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

/// What the ciphertext of a value is bound to.
#[derive(Args)]
pub(crate) struct ValueArgs {
    /// With --key: the context from which the key is derived, for a key made with --derivation
    #[arg(long, value_name = "TEXT", requires = "key")]
    pub(crate) context: Option<String>,

    /// With --key: text that must be the same when the value is decrypted; it is not secret
    #[arg(long, value_name = "TEXT", requires = "key")]
    pub(crate) associated_data: Option<String>,
}

/// Encrypt a file to passphrases, key files or recipients, or a value with a key
///
/// bulla encrypts FILE into FILE.sealed, with XChaCha20-Poly1305. Any one of the given recipients,
/// passphrase and key file can decrypt it. bulla does not replace an existing file. With `-`, bulla
/// encrypts standard input, and writes to standard output unless --output names a file.
///
/// With --key, a key of the keystore or the service encrypts: one that was created with an
/// algorithm such as aes-256-gcm. This is for values of at most 1 MiB, such as passwords. bulla
/// prints the ciphertext as a line of base64, or writes it to the file of --output.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keygen me.identity > me.recipient
  bulla encrypt report.pdf --recipient me.recipient
  bulla encrypt report.pdf --recipient age1... --recipient colleague.recipient
  bulla encrypt report.pdf --passphrase
  tar c src | bulla encrypt - --recipient me.recipient > src.tar.sealed
  bulla keys create passwords --algorithm aes-256-gcm
  bulla encrypt --key passwords --associated-data db1 password.txt > password.encrypted
  bulla encrypt --key passwords --server https://keys.example.org:8200 -

Exit status: 0 encrypted, 2 not encrypted.")]
pub(crate) struct EncryptArgs {
    /// The file to encrypt, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write to OUT, or to standard output for `-` [default: FILE.sealed; with --key, standard
    /// output]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) to: EncryptToArgs,

    /// Encrypt a value with this key of the keystore or the service: its label or its id
    #[arg(
        long,
        value_name = "LABEL|ID",
        group = "EncryptToArgs",
        conflicts_with_all = ["recipient", "passphrase", "new_passphrase_file", "new_key_file"]
    )]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) value: ValueArgs,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// What decrypts an encrypted file, besides the keystore and the passphrase.
#[derive(Args)]
pub(crate) struct DecryptWithArgs {
    /// Decrypt with this key file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Decrypt an encrypted file, or a value that a key encrypted
///
/// bulla decrypts FILE.sealed into FILE. The file says which keys can decrypt it: the
/// identity of --identity, the key file of --key-file, a key in your keystore, or a passphrase.
/// bulla reads the passphrase from --passphrase-file, or asks for it.
///
/// The output file appears only after bulla has authenticated every byte of it, and never replaces
/// an existing file. On standard output (`-o -`), bulla writes each piece as soon as it has
/// authenticated that piece. Then only exit status 0 tells you that the end is not missing.
///
/// With --key, FILE contains the line that `bulla encrypt --key` printed. bulla writes the value to
/// standard output, or to the file of --output, after it has authenticated all of it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla decrypt report.pdf.sealed --identity me.identity
  bulla decrypt report.pdf.sealed -o /dev/shm/report.pdf
  bulla decrypt report.pdf.sealed --server https://keys.example.org:8200 --token-file token
  bulla decrypt - --identity me.identity < src.tar.sealed | tar x
  bulla decrypt --key passwords --associated-data db1 password.encrypted

Exit status: 0 decrypted, 1 the file was damaged or edited, 2 it could not be decrypted.")]
pub(crate) struct DecryptArgs {
    /// The encrypted file, or `-` for standard input
    #[arg(value_name = "FILE.sealed")]
    pub(crate) file: PathBuf,

    /// Write to OUT, or to standard output for `-` [default: the name without `.sealed`; with
    /// --key, standard output]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Decrypt a value with this key of the keystore or the service: its label or its id
    #[arg(long, value_name = "LABEL|ID", conflicts_with = "key_file")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) value: ValueArgs,

    #[command(flatten)]
    pub(crate) with: DecryptWithArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Change which keys can decrypt an encrypted file
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
  bulla rekey report.pdf.sealed --identity old.identity --recipient new.recipient --keep
  bulla rekey report.pdf.sealed --identity new.identity --recipient new.recipient

Exit status: 0 the keys were changed, 1 the file was damaged or edited, 2 the keys could not be changed and the file is unchanged.")]
pub(crate) struct RekeyArgs {
    /// The encrypted file
    #[arg(value_name = "FILE.sealed")]
    pub(crate) file: PathBuf,

    /// Keep the present keys, and add the new ones
    #[arg(long)]
    pub(crate) keep: bool,

    #[command(flatten)]
    pub(crate) to: EncryptToArgs,

    #[command(flatten)]
    pub(crate) with: DecryptWithArgs,

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
  bulla keygen me.identity > me.recipient
  bulla keygen --age me.identity      create an age identity

Exit status: 0 created, 2 not created.")]
pub(crate) struct KeygenArgs {
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
