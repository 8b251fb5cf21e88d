//! Recipients and identities as texts and files.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::age::{AgeIdentity, AgeRecipient};
use super::kem::{KeystoreRecipient, SECRET_PREFIX, XWingIdentity, XWingRecipient};
use super::provider::{Capsule, KeyEncryptionKey, KeyProvider, malformed_identity};
use crate::error::{Code, KmsError, Result};
use crate::{files, secret_file};

/// The public half of a key pair, to which data can be encrypted.
///
/// The text form is `age1...`, `x-wing:BASE64`, or a public key file of a keystore's key
/// ([`NamedPublicKey`](crate::NamedPublicKey)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// X25519, as age has it.
    Age(AgeRecipient),
    /// X25519 and ML-KEM-768 together.
    XWing(XWingRecipient),
    /// A key in a keystore.
    Keystore(KeystoreRecipient),
}

/// The private half, outside of a keystore.
///
/// The text form is that of an identity file: one line `AGE-SECRET-KEY-1...` or `x-wing-secret:BASE64`. Empty lines and lines that begin
/// with `#` are ignored. `age-keygen` writes such files.
#[derive(Clone, Debug)]
pub enum Identity {
    /// X25519, as age has it.
    Age(AgeIdentity),
    /// X25519 and ML-KEM-768 together.
    XWing(XWingIdentity),
}

/// The kind of identity that [`Identity::generate`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityKind {
    /// X25519: short, and readable by age. A future quantum computer can break it.
    Age,
    /// X25519 and ML-KEM-768 (X-Wing): breaking only one of them is not enough.
    XWing,
}

impl Identity {
    /// A new identity.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub fn generate(kind: IdentityKind) -> Result<Self> {
        Ok(match kind {
            IdentityKind::Age => Self::Age(AgeIdentity::generate()?),
            IdentityKind::XWing => Self::XWing(XWingIdentity::generate()?),
        })
    }

    /// The recipient that others encrypt to.
    pub fn recipient(&self) -> Recipient {
        match self {
            Self::Age(identity) => Recipient::Age(identity.recipient()),
            Self::XWing(identity) => Recipient::XWing(identity.recipient()),
        }
    }

    /// Writes an identity file with mode 0600. When this returns, the file is complete and on the disk.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if something exists at `path`: an identity is never replaced. Errors of writing.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = Zeroizing::new(format!("# recipient: {}\n", self.recipient()));
        let secret = match self {
            Self::Age(identity) => identity.secret(),
            Self::XWing(identity) => identity.secret(),
        };
        // Reserve first: growing the buffer would leave a copy of the secret behind.
        text.reserve_exact(secret.len() + 1);
        text.push_str(&secret);
        text.push('\n');
        files::create(path, text.as_bytes())
    }

    /// Reads an identity file, if its mode, owner and type are safe: the rules are those of a
    /// [`KeyFile`](crate::KeyFile).
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::KeyFileMode`], [`Code::KeyFileOwner`], [`Code::KeyFileType`],
    /// [`Code::MalformedKeyFile`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = secret_file::read(path, 16 << 10)?;
        text.parse().map_err(|_| {
            let message = format!("{} is not an identity file: its content is malformed", path.display());
            KmsError::new(Code::MalformedKeyFile, message)
        })
    }

    fn provider(&self) -> &dyn KeyProvider {
        match self {
            Self::Age(identity) => identity,
            Self::XWing(identity) => identity,
        }
    }
}

impl Recipient {
    fn provider(&self) -> &dyn KeyProvider {
        match self {
            Self::Age(recipient) => recipient,
            Self::XWing(recipient) => recipient,
            Self::Keystore(recipient) => recipient,
        }
    }
}

impl FromStr for Recipient {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        if text.starts_with("bulla public key ") {
            return Ok(Self::Keystore(KeystoreRecipient::new(text.parse()?)?));
        }
        match text.trim_ascii() {
            text if text.starts_with("age1") => Ok(Self::Age(text.parse()?)),
            text if text.starts_with("x-wing:") => Ok(Self::XWing(text.parse()?)),
            _ => Err(KmsError::new(
                Code::InvalidPublicKey,
                "not a recipient: it is age1..., x-wing:..., or the public key file of a keystore's key",
            )),
        }
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age(recipient) => recipient.fmt(f),
            Self::XWing(recipient) => recipient.fmt(f),
            Self::Keystore(recipient) => f.write_str(&recipient.key_name()),
        }
    }
}

impl FromStr for Identity {
    type Err = KmsError;

    /// The error quotes nothing of the text.
    fn from_str(text: &str) -> Result<Self> {
        let mut lines =
            text.lines().map(str::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) if line.starts_with(SECRET_PREFIX) => Ok(Self::XWing(line.parse()?)),
            (Some(line), None) => Ok(Self::Age(line.parse()?)),
            _ => Err(malformed_identity()),
        }
    }
}

/// Implements the provider trait by the contained variant.
macro_rules! provider_of_its_variant {
    ($($type:ty),+) => {$(
        impl KeyProvider for $type {
            fn method(&self) -> &str {
                self.provider().method()
            }

            fn key_name(&self) -> String {
                self.provider().key_name()
            }

            fn new_key(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
                self.provider().new_key()
            }

            fn key(&self, capsule: &Capsule) -> Result<KeyEncryptionKey> {
                self.provider().key(capsule)
            }
        }
    )+};
}

provider_of_its_variant!(Recipient, Identity);
