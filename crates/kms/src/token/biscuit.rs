//! The token itself. Anyone who holds it may use it.

use std::fmt;
use std::str::FromStr;

use biscuit_auth::builder::{Algorithm as RootAlgorithm, BlockBuilder};
use biscuit_auth::{KeyPair, PrivateKey, UnverifiedBiscuit};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use super::authorize::revocation_ids;
use super::datalog;
use super::grant::{Grant, GrantedKeys, TokenLimits};
use crate::error::{Code, KmsError, Result};

/// The maximum length of a token's text in bytes.
pub const MAX_TOKEN_LEN: usize = 16 << 10;
/// The most blocks of a token: each one is a signature to verify.
pub const MAX_BLOCKS: usize = 16;

/// A token. Anyone who holds it may use it. Its debug output shows nothing of it, and it is wiped
/// on drop.
///
/// `FromStr` reads the text form, base64url, and checks its size and form. Its signature is checked
/// when it is used.
#[derive(Clone)]
pub struct Token {
    text: SecretString,
    /// The ids of a token that was just minted, so that nobody parses it for them: that computes
    /// its keys again.
    ids: Option<Vec<String>>,
}

impl Token {
    /// Mints a token. `seed` is the root key; the token names `version`.
    pub(crate) fn mint(seed: &[u8], version: u32, grant: &Grant) -> Result<Self> {
        if grant.operations.is_empty() {
            return Err(KmsError::new(Code::InvalidArgument, "a token must permit at least one operation"));
        }
        let keys = match &grant.keys {
            GrantedKeys::These(keys) if keys.is_empty() => {
                return Err(KmsError::new(Code::InvalidArgument, "a token must name at least one key"));
            }
            GrantedKeys::These(keys) => keys.as_slice(),
            GrantedKeys::All => &[],
        };
        if let Some(other) = keys.iter().find(|key| *key.tenant() != grant.tenant) {
            let message = format!("the key {other} does not belong to the tenant {}", grant.tenant);
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        let mint = || {
            let root = KeyPair::from(&PrivateKey::from_bytes(seed, RootAlgorithm::Ed25519)?);
            let token = datalog::build_grant(grant)?.root_key_id(version).build(&root)?;
            Ok((token.to_base64()?, revocation_ids(token.revocation_identifiers())))
        };
        let (text, ids) = mint().map_err(unmade)?;
        let text = SecretString::from(text);
        // What this module writes from checked names is accepted, so nobody parses it again: that
        // builds a second token.
        check_length(&text)?;
        Ok(Self { text, ids: Some(ids) })
    }

    /// A weaker token, which the holder can make without the keystore.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the limits restrict nothing or leave nothing, or if the token
    /// would be too long; [`Code::InvalidToken`] if the token cannot be attenuated.
    pub fn attenuate(&self, limits: &TokenLimits) -> Result<Self> {
        let code = datalog::write_limits(limits)?;
        let append = || self.unverified()?.append(BlockBuilder::new().code(code)?)?.to_base64();
        Self::checked(append().map_err(unmade)?)
    }

    /// The token's content. Its signature is not checked.
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

    /// The ids that revoke its blocks, the grant's first. The signature is not checked.
    ///
    /// # Errors
    /// [`Code::InvalidToken`].
    ///
    /// ```
    /// use bulla_kms::token::{Grant, GrantedKeys, TokenOperation};
    /// use bulla_kms::{Keystore, Name, Timestamp};
    ///
    /// let (keystore, tenant) = (Keystore::in_memory()?, "local".parse::<Name>()?);
    /// keystore.create_token_root(&tenant)?;
    /// let hour = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 3_600_000)?;
    /// let grant = Grant::new(tenant, GrantedKeys::All, vec![TokenOperation::Sign], hour);
    /// let token = keystore.mint_token(&grant)?;
    /// assert_eq!(token.revocation_ids()?, [token.inspect()?.blocks[0].revocation_id.clone()]);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn revocation_ids(&self) -> Result<Vec<String>> {
        match &self.ids {
            Some(ids) => Ok(ids.clone()),
            None => Ok(revocation_ids(self.unverified().map_err(invalid)?.revocation_identifiers())),
        }
    }

    /// The text. Give it only to people who may use the token.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    pub(super) fn unverified(&self) -> Result<UnverifiedBiscuit, biscuit_auth::error::Token> {
        UnverifiedBiscuit::from_base64(self.expose())
    }

    fn checked(text: String) -> Result<Self> {
        let text = SecretString::from(text);
        check_length(&text)?;
        let token = Self { text, ids: None };
        let parsed = token.unverified().map_err(invalid)?;
        if parsed.block_count() > MAX_BLOCKS {
            let message = format!("a token has at most {MAX_BLOCKS} blocks");
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        if parsed.external_public_keys().iter().any(Option::is_some) {
            let message = "the token contains a third-party block, which bulla does not accept";
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        if !datalog::is_accepted(&parsed) {
            let message = "the token contains a statement that bulla does not accept";
            return Err(KmsError::new(Code::InvalidToken, message));
        }
        Ok(token)
    }
}

fn check_length(text: &SecretString) -> Result<()> {
    if text.expose_secret().len() <= MAX_TOKEN_LEN {
        return Ok(());
    }
    let message = format!("a token has at most {MAX_TOKEN_LEN} characters");
    Err(KmsError::new(Code::InvalidToken, message))
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

/// The content of a token: see [`Token::inspect`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The version of the root key that supposedly signed it.
    pub root_version: Option<u32>,
    /// The grant, and then the restrictions, in order.
    pub blocks: Vec<Block>,
}

/// One block of a token.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The id that revokes this block and all tokens made from it, in hexadecimal.
    pub revocation_id: String,
    /// Facts and checks in Datalog.
    pub source: String,
}

/// The error for a token that cannot be read. The library's message quotes nothing of the token's
/// secret.
pub(super) fn invalid(error: biscuit_auth::error::Token) -> KmsError {
    KmsError::new(Code::InvalidToken, "not a token: its base64 or its structure is invalid")
        .with_source(error)
}

fn unmade(error: biscuit_auth::error::Token) -> KmsError {
    KmsError::new(Code::InvalidToken, "cannot make or attenuate the token").with_source(error)
}
