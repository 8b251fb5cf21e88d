//! Checks whether a token permits a request.

use std::time::Duration;

use biscuit_auth::builder::{Algorithm as RootAlgorithm, AuthorizerBuilder};
use biscuit_auth::{AuthorizerLimits, Biscuit, error};

use super::bearer::{Token, invalid};
use super::datalog;
use super::request::TokenRequest;
use super::revocation::{Revocations, revocation_ids};
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;

/// The limits on the computation for one token: far more than a token of the accepted form needs.
const LIMITS: AuthorizerLimits =
    AuthorizerLimits { max_facts: 512, max_iterations: 64, max_time: Duration::from_millis(200) };

/// The token that permitted a request, for the audit log.
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
        let (token, permit) = permit(self, root, revoked)?;
        let ask = || {
            let builder = AuthorizerBuilder::new().set_limits(LIMITS).code(datalog::request(request))?;
            builder.build(&token)?.authorize()
        };
        ask().map_err(|error| refused(request, error))?;
        Ok(permit)
    }
}

/// The token with its signatures verified, if it was not revoked.
pub(super) fn permit(
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
    let what = what(request);
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
pub(super) fn what(request: &TokenRequest<'_>) -> String {
    match request.key {
        Some(key) => format!("{} with the key {key}", request.operation),
        None => format!("{} in the tenant {}", request.operation, request.tenant),
    }
}
