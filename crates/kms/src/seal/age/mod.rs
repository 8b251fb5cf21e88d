//! Recipients of age (age-encryption.org/v1, native X25519 recipients), by the crate `age`.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::provider::{Capsule, KeyEncryptionKey, KeyProvider};
use super::random;
use crate::error::{Code, KmsError, Result};

const METHOD: &str = "age-x25519";

/// The public half: `age1...`, as `age-keygen` prints it.
///
/// The capsule is a whole file in age's format with the 32 bytes of the key; the program `age` opens it.
#[derive(Clone, PartialEq, Eq)]
pub struct AgeRecipient(age::x25519::Recipient);

/// The private half: `AGE-SECRET-KEY-1...`.
#[derive(Clone)]
pub struct AgeIdentity(age::x25519::Identity);

impl AgeIdentity {
    /// A new identity.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub fn generate() -> Result<Self> {
        // Whether there are random bytes is asked here, where it can be answered by an error.
        random(&mut [0])?;
        Ok(Self(age::x25519::Identity::generate()))
    }

    /// What others seal to.
    pub fn recipient(&self) -> AgeRecipient {
        AgeRecipient(self.0.to_public())
    }

    /// The secret text.
    pub(super) fn secret(&self) -> secrecy::SecretString {
        self.0.to_string()
    }
}

impl KeyProvider for AgeRecipient {
    fn method(&self) -> &str {
        METHOD
    }

    fn key_name(&self) -> String {
        self.to_string()
    }

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let mut key = Zeroizing::new([0; 32]);
        random(&mut *key)?;
        let capsule = age::encrypt(&self.0, &*key).map_err(|error| {
            KmsError::new(Code::Io, format!("cannot seal to {self}: {error}")).with_source(error)
        })?;
        Ok((key, capsule))
    }

    fn key(&self, _capsule: &Capsule) -> Result<KeyEncryptionKey> {
        Err(super::only_seals(self))
    }
}

impl KeyProvider for AgeIdentity {
    fn method(&self) -> &str {
        METHOD
    }

    fn key_name(&self) -> String {
        self.recipient().to_string()
    }

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        self.recipient().new_key()
    }

    fn key(&self, capsule: &Capsule) -> Result<KeyEncryptionKey> {
        let key = age::decrypt(&self.0, capsule.bytes()).map_err(|_| self.wrong_key())?;
        let key = Zeroizing::new(key);
        key.as_slice().try_into().map(Zeroizing::new).map_err(|_| self.wrong_key())
    }
}

impl fmt::Display for AgeRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for AgeRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgeRecipient({self})")
    }
}

/// Shows the public half.
impl fmt::Debug for AgeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgeIdentity({})", self.recipient())
    }
}

impl FromStr for AgeRecipient {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |why| {
            let message = format!("not a recipient of age, which is of the form age1...: {why}");
            KmsError::new(Code::InvalidPublicKey, message)
        };
        text.parse().map(Self).map_err(invalid)
    }
}

impl FromStr for AgeIdentity {
    type Err = KmsError;

    /// The error shows nothing of the text.
    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Self).map_err(|_| super::malformed_identity())
    }
}
