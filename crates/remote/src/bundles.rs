//! What `bulla verify` trusts in bundles of Sigstore and in signatures of models, besides keys.

use bulla_cli::remote::{BundleTrust, BundleTrustArgs};
use bulla_command::error::{Error, Result};
use bulla_files::escape_path;
use bulla_formats::sigstore::SigstoreBundle;
use bulla_formats::trusted_root::{
    CertificateChain, ExpiredCertificates, MAX_ROOT_LEN, TrustedRoot, WantedSigner,
};
use bulla_formats::{Evidence, EvidenceError, MessageKey};
use bulla_kms::Timestamp;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What the flags name.
pub(crate) struct Trusted {
    root: Option<TrustedRoot>,
    authorities: Option<CertificateChain>,
    expired: ExpiredCertificates,
    identity: Option<String>,
    issuer: Option<String>,
    now: Timestamp,
}

/// Reads a file of certificates, or a trusted root.
fn read(path: &Path) -> Result<Vec<u8>> {
    let about = |error: Error| error.about(escape_path(path));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_ROOT_LEN as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| about(Error::io("cannot read", &error)))?;
    if bytes.len() > MAX_ROOT_LEN {
        let message = format!("is too long: such a file has at most {MAX_ROOT_LEN} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    Ok(bytes)
}

impl Trusted {
    pub(crate) fn new(args: &BundleTrustArgs) -> Result<Self> {
        let usage = |message: &str| Err(Error::new("usage", message));
        if args.certificate_identity.is_some() && args.certificate_chain.is_empty() {
            if args.trusted_root.is_none() {
                return usage(
                    "--certificate-identity needs --trusted-root or --certificate-chain: whose certificates count",
                );
            }
            if args.certificate_oidc_issuer.is_none() {
                return usage(
                    "--certificate-identity needs --certificate-oidc-issuer: two issuers may know the same name",
                );
            }
        }
        let root = args.trusted_root.as_deref().map(|path| {
            TrustedRoot::parse(&read(path)?).map_err(|error| {
                Error::new("invalid_trusted_root", error.to_string()).about(escape_path(path))
            })
        });
        let root = root.transpose()?;
        let mut certificates = Vec::new();
        for path in &args.certificate_chain {
            certificates.append(&mut read(path)?);
            certificates.push(b'\n');
        }
        let authorities = args.certificate_chain.first().map(|path| {
            CertificateChain::parse(&certificates).map_err(|error| {
                Error::new("invalid_certificates", error.to_string()).about(escape_path(path))
            })
        });
        Ok(Self {
            root,
            authorities: authorities.transpose()?,
            expired: match args.expired_certificates {
                true => ExpiredCertificates::Accept,
                false => ExpiredCertificates::Refuse,
            },
            identity: args.certificate_identity.clone(),
            issuer: args.certificate_oidc_issuer.clone(),
            now: Timestamp::now()?,
        })
    }

    /// Refuses another signer than the one that is wanted.
    fn check_identity(&self, evidence: Evidence) -> std::result::Result<Evidence, EvidenceError> {
        let found = evidence.certificate.as_ref().map(|certificate| &certificate.identity);
        match (&self.identity, found) {
            (Some(wanted), Some(found)) if wanted != found => {
                Err(EvidenceError::WrongSigner(format!("it is signed by {found:?}")))
            }
            _ => Ok(evidence),
        }
    }
}

impl BundleTrust for Trusted {
    fn verify_key(
        &self,
        bundle: &SigstoreBundle,
        key: MessageKey<'_>,
        covered: Option<&[u8]>,
    ) -> Option<std::result::Result<Evidence, EvidenceError>> {
        Some(self.root.as_ref()?.verify_key(bundle, key, covered))
    }

    fn verify_certificate(
        &self,
        bundle: &SigstoreBundle,
        covered: Option<&[u8]>,
    ) -> std::result::Result<Evidence, EvidenceError> {
        if let Some(authorities) = &self.authorities {
            let evidence = authorities.verify(bundle, covered, self.expired, self.now)?;
            return self.check_identity(evidence);
        }
        match (&self.root, &self.identity, &self.issuer) {
            (Some(root), Some(identity), Some(issuer)) => {
                let wanted = WantedSigner { identity: identity.clone(), issuer: issuer.clone() };
                root.verify_certificate(bundle, &wanted, covered)
            }
            _ => {
                let reason = "it was made under a certificate: say whose count with --certificate-identity \
                              and --certificate-oidc-issuer";
                Err(EvidenceError::WrongSigner(reason.to_owned()))
            }
        }
    }
}
