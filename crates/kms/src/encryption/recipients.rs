//! Recipients and identities as texts and files.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::age::{AgeIdentity, AgeRecipient};
use super::key_file::read_secret_file;
use super::provider::{KeyEncryptionKey, KeyProvider, WrappingParams, malformed_identity, only_encrypts};
use crate::algorithm::{Algorithm, KeyUsage};
use crate::backend::{Backends, KeyMaterial, PrivateKey, SOFTWARE};
use crate::error::{Code, KmsError, Result};
use crate::public_key::{NamedPublicKey, PublicKey};
use crate::{encoding, files};

/// The public half of a key pair, to which data can be encrypted.
///
/// The text form is `age1...`, `x-wing:BASE64`, or a public key file of a keystore's key
/// ([`NamedPublicKey`](crate::NamedPublicKey)).
#[non_exhaustive]
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
/// The text form is that of an identity file: one line `AGE-SECRET-KEY-1...` or
/// `x-wing-secret:BASE64`. Empty lines and lines that begin with `#` are ignored. `age-keygen`
/// writes such files. [`Identity::read_all`] reads files with several lines.
///
/// ```
/// use bulla_kms::encryption::{Identity, IdentityKind};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = &folder.path().join("identity");
/// let identity = Identity::generate(IdentityKind::XWing)?;
/// identity.write(path)?;
/// assert_eq!(Identity::read_all(path)?[0].recipient(), identity.recipient());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Identity {
    /// X25519, as age has it.
    Age(AgeIdentity),
    /// X25519 and ML-KEM-768 together.
    XWing(XWingIdentity),
}

/// The most bytes of a file with identities.
const MAX_IDENTITIES: usize = 64 << 10;

/// The kind of identity that [`Identity::generate`] makes.
#[non_exhaustive]
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

    /// Returns the secret text, which parses as the same identity: for a program that keeps it in a
    /// file of its own, encrypted.
    ///
    /// ```
    /// use bulla_kms::encryption::{Identity, IdentityKind};
    ///
    /// let identity = Identity::generate(IdentityKind::Age)?;
    /// let same: Identity = identity.to_secret_text().parse()?;
    /// assert_eq!(same.recipient(), identity.recipient());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn to_secret_text(&self) -> Zeroizing<String> {
        match self {
            Self::Age(identity) => identity.secret(),
            Self::XWing(identity) => identity.secret(),
        }
    }

    /// Writes an identity file with mode 0600. When this returns, the file is complete and on the
    /// disk.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if something exists at `path`: an identity is never replaced. Errors
    /// of writing.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = Zeroizing::new(format!("# recipient: {}\n", self.recipient()));
        let secret = self.to_secret_text();
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
        let mut all = Self::read_all(path)?;
        match (all.pop(), all.len()) {
            (Some(identity), 0) => Ok(identity),
            (_, others) => {
                let message = format!("{} has {} identities, not one", path.display(), others + 1);
                Err(KmsError::new(Code::MalformedKeyFile, message))
            }
        }
    }

    /// Reads an identity file with one or more identities, as age takes it: one a line.
    ///
    /// # Errors
    /// The errors of [`Identity::read`].
    pub fn read_all(path: &Path) -> Result<Vec<Self>> {
        let refused = |why: &str| {
            let message = format!("{} is not an identity file: {why}", path.display());
            KmsError::new(Code::MalformedKeyFile, message)
        };
        let text = read_secret_file(path, MAX_IDENTITIES)?;
        if text.len() == MAX_IDENTITIES {
            return Err(refused("it is too long"));
        }
        Self::parse_all(&text).map_err(|error| refused(&error.message))
    }

    /// The error quotes nothing of the text.
    fn parse_all(text: &str) -> Result<Vec<Self>> {
        // Other secrets that age takes as identities.
        let others = [
            (
                "-----BEGIN AGE ENCRYPTED FILE",
                "an identity that a passphrase protects: decrypt it with `age --decrypt` first",
            ),
            (
                "-----BEGIN ",
                "a private key of SSH or another program: create an identity with `bulla keygen`",
            ),
            ("AGE-PLUGIN-", "an identity of an age plugin: only `age --decrypt` uses plugins"),
            ("age1", "a recipient, which only encrypts: give the identity that belongs to it"),
            ("x-wing:", "a recipient, which only encrypts: give the identity that belongs to it"),
        ];
        if let Some((_, what)) =
            others.iter().find(|(start, _)| text.lines().any(|line| line.starts_with(start)))
        {
            return Err(KmsError::new(Code::MalformedKeyFile, format!("it has {what}")));
        }
        let lines =
            text.lines().map(str::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let parse = |line: &str| match line.starts_with(SECRET_PREFIX) {
            true => line.parse().map(Self::XWing),
            false => line.parse().map(Self::Age),
        };
        let all = lines.map(parse).collect::<Result<Vec<_>>>()?;
        if all.is_empty() { Err(malformed_identity()) } else { Ok(all) }
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
            text => Err(not_a_recipient(text)),
        }
    }
}

/// The error for a text that is no recipient. It quotes nothing of the text, which may be a secret.
fn not_a_recipient(text: &str) -> KmsError {
    let is_identity =
        ["AGE-SECRET-KEY-", "AGE-PLUGIN-", SECRET_PREFIX].iter().any(|start| text.starts_with(start));
    KmsError::new(
        Code::InvalidPublicKey,
        if is_identity {
            "this is an identity, which is secret: give its recipient, which `bulla keygen` and `age-keygen` print"
        } else if text.starts_with("ssh-") || text.starts_with("ecdsa-") || text.starts_with("sk-") {
            "this is a key of SSH, and bulla does not encrypt to those: ask for a recipient that `bulla keygen` or \
             `age-keygen` printed"
        } else {
            "not a recipient: it is age1..., x-wing:..., or the public key file of a keystore's key"
        },
    )
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
        let mut all = Self::parse_all(text)?;
        match (all.pop(), all.len()) {
            (Some(identity), 0) => Ok(identity),
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

            fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
                self.provider().new_kek()
            }

            fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
                self.provider().recover_kek(params)
            }
        }
    )+};
}

provider_of_its_variant!(Recipient, Identity);

const X_WING_METHOD: &str = "x-wing";
pub(crate) const KEYSTORE_METHOD: &str = "keystore";

/// A public key of X-Wing: `x-wing:BASE64`. The wrapping parameters are the ciphertext that carries
/// the key.
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
        X_WING_METHOD
    }

    /// The first 16 bytes of the public key's BLAKE3 digest, in hexadecimal: the key itself is too
    /// long for a name.
    fn key_name(&self) -> String {
        encoding::hex(&bulla_blake3::hash(self.0.as_bytes()).as_bytes()[..16])
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let made = self.0.encapsulate()?;
        Ok((made.shared_key, made.ciphertext))
    }

    fn recover_kek(&self, _params: &WrappingParams) -> Result<KeyEncryptionKey> {
        Err(only_encrypts(self))
    }
}

impl KeyProvider for XWingIdentity {
    fn method(&self) -> &str {
        X_WING_METHOD
    }

    fn key_name(&self) -> String {
        self.recipient.key_name()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        self.recipient.new_kek()
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        self.key.decapsulate(params.bytes()).map_err(|_| self.wrong_key())
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
            format!("nothing can be encrypted to a key of {}: name one of x-wing or of age", key.algorithm());
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
/// [`KeystoreProvider`](crate::KeystoreProvider) opens what is encrypted to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeystoreRecipient(NamedPublicKey);

impl KeystoreRecipient {
    /// The recipient with this public key.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if its algorithm does not encapsulate keys.
    pub fn new(key: NamedPublicKey) -> Result<Self> {
        if key.public_key.algorithm().usage() == KeyUsage::KeyEncapsulation {
            return Ok(Self(key));
        }
        let message = format!("the key {} signs, and nothing can be encrypted to it", key.key);
        Err(KmsError::new(Code::KeyUsageMismatch, message))
    }
}

impl KeyProvider for KeystoreRecipient {
    fn method(&self) -> &str {
        KEYSTORE_METHOD
    }

    fn key_name(&self) -> String {
        self.0.key.to_string()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let made = self.0.public_key.encapsulate()?;
        Ok((made.shared_key, made.ciphertext))
    }

    fn recover_kek(&self, _params: &WrappingParams) -> Result<KeyEncryptionKey> {
        Err(only_encrypts(self))
    }
}
