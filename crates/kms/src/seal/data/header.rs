//! The header of sealed data: the keys that it is encrypted to.

use std::io::Read;

use bulla_blake3 as blake3;
use zeroize::Zeroizing;

use super::format::{self, FORMAT, MAGIC};
use crate::error::{Code, KmsError, Result};
use crate::random;
use crate::seal::envelope::Place;
use crate::seal::provider::{Capsule, KeyEncryptionKey, KeyProvider, WrappedKey};
use crate::seal::unlock::UnlockMethod;

/// The most keys that data can be encrypted to: each may cost the reader an Argon2id computation.
const MOST_KEYS: usize = 8;
/// The maximum length of a header in bytes, after its length field.
const MOST_BYTES: usize = 1 << 18;
const SALT: usize = 32;
const CHECK: usize = 32;

/// The header before the payload: the data key, once under each key that opens it. Reading it does
/// not authenticate anything yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    keys: Vec<WrappedKey>,
    pub(super) salt: [u8; SALT],
    check: [u8; CHECK],
}

/// The key that encrypts the payload's key.
pub(super) type DataKey = KeyEncryptionKey;

impl Header {
    /// A new data key, sealed to each of `to`.
    pub(super) fn create(to: &[&dyn KeyProvider]) -> Result<(Self, DataKey)> {
        let (mut data_key, mut salt) = (Zeroizing::new([0; 32]), [0; SALT]);
        random::fill(&mut *data_key)?;
        random::fill(&mut salt)?;
        Ok((Self::seal(&data_key, salt, Vec::new(), to)?, data_key))
    }

    /// Encrypts the data key under the keys of `to`, in addition to the keys that it already has.
    fn seal(
        data_key: &DataKey,
        salt: [u8; SALT],
        mut keys: Vec<WrappedKey>,
        to: &[&dyn KeyProvider],
    ) -> Result<Self> {
        if !(1..=MOST_KEYS).contains(&(keys.len() + to.len())) {
            let message =
                format!("data is sealed to 1 to {MOST_KEYS} keys, not to {}", keys.len() + to.len());
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        for provider in to {
            keys.push(WrappedKey::wrap(*provider, Place::DataKey, data_key)?);
        }
        let mut header = Self { keys, salt, check: [0; CHECK] };
        header.check = header.expected_check(data_key);
        Ok(header)
    }

    /// The header of the same data for other keys: those that `keep` retains, and those of `to`.
    pub(super) fn reseal(&self, data_key: &DataKey, keep: Keep, to: &[&dyn KeyProvider]) -> Result<Self> {
        let kept = match keep {
            Keep::Former => self.keys.clone(),
            Keep::Nothing => Vec::new(),
        };
        Self::seal(data_key, self.salt, kept, to)
    }

    /// The capsules: the data that each key needs to open this.
    pub fn capsules(&self) -> impl Iterator<Item = &Capsule> {
        self.keys.iter().map(|key| &key.capsule)
    }

    /// Opens the data key with the first provider of `with` that can, and authenticates the header.
    ///
    /// # Errors
    /// [`Code::WrongDecryptionKey`] if the data is encrypted to none of these keys; the provider's error
    /// if it matches but cannot open the data; [`Code::EncryptedFileCorrupt`] if the header was changed.
    pub(super) fn open(&self, with: &[&dyn KeyProvider]) -> Result<DataKey> {
        let mut refused = None;
        for key in &self.keys {
            for provider in with.iter().filter(|provider| provider.fits(&key.capsule)) {
                match key.unwrap(*provider, &Place::DataKey) {
                    Ok(data_key) => {
                        self.prove(&data_key)?;
                        return Ok(data_key);
                    }
                    Err(error) => refused = Some(error),
                }
            }
        }
        Err(refused.unwrap_or_else(|| {
            let keys: Vec<_> = self.capsules().map(|capsule| UnlockMethod::of(capsule).to_string()).collect();
            let message = format!("it opens with {}, and no such key was given", keys.join(", or "));
            KmsError::new(Code::WrongDecryptionKey, message)
        }))
    }

    fn prove(&self, data_key: &DataKey) -> Result<()> {
        let (expected, found) = (self.expected_check(data_key), self.check);
        // Hashes are compared in constant time.
        if blake3::Hash::from_bytes(expected) == blake3::Hash::from_bytes(found) {
            return Ok(());
        }
        Err(format::damaged("its header was changed"))
    }

    fn expected_check(&self, data_key: &DataKey) -> [u8; CHECK] {
        let key = format::derive("bulla sealed data v1 header key", data_key, &self.salt);
        *blake3::keyed_hash(&key, &self.body()).as_bytes()
    }

    /// number of keys (1), the wrapped keys, salt (32): the bytes that the check covers.
    fn body(&self) -> Vec<u8> {
        let mut body = vec![u8::try_from(self.keys.len()).expect("the number is bounded")];
        self.keys.iter().for_each(|key| key.write(&mut body));
        body.extend_from_slice(&self.salt);
        body
    }

    /// Magic, format, length of what follows (4, big-endian), body, check.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let body = self.body();
        let length = u32::try_from(body.len() + CHECK).expect("a header is short");
        [&MAGIC[..], &[FORMAT], &length.to_be_bytes(), &body, &self.check].concat()
    }

    /// Reads the header from the start of sealed data, and nothing after it.
    ///
    /// # Errors
    /// [`Code::MalformedEncryptedFile`] if it is not a header; [`Code::EncryptedFileTooNew`]; errors of reading.
    pub fn read(source: &mut impl Read) -> Result<Self> {
        let malformed =
            |why: &str| KmsError::new(Code::MalformedEncryptedFile, format!("it is not sealed data: {why}"));
        let mut start = [0; 9];
        read_exact(source, &mut start)?.ok_or_else(|| malformed("it is too short"))?;
        let [magic @ .., format, a, b, c, d] = &start;
        if magic != MAGIC {
            return Err(malformed("it begins with other bytes"));
        }
        match *format {
            FORMAT => {}
            newer if newer > FORMAT => {
                let message = format!(
                    "it is sealed in format {newer} and this program reads format {FORMAT}; use a newer version of the program"
                );
                return Err(KmsError::new(Code::EncryptedFileTooNew, message));
            }
            _ => return Err(malformed("it has no format")),
        }
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
        if length > MOST_BYTES {
            return Err(malformed("its header is too long"));
        }
        let mut rest = vec![0; length];
        read_exact(source, &mut rest)?.ok_or_else(|| malformed("its header is cut"))?;
        Self::parse(&rest).ok_or_else(|| malformed("its header is damaged"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, mut rest) = bytes.split_first()?;
        if !(1..=MOST_KEYS).contains(&usize::from(*number)) {
            return None;
        }
        let mut keys = Vec::new();
        for _ in 0..*number {
            let (key, after) = WrappedKey::read(rest)?;
            keys.push(key);
            rest = after;
        }
        let (salt, check) = rest.split_first_chunk()?;
        Some(Self { keys, salt: *salt, check: check.try_into().ok()? })
    }
}

/// Which former keys the data keeps when it is encrypted to other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Keep all former keys: they still open it.
    Former,
    /// Keep none: only the new keys open it.
    Nothing,
}

/// Fills `bytes`; `None` if the source ends too early.
fn read_exact(source: &mut impl Read, bytes: &mut [u8]) -> Result<Option<()>> {
    match source.read_exact(bytes) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(format::cannot_read(error)),
    }
}
