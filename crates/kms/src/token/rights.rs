//! Everything that a verified token permits, so that one verification serves many requests.

use std::collections::BTreeSet;

use super::authorize::{VerifiedToken, forbidden, permit, what};
use super::bearer::Token;
use super::form;
use super::grant::{GrantedKeys, TokenOperation};
use super::request::TokenRequest;
use super::revocation::Revocations;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, Name};
use crate::public_key::PublicKey;
use crate::time::Timestamp;

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
    expires: Timestamp,
    permit: VerifiedToken,
}

impl Token {
    /// Verifies the token, and returns everything that it permits. `root` gives the public key for
    /// the version of the root key that the token names, if that version is trusted.
    ///
    /// # Errors
    /// [`Code::InvalidToken`] when the token is not signed by that key, or was changed;
    /// [`Code::Forbidden`] when it was revoked.
    pub fn rights(&self, root: impl Fn(u32) -> Option<PublicKey>, revoked: &Revocations) -> Result<Rights> {
        let permit = permit(self, root, revoked)?.1;
        let token = self.unverified().map_err(super::bearer::invalid)?;
        let (grant, limits) = form::read(&token).ok_or_else(|| {
            KmsError::new(Code::InvalidToken, "the token contains a statement that bulla does not accept")
        })?;
        let mut rights = Rights {
            tenant: grant.tenant,
            operations: grant.operations,
            keys: match grant.keys {
                GrantedKeys::All => None,
                GrantedKeys::These(keys) => Some(keys.into_iter().collect()),
            },
            expires: grant.expires,
            permit,
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
            rights.expires = limit.expires.map_or(rights.expires, |expires| expires.min(rights.expires));
        }
        Ok(rights)
    }

    /// The tenant that the token says it is for, without any proof.
    pub(crate) fn tenant(&self) -> Option<Name> {
        Some(form::read(&self.unverified().ok()?)?.0.tenant)
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
            return Err(forbidden(format!("the token does not permit this: {}", what(request))));
        }
        // Tokens count whole seconds.
        if request.now.unix_millis() / 1000 > self.expires.unix_millis() / 1000 {
            return Err(forbidden(format!("the token expired at {}", self.expires)));
        }
        Ok(())
    }

    /// Whose keys.
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

    /// Until when, to the second.
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// Which token it was, for the audit log.
    pub fn permit(&self) -> &VerifiedToken {
        &self.permit
    }
}
