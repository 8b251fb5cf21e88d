//! Key revocation lists in OpenSSH's binary form, as `ssh-keygen -k` writes them (OpenSSH's
//! `PROTOCOL.krl`).
//!
//! No crate reads them. The reader is strict: a list that is half understood would let keys pass.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;
use ssh_encoding::{Decode as _, Reader as _};

use super::key::{SshCertificate, SshKey, SshSigner};
use crate::error::FormatError;

/// What a list begins with.
const MAGIC: &[u8] = b"SSHKRL\n\0";
const VERSION: u32 = 1;

const CERTIFICATES: u8 = 1;
const EXPLICIT_KEYS: u8 = 2;
const SHA1_FINGERPRINTS: u8 = 3;
const SIGNATURE: u8 = 4;
const SHA256_FINGERPRINTS: u8 = 5;
const EXTENSION: u8 = 255;

const SERIAL_LIST: u8 = 0x20;
const SERIAL_RANGE: u8 = 0x21;
const SERIAL_BITMAP: u8 = 0x22;
const KEY_IDS: u8 = 0x23;
const CERTIFICATE_EXTENSION: u8 = 0x39;

/// A list.
#[derive(Clone, Debug, Default)]
pub(super) struct RevocationList {
    /// Public keys, as the protocols of SSH have them.
    keys: Vec<Vec<u8>>,
    sha1: Vec<[u8; 20]>,
    sha256: Vec<[u8; 32]>,
    certificates: Vec<RevokedCertificates>,
}

/// The certificates of one authority that are revoked.
#[derive(Clone, Debug)]
struct RevokedCertificates {
    /// The authority's public key; if it is empty, any authority.
    authority: Vec<u8>,
    serials: Vec<Serials>,
    key_ids: Vec<Vec<u8>>,
}

/// Serial numbers of certificates.
#[derive(Clone, Debug)]
enum Serials {
    /// The first and the last one.
    Range(u64, u64),
    /// The number of the lowest bit, and the bits, big-endian.
    Bitmap(u64, Vec<u8>),
}

impl Serials {
    fn contains(&self, serial: u64) -> bool {
        match self {
            Self::Range(first, last) => (*first..=*last).contains(&serial),
            Self::Bitmap(lowest, bits) => {
                let Some(place) = serial.checked_sub(*lowest) else { return false };
                let Ok(byte) = usize::try_from(place / 8) else { return false };
                bits.iter().rev().nth(byte).is_some_and(|bits| bits >> (place % 8) & 1 == 1)
            }
        }
    }
}

fn malformed(what: &str) -> FormatError {
    FormatError::new(format!("{what} in the key revocation list is malformed"))
}

impl RevocationList {
    /// Whether bytes begin like a list.
    pub(super) fn begins_like_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// # Errors
    /// The list is malformed, or has something critical that is unknown here.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let beginning = |_| malformed("the beginning");
        let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| malformed("the beginning"))?;
        let reader = &mut rest;
        let version = u32::decode(reader).map_err(beginning)?;
        if version != VERSION {
            let message = format!("the key revocation list has version {version} of the format, and not 1");
            return Err(FormatError::new(message));
        }
        let (_number, _made, _flags) = (
            u64::decode(reader).map_err(beginning)?,
            u64::decode(reader).map_err(beginning)?,
            u64::decode(reader).map_err(beginning)?,
        );
        let (_reserved, _comment) = (field(reader, "the beginning")?, field(reader, "the comment")?);
        let mut list = Self::default();
        while !reader.is_finished() {
            let kind = u8::decode(reader).map_err(|_| malformed("a section"))?;
            list.add(kind, &field(reader, "a section")?)?;
        }
        Ok(list)
    }

    fn add(&mut self, kind: u8, section: &[u8]) -> Result<(), FormatError> {
        match kind {
            CERTIFICATES => self.certificates.push(RevokedCertificates::parse(section)?),
            EXPLICIT_KEYS => self.keys.extend(fields(section, "a key")?),
            SHA1_FINGERPRINTS => self.sha1.extend(digests(section)?),
            SHA256_FINGERPRINTS => self.sha256.extend(digests(section)?),
            EXTENSION => check_extension(section)?,
            SIGNATURE => {
                let message = "the key revocation list is signed, and bulla does not verify such signatures: \
                    make one without a signature";
                return Err(FormatError::new(message));
            }
            other => {
                let message = format!("the key revocation list has a section of the unknown kind {other}");
                return Err(FormatError::new(message));
            }
        }
        Ok(())
    }

    /// Whether the list has the signer's key, its certificate, or its authority's key.
    pub(super) fn revokes(&self, signer: &SshSigner) -> bool {
        let is_certificate = |certificate: &SshCertificate| {
            self.certificates.iter().any(|revoked| revoked.has(certificate))
                || self.has_key(certificate.authority())
        };
        self.has_key(signer.key())
            || matches!(signer, SshSigner::Certificate(certificate) if is_certificate(certificate))
    }

    fn has_key(&self, key: &SshKey) -> bool {
        let blob = key.blob();
        let has_sha1 = || {
            let digest = Sha1::digest(blob);
            self.sha1.iter().any(|one| one[..] == digest[..])
        };
        let has_sha256 = || {
            let digest = Sha256::digest(blob);
            self.sha256.iter().any(|one| one[..] == digest[..])
        };
        self.keys.iter().any(|one| one == blob) || has_sha1() || has_sha256()
    }
}

impl RevokedCertificates {
    fn parse(section: &[u8]) -> Result<Self, FormatError> {
        let mut rest = section;
        let reader = &mut rest;
        let authority = field(reader, "the key of an authority")?;
        let _reserved = field(reader, "a section of certificates")?;
        let mut found = Self { authority, serials: Vec::new(), key_ids: Vec::new() };
        while !reader.is_finished() {
            let kind = u8::decode(reader).map_err(|_| malformed("a section of certificates"))?;
            found.add(kind, &field(reader, "a section of certificates")?)?;
        }
        Ok(found)
    }

    fn add(&mut self, kind: u8, mut section: &[u8]) -> Result<(), FormatError> {
        let reader = &mut section;
        let number = |reader: &mut &[u8]| u64::decode(reader).map_err(|_| malformed("a serial number"));
        match kind {
            SERIAL_LIST => {
                while !reader.is_finished() {
                    let serial = number(reader)?;
                    self.serials.push(Serials::Range(serial, serial));
                }
            }
            SERIAL_RANGE => {
                let (first, last) = (number(reader)?, number(reader)?);
                if first > last || !reader.is_finished() {
                    return Err(malformed("a range of serial numbers"));
                }
                self.serials.push(Serials::Range(first, last));
            }
            SERIAL_BITMAP => {
                let lowest = number(reader)?;
                let bits = field(reader, "a bitmap of serial numbers")?;
                // A number of SSH that is not negative (RFC 4251, section 5).
                let is_negative = bits.first().is_some_and(|first| first & 0x80 != 0);
                if is_negative || !reader.is_finished() {
                    return Err(malformed("a bitmap of serial numbers"));
                }
                self.serials.push(Serials::Bitmap(lowest, bits));
            }
            KEY_IDS => self.key_ids.extend(fields(section, "the name of a certificate")?),
            CERTIFICATE_EXTENSION => check_extension(section)?,
            other => {
                let message = format!(
                    "the key revocation list has certificates in a section of the unknown kind {other}"
                );
                return Err(FormatError::new(message));
            }
        }
        Ok(())
    }

    /// Like OpenSSH, this does not look for the serial number 0: authorities that give no numbers
    /// write it.
    fn has(&self, certificate: &SshCertificate) -> bool {
        let is_of = self.authority.is_empty() || self.authority == certificate.authority().blob();
        let (serial, key_id) = (certificate.serial(), certificate.key_id());
        let has_serial = || serial != 0 && self.serials.iter().any(|serials| serials.contains(serial));
        is_of && (self.key_ids.iter().any(|one| one == key_id) || has_serial())
    }
}

/// An extension may be skipped, unless it is critical.
fn check_extension(mut section: &[u8]) -> Result<(), FormatError> {
    let reader = &mut section;
    let name = field(reader, "an extension")?;
    let is_critical = u8::decode(reader).map_err(|_| malformed("an extension"))? != 0;
    let _content = field(reader, "an extension")?;
    if !reader.is_finished() {
        return Err(malformed("an extension"));
    }
    if is_critical {
        let name = name.escape_ascii();
        let message = format!("the key revocation list has the critical extension \"{name}\", unknown here");
        return Err(FormatError::new(message));
    }
    Ok(())
}

fn field(reader: &mut &[u8], what: &str) -> Result<Vec<u8>, FormatError> {
    Vec::<u8>::decode(reader).map_err(|_| malformed(what))
}

fn fields(mut section: &[u8], what: &str) -> Result<Vec<Vec<u8>>, FormatError> {
    let mut found = Vec::new();
    while !section.is_empty() {
        found.push(field(&mut section, what)?);
    }
    Ok(found)
}

fn digests<const LEN: usize>(section: &[u8]) -> Result<Vec<[u8; LEN]>, FormatError> {
    let found = fields(section, "a fingerprint")?;
    let digest = |bytes: Vec<u8>| bytes.try_into().map_err(|_| malformed("a fingerprint"));
    found.into_iter().map(digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
    }

    fn section(kind: u8, content: &[u8]) -> Vec<u8> {
        [&[kind][..], &text(content)].concat()
    }

    /// A list with these sections.
    fn list(sections: &[u8]) -> Vec<u8> {
        [MAGIC, &VERSION.to_be_bytes(), &[0; 24], &text(b""), &text(b"a comment"), sections].concat()
    }

    fn of_authority(section: &[u8]) -> Vec<u8> {
        self::section(CERTIFICATES, &[&text(b"")[..], &text(b""), section].concat())
    }

    fn extension(critical: u8) -> Vec<u8> {
        [&text(b"new")[..], &[critical], &text(b"")].concat()
    }

    #[test]
    fn a_bitmap_has_the_numbers_from_its_lowest_bit_on() {
        // Of 3 bytes: the bits 0, 9 and 16.
        let serials = Serials::Bitmap(100, vec![0x01, 0x02, 0x01]);
        let found: Vec<_> = (0..200).filter(|serial| serials.contains(*serial)).collect();
        assert_eq!(found, [100, 109, 116]);
        assert!(!serials.contains(u64::MAX));
        let last = Serials::Bitmap(u64::MAX, vec![0x03]);
        assert!(last.contains(u64::MAX) && !last.contains(0));
        let range = Serials::Range(5, 7);
        let found: Vec<_> = (0..20).filter(|serial| range.contains(*serial)).collect();
        assert_eq!(found, [5, 6, 7]);
    }

    #[test]
    fn what_is_critical_and_unknown_is_an_error() {
        let read = |sections: &[u8]| RevocationList::parse(&list(sections)).map(drop);
        assert_eq!(read(&[]), Ok(()));
        assert_eq!(read(&section(EXTENSION, &extension(0))), Ok(()));
        assert_eq!(read(&of_authority(&section(CERTIFICATE_EXTENSION, &extension(0)))), Ok(()));
        for (sections, problem) in [
            (section(EXTENSION, &extension(1)), "critical extension \"new\""),
            (of_authority(&section(CERTIFICATE_EXTENSION, &extension(1))), "critical extension"),
            (section(SIGNATURE, b""), "is signed"),
            (section(6, b""), "unknown kind 6"),
            (of_authority(&section(0x24, b"")), "unknown kind 36"),
            (of_authority(&section(SERIAL_RANGE, &[[0; 8], [0; 8], [0; 8]].concat())), "a range"),
            (of_authority(&section(SERIAL_RANGE, &[[1; 8], [0; 8]].concat())), "a range"),
            (of_authority(&section(SERIAL_BITMAP, &[&[0; 8][..], &text(&[0x80])].concat())), "a bitmap"),
            (of_authority(&section(SERIAL_LIST, &[0; 9])), "a serial number"),
            (section(SHA256_FINGERPRINTS, &text(&[0; 20])), "a fingerprint"),
            (section(EXPLICIT_KEYS, &[0, 0, 0, 9, 1]), "a key"),
        ] {
            let error = read(&sections).expect_err(problem).to_string();
            assert!(error.contains(problem), "{problem}: {error}");
        }
    }

    #[test]
    fn a_list_that_is_cut_is_an_error() {
        let sections =
            [of_authority(&section(SERIAL_LIST, &[1; 16])), section(EXPLICIT_KEYS, &text(b"key"))].concat();
        let whole = list(&sections);
        RevocationList::parse(&whole).unwrap();
        let ends = [list(&[]).len(), list(&of_authority(&section(SERIAL_LIST, &[1; 16]))).len()];
        for len in (0..whole.len()).filter(|len| !ends.contains(len)) {
            assert!(RevocationList::parse(&whole[..len]).is_err(), "{len}");
        }
    }
}
