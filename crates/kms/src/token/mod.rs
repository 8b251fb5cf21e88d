//! Capability tokens: who holds one may do what it says. They are Biscuits (<https://www.biscuitsec.org>, format 3), so that anybody
//! can check one with a public key alone, and its holder can hand on a weaker one without asking.
//!
//! A token begins with a [`Grant`], signed by a root key: a tenant, keys, [`Operation`]s, and when it ends. Each block that a holder adds
//! ([`Token::attenuate`]) can only take away: what the grant does not say, no block can.
//!
//! A tenant's root key is its key with the label and the purpose [`ROOT`], an Ed25519 key in the keystore. It signs tokens and
//! nothing else, and it rotates like every key: a token names the version that signed it, and falls with it when that is
//! revoked. Disabling the root key stops all tokens of the tenant. One token, with all that descend from it, is stopped by its
//! revocation id ([`Revocations`]). Who may create or import keys with that purpose gives out capabilities: an interface to others must
//! not grant that by a token of the tenant.
//!
//! `spec/tokens.md` has the facts and rules.

mod authorize;
mod datalog;
mod form;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use biscuit_auth::builder::{Algorithm as RootAlgorithm, BiscuitBuilder, BlockBuilder};
use biscuit_auth::{KeyPair, PrivateKey, UnverifiedBiscuit};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

pub use self::authorize::{Permit, Request};
use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyFamily, Name};
use crate::time::Timestamp;

/// The label and the purpose of a tenant's root key.
pub const ROOT: &str = "tokens";

/// The longest token that is looked at, as text.
pub const MAX_TOKEN: usize = 16 << 10;
/// The most blocks of a token: each is a signature to check.
pub const MAX_BLOCKS: usize = 16;

/// What a token may permit. The names are stable.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Signing a message, a digest or a statement.
    Sign,
    /// Verifying in the keystore.
    Verify,
    /// Decapsulating a key.
    Decapsulate,
    /// Making keys.
    Create,
    /// Importing keys and versions.
    Import,
    /// Taking a private key out, wrapped for a recipient.
    Export,
    /// Making the next version of a key.
    Rotate,
    /// Changing a key: its label, its rotation policy, its least version; disabling and enabling it; revoking a version.
    Update,
    /// Scheduling destruction, and destroying.
    Destroy,
    /// Taking back a scheduled destruction.
    Restore,
    /// Reading public keys, attestations and lists.
    Read,
    /// Reading the audit log.
    Audit,
    /// Making and restoring backups.
    Backup,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Sign,
        Self::Verify,
        Self::Decapsulate,
        Self::Create,
        Self::Import,
        Self::Export,
        Self::Rotate,
        Self::Update,
        Self::Destroy,
        Self::Restore,
        Self::Read,
        Self::Audit,
        Self::Backup,
    ];

    /// The name in a token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::Decapsulate => "decapsulate",
            Self::Create => "create",
            Self::Import => "import",
            Self::Export => "export",
            Self::Rotate => "rotate",
            Self::Update => "update",
            Self::Destroy => "destroy",
            Self::Restore => "restore",
            Self::Read => "read",
            Self::Audit => "audit",
            Self::Backup => "backup",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Operation {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|operation| operation.as_str()).collect();
            let message = format!("the operation {text:?} is unknown; known are: {}", names.join(", "));
            KmsError::new(Code::InvalidArgument, message)
        })
    }
}

serde_as_text!(Operation);

/// Which keys of a tenant a grant is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All, also those that are made later, and operations that are about no key, such as making one.
    All,
    /// These, in all their versions.
    These(Vec<KeyFamily>),
}

/// What a new token permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose keys.
    pub tenant: Name,
    /// Which of them.
    pub keys: Keys,
    /// What may be done with them. At least one.
    pub operations: Vec<Operation>,
    /// Until when, to the second; later fractions are cut off.
    pub expires: Timestamp,
}

/// What a holder takes away from a token. `None` takes nothing away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// These keys alone.
    pub keys: Option<Vec<KeyFamily>>,
    /// These operations alone.
    pub operations: Option<Vec<Operation>>,
    /// No longer than this.
    pub expires: Option<Timestamp>,
}

/// A token. Whoever has it may use it: it prints nothing of itself, and is wiped when it is dropped.
///
/// `FromStr` reads the text form, base64url, and checks its size and form. Who signed it is checked when it is used.
#[derive(Clone)]
pub struct Token(SecretString);

impl Token {
    /// Makes a token. `seed` is the root key, `version` the one that the token names.
    pub(crate) fn mint(seed: &[u8], version: u32, grant: &Grant) -> Result<Self> {
        if grant.operations.is_empty() {
            return Err(KmsError::new(Code::InvalidArgument, "a token permits at least one operation"));
        }
        let keys = match &grant.keys {
            Keys::These(keys) if keys.is_empty() => {
                return Err(KmsError::new(Code::InvalidArgument, "a token is about at least one key"));
            }
            Keys::These(keys) => keys.as_slice(),
            Keys::All => &[],
        };
        if let Some(other) = keys.iter().find(|key| *key.tenant() != grant.tenant) {
            let message = format!("the key {other} is not one of the tenant {}", grant.tenant);
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        let mint = || {
            let root = KeyPair::from(&PrivateKey::from_bytes(seed, RootAlgorithm::Ed25519)?);
            let builder = BiscuitBuilder::new().code(datalog::grant(grant))?.root_key_id(version);
            builder.build(&root)?.to_base64()
        };
        Self::checked(mint().map_err(unmade)?)
    }

    /// A weaker token, which its holder can make alone.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] when the limits take nothing away or leave nothing, and when the token would be too long;
    /// [`Code::InvalidToken`] when the token cannot be attenuated.
    pub fn attenuate(&self, limits: &Limits) -> Result<Self> {
        let code = datalog::limits(limits)?;
        let append = || self.unverified()?.append(BlockBuilder::new().code(code)?)?.to_base64();
        Self::checked(append().map_err(unmade)?)
    }

    /// What the token says, without any proof of who made it.
    ///
    /// # Errors
    /// [`Code::InvalidToken`].
    pub fn inspect(&self) -> Result<Inspection> {
        let token = self.unverified().map_err(invalid)?;
        let ids = revocation_ids(token.revocation_identifiers());
        let block = |(index, revocation_id)| {
            let source = token.print_block_source(index).map_err(invalid)?;
            Ok(Block { revocation_id, source })
        };
        let blocks = ids.into_iter().enumerate().map(block).collect::<Result<_>>()?;
        Ok(Inspection { root_version: token.root_key_id(), blocks })
    }

    /// The text, for those who are to have it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    fn unverified(&self) -> Result<UnverifiedBiscuit, biscuit_auth::error::Token> {
        UnverifiedBiscuit::from_base64(self.expose())
    }

    fn checked(text: String) -> Result<Self> {
        let text = SecretString::from(text);
        if text.expose_secret().len() > MAX_TOKEN {
            let message = format!("a token has at most {MAX_TOKEN} characters");
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        let token = Self(text);
        let parsed = token.unverified().map_err(invalid)?;
        if parsed.block_count() > MAX_BLOCKS {
            let message = format!("a token has at most {MAX_BLOCKS} blocks");
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        if parsed.external_public_keys().iter().any(Option::is_some) {
            let message = "the token has a block of a third party, which has no meaning here";
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        if !form::is_known(&parsed) {
            let message = "the token says something that is not understood here";
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        Ok(token)
    }
}

impl FromStr for Token {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::checked(text.to_owned())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What a token says: see [`Token::inspect`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The version of the root key that is said to have signed it.
    pub root_version: Option<u32>,
    /// The grant, and then what was taken away, in their order.
    pub blocks: Vec<Block>,
}

/// One block of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// What revokes this block and all tokens that go on from it: hexadecimal.
    pub revocation_id: String,
    /// Facts and checks in Datalog.
    pub source: String,
}

fn revocation_ids(ids: Vec<Vec<u8>>) -> Vec<String> {
    ids.iter().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()).collect()
}

/// Tokens that are no longer honoured, by the revocation ids of their blocks.
///
/// The text form has one id in each line, in lower-case hexadecimal. Empty lines and lines that begin with `#` are read over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(BTreeSet<String>);

impl Revocations {
    /// Revokes a block, and every token that has it.
    pub fn add(&mut self, revocation_id: impl Into<String>) {
        self.0.insert(revocation_id.into());
    }

    fn has_any(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| self.0.contains(id))
    }
}

impl FromStr for Revocations {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let mut revoked = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_id = line.len() % 2 == 0 && line.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if !is_id {
                let message = format!("line {number} is no revocation id, which is lower-case hexadecimal");
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
            revoked.add(line);
        }
        Ok(revoked)
    }
}

impl fmt::Display for Revocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|id| writeln!(f, "{id}"))
    }
}

/// The error of a token that cannot be read. What the library says of it quotes nothing of the token's secret.
fn invalid(error: biscuit_auth::error::Token) -> KmsError {
    KmsError::new(Code::InvalidToken, "not a token: its base64 or its form is broken").with_source(error)
}

fn unmade(error: biscuit_auth::error::Token) -> KmsError {
    KmsError::new(Code::InvalidToken, "the token cannot be made or attenuated").with_source(error)
}
