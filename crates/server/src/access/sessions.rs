//! Verified credentials, remembered until they may be wrong.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::session::Session;

/// A number that grows whenever a remembered verdict may be wrong: a token was revoked, or a root
/// key changed.
pub(crate) type Epoch = u64;

/// The digest of a credential. Credentials themselves are not kept, and a lookup compares no secret
/// byte by byte.
pub(crate) type CredentialDigest = [u8; 32];

/// The most sessions that are remembered. A caller with more valid tokens only makes the service
/// verify them again.
const MOST: usize = 65_536;

/// Sessions by the digest of their credential, all of one epoch.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    epoch: Epoch,
    sessions: HashMap<CredentialDigest, Arc<Session>>,
}

impl Sessions {
    pub(crate) fn get(&self, digest: &CredentialDigest, epoch: Epoch) -> Option<Arc<Session>> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.epoch == epoch { remembered.sessions.get(digest).cloned() } else { None }
    }

    /// Remembers a session that was verified in `epoch`, unless another thread did meanwhile, and
    /// returns the one that counts.
    pub(crate) fn insert(&self, digest: CredentialDigest, epoch: Epoch, session: Session) -> Arc<Session> {
        self.share(digest, epoch, Arc::new(session))
    }

    /// The same for a session that others have, too.
    pub(crate) fn share(
        &self,
        digest: CredentialDigest,
        epoch: Epoch,
        session: Arc<Session>,
    ) -> Arc<Session> {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.epoch > epoch {
            return session;
        }
        if remembered.epoch < epoch || remembered.sessions.len() >= MOST {
            remembered.sessions.clear();
            remembered.epoch = epoch;
        }
        Arc::clone(remembered.sessions.entry(digest).or_insert(session))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Authority, OperationSet};
    use super::*;

    fn session() -> Session {
        let operations = OperationSet::ALL;
        let tenant = "local".parse().unwrap();
        Session {
            authority: Authority { tenant, operations, keys: None, expires: None, can_mint_tokens: false },
            actor: "somebody".parse().unwrap(),
            limiter: None,
            revocation_ids: Vec::new(),
        }
    }

    #[test]
    fn a_session_is_remembered_for_its_epoch_and_not_beyond() {
        let sessions = Sessions::default();
        assert!(sessions.get(&[1; 32], 0).is_none());
        let kept = sessions.insert([1; 32], 0, session());
        assert!(Arc::ptr_eq(&kept, &sessions.get(&[1; 32], 0).unwrap()));
        assert!(
            Arc::ptr_eq(&kept, &sessions.insert([1; 32], 0, session())),
            "the first one counts the requests"
        );
        assert!(sessions.get(&[2; 32], 0).is_none());
        assert!(sessions.get(&[1; 32], 1).is_none());
        sessions.insert([2; 32], 1, session());
        assert!(sessions.get(&[1; 32], 1).is_none() && sessions.get(&[2; 32], 1).is_some());
        // It was verified before the revocation, and must not be remembered after it.
        sessions.insert([3; 32], 0, session());
        assert!(sessions.get(&[3; 32], 0).is_none() && sessions.get(&[3; 32], 1).is_none());
    }

    #[test]
    fn sessions_do_not_grow_without_bound() {
        let sessions = Sessions::default();
        for number in 0..2 * MOST as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            sessions.insert(digest, 0, session());
        }
        assert!(sessions.0.lock().unwrap().sessions.len() <= MOST);
    }
}
