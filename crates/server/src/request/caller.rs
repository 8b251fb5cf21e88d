//! Who makes a request.

use std::fmt;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bulla_kms::Timestamp;

use crate::access::{Epoch, Session};
use crate::error::{ApiError, Problem, Result};
use crate::service::{App, Opened};

/// What a connection proves by itself.
pub(crate) trait Connection: fmt::Debug + Send + Sync {
    /// The caller that it proves now: a certificate expires, and settings change.
    fn session(&self) -> Option<Arc<Session>>;

    /// Whether it is one of a Unix socket, which only users of this machine have whom its mode
    /// permits.
    fn is_local(&self) -> bool;
}

/// The connection of a request, which may prove who calls: by a client certificate, or as a user of
/// this machine. Each request has it as an extension.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Arc<dyn Connection>,
    /// Tells the access log who the caller is; none if requests are not logged.
    pub(crate) witness: Option<Witness>,
}

impl Peer {
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.connection.session()
    }

    pub(crate) fn is_local(&self) -> bool {
        self.connection.is_local()
    }
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
        let peer = connection.filter(|_| token.is_none()).and_then(Peer::session);
        if token.is_none() && peer.is_none() {
            let message = "the request carries no credential: send a token as `Authorization: Bearer TOKEN`";
            return Err(ApiError::new(Problem::Unauthenticated, message));
        }
        let opened = app.service.opened()?;
        let session = match (token, peer) {
            // A token counts more than the connection: a caller who sends one wants only the rights of that token.
            (Some(token), _) => app.session(&opened, token)?,
            (None, peer) => peer.ok_or_else(ApiError::refused)?,
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

    /// Verifies the credential of a request whose head was verified before, now that its body is
    /// there: the body may have taken long, and meanwhile the token was revoked, for example, or
    /// the service was sealed.
    ///
    /// # Errors
    /// Those of [`Caller::verified`]; the caller's rights are others now, or the keystore was
    /// closed and opened again.
    pub(crate) fn verify_again(parts: &Parts, app: &App) -> Result<()> {
        // The endpoint needs no credential.
        let Some(Verified { session, opened, epoch }) = parts.extensions.get() else { return Ok(()) };
        // A session with revocation ids is that of a token. What a connection proves may end by
        // itself.
        if *epoch == app.service.epoch() && !session.revocation_ids.is_empty() {
            return match session.authority.expires {
                Some(_) => session.check_time(Timestamp::now()?),
                None => Ok(()),
            };
        }
        let now = Self::verified(parts, app)?;
        if !Arc::ptr_eq(&now.opened, opened) {
            return Err(ApiError::new(Problem::Sealed, "the service was sealed meanwhile: send it again"));
        }
        if now.session.authority == session.authority { Ok(()) } else { Err(ApiError::refused()) }
    }
}

/// What was verified when the head of a request came. The request has it as an extension until its
/// body is there.
#[derive(Clone)]
struct Verified {
    session: Arc<Session>,
    opened: Arc<Opened>,
    epoch: Epoch,
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        // First: what changes after this is seen when the body is there.
        let epoch = app.service.epoch();
        let caller = Self::verified(parts, app)?;
        caller.session.count(1)?;
        let (session, opened) = (Arc::clone(&caller.session), Arc::clone(&caller.opened));
        parts.extensions.insert(Verified { session, opened, epoch });
        Ok(caller)
    }
}
