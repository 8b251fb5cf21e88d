//! Signing, as the node that was asked: it chooses who signs, sends the orders, and puts the parts
//! together. One round trip makes a signature.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bulla_kms::approval::ApprovedUse;
use bulla_kms::{Code, KmsError, Name, Result};
use bulla_threshold::{KeyShare, Nonce, OrderShare, PreparedOrder, ReadyNonce, SigningOrder, combine};

use super::node::NodeState;
use super::peer::{Peer, Standing};
use super::wire::{
    MAX_ORDERS, PeerOrder, PeerPart, PeerReply, PeerRequest, Refusal, RefusalReason, unavailable,
};

/// How many nonces of each other node are ready beside those that are asked for.
const SPARE_NONCES: usize = 64;
/// The most bytes of the messages of one request to another node.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Why nodes do not sign for one call, beside those that are silent or left out.
type Refusals = HashMap<Name, String>;

impl NodeState {
    /// The group's signature of each message, in their order. Each attempt asks for the share: it
    /// may have been changed meanwhile. The other nodes see what permits each message, `approved`.
    pub(super) fn sign(
        &self,
        share: &dyn Fn() -> Result<Arc<KeyShare>>,
        messages: &[&[u8]],
        approved: &[Option<&ApprovedUse>],
    ) -> Vec<Result<Vec<u8>>> {
        let mut signatures: Vec<Option<Vec<u8>>> = vec![None; messages.len()];
        let mut refusals = Refusals::new();
        let mut trouble = None;
        // Each attempt that fails has one node less, or one whose nonces or share were renewed.
        let mut attempts = 3 * self.peers.len() + 1;
        loop {
            let next = next_batch(messages, &signatures);
            if next.is_empty() {
                break;
            }
            let made = match attempts {
                0 => Err(KmsError::new(Code::DeviceFailed, "the nodes of the group did not sign")),
                _ => share().and_then(|share| {
                    self.attempt(&share, &next, messages, approved, &mut signatures, &mut refusals)
                }),
            };
            match made {
                Ok(true) => {}
                Ok(false) => attempts -= 1,
                Err(error) => {
                    trouble = Some(error);
                    break;
                }
            }
        }
        let missing = || trouble.clone().unwrap_or_else(|| unavailable("nobody signed".to_owned()));
        self.counters.signatures.inc_by(signatures.iter().flatten().count() as u64);
        signatures.into_iter().map(|signature| signature.ok_or_else(missing)).collect()
    }

    /// Asks as many nodes as are needed, once. Returns whether all of `places` are signed.
    fn attempt(
        &self,
        share: &Arc<KeyShare>,
        places: &[usize],
        messages: &[&[u8]],
        approved: &[Option<&ApprovedUse>],
        signatures: &mut [Option<Vec<u8>>],
        refusals: &mut Refusals,
    ) -> Result<bool> {
        if messages[places[0]].len() > MAX_MESSAGE_BYTES {
            let text = format!("a group of nodes signs messages of at most {MAX_MESSAGE_BYTES} bytes");
            return Err(KmsError::new(Code::InvalidArgument, text));
        }
        let signers = self.choose_signers(share, refusals)?;
        let mut ready = Vec::with_capacity(signers.len());
        for peer in &signers {
            match self.nonces(peer, share, places.len(), refusals) {
                Some(nonces) => ready.push(nonces),
                None => return Ok(false),
            }
        }
        let own = Nonce::fresh(share, places.len());
        let orders = self.orders(share, places, messages, &own, &signers, &ready);
        let request = |which: usize| {
            let signer = &signers[which].name;
            let orders = orders.iter().zip(&ready[which]);
            let orders = orders
                .enumerate()
                .map(|(index, (order, ready))| PeerOrder {
                    nonce: ready.id,
                    order: order.without(signer),
                    approval: approved[places[index]].map(|approved| Box::new(approved.into())),
                })
                .collect();
            PeerRequest::Sign { group: share.group_id(), orders, refill: places.len() }
        };
        // All of them work at the same time, and this node too.
        let sent: Vec<_> =
            signers.iter().enumerate().map(|(which, peer)| peer.begin(&request(which))).collect();
        let orders = PreparedOrder::prepare_all(share, orders).into_iter().collect::<Result<Vec<_>, _>>();
        let orders = orders.map_err(|error| self.blame(error))?;
        let mut parts: Vec<BTreeMap<Name, OrderShare>> = Vec::with_capacity(orders.len());
        for (own, order) in own.into_iter().zip(&orders) {
            let part = own.sign(order).map_err(|error| self.blame(error))?;
            parts.push(BTreeMap::from([(self.name.clone(), part)]));
        }
        let mut whole = true;
        for (peer, sent) in signers.iter().zip(sent) {
            whole &= match sent.and_then(super::peer::PendingReply::finish) {
                Ok(reply) => self.take_parts(peer, share, reply, &mut parts, refusals),
                // The node is silent now, and the next attempt passes it over.
                Err(_) => false,
            };
        }
        let has_all = |parts: &BTreeMap<_, _>| parts.len() == usize::from(share.group().threshold());
        let signed = || orders.iter().zip(&parts).enumerate().filter(|(_, (_, parts))| has_all(parts));
        let all: Vec<_> = signed().map(|(_, order)| order).collect();
        for ((at, _), made) in signed().zip(combine(share, &all)) {
            match made {
                Ok(signature) => signatures[places[at]] = Some(signature.to_vec()),
                Err(error) if error.culprits.is_empty() => return Err(self.blame(error)),
                Err(error) => {
                    self.blame(error);
                    whole = false;
                }
            }
        }
        Ok(whole)
    }

    /// The nodes that sign with this one.
    fn choose_signers(&self, share: &KeyShare, refusals: &Refusals) -> Result<Vec<&Peer>> {
        let wanted = usize::from(share.group().threshold()) - 1;
        let members = share.members();
        let count = self.peers.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..count).map(|step| &self.peers[turn.wrapping_add(step) % count]);
        let usable = |peer: &&Peer| {
            peer.standing() == Standing::Answering
                && !refusals.contains_key(&peer.name)
                && members.contains(&peer.name)
        };
        let chosen: Vec<_> = in_turn.filter(usable).take(wanted).collect();
        if chosen.len() == wanted {
            return Ok(chosen);
        }
        let reasons = self.peers.iter().filter_map(|peer| {
            let reason = match (peer.standing(), refusals.get(&peer.name)) {
                (_, Some(refusal)) => refusal.as_str(),
                (Standing::Silent, None) => "it does not answer",
                (Standing::LeftOut(_), None) => "it sent something wrong, and is left out for a while",
                (Standing::Answering, None) if members.contains(&peer.name) => return None,
                (Standing::Answering, None) => "it has no share of the key",
            };
            Some(format!("{}: {reason}", peer.name))
        });
        Err(unavailable(format!(
            "{} nodes sign together, and too few of them can now: {}",
            share.group().threshold(),
            reasons.collect::<Vec<_>>().join("; ")
        )))
    }

    /// As many nonces of a node as there are orders. None if it has to be left out of this call.
    fn nonces(
        &self,
        peer: &Peer,
        share: &KeyShare,
        count: usize,
        refusals: &mut Refusals,
    ) -> Option<Vec<ReadyNonce>> {
        let (group, shares) = (share.group_id(), share.shares_id());
        let mut nonces = peer.take_nonces(shares, count);
        while nonces.len() < count {
            let missing = count - nonces.len() + SPARE_NONCES.saturating_sub(peer.count_nonces(shares));
            match peer.call(&PeerRequest::Prepare { group, shares, count: missing.min(MAX_ORDERS) }).ok()? {
                PeerReply::Ready { nonces: new } if !new.is_empty() => peer.add_nonces(shares, new),
                PeerReply::Refused(refusal) => {
                    self.note_refusal(peer, share, refusal, refusals);
                    return None;
                }
                _ => {
                    self.leave_out(peer, "it answers something else than it was asked");
                    return None;
                }
            }
            nonces.extend(peer.take_nonces(shares, count - nonces.len()));
        }
        Some(nonces)
    }

    fn orders(
        &self,
        share: &KeyShare,
        places: &[usize],
        messages: &[&[u8]],
        own: &[Nonce],
        signers: &[&Peer],
        ready: &[Vec<ReadyNonce>],
    ) -> Vec<SigningOrder> {
        let one = |(index, place): (usize, &usize)| {
            let others = signers
                .iter()
                .zip(ready)
                .map(|(peer, nonces)| (peer.name.clone(), nonces[index].commitments));
            let commitments = others.chain([(self.name.clone(), own[index].commitments())]).collect();
            SigningOrder::new(share, messages[*place], commitments)
        };
        places.iter().enumerate().map(one).collect()
    }

    /// Takes one node's parts. Returns whether it has signed everything.
    fn take_parts(
        &self,
        peer: &Peer,
        share: &KeyShare,
        reply: PeerReply,
        parts: &mut [BTreeMap<Name, OrderShare>],
        refusals: &mut Refusals,
    ) -> bool {
        let (signed, nonces) = match reply {
            PeerReply::Signed { parts: signed, nonces } if signed.len() == parts.len() => (signed, nonces),
            PeerReply::Refused(refusal) => {
                self.note_refusal(peer, share, refusal, refusals);
                return false;
            }
            _ => {
                self.leave_out(peer, "it answers something else than it was asked");
                return false;
            }
        };
        let mut whole = true;
        for (parts, signed) in parts.iter_mut().zip(signed) {
            match signed {
                PeerPart::Part(part) => {
                    parts.insert(peer.name.clone(), part);
                }
                PeerPart::Refused(refusal) => {
                    self.note_refusal(peer, share, refusal, refusals);
                    whole = false;
                }
            }
        }
        peer.add_nonces(share.shares_id(), nonces);
        whole
    }

    fn note_refusal(&self, peer: &Peer, share: &KeyShare, refusal: Refusal, refusals: &mut Refusals) {
        match refusal.reason {
            // It was started again: the next attempt asks for new ones.
            RefusalReason::NoncesSpent => peer.forget_nonces(),
            // One of the two has not heard that the shares were changed, and hears it now.
            RefusalReason::OtherShares => {
                let group = share.group_id();
                let status = self.level(peer, group).ok().and_then(|status| status.shares);
                let own = self.shares.find(group).ok().flatten().map(|share| share.shares_id());
                if own.is_none() || (own == Some(share.shares_id()) && own != status) {
                    refusals.insert(peer.name.clone(), refusal.message);
                }
            }
            RefusalReason::NotPermitted | RefusalReason::Busy => {
                drop(refusals.insert(peer.name.clone(), refusal.message))
            }
            RefusalReason::Malformed => self.leave_out(peer, &refusal.message),
        }
    }
}

/// The places of the next messages that are not signed, as many as fit into one request.
fn next_batch(messages: &[&[u8]], signatures: &[Option<Vec<u8>>]) -> Vec<usize> {
    let mut bytes = 0;
    let open = (0..messages.len()).filter(|place| signatures[*place].is_none());
    let fits = |place: &usize| {
        let is_first = bytes == 0;
        bytes += messages[*place].len() + 1;
        is_first || bytes <= MAX_MESSAGE_BYTES
    };
    open.take(MAX_ORDERS).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_as_many_messages_as_fit_and_at_least_one() {
        let (long, short) = (vec![0; MAX_MESSAGE_BYTES], vec![0; 10]);
        let messages: Vec<&[u8]> = vec![&long, &short, &short];
        assert_eq!(next_batch(&messages, &[None, None, None]), [0]);
        assert_eq!(next_batch(&messages, &[Some(Vec::new()), None, None]), [1, 2]);
        assert_eq!(next_batch(&messages, &[None, Some(Vec::new()), Some(Vec::new())]), [0]);
        let many = vec![&*short; MAX_ORDERS + 1];
        assert_eq!(next_batch(&many, &vec![None; many.len()]).len(), MAX_ORDERS);
        assert!(next_batch(&many, &vec![Some(Vec::new()); many.len()]).is_empty());
    }
}
