//! The generation of a key by all nodes, without a dealer. The node that is asked for the key
//! carries the messages; each is signed by its sender and its secrets are encrypted, so the carrier
//! can neither read nor change them.

use std::sync::PoisonError;

use bulla_kms::{Code, KmsError, Name, Result};
use bulla_threshold::{Card, Group, KeyGeneration, KeyShare, Message, SessionId, ThresholdError};

use super::node::NodeState;
use super::peer::Peer;
use super::wire::{PeerReply, PeerRequest, Refusal, RefusalReason, unavailable};

/// The most generations that a node is in at a time. The oldest make room.
const MAX_GENERATIONS: usize = 16;
/// How often the messages go round at the most: three are needed.
const MAX_ROUNDS: usize = 5;

/// The generations that have begun, the oldest first. They are in memory alone: one that ends with
/// its process has made no key.
#[derive(Default)]
pub(super) struct Generations(Vec<KeyGeneration>);

impl Generations {
    fn take(&mut self, session: SessionId) -> Option<KeyGeneration> {
        let place = self.0.iter().position(|one| one.session() == session)?;
        Some(self.0.remove(place))
    }

    fn put(&mut self, generation: KeyGeneration) {
        if self.0.len() == MAX_GENERATIONS {
            self.0.remove(0);
        }
        self.0.push(generation);
    }
}

impl NodeState {
    /// Makes a key with all other nodes. When this returns, each of them has its share on its disk.
    ///
    /// # Errors
    /// [`Code::DeviceUnavailable`] if a node does not answer; [`Code::DeviceFailed`] if one sent
    /// something wrong, which the message names.
    pub(super) fn generate(&self) -> Result<KeyShare> {
        let mut cards = vec![self.keys.card()];
        for peer in &self.peers {
            cards.push(self.fetch_card(peer)?);
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| KmsError::new(Code::RandomUnavailable, format!("no random bytes: {error}")))?;
        let name = format!("nodes-{}", hex::encode(random)).parse()?;
        let proposal = Group::new(name, self.threshold, cards)
            .and_then(|group| group.propose(&self.keys))
            .map_err(|error| self.blame(error))?;
        let mut generation = KeyGeneration::join(&self.keys, &proposal).map_err(|error| self.blame(error))?;
        for _ in 0..MAX_ROUNDS {
            let mut complete = true;
            for peer in &self.peers {
                complete &= self.carry(peer, &mut generation)?;
            }
            generation.advance(&self.keys).map_err(|error| self.blame(error))?;
            if complete && generation.is_complete() {
                let share = generation.into_share().expect("it is complete");
                self.shares.keep(&share)?;
                return Ok(share);
            }
        }
        Err(KmsError::new(Code::DeviceFailed, "the nodes did not agree on a key: see the logs of all nodes"))
    }

    /// Exchanges messages with one node. Returns whether it is done.
    fn carry(&self, peer: &Peer, generation: &mut KeyGeneration) -> Result<bool> {
        let messages = generation.messages().map(Message::to_string).collect();
        match peer.call(&PeerRequest::Generate { messages }) {
            Ok(PeerReply::Generated { messages, complete }) => {
                for line in messages {
                    Message::parse(&line)
                        .and_then(|message| generation.receive(&message))
                        .map_err(|error| self.blame(error))?;
                }
                Ok(complete)
            }
            Ok(PeerReply::Refused(Refusal { message, .. })) => {
                let message = format!("the node {} does not join the making of a key: {message}", peer.name);
                Err(KmsError::new(Code::DeviceFailed, message))
            }
            other => Err(no_answer(peer, other.map(drop))),
        }
    }

    /// The card of a node, which the channel vouches for.
    pub(super) fn fetch_card(&self, peer: &Peer) -> Result<Card> {
        match peer.call(&PeerRequest::Card {}) {
            Ok(PeerReply::Card { card }) => {
                let card = Message::parse(&card).and_then(|message| Card::of(&message));
                match card {
                    Ok(card) if card.name == peer.name => Ok(card),
                    _ => Err(KmsError::new(
                        Code::DeviceFailed,
                        format!("the node {} shows the card of another node", peer.name),
                    )),
                }
            }
            other => Err(no_answer(peer, other.map(drop))),
        }
    }

    /// Answers a node that makes a key.
    pub(super) fn join_generation(&self, from: &Name, lines: &[String]) -> PeerReply {
        match self.try_join_generation(from, lines) {
            Ok(reply) => reply,
            Err(refusal) => {
                tracing::warn!(peer = %from, "a key is not made with a node of the group: {}", refusal.message);
                PeerReply::Refused(refusal)
            }
        }
    }

    fn try_join_generation(&self, from: &Name, lines: &[String]) -> Result<PeerReply, Refusal> {
        let malformed = |error: ThresholdError| Refusal::new(RefusalReason::Malformed, error.message);
        let messages: Vec<_> =
            lines.iter().map(|line| Message::parse(line)).collect::<Result<_, _>>().map_err(malformed)?;
        let proposal = messages.iter().find(|message| Group::of(message).is_ok());
        let proposal =
            proposal.ok_or_else(|| Refusal::new(RefusalReason::Malformed, "there is no proposal"))?;
        let session = proposal.opens().expect("a proposal opens a session");
        let not_kept = |error: KmsError| Refusal::not_permitted(&error);
        if self.shares.find(session).map_err(not_kept)?.is_some() {
            return Ok(PeerReply::Generated { messages: Vec::new(), complete: true });
        }
        let known = self.generations.lock().unwrap_or_else(PoisonError::into_inner).take(session);
        let mut generation = match known {
            Some(generation) => generation,
            None => {
                self.check_proposal(from, proposal)?;
                KeyGeneration::join(&self.keys, proposal).map_err(malformed)?
            }
        };
        for message in messages.iter().filter(|message| *message != proposal) {
            generation.receive(message).map_err(malformed)?;
        }
        generation.advance(&self.keys).map_err(malformed)?;
        let sent = generation.messages().filter(|message| message.sender() == &self.name);
        let sent = sent.filter(|message| *message != proposal).map(Message::to_string).collect();
        let complete = generation.is_complete();
        if complete {
            let share = generation.into_share().expect("it is complete");
            self.shares.keep(&share).map_err(not_kept)?;
        } else {
            self.generations.lock().unwrap_or_else(PoisonError::into_inner).put(generation);
        }
        Ok(PeerReply::Generated { messages: sent, complete })
    }

    /// A node joins only a group of all nodes, with the threshold of its own settings, and with the
    /// cards that the nodes themselves show: else the proposer could hold several shares.
    fn check_proposal(&self, from: &Name, proposal: &Message) -> Result<(), Refusal> {
        let refused = |text: String| Err(Refusal::new(RefusalReason::NotPermitted, text));
        let group =
            Group::of(proposal).map_err(|error| Refusal::new(RefusalReason::Malformed, error.message))?;
        if proposal.sender() != from {
            return refused(format!("{from} brings a proposal of {}", proposal.sender()));
        }
        self.check_nodes(from, &group, &[])
    }

    /// Whether a group is that of this node's settings, with the cards that the nodes show.
    pub(super) fn check_nodes(&self, from: &Name, group: &Group, helpers: &[Card]) -> Result<(), Refusal> {
        let refused = |text: String| Err(Refusal::new(RefusalReason::NotPermitted, text));
        if group.threshold() != self.threshold {
            return refused(format!(
                "the settings of {from} say that {} nodes sign, and those of {} say {}",
                group.threshold(),
                self.name,
                self.threshold
            ));
        }
        if group.participants().len() != self.peers.len() + 1
            || group.card(&self.name) != Some(&self.keys.card())
        {
            return refused(format!("the settings of {from} and {} name different nodes", self.name));
        }
        for peer in &self.peers {
            let card = self.fetch_card(peer).map_err(|error| Refusal::not_permitted(&error))?;
            if group.card(&peer.name) != Some(&card) {
                return refused(format!("{from} brings another card of {} than the one it shows", peer.name));
            }
        }
        match helpers.iter().find(|card| group.card(&card.name) != Some(card)) {
            Some(card) => refused(format!("{from} lets {} help, which is not in the settings", card.name)),
            None => Ok(()),
        }
    }

    /// Leaves out whom an error names.
    pub(super) fn blame(&self, error: ThresholdError) -> KmsError {
        for peer in self.peers.iter().filter(|peer| error.culprits.contains(&peer.name)) {
            self.leave_out(peer, &error.message);
        }
        KmsError::new(Code::DeviceFailed, format!("the nodes of the group: {error}"))
    }

    /// Leaves out a node that sent something wrong.
    pub(super) fn leave_out(&self, peer: &Peer, why: &str) {
        self.counters.wrong_messages.inc();
        peer.leave_out(why);
    }
}

pub(super) fn no_answer(peer: &Peer, reply: std::io::Result<()>) -> KmsError {
    match reply {
        Err(error) => unavailable(format!("the node {} does not answer: {error}", peer.name)),
        Ok(()) => KmsError::new(
            Code::DeviceFailed,
            format!("the node {} answers something else than it was asked", peer.name),
        ),
    }
}
