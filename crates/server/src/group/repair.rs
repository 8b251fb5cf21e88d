//! The repair of a node's lost share by as many others as sign together. What they send is
//! encrypted to the node that lost it, and it gets the same share again.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bulla_kms::audit_log::AuditOperation;
use bulla_kms::{Code, KmsError, Name, PublicKey, Result};
use bulla_threshold::{Card, KeyShare, Message, Repair, SessionId, ThresholdError};

use super::change::parse_lines;
use super::node::NodeState;
use super::peer::Peer;
use super::wire::{PeerReply, PeerRequest, Refusal, RefusalReason, ShareStatus, unavailable};

/// The most repairs that a node helps with at a time. The oldest make room.
const MAX_REPAIRS: usize = 16;
/// How often the messages go round: two are needed.
const MAX_ROUNDS: usize = 3;

/// The repairs that this node helps with, the oldest first. They are in memory alone.
#[derive(Default)]
pub(super) struct Repairs(Vec<Repair>);

impl NodeState {
    /// Lets the others repair this node's share. When this returns, it is on the disk.
    ///
    /// # Errors
    /// [`Code::Conflict`] if the node has its share; [`Code::DeviceUnavailable`] if too few others
    /// answer; [`Code::DeviceFailed`] if one sent something wrong.
    pub(super) fn repair(&self, group: SessionId, public_key: &PublicKey) -> Result<()> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, peers) = self.find_helpers(group)?;
        if let Some(share) = self.shares.find(group)?
            && (Some(share.shares_id()) == status.shares || share.epoch() > status.epoch)
        {
            let text =
                format!("this node, {}, has its share of the key: there is nothing to repair", self.name);
            return Err(KmsError::new(Code::Conflict, text));
        }
        let shares = status.shares.expect("the helpers have shares");
        let proposal = Message::parse(status.proposal.as_deref().unwrap_or_default());
        let proposal = proposal.map_err(|error| self.blame(error))?;
        let mut cards = vec![self.keys.card()];
        for peer in &peers {
            cards.push(self.fetch_card(peer)?);
        }
        let helpers: Vec<_> = peers.iter().map(|peer| peer.name.clone()).collect();
        let request = Repair::request_with_cards(&self.keys, &proposal, shares, &helpers, &cards);
        let request = request.map_err(|error| self.refused(error))?;
        let mut repair = Repair::receive_with_cards(&self.keys, &proposal, &request, &cards)
            .map_err(|error| self.blame(error))?;
        for _ in 0..MAX_ROUNDS {
            for peer in &peers {
                let messages = repair.messages().map(Message::to_string).collect();
                for message in self.ask_for_messages(peer, &PeerRequest::Repair { group, messages })? {
                    repair.receive(&message).map_err(|error| self.blame(error))?;
                }
            }
            repair.advance(&self.keys).map_err(|error| self.blame(error))?;
        }
        let missing = || KmsError::new(Code::DeviceFailed, "the other nodes did not repair the share");
        let share = repair.into_share().ok_or_else(missing)?;
        if share.public_key() != *public_key || share.group_id() != group {
            let text = "the other nodes repaired a share of another key than the record's";
            return Err(KmsError::new(Code::DeviceFailed, text));
        }
        self.shares.keep(&share)?;
        self.forget_nonces(group);
        Ok(())
    }

    /// As many other nodes as sign together, all with shares of one epoch, and what they have.
    fn find_helpers(&self, group: SessionId) -> Result<(ShareStatus, Vec<&Peer>)> {
        let mut found: BTreeMap<(u32, SessionId), (ShareStatus, Vec<&Peer>)> = BTreeMap::new();
        for peer in &self.peers {
            let Ok(status) = self.fetch_status(peer, group) else { continue };
            if let Some(shares) = status.shares {
                found.entry((status.epoch, shares)).or_insert((status, Vec::new())).1.push(peer);
            }
        }
        for (status, mut peers) in found.into_values().rev() {
            let threshold = status.threshold().map_err(|error| self.blame(error))?;
            if peers.len() >= threshold {
                peers.truncate(threshold);
                return Ok((status, peers));
            }
        }
        let text =
            "a share is repaired by as many other nodes as sign together, and too few with shares answer";
        Err(unavailable(text.to_owned()))
    }

    /// The proposal does not have this node, or not with this key.
    fn refused(&self, error: ThresholdError) -> KmsError {
        let text =
            format!("the share of {} cannot be repaired: {error}; refresh the shares instead", self.name);
        KmsError::new(Code::DeviceFailed, text)
    }

    /// Helps another node to repair its share.
    pub(super) fn help_to_repair(
        &self,
        from: &Name,
        group: SessionId,
        lines: &[String],
    ) -> Result<PeerReply, Refusal> {
        let malformed = |error: ThresholdError| Refusal::new(RefusalReason::Malformed, error.message);
        let (share, _) = self.permitted(&*self.keystore()?, group)?;
        let messages = parse_lines(lines).map_err(malformed)?;
        let request = messages.iter().find(|message| message.kind() == "repair");
        let request =
            request.ok_or_else(|| Refusal::new(RefusalReason::Malformed, "no message asks for a repair"))?;
        if request.lost_by() != Some(from) {
            let text = format!("{from} asks for the share of another node");
            return Err(Refusal::new(RefusalReason::NotPermitted, text));
        }
        let mut repairs = self.repairs.lock().unwrap_or_else(PoisonError::into_inner);
        let place = repairs.0.iter().position(|one| Some(one.session()) == request.opens());
        let mut repair = match place {
            Some(place) => repairs.0.remove(place),
            None => {
                let cards = self.cards_of(from)?;
                let own = KeyShare::from_secret_bytes(&share.to_secret_bytes()).map_err(malformed)?;
                let mut helping = None;
                let text = request.to_string();
                self.record_change(from, AuditOperation::RepairShares, &share.public_key(), &text, || {
                    let made = Repair::help_with_cards(&self.keys, own, request, &cards);
                    helping =
                        Some(made.map_err(|error| KmsError::new(Code::InvalidArgument, error.message))?);
                    Ok(())
                })?;
                helping.expect("it was just made")
            }
        };
        for message in messages.iter().filter(|message| *message != request) {
            repair.receive(message).map_err(malformed)?;
        }
        repair.advance(&self.keys).map_err(malformed)?;
        let sent = repair.messages().filter(|message| message.sender() == &self.name);
        let sent = sent.map(Message::to_string).collect();
        if repairs.0.len() == MAX_REPAIRS {
            repairs.0.remove(0);
        }
        repairs.0.push(repair);
        Ok(PeerReply::Reshared { messages: sent })
    }

    /// The cards that the others show now: a node that lost its folder has another one.
    fn cards_of(&self, from: &Name) -> Result<Vec<Card>, Refusal> {
        let mut cards = vec![self.keys.card()];
        for peer in &self.peers {
            match self.fetch_card(peer) {
                Ok(card) => cards.push(card),
                Err(error) if peer.name == *from => return Err(Refusal::not_permitted(&error)),
                // Not all of the others help.
                Err(_) => {}
            }
        }
        Ok(cards)
    }
}
