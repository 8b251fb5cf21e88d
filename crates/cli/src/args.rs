//! The command line: each flag is defined here once, and parsing, help, completions and manual pages follow from it.

mod audit;
mod audit_log;
mod guard_place;
mod seal;
mod shared;
mod token;
mod transfer;

pub(crate) use self::audit::AuditArgs;
pub(crate) use self::audit_log::{
    AuditLogArgs, AuditLogCheckpointArgs, AuditLogCommand, AuditLogInitArgs, AuditLogProveArgs,
    AuditLogShowArgs, AuditLogVerifyArgs,
};
pub(crate) use self::guard_place::GuardPlace;
pub(crate) use self::seal::{
    IdentityArgs, KeysBackupArgs, KeysGuardArgs, KeysResealArgs, KeysRestoreArgs, OpenArgs, OpenWithArgs,
    ResealArgs, SealArgs, SealToArgs,
};
use self::shared::algorithm;
pub(crate) use self::shared::{Bound, DEFAULT_LABEL, DEFAULT_PURPOSE, KeystoreArgs, ReportArgs};
pub(crate) use self::token::{TokenArgs, TokenAttenuateArgs, TokenCommand, TokenInspectArgs, TokenNewArgs};
pub(crate) use self::transfer::{
    ExportPublicArgs, ImportFormat, KeysDestroyArgs, KeysExportArgs, KeysImportArgs, KeysPolicyArgs,
    KeysSuccessionArgs, PublicKeyFormat,
};

use crate::algorithm::Algorithm;
use bulla_kms::backend::SOFTWARE;
use bulla_kms::pkcs11;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bulla sign README.md                 write README.md.bulla, made with the key `default`
  bulla verify README.md               is README.md still what was signed?
  bulla sign photos                    sign a folder: every file in it, by one signature
  bulla keys export-public > me.pub    the public key, for those who verify
  bulla verify photos --public-key me.pub
  bulla seal notes --passphrase        write notes.sealed, which a passphrase opens
  bulla sum *.iso > SUMS               print checksums as b3sum does
  bulla check SUMS                     and check them
  bulla audit target/release/app       which vector instructions and kernels are in it?

Exit status: 0 all is well, 1 something does not verify, 2 something could not be done.";

/// Hash, sign and verify files.
///
/// bulla hashes with BLAKE3 and signs with Ed25519 keys that lie in a sealed keystore.
#[derive(Parser)]
#[command(name = "bulla", version, max_term_width = 100, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// When to use colour; NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColourWhen::Auto)]
    pub(crate) color: ColourWhen,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ColourWhen {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Sign(SignArgs),
    Verify(VerifyArgs),
    Seal(SealArgs),
    Open(OpenArgs),
    Reseal(ResealArgs),
    Identity(IdentityArgs),
    Keys(KeysArgs),
    Token(TokenArgs),
    Sum(SumArgs),
    Check(CheckArgs),
    Kernels(KernelsArgs),
    Audit(AuditArgs),
    AuditLog(AuditLogArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Who holds the private keys of a new key.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// The keystore itself
    Software,
    /// The token of --pkcs11, which they never leave
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignatureFormat {
    /// PATH.bulla: files and folders
    Bulla,
    /// PATH.minisig: files only, for those who verify with minisign
    Minisign,
}

impl SignatureFormat {
    /// What the name of the signature file ends with.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Bulla => ".bulla",
            Self::Minisign => ".minisig",
        }
    }
}

/// How a statement is hashed before it is signed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Prehash {
    /// BLAKE3, in a frame that any Ed25519 verifies
    Blake3,
    /// SHA-512, as Ed25519ph (RFC 8032)
    Ed25519ph,
}

/// Sign files and folders
///
/// Writes PATH.bulla beside each PATH. The first use creates a keystore in your data folder, with the key `default`.
///
/// A folder is signed as a whole: every file in it is hashed, and PATH.bulla lists and signs them all. A link inside a
/// folder is never followed: its target text is signed. A PATH that is itself a link is followed. Empty folders, modes
/// and times are not part of a signature. Sockets, fifos and devices in a folder are refused, and so is a folder that
/// holds the keystore or the signature file itself.
///
/// An older signature file at PATH.bulla is replaced in one step; any other file there is left alone and reported.
/// With `-`, standard input is signed and the signature goes to standard output, or to the FILE of --output.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla sign README.md
  bulla sign --comment 'release 1.2' dist
  bulla sign --format minisign app.tar.gz
  tar c src | bulla sign - --output src.tar.bulla

Exit status: 0 all signed, 2 something could not be signed.")]
pub(crate) struct SignArgs {
    /// Files and folders to sign, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The key to sign with: its label or its id
    #[arg(short, long, value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// One line of text that is signed too
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,

    /// Write the signature to FILE, or to standard output for `-`; only with one PATH
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The form of the signature file
    #[arg(long, value_enum, default_value_t = SignatureFormat::Bulla)]
    pub(crate) format: SignatureFormat,

    /// Sign a digest of the statement, for verifiers that know only that; the signature file says so
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) prehash: Option<Prehash>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Verify files and folders against their signatures
///
/// Reads PATH.bulla beside each PATH and prints one line for each file that is not what was signed: changed, missing
/// or unexpected. A signature itself is reported as malformed signature, bad signature, wrong key, unknown key or unknown version.
///
/// The keys of your keystore are trusted, but for revoked versions. With --public-key, only the keys given so are, and no keystore is needed.
/// After a rotation, --follow trusts the newer public keys that the given ones vouch for: see `bulla keys succession`.
/// With `-`, standard input is verified against the file of --signature.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla verify README.md
  bulla verify photos --public-key signer.pub
  bulla verify photos --public-key signer.pub --follow signer.succession
  bulla verify app.tar.gz --format minisign --public-key minisign.pub
  curl -s https://example.org/src.tar | bulla verify - --signature src.tar.bulla

Exit status: 0 all verified, 1 something does not verify, 2 something could not be checked (1 if both happened).")]
pub(crate) struct VerifyArgs {
    /// Files and folders to verify, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Trust this public key and no keystore: a file with one or more keys, or the key itself in base64; may be given several times
    #[arg(short, long, value_name = "FILE|KEY")]
    pub(crate) public_key: Vec<String>,

    /// Trust the newer public keys too that the given ones vouch for, in statements of `bulla keys succession`; may be given several times
    ///
    /// A statement is as good as the private key of the older version: do not follow one of a key that leaked.
    #[arg(long, value_name = "FILE", requires = "public_key")]
    pub(crate) follow: Vec<PathBuf>,

    /// The signature file [default: PATH.bulla, or PATH.minisig]; only with one PATH
    #[arg(short, long, value_name = "FILE")]
    pub(crate) signature: Option<PathBuf>,

    /// The form of the signature file
    #[arg(long, value_enum, default_value_t = SignatureFormat::Bulla)]
    pub(crate) format: SignatureFormat,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Create, show, rotate, move, destroy and back up keys
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys init --passphrase          a keystore that a passphrase opens
  bulla keys init --guard file:/mnt/other/guard
  bulla keys new releases               a key labelled `releases`
  bulla keys new lasting --algorithm ml-dsa-65-ed25519
  bulla keys list
  bulla keys rotate releases            sign with a new version; older signatures still verify
  bulla keys export-public releases > releases.pub")]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    Init(KeysInitArgs),
    #[command(visible_alias = "create")]
    New(KeysNewArgs),
    List(KeysListArgs),
    /// Show all versions of a key
    Show(KeysShowArgs),
    /// Sign with a new version of a key from now on
    ///
    /// What older versions signed still verifies. The new version is on the disk when the command ends. People who have only an older public key
    /// need the new one: `bulla keys export-public`, or `bulla keys succession`.
    Rotate(KeyArgs),
    Succession(KeysSuccessionArgs),
    /// Let a key sign no more
    ///
    /// What it signed still verifies. `bulla keys enable` undoes it.
    Disable(KeyArgs),
    /// Let a disabled key sign again
    Enable(KeyArgs),
    Policy(KeysPolicyArgs),
    Destroy(KeysDestroyArgs),
    ExportPublic(ExportPublicArgs),
    Guard(KeysGuardArgs),
    Reseal(KeysResealArgs),
    Backup(KeysBackupArgs),
    Restore(KeysRestoreArgs),
    Import(KeysImportArgs),
    Export(KeysExportArgs),
}

/// Create the keystore and its key `default`
///
/// Without --passphrase the keystore is opened by a key file beside it, which only you can read. `bulla sign` does the
/// same on first use.
#[derive(Args)]
pub(crate) struct KeysInitArgs {
    /// Seal the keystore by a passphrase, asked for twice or read from --passphrase-file
    #[arg(long)]
    pub(crate) passphrase: bool,

    /// Seal the keystore by a key on the token of --pkcs11, which is made there if there is none of that name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["passphrase", "passphrase_file"])]
    pub(crate) token_key: Option<String>,

    /// Refuse older copies of the keystore, by a guard in another place: see `bulla keys guard`
    #[arg(long, value_name = "file:PATH|pkcs11:NAME")]
    pub(crate) guard: Option<GuardPlace>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Create a key
///
/// The algorithms: ed25519 and ecdsa-p256; after quantum computers ml-dsa-44, -65 and -87, slh-dsa-sha2-128s to
/// slh-dsa-shake-256f, and ml-dsa-65-ed25519, which is both. ml-kem-512, -768, -1024 and x-wing make keys that do not sign: exports are wrapped for them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys new releases
  bulla keys new lasting --algorithm ml-dsa-65-ed25519
  bulla keys new moving --exportable                    see `bulla keys export`
  bulla keys new transport --algorithm x-wing           to receive keys with")]
pub(crate) struct KeysNewArgs {
    /// The name by which you call the key: letters a-z, digits, and inside `-`, `_`, `.`
    pub(crate) label: String,

    /// What the key is for; part of its id
    #[arg(long, default_value = DEFAULT_PURPOSE)]
    pub(crate) purpose: String,

    /// Who makes and holds the private keys
    #[arg(long, value_enum, default_value_t = Backend::Software)]
    pub(crate) backend: Backend,

    /// The algorithm
    #[arg(short, long, value_name = "NAME", value_parser = algorithm(), default_value = "ed25519", hide_possible_values = true)]
    pub(crate) algorithm: bulla_kms::Algorithm,

    /// Allow the private key to be exported, by a token that permits it; it cannot be changed later
    #[arg(long)]
    pub(crate) exportable: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// List all keys
#[derive(Args)]
pub(crate) struct KeysListArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print one JSON object a line instead of text
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

    /// Print one JSON object a line instead of text
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

/// How files are read.
#[derive(Args, Clone, Copy)]
pub(crate) struct ReadArgs {
    /// The maximum number of threads; 0 means RAYON_NUM_THREADS or the number of processors
    #[arg(long, value_name = "NUM", default_value_t = 0, hide_default_value = true)]
    pub(crate) num_threads: usize,

    /// Read one file after the other, each from start to end, with one thread: best for spinning disks
    ///
    /// bulla never maps files into memory; the name is the one b3sum uses.
    #[arg(long)]
    pub(crate) no_mmap: bool,
}

/// Print BLAKE3 checksums as b3sum does, or BLAKE2 checksums as b2sum does
///
/// When no FILE is given, or when FILE is `-`, standard input is read. A file that changes while it is read is an error.
///
/// Flags, output and exit status are those of b3sum 1.8, with these differences. With --check, an empty list is an error (b3sum: success), and lists
/// after one that cannot be read are still checked (b3sum: the end). Messages on standard error have other words, and --version is that of bulla.
#[derive(Args)]
#[command(
    version,
    after_help = "\
Examples:
  bulla sum *.iso > SUMS
  tar c src | bulla sum
  bulla sum --length 64 --no-names file
  bulla sum --keyed file < key.bin
  bulla sum --algorithm blake2b *.iso > B2SUMS

Exit status: 0 all hashed, 1 something could not be hashed or (with --check) does not match, 2 wrong flags."
)]
pub(crate) struct SumArgs {
    /// Files to hash, or files of checksums to check
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The hash function [default: blake3; with --check, what the line says]
    #[arg(short, long, value_enum, value_name = "NAME")]
    pub(crate) algorithm: Option<Algorithm>,

    /// Use the keyed mode of BLAKE3, with the 32-byte key from standard input
    #[arg(long, requires = "files")]
    pub(crate) keyed: bool,

    /// Use the key derivation mode of BLAKE3, with this context string
    #[arg(long, value_name = "CONTEXT", conflicts_with = "keyed")]
    pub(crate) derive_key: Option<String>,

    /// The number of output bytes, before hex encoding [default: 32; blake2b and blake2bp: 64]
    #[arg(short, long, value_name = "LEN")]
    pub(crate) length: Option<u64>,

    /// The first output byte, before hex encoding; BLAKE3 only
    #[arg(long, value_name = "SEEK", default_value_t = 0)]
    pub(crate) seek: u64,

    #[command(flatten)]
    pub(crate) read: ReadArgs,

    /// Leave out the names of the files
    #[arg(long)]
    pub(crate) no_names: bool,

    /// Write the bytes themselves instead of hex; only with one FILE
    #[arg(long)]
    pub(crate) raw: bool,

    /// Print lines of the form `BLAKE3 (FILE) = HASH`, with the name of the function
    #[arg(long)]
    pub(crate) tag: bool,

    /// Read checksums from the FILEs and check them, as `bulla check` does
    #[arg(short, long, conflicts_with_all = ["derive_key", "keyed", "length", "raw", "tag", "no_names"])]
    pub(crate) check: bool,

    /// With --check, do not print OK for each file
    #[arg(short, long, requires = "check")]
    pub(crate) quiet: bool,

    /// Print one JSON object a line instead of text
    #[arg(long, conflicts_with_all = ["raw", "tag", "no_names"])]
    pub(crate) json: bool,
}

/// Check files against checksums that `bulla sum`, b3sum or b2sum printed
///
/// When no FILE is given, or when FILE is `-`, the checksums are read from standard input. Lines of both forms are
/// read: `HASH  NAME` and `BLAKE3 (NAME) = HASH`. A line of the first form is of BLAKE3 when its checksum has 64 digits, and of
/// BLAKE2b when it has 128; --algorithm says otherwise.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla check SUMS
  bulla check --quiet SUMS && echo unchanged
  bulla check --algorithm blake2s SUMS

Exit status: 0 all match, 1 something does not, 2 a file of checksums could not be read or is empty (1 if both happened).")]
pub(crate) struct CheckArgs {
    /// Files of checksums
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The hash function of lines that do not name theirs
    #[arg(short, long, value_enum, value_name = "NAME")]
    pub(crate) algorithm: Option<Algorithm>,

    /// The first output byte that the checksums were made with; BLAKE3 only
    #[arg(long, value_name = "SEEK", default_value_t = 0)]
    pub(crate) seek: u64,

    #[command(flatten)]
    pub(crate) read: ReadArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Print which machine code hashes at which size
///
/// The best kernel that the CPU supports is chosen when bulla starts. BULLA_BLAKE3_FORCE_KERNEL names another one to use instead, for
/// every operation.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla kernels
  bulla kernels --json
  BULLA_BLAKE3_FORCE_KERNEL=portable bulla kernels

A shape says how many inputs lie side by side, and in registers of how many bits: `rows x4 2*256` are the four-row
states of four inputs in pairs of 256-bit registers, `columns x16 512` a register for each word of sixteen inputs.

Exit status: 0, or 2 if the variable names a kernel that this machine does not have.")]
pub(crate) struct KernelsArgs {
    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a completion script for your shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla completions bash > ~/.local/share/bash-completion/completions/bulla
  bulla completions zsh > ~/.zfunc/_bulla
  bulla completions fish > ~/.config/fish/completions/bulla.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page of bulla, or of one command
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla man | man -l -
  bulla man sign > bulla-sign.1
  bulla man keys rotate | man -l -")]
pub(crate) struct ManArgs {
    /// The command, as you would type it
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
