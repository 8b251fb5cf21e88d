//! Keys of the group as a backend of the keystore. A record has the group's id and public key; the
//! shares are on the nodes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bulla_kms::approval::ApprovedUse;
use bulla_kms::backend::{
    Backend, Backends, Capabilities, GROUP, KeyMaterial, Prepared, PrivateKey, SOFTWARE, SignRequest,
    VerifyRequest,
};
use bulla_kms::{Algorithm, Code, KeyShares, KmsError, PublicKey, Result, Verdict};
use bulla_threshold::{KeyShare, SessionId};
use zeroize::Zeroizing;

use super::node::NodeState;
use super::wire::{PeerReply, PeerRequest, unavailable};

/// How many messages are best signed together.
const SIGN_LANES: usize = 64;

pub(super) struct GroupBackend {
    node: Arc<NodeState>,
    software: Backends,
}

impl GroupBackend {
    pub(super) fn new(node: Arc<NodeState>) -> Self {
        Self { node, software: Backends::software().clone() }
    }

    fn verifier(&self, algorithm: Algorithm) -> Result<&Arc<dyn Backend>> {
        self.software.find(SOFTWARE, algorithm)
    }
}

impl fmt::Debug for GroupBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupBackend").field(&self.node.name).finish()
    }
}

impl Backend for GroupBackend {
    fn name(&self) -> &str {
        GROUP
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        (algorithm == Algorithm::Ed25519).then(|| Capabilities::default().sign_lanes(SIGN_LANES))
    }

    fn generate(&self, _algorithm: Algorithm) -> Result<KeyMaterial> {
        let share = self.node.generate()?;
        Ok(GroupKey::material(share.group_id(), share.public_key().as_bytes()))
    }

    fn load(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        Ok(Arc::new(GroupKey::read(&self.node, material)?))
    }

    /// Destroys the shares of all nodes that can be reached. It is enough when those that are left
    /// cannot sign.
    fn destroy(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        let group = GroupKey::read(&self.node, material)?.group;
        let share = self.node.shares.find(group)?;
        let threshold = share.map_or(self.node.threshold, |share| share.group().threshold());
        self.node.shares.destroy(group)?;
        self.node.memory.forget(group);
        let mut kept = Vec::new();
        for peer in &self.node.peers {
            match peer.call(&PeerRequest::Destroy { group }) {
                Ok(PeerReply::Destroyed {}) => {}
                _ => kept.push(peer.name.as_str()),
            }
        }
        if kept.len() < usize::from(threshold) {
            if !kept.is_empty() {
                tracing::warn!(
                    "a key is destroyed, and these nodes keep their useless shares: {}",
                    kept.join(", ")
                );
            }
            return Ok(());
        }
        let names = kept.join(", ");
        Err(unavailable(format!("too many nodes still have their shares of the key: {names}; try again")))
    }

    fn refresh_shares(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        let key = GroupKey::read(&self.node, material)?;
        self.node.refresh(key.group, &key.verifying_key()?)
    }

    fn repair_share(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        let key = GroupKey::read(&self.node, material)?;
        self.node.repair(key.group, &key.verifying_key()?)
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        self.verifier(algorithm)?.prepare(algorithm, public_key)
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        let verifier = self.verifier(request.public_key.algorithm());
        verifier.map_or(Verdict::Unusable, |verifier| verifier.verify(request))
    }

    fn sign_many(&self, _algorithm: Algorithm, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        let foreign = || KmsError::new(Code::Internal, "the key is not of this backend");
        let mut results: Vec<_> = requests.iter().map(|_| Err(foreign())).collect();
        let mut open: Vec<usize> =
            (0..requests.len()).filter(|at| key_of(&requests[*at]).is_some()).collect();
        // Requests for one key go together.
        while let Some(key) = open.first().and_then(|at| key_of(&requests[*at])) {
            let is_same = |at: &usize| key_of(&requests[*at]).is_some_and(|other| other.group == key.group);
            let (same, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(is_same);
            let messages: Vec<_> = same.iter().map(|at| requests[*at].message).collect();
            let approved: Vec<_> = same.iter().map(|at| requests[*at].approved).collect();
            for (at, result) in same.into_iter().zip(key.sign_all(&messages, &approved)) {
                results[at] = result;
            }
            open = rest;
        }
        results
    }
}

/// The key of a request, if this backend loaded it.
fn key_of<'a>(request: &SignRequest<'a>) -> Option<&'a GroupKey> {
    let key: &'a dyn Any = request.key;
    key.downcast_ref()
}

/// A key of the group, on any node.
struct GroupKey {
    node: Arc<NodeState>,
    group: SessionId,
    public_key: Vec<u8>,
}

impl GroupKey {
    /// What the record has: neither is secret.
    fn material(group: SessionId, public_key: &[u8]) -> KeyMaterial {
        Zeroizing::new(format!("{group} {}", hex::encode(public_key)).into_bytes())
    }

    fn read(node: &Arc<NodeState>, material: &KeyMaterial) -> Result<Self> {
        let parse = || {
            let (group, public_key) = std::str::from_utf8(material).ok()?.split_once(' ')?;
            Some((group.parse().ok()?, hex::decode(public_key).ok()?))
        };
        let (group, public_key) =
            parse().ok_or_else(|| KmsError::new(Code::KeystoreCorrupt, "a group's key is malformed"))?;
        Ok(Self { node: Arc::clone(node), group, public_key })
    }

    fn verifying_key(&self) -> Result<PublicKey> {
        PublicKey::from_bytes(Algorithm::Ed25519, &self.public_key)
    }

    /// This node's share.
    fn share(&self) -> Result<Arc<KeyShare>> {
        let missing = || {
            unavailable(format!("this node, {}, has no share of the key: ask another node", self.node.name))
        };
        let share = self.node.shares.find(self.group)?.ok_or_else(missing)?;
        if share.public_key().as_bytes() != self.public_key {
            return Err(KmsError::new(Code::KeystoreCorrupt, "the share is of another key than the record"));
        }
        Ok(share)
    }

    fn sign_all(&self, messages: &[&[u8]], approved: &[Option<&ApprovedUse>]) -> Vec<Result<Vec<u8>>> {
        let checked = self.node.check_own(self.group, messages, approved);
        let good = |at: &usize| checked[*at].is_ok();
        let places: Vec<_> = (0..messages.len()).filter(good).collect();
        let messages: Vec<_> = places.iter().map(|at| messages[*at]).collect();
        let approved: Vec<_> = places.iter().map(|at| approved[*at]).collect();
        let mut signed = self.node.sign(&|| self.share(), &messages, &approved).into_iter();
        let mut next = || signed.next().expect("there is one result for each message");
        checked.into_iter().map(|checked| checked.and_then(|()| next())).collect()
    }

    fn sign_one(&self, message: &[u8], approved: Option<&ApprovedUse>) -> Result<Vec<u8>> {
        self.sign_all(&[message], &[approved]).pop().expect("there is one result for each message")
    }
}

impl PrivateKey for GroupKey {
    fn shares(&self) -> Option<KeyShares> {
        let share = self.node.shares.find(self.group).ok().flatten()?;
        Some(KeyShares::new(share.group().threshold(), share.members(), share.epoch()))
    }

    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.public_key.clone())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.sign_one(message, None)
    }

    fn sign_approved(&self, message: &[u8], approved: &ApprovedUse) -> Result<Vec<u8>> {
        self.sign_one(message, Some(approved))
    }
}
