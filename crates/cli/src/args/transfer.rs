//! The flags of `bulla keys import`, `export`, `policy` and `destroy`.

use super::shared::{Bound, DEFAULT_LABEL, DEFAULT_PURPOSE, KeystoreArgs, ReportArgs, algorithm, duration};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// How a public key is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PublicKeyFormat {
    /// Two lines with the key's id, for `bulla verify`
    Bulla,
    /// For those who verify with minisign; Ed25519 alone
    Minisign,
    /// SubjectPublicKeyInfo as PEM, for OpenSSL and most libraries
    Pem,
    /// The same as DER
    Der,
    /// The bytes of the key alone
    Raw,
    /// A line for OpenSSH; Ed25519 alone
    Openssh,
    /// A JSON Web Key; Ed25519 and ML-DSA
    Jwk,
}

/// How a key that is to be imported is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// PKCS#8 or, with --public, SubjectPublicKeyInfo as PEM
    Pem,
    /// The same as DER
    Der,
    /// The bytes of the key alone; needs --algorithm
    Raw,
    /// A private key file or, with --public, a line of OpenSSH
    Openssh,
    /// What `bulla keys export` wrote; needs --recipient
    Wrapped,
    /// PKCS#8 in DER, wrapped by AES-KWP (RFC 5649); needs --wrapping-key
    AesKwp,
    /// A JSON Web Key; needs --public
    Jwk,
    /// A public key of minisign; needs --public
    Minisign,
}

fn duration_or_none(text: &str) -> Result<Bound<Duration>, String> {
    if text == "none" { Ok(Bound::None) } else { duration(text).map(Bound::At) }
}

fn number_or_none(text: &str) -> Result<Bound<std::num::NonZeroU64>, String> {
    if text == "none" {
        return Ok(Bound::None);
    }
    text.parse().map(Bound::At).map_err(|_| format!("{text:?} is neither a number from 1 nor `none`"))
}

/// Take a key from elsewhere into the keystore
///
/// A private key is sealed as those are that were made here, and marked as imported: whoever made it may still have it. The file
/// is left as it is. Each format has one form, and anything else is refused: see `bulla keys export-public` and PKCS#8.
///
/// With --public the public key alone is imported: it verifies signatures, or is a recipient of exports, and does nothing else.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys import releases key.pem                    PKCS#8, as openssl genpkey writes it
  bulla keys import laptop ~/.ssh/id_ed25519 --format openssh
  bulla keys import theirs their.pub --public
  bulla keys import releases new.pem --new-version      the next version of the key `releases`
  bulla keys import releases moved.key --format wrapped --recipient transport
  head -c 32 /dev/hsm | bulla keys import seed - --format raw --algorithm ed25519")]
pub(crate) struct KeysImportArgs {
    /// The label of the new key; with --new-version the key: its label or its id
    pub(crate) key: String,

    /// The file with the key, or `-` for standard input
    pub(crate) file: PathBuf,

    /// The form of the file
    #[arg(long, value_enum, default_value_t = ImportFormat::Pem)]
    pub(crate) format: ImportFormat,

    /// Import a public key alone
    #[arg(long)]
    pub(crate) public: bool,

    /// Make it the next version of a key that is there
    #[arg(long, conflicts_with_all = ["purpose", "exportable"])]
    pub(crate) new_version: bool,

    /// The algorithm that the key must have
    #[arg(short, long, value_name = "NAME", value_parser = algorithm(), hide_possible_values = true)]
    pub(crate) algorithm: Option<bulla_kms::Algorithm>,

    /// The key of this keystore for which the file was wrapped: its label or its id
    #[arg(long, value_name = "LABEL|ID", required_if_eq("format", "wrapped"))]
    pub(crate) recipient: Option<String>,

    /// A file with the 32 bytes of the AES key
    #[arg(long, value_name = "FILE", required_if_eq("format", "aes-kwp"))]
    pub(crate) wrapping_key: Option<PathBuf>,

    /// Read the passphrase of an encrypted private key from the first line of FILE
    ///
    /// Without it, bulla asks on the terminal.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_passphrase_file: Option<PathBuf>,

    /// What the key is for; part of its id
    #[arg(long, default_value = DEFAULT_PURPOSE)]
    pub(crate) purpose: String,

    /// Allow the private key to be exported, by a token that permits it
    #[arg(long, conflicts_with = "public")]
    pub(crate) exportable: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Hand a private key to the holder of another key
///
/// The key is wrapped so that the holder of the recipient's private key alone can open it, with `bulla keys import --format
/// wrapped`. It must have been made with --exportable, and a token must permit it: see `bulla token new`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys new transport --algorithm x-wing           there: a key to receive with
  bulla keys export-public transport > transport.pub    and its public key
  bulla token new --operation export --key releases --expires-in 1h --output token
  bulla keys export releases --to transport.pub --token token --output releases.wrapped")]
pub(crate) struct KeysExportArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// The recipient's public key: a file, or the key itself
    #[arg(long, value_name = "FILE|KEY")]
    pub(crate) to: String,

    /// The file with the token that permits it, or `-` for standard input
    #[arg(long, value_name = "FILE", env = "BULLA_TOKEN_FILE", hide_env_values = true)]
    pub(crate) token: PathBuf,

    /// A file with the revocation ids of tokens that are no longer honoured, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) revoked: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Show or change when a key is rotated, and its least version
///
/// A version that has reached a bound is replaced at the next signature.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys policy releases                            show it
  bulla keys policy releases --max-age 90d --max-uses 1000000
  bulla keys policy releases --max-age none
  bulla keys policy releases --minimum-version 3        versions 1 and 2 verify no more")]
pub(crate) struct KeysPolicyArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// A version signs no longer than this: a number and s, m, h or d; `none` for no bound
    #[arg(long, value_name = "TIME", value_parser = duration_or_none)]
    pub(crate) max_age: Option<Bound<Duration>>,

    /// A version makes at most so many signatures; `none` for no bound
    #[arg(long, value_name = "NUM", value_parser = number_or_none)]
    pub(crate) max_uses: Option<Bound<std::num::NonZeroU64>>,

    /// Older versions are not used for anything; it may be lowered again
    #[arg(long, value_name = "NUM")]
    pub(crate) minimum_version: Option<std::num::NonZeroU32>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Schedule the destruction of a key, or carry it out
///
/// A key whose destruction is scheduled does not sign; `bulla keys restore` takes it back. When its time has come, --final deletes its private
/// keys for ever. What they signed still verifies.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys destroy old --in 30d
  bulla keys restore old                                it was a mistake
  bulla keys destroy old --final                        30 days later
  bulla keys destroy releases --version 1               the private key of an older version
  bulla keys destroy releases --revoke 1                and its signatures are no longer accepted")]
pub(crate) struct KeysDestroyArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// How long it can be restored: a number and s, m, h or d
    #[arg(long = "in", value_name = "TIME", value_parser = duration, default_value = "30d")]
    pub(crate) delay: Duration,

    /// Delete the private keys now, if the scheduled time has come
    #[arg(long = "final", conflicts_with = "delay")]
    pub(crate) finally: bool,

    /// Delete the private key of this version, which is not the newest; it still verifies
    #[arg(long, value_name = "NUM", conflicts_with_all = ["delay", "finally"])]
    pub(crate) version: Option<std::num::NonZeroU32>,

    /// Accept signatures of this version no more, and delete its private key
    #[arg(long, value_name = "NUM", conflicts_with_all = ["delay", "finally", "version"])]
    pub(crate) revoke: Option<std::num::NonZeroU32>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Print statements in which each version of a key vouches for the next one
///
/// Someone who has an older public key of yours verifies newer signatures with them: `bulla verify PATH --public-key OLD.pub --follow FILE`.
/// Each statement is signed by the older version. Revoked versions sign none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys rotate releases
  bulla keys succession releases > releases.succession
  bulla verify app --public-key old.pub --follow releases.succession")]
pub(crate) struct KeysSuccessionArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Print a public key, for those who verify your signatures
///
/// The newest version of the key is printed, or the one that an id with a version names.
#[derive(Args)]
pub(crate) struct ExportPublicArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// The form of the public key
    #[arg(long, value_enum, default_value_t = PublicKeyFormat::Bulla)]
    pub(crate) format: PublicKeyFormat,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}
