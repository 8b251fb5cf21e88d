//! The names of keys.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::algorithm::Algorithm;
use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyFamily {
    tenant: Name,
    purpose: Name,
    algorithm: Algorithm,
    uuid: Uuid,
}

impl KeyFamily {
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

    /// One version of the key.
    pub fn version(&self, version: NonZeroU32) -> KeyId {
        KeyId { family: self.clone(), version }
    }
}

impl FromStr for KeyFamily {
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

impl fmt::Display for KeyFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.tenant, self.purpose, self.algorithm, self.uuid.hyphenated())
    }
}

/// One version of one key: `TENANT/PURPOSE/ALGORITHM/UUID/vN`, N from 1 without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId {
    family: KeyFamily,
    version: NonZeroU32,
}

impl KeyId {
    /// The name without the version.
    pub fn family(&self) -> &KeyFamily {
        &self.family
    }

    /// The version, from 1.
    pub fn version(&self) -> u32 {
        self.version.get()
    }
}

impl FromStr for KeyId {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let form = || invalid(format!("{text:?} does not have the form TENANT/PURPOSE/ALGORITHM/UUID/vN"));
        let (family, version) = text.rsplit_once('/').ok_or_else(form)?;
        let digits = version.strip_prefix('v').ok_or_else(form)?;
        let family = family.parse()?;
        let version: NonZeroU32 = digits.parse().map_err(|_| {
            invalid(format!("the version {version:?} is not v and a number from 1 to {}", u32::MAX))
        })?;
        if version.to_string() != digits {
            return Err(invalid(format!("the version v{digits} has a sign or a leading zero")));
        }
        Ok(Self { family, version })
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/v{}", self.family, self.version)
    }
}

/// The key that signs: a family, which signs by its newest version, or one exact version, which must then be the newest
/// one.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// The head of the family.
    Family(&'a KeyFamily),
    /// This version, if it is the head.
    Exact(&'a KeyId),
}

impl<'a> KeyRef<'a> {
    /// The key's name without its version.
    pub fn family(self) -> &'a KeyFamily {
        match self {
            Self::Family(family) => family,
            Self::Exact(id) => id.family(),
        }
    }
}

impl<'a> From<&'a KeyFamily> for KeyRef<'a> {
    fn from(family: &'a KeyFamily) -> Self {
        Self::Family(family)
    }
}

impl<'a> From<&'a KeyId> for KeyRef<'a> {
    fn from(id: &'a KeyId) -> Self {
        Self::Exact(id)
    }
}

/// A key as a whole or one version of it: a [`KeyRef`] that owns its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyName {
    /// The key as a whole.
    Family(KeyFamily),
    /// One version.
    Version(KeyId),
}

impl From<KeyRef<'_>> for KeyName {
    fn from(key: KeyRef<'_>) -> Self {
        match key {
            KeyRef::Family(family) => Self::Family(family.clone()),
            KeyRef::Exact(id) => Self::Version(id.clone()),
        }
    }
}

impl KeyName {
    /// The same, borrowed.
    pub fn as_ref(&self) -> KeyRef<'_> {
        match self {
            Self::Family(family) => KeyRef::Family(family),
            Self::Version(id) => KeyRef::Exact(id),
        }
    }
}

impl From<KeyFamily> for KeyName {
    fn from(family: KeyFamily) -> Self {
        Self::Family(family)
    }
}

impl From<KeyId> for KeyName {
    fn from(id: KeyId) -> Self {
        Self::Version(id)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family(family) => family.fmt(f),
            Self::Version(id) => id.fmt(f),
        }
    }
}

impl FromStr for KeyName {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Self::Version).or_else(|_| text.parse().map(Self::Family))
    }
}

serde_as_text!(Name, KeyFamily, KeyId, KeyName);
