//! Certificates: those of a file that the configuration names.
//!
//! A certificate of a key of the token has the `CKA_ID` and the label of the key, by which programs
//! find one with the other. Certificates of authorities are there for programs that want a chain.

use cryptoki_sys::*;
use sha2::{Digest as _, Sha256};
use x509_cert::der::Encode as _;
use x509_cert::ext::pkix::BasicConstraints;

use crate::object::Object;
use crate::object::attributes::Attributes;

/// What `CKA_CERTIFICATE_CATEGORY` says of the owner of a key.
const TOKEN_USER: CK_ULONG = 1;
/// What it says of an authority.
const AUTHORITY: CK_ULONG = 2;

/// A certificate.
pub(crate) struct Certificate {
    der: Vec<u8>,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    serial_number: Vec<u8>,
    /// The `SubjectPublicKeyInfo`.
    public_key: Vec<u8>,
    /// The subject, for people.
    name: String,
    is_authority: bool,
}

impl Certificate {
    /// Reads a file with certificates in PEM.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn read_all(pem: &[u8]) -> Result<Vec<Self>, String> {
        let chain = x509_cert::Certificate::load_pem_chain(pem).map_err(|error| error.to_string())?;
        chain.iter().map(Self::new).collect::<x509_cert::der::Result<_>>().map_err(|error| error.to_string())
    }

    fn new(certificate: &x509_cert::Certificate) -> x509_cert::der::Result<Self> {
        let content = certificate.tbs_certificate();
        let constraints = content.get_extension::<BasicConstraints>()?;
        Ok(Self {
            der: certificate.to_der()?,
            subject: content.subject().to_der()?,
            issuer: content.issuer().to_der()?,
            serial_number: content.serial_number().to_der()?,
            public_key: content.subject_public_key_info().to_der()?,
            name: content.subject().to_string(),
            is_authority: constraints.is_some_and(|(_, constraints)| constraints.ca),
        })
    }

    /// Whether it is about a public key, which is a `SubjectPublicKeyInfo`.
    pub(crate) fn is_about(&self, public_key: Option<&[u8]>) -> bool {
        public_key == Some(&self.public_key)
    }

    /// Its attributes, with the label and the id of its key.
    pub(crate) fn attributes(&self, label: &[u8], id: &[u8]) -> Attributes {
        let mut attributes = Attributes::default();
        let category = if self.is_authority { AUTHORITY } else { TOKEN_USER };
        attributes.set_number(CKA_CLASS, CKO_CERTIFICATE).set_number(CKA_CERTIFICATE_TYPE, CKC_X_509);
        attributes.set_number(CKA_CERTIFICATE_CATEGORY, category);
        attributes.set(CKA_LABEL, label).set(CKA_ID, id).set(CKA_VALUE, &self.der);
        attributes.set(CKA_SUBJECT, &self.subject).set(CKA_ISSUER, &self.issuer);
        attributes.set(CKA_SERIAL_NUMBER, &self.serial_number).set(CKA_PUBLIC_KEY_INFO, &self.public_key);
        attributes.set(CKA_START_DATE, b"").set(CKA_END_DATE, b"");
        attributes.set_flags(&[
            (CKA_TOKEN, true),
            (CKA_PRIVATE, false),
            (CKA_MODIFIABLE, false),
            (CKA_COPYABLE, false),
            (CKA_DESTROYABLE, false),
            (CKA_TRUSTED, false),
        ]);
        attributes
    }

    /// The object of an authority; none for the owner of a key.
    pub(crate) fn authority(&self) -> Option<Object> {
        let attributes = self.is_authority.then(|| self.attributes(self.name.as_bytes(), &self.id()))?;
        Some(Object { class: CKO_CERTIFICATE, attributes, key: None, session: None, session_key: None })
    }

    /// An id for a certificate whose key is not in the token.
    fn id(&self) -> Vec<u8> {
        Sha256::digest(&self.public_key)[..20].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An authority, and a certificate of it for a key of P-256, both valid for ten years.
    const CHAIN: &[u8] = include_bytes!("test_chain.pem");

    #[test]
    fn an_authority_is_shown_without_a_key_and_others_are_not() {
        let chain = Certificate::read_all(CHAIN).unwrap();
        let [owner, authority] = chain.as_slice() else { panic!("{}", chain.len()) };
        assert!(owner.authority().is_none());
        let shown = authority.authority().unwrap().attributes;
        assert_eq!(shown.get(CKA_SUBJECT), shown.get(CKA_ISSUER));
        assert_eq!(shown.get(CKA_LABEL), Some(&b"CN=test authority"[..]));
        assert_eq!(owner.attributes(b"", b"").get(CKA_ISSUER), shown.get(CKA_SUBJECT));
        assert!(authority.is_about(shown.get(CKA_PUBLIC_KEY_INFO)));
        assert!(!owner.is_about(shown.get(CKA_PUBLIC_KEY_INFO)));
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        assert!(
            Certificate::read_all(b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").is_err()
        );
    }
}
