//! Who makes a request.

use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bulla_kms::Timestamp;

use crate::access::Session;
use crate::error::{ApiError, Problem, Result};
use crate::service::{App, Opened};

/// The identity that a connection proves: by a client certificate, or as a user of this machine. Each request has it as an extension.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) session: Option<Arc<Session>>,
    /// Tells the access log who the caller is; none if requests are not logged.
    pub(crate) witness: Option<Witness>,
}

/// The caller of one request, once its credential was verified.
pub(crate) type Witness = Arc<OnceLock<Arc<Session>>>;

/// The caller of a request, whose credential was verified, and the keystore as it is open for the request.
pub(crate) struct Caller {
    pub(crate) session: Arc<Session>,
    pub(crate) opened: Arc<Opened>,
}

/// The header in which clients of Vault send their token.
const VAULT_TOKEN: &str = "x-vault-token";

/// The token of a request, if it has one.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(token) = headers.get(VAULT_TOKEN) {
        return Some(token.as_bytes());
    }
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

impl Caller {
    /// Verifies the credential, without counting the request.
    ///
    /// # Errors
    /// The request has no credential, the credential is refused, or the service is sealed.
    pub(crate) fn verified(parts: &Parts, app: &App) -> Result<Self> {
        let token = token(&parts.headers);
        let connection = parts.extensions.get::<Peer>();
        let peer = connection.and_then(|connection| connection.session.as_ref());
        if token.is_none() && peer.is_none() {
            let message = "the request carries no credential: send a token as `Authorization: Bearer TOKEN`";
            return Err(ApiError::new(Problem::Unauthenticated, message));
        }
        let opened = app.service.opened()?;
        let session = match (token, peer) {
            // A token counts more than the connection: a caller who sends one wants only the rights of that token.
            (Some(token), _) => app.session(&opened, token)?,
            (None, peer) => peer.cloned().ok_or_else(ApiError::refused)?,
        };
        if let Some(witness) = connection.and_then(|connection| connection.witness.as_ref()) {
            // A request has one caller.
            let _ = witness.set(Arc::clone(&session));
        }
        if session.authority.expires.is_some() {
            session.check_time(Timestamp::now()?)?;
        }
        Ok(Self { session, opened })
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let caller = Self::verified(parts, app)?;
        caller.session.count(1)?;
        Ok(caller)
    }
}
