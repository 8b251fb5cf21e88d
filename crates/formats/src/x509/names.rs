//! The names of a certificate: its subject, and the other names that programs compare.

use std::net::IpAddr;
use std::str::FromStr as _;

use x509_cert::der::asn1::{Ia5String, OctetString};
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use super::unwritable;
use crate::error::FormatError;

/// The names for which a certificate is, beside its subject: `subjectAltName` (RFC 5280, section
/// 4.2.1.6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlternativeNames {
    /// Names of servers. The first label may be an asterisk.
    pub dns: Vec<String>,
    /// Addresses of servers.
    pub ip: Vec<IpAddr>,
    /// Addresses of mail.
    pub email: Vec<String>,
    /// Such as the names of SPIFFE.
    pub uri: Vec<String>,
}

impl AlternativeNames {
    /// The extension, if there are names. It is critical if there is no other name.
    pub(super) fn extension(&self, subject: &Name) -> Result<Option<Extension>, FormatError> {
        let text = |name: &String| Ia5String::new(name).map_err(unwritable);
        let mut names = Vec::new();
        for name in &self.dns {
            names.push(GeneralName::DnsName(text(name)?));
        }
        names.extend(self.ip.iter().map(|address| GeneralName::from(*address)));
        for name in &self.email {
            names.push(GeneralName::Rfc822Name(text(name)?));
        }
        for name in &self.uri {
            names.push(GeneralName::UniformResourceIdentifier(text(name)?));
        }
        if names.is_empty() {
            return Ok(None);
        }
        let content = SubjectAltName(names).to_der().map_err(unwritable)?;
        Ok(Some(Extension {
            extn_id: SubjectAltName::OID,
            critical: subject.is_empty(),
            extn_value: OctetString::new(content).map_err(unwritable)?,
        }))
    }

    /// The names in an extension.
    pub(super) fn of(extension: &Extension) -> Result<Self, FormatError> {
        let malformed =
            || FormatError::new("one of its names is malformed, or of a kind that bulla does not know");
        let names = SubjectAltName::from_der(extension.extn_value.as_bytes()).map_err(|_| malformed())?;
        let mut found = Self::default();
        for name in names.0 {
            match name {
                GeneralName::DnsName(name) => found.dns.push(name.to_string()),
                GeneralName::Rfc822Name(name) => found.email.push(name.to_string()),
                GeneralName::UniformResourceIdentifier(name) => found.uri.push(name.to_string()),
                GeneralName::IpAddress(address) => found.ip.push(match address.as_bytes().len() {
                    4 => <[u8; 4]>::try_from(address.as_bytes()).map_err(|_| malformed())?.into(),
                    _ => <[u8; 16]>::try_from(address.as_bytes()).map_err(|_| malformed())?.into(),
                }),
                _ => return Err(malformed()),
            }
        }
        Ok(found)
    }

    /// The names as OpenSSL writes them, such as `DNS:www.example.org`.
    ///
    /// ```
    /// use bulla_formats::x509::AlternativeNames;
    ///
    /// let ip = vec!["10.0.0.1".parse().unwrap()];
    /// let names = AlternativeNames { dns: vec!["a.test".to_owned()], ip, ..Default::default() };
    /// assert_eq!(names.texts(), ["DNS:a.test", "IP:10.0.0.1"]);
    /// ```
    pub fn texts(&self) -> Vec<String> {
        let dns = self.dns.iter().map(|name| format!("DNS:{name}"));
        let ip = self.ip.iter().map(|address| format!("IP:{address}"));
        let email = self.email.iter().map(|name| format!("email:{name}"));
        let uri = self.uri.iter().map(|name| format!("URI:{name}"));
        dns.chain(ip).chain(email).chain(uri).collect()
    }
}

/// Reads a subject in the form of RFC 4514, such as `CN=www.example.org,O=Example`. An empty text
/// is a subject without attributes.
pub(super) fn parse_subject(text: &str) -> Result<Name, FormatError> {
    if text.is_empty() {
        return Ok(Name::default());
    }
    Name::from_str(text).map_err(|_| {
        FormatError::new(format!("{text:?} is not a subject of the form CN=www.example.org,O=Example"))
    })
}
