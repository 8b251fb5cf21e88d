//! Reads certificates before their signature, and requests for certificates (RFC 5280, RFC 2986).
//!
//! The crate `der` reads the single values, strictly. What they mean is read here: every extension
//! that a certificate may have is known, so nothing in it can go unnoticed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use der::asn1::{BitStringRef, GeneralizedTime, ObjectIdentifier, UtcTime};
use der::{AnyRef, Decode as _, Encode as _, Reader as _, SliceReader, Tag, TagNumber, Tagged as _};
use serde::{Deserialize, Serialize};

use crate::encoding::{hex, is_deceptive};
use crate::error::{Code, KmsError};
use crate::time::Timestamp;

/// The most bytes of a certificate. One with a hundred names has less than half of them.
const MAX_LEN: usize = 16 << 10;
/// How long a serial number is, in bytes: at most 20 (RFC 5280, section 4.1.2.2), and at least so
/// many that nobody can guess it.
const SERIAL_LEN: std::ops::RangeInclusive<usize> = 8..=20;

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum X509CertificateKind {
    /// A server, a program or a person.
    Leaf,
    /// An authority, which signs certificates of leaves.
    Authority,
}

/// What the key in a leaf's certificate may be used for: its extended key usage (RFC 5280, section
/// 4.2.1.12).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum X509Usage {
    /// Servers of TLS.
    ServerAuth,
    /// Clients of TLS.
    ClientAuth,
    /// Programs that are signed.
    CodeSigning,
    /// Signed and encrypted mail.
    EmailProtection,
    /// Signed times.
    TimeStamping,
}

impl X509Usage {
    /// All usages.
    pub const ALL: &[Self] =
        &[Self::ServerAuth, Self::ClientAuth, Self::CodeSigning, Self::EmailProtection, Self::TimeStamping];

    /// The object identifier.
    ///
    /// ```
    /// use bulla_kms::X509Usage;
    ///
    /// assert_eq!(X509Usage::ServerAuth.oid(), "1.3.6.1.5.5.7.3.1");
    /// ```
    pub const fn oid(self) -> &'static str {
        match self {
            Self::ServerAuth => "1.3.6.1.5.5.7.3.1",
            Self::ClientAuth => "1.3.6.1.5.5.7.3.2",
            Self::CodeSigning => "1.3.6.1.5.5.7.3.3",
            Self::EmailProtection => "1.3.6.1.5.5.7.3.4",
            Self::TimeStamping => "1.3.6.1.5.5.7.3.8",
        }
    }
}

/// The attributes of a subject that are known, by the names of RFC 4519.
const ATTRIBUTES: [(&str, &str); 11] = [
    ("CN", "2.5.4.3"),
    ("serialNumber", "2.5.4.5"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("street", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("emailAddress", "1.2.840.113549.1.9.1"),
];

/// Whether a subject may have this attribute, such as `CN`.
pub(super) fn is_attribute(name: &str) -> bool {
    ATTRIBUTES.iter().any(|(known, _)| *known == name)
}

/// One of the names in a certificate's extension `subjectAltName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AlternativeName {
    /// In lower case.
    Dns(String),
    Email(String),
    Uri(String),
    Ip(IpAddr),
}

impl AlternativeName {
    /// The name alone.
    pub(super) fn value(&self) -> String {
        match self {
            Self::Dns(name) | Self::Email(name) | Self::Uri(name) => name.clone(),
            Self::Ip(address) => address.to_string(),
        }
    }

    /// The name with its kind, as OpenSSL writes it.
    fn text(&self) -> String {
        let kind = match self {
            Self::Dns(_) => "DNS",
            Self::Email(_) => "email",
            Self::Uri(_) => "URI",
            Self::Ip(_) => "IP",
        };
        format!("{kind}:{}", self.value())
    }

    /// Reads a `GeneralName`.
    fn read(name: AnyRef<'_>) -> Option<Self> {
        let text = || text(name.value()).filter(|text| text.is_ascii() && !text.contains(' '));
        Some(match name.tag() {
            tag if tag == implicit(TagNumber(1)) => Self::Email(text().filter(|text| is_mail_address(text))?),
            tag if tag == implicit(TagNumber(2)) => {
                Self::Dns(text().filter(|text| is_dns_name(text))?.to_ascii_lowercase())
            }
            tag if tag == implicit(TagNumber(6)) => Self::Uri(text().filter(|text| text.contains(':'))?),
            tag if tag == implicit(TagNumber(7)) => match name.value().len() {
                4 => Self::Ip(Ipv4Addr::from(<[u8; 4]>::try_from(name.value()).ok()?).into()),
                16 => {
                    let address = Ipv6Addr::from(<[u8; 16]>::try_from(name.value()).ok()?);
                    // Programs in Go take it for the address of version 4 in it, which no
                    // network of version 6 means.
                    Self::Ip(Some(address).filter(|address| address.to_ipv4_mapped().is_none())?.into())
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// A tag of a field that is no structure.
fn implicit(number: TagNumber) -> Tag {
    Tag::ContextSpecific { constructed: false, number }
}

fn explicit(number: TagNumber) -> Tag {
    Tag::ContextSpecific { constructed: true, number }
}

/// Whether a text is a name of DNS. Its first label may be an asterisk, for any one label.
pub(super) fn is_dns_name(text: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_plain);
    let labels = text.strip_prefix("*.").unwrap_or(text);
    text.len() <= 253 && labels.split('.').all(is_label)
}

/// Whether a text has one `@`, with something on both sides.
fn is_mail_address(text: &str) -> bool {
    text.split_once('@')
        .is_some_and(|(local, host)| !local.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// What an audit log says of a certificate that was signed.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct X509CertificateSummary {
    /// What it is for.
    pub kind: X509CertificateKind,
    /// Its serial number, as lower-case hexadecimal.
    pub serial: String,
    /// The attributes of its subject, such as `CN=www.example.org`.
    pub subject: Vec<String>,
    /// Its other names, such as `DNS:www.example.org`.
    pub names: Vec<String>,
    /// When it ends.
    pub not_after: Timestamp,
}

impl X509CertificateSummary {
    /// What is recorded of a message, if it is a certificate before its signature.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        // Most messages are none.
        if message.first() != Some(&0x30) {
            return None;
        }
        let certificate = Certificate::parse(message).ok()?;
        Some(Self {
            kind: certificate.kind,
            serial: certificate.serial,
            subject: certificate.subject.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            names: certificate.names.iter().map(AlternativeName::text).collect(),
            not_after: Timestamp::from_unix_millis(certificate.not_after.checked_mul(1000)?).ok()?,
        })
    }
}

/// A certificate before its signature.
pub(super) struct Certificate {
    pub(super) kind: X509CertificateKind,
    pub(super) serial: String,
    /// The name and the value of each attribute.
    pub(super) subject: Vec<(&'static str, String)>,
    pub(super) names: Vec<AlternativeName>,
    /// None if the certificate does not limit them.
    pub(super) usages: Option<Vec<X509Usage>>,
    /// Seconds since 1970.
    pub(super) not_before: u64,
    pub(super) not_after: u64,
    /// How many authorities may be below this one; none if any number may.
    pub(super) path_len: Option<u8>,
    /// Whether the issuer has the name of the subject.
    pub(super) is_self_issued: bool,
    /// The certified public key: a SubjectPublicKeyInfo in DER.
    pub(super) public_key: Vec<u8>,
}

/// Why a message is no certificate, or one that nothing here permits.
pub(super) type Unreadable = &'static str;

const MALFORMED: Unreadable = "it is no X.509 certificate of version 3 in DER";

impl Certificate {
    pub(super) fn parse(message: &[u8]) -> Result<Self, Unreadable> {
        if message.len() > MAX_LEN {
            return Err("it is too long for a certificate");
        }
        let whole = AnyRef::from_der(message).map_err(|_| MALFORMED)?;
        if whole.tag() != Tag::Sequence {
            return Err(MALFORMED);
        }
        let fields = items(whole.value()).ok_or(MALFORMED)?;
        let [version, serial, algorithm, issuer, validity, subject, public_key, extensions] = fields[..]
        else {
            return Err(MALFORMED);
        };
        let is_structure = |field: &AnyRef<'_>| field.tag() == Tag::Sequence;
        if version.tag() != explicit(TagNumber(0)) || version.value() != [2, 1, 2] {
            return Err(MALFORMED);
        }
        if ![algorithm, issuer, validity, subject, public_key].iter().all(is_structure) {
            return Err(MALFORMED);
        }
        let (not_before, not_after) = read_validity(validity.value()).ok_or(MALFORMED)?;
        if items(issuer.value()).is_none_or(|attributes| attributes.is_empty()) {
            return Err("it names no issuer");
        }
        let mut certificate = Self {
            kind: X509CertificateKind::Leaf,
            serial: read_serial(serial)?,
            subject: read_subject(subject.value())?,
            names: Vec::new(),
            usages: None,
            not_before,
            not_after,
            path_len: None,
            is_self_issued: issuer == subject,
            public_key: public_key.to_der().map_err(|_| MALFORMED)?,
        };
        if extensions.tag() != explicit(TagNumber(3)) {
            return Err(MALFORMED);
        }
        certificate.read_extensions(extensions.value())?;
        Ok(certificate)
    }

    fn read_extensions(&mut self, list: &[u8]) -> Result<(), Unreadable> {
        let list = AnyRef::from_der(list).map_err(|_| MALFORMED)?;
        let extensions = items(list.value()).filter(|_| list.tag() == Tag::Sequence).ok_or(MALFORMED)?;
        let mut seen = Vec::new();
        let (mut key_usage, mut is_authority) = (None, false);
        for extension in extensions {
            let (oid, is_critical, value) = read_extension(extension).ok_or(MALFORMED)?;
            if seen.contains(&oid) {
                return Err("it has an extension twice");
            }
            seen.push(oid);
            // RFC 5280, section 4.2.1.
            match &*oid.to_string() {
                "2.5.29.14" | "2.5.29.35" if !is_critical => {}
                "2.5.29.15" => key_usage = Some(read_key_usage(value).ok_or(MALFORMED)?),
                "2.5.29.17" => self.names = read_names(value)?,
                "2.5.29.19" => {
                    (is_authority, self.path_len) = read_constraints(value).ok_or(MALFORMED)?;
                    if is_authority && !is_critical {
                        return Err("an authority's basic constraints must be critical");
                    }
                }
                "2.5.29.37" => self.usages = Some(read_usages(value)?),
                _ => return Err("it has an extension that bulla does not know"),
            }
        }
        let usage = key_usage.ok_or("it does not say what its key may be used for (key usage)")?;
        if is_authority {
            self.kind = X509CertificateKind::Authority;
        }
        match (self.kind, usage & SIGNS_CERTIFICATES != 0) {
            (X509CertificateKind::Leaf, _) if usage & !OF_LEAVES == 0 && usage != 0 => Ok(()),
            (X509CertificateKind::Authority, true) if usage & !OF_AUTHORITIES == 0 => Ok(()),
            _ => Err(
                "its key usage does not fit: only authorities sign certificates and lists of revoked ones",
            ),
        }
    }
}

/// The values that are one after the other in a structure.
fn items(bytes: &[u8]) -> Option<Vec<AnyRef<'_>>> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let mut found = Vec::new();
    while !reader.is_finished() {
        found.push(reader.decode().ok()?);
    }
    Some(found)
}

/// A text that deceives no reader of the log.
fn text(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    (!text.is_empty() && !text.chars().any(is_deceptive)).then(|| text.to_owned())
}

fn read_serial(serial: AnyRef<'_>) -> Result<String, Unreadable> {
    let bytes = serial.value();
    // DER writes a positive number with one zero in front at most, and only before a high bit.
    let is_positive = matches!(bytes, [1..=0x7f, ..] | [0, 0x80..=0xff, ..]);
    if serial.tag() != Tag::Integer || !is_positive || !SERIAL_LEN.contains(&bytes.len()) {
        return Err("its serial number is not a positive one of 8 to 20 bytes");
    }
    Ok(hex(bytes))
}

fn read_validity(validity: &[u8]) -> Option<(u64, u64)> {
    let [begin, end] = items(validity)?[..] else { return None };
    let seconds = |time: AnyRef<'_>| {
        let since = match time.tag() {
            Tag::UtcTime => time.decode_as::<UtcTime>().ok()?.to_unix_duration(),
            Tag::GeneralizedTime => time.decode_as::<GeneralizedTime>().ok()?.to_unix_duration(),
            _ => return None,
        };
        Some(since.as_secs())
    };
    Some((seconds(begin)?, seconds(end)?))
}

/// The attributes of a name (RFC 5280, section 4.1.2.4).
fn read_subject(name: &[u8]) -> Result<Vec<(&'static str, String)>, Unreadable> {
    let mut found = Vec::new();
    for set in items(name).ok_or(MALFORMED)? {
        if set.tag() != Tag::Set {
            return Err(MALFORMED);
        }
        for attribute in items(set.value()).ok_or(MALFORMED)? {
            let parts =
                items(attribute.value()).filter(|_| attribute.tag() == Tag::Sequence).ok_or(MALFORMED)?;
            let [kind, value] = parts[..] else { return Err(MALFORMED) };
            let kind = kind.decode_as::<ObjectIdentifier>().map_err(|_| MALFORMED)?.to_string();
            let known = ATTRIBUTES.iter().find(|(_, oid)| *oid == kind);
            let (name, _) = known.ok_or("its subject has an attribute that bulla does not know")?;
            let is_text = matches!(value.tag(), Tag::Utf8String | Tag::PrintableString | Tag::Ia5String);
            let value = text(value.value()).filter(|_| is_text);
            found.push((*name, value.ok_or("its subject has an attribute that is no plain text")?));
        }
    }
    Ok(found)
}

/// An extension: its identifier, whether it is critical, and its content.
fn read_extension(extension: AnyRef<'_>) -> Option<(ObjectIdentifier, bool, AnyRef<'_>)> {
    if extension.tag() != Tag::Sequence {
        return None;
    }
    let fields = items(extension.value())?;
    let (oid, critical, value) = match fields[..] {
        [oid, value] => (oid, false, value),
        // The value of a field that is not there is false, and DER does not write it.
        [oid, critical, value] if critical.tag() == Tag::Boolean && critical.value() == [0xff] => {
            (oid, true, value)
        }
        _ => return None,
    };
    if value.tag() != Tag::OctetString {
        return None;
    }
    Some((oid.decode_as().ok()?, critical, AnyRef::from_der(value.value()).ok()?))
}

/// The bits of a key usage (RFC 5280, section 4.2.1.3), bit 0 lowest.
const OF_LEAVES: u16 = 0b0_0001_1111;
const SIGNS_CERTIFICATES: u16 = 1 << 5;
const OF_AUTHORITIES: u16 = SIGNS_CERTIFICATES | 1 << 6 | 1;

fn read_key_usage(value: AnyRef<'_>) -> Option<u16> {
    let bits: BitStringRef<'_> = value.decode_as().ok()?;
    if bits.bit_len() > 9 {
        return None;
    }
    Some(bits.bits().enumerate().map(|(place, bit)| u16::from(bit) << place).sum())
}

/// Whether it is an authority, and how many others may be below it.
fn read_constraints(value: AnyRef<'_>) -> Option<(bool, Option<u8>)> {
    let fields = items(value.value()).filter(|_| value.tag() == Tag::Sequence)?;
    let is_true = |field: &AnyRef<'_>| field.tag() == Tag::Boolean && field.value() == [0xff];
    Some(match &fields[..] {
        [] => (false, None),
        [authority] if is_true(authority) => (true, None),
        [authority, length] if is_true(authority) => (true, Some(length.decode_as().ok()?)),
        _ => return None,
    })
}

fn read_names(value: AnyRef<'_>) -> Result<Vec<AlternativeName>, Unreadable> {
    let names = items(value.value()).filter(|names| value.tag() == Tag::Sequence && !names.is_empty());
    let names = names.ok_or(MALFORMED)?.into_iter().map(AlternativeName::read);
    names.collect::<Option<_>>().ok_or("it has a name that is malformed, or of an unknown kind")
}

fn read_usages(value: AnyRef<'_>) -> Result<Vec<X509Usage>, Unreadable> {
    let usages = items(value.value()).filter(|usages| value.tag() == Tag::Sequence && !usages.is_empty());
    let known = |usage: AnyRef<'_>| {
        let oid = usage.decode_as::<ObjectIdentifier>().ok()?.to_string();
        X509Usage::ALL.iter().copied().find(|usage| usage.oid() == oid)
    };
    let usages = usages.ok_or(MALFORMED)?.into_iter().map(known);
    usages.collect::<Option<_>>().ok_or("it has an extended key usage that bulla does not know")
}

/// The public key in a request for a certificate before its signature (RFC 2986, section 4): a
/// SubjectPublicKeyInfo in DER. None if it is no request. No certificate passes for one: its first
/// field is a number, and its second one a name.
pub(super) fn requested_key(message: &[u8]) -> Option<Vec<u8>> {
    let whole = AnyRef::from_der(message).ok().filter(|whole| whole.tag() == Tag::Sequence)?;
    let [version, subject, public_key, attributes] = items(whole.value())?[..] else { return None };
    let is_request = version.tag() == Tag::Integer
        && version.value() == [0]
        && [subject.tag(), public_key.tag()] == [Tag::Sequence; 2]
        && attributes.tag() == explicit(TagNumber(0));
    public_key.to_der().ok().filter(|_| is_request)
}

/// The error for a message that an authority does not sign.
pub(super) fn refusal(why: impl Into<String>) -> KmsError {
    KmsError::new(Code::KeyUsageMismatch, why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, bytes: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    #[test]
    fn an_address_of_version_4_has_4_bytes() {
        let read = |address: &[u8]| AlternativeName::read(AnyRef::from_der(&value(0x87, address)).unwrap());
        let (v4, v6) = (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::LOCALHOST);
        assert_eq!(read(&v4.octets()), Some(AlternativeName::Ip(v4.into())));
        assert_eq!(read(&v6.octets()), Some(AlternativeName::Ip(v6.into())));
        assert_eq!(read(&v4.to_ipv6_mapped().octets()), None);
        assert_eq!(read(&[0; 8]), None);
    }

    #[test]
    fn a_serial_number_is_positive_and_as_short_as_der_has_it() {
        let is_one = |bytes: &[u8]| read_serial(AnyRef::from_der(&value(2, bytes)).unwrap()).is_ok();
        let with = |beginning: &[u8]| [beginning, &[7; 16]].concat();
        assert!(is_one(&with(&[1])) && is_one(&with(&[0x7f])) && is_one(&with(&[0, 0x80])));
        for bytes in
            [with(&[0]), with(&[0, 0x7f]), with(&[0, 0, 0x80]), with(&[0x80]), vec![0; 8], vec![7; 7]]
        {
            assert!(!is_one(&bytes), "{bytes:?}");
        }
        assert!(!is_one(&[7; 21]));
    }

    #[test]
    fn an_address_of_mail_has_one_at_sign() {
        assert!(is_mail_address("ann@example.org"));
        for text in ["ann", "@example.org", "ann@", "@ann@example.org", "ann@@example.org", "a@b@c", ""] {
            assert!(!is_mail_address(text), "{text}");
        }
    }
}
