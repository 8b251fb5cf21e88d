//! The command line: each flag is defined here once, and parsing, help, completions and manual
//! pages follow from it.

#[cfg(unix)]
mod agent;
mod encrypt;
mod git;
mod keys;
mod keystore;
mod log;
mod shared;
mod ssh_cert;
mod sums;
#[cfg(test)]
mod tests;
mod trust;

#[cfg(unix)]
pub(crate) use self::agent::AgentArgs;
pub(crate) use self::encrypt::{
    DecryptArgs, DecryptWithArgs, EncryptArgs, EncryptToArgs, KeygenArgs, RekeyArgs, ValueArgs,
};
pub(crate) use self::git::{GitArgs, GitCommand, GitSetupArgs, SettingsArgs, SshKeygenArgs, SshKeygenMode};
pub(crate) use self::keys::{
    ExportPublicArgs, ImportFormat, KeyArgs, KeysArgs, KeysAttestArgs, KeysCommand, KeysCreateArgs,
    KeysDestroyArgs, KeysImportArgs, KeysListArgs, KeysPolicyArgs, KeysRevokeArgs, KeysShowArgs,
    KeysSuccessionArgs,
};
pub use self::keys::{KeysCsrArgs, KeysExportArgs, NameArgs, PublicKeyFormat};
pub(crate) use self::keystore::{
    KeystoreBackupArgs, KeystoreCommand, KeystoreCommandArgs, KeystoreGuardArgs, KeystoreInitArgs,
    KeystoreRekeyArgs, KeystoreRestoreArgs,
};
pub(crate) use self::log::{LogArgs, LogCheckpointArgs, LogCommand, LogInitArgs, LogProveArgs, LogShowArgs};
pub use self::log::{LogVerifyArgs, LogWitnessArgs};
pub(crate) use self::shared::{Bound, ByteRange, ExcludeArgs, WorkArgs};
pub use self::shared::{Deadline, KeystoreArgs, ReportArgs, ServerArgs, deadline, duration, duration_text};
pub(crate) use self::ssh_cert::{SshCertArgs, SshCertCommand, SshCertPolicyArgs, SshCertSignArgs};
pub(crate) use self::sums::{CheckArgs, FilterArgs, ReadArgs, SumArgs};
pub use self::trust::BundleTrustArgs;
pub(crate) use self::trust::TrustArgs;

use crate::color::ColorWhen;
use crate::error::Error;
use crate::files::STDIN;
use crate::programs::{PROGRAMS, Program};
use crate::store::ensure_reachable;
use bulla_keystore::DEFAULT_LABEL;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  bulla sign README.md                 sign README.md with the key `default`; write README.md.bulla
  bulla verify README.md               check that README.md is still what was signed
  bulla sign photos                    sign a folder: one signature for every file in it
  bulla keys export-public > me.pub    write the public key that others verify with
  bulla verify photos --public-key me.pub
  bulla encrypt notes --passphrase     encrypt notes with a passphrase; write notes.sealed
  bulla sum *.iso > SUMS               print checksums in the format of b3sum
  bulla check SUMS                     check these checksums
  bulla audit target/release/app       show which vector instructions and kernels are in a binary
  bulla sign README.md --server https://keys.example.org:8200    sign with a key that a service holds

Exit status: 0 success, 1 something does not verify, 2 something could not be done.";

/// Hash, sign, verify and encrypt files.
///
/// bulla hashes files with BLAKE3. It signs them with keys from its own encrypted keystore: Ed25519
/// keys, unless you choose another algorithm.
#[derive(Parser)]
#[command(name = "bulla", version, max_term_width = 100, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One command alone, for those that scripts call for one small file again and again: building the
/// parser of all commands takes longer than hashing such a file.
#[derive(Parser)]
#[command(name = "bulla")]
struct SingleCommand<T: Args> {
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto)]
    color: ColorWhen,

    #[command(flatten)]
    args: T,
}

impl<T: Args> SingleCommand<T> {
    /// Parses a command line, whose second word is the command's name.
    fn parse_words(mut words: Vec<OsString>) -> Option<Self> {
        words.remove(1);
        Self::try_parse_from(words).ok()
    }

    /// Does the same for a command with names of files. Of many words, those at the end that can
    /// only be names are left out: the parser takes about as long for a name as the system does to
    /// open the file.
    fn parse_names(
        mut words: Vec<OsString>,
        files: impl FnOnce(&mut T) -> &mut Vec<PathBuf>,
    ) -> Option<Self> {
        let names = if words.len() > MANY_WORDS { names_at_end(&mut words) } else { Vec::new() };
        let mut single = Self::parse_words(words)?;
        files(&mut single.args).extend(names.into_iter().map(PathBuf::from));
        Some(single)
    }
}

/// From this many words on, it pays to look for names of files.
const MANY_WORDS: usize = 64;

/// Takes away the words after the last flag and its value: no flag of these commands has more
/// values than one.
fn names_at_end(words: &mut Vec<OsString>) -> Vec<OsString> {
    let flag = words.iter().rposition(|word| word.as_encoded_bytes().starts_with(b"-"));
    let end = flag.map_or(2, |flag| flag + 2).max(2);
    words.split_off(end.min(words.len()))
}

impl Command {
    /// Starts `bulla-remote`, if it has to carry out the command: before the command reads standard
    /// input, asks for a passphrase, or hashes. The other commands start it when they need the
    /// keys.
    ///
    /// # Errors
    /// The program is missing.
    pub(crate) fn ensure_reachable(&self) -> Result<(), Error> {
        let keystore = match self {
            Self::Sign(args) => &args.keystore,
            Self::Verify(args) if args.trust.needs_keystore() => &args.trust.keystore,
            Self::Check(args) if args.signature.is_some() && args.trust.needs_keystore() => {
                &args.trust.keystore
            }
            Self::Encrypt(args) if args.key.is_some() => &args.keystore,
            Self::Decrypt(args) if args.key.is_some() || args.file == Path::new(STDIN) => &args.with.keystore,
            Self::Rekey(args) => &args.with.keystore,
            #[cfg(unix)]
            Self::Agent(args) => &args.keystore,
            Self::Keys(KeysArgs { command: KeysCommand::Import(args) }) => &args.keystore,
            _ => return Ok(()),
        };
        ensure_reachable(keystore)
    }
}

impl Cli {
    /// Parses the command line, whose words are given.
    ///
    /// # Errors
    /// Something is wrong with it, or help or the version is wanted: what is to be printed.
    pub(crate) fn from_command_line(words: Vec<OsString>) -> Result<Self, clap::Error> {
        if let Some(cli) = Self::parse_single(words) {
            return Ok(cli);
        }
        // The parser of all commands knows all errors and help.
        let command = Self::command().subcommands(PROGRAMS.iter().map(Program::stub));
        Self::from_arg_matches(&command.try_get_matches()?)
    }

    /// Parses a command line of some commands by a parser of that command alone. None for other
    /// commands, for mistakes and for help.
    fn parse_single(words: Vec<OsString>) -> Option<Self> {
        let name = words.get(1)?.to_str()?.to_owned();
        let (color, command) = match name.as_str() {
            "sum" => {
                let single = SingleCommand::<SumArgs>::parse_names(words, |args| &mut args.files)?;
                (single.color, Command::Sum(single.args))
            }
            "check" => {
                let single = SingleCommand::<CheckArgs>::parse_names(words, |args| &mut args.files)?;
                (single.color, Command::Check(single.args))
            }
            "sign" => {
                let single = SingleCommand::<SignArgs>::parse_words(words)?;
                (single.color, Command::Sign(single.args))
            }
            "verify" => {
                let single = SingleCommand::<VerifyArgs>::parse_words(words)?;
                (single.color, Command::Verify(single.args))
            }
            _ => return None,
        };
        Some(Self { color, command })
    }

    /// All commands, with those that other programs define.
    pub(crate) fn with_programs() -> clap::Command {
        Self::command().subcommands(PROGRAMS.iter().map(Program::describe))
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Sign(SignArgs),
    Verify(VerifyArgs),
    #[command(visible_alias = "seal")]
    Encrypt(EncryptArgs),
    #[command(visible_alias = "open")]
    Decrypt(DecryptArgs),
    #[command(visible_alias = "reseal")]
    Rekey(RekeyArgs),
    #[command(visible_alias = "identity")]
    Keygen(KeygenArgs),
    Keys(KeysArgs),
    Keystore(KeystoreCommandArgs),
    Sum(SumArgs),
    Check(CheckArgs),
    Kernels(KernelsArgs),
    Log(LogArgs),
    #[cfg(unix)]
    Agent(AgentArgs),
    Git(GitArgs),
    SshCert(SshCertArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Version(VersionArgs),
}

/// The format of a signature file. Other programs verify all but the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignatureFormat {
    /// PATH.bulla, for files and folders
    Bulla,
    /// PATH.minisig; minisign verifies it. Ed25519 keys only
    Minisign,
    /// PATH.sig; `ssh-keygen -Y verify` verifies it, and git in the namespace `git`. Ed25519 and
    /// P-256 keys
    Ssh,
    /// PATH.sig; signify verifies it. Ed25519 keys only; the whole file must fit into memory
    Signify,
    /// PATH.intoto.jsonl: a statement of in-toto about a file or the files of a folder, in an
    /// envelope of DSSE. Ed25519 and ECDSA keys
    Dsse,
    /// PATH.sigstore.json: a bundle of Sigstore; `cosign verify-blob --key` verifies it. Ed25519
    /// and ECDSA keys; without --predicate, the whole file must fit into memory
    Sigstore,
    /// PATH.sig: a model, file or folder, by OpenSSF Model Signing; `model_signing verify key`
    /// verifies it. ECDSA keys only
    Oms,
    /// PATH.jws: a JSON Web Signature with a detached payload; libraries for JOSE verify it.
    /// Ed25519, ECDSA, RSA and ML-DSA keys; the whole file must fit into memory
    Jws,
}

impl SignatureFormat {
    /// In the order in which `bulla verify` looks for signature files.
    pub(crate) const ALL: [Self; 8] = [
        Self::Bulla,
        Self::Minisign,
        Self::Ssh,
        Self::Signify,
        Self::Dsse,
        Self::Sigstore,
        Self::Oms,
        Self::Jws,
    ];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bulla => "bulla",
            Self::Minisign => "minisign",
            Self::Ssh => "ssh",
            Self::Signify => "signify",
            Self::Dsse => "dsse",
            Self::Sigstore => "sigstore",
            Self::Oms => "oms",
            Self::Jws => "jws",
        }
    }

    /// What the name of the signature file ends with.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Bulla => ".bulla",
            Self::Minisign => ".minisig",
            Self::Ssh | Self::Signify | Self::Oms => ".sig",
            Self::Dsse => ".intoto.jsonl",
            Self::Sigstore => ".sigstore.json",
            Self::Jws => ".jws",
        }
    }
}

/// The hash function for the files of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelDigest {
    /// SHA-256
    Sha256,
    /// BLAKE2b with 64 bytes
    Blake2b,
    /// BLAKE3, which is the fastest
    Blake3,
}

/// How bulla hashes a statement before it signs it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Prehash {
    /// Hash with BLAKE3 and sign the framed digest; any Ed25519 implementation can verify it
    Blake3,
    /// Hash with SHA-512 and sign with Ed25519ph (RFC 8032)
    Ed25519ph,
}

/// Sign files and folders
///
/// bulla writes the signature of each PATH to PATH.bulla. On first use it creates a keystore in
/// your data folder, with the key `default`. If you name a keystore or another key, it must exist.
///
/// bulla signs a folder as a whole. It hashes every file in the folder; PATH.bulla lists all of
/// them and signs the list. Inside a folder, bulla does not follow links: it signs the text of a
/// link's target. If PATH itself is a link, bulla follows it. A signature does not cover empty
/// folders, file modes or times. bulla refuses a folder that contains a socket, a fifo or a device,
/// the keystore, or the signature file itself. When it signs a folder again, it names the files
/// that are gone.
///
/// A signature covers the name of a file: `bulla verify` says so if the file has another name. With
/// --no-name, the signature file verifies the same content under any name, as signatures of folders
/// do. Put a version that matters into --comment, which the signature covers.
///
/// bulla replaces an older signature file at PATH.bulla in one step. It does not touch any other
/// file there, and reports it. It checks that it can write there before it reads anything. With
/// `-`, bulla signs standard input and writes the signature to standard output, or to the FILE of
/// --output.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla sign README.md
  bulla sign --comment 'release 1.2' dist
  bulla sign --full photos
  bulla sign --exclude .DS_Store --exclude '*.tmp' photos
  bulla sign --idle /archive
  bulla sign --format minisign app.tar.gz
  bulla sign --format ssh app.tar.gz
  bulla sign --format signify --embed SHA256 --output SHA256.sig
  bulla sign --format dsse --predicate build.json --predicate-type https://slsa.dev/provenance/v1 dist
  bulla sign --format sigstore --key releases app.tar.gz
  bulla sign --format oms --key models --model-digest blake3 model
  bulla sign --format jws report.json
  bulla sign --server https://keys.example.org:8200 --token-file token --key releases app.tar.gz
  tar c src | bulla sign - --output src.tar.bulla

Exit status: 0 everything signed, 2 something could not be signed.")]
pub(crate) struct SignArgs {
    /// Files and folders to sign, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The key to sign with: its label or its id
    #[arg(short, long, value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// One line of text; the signature covers it too
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,

    /// Leave the name of the file out of the signature, which is then valid under any name
    #[arg(long)]
    pub(crate) no_name: bool,

    /// Write the signature to FILE, or to standard output if FILE is `-`; only with one PATH
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The format of the signature file
    #[arg(long, value_enum, default_value_t = SignatureFormat::Bulla)]
    pub(crate) format: SignatureFormat,

    /// With --format ssh: what the signature is for; verifiers must expect the same [default: file]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// With --format signify: also put the file into the signature file, as `signify -C` wants it
    #[arg(long)]
    pub(crate) embed: bool,

    /// With --format dsse or sigstore: what to say of the files, an object of JSON in FILE
    ///
    /// For example how they were built. bulla writes a statement of in-toto, which has the name and
    /// the SHA-256, SHA-512 and BLAKE3 digests of each file.
    #[arg(long, value_name = "FILE", help_heading = "Statements and models")]
    pub(crate) predicate: Option<PathBuf>,

    /// The type of the predicate, for example https://slsa.dev/provenance/v1
    #[arg(long, value_name = "URI", help_heading = "Statements and models")]
    pub(crate) predicate_type: Option<String>,

    /// With --format oms: how to hash the model's files [default: sha256]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Statements and models")]
    pub(crate) model_digest: Option<ModelDigest>,

    /// With --format oms: hash the files in shards of this many bytes
    ///
    /// The number may have K, M, G or T at its end, for powers of 1024. Files without content are
    /// not listed then.
    #[arg(long, value_name = "BYTES", value_parser = shared::shard_size, help_heading = "Statements and models")]
    pub(crate) shard_size: Option<u64>,

    /// With --format oms: count links to files as these files [default: a link is an error]
    #[arg(long, help_heading = "Statements and models")]
    pub(crate) follow_links: bool,

    /// Sign with an existing key only: never create a keystore or a key
    #[arg(long)]
    pub(crate) no_create: bool,

    #[command(flatten)]
    pub(crate) exclude: ExcludeArgs,

    /// Sign an empty folder although its last signature lists files, which are gone now, or
    /// although something is left out
    #[arg(long)]
    pub(crate) allow_empty: bool,

    /// Read every file of a folder, also those that have not changed since the folder was signed
    ///
    /// When bulla signs a folder again, it reads only files that are new, or whose size, times or
    /// identity changed. It says how many it read. The older signature must be one of your own
    /// keys. What bulla remembers for this is in your cache folder.
    #[arg(long)]
    pub(crate) full: bool,

    /// Sign a digest of the statement instead of the statement, for verifiers that need that; the
    /// signature file says so
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) prehash: Option<Prehash>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Verify files and folders against their signatures
///
/// bulla reads the signature of each PATH from PATH.bulla, PATH.minisig, PATH.sig,
/// PATH.intoto.jsonl, PATH.sigstore.json or PATH.jws. The signature file itself says which format
/// it has, of those that `bulla sign --format` writes. bulla prints one line for each file that
/// differs from what was signed: changed, missing or unexpected. If the signature itself is at
/// fault, it prints malformed signature, bad signature, wrong key, unknown
/// key, unknown version, wrong name, wrong namespace or expired.
///
/// A signature of `bulla sign` covers the name of a file, unless it was left out. So do statements
/// of in-toto, and signatures of folders and models cover the names of the files in them. If a file
/// has another name, bulla prints wrong name; --any-name accepts it. Signatures of other formats
/// cover no names. If the signed comment of a minisign signature names another file, bulla says so.
///
/// bulla trusts the keys of your keystore, except revoked versions. With --public-key or
/// --allowed-signers, it trusts only the given keys and needs no keystore. After a rotation,
/// --succession also trusts the newer public keys that the given keys vouch for: see `bulla keys
/// succession`. With `-`, bulla verifies standard input against the signature file of --signature.
///
/// Bundles of Sigstore may have a certificate, entries of transparency logs, and timestamps.
/// --trusted-root verifies them, and --certificate-identity says whose certificates count.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla verify README.md
  bulla verify photos --public-key signer.pub
  bulla verify photos --only 2025/beach.jpg
  bulla verify photos --duplicates
  bulla verify model --quick
  bulla verify disk.img --range 10G..11G
  bulla verify renamed.tar.gz --signature app.tar.gz.bulla --any-name
  bulla verify photos --public-key signer.pub --succession signer.succession
  bulla verify app.tar.gz --public-key minisign.pub
  bulla verify app.tar.gz --allowed-signers allowed_signers --principal me@example.org
  bulla verify app.tar.gz --trusted-root trusted_root.json --certificate-identity me@example.org --certificate-oidc-issuer https://accounts.google.com
  bulla verify model --certificate-chain authority.pem
  bulla verify app.tar.gz --server https://keys.example.org:8200 --token-file token
  curl -s https://example.org/src.tar | bulla verify - --signature src.tar.bulla

Exit status: 0 everything verified, 1 something does not verify, 2 something could not be checked (1 if both happened).")]
pub(crate) struct VerifyArgs {
    /// Files and folders to verify, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Verify only this file or folder in a signed folder
    ///
    /// The path is relative to the signed folder. bulla reads nothing else. The flag may be given
    /// several times.
    #[arg(long, value_name = "PATH", help_heading = "Folders")]
    pub(crate) only: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) exclude: ExcludeArgs,

    /// Also list the files of a signed folder that have the same content
    #[arg(long, help_heading = "Folders")]
    pub(crate) duplicates: bool,

    /// Do not read files that have not changed since bulla read them
    ///
    /// bulla remembers the size, the times and the number of each file of a folder when you sign
    /// the folder here, and of each file of a model when it verifies the whole model. With this
    /// flag, it does not read those that still have them. It does not find damage by the disk.
    #[arg(long, help_heading = "Folders", conflicts_with = "range")]
    pub(crate) quick: bool,

    /// Verify only these bytes of a file
    ///
    /// END is the byte after the last one. bulla reads nothing else of the file. The numbers may
    /// have K, M, G or T at their ends, for powers of 1024. Without START, the range begins with
    /// the file; without END, it ends with the file. This needs the file's tree of hashes, which
    /// `bulla sum --outboard` writes. For a file in a signed folder, name the file with --only, and
    /// its tree with --outboard.
    #[arg(long, value_name = "START..END", value_parser = shared::byte_range, conflicts_with = "duplicates")]
    pub(crate) range: Option<ByteRange>,

    /// The file with the tree of hashes, for --range [default: PATH.obao]
    #[arg(long, value_name = "FILE", requires = "range")]
    pub(crate) outboard: Option<PathBuf>,

    /// The signature file; only with one PATH [default: PATH.bulla, PATH.minisig, PATH.sig,
    /// PATH.intoto.jsonl, PATH.sigstore.json or PATH.jws, the first that exists]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) signature: Option<PathBuf>,

    /// Accept a file that had another name when it was signed
    #[arg(long)]
    pub(crate) any_name: bool,

    /// Accept only signature files of this format [default: any; the file says which]
    #[arg(long, value_enum)]
    pub(crate) format: Option<SignatureFormat>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Show which kernel (instruction set) hashes which input size
///
/// When bulla starts, it chooses the best kernel that the CPU supports. To use another kernel for
/// every operation, name it in the variable BULLA_BLAKE3_FORCE_KERNEL.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla kernels
  bulla kernels --json
  BULLA_BLAKE3_FORCE_KERNEL=portable bulla kernels

A shape says how many inputs a kernel hashes at once, and how wide its registers are. `rows x4 2*256` means row form: a
pair of 256-bit registers holds the same row of four inputs' states. `columns x16 512` means column form: a 512-bit
register holds the same word of sixteen inputs' states.

Exit status: 0 shown, 2 the variable names a kernel that this machine does not have.")]
pub(crate) struct KernelsArgs {
    /// Print JSON Lines, one object per line, instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the version, and how this program was built
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla version
  bulla version --verbose

Exit status: 0 printed.")]
pub(crate) struct VersionArgs {
    /// Also print the commit, the features, and the kernel that hashes on this machine
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Print a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a shell completion script
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla completions bash > ~/.local/share/bash-completion/completions/bulla
  bulla completions zsh > ~/.zfunc/_bulla
  bulla completions fish > ~/.config/fish/completions/bulla.fish

Exit status: 0 printed, 2 not printed.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page of bulla or of one command
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla man | man -l -
  bulla man sign > bulla-sign.1
  bulla man keys rotate | man -l -

Exit status: 0 printed, 2 there is no such command.")]
pub(crate) struct ManArgs {
    /// The command, as you would type it
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
