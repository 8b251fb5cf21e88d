//! The caller of a request: its credential and its connection.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use bulla_kms::{KeyRef, Timestamp};
use rustls::pki_types::CertificateDer;

use super::cross_site::{ConnectionProof, check_site};
use super::namespace::{MountPath, Namespace};
use super::under_policies::check_path;
use crate::access::{Epoch, Session, TenantQuota};
use crate::error::{ApiError, ApiErrorCode, Result};
use crate::service::{BatchCost, UnsealedService, Worker};

/// A connection, which may prove its caller without a token.
pub(crate) trait Connection: fmt::Debug + Send + Sync {
    /// The caller that it proves now: a certificate expires, and settings change.
    fn session(&self) -> Option<Arc<Session>>;

    /// Whether it is one of a Unix socket, which only users of this machine have whom its mode
    /// permits.
    fn is_local(&self) -> bool;

    /// How the connection proves its caller.
    fn proof(&self) -> ConnectionProof;

    /// The address at its other end; none by a Unix socket.
    fn address(&self) -> Option<IpAddr> {
        None
    }

    /// The client certificate, which the listener has verified and which is valid now.
    fn certificate_chain(&self) -> Option<CertificateChain> {
        None
    }
}

/// A client certificate, and those that lead to its authority.
pub(crate) type CertificateChain = Arc<[CertificateDer<'static>]>;

/// The connection of a request, which may prove who calls: by a client certificate, or as a user of
/// this machine. Each request has it as an extension.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Arc<dyn Connection>,
    /// Tells the access log who the caller is; none if requests are not logged.
    pub(crate) caller_slot: Option<CallerSlot>,
}

impl Peer {
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.connection.session()
    }

    pub(crate) fn is_local(&self) -> bool {
        self.connection.is_local()
    }

    fn proof(&self) -> ConnectionProof {
        self.connection.proof()
    }
}

/// The caller of one request, once its credential was verified.
pub(crate) type CallerSlot = Arc<OnceLock<Arc<Session>>>;

/// The caller of a request, whose credential was verified, and the keystore as it is open for the
/// request.
pub(crate) struct Caller {
    pub(crate) session: Arc<Session>,
    pub(crate) unsealed: Arc<UnsealedService>,
}

/// The header in which clients of Vault send their token.
const VAULT_TOKEN: &str = "x-vault-token";

/// The token of a request, if it has one.
///
/// # Errors
/// A credential that is no token must not give the rights of the connection, and of two tokens
/// nobody knows which one is meant.
pub(crate) fn token(headers: &HeaderMap) -> Result<Option<&[u8]>> {
    let unclear = |message| ApiError::new(ApiErrorCode::Unauthenticated, message);
    let mut tokens = headers.get_all(VAULT_TOKEN).iter().map(HeaderValue::as_bytes);
    let first = tokens.next();
    let mut token = first;
    for value in headers.get_all(header::AUTHORIZATION) {
        match bearer(value.as_bytes()) {
            Some(bearer) if token.is_some_and(|token| token != bearer) => return Err(unclear(TWO_TOKENS)),
            Some(bearer) => token = Some(bearer),
            // Clients of Vault may have a credential for a proxy there.
            None if first.is_some() => {}
            None => return Err(unclear("the header Authorization is not of the form `Bearer TOKEN`")),
        }
    }
    if tokens.any(|other| Some(other) != token) { Err(unclear(TWO_TOKENS)) } else { Ok(token) }
}

const TWO_TOKENS: &str = "the request carries two different tokens: send one";

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// The caller that a connection proves: for requests that need no credential, or that no token can
/// make.
pub(crate) struct ConnectionCaller {
    peer: Option<Peer>,
    has_token: bool,
    site: Result<()>,
}

impl ConnectionCaller {
    /// The client certificate of the connection, if it has one that is valid now.
    ///
    /// # Errors
    /// The request may come from a page of another site.
    pub(crate) fn certificate_chain(&self) -> Result<Option<CertificateChain>> {
        match self.peer.as_ref().and_then(|peer| peer.connection.certificate_chain()) {
            Some(chain) => self.site.clone().map(|()| Some(chain)),
            None => Ok(None),
        }
    }

    /// The caller that the connection proves now.
    ///
    /// # Errors
    /// The request may come from a page of another site.
    pub(crate) fn peer(&self) -> Result<Option<Arc<Session>>> {
        match self.peer.as_ref().and_then(Peer::session) {
            Some(session) => self.site.clone().map(|()| Some(session)),
            None => Ok(None),
        }
    }

    /// The caller that the connection proves now; none if the request has a token, which takes
    /// precedence.
    ///
    /// # Errors
    /// Those of [`ConnectionCaller::peer`].
    pub(crate) fn caller(&self) -> Result<Option<Arc<Session>>> {
        if self.has_token { Ok(None) } else { self.peer() }
    }
}

impl FromRequestParts<Worker> for ConnectionCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Worker) -> Result<Self> {
        let has_token = token(&parts.headers)?.is_some();
        let peer = parts.extensions.get::<Peer>().cloned();
        let site = check_site(parts, peer.as_ref().map_or(ConnectionProof::Nothing, Peer::proof));
        Ok(Self { peer, has_token, site })
    }
}

impl Caller {
    /// The cost of encryptions, decryptions or MACs with one key: [`BatchCost::of_secrets`].
    pub(crate) fn cost_of_secrets(&self, key: KeyRef<'_>, uses: usize, bytes: usize) -> BatchCost {
        BatchCost::of_secrets(&self.unsealed.keystore, key, uses, bytes)
    }

    /// Verifies the credential, without counting the request.
    ///
    /// # Errors
    /// The request has no credential, the credential is refused or is one of another namespace, or
    /// the service is sealed.
    pub(crate) fn verified(parts: &Parts, worker: &Worker) -> Result<Self> {
        let token = token(&parts.headers)?;
        let connection = parts.extensions.get::<Peer>();
        let peer = connection.filter(|_| token.is_none()).and_then(Peer::session);
        if token.is_none() && peer.is_none() {
            let message = "the request carries no credential: send a token as `Authorization: Bearer TOKEN`";
            return Err(ApiError::new(ApiErrorCode::Unauthenticated, message));
        }
        if token.is_none() {
            check_site(parts, connection.map_or(ConnectionProof::Nothing, Peer::proof))?;
        }
        let unsealed = worker.service.unsealed()?;
        let session = match (token, peer) {
            // A token takes precedence over the connection: a caller that sends one wants only the
            // rights of that token.
            (Some(token), _) => worker.session(&unsealed, token)?,
            (None, peer) => peer.ok_or_else(ApiError::forbidden)?,
        };
        if let Some(caller_slot) = connection.and_then(|connection| connection.caller_slot.as_ref()) {
            // A request has one caller.
            let _ = caller_slot.set(Arc::clone(&session));
        }
        if session.authority.expires.is_some() {
            session.check_time(Timestamp::now()?)?;
        }
        check_path(&session, parts.uri.path())?;
        if let Some(namespace) = parts.extensions.get::<Namespace>() {
            namespace.check(&session)?;
        }
        let session = match parts.extensions.get::<MountPath>() {
            Some(mount) => at_mount(worker, &session, mount)?,
            None => session,
        };
        Ok(Self { session, unsealed })
    }

    /// Verifies the credential of a request whose head was verified before, now that its body is
    /// there: the body may have taken long, and meanwhile the token was revoked, for example, or
    /// the service was sealed.
    ///
    /// # Errors
    /// Those of [`Caller::verified`]; the caller's rights are others now, or the keystore was
    /// closed and opened again.
    pub(crate) fn verify_again(parts: &Parts, worker: &Worker) -> Result<()> {
        // The endpoint needs no credential.
        let Some(Verified { session, unsealed, epoch }) = parts.extensions.get() else { return Ok(()) };
        // A session with revocation ids is that of a token. What a connection proves may end by
        // itself.
        if *epoch == worker.service.epoch() && !session.revocation_ids.is_empty() {
            return match session.authority.expires {
                Some(_) => session.check_time(Timestamp::now()?),
                None => Ok(()),
            };
        }
        let now = Self::verified(parts, worker)?;
        if !Arc::ptr_eq(&now.unsealed, unsealed) {
            return Err(ApiError::new(
                ApiErrorCode::Sealed,
                "the service was sealed meanwhile: send it again",
            ));
        }
        if now.session.authority != session.authority {
            return Err(ApiError::forbidden());
        }
        // The policies may be others now.
        if now.session.acls.is_empty() { Ok(()) } else { now.permitted(parts).map(drop) }
    }
}

/// A caller at a mount beside `transit/`.
///
/// # Errors
/// The caller's tenant has no such mount.
fn at_mount(worker: &Worker, session: &Session, mount: &MountPath) -> Result<Arc<Session>> {
    let mounts = worker.service.mounts();
    let keys_tenant = mounts.keys_tenant(&session.authority.tenant, mount.as_str());
    keys_tenant.map(|keys| Arc::new(session.at_mount(keys))).ok_or_else(ApiError::forbidden)
}

/// What the tenant of a verified caller may use of the service; none without a bound, or a caller.
pub(super) fn quota_of(parts: &Parts) -> Option<Arc<TenantQuota>> {
    parts.extensions.get::<Verified>().and_then(|verified| verified.session.quota.clone())
}

/// The verified caller of a request; none at an endpoint that needs none.
pub(super) fn session_of(parts: &Parts) -> Option<Arc<Session>> {
    parts.extensions.get::<Verified>().map(|verified| Arc::clone(&verified.session))
}

/// The credential that was verified when the head of a request arrived. The request carries it as
/// an extension until its body is there.
#[derive(Clone)]
struct Verified {
    session: Arc<Session>,
    unsealed: Arc<UnsealedService>,
    epoch: Epoch,
}

impl FromRequestParts<Worker> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        // First: what changes after this is seen when the body is there.
        let epoch = worker.service.epoch();
        let caller = Self::verified(parts, worker)?;
        caller.session.count(1)?;
        let (session, unsealed) = (Arc::clone(&caller.session), Arc::clone(&caller.unsealed));
        parts.extensions.insert(Verified { session, unsealed, epoch });
        caller.under_policies(parts)
    }
}
