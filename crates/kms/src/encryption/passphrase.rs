//! Key-encryption keys from a passphrase: Argon2id (RFC 9106).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use secrecy::{ExposeSecret as _, SecretString};
use unicode_normalization::UnicodeNormalization as _;
use zeroize::Zeroizing;

use super::provider::{KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::random;

/// The cost of Argon2id (RFC 9106).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Argon2Cost {
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
    pub(super) lanes: u32,
}

impl Argon2Cost {
    /// 64 MiB and three passes: the second recommended option of RFC 9106, section 4, with one lane
    /// because the lanes would not run in parallel here. It exceeds OWASP's minimum (19 MiB, two
    /// passes).
    pub(crate) const DEFAULT: Self = Self { memory_kib: 64 * 1024, passes: 3, lanes: 1 };

    /// The lowest cost that the algorithm allows; only for tests.
    #[cfg(test)]
    pub(crate) const MIN: Self = Self { memory_kib: 8, passes: 1, lanes: 1 };

    /// The highest cost that a store may ask for, so that an edited store cannot exhaust the
    /// machine's memory or time.
    pub(super) const MAX: Self = Self { memory_kib: 256 * 1024, passes: 16, lanes: 16 };

    fn params(self) -> Result<Params> {
        let within = self.memory_kib <= Self::MAX.memory_kib
            && self.passes <= Self::MAX.passes
            && self.lanes <= Self::MAX.lanes;
        let error = || KmsError::corrupt("it asks for a cost of Argon2id that is out of bounds");
        if !within {
            return Err(error());
        }
        Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).map_err(|_| error())
    }

    fn derive(self, passphrase: &[u8], salt: &[u8]) -> Result<KeyEncryptionKey> {
        let params = self.params()?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(params.block_count()).map_err(|error| {
            let message = format!("there is no memory for Argon2id: it needs {} KiB", self.memory_kib);
            KmsError::new(Code::Io, message).with_source(error)
        })?;
        memory.resize(params.block_count(), Block::new());
        let mut key = Zeroizing::new([0; 32]);
        let derived = Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(passphrase, salt, &mut *key, &mut memory[..]);
        // Wipe the memory: the key can be computed from the last blocks.
        memory.iter_mut().for_each(|block| zeroize::Zeroize::zeroize(block.as_mut()));
        derived.map_err(|error| {
            KmsError::new(Code::InvalidArgument, format!("the passphrase cannot be used: {error}"))
                .with_source(error)
        })?;
        Ok(key)
    }

    /// memory in KiB, passes, lanes: 4 bytes each, big-endian.
    fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        for (place, number) in bytes.chunks_exact_mut(4).zip([self.memory_kib, self.passes, self.lanes]) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8; 12]) -> Self {
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { memory_kib: number(0), passes: number(4), lanes: number(8) }
    }
}

/// A passphrase as a provider of key-encryption keys: Argon2id of the UTF-8 bytes of its
/// normalization form C, with 64 MiB, three passes and one lane. The wrapping parameters have the
/// cost and a salt of 32 random bytes.
///
/// It remembers the last key that it recovered, as long as it or a copy of it exists: what opens
/// one keystore again and again computes Argon2id once.
#[derive(Clone)]
pub struct Passphrase {
    secret: SecretString,
    recovered: Arc<Mutex<Option<(WrappingParams, KeyEncryptionKey)>>>,
    /// The cost of a new key; an old key's cost is in its params.
    cost: Argon2Cost,
}

impl Passphrase {
    pub(crate) const METHOD: &str = "passphrase";

    /// The provider of a passphrase.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if it is empty.
    pub fn new(secret: SecretString) -> Result<Self> {
        Self::with_cost(secret, Argon2Cost::DEFAULT)
    }

    pub(crate) fn with_cost(secret: SecretString, cost: Argon2Cost) -> Result<Self> {
        if secret.expose_secret().is_empty() {
            return Err(KmsError::new(Code::InvalidArgument, "the passphrase is empty"));
        }
        Ok(Self { secret: normalized(&secret), recovered: Arc::default(), cost })
    }
}

/// The passphrase in Unicode's normalization form C. Systems and keyboards write the same letter in
/// different ways: `é` is one character or two, and nobody sees which.
fn normalized(secret: &SecretString) -> SecretString {
    let text = secret.expose_secret();
    // The form has at most three times the length, and a growing string would leave copies of the
    // secret behind.
    let mut normalized = Zeroizing::new(String::with_capacity(3 * text.len()));
    normalized.extend(text.nfc());
    SecretString::from(normalized.as_str())
}

impl KeyProvider for Passphrase {
    fn method(&self) -> &str {
        Self::METHOD
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let mut salt = [0; 32];
        random::fill(&mut salt)?;
        let key = self.cost.derive(self.secret.expose_secret().as_bytes(), &salt)?;
        Ok((key, [&self.cost.to_bytes()[..], &salt].concat()))
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        let mut recovered = self.recovered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, key)) = recovered.as_ref().filter(|(of, _)| of == params) {
            return Ok(key.clone());
        }
        let malformed = || KmsError::corrupt("what belongs to a passphrase is damaged: its salt is missing");
        let (cost, salt) = params.bytes().split_first_chunk().ok_or_else(malformed)?;
        if salt.len() != 32 {
            return Err(malformed());
        }
        let key = Argon2Cost::parse(cost).derive(self.secret.expose_secret().as_bytes(), salt)?;
        *recovered = Some((params.clone(), key.clone()));
        Ok(key)
    }

    fn wrong_key(&self) -> KmsError {
        KmsError::new(Code::WrongPassphrase, "the passphrase does not open it")
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of RFC 9106, section 5.3, uses a secret and associated data, which are not used
    /// here. So the default cost is checked against the reference program (`argon2 somesaltsomesalt
    /// -id -t 3 -k 65536 -p 1`).
    #[test]
    fn the_key_of_a_passphrase_is_that_of_argon2id() {
        let key = Argon2Cost::DEFAULT.derive(b"password", b"somesaltsomesalt").unwrap();
        let expected = "7664ad4ba1a3c999fcdd0991ffc2270f78302d2383233db5e7befc85d1bb1819";
        assert_eq!(bulla_blake3::Hash::from_bytes(*key).to_hex().as_str(), expected);
    }

    /// macOS and Linux, and two keyboards, may write one passphrase in two ways.
    #[test]
    fn a_passphrase_opens_however_its_letters_are_written() {
        let passphrase = |text: &str| Passphrase::with_cost(text.into(), Argon2Cost::MIN).unwrap();
        let (one, params) = passphrase("caf\u{e9} \u{1e69} \u{ac00}").new_kek().unwrap();
        let params = WrappingParams::new(Passphrase::METHOD, "", params).unwrap();
        let key = |text: &str| passphrase(text).recover_kek(&params).unwrap();
        assert_eq!(key("cafe\u{301} s\u{307}\u{323} \u{1100}\u{1161}"), one);
        assert_eq!(key("cafe\u{301} s\u{323}\u{307} \u{ac00}"), one);
        assert_ne!(key("cafe \u{1e69} \u{ac00}"), one);
        // Letters that only look alike stay different.
        assert_ne!(
            passphrase("\u{fb01}").recover_kek(&params).unwrap(),
            passphrase("fi").recover_kek(&params).unwrap()
        );
    }

    #[test]
    fn the_longest_expansion_of_a_passphrase_fits() {
        let longest = "\u{1d160}".repeat(100);
        let bytes = normalized(&longest.as_str().into()).expose_secret().len();
        assert_eq!(bytes, 3 * longest.len());
    }

    #[test]
    fn a_key_is_recovered_once() {
        let passphrase = Passphrase::with_cost("one".into(), Argon2Cost::MIN).unwrap();
        let params = || WrappingParams::new(Passphrase::METHOD, "", passphrase.new_kek().unwrap().1).unwrap();
        let (one, two) = (params(), params());
        let expected = passphrase.recover_kek(&one).unwrap();
        assert_ne!(passphrase.recover_kek(&two).unwrap(), expected);
        assert_eq!(passphrase.recover_kek(&one).unwrap(), expected);
        // What it remembers is what it returns, also from a copy.
        *passphrase.recovered.lock().unwrap() = Some((one.clone(), Zeroizing::new([7; 32])));
        assert_eq!(*passphrase.clone().recover_kek(&one).unwrap(), [7; 32]);
        assert_ne!(*passphrase.recover_kek(&two).unwrap(), [7; 32]);
    }

    #[test]
    fn an_empty_passphrase_is_refused() {
        assert_eq!(Passphrase::new("".into()).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn a_cost_out_of_bounds_is_refused_before_it_is_paid() {
        let passphrase = Passphrase::new("right".into()).unwrap();
        let most = Argon2Cost::MAX;
        for cost in [
            Argon2Cost { memory_kib: u32::MAX, ..most },
            Argon2Cost { memory_kib: most.memory_kib + 1, passes: 1, lanes: 1 },
            Argon2Cost { memory_kib: 8, passes: u32::MAX, lanes: 1 },
            Argon2Cost { memory_kib: 8, passes: 1, lanes: 2 },
            Argon2Cost { memory_kib: 0, passes: 0, lanes: 0 },
        ] {
            let bytes = [&cost.to_bytes()[..], &[0; 32]].concat();
            let hostile = WrappingParams::new(Passphrase::METHOD, "", bytes).unwrap();
            assert_eq!(passphrase.recover_kek(&hostile).unwrap_err().code, Code::KeystoreCorrupt, "{cost:?}");
        }
        let cut = WrappingParams::new(Passphrase::METHOD, "", vec![0; 20]).unwrap();
        assert_eq!(passphrase.recover_kek(&cut).unwrap_err().code, Code::KeystoreCorrupt);
    }

    #[test]
    fn a_passphrase_is_in_nothing_that_is_printed() {
        let passphrase = Passphrase::new("correct horse".into()).unwrap();
        assert!(!format!("{passphrase:?} {}", passphrase.wrong_key()).contains("horse"));
    }
}
