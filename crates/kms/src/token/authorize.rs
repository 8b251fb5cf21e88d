//! Whether a token permits a request, everything that it permits, and the list of revoked tokens.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use biscuit_auth::builder::{Algorithm as RootAlgorithm, AuthorizerBuilder};
use biscuit_auth::{AuthorizerLimits, Biscuit, error};

use super::biscuit::{Token, invalid};
use super::datalog;
use super::grant::TokenRequest;
use super::grant::{GrantedKeys, Holder, TokenOperation};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, Name};
use crate::public_key::PublicKey;
use crate::time::Timestamp;

/// The limits on the computation for one token: far more than a token of the accepted form needs.
const LIMITS: AuthorizerLimits =
    AuthorizerLimits { max_facts: 512, max_iterations: 64, max_time: Duration::from_millis(200) };

/// The ids of a verified token, for the audit log.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The version of the root key that signed the token.
    pub root_version: u32,
    /// The revocation ids of the token's blocks, in hexadecimal; the last one identifies this exact
    /// token.
    pub revocation_ids: Vec<String>,
}

impl Token {
    /// Whether the token permits `request`. `root` gives the public key for the version of the root
    /// key that the token names, if that version is trusted; it is an Ed25519 key.
    ///
    /// # Errors
    /// [`Code::InvalidToken`] if that key did not sign it, or it was changed;
    /// [`Code::Forbidden`] if it does not permit the request, has expired, was revoked, or needs
    /// too much computation.
    pub fn authorize(
        &self,
        root: impl Fn(u32) -> Option<PublicKey>,
        request: &TokenRequest<'_>,
        revoked: &Revocations,
    ) -> Result<VerifiedToken> {
        let (token, verified) = verify_token(self, root, revoked)?;
        let ask = || {
            let builder =
                AuthorizerBuilder::new().set_limits(LIMITS).code(datalog::write_request(request))?;
            builder.build(&token)?.authorize()
        };
        ask().map_err(|error| refused(request, error))?;
        Ok(verified)
    }
}

/// The token with its signatures verified, if it was not revoked.
fn verify_token(
    token: &Token,
    root: impl Fn(u32) -> Option<PublicKey>,
    revoked: &Revocations,
) -> Result<(Biscuit, VerifiedToken)> {
    let token = token.unverified().map_err(invalid)?;
    let untrusted = || {
        let message = "no trusted version of the root key signed the token";
        KmsError::new(Code::InvalidToken, message)
    };
    let root_version = token.root_key_id().ok_or_else(untrusted)?;
    let key = root(root_version).ok_or_else(untrusted)?;
    let key = biscuit_auth::PublicKey::from_bytes(key.as_bytes(), RootAlgorithm::Ed25519)
        .map_err(|error| untrusted().with_source(error))?;
    let token = token.verify(key).map_err(|error| untrusted().with_source(error))?;
    let revocation_ids = revocation_ids(token.revocation_identifiers());
    if revoked.has_any(&revocation_ids) {
        return Err(forbidden("the token was revoked; ask for another one"));
    }
    Ok((token, VerifiedToken { root_version, revocation_ids }))
}

fn refused(request: &TokenRequest<'_>, error: error::Token) -> KmsError {
    let what = describe_request(request);
    let message = match &error {
        error::Token::RunLimit(_) => "the token needs too much computing time".to_owned(),
        error::Token::FailedLogic(error::Logic::Unauthorized {
            policy: error::MatchedPolicy::Allow(_),
            ..
        }) => {
            format!("the token has expired, or a restriction forbids this: {what}")
        }
        _ => format!("the token does not permit this: {what}"),
    };
    forbidden(message).with_source(error)
}

pub(super) fn forbidden(message: impl Into<String>) -> KmsError {
    KmsError::new(Code::Forbidden, message)
}

/// A request in words.
fn describe_request(request: &TokenRequest<'_>) -> String {
    match request.key {
        Some(key) => format!("{} with the key {key}", request.operation),
        None => format!("{} in the tenant {}", request.operation, request.tenant),
    }
}

/// Everything that a token permits: its grant, less the restrictions of all of its blocks.
///
/// [`Rights::permits`] gives the same verdict as [`Token::authorize`], and checks no signature. So
/// the rights are those of the moment when the token was verified: verify it again after a
/// revocation, and after a change to the tenant's root key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    tenant: Name,
    operations: Vec<TokenOperation>,
    /// None for all keys, and for operations without a key.
    keys: Option<BTreeSet<KeyId>>,
    /// The policies of each block that has some. All of them must permit a request.
    policies: Vec<Vec<Name>>,
    expires: Timestamp,
    holder: Option<Holder>,
    token: VerifiedToken,
}

impl Token {
    /// Verifies the token, and returns everything that it permits. `root` gives the public key for
    /// the version of the root key that the token names, if that version is trusted.
    ///
    /// # Errors
    /// [`Code::InvalidToken`] when the token is not signed by that key, or was changed;
    /// [`Code::Forbidden`] when it was revoked.
    pub fn rights(&self, root: impl Fn(u32) -> Option<PublicKey>, revoked: &Revocations) -> Result<Rights> {
        let verified = verify_token(self, root, revoked)?.1;
        let token = self.unverified().map_err(invalid)?;
        let (grant, limits) = datalog::read_blocks(&token).ok_or_else(|| {
            KmsError::new(Code::InvalidToken, "the token contains a statement that bulla does not accept")
        })?;
        let mut rights = Rights {
            tenant: grant.tenant,
            operations: grant.operations,
            keys: match grant.keys {
                GrantedKeys::All => None,
                GrantedKeys::These(keys) => Some(keys.into_iter().collect()),
            },
            policies: Some(grant.policies).filter(|policies| !policies.is_empty()).into_iter().collect(),
            expires: grant.expires,
            holder: grant.holder,
            token: verified,
        };
        for limit in limits {
            if let Some(operations) = limit.operations {
                rights.operations.retain(|operation| operations.contains(operation));
            }
            if let Some(keys) = limit.keys {
                let keys: BTreeSet<_> = keys.into_iter().collect();
                rights.keys = Some(match rights.keys {
                    None => keys,
                    Some(before) => before.intersection(&keys).cloned().collect(),
                });
            }
            rights.policies.extend(limit.policies);
            rights.expires = limit.expires.map_or(rights.expires, |expires| expires.min(rights.expires));
        }
        Ok(rights)
    }

    /// The tenant that the token says it is for, without any proof.
    pub(crate) fn tenant(&self) -> Option<Name> {
        Some(datalog::read_blocks(&self.unverified().ok()?)?.0.tenant)
    }

    /// The tenant and the policies that the token names, without any proof: those of each block
    /// that has some. For programs that explain a token; none decides by this.
    ///
    /// ```
    /// use bulla_kms::token::{Grant, GrantedKeys, TokenOperation};
    /// use bulla_kms::{Keystore, Name, Timestamp};
    ///
    /// let (keystore, tenant) = (Keystore::in_memory()?, "local".parse::<Name>()?);
    /// keystore.create_token_root(&tenant)?;
    /// let soon = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 60_000)?;
    /// let grant = Grant::new(tenant.clone(), GrantedKeys::All, vec![TokenOperation::Sign], soon);
    /// let token = keystore.mint_token(&grant.policies(vec!["release".parse()?]))?;
    /// let (stated, sets) = token.stated_policies().expect("it is a token of bulla");
    /// assert_eq!((stated, sets[0][0].as_str()), (tenant, "release"));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn stated_policies(&self) -> Option<(Name, Vec<Vec<Name>>)> {
        let (grant, limits) = datalog::read_blocks(&self.unverified().ok()?)?;
        let first = Some(grant.policies).filter(|policies| !policies.is_empty());
        let sets = first.into_iter().chain(limits.into_iter().filter_map(|limit| limit.policies));
        Some((grant.tenant, sets.collect()))
    }
}

impl Rights {
    /// Whether the token permits `request`.
    ///
    /// # Errors
    /// [`Code::Forbidden`] when the token does not permit the request, or has expired.
    pub fn permits(&self, request: &TokenRequest<'_>) -> Result<()> {
        let key = match (&self.keys, request.key) {
            (None, _) => true,
            (Some(keys), Some(key)) => keys.contains(key),
            (Some(_), None) => false,
        };
        let granted = *request.tenant == self.tenant && key && self.operations.contains(&request.operation);
        if !granted {
            return Err(forbidden(format!("the token does not permit this: {}", describe_request(request))));
        }
        if !self.policies.is_empty() {
            let message = "the token permits what policies say, and only a service that has them knows that";
            return Err(forbidden(message));
        }
        // Tokens count whole seconds.
        if request.now.unix_millis() / 1000 > self.expires.unix_millis() / 1000 {
            return Err(forbidden(format!("the token expired at {}", self.expires)));
        }
        Ok(())
    }

    /// The tenant that owns the keys.
    pub fn tenant(&self) -> &Name {
        &self.tenant
    }

    /// The operations that the token permits.
    pub fn operations(&self) -> &[TokenOperation] {
        &self.operations
    }

    /// The keys that the token is limited to; none when it is for all keys of its tenant.
    pub fn keys(&self) -> Option<&BTreeSet<KeyId>> {
        self.keys.as_ref()
    }

    /// The policies of each block of the token that has some. Each of these sets must permit a
    /// request: the caller asks them. [`Rights::permits`] refuses everything if there
    /// are any.
    ///
    /// ```
    /// use bulla_kms::token::{Grant, GrantedKeys, Revocations, TokenOperation};
    /// use bulla_kms::{Keystore, Name, Timestamp};
    ///
    /// let (keystore, tenant) = (Keystore::in_memory()?, "local".parse::<Name>()?);
    /// keystore.create_token_root(&tenant)?;
    /// let soon = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 60_000)?;
    /// let grant = Grant::new(tenant.clone(), GrantedKeys::All, vec![TokenOperation::Sign], soon);
    /// let token = keystore.mint_token(&grant.policies(vec!["release".parse()?]))?;
    /// let rights = keystore.rights(&token, &Revocations::default())?;
    /// assert_eq!(rights.policies()[0][0].as_str(), "release");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn policies(&self) -> &[Vec<Name>] {
        &self.policies
    }

    /// The expiry time, to the second.
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// The person or program that got the token, if the token names one.
    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// The ids of the token, for the audit log.
    pub fn token(&self) -> &VerifiedToken {
        &self.token
    }
}

/// The revocation ids of a token, in hexadecimal.
pub(super) fn revocation_ids(ids: Vec<Vec<u8>>) -> Vec<String> {
    ids.iter().map(|id| encoding::hex(id)).collect()
}

/// Revoked tokens, by the revocation ids of their blocks.
///
/// The text form has one id per line, in lower-case hexadecimal. Empty lines and lines that begin
/// with `#` are ignored.
///
/// ```
/// use bulla_kms::token::Revocations;
///
/// let mut revoked = Revocations::default();
/// revoked.add("0badc0de");
/// assert!(revoked.contains("0badc0de"));
/// assert_eq!(revoked.ids().collect::<Vec<_>>(), ["0badc0de"]);
/// revoked.remove("0badc0de");
/// assert!(revoked.ids().next().is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(BTreeSet<String>);

impl Revocations {
    /// Revokes a block, and every token that contains it.
    pub fn add(&mut self, revocation_id: impl Into<String>) {
        self.0.insert(revocation_id.into());
    }

    /// Takes a revocation back: for a token that has expired since, and is refused anyway.
    pub fn remove(&mut self, revocation_id: &str) {
        self.0.remove(revocation_id);
    }

    /// Whether a block is revoked by this very id.
    pub fn contains(&self, revocation_id: &str) -> bool {
        self.0.contains(revocation_id)
    }

    /// The ids, sorted.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn has_any(&self, ids: &[String]) -> bool {
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
                let message =
                    format!("line {number} is not a revocation id: those are lower-case hexadecimal");
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
