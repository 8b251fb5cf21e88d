//! The flags of `bulla x509`.

use bulla_cli::keystore::KeystoreArgs;
use bulla_cli::remote::{ReportArgs, duration};
use bulla_command::color::ColorWhen;
use bulla_kms::X509Usage;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Sign X.509 certificates, and limit which ones a key signs
///
/// A key with a policy is an authority: it signs the certificates that the policy permits, and the
/// certificate of its own public key. The keystore reads what the key signs, and refuses everything
/// else.
#[derive(Parser)]
#[command(name = "bulla-remote", bin_name = "bulla x509", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla keys create ca --algorithm ecdsa-p256
  bulla x509 policy ca --dns '*.example.org' --usage server-auth --max-life 90d
  bulla x509 ca ca --subject 'CN=Example CA,O=Example' -o ca.pem
  bulla keys csr web --subject CN=www.example.org --dns www.example.org -o web.csr
  bulla x509 sign web.csr --ca ca --ca-certificate ca.pem --usage server-auth -o web.pem

Exit status: 0 done, 2 not done.")]
pub(crate) struct X509Cli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: X509Command,
}

#[derive(Subcommand)]
pub(crate) enum X509Command {
    Policy(Box<X509PolicyArgs>),
    Ca(X509CaArgs),
    Sign(X509SignArgs),
}

/// What the key in a certificate may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Usage {
    /// A server of TLS
    ServerAuth,
    /// A client of TLS
    ClientAuth,
    /// Signing programs
    CodeSigning,
    /// Mail
    EmailProtection,
    /// Signing times
    TimeStamping,
}

impl From<Usage> for X509Usage {
    fn from(usage: Usage) -> Self {
        match usage {
            Usage::ServerAuth => Self::ServerAuth,
            Usage::ClientAuth => Self::ClientAuth,
            Usage::CodeSigning => Self::CodeSigning,
            Usage::EmailProtection => Self::EmailProtection,
            Usage::TimeStamping => Self::TimeStamping,
        }
    }
}

/// Show or set which certificates a key signs
///
/// Without flags, bulla prints the policy. Otherwise the flags are the new policy. A key with a
/// policy signs the certificates that it permits, a certificate and a request for its own public
/// key, and otherwise only signature files of bulla and attestations, which pass for no
/// certificate. The keystore enforces that, also when a service has it.
///
/// In a name, a `*` at the beginning or at the end stands for any characters; in a DNS name, for
/// one or more labels. The subject of a certificate may have the attributes of --subject, and a
/// common name that is also one of its other names.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla x509 policy ca
  bulla x509 policy ca --dns '*.example.org' --usage server-auth --max-life 90d
  bulla x509 policy staff --email '*@example.org' --subject 'CN=*' --subject O=Example \\
    --usage client-auth --usage email-protection --max-life 1y
  bulla x509 policy root --authority --subject 'CN=Example Issuing *' --max-life 5y
  bulla x509 policy ca --remove

Exit status: 0 shown or set, 2 not.")]
pub(crate) struct X509PolicyArgs {
    /// The key of the authority: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// Permit certificates of servers, programs and people with this usage; may be given several
    /// times
    #[arg(long = "usage", value_name = "USAGE", value_enum)]
    pub(crate) usages: Vec<Usage>,

    /// Permit certificates of authorities that sign for servers, programs and people. Which ones
    /// these sign, this policy does not say
    #[arg(long)]
    pub(crate) authority: bool,

    /// A DNS name that certificates may have, such as `*.example.org`; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) dns: Vec<String>,

    /// An IP address that certificates may have, or a network such as 10.0.0.0/8; may be given
    /// several times
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) ip: Vec<String>,

    /// An address of mail that certificates may have; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: Vec<String>,

    /// A URI that certificates may have; may be given several times
    #[arg(long, value_name = "URI")]
    pub(crate) uri: Vec<String>,

    /// An attribute that subjects may have, such as O=Example or 'CN=*'; may be given several times
    #[arg(long = "subject", value_name = "ATTRIBUTE")]
    pub(crate) subjects: Vec<String>,

    /// How long certificates may be valid: a number and s, m, h, d, w or y
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_life: Option<Duration>,

    /// Remove the policy: the key signs anything again
    #[arg(long, conflicts_with_all = [
        "usages", "authority", "dns", "ip", "email", "uri", "subjects", "max_life",
    ])]
    pub(crate) remove: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Make the certificate of an authority, signed by its own key
///
/// Others trust the authority by this certificate. Set the policy first. For a certificate that
/// another authority signs, use `bulla keys csr`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla x509 ca ca --subject 'CN=Example CA,O=Example' -o ca.pem
  bulla x509 ca root --subject 'CN=Example Root' --path-length 1 --valid-for 20y -o root.pem

Exit status: 0 signed, 2 not signed.")]
pub(crate) struct X509CaArgs {
    /// The key of the authority: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// The name of the authority, in the form of RFC 4514
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: String,

    /// How long it is valid: a number and s, m, h, d, w or y
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10y")]
    pub(crate) valid_for: Duration,

    /// How many authorities may be below this one, one below the other
    #[arg(long, value_name = "NUM", default_value_t = 0)]
    pub(crate) path_length: u8,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Sign the certificate that a request asks for
///
/// The certificate gets the subject and the other names of the request, and the usage that you
/// choose. bulla checks that the request is signed by its own key. The audit log has the number and
/// the names of the certificate.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla x509 sign web.csr --ca ca --ca-certificate ca.pem --usage server-auth -o web.pem
  bulla x509 sign ann.csr --ca staff --ca-certificate staff.pem --usage client-auth --valid-for 1y
  bulla x509 sign issuing.csr --ca root --ca-certificate root.pem --authority --valid-for 5y

Exit status: 0 signed, 2 not signed.")]
pub(crate) struct X509SignArgs {
    /// The file with the request, in PEM or DER
    #[arg(value_name = "REQUEST")]
    pub(crate) request: PathBuf,

    /// The key of the authority: its label or its id
    #[arg(long, value_name = "LABEL|ID")]
    pub(crate) ca: String,

    /// The file with the authority's certificate, in PEM or DER
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_certificate: PathBuf,

    /// What the key in the certificate may be used for; may be given several times
    #[arg(
        long = "usage",
        value_name = "USAGE",
        value_enum,
        required_unless_present = "authority",
        conflicts_with = "authority"
    )]
    pub(crate) usages: Vec<Usage>,

    /// Make the certificate of an authority below this one, below which there is no other
    #[arg(long)]
    pub(crate) authority: bool,

    /// How long it is valid: a number and s, m, h, d, w or y
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "90d")]
    pub(crate) valid_for: Duration,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
