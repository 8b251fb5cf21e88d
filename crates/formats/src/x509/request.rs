//! Requests for certificates.

use bulla_kms::PublicKey;
use bulla_kms::prehash::HashFunction;
use x509_cert::attr::{Attribute, Attributes};
use x509_cert::der::asn1::SetOfVec;
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::{Extension, Extensions};
use x509_cert::name::Name;
use x509_cert::request::{CertReq, CertReqInfo, ExtensionReq, Version};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use super::names::{AlternativeNames, parse_subject};
use super::signature::{algorithm_of, key_info, to_bits, verifies};
use super::{read_der, to_pem, unwritable};
use crate::error::FormatError;

/// A request for a certificate, signed by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    info: CertReqInfo,
    names: AlternativeNames,
}

impl CertificateRequest {
    /// Signs a request for a certificate of this key, as PEM.
    ///
    /// `subject` has the form of RFC 4514, such as `CN=www.example.org,O=Example`, and may be empty
    /// if there are other names. `sign` signs bytes, by the hash function if there is one.
    ///
    /// # Errors
    /// A name is not possible, or there is none; the key is of another algorithm than Ed25519,
    /// ECDSA and RSA; the errors of `sign`.
    pub fn sign<E: From<FormatError>>(
        key: &PublicKey,
        subject: &str,
        names: &AlternativeNames,
        sign: impl FnOnce(&[u8], Option<HashFunction>) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        let subject = parse_subject(subject)?;
        let extension = names.extension(&subject)?;
        if subject.is_empty() && extension.is_none() {
            return Err(FormatError::new("a certificate needs a subject or another name").into());
        }
        let attributes = extension.map(attributes).transpose()?.unwrap_or_default();
        let info = CertReqInfo { version: Version::V1, subject, public_key: key_info(key)?, attributes };
        let message = info.to_der().map_err(unwritable)?;
        let (algorithm, hash) = algorithm_of(key.algorithm())?;
        let signature = to_bits(key.algorithm(), sign(&message, hash)?)?;
        let whole = CertReq { info, algorithm, signature }.to_der().map_err(unwritable)?;
        // This verifies the signature.
        Self::parse(&whole)?;
        Ok(to_pem("CERTIFICATE REQUEST", &whole)?)
    }

    /// Reads a request in PEM or DER.
    ///
    /// # Errors
    /// It is malformed, its key did not sign it, or one of its names is of an unknown kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let malformed = |_| FormatError::new("the request for a certificate is malformed");
        let der = read_der(bytes, &["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"])?;
        let CertReq { info, algorithm, signature } = CertReq::from_der(&der).map_err(malformed)?;
        let message = info.to_der().map_err(malformed)?;
        if !verifies(&info.public_key, &algorithm, &message, &signature)? {
            return Err(FormatError::new("its key did not sign the request for a certificate"));
        }
        let names = requested_names(&info.attributes)?;
        Ok(Self { info, names })
    }

    /// The subject, in the form of RFC 4514.
    pub fn subject(&self) -> String {
        self.info.subject.to_string()
    }

    /// The other names.
    pub fn names(&self) -> &AlternativeNames {
        &self.names
    }

    pub(super) fn subject_name(&self) -> &Name {
        &self.info.subject
    }

    pub(super) fn public_key(&self) -> &SubjectPublicKeyInfoOwned {
        &self.info.public_key
    }
}

/// The attributes that ask for an extension (RFC 2985, section 5.4.2).
fn attributes(extension: Extension) -> Result<Attributes, FormatError> {
    let attribute = Attribute::try_from(ExtensionReq(vec![extension])).map_err(unwritable)?;
    SetOfVec::try_from(vec![attribute]).map_err(unwritable)
}

/// The names that a request asks for. It may ask for other extensions: the authority decides on
/// these.
fn requested_names(attributes: &Attributes) -> Result<AlternativeNames, FormatError> {
    let malformed = |_| FormatError::new("the extensions that the request asks for are malformed");
    let mut found = None;
    for attribute in attributes.iter().filter(|attribute| attribute.oid == ExtensionReq::OID) {
        for value in attribute.values.iter() {
            let extensions: Extensions = value.decode_as().map_err(malformed)?;
            let names = extensions.iter().filter(|extension| extension.extn_id == SubjectAltName::OID);
            for extension in names {
                if found.replace(AlternativeNames::of(extension)?).is_some() {
                    return Err(FormatError::new("the request has its other names twice"));
                }
            }
        }
    }
    Ok(found.unwrap_or_default())
}
