//! The flags that say whose signatures count.

use super::KeystoreArgs;
use bulla_formats::ssh;
use clap::Args;
use std::path::PathBuf;

/// Whose signatures count: without a flag, those of the keystore's keys.
#[derive(Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArgs {
    /// Trust this public key instead of the keystore
    ///
    /// It is a file with one or more keys, or the key itself: in bulla's form, or in that of
    /// minisign, signify, OpenSSH, PEM or JSON Web Keys. The flag may be given several times.
    #[arg(short, long, value_name = "FILE|KEY")]
    pub(crate) public_key: Vec<String>,

    /// Also trust the newer public keys that the given keys vouch for
    ///
    /// FILE has the statements of `bulla keys succession`. The flag may be given several times. The
    /// older version's private key signs a statement. If that private key leaked, do not trust
    /// the statement.
    #[arg(long, value_name = "FILE", requires = "public_key")]
    pub(crate) succession: Vec<PathBuf>,

    /// Trust the signers in FILE instead of the keystore, for signatures of OpenSSH and git
    ///
    /// FILE is the list of allowed signers of `ssh-keygen -Y verify`, with principals, namespaces,
    /// times and certificate authorities. A line that bulla does not understand is an error.
    #[arg(long, value_name = "FILE")]
    pub(crate) allowed_signers: Option<PathBuf>,

    /// Accept only signatures of this principal [default: any in the list of allowed signers]
    #[arg(long, value_name = "NAME", requires = "allowed_signers", conflicts_with = "public_key")]
    pub(crate) principal: Option<String>,

    /// Refuse signatures of OpenSSH by the keys in FILE, or by certificates that these keys signed
    ///
    /// FILE has one public key on each line, or is a key revocation list of `ssh-keygen -k`, which
    /// also has certificates by number or name.
    #[arg(long, value_name = "FILE")]
    pub(crate) revoked: Option<PathBuf>,

    /// What signatures of OpenSSH must be for: `git` for commits and tags
    #[arg(long, value_name = "NAME", default_value = ssh::FILE_NAMESPACE)]
    pub(crate) namespace: String,

    #[command(flatten)]
    pub(crate) bundles: BundleTrustArgs,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// What vouches for bundles of Sigstore and signatures of models, besides keys.
#[derive(Args)]
#[command(next_help_heading = "Trust")]
pub struct BundleTrustArgs {
    /// Verify log entries, timestamps and certificates in bundles of Sigstore by FILE
    ///
    /// FILE is the trusted root of an instance of Sigstore, which its tools keep as
    /// trusted_root.json. If FILE names transparency logs, a bundle needs an entry of one of them.
    /// Signatures of other formats do not count then. bulla asks nothing of a network.
    #[arg(long, value_name = "FILE")]
    pub trusted_root: Option<PathBuf>,

    /// Trust bundles under a certificate for NAME, an email address or a URI, instead of the
    /// keystore
    ///
    /// With --trusted-root, --certificate-oidc-issuer must name the issuer, too.
    #[arg(long, value_name = "NAME")]
    pub certificate_identity: Option<String>,

    /// The issuer that must have known the identity: for example `https://accounts.google.com`
    #[arg(long, value_name = "URL", requires_all = ["trusted_root", "certificate_identity"])]
    pub certificate_oidc_issuer: Option<String>,

    /// Trust bundles under certificates of the authorities in FILE (PEM), instead of the keystore
    ///
    /// `model_signing sign certificate` makes such bundles. FILE has at least one certificate that
    /// an authority issued to itself. The flag may be given several times.
    #[arg(long, value_name = "FILE", conflicts_with = "certificate_oidc_issuer")]
    pub certificate_chain: Vec<PathBuf>,

    /// With --certificate-chain: accept certificates that have expired
    ///
    /// Nothing in such a bundle says when it was signed. Somebody who found an old key could sign
    /// with it.
    #[arg(long, requires = "certificate_chain")]
    pub expired_certificates: bool,
}

impl BundleTrustArgs {
    /// Whether there is something that only `bulla-remote` verifies.
    pub(crate) fn is_given(&self) -> bool {
        self.trusted_root.is_some() || self.trusts_certificates()
    }

    /// Whether certificates say whose signatures count.
    fn trusts_certificates(&self) -> bool {
        self.certificate_identity.is_some() || !self.certificate_chain.is_empty()
    }
}

impl TrustArgs {
    /// Whether the keystore says which keys are trusted.
    pub(crate) fn needs_keystore(&self) -> bool {
        self.public_key.is_empty() && self.allowed_signers.is_none() && !self.bundles.trusts_certificates()
    }
}
