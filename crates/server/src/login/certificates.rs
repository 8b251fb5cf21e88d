//! Logins with a client certificate: which role it is for.
//!
//! The listener has verified the certificate when the connection began. Here its names are compared
//! with a role and, if the role names authorities of its own, it is verified again by them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bulla_kms::token::Holder;
use bulla_kms::{Code, KmsError, Result};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use super::claims::Pattern;
use crate::config::CertificateRoleConfig;

/// A role with what its certificates are compared with.
pub(crate) struct CertificateRole {
    pub(crate) config: CertificateRoleConfig,
    /// None if every authority of the listener counts.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    bound: [Vec<Pattern>; 5],
}

impl fmt::Debug for CertificateRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

/// The names in a certificate.
#[derive(Debug, Default)]
pub(crate) struct CertificateNames {
    common_names: Vec<String>,
    organizational_units: Vec<String>,
    dns_names: Vec<String>,
    email_addresses: Vec<String>,
    uris: Vec<String>,
    /// In hexadecimal, with colons.
    pub(crate) serial_number: String,
}

impl CertificateNames {
    /// Reads a certificate in DER. None if it is none.
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let texts = |attribute: &AttributeTypeAndValue<'_>| attribute.as_str().ok().map(str::to_owned);
        let subject = certificate.subject();
        let mut names = Self {
            common_names: subject.iter_common_name().filter_map(texts).collect(),
            organizational_units: subject.iter_organizational_unit().filter_map(texts).collect(),
            serial_number: certificate.raw_serial_as_string(),
            ..Self::default()
        };
        let alternative = certificate.subject_alternative_name().ok()?;
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                // The case of such names does not count.
                GeneralName::DNSName(name) => names.dns_names.push(name.to_ascii_lowercase()),
                GeneralName::RFC822Name(name) => names.email_addresses.push((*name).to_owned()),
                GeneralName::URI(name) => names.uris.push((*name).to_owned()),
                _ => {}
            }
        }
        Some(names)
    }

    /// The subject's common name; empty if it has none.
    pub(crate) fn common_name(&self) -> &str {
        self.common_names.first().map_or("", String::as_str)
    }

    fn lists(&self) -> [&[String]; 5] {
        let Self { common_names, organizational_units, dns_names, email_addresses, uris, .. } = self;
        [common_names, organizational_units, dns_names, email_addresses, uris]
    }
}

impl CertificateRole {
    /// # Errors
    /// The file with the role's authorities cannot be used.
    pub(super) fn new(config: &CertificateRoleConfig) -> Result<Self> {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        let hosts: Vec<_> = config.dns_names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let bound = [
            patterns(&config.common_names),
            patterns(&config.organizational_units),
            patterns(&hosts),
            patterns(&config.email_addresses),
            patterns(&config.uris),
        ];
        let verifier = config.ca.as_deref().map(verifier).transpose()?;
        Ok(Self { config: config.clone(), verifier, bound })
    }

    /// Whether a certificate, with those that lead to its authority, is one for this role.
    pub(super) fn accepts(&self, chain: &[CertificateDer<'_>], names: &CertificateNames) -> bool {
        let Some((own, others)) = chain.split_first() else { return false };
        let is_bound = self.bound.iter().zip(names.lists()).all(|(patterns, names)| {
            let matches = |name: &String| patterns.iter().any(|pattern| pattern.matches(name));
            patterns.is_empty() || names.iter().any(matches)
        });
        is_bound
            && self
                .verifier
                .as_ref()
                .is_none_or(|verifier| verifier.verify_client_cert(own, others, UnixTime::now()).is_ok())
    }

    /// The name of the certificate's holder in the audit log.
    pub(super) fn holder(&self, names: &CertificateNames) -> Holder {
        Holder::named("cert", &format!("{}/{}", self.config.name, names.common_name()))
    }
}

fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>> {
    let wrong = |why: String| {
        KmsError::new(Code::InvalidArgument, format!("the authorities in {}: {why}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider())).build();
    verifier.map_err(|error| wrong(error.to_string()))
}
