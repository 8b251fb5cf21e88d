//! The names of keys.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::algorithm::Algorithm;
use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};

/// The label and the purpose of a tenant's root key, which signs its tokens and nothing else.
///
/// A message chosen by a caller could be a token's block, which has no prefix of its own. Every
/// build refuses to sign it, because builds with different features may use one store.
pub const TOKEN_ROOT_PURPOSE: &str = "tokens";

/// The purpose of keys that sign JSON Web Tokens and statements of bulla, and nothing that a caller
/// chooses: [`Keystore::sign_jwt`](crate::Keystore::sign_jwt).
///
/// A message chosen by a caller could be a token that nobody has checked.
pub const JWT_PURPOSE: &str = "jwt-issuer";

/// The most characters that a [`Name`] may have.
const MAX_NAME: usize = 64;

fn invalid(message: impl Into<String>) -> KmsError {
    KmsError::new(Code::InvalidId, message)
}

/// A tenant, a purpose or a label: 1 to 64 of `a-z 0-9 - _ .`, the first one a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses `text`; `role` (tenant, purpose, label) is for the error.
    fn parse(role: &str, text: &str) -> Result<Self> {
        let first = text.bytes().next().ok_or_else(|| invalid(format!("the {role} is empty")))?;
        if text.len() > MAX_NAME {
            return Err(invalid(format!("the {role} is longer than {MAX_NAME} characters")));
        }
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !plain(first) || !text.bytes().all(|byte| plain(byte) || b"-_.".contains(&byte)) {
            return Err(invalid(format!(
                "the {role} {text:?} is invalid: use a-z and 0-9, and - _ . after the first character"
            )));
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for Name {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse("name", text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// All versions of one key: `TENANT/PURPOSE/ALGORITHM/UUID`.
///
/// ```
/// use bulla_kms::{KeyId, KeyVersionId};
///
/// let version: KeyVersionId = "local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3".parse()?;
/// let key: &KeyId = version.key_id();
/// assert_eq!((key.tenant().as_str(), key.purpose().as_str(), version.version()), ("local", "files", 3));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// ```
/// use std::num::NonZeroU32;
///
/// use bulla_kms::{Algorithm, KeyId, KeyRef};
///
/// let key: KeyId = "local/files/ed25519/01a1f9cb-4db6-7ab6-885e-4d31be52b7da".parse()?;
/// assert_eq!((key.tenant().as_str(), key.purpose().as_str()), ("local", "files"));
/// assert_eq!(key.algorithm(), Algorithm::Ed25519);
/// println!("{}", key.uuid());
///
/// let second = key.version(NonZeroU32::new(2).unwrap());
/// assert_eq!(second.to_string(), format!("{key}/v2"));
/// assert_eq!((second.key_id(), second.version()), (&key, 2));
/// assert_eq!(KeyRef::from(&second).key_id(), &key);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId {
    tenant: Name,
    purpose: Name,
    algorithm: Algorithm,
    uuid: Uuid,
}

impl KeyId {
    /// The name of a key from its parts.
    pub fn new(tenant: Name, purpose: Name, algorithm: Algorithm, uuid: Uuid) -> Self {
        Self { tenant, purpose, algorithm, uuid }
    }

    /// The tenant that owns the key.
    pub fn tenant(&self) -> &Name {
        &self.tenant
    }

    /// What the key is for.
    pub fn purpose(&self) -> &Name {
        &self.purpose
    }

    /// The key's algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key's UUID; keys made by this crate have version 7 (RFC 9562).
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Whether `text` is the text form of this name.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        let mut uuid = Uuid::encode_buffer();
        let uuid: &str = self.uuid.hyphenated().encode_lower(&mut uuid);
        text.split('/').eq([self.tenant.as_str(), self.purpose.as_str(), self.algorithm.as_str(), uuid])
    }

    /// One version of the key.
    pub fn version(&self, version: NonZeroU32) -> KeyVersionId {
        KeyVersionId { key_id: self.clone(), version }
    }
}

impl FromStr for KeyId {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split('/');
        let (Some(tenant), Some(purpose), Some(algorithm), Some(uuid), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid(format!("{text:?} does not have the form TENANT/PURPOSE/ALGORITHM/UUID")));
        };
        Ok(Self {
            tenant: Name::parse("tenant", tenant)?,
            purpose: Name::parse("purpose", purpose)?,
            algorithm: algorithm.parse()?,
            uuid: parse_uuid(uuid)?,
        })
    }
}

/// A UUID in its one canonical form: lower case, with hyphens.
fn parse_uuid(text: &str) -> Result<Uuid> {
    let error = || invalid(format!("{text:?} is not a UUID in lower case with hyphens"));
    let uuid = Uuid::try_parse(text).map_err(|_| error())?;
    let canonical = uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text;
    if canonical { Ok(uuid) } else { Err(error()) }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.tenant, self.purpose, self.algorithm, self.uuid.hyphenated())
    }
}

/// One version of one key: `TENANT/PURPOSE/ALGORITHM/UUID/vN`, N from 1 without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyVersionId {
    key_id: KeyId,
    version: NonZeroU32,
}

impl KeyVersionId {
    /// The name without the version.
    pub fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// The version, from 1.
    pub fn version(&self) -> u32 {
        self.version.get()
    }
}

impl FromStr for KeyVersionId {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let form = || invalid(format!("{text:?} does not have the form TENANT/PURPOSE/ALGORITHM/UUID/vN"));
        let (key_id, version) = text.rsplit_once('/').ok_or_else(form)?;
        let digits = version.strip_prefix('v').ok_or_else(form)?;
        let key_id = key_id.parse()?;
        let version: NonZeroU32 = digits.parse().map_err(|_| {
            invalid(format!("the version {version:?} is not v and a number from 1 to {}", u32::MAX))
        })?;
        if version.to_string() != digits {
            return Err(invalid(format!("the version v{digits} has a sign or a leading zero")));
        }
        Ok(Self { key_id, version })
    }
}

impl fmt::Display for KeyVersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/v{}", self.key_id, self.version)
    }
}

/// The key that signs: a key, which signs by its latest version, or one version, which must then be
/// the newest one.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// The latest version of the key.
    Key(&'a KeyId),
    /// This version, if it is the latest version.
    Version(&'a KeyVersionId),
}

impl<'a> KeyRef<'a> {
    /// The key's name without its version.
    pub fn key_id(self) -> &'a KeyId {
        match self {
            Self::Key(key_id) => key_id,
            Self::Version(id) => id.key_id(),
        }
    }
}

impl<'a> From<&'a KeyId> for KeyRef<'a> {
    fn from(key_id: &'a KeyId) -> Self {
        Self::Key(key_id)
    }
}

impl<'a> From<&'a KeyVersionId> for KeyRef<'a> {
    fn from(id: &'a KeyVersionId) -> Self {
        Self::Version(id)
    }
}

/// A key as a whole or one version of it: a [`KeyRef`] that owns its name.
///
/// ```
/// use bulla_kms::{Algorithm, KeySelector, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// // As a user types it: with a version, or without one.
/// for text in [key.to_string(), key.key_id().to_string()] {
///     let selector: KeySelector = text.parse()?;
///     assert_eq!(selector.key_id(), key.key_id());
///     assert_eq!(keystore.sign(selector.as_ref(), b"a message")?.key, key);
/// }
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySelector {
    /// The key as a whole.
    Key(KeyId),
    /// One version.
    Version(KeyVersionId),
}

impl From<KeyRef<'_>> for KeySelector {
    fn from(key: KeyRef<'_>) -> Self {
        match key {
            KeyRef::Key(key_id) => Self::Key(key_id.clone()),
            KeyRef::Version(id) => Self::Version(id.clone()),
        }
    }
}

impl KeySelector {
    /// The key without a version.
    pub fn key_id(&self) -> &KeyId {
        self.as_ref().key_id()
    }

    /// A key or a key version, borrowed.
    pub fn as_ref(&self) -> KeyRef<'_> {
        match self {
            Self::Key(key_id) => KeyRef::Key(key_id),
            Self::Version(id) => KeyRef::Version(id),
        }
    }
}

impl From<KeyId> for KeySelector {
    fn from(key_id: KeyId) -> Self {
        Self::Key(key_id)
    }
}

impl From<KeyVersionId> for KeySelector {
    fn from(id: KeyVersionId) -> Self {
        Self::Version(id)
    }
}

impl fmt::Display for KeySelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key_id) => key_id.fmt(f),
            Self::Version(id) => id.fmt(f),
        }
    }
}

impl FromStr for KeySelector {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Self::Version).or_else(|_| text.parse().map(Self::Key))
    }
}

serde_as_text!(Name, KeyId, KeyVersionId, KeySelector);
