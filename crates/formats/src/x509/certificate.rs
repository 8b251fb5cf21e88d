//! Certificates: those of authorities, and new ones.

use bulla_kms::prehash::HashFunction;
use bulla_kms::{PublicKey, X509CertificateKind, X509Usage};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::asn1::{Any, GeneralizedTime, ObjectIdentifier, OctetString, UtcTime};
use x509_cert::der::flagset::FlagSet;
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::{Decode as _, Encode, Tag, TagNumber};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectKeyIdentifier,
};
use x509_cert::ext::{Extension, Extensions};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfoOwned;
use x509_cert::time::{Time, Validity};

use super::names::{AlternativeNames, parse_subject};
use super::request::CertificateRequest;
use super::signature::{algorithm_of, key_info, to_bits, verifies};
use super::{read_der, sequence, to_pem, unwritable};
use crate::error::FormatError;

/// From this second on, times are written with four digits of the year: 2050 (RFC 5280, section
/// 4.1.2.5).
const YEAR_2050: u64 = 2_524_608_000;

/// The certificate of an authority, which names it in the certificates that it signs.
#[derive(Clone, Debug)]
pub struct AuthorityCertificate {
    subject: Name,
    public_key: SubjectPublicKeyInfoOwned,
    key_id: OctetString,
    not_after: u64,
}

impl AuthorityCertificate {
    /// Reads a certificate in PEM or DER. Its signature is not verified: whoever trusts the new
    /// certificates decides whom they trust.
    ///
    /// # Errors
    /// It is malformed, or not that of an authority.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let malformed = || FormatError::new("the certificate is malformed");
        let der = read_der(bytes, &["CERTIFICATE"])?;
        let certificate = Certificate::from_der(&der).map_err(|_| malformed())?;
        let content = certificate.tbs_certificate();
        let constraints = content.get_extension::<BasicConstraints>().map_err(|_| malformed())?;
        if !constraints.is_some_and(|(_, constraints)| constraints.ca) {
            return Err(FormatError::new("the certificate is not that of an authority"));
        }
        let public_key = content.subject_public_key_info().clone();
        let key_id = match content.get_extension::<SubjectKeyIdentifier>().map_err(|_| malformed())? {
            Some((_, SubjectKeyIdentifier(id))) => id,
            None => key_id(&public_key)?,
        };
        Ok(Self {
            subject: content.subject().clone(),
            public_key,
            key_id,
            not_after: content.validity().not_after.to_unix_duration().as_secs(),
        })
    }

    /// Whether it certifies this key.
    pub fn is_of(&self, key: &PublicKey) -> bool {
        key_info(key).is_ok_and(|info| info == self.public_key)
    }

    /// When it ends: seconds since 1970.
    pub fn not_after(&self) -> u64 {
        self.not_after
    }

    /// Its subject, in the form of RFC 4514.
    pub fn subject(&self) -> String {
        self.subject.to_string()
    }
}

/// A certificate to sign.
#[derive(Clone, Debug)]
pub struct NewCertificate {
    /// Its serial number, which nobody can guess.
    serial: [u8; 16],
    not_before: u64,
    not_after: u64,
    kind: X509CertificateKind,
    usages: Vec<X509Usage>,
    path_len: u8,
}

impl NewCertificate {
    /// A certificate for a server, a program or a person. Its number is made of these random bytes,
    /// and it begins and ends at these seconds since 1970.
    pub fn leaf(random: [u8; 16], (not_before, not_after): (u64, u64), usages: &[X509Usage]) -> Self {
        let (serial, usages) = (serial(random), usages.to_vec());
        Self { serial, not_before, not_after, kind: X509CertificateKind::Leaf, usages, path_len: 0 }
    }

    /// A certificate for an authority, below which there are at most `path_len` authorities.
    pub fn authority(random: [u8; 16], (not_before, not_after): (u64, u64), path_len: u8) -> Self {
        let (serial, usages) = (serial(random), Vec::new());
        Self { serial, not_before, not_after, kind: X509CertificateKind::Authority, usages, path_len }
    }

    /// The serial number, as lower-case hexadecimal.
    ///
    /// ```
    /// use bulla_formats::x509::NewCertificate;
    ///
    /// let new = NewCertificate::authority([0xff; 16], (0, 1), 0);
    /// assert_eq!(new.serial(), "7fffffffffffffffffffffffffffffff");
    /// ```
    pub fn serial(&self) -> String {
        base16ct::lower::encode_string(&self.serial)
    }

    /// Signs the certificate that a request asks for, as PEM. `key` is the authority's.
    ///
    /// # Errors
    /// The authority's certificate is of another key, or ends earlier; the errors of `sign`.
    pub fn sign<E: From<FormatError>>(
        &self,
        request: &CertificateRequest,
        authority: &AuthorityCertificate,
        key: &PublicKey,
        sign: impl FnOnce(&[u8], Option<HashFunction>) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        if !authority.is_of(key) {
            return Err(FormatError::new("the authority's certificate is of another key").into());
        }
        if self.not_after > authority.not_after {
            let message = "the certificate would end after that of its authority, and not verify then";
            return Err(FormatError::new(message).into());
        }
        let parties = Parties {
            issuer: &authority.subject,
            issuer_key_id: &authority.key_id,
            subject: request.subject_name(),
            names: request.names(),
            public_key: request.public_key(),
        };
        self.sign_with(&parties, key, sign)
    }

    /// Signs the certificate of a key with this key itself, as PEM: that of an authority which
    /// others trust without another authority.
    ///
    /// # Errors
    /// The subject is empty or not possible; the errors of `sign`.
    pub fn sign_own<E: From<FormatError>>(
        &self,
        subject: &str,
        key: &PublicKey,
        sign: impl FnOnce(&[u8], Option<HashFunction>) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        let subject = parse_subject(subject)?;
        if subject.is_empty() {
            return Err(FormatError::new("an authority needs a subject").into());
        }
        let public_key = key_info(key)?;
        let parties = Parties {
            issuer: &subject,
            issuer_key_id: &key_id(&public_key)?,
            subject: &subject,
            names: &AlternativeNames::default(),
            public_key: &public_key,
        };
        self.sign_with(&parties, key, sign)
    }

    fn sign_with<E: From<FormatError>>(
        &self,
        parties: &Parties<'_>,
        key: &PublicKey,
        sign: impl FnOnce(&[u8], Option<HashFunction>) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        let (algorithm, hash) = algorithm_of(key.algorithm())?;
        let algorithm_der = algorithm.to_der().map_err(unwritable)?;
        let message = self.to_be_signed(parties, &algorithm_der)?;
        let signature = to_bits(key.algorithm(), sign(&message, hash)?)?;
        if !verifies(&key_info(key)?, &algorithm, &message, &signature)? {
            return Err(FormatError::new("the signature that was made does not verify").into());
        }
        let whole = sequence(&[message, algorithm_der, signature.to_der().map_err(unwritable)?])?;
        let read = Certificate::from_der(&whole);
        read.map_err(|_| FormatError::new("the certificate that was made is malformed"))?;
        Ok(to_pem("CERTIFICATE", &whole)?)
    }

    /// The certificate before its signature (RFC 5280, section 4.1: TBSCertificate). The crate
    /// writes its parts.
    fn to_be_signed(&self, parties: &Parties<'_>, algorithm: &[u8]) -> Result<Vec<u8>, FormatError> {
        // Version 3.
        const VERSION: [u8; 5] = [0xa0, 3, 2, 1, 2];
        let validity: Validity = Validity::new(time(self.not_before)?, time(self.not_after)?);
        let extensions = self.extensions(parties)?.to_der().map_err(unwritable)?;
        let tag = Tag::ContextSpecific { constructed: true, number: TagNumber(3) };
        let serial =
            SerialNumber::<x509_cert::certificate::Rfc5280>::new(&self.serial).map_err(unwritable)?;
        sequence(&[
            VERSION.to_vec(),
            serial.to_der().map_err(unwritable)?,
            algorithm.to_vec(),
            parties.issuer.to_der().map_err(unwritable)?,
            validity.to_der().map_err(unwritable)?,
            parties.subject.to_der().map_err(unwritable)?,
            parties.public_key.to_der().map_err(unwritable)?,
            Any::new(tag, extensions).and_then(|extensions| extensions.to_der()).map_err(unwritable)?,
        ])
    }

    fn extensions(&self, parties: &Parties<'_>) -> Result<Extensions, FormatError> {
        let is_authority = self.kind == X509CertificateKind::Authority;
        let constraints =
            BasicConstraints { ca: is_authority, path_len_constraint: is_authority.then_some(self.path_len) };
        let usage: FlagSet<KeyUsages> = match self.kind {
            X509CertificateKind::Authority => KeyUsages::KeyCertSign | KeyUsages::CRLSign,
            // Clients of TLS 1.2 may encrypt to a key of RSA.
            X509CertificateKind::Leaf if is_rsa(parties.public_key) => {
                KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment
            }
            X509CertificateKind::Leaf => KeyUsages::DigitalSignature.into(),
        };
        let mut extensions = vec![
            extension(Critical::Yes, &constraints)?,
            extension(Critical::Yes, &KeyUsage(usage))?,
            extension(Critical::No, &SubjectKeyIdentifier(key_id(parties.public_key)?))?,
            extension(
                Critical::No,
                &AuthorityKeyIdentifier {
                    key_identifier: Some(parties.issuer_key_id.clone()),
                    authority_cert_issuer: None,
                    authority_cert_serial_number: None,
                },
            )?,
        ];
        if !self.usages.is_empty() {
            let oids = self.usages.iter().map(|usage| ObjectIdentifier::new_unwrap(usage.oid()));
            // RFC 3161, section 2.3.
            let is_critical = self.usages == [X509Usage::TimeStamping];
            let critical = if is_critical { Critical::Yes } else { Critical::No };
            extensions.push(extension(critical, &ExtendedKeyUsage(oids.collect()))?);
        }
        extensions.extend(parties.names.extension(parties.subject)?);
        Ok(extensions)
    }
}

/// Whom a certificate is from, and whom it is for.
struct Parties<'a> {
    issuer: &'a Name,
    issuer_key_id: &'a OctetString,
    subject: &'a Name,
    names: &'a AlternativeNames,
    public_key: &'a SubjectPublicKeyInfoOwned,
}

/// Whether programs that do not know an extension must refuse the certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Critical {
    Yes,
    No,
}

fn extension<T: AssociatedOid + Encode>(critical: Critical, content: &T) -> Result<Extension, FormatError> {
    let content = content.to_der().map_err(unwritable)?;
    Ok(Extension {
        extn_id: T::OID,
        critical: critical == Critical::Yes,
        extn_value: OctetString::new(content).map_err(unwritable)?,
    })
}

/// A positive number of 16 bytes, whatever the random bytes are.
fn serial(mut random: [u8; 16]) -> [u8; 16] {
    random[0] = random[0] & 0x7f | 0x40;
    random
}

/// The name of a key: the first 160 bits of the SHA-256 digest of its bits (RFC 7093, section 2).
fn key_id(key: &SubjectPublicKeyInfoOwned) -> Result<OctetString, FormatError> {
    let digest = Sha256::digest(key.subject_public_key.raw_bytes());
    OctetString::new(&digest[..20]).map_err(unwritable)
}

fn is_rsa(key: &SubjectPublicKeyInfoOwned) -> bool {
    key.algorithm.oid == ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1")
}

fn time(seconds: u64) -> Result<Time, FormatError> {
    let since = Duration::from_secs(seconds);
    Ok(if seconds < YEAR_2050 {
        Time::UtcTime(UtcTime::from_unix_duration(since).map_err(unwritable)?)
    } else {
        Time::GeneralTime(GeneralizedTime::from_unix_duration(since).map_err(unwritable)?)
    })
}
