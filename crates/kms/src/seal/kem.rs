//! Recipients with key encapsulation: X-Wing (X25519 and ML-KEM-768 together), and the keys of a
//! keystore.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::provider::{Capsule, KeyEncryptionKey, KeyProvider, malformed_identity, only_seals};
use crate::algorithm::{Algorithm, Use};
use crate::backend::{Backends, KeyMaterial, PrivateKey, SOFTWARE};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::public_key::{NamedPublicKey, PublicKey};

const X_WING: &str = "x-wing";
pub(crate) const KEYSTORE: &str = "keystore";

/// A public key of X-Wing: `x-wing:BASE64`. The capsule is the ciphertext that carries the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XWingRecipient(PublicKey);

/// A private key of X-Wing: its seed of 32 bytes.
#[derive(Clone)]
pub struct XWingIdentity {
    seed: KeyMaterial,
    key: Arc<dyn PrivateKey>,
    recipient: XWingRecipient,
}

impl XWingIdentity {
    /// A new identity.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub fn generate() -> Result<Self> {
        Self::of(Backends::software().find(SOFTWARE, Algorithm::XWing)?.generate(Algorithm::XWing)?)
    }

    fn of(seed: KeyMaterial) -> Result<Self> {
        let key = Backends::software().find(SOFTWARE, Algorithm::XWing)?.load(Algorithm::XWing, &seed)?;
        let recipient = XWingRecipient(PublicKey::from_bytes(Algorithm::XWing, &key.public_key()?)?);
        Ok(Self { seed, key, recipient })
    }

    /// The recipient that others encrypt to.
    pub fn recipient(&self) -> XWingRecipient {
        self.recipient.clone()
    }

    /// The secret text: `x-wing-secret:BASE64`.
    pub(super) fn secret(&self) -> Zeroizing<String> {
        let base64 = Zeroizing::new(encoding::base64(&self.seed));
        Zeroizing::new([SECRET_PREFIX, &base64].concat())
    }
}

pub(super) const SECRET_PREFIX: &str = "x-wing-secret:";

impl KeyProvider for XWingRecipient {
    fn method(&self) -> &str {
        X_WING
    }

    /// The first 16 bytes of the public key's BLAKE3 digest, in hexadecimal: the key itself is too
    /// long for a name.
    fn key_name(&self) -> String {
        encoding::hex(&bulla_blake3::hash(self.0.as_bytes()).as_bytes()[..16])
    }

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let made = self.0.encapsulate()?;
        Ok((made.shared_key, made.ciphertext))
    }

    fn key(&self, _capsule: &Capsule) -> Result<KeyEncryptionKey> {
        Err(only_seals(self))
    }
}

impl KeyProvider for XWingIdentity {
    fn method(&self) -> &str {
        X_WING
    }

    fn key_name(&self) -> String {
        self.recipient.key_name()
    }

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        self.recipient.new_key()
    }

    fn key(&self, capsule: &Capsule) -> Result<KeyEncryptionKey> {
        self.key.decapsulate(capsule.bytes()).map_err(|_| self.wrong_key())
    }
}

impl fmt::Display for XWingRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Shows the name of the public half.
impl fmt::Debug for XWingIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XWingIdentity({})", self.key_name())
    }
}

impl FromStr for XWingRecipient {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let key: PublicKey = text.parse()?;
        if key.algorithm() == Algorithm::XWing {
            return Ok(Self(key));
        }
        let message =
            format!("nothing is sealed to a key of {}: name one of x-wing or of age", key.algorithm());
        Err(KmsError::new(Code::InvalidPublicKey, message))
    }
}

impl FromStr for XWingIdentity {
    type Err = KmsError;

    /// The error quotes nothing of the text.
    fn from_str(text: &str) -> Result<Self> {
        let seed = text.strip_prefix(SECRET_PREFIX).and_then(encoding::from_base64).map(Zeroizing::new);
        let seed = seed.filter(|seed| seed.len() == 32).ok_or_else(malformed_identity)?;
        Self::of(seed)
    }
}

/// A keystore's key as a recipient; its algorithm must be one for key encapsulation.
/// [`KeystoreIdentity`](crate::KeystoreIdentity) opens what is encrypted to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeystoreRecipient(NamedPublicKey);

impl KeystoreRecipient {
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if its algorithm is one for signatures.
    pub fn new(key: NamedPublicKey) -> Result<Self> {
        match key.public_key.algorithm().usage() {
            Use::KeyEncapsulation => Ok(Self(key)),
            Use::Signature => {
                let message = format!("the key {} signs, and nothing is sealed to it", key.key);
                Err(KmsError::new(Code::KeyUsageMismatch, message))
            }
        }
    }
}

impl KeyProvider for KeystoreRecipient {
    fn method(&self) -> &str {
        KEYSTORE
    }

    fn key_name(&self) -> String {
        self.0.key.to_string()
    }

    fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let made = self.0.public_key.encapsulate()?;
        Ok((made.shared_key, made.ciphertext))
    }

    fn key(&self, _capsule: &Capsule) -> Result<KeyEncryptionKey> {
        Err(only_seals(self))
    }
}
