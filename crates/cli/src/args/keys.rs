//! The flags of `bulla keys`.

use super::shared::{Bound, Deadline, KeystoreArgs, ReportArgs, algorithm, deadline, duration};
use bulla_keystore::{DEFAULT_LABEL, DEFAULT_PURPOSE};
use bulla_kms::backend::{GROUP, SOFTWARE};
use bulla_kms::pkcs11;
use clap::{Args, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where the private keys of a new key are made and kept.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// In the keystore
    Software,
    /// On the device of --pkcs11, or on that of the service of --server; they never leave it
    Pkcs11,
    /// On the nodes of the service of --server, together: none of them has the whole key
    Group,
}

impl Backend {
    /// The backend's name in the keystore.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Software => SOFTWARE,
            Self::Pkcs11 => pkcs11::NAME,
            Self::Group => GROUP,
        }
    }
}

/// Create, list, rotate, import, export and destroy keys
///
/// A key has versions. The latest version signs, encrypts or makes message authentication codes
/// (MACs): what its algorithm does. Every version verifies and decrypts what it made, unless it is
/// revoked or below the minimum version.
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
    /// Rotate a key: a new version signs or encrypts from now on
    ///
    /// Signatures by older versions still verify, and their ciphertexts still decrypt. The new
    /// version is on disk when the command ends. People who have only an older public key need the
    /// new one: publish it with `bulla keys export-public`, or publish the output of `bulla keys
    /// succession`.
    #[command(after_help = "\
Examples:
  bulla keys rotate
  bulla keys rotate releases

Exit status: 0 rotated, 2 not rotated.")]
    Rotate(KeyArgs),
    /// Give the nodes of a service new shares of a key that they have together
    ///
    /// The key is one of the backend `group`: no node has it whole. The nodes and the threshold are
    /// those of the nodes' settings, so this also lets nodes join and leave. The public key stays,
    /// and old shares are worth nothing afterwards. All nodes move to the new shares or none does.
    #[command(after_help = "\
Examples:
  bulla keys refresh releases

Exit status: 0 refreshed, 2 not refreshed.")]
    Refresh(KeyArgs),
    /// Repair the shares of a key that a node of a service has lost
    ///
    /// Ask the node that lost them. As many others as sign together must answer, and nobody but the
    /// node itself can read its share.
    #[command(after_help = "\
Examples:
  bulla keys repair releases --server https://node2.example:8200

Exit status: 0 repaired, 2 not repaired.")]
    Repair(KeyArgs),
    Succession(KeysSuccessionArgs),
    Attest(KeysAttestArgs),
    /// Disable a key
    ///
    /// A disabled key is not used. What it signed before still verifies. `bulla keys enable` undoes
    /// this.
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
    /// Afterwards the key is disabled: `bulla keys enable` lets it be used again.
    #[command(after_help = "\
Examples:
  bulla keys cancel-destruction releases

Exit status: 0 canceled, 2 not canceled.")]
    CancelDestruction(KeyArgs),
    ExportPublic(ExportPublicArgs),
    Import(KeysImportArgs),
    Export(KeysExportArgs),
    Csr(KeysCsrArgs),
}

/// Create a key
///
/// Algorithms that sign: ed25519 and ecdsa-p256. Post-quantum algorithms that sign: ml-dsa-44,
/// ml-dsa-65 and ml-dsa-87, and slh-dsa-sha2-128s to slh-dsa-shake-256f. ml-dsa-65-ed25519 combines
/// one of each kind.
///
/// Algorithms that do not sign: ml-kem-512, ml-kem-768, ml-kem-1024 and x-wing. Their keys receive
/// exported keys: `bulla keys export` wraps a private key for them.
///
/// Symmetric algorithms, without a public key: aes-128-gcm, aes-256-gcm, chacha20-poly1305 and
/// xchacha20-poly1305 encrypt values, see `bulla encrypt --key`. hmac-sha256, hmac-sha384,
/// hmac-sha512 and blake3 make message authentication codes (MACs), for programs that use the
/// library or the service.
///
/// Only the service has these: ecdsa-p384 and ecdsa-p521 sign; rsa-2048, rsa-3072 and rsa-4096 sign
/// and encrypt; ecdh-p256, ecdh-p384, ecdh-p521 and x25519 derive shared secrets, for programs that
/// use the service.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys create releases
  bulla keys create lasting --algorithm ml-dsa-65-ed25519
  bulla keys create moving --exportable                    see `bulla keys export`
  bulla keys create transport --algorithm x-wing           a key that receives exported keys
  bulla keys create passwords --algorithm aes-256-gcm      a key for `bulla encrypt --key`

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

    /// Have it sign digests that callers hash themselves, for ECDSA and RSA; this cannot be
    /// changed later
    ///
    /// Such a key signs no files, folders, attestations or other statements of bulla, because a
    /// digest could be that of a statement. Clients of HashiCorp Vault need it to sign with
    /// `prehashed`.
    #[arg(long)]
    pub(crate) signs_digests: bool,

    /// Have it encrypt with keys that are derived from contexts; this cannot be changed later
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) derivation: Option<Derivation>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The keys that encrypt, instead of the key itself.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Derivation {
    /// A key for each context, which users give by --context
    PerContext,
    /// Also, equal values in one context have equal ciphertexts; only to search for equal values
    Convergent,
}

impl From<Derivation> for bulla_kms::KeyDerivation {
    fn from(derivation: Derivation) -> Self {
        match derivation {
            Derivation::PerContext => Self::PerContext,
            Derivation::Convergent => Self::Convergent,
        }
    }
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

/// The format of a public key that bulla prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PublicKeyFormat {
    /// Two lines with the key's id, for `bulla verify`
    Bulla,
    /// A public key file of minisign; Ed25519 only
    Minisign,
    /// A public key file of signify; Ed25519 only
    Signify,
    /// SubjectPublicKeyInfo in PEM, for OpenSSL and most libraries
    Pem,
    /// SubjectPublicKeyInfo in DER
    Der,
    /// Only the key's bytes
    Raw,
    /// A line of OpenSSH; Ed25519 and P-256 only
    Openssh,
    /// A JSON Web Key; Ed25519 and ML-DSA
    Jwk,
}

/// The format of a key that bulla imports.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// PKCS#8 in PEM; with --public, SubjectPublicKeyInfo in PEM
    Pem,
    /// The same in DER
    Der,
    /// Only the key's bytes; needs --algorithm
    Raw,
    /// A key as HashiCorp Vault and OpenBao export it: base64 for Ed25519, PEM for ECDSA
    Vault,
    /// A private key file of OpenSSH; with --public, a public key line of OpenSSH
    Openssh,
    /// The output of `bulla keys export`; needs --unwrap-with
    Wrapped,
    /// PKCS#8 in DER, wrapped with AES-KWP (RFC 5649); needs --wrapping-key
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
    text.parse().map(Bound::At).map_err(|_| format!("{text:?} is neither a number (1 or more) nor `none`"))
}

/// Import a key into the keystore
///
/// The keystore encrypts an imported private key like its own keys. It also marks the key as
/// imported, because somebody else may still have a copy. bulla does not change the file. It
/// accepts exactly one encoding of each format, and refuses every other encoding.
///
/// With --public, bulla imports only a public key. Such a key verifies signatures or receives
/// exported keys. It does nothing else.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys import releases key.pem                    a PKCS#8 file from openssl genpkey
  bulla keys import laptop ~/.ssh/id_ed25519 --format openssh
  bulla keys import invoices exported.key --format vault
  bulla keys import theirs their.pub --public
  bulla keys import releases new.pem --new-version      the next version of the key `releases`
  bulla keys import releases moved.key --format wrapped --unwrap-with transport
  head -c 32 /dev/hsm | bulla keys import seed - --format raw --algorithm ed25519

Exit status: 0 imported, 2 not imported.")]
pub(crate) struct KeysImportArgs {
    /// The new key's label; with --new-version, the existing key: its label or its id
    pub(crate) key: String,

    /// The file with the key, or `-` for standard input
    pub(crate) file: PathBuf,

    /// The format of the file
    #[arg(long, value_enum, default_value_t = ImportFormat::Pem)]
    pub(crate) format: ImportFormat,

    /// Import only a public key
    #[arg(long)]
    pub(crate) public: bool,

    /// Import it as the next version of an existing key
    #[arg(long, conflicts_with_all = ["purpose", "exportable", "signs_digests"])]
    pub(crate) new_version: bool,

    /// The algorithm that the key must have
    #[arg(short, long, value_name = "NAME", value_parser = algorithm(), hide_possible_values = true)]
    pub(crate) algorithm: Option<bulla_kms::Algorithm>,

    /// The key of the keystore that the file was wrapped for: its label or its id
    #[arg(long, value_name = "LABEL|ID", required_if_eq("format", "wrapped"))]
    pub(crate) unwrap_with: Option<String>,

    /// A file with the 32 bytes of the AES key
    #[arg(long, value_name = "FILE", required_if_eq("format", "aes-kwp"))]
    pub(crate) wrapping_key: Option<PathBuf>,

    /// Read the passphrase of an encrypted private key from the first line of FILE
    ///
    /// Without this flag, bulla asks for the passphrase on the terminal.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_passphrase_file: Option<PathBuf>,

    /// What the key is for; part of its id
    #[arg(long, default_value = DEFAULT_PURPOSE)]
    pub(crate) purpose: String,

    /// Allow exports of the private key, to callers whose token permits it; this cannot be changed
    /// later
    #[arg(long, conflicts_with = "public")]
    pub(crate) exportable: bool,

    /// Have it sign digests that callers hash themselves, for ECDSA and RSA; this cannot be
    /// changed later
    ///
    /// Such a key signs no files, folders, attestations or other statements of bulla, because a
    /// digest could be that of a statement. Clients of HashiCorp Vault need it to sign with
    /// `prehashed`.
    #[arg(long, conflicts_with = "public")]
    pub(crate) signs_digests: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Export a private key, wrapped for a recipient's key
///
/// Only the holder of the recipient's private key can unwrap the exported key, with `bulla keys
/// import --format wrapped`. You can export a key only if it was created or imported with
/// --exportable, and only with a token that permits it, in the file of --token-file or in the
/// variable BULLA_TOKEN: see `bulla token new`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys create transport --algorithm x-wing           on the recipient's side
  bulla keys export-public transport > transport.pub    on the recipient's side
  bulla token new --operation export --key releases --expires 1h --output token
  bulla keys export releases --to transport.pub --token-file token --output releases.wrapped

Exit status: 0 exported, 2 not exported.")]
pub struct KeysExportArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub key: String,

    /// The recipient's public key: a file, or the key itself
    #[arg(long, value_name = "FILE|KEY")]
    pub to: String,

    /// A file with the revocation ids of revoked tokens, one per line
    #[arg(long, value_name = "FILE")]
    pub revoked: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub keystore: KeystoreArgs,
}

/// Request an X.509 certificate for a key
///
/// bulla writes a request in PKCS #10, as PEM, signed by the key. An authority makes a certificate
/// of it: `bulla x509 sign`, or another program. The key is of Ed25519, ECDSA or RSA.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys csr web --subject CN=www.example.org --dns www.example.org -o web.csr
  bulla keys csr ann --subject 'CN=Ann Example,O=Example' --email ann@example.org

Exit status: 0 written, 2 not written.")]
pub struct KeysCsrArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub key: String,

    /// The subject, in the form of RFC 4514
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub subject: String,

    #[command(flatten)]
    pub names: NameArgs,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub keystore: KeystoreArgs,

    #[command(flatten)]
    pub report: ReportArgs,
}

/// The names of a certificate beside its subject.
#[derive(Args)]
pub struct NameArgs {
    /// A DNS name that the certificate is for; may be given several times
    #[arg(long, value_name = "NAME")]
    pub dns: Vec<String>,

    /// An IP address that the certificate is for; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Vec<IpAddr>,

    /// An address of mail that the certificate is for; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub email: Vec<String>,

    /// A URI that the certificate is for, such as one of SPIFFE; may be given several times
    #[arg(long, value_name = "URI")]
    pub uri: Vec<String>,
}

/// Show or change a key's rotation policy and its minimum version
///
/// When a version has reached a limit, the next use rotates the key first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys policy releases                            show the policy
  bulla keys policy releases --max-age 90d --max-uses 1000000
  bulla keys policy releases --max-age none
  bulla keys policy releases --minimum-version 3        refuse what versions 1 and 2 made

Exit status: 0 shown or changed, 2 not.")]
pub(crate) struct KeysPolicyArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// How long a version signs or encrypts: a number and s, m, h, d, w or y; `none` for no limit
    #[arg(long, value_name = "TIME", value_parser = duration_or_none)]
    pub(crate) max_age: Option<Bound<Duration>>,

    /// How many signatures, ciphertexts or MACs a version makes at most; `none` for no limit
    #[arg(long, value_name = "NUM", value_parser = number_or_none)]
    pub(crate) max_uses: Option<Bound<std::num::NonZeroU64>>,

    /// The oldest version that the keystore uses for anything; you may lower it again
    #[arg(long, value_name = "NUM")]
    pub(crate) minimum_version: Option<std::num::NonZeroU32>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Schedule a key's destruction, or carry it out
///
/// A key whose destruction is scheduled is not used. `bulla keys cancel-destruction` cancels the
/// destruction. After the scheduled time, --final deletes the private keys for ever. Their
/// signatures still verify.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys destroy old --after 30d
  bulla keys cancel-destruction old                                cancel the destruction
  bulla keys destroy old --final                        carry it out, 30 days later
  bulla keys destroy releases --version 1               delete the private key of version 1

Exit status: 0 done, 2 not done.")]
pub(crate) struct KeysDestroyArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// The time until which you can cancel the destruction: a number and s, m, h, d, w or y from
    /// now, or a time such as 2030-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = deadline, default_value = "30d")]
    pub(crate) after: Deadline,

    /// Delete the private keys now; bulla refuses this before the scheduled time
    #[arg(long = "final", conflicts_with = "after")]
    pub(crate) finally: bool,

    /// Delete the private key of this version, which must not be the latest; its signatures still
    /// verify
    #[arg(long, value_name = "NUM", conflicts_with_all = ["after", "finally"])]
    pub(crate) version: Option<std::num::NonZeroU32>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Revoke versions of a key: refuse their signatures from now on
///
/// The private keys of these versions are deleted. This cannot be undone, and the latest version
/// cannot be revoked: rotate the key first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys revoke releases 1
  bulla keys revoke releases 1 2 3

Exit status: 0 revoked, 2 not revoked.")]
pub(crate) struct KeysRevokeArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// The versions
    #[arg(value_name = "VERSION", required = true)]
    pub(crate) versions: Vec<std::num::NonZeroU32>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Print statements by which each version of a key vouches for the next version
///
/// With these statements, somebody who has an older public key of yours can verify newer
/// signatures: `bulla verify PATH --public-key OLD.pub --succession FILE`. The older version signs
/// each statement. Revoked versions sign no statement.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys rotate releases
  bulla keys succession releases > releases.succession
  bulla verify app --public-key old.pub --succession releases.succession

Exit status: 0 printed, 2 no version can vouch for a newer one, or the keystore could not be read.")]
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

/// Print everything about a key except its private keys, signed by the key
///
/// The attestation is a JSON object: the key with its state, its policy and its versions, and a
/// signature by its latest version. It counts as one signature of the key.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys attest releases --output releases.attestation

Exit status: 0 printed, 2 not printed.")]
pub(crate) struct KeysAttestArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Print a public key, so that others can verify your signatures
///
/// bulla prints the public key of the latest version. To print another version, give its id with
/// the version.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla keys export-public > me.pub
  bulla keys export-public releases --format pem --output releases.pem

Exit status: 0 printed, 2 not printed.")]
pub(crate) struct ExportPublicArgs {
    /// The key: its label or its id
    #[arg(value_name = "LABEL|ID", default_value = DEFAULT_LABEL)]
    pub(crate) key: String,

    /// The format of the public key
    #[arg(long, value_enum, default_value_t = PublicKeyFormat::Bulla)]
    pub(crate) format: PublicKeyFormat,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}
