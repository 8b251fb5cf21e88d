//! What a token permits, how it can be restricted, and the requests that are checked against it.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, Name};
use crate::time::Timestamp;

/// An operation that a token may permit. The names are stable.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenOperation {
    /// Signing a message, a digest or a statement.
    Sign,
    /// Verifying in the keystore.
    Verify,
    /// Decapsulating a key.
    Decapsulate,
    /// Deriving a shared secret with the public key of a peer.
    DeriveSharedSecret,
    /// Encrypting.
    Encrypt,
    /// Decrypting.
    Decrypt,
    /// Encrypting a ciphertext again with the latest version. The plaintext stays in the keystore.
    Rewrap,
    /// Making data keys.
    GenerateDataKey,
    /// Making MACs.
    Mac,
    /// Verifying MACs.
    VerifyMac,
    /// Making keys.
    Create,
    /// Importing keys and versions.
    Import,
    /// Exporting a private key, wrapped for a recipient.
    Export,
    /// Exporting a private key as plain text.
    ExportPlaintext,
    /// Making the next version of a key.
    Rotate,
    /// Changing a key: its label, rotation policy or minimum version; disabling and enabling it;
    /// revoking a version.
    Update,
    /// Scheduling destruction, and destroying.
    Destroy,
    /// Canceling a scheduled destruction.
    CancelDestruction,
    /// Reading public keys, attestations and lists.
    Read,
    /// Reading the audit log.
    Audit,
    /// Making and restoring backups.
    Backup,
    /// Using a key without the approvals that it needs, in an emergency.
    OverrideApproval,
}

impl TokenOperation {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Sign,
        Self::Verify,
        Self::Decapsulate,
        Self::DeriveSharedSecret,
        Self::Encrypt,
        Self::Decrypt,
        Self::Rewrap,
        Self::GenerateDataKey,
        Self::Mac,
        Self::VerifyMac,
        Self::Create,
        Self::Import,
        Self::Export,
        Self::ExportPlaintext,
        Self::Rotate,
        Self::Update,
        Self::Destroy,
        Self::CancelDestruction,
        Self::Read,
        Self::Audit,
        Self::Backup,
        Self::OverrideApproval,
    ];

    /// The name in a token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::Decapsulate => "decapsulate",
            Self::DeriveSharedSecret => "derive_shared_secret",
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
            Self::Rewrap => "rewrap",
            Self::GenerateDataKey => "generate_data_key",
            Self::Mac => "mac",
            Self::VerifyMac => "verify_mac",
            Self::Create => "create",
            Self::Import => "import",
            Self::Export => "export",
            Self::ExportPlaintext => "export_plaintext",
            Self::Rotate => "rotate",
            Self::Update => "update",
            Self::Destroy => "destroy",
            Self::CancelDestruction => "restore",
            Self::Read => "read",
            Self::Audit => "audit",
            Self::Backup => "backup",
            Self::OverrideApproval => "override_approval",
        }
    }
}

impl fmt::Display for TokenOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TokenOperation {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|operation| operation.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|operation| operation.as_str()).collect();
            let message = format!("the operation {text:?} is unknown; known are: {}", names.join(", "));
            KmsError::new(Code::InvalidArgument, message)
        })
    }
}

serde_as_text!(TokenOperation);

/// The keys of a tenant that a grant covers.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedKeys {
    /// All keys, also keys that are created later, and operations without a key, for example to
    /// create one.
    All,
    /// These keys, in all their versions.
    These(Vec<KeyId>),
}

/// The permissions of a new token.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The tenant that owns the keys.
    pub tenant: Name,
    /// The keys that it covers.
    pub keys: GrantedKeys,
    /// The permitted operations; at least one.
    pub operations: Vec<TokenOperation>,
    /// The names of the policies that must also permit each request: those of a service's settings.
    /// With none, operations and keys alone decide.
    pub policies: Vec<Name>,
    /// The expiry time, to the second; fractions of a second are cut off.
    pub expires: Timestamp,
    /// The name of the person or program that gets the token. The audit log has it with each
    /// operation.
    pub holder: Option<Holder>,
}

impl Grant {
    /// The permission to do these operations with these keys until `expires`.
    pub fn new(tenant: Name, keys: GrantedKeys, operations: Vec<TokenOperation>, expires: Timestamp) -> Self {
        Self { tenant, keys, operations, policies: Vec::new(), expires, holder: None }
    }

    /// Restricts the token to what these policies permit. Only a service that has them accepts the
    /// token: [`Token::authorize`](super::Token::authorize) refuses every request.
    ///
    /// ```
    /// use bulla_kms::token::{Grant, GrantedKeys, TokenOperation};
    /// use bulla_kms::Timestamp;
    ///
    /// let operations = vec![TokenOperation::Sign];
    /// let grant = Grant::new("local".parse()?, GrantedKeys::All, operations, Timestamp::now()?);
    /// assert_eq!(grant.policies(vec!["release".parse()?]).policies[0].as_str(), "release");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn policies(mut self, policies: Vec<Name>) -> Self {
        self.policies = policies;
        self
    }

    /// Names the person or program that gets the token.
    #[must_use]
    pub fn holder(mut self, holder: Holder) -> Self {
        self.holder = Some(holder);
        self
    }
}

/// The name of the person or program that got a token: 1 to 96 printable ASCII characters,
/// without spaces, `"` and `\`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(String);

/// The most characters of a [`Holder`].
const MAX_HOLDER_LEN: usize = 96;
/// So many characters of a name stand before its digest, if the whole would be too long.
const HOLDER_PREFIX_LEN: usize = 62;

impl Holder {
    /// The holder with a name of any length and characters, for example the subject of a JWT. Two
    /// names never give one holder.
    ///
    /// Characters that a holder does not have, and `%`, are percent-encoded. A name that is too
    /// long then has a BLAKE3 digest in place of its end.
    ///
    /// ```
    /// use bulla_kms::token::Holder;
    ///
    /// assert_eq!(Holder::named("github", "repo:acme/app").as_str(), "github/repo:acme/app");
    /// assert_eq!(Holder::named("github", "a \"b\"").as_str(), "github/a%20%22b%22");
    /// assert_eq!(Holder::named("github", &"x".repeat(500)).as_str().len(), 96);
    /// ```
    pub fn named(namespace: &str, name: &str) -> Self {
        let mut text = String::new();
        for byte in format!("{namespace}/{name}").bytes() {
            if is_plain(byte) && byte != b'%' {
                text.push(byte.into());
            } else {
                let _ = write!(text, "%{byte:02X}");
            }
        }
        if text.len() > MAX_HOLDER_LEN {
            let digest = bulla_blake3::hash(text.as_bytes()).to_hex();
            text.truncate(HOLDER_PREFIX_LEN);
            // No name has this: a percent sign is encoded.
            text.push_str("%%");
            text.push_str(&digest[..MAX_HOLDER_LEN - text.len()]);
        }
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Holder {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > MAX_HOLDER_LEN || !text.bytes().all(is_plain) {
            let message =
                "a holder has 1 to 96 printable ASCII characters, without spaces, quotes and backslashes";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A holder's restrictions of a token. `None` restricts nothing.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// Only these keys.
    pub keys: Option<Vec<KeyId>>,
    /// Only these operations.
    pub operations: Option<Vec<TokenOperation>>,
    /// Only what these policies permit, which a service has in its settings.
    pub policies: Option<Vec<Name>>,
    /// Only until this time.
    pub expires: Option<Timestamp>,
}

impl TokenLimits {
    /// Restricts the keys.
    #[must_use]
    pub fn keys(mut self, keys: impl Into<Option<Vec<KeyId>>>) -> Self {
        self.keys = keys.into();
        self
    }

    /// Restricts the operations.
    #[must_use]
    pub fn operations(mut self, operations: impl Into<Option<Vec<TokenOperation>>>) -> Self {
        self.operations = operations.into();
        self
    }

    /// Restricts the token to what policies permit.
    ///
    /// ```
    /// use bulla_kms::token::TokenLimits;
    ///
    /// let limits = TokenLimits::default().policies(vec!["release".parse()?]);
    /// assert_eq!(limits.policies.map(|policies| policies.len()), Some(1));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn policies(mut self, policies: impl Into<Option<Vec<Name>>>) -> Self {
        self.policies = policies.into();
        self
    }

    /// Restricts the time.
    #[must_use]
    pub fn expires(mut self, expires: impl Into<Option<Timestamp>>) -> Self {
        self.expires = expires.into();
        self
    }
}

/// The operation that a token's holder requests.
#[derive(Clone, Copy, Debug)]
pub struct TokenRequest<'a> {
    pub(super) operation: TokenOperation,
    pub(super) tenant: &'a Name,
    pub(super) key: Option<&'a KeyId>,
    pub(super) now: Timestamp,
}

impl<'a> TokenRequest<'a> {
    /// A request about a key, in any version.
    pub fn on_key(operation: TokenOperation, key: &'a KeyId, now: Timestamp) -> Self {
        Self { operation, tenant: key.tenant(), key: Some(key), now }
    }

    /// A request in a tenant without a key, for example to create one: only for tokens with
    /// [`GrantedKeys::All`](super::GrantedKeys::All).
    pub fn in_tenant(operation: TokenOperation, tenant: &'a Name, now: Timestamp) -> Self {
        Self { operation, tenant, key: None, now }
    }

    /// The tenant that the request concerns.
    pub fn tenant(&self) -> &'a Name {
        self.tenant
    }
}
