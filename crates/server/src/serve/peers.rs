//! What a connection proves by itself.

use std::collections::HashMap;
use std::sync::Arc;

use bulla_kms::Result;

use crate::access::{Authority, Limiter, OperationSet, Session};
use crate::config::{Config, IdentityConfig};
use crate::request::Peer;

/// The callers without a token that the configuration names.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// Everybody, in development.
    everybody: Option<Arc<Session>>,
    by_uid: HashMap<u32, Arc<Session>>,
    by_certificate: HashMap<String, Arc<Session>>,
}

impl Peers {
    /// # Errors
    /// An identity's name is none.
    pub(super) fn new(config: &Config) -> Result<Self> {
        let mut peers = Self::default();
        if config.service.development {
            let authority = Authority {
                tenant: config.service.operator_tenant.clone(),
                operations: OperationSet::ALL,
                keys: None,
                expires: None,
                mints: true,
            };
            let session = Session {
                authority,
                actor: "development".parse()?,
                limiter: None,
                revocation_ids: Vec::new(),
            };
            peers.everybody = Some(Arc::new(session));
        }
        for identity in &config.identity {
            let session = Arc::new(session(identity, config)?);
            if let Some(uid) = identity.uid {
                peers.by_uid.insert(uid, session);
            } else if let Some(digest) = &identity.certificate {
                peers.by_certificate.insert(digest.clone(), session);
            }
        }
        Ok(peers)
    }

    pub(super) fn anybody(&self) -> Peer {
        Peer(self.everybody.clone())
    }

    /// The user at the other end of a Unix socket.
    pub(super) fn user(&self, uid: u32) -> Peer {
        Peer(self.by_uid.get(&uid).or(self.everybody.as_ref()).cloned())
    }
}

fn session(identity: &IdentityConfig, config: &Config) -> Result<Session> {
    let operations = match &identity.operations {
        None => OperationSet::ALL,
        Some(operations) => operations.iter().collect(),
    };
    let authority = Authority {
        tenant: identity.tenant.clone(),
        operations,
        keys: identity.keys.as_ref().map(|keys| keys.iter().cloned().collect()),
        expires: None,
        mints: identity.mints,
    };
    let limiter = config.limits.rate.map(Limiter::new);
    Ok(Session { authority, actor: identity.name.parse()?, limiter, revocation_ids: Vec::new() })
}
