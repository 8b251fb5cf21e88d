//! The envelope: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) with a header that
//! describes the content.
//!
//! ```text
//! magic       4   "BENV"
//! format      1   1
//! kind        1   1 root key, 2 store state, 3 key record, 4 private key, 5 data key, 6 note
//! subject     2   length, big-endian
//!             n   UTF-8: the owner; for a private key its key version id, for a key record its key id, for a note its name
//! nonce       24  random, fresh for each envelope
//! ciphertext  m
//! tag         16
//! ```
//!
//! Everything before the nonce is the associated data, so an envelope opens only as the kind and
//! the subject for which it was encrypted.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::backend::open_xchacha20_poly1305;
use crate::error::{KmsError, Result};

const MAGIC: &[u8; 4] = b"BENV";
const FORMAT: u8 = 1;
const FIXED_HEADER_LEN: usize = 8;
const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;

/// The kind of an envelope's content, and the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopeKind {
    /// The root key, from which the keys of all other envelopes are derived.
    RootKey,
    /// The state that binds all records of the store together.
    StoreState,
    /// The metadata of the key with this id.
    KeyRecord(String),
    /// The private key of the key version with this id.
    PrivateKey(String),
    /// A note with this name, of processes that share the store.
    Note(String),
    /// The backup of one key of the tenant with this name.
    KeyBackup(String),
    /// The key that encrypts an encrypted file.
    #[cfg(feature = "soft-seal")]
    DataKey,
}

impl EnvelopeKind {
    fn number(&self) -> u8 {
        match self {
            Self::RootKey => 1,
            Self::StoreState => 2,
            Self::KeyRecord(_) => 3,
            Self::PrivateKey(_) => 4,
            #[cfg(feature = "soft-seal")]
            Self::DataKey => 5,
            Self::Note(_) => 6,
            Self::KeyBackup(_) => 7,
        }
    }

    /// The owner of the content.
    pub(crate) fn subject(&self) -> &str {
        match self {
            Self::RootKey | Self::StoreState => "",
            #[cfg(feature = "soft-seal")]
            Self::DataKey => "",
            Self::KeyRecord(subject)
            | Self::PrivateKey(subject)
            | Self::Note(subject)
            | Self::KeyBackup(subject) => subject,
        }
    }

    fn header(&self) -> Vec<u8> {
        let subject = self.subject();
        let length = u16::try_from(subject.len()).expect("subjects have at most 512 bytes");
        let mut header = Vec::with_capacity(FIXED_HEADER_LEN + subject.len());
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&[FORMAT, self.number()]);
        header.extend_from_slice(&length.to_be_bytes());
        header.extend_from_slice(subject.as_bytes());
        header
    }

    /// Divides the bytes of an envelope of this kind into the header and what follows it. None if
    /// they begin with another header.
    fn split_header<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let subject = self.subject();
        let (header, rest) = bytes.split_at_checked(FIXED_HEADER_LEN + subject.len())?;
        let [m0, m1, m2, m3, format, number, high, low, found @ ..] = header else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let is_same = [*m0, *m1, *m2, *m3] == *MAGIC
            && (*format, *number, length) == (FORMAT, self.number(), subject.len())
            && found == subject.as_bytes();
        is_same.then_some((header, rest))
    }

    fn parse(number: u8, subject: &str) -> Option<Self> {
        match (number, subject) {
            (1, "") => Some(Self::RootKey),
            (2, "") => Some(Self::StoreState),
            (3, _) => Some(Self::KeyRecord(subject.to_owned())),
            (4, _) => Some(Self::PrivateKey(subject.to_owned())),
            #[cfg(feature = "soft-seal")]
            (5, "") => Some(Self::DataKey),
            (6, _) => Some(Self::Note(subject.to_owned())),
            (7, _) => Some(Self::KeyBackup(subject.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for EnvelopeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootKey => f.write_str("the root key"),
            Self::StoreState => f.write_str("the store's state"),
            #[cfg(feature = "soft-seal")]
            Self::DataKey => f.write_str("the data's key"),
            Self::KeyRecord(key_id) => write!(f, "the record of {key_id}"),
            Self::PrivateKey(key) => write!(f, "the private key of {key}"),
            Self::Note(name) => write!(f, "the note {name}"),
            Self::KeyBackup(tenant) => write!(f, "the backup of a key of {tenant}"),
        }
    }
}

/// An envelope, taken apart but not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    kind: EnvelopeKind,
    nonce: [u8; NONCE_LEN],
    /// Ciphertext and tag.
    ciphertext: Vec<u8>,
}

impl Envelope {
    /// Encrypts `secret` under `key`.
    pub(crate) fn encrypt(key: &[u8; 32], kind: EnvelopeKind, secret: &[u8]) -> Result<Self> {
        let mut nonce = [0; NONCE_LEN];
        crate::random::fill(&mut nonce)?;
        let payload = Payload { msg: secret, aad: &kind.header() };
        let ciphertext = XChaCha20Poly1305::new(key.into())
            .encrypt(&XNonce::from(nonce), payload)
            .expect("the cipher takes messages of up to 256 GiB");
        Ok(Self { kind, nonce, ciphertext })
    }

    /// Decrypts the envelope, if it was encrypted under `key` for exactly this `kind`.
    pub(crate) fn decrypt(&self, key: &[u8; 32], kind: &EnvelopeKind) -> Option<Zeroizing<Vec<u8>>> {
        if self.kind != *kind {
            return None;
        }
        let payload = Payload { msg: &self.ciphertext, aad: &kind.header() };
        XChaCha20Poly1305::new(key.into())
            .decrypt(&XNonce::from(self.nonce), payload)
            .ok()
            .map(Zeroizing::new)
    }

    /// Decrypts the bytes of an envelope, if it was encrypted under `key` for exactly this `kind`:
    /// the same as parsing and opening it, without copies. This matters because a store opens two
    /// envelopes for each key.
    pub(crate) fn decrypt_bytes(
        key: &[u8; 32],
        kind: &EnvelopeKind,
        bytes: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let parts = kind.split_header(bytes).and_then(|(header, rest)| {
            rest.split_first_chunk::<NONCE_LEN>().map(|(nonce, ciphertext)| (header, nonce, ciphertext))
        });
        let Some((header, nonce, ciphertext)) = parts else {
            // The bytes were encrypted for another kind, or are not an envelope.
            return Self::parse(bytes).map(|_| None);
        };
        Ok(open_xchacha20_poly1305(key, nonce, header, ciphertext))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.kind.header();
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.ciphertext);
        bytes
    }

    /// Parses an envelope. Its content is not authenticated until it is opened.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let error = || KmsError::corrupt("an envelope is cut or not of format 1");
        let (header, rest) = bytes.split_first_chunk::<FIXED_HEADER_LEN>().ok_or_else(error)?;
        let [magic @ .., format, number, high, low] = header;
        if magic != MAGIC || *format != FORMAT {
            return Err(error());
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (subject, rest) = rest.split_at_checked(length).ok_or_else(error)?;
        let (nonce, ciphertext) = rest.split_first_chunk().ok_or_else(error)?;
        if ciphertext.len() < TAG_LEN {
            return Err(error());
        }
        let subject = std::str::from_utf8(subject).map_err(|_| error())?;
        let kind = EnvelopeKind::parse(*number, subject).ok_or_else(error)?;
        Ok(Self { kind, nonce: *nonce, ciphertext: ciphertext.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn kinds() -> [EnvelopeKind; 6] {
        let a = "a/b/ed25519/00000000-0000-4000-8000-000000000000";
        [
            EnvelopeKind::RootKey,
            EnvelopeKind::StoreState,
            EnvelopeKind::KeyRecord(a.to_owned()),
            EnvelopeKind::PrivateKey(format!("{a}/v1")),
            EnvelopeKind::PrivateKey(format!("{a}/v2")),
            EnvelopeKind::KeyBackup("a".to_owned()),
        ]
    }

    #[test]
    fn round_trip() {
        for kind in kinds() {
            let bytes = Envelope::encrypt(&KEY, kind.clone(), b"secret").unwrap().to_bytes();
            let envelope = Envelope::parse(&bytes).unwrap();
            assert_eq!(envelope.to_bytes(), bytes);
            assert_eq!(*envelope.decrypt(&KEY, &kind).unwrap(), b"secret");
        }
    }

    /// The published vector of the cipher: draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn the_cipher_gives_the_published_tag() {
        let key: [u8; 32] = std::array::from_fn(|i| 0x80 + i as u8);
        let nonce: [u8; 24] = std::array::from_fn(|i| 0x40 + i as u8);
        let aad = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let message =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
            sunscreen would be it.";
        let payload = Payload { msg: message.as_slice(), aad: &aad };
        let ciphertext = XChaCha20Poly1305::new(&key.into()).encrypt(&XNonce::from(nonce), payload).unwrap();
        assert_eq!(
            ciphertext[message.len()..],
            [0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79, 0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a, 0xcf, 0x49]
        );
    }

    #[test]
    fn an_envelope_opens_at_no_other_place_and_under_no_other_key() {
        for encrypted_for in kinds() {
            let envelope = Envelope::encrypt(&KEY, encrypted_for.clone(), b"secret").unwrap();
            assert!(envelope.decrypt(&[8; 32], &encrypted_for).is_none());
            for decrypted_for in kinds().iter().filter(|kind| **kind != encrypted_for) {
                assert!(envelope.decrypt(&KEY, decrypted_for).is_none());
                assert!(
                    Envelope::decrypt_bytes(&KEY, decrypted_for, &envelope.to_bytes()).unwrap().is_none()
                );
                let relabeled = Envelope { kind: decrypted_for.clone(), ..envelope.clone() };
                assert!(relabeled.decrypt(&KEY, decrypted_for).is_none(), "the tag covers the kind");
            }
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_detected() {
        let kind = kinds()[3].clone();
        let bytes = Envelope::encrypt(&KEY, kind.clone(), b"secret").unwrap().to_bytes();
        let opens = |bytes: &[u8]| {
            let parsed = Envelope::parse(bytes).ok().and_then(|envelope| envelope.decrypt(&KEY, &kind));
            let at_once = Envelope::decrypt_bytes(&KEY, &kind, bytes).ok().flatten();
            assert_eq!(parsed, at_once, "both ways of opening agree");
            parsed
        };
        assert!(opens(&bytes).is_some());
        for index in 0..bytes.len() {
            assert!(opens(&bytes[..index]).is_none());
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1 << bit;
                assert!(opens(&flipped).is_none(), "byte {index}, bit {bit}");
            }
        }
    }

    #[test]
    fn envelopes_of_the_vectors_open() {
        let bytes = |text: &serde_json::Value| -> Vec<u8> {
            let hex = text.as_str().unwrap();
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/sealing.json");
        let vectors: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let cases = vectors["envelopes"].as_array().unwrap();
        assert!(cases.len() >= 4);
        for case in cases {
            let subject = case["subject"].as_str().unwrap();
            let kind =
                EnvelopeKind::parse(case["kind"].as_u64().unwrap().try_into().unwrap(), subject).unwrap();
            let envelope = Envelope::parse(&bytes(&case["envelope"])).unwrap();
            let key = bytes(&case["key"]).try_into().unwrap();
            assert_eq!(*envelope.decrypt(&key, &kind).unwrap(), bytes(&case["secret"]));
        }
    }

    #[test]
    fn no_two_envelopes_share_a_nonce() {
        let encrypt = || Envelope::encrypt(&KEY, EnvelopeKind::StoreState, b"secret").unwrap();
        assert_ne!(encrypt().nonce, encrypt().nonce);
    }
}
