//! Changes of the shares of a key: new shares for the nodes and with the threshold that the
//! settings name now, and the same public key.
//!
//! A change counts for all nodes or for none. Each node keeps its new share beside the old one and
//! confirms that by a signed message. When all have confirmed, the change counts, and everybody can
//! tell from the confirmations: only then does a node wipe its old share. A node that has not
//! confirmed may withdraw, for ever, and then the change never counts. Until it is settled, the old
//! shares sign.
//! `docs/decisions/0380-new-shares-for-other-nodes.md` says why this is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use bulla_kms::audit_log::{Actor, AuditOperation};
use bulla_kms::backend::GROUP;
use bulla_kms::{Code, KmsError, Name, PublicKey, Result};
use bulla_threshold::{
    Card, Group, Handover, KeyShare, Message, Resharing, SessionId, ThresholdError, confirm, withdraw,
};

use super::generation::no_answer;
use super::node::NodeState;
use super::peer::{Peer, Standing};
use super::wire::{Answer, PeerReply, PeerRequest, Refusal, RefusalReason, ShareStatus, unavailable};

/// The most changes that a node is in at a time. The oldest make room.
const MAX_CHANGES: usize = 16;
/// How often the messages go round at the most: two are needed, and a third tells the end.
const MAX_ROUNDS: usize = 4;

/// The changes that have begun here for other nodes, the oldest first. They are in memory alone: a
/// node that was started again withdraws from those that it has not confirmed.
#[derive(Default)]
pub(super) struct Changes(Vec<Resharing>);

impl Changes {
    fn take(&mut self, session: SessionId) -> Option<Resharing> {
        let place = self.0.iter().position(|one| one.session() == session)?;
        Some(self.0.remove(place))
    }

    fn put(&mut self, change: Resharing) {
        if self.0.len() == MAX_CHANGES {
            self.0.remove(0);
        }
        self.0.push(change);
    }
}

fn lines<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    messages.into_iter().map(Message::to_string).collect()
}

pub(super) fn parse_lines(lines: &[String]) -> Result<Vec<Message>, ThresholdError> {
    lines.iter().map(|line| Message::parse(line)).collect()
}

/// The handover of the change that the messages open, with what they say of it.
pub(super) fn handover_of(messages: &[Message]) -> Option<Result<Handover, ThresholdError>> {
    let mut handover = messages.iter().find_map(|message| Handover::of(message).ok())?;
    let session = handover.session();
    let mut of_it = messages.iter().filter(|message| message.session() == session);
    let taken = of_it.try_for_each(|message| handover.receive(message).map(drop));
    Some(taken.map(|()| handover))
}

/// What other nodes ask of this one.
impl NodeState {
    /// What this node has of a key.
    pub(super) fn share_status(&self, group: SessionId) -> Result<ShareStatus, Refusal> {
        let holding = self.shares.holding(group).map_err(|error| Refusal::not_permitted(&error))?;
        let mut status = ShareStatus::default();
        if let Some(share) = &holding.share {
            status.shares = Some(share.shares_id());
            status.epoch = share.epoch();
            status.proposal = Some(share.proposal().to_string());
            status.proof = lines(&holding.proof);
        }
        if let Some(next) = holding.pending() {
            let confirmed = confirm(&self.keys, next);
            let confirmed =
                confirmed.map_err(|error| Refusal::new(RefusalReason::NotPermitted, error.message))?;
            status.next = lines([next.proposal(), &confirmed]);
        }
        Ok(status)
    }

    /// Answers a node that changes the shares, or settles a change that somebody else began.
    pub(super) fn join_change(&self, from: &Name, messages: &[String], wanted: Answer) -> PeerReply {
        // One after the other: a message that comes twice must not begin a change twice.
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        match self.try_join_change(&mut changes, from, messages, wanted) {
            Ok(messages) => PeerReply::Reshared { messages },
            Err(refusal) => {
                tracing::warn!(peer = %from, "the shares of a key are not changed: {}", refusal.message);
                PeerReply::Refused(refusal)
            }
        }
    }

    fn try_join_change(
        &self,
        changes: &mut Changes,
        from: &Name,
        messages: &[String],
        wanted: Answer,
    ) -> Result<Vec<String>, Refusal> {
        let malformed = |error: ThresholdError| Refusal::new(RefusalReason::Malformed, error.message);
        let not_kept = |error: KmsError| Refusal::not_permitted(&error);
        let messages = parse_lines(messages).map_err(malformed)?;
        let mut change = handover_of(&messages)
            .ok_or_else(|| Refusal::new(RefusalReason::Malformed, "no message opens a change of shares"))?
            .map_err(malformed)?;
        let group = change.group_id();
        let holding = self.shares.holding(group).map_err(not_kept)?;
        if let Some(share) = &holding.share {
            if share.proposal().opens() == Some(change.session()) {
                return Ok(lines(&holding.proof));
            }
            if share.epoch() >= change.epoch() {
                return Err(Refusal::new(
                    RefusalReason::OtherShares,
                    "this node has newer shares of the key",
                ));
            }
        }
        if let Some(next) = holding.confirmed(change.session()) {
            return Ok(lines([&self.confirm_change(&mut change, next)?]));
        }
        if !self.is_holder(&change) && wanted == Answer::Settle {
            return Ok(Vec::new());
        }
        // A part of its own that this process does not know is one of a process that was killed.
        let is_own = |message: &Message| self.is_own_part(message);
        let known = changes.take(change.session());
        if wanted == Answer::Settle
            || holding.is_withdrawn(change.session())
            || change.failure().is_some()
            || (known.is_none() && messages.iter().any(is_own))
        {
            if holding.any().is_none() {
                self.check_key(&change)?;
            }
            self.shares.withdraw(&change).map_err(not_kept)?;
            let opening = change.messages().next().expect("the opening is the first");
            return Ok(lines([&withdraw(&self.keys, opening).map_err(malformed)?]));
        }
        let session = match known {
            Some(session) => session,
            None => self.begin_change(from, &change, holding.share.as_ref())?,
        };
        self.go_on(changes, session, from, change, &messages)
    }

    /// Takes the parts of others, and keeps the new share as soon as all are there.
    fn go_on(
        &self,
        changes: &mut Changes,
        mut session: Resharing,
        from: &Name,
        mut change: Handover,
        messages: &[Message],
    ) -> Result<Vec<String>, Refusal> {
        let malformed = |error: ThresholdError| Refusal::new(RefusalReason::Malformed, error.message);
        let is_part = |message: &&Message| message.kind() == "reshare-part";
        for message in messages.iter().filter(is_part) {
            session.receive(message).map_err(malformed)?;
        }
        let mut sent: Vec<_> =
            session.messages().filter(|message| self.is_own_part(message)).cloned().collect();
        match session.new_share(&self.keys).map_err(malformed)? {
            None => changes.put(session),
            Some(next) => {
                let opening = next.proposal().to_string();
                let operation = AuditOperation::RefreshShares;
                self.record_change(from, operation, change.public_key(), &opening, || {
                    self.shares.prepare(&change, &next)
                })?;
                sent.push(self.confirm_change(&mut change, &next)?);
            }
        }
        Ok(lines(&sent))
    }

    /// Confirms a share that is on the disk, and ends the change if that was the last word.
    fn confirm_change(&self, change: &mut Handover, next: &KeyShare) -> Result<Message, Refusal> {
        let malformed = |error: ThresholdError| Refusal::new(RefusalReason::Malformed, error.message);
        let mine = confirm(&self.keys, next).map_err(malformed)?;
        change.receive(&mine).map_err(malformed)?;
        self.settle(change).map_err(|error| Refusal::not_permitted(&error))?;
        Ok(mine)
    }

    fn is_own_part(&self, message: &Message) -> bool {
        message.kind() == "reshare-part" && message.sender() == &self.name
    }

    fn begin_change(
        &self,
        from: &Name,
        change: &Handover,
        share: Option<&Arc<KeyShare>>,
    ) -> Result<Resharing, Refusal> {
        if self.changing.try_lock().is_err() {
            let text = format!("{} is changing shares itself: try again", self.name);
            return Err(Refusal::new(RefusalReason::Busy, text));
        }
        self.check_change(from, change)?;
        // A share from before the last change, as of a folder that was restored, counts as lost.
        let old = share.filter(|share| share.epoch() + 1 >= change.epoch());
        let opening = change.messages().next().expect("the opening is the first");
        Resharing::join(&self.keys, old, opening)
            .map_err(|error| Refusal::new(RefusalReason::Malformed, error.message))
    }

    /// A node helps only to give new shares to exactly the nodes of its own settings, with its own
    /// threshold, with the cards that the nodes show by themselves, and of a key that its own view
    /// of the keystore has.
    fn check_change(&self, from: &Name, change: &Handover) -> Result<(), Refusal> {
        let refused = |text: String| Err(Refusal::new(RefusalReason::NotPermitted, text));
        let opening = change.messages().next().expect("the opening is the first");
        if opening.sender() != from {
            return refused(format!("{from} brings a change of {}", opening.sender()));
        }
        self.check_nodes(from, change.holders(), change.helpers())?;
        self.check_key(change)
    }

    /// The keystore has the key.
    fn check_key(&self, change: &Handover) -> Result<(), Refusal> {
        let keystore = self.keystore()?;
        let find = || keystore.find_version(GROUP, change.public_key());
        let version = find().or_else(|| keystore.catch_up().ok().and_then(|_| find()));
        match version.is_some_and(|version| keystore.holds_private_key(&version)) {
            true => Ok(()),
            false => {
                Err(Refusal::new(RefusalReason::NotPermitted, "the keystore has no such key of the nodes"))
            }
        }
    }

    /// Records what this node does with its share for another one, as an operation of `node NAME`.
    pub(super) fn record_change(
        &self,
        from: &Name,
        operation: AuditOperation,
        public_key: &PublicKey,
        message: &str,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<(), Refusal> {
        let not_permitted = |error: KmsError| Refusal::not_permitted(&error);
        let keystore = self.keystore()?;
        let actor: Actor = format!("node {from}").parse().map_err(not_permitted)?;
        let version = keystore.find_version(GROUP, public_key);
        let missing = || Refusal::new(RefusalReason::NotPermitted, "the keystore has no key with this share");
        let version = version.ok_or_else(missing)?;
        let keystore = keystore.on_behalf_of(&actor);
        keystore.record_shares(operation, &version, message.as_bytes(), run).map_err(not_permitted)
    }

    /// Whether all holders have confirmed whom this node's settings still name. Operators take a
    /// node out of the settings when it is gone for good, and then nobody waits for it.
    fn counts(&self, change: &Handover) -> bool {
        let missing = change.missing();
        let is_named = |name: &Name| *name == self.name || self.peers.iter().any(|peer| peer.name == *name);
        let holders = change.holders();
        holders.participants().len() - missing.len() >= usize::from(holders.threshold())
            && !missing.iter().any(is_named)
    }

    /// Ends a change that this node has confirmed, if it counts by now, or will never count.
    /// Returns whether it counts.
    fn settle(&self, change: &Handover) -> Result<bool> {
        if self.counts(change) {
            self.shares.commit(change)?;
            self.forget_nonces(change.group_id());
            self.peers.iter().for_each(|peer| peer.forget_nonces_of(change.old_shares_id()));
            tracing::info!(epoch = change.epoch(), "the shares of a key were changed");
            return Ok(true);
        }
        if change.failure().is_some() {
            self.shares.note_withdrawn(change)?;
        }
        Ok(false)
    }
}

/// What this node does by itself.
impl NodeState {
    /// Gives the nodes of the settings new shares of a key. When this returns, the old ones count
    /// no more.
    ///
    /// # Errors
    /// [`Code::DeviceUnavailable`] if a node does not answer or changes shares itself: nothing has
    /// changed, or it is not settled yet; [`Code::DeviceFailed`] if one sent something wrong or
    /// refuses, which the message says.
    pub(super) fn refresh(&self, group: SessionId, public_key: &PublicKey) -> Result<()> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let statuses = self.level_all(group)?;
        self.settle_earlier(group, &statuses)?;
        let missing =
            || unavailable(format!("this node, {}, has no share of the key: ask another node", self.name));
        let share = self.shares.find(group)?.ok_or_else(missing)?;
        if share.public_key() != *public_key {
            return Err(KmsError::new(Code::KeystoreCorrupt, "the share is of another key than the record"));
        }
        let (opening, mut session) = self.open_change(&share)?;
        let mut change = Handover::of(&opening).map_err(|error| self.blame(error))?;
        for _ in 0..MAX_ROUNDS {
            let mut peers = self.peers.iter();
            let carried = peers.try_for_each(|peer| self.carry_change(peer, &mut session, &mut change));
            // A signature may have heard from another node that the change counts.
            let has_moved = self.has_moved(&change)?;
            if carried.is_ok() && !has_moved {
                self.confirm_own(&session, &mut change)?;
            }
            if let Some(failure) = change.failure().filter(|_| !has_moved) {
                let _ = self.shares.note_withdrawn(&change);
                let text = format!("the shares are not changed: {failure}; try again");
                return Err(KmsError::new(Code::DeviceFailed, text));
            }
            if has_moved || (self.holds_new_share(&change)? && self.settle(&change)?) {
                // Whoever does not hear of it now asks later.
                for peer in &self.peers {
                    let messages = lines(&self.shares.holding(group)?.proof);
                    let _ = peer.call(&PeerRequest::Reshare { messages, wanted: Answer::Join });
                }
                return Ok(());
            }
            carried?;
        }
        let text = "the nodes did not agree on new shares, and the old ones sign: see the logs of all nodes";
        Err(KmsError::new(Code::DeviceFailed, text))
    }

    /// Makes the message that opens a change, and joins it.
    fn open_change(&self, share: &Arc<KeyShare>) -> Result<(Message, Resharing)> {
        let mut cards = vec![self.keys.card()];
        for peer in &self.peers {
            cards.push(self.fetch_card(peer)?);
        }
        let helpers = self.choose_helpers(share, &cards)?;
        let to = Group::new(share.group().name().clone(), self.threshold, cards);
        let opening = to.and_then(|to| Resharing::propose(&self.keys, share, &helpers, to));
        let opening = opening.map_err(|error| self.blame(error))?;
        let session = Resharing::join(&self.keys, Some(share), &opening);
        session.map(|session| (opening, session)).map_err(|error| self.blame(error))
    }

    /// This node, and as many others with shares of the same epoch as sign together with it.
    fn choose_helpers(&self, share: &KeyShare, cards: &[Card]) -> Result<Vec<Card>> {
        let wanted = usize::from(share.group().threshold());
        let mut helpers = vec![self.keys.card()];
        let members = share.members();
        for peer in self.peers.iter().filter(|peer| members.contains(&peer.name)) {
            if helpers.len() < wanted
                && self.fetch_status(peer, share.group_id())?.shares == Some(share.shares_id())
            {
                helpers.extend(cards.iter().find(|card| card.name == peer.name).cloned());
            }
        }
        if helpers.len() == wanted {
            return Ok(helpers);
        }
        Err(unavailable(format!(
            "{wanted} nodes with shares are needed to change the shares, and the settings name {} of them",
            helpers.len()
        )))
    }

    /// Exchanges the messages of a change with one node.
    fn carry_change(&self, peer: &Peer, session: &mut Resharing, change: &mut Handover) -> Result<()> {
        let messages = session.messages().chain(change.messages().skip(1));
        let request = PeerRequest::Reshare { messages: lines(messages), wanted: Answer::Join };
        for message in self.ask_for_messages(peer, &request)? {
            let taken = match message.kind() {
                "reshare-part" => session.receive(&message),
                _ => change.receive(&message),
            };
            taken.map_err(|error| self.blame(error))?;
        }
        Ok(())
    }

    /// Keeps this node's new share as soon as all parts are there, and confirms it.
    fn confirm_own(&self, session: &Resharing, change: &mut Handover) -> Result<()> {
        if self.holds_new_share(change)? {
            return Ok(());
        }
        let next = session.new_share(&self.keys).map_err(|error| self.blame(error))?;
        let Some(next) = next else { return Ok(()) };
        if let Err(error) = self.shares.prepare(change, &next) {
            return if self.has_moved(change)? { Ok(()) } else { Err(error) };
        }
        let mine = confirm(&self.keys, &next);
        mine.and_then(|mine| change.receive(&mine)).map_err(|error| self.blame(error)).map(drop)
    }

    /// Whether this node's share is the one of the change.
    fn has_moved(&self, change: &Handover) -> Result<bool> {
        let share = self.shares.find(change.group_id())?;
        Ok(share.is_some_and(|share| share.proposal().opens() == Some(change.session())))
    }

    fn holds_new_share(&self, change: &Handover) -> Result<bool> {
        Ok(self.shares.holding(change.group_id())?.confirmed(change.session()).is_some())
    }

    /// Asks one node, and returns the messages of its answer.
    pub(super) fn ask_for_messages(&self, peer: &Peer, request: &PeerRequest) -> Result<Vec<Message>> {
        match peer.call_patiently(request) {
            Ok(PeerReply::Reshared { messages }) => parse_lines(&messages).map_err(|error| self.blame(error)),
            Ok(PeerReply::Refused(Refusal { reason, message })) => {
                let message = format!("the node {} refuses: {message}", peer.name);
                let is_busy = reason == RefusalReason::Busy;
                Err(if is_busy { unavailable(message) } else { KmsError::new(Code::DeviceFailed, message) })
            }
            other => Err(no_answer(peer, other.map(drop))),
        }
    }

    pub(super) fn fetch_status(&self, peer: &Peer, group: SessionId) -> Result<ShareStatus> {
        match peer.call(&PeerRequest::Shares { group }) {
            Ok(PeerReply::Shares(status)) => Ok(*status),
            other => Err(no_answer(peer, other.map(drop))),
        }
    }

    /// Brings all nodes to the newest epoch that counts. All must answer.
    fn level_all(&self, group: SessionId) -> Result<Vec<ShareStatus>> {
        let mut statuses = Vec::with_capacity(self.peers.len());
        // Twice: the last node that is asked may be the first with news.
        for _ in 0..2 {
            statuses.clear();
            for peer in &self.peers {
                statuses.push(self.level(peer, group)?);
            }
        }
        let own = self.shares.find(group)?.map_or(0, |share| share.epoch());
        if let Some(newest) = statuses.iter().map(|status| status.epoch).max().filter(|epoch| *epoch > own) {
            let text = format!(
                "the share of this node, {}, is of the epoch {own}, and that of others of {newest}: repair it, or ask another node",
                self.name
            );
            return Err(unavailable(text));
        }
        Ok(statuses)
    }

    /// Compares shares with one node. Whoever of the two has not heard that a change counts hears
    /// it. Returns what the other one has then.
    pub(super) fn level(&self, peer: &Peer, group: SessionId) -> Result<ShareStatus> {
        let status = self.fetch_status(peer, group)?;
        let holding = self.shares.holding(group)?;
        let own = holding.share.as_ref().map(|share| share.shares_id());
        if status.shares == own {
            return Ok(status);
        }
        let messages = parse_lines(&status.proof).map_err(|error| self.blame(error))?;
        if let Some(change) = handover_of(&messages) {
            let change = change.map_err(|error| self.blame(error))?;
            if change.group_id() == group && holding.confirmed(change.session()).is_some() {
                self.settle(&change)?;
                return Ok(status);
            }
        }
        if !holding.proof.is_empty() && holding.share.as_ref().is_some_and(|one| one.epoch() > status.epoch) {
            let request = PeerRequest::Reshare { messages: lines(&holding.proof), wanted: Answer::Join };
            // It refuses if it cannot follow, and stays where it is.
            peer.call(&request).map_err(|error| no_answer(peer, Err(error)))?;
            return self.fetch_status(peer, group);
        }
        Ok(status)
    }

    /// Settles the changes that were begun before and whose end nobody knows: by the word of every
    /// holder that the settings name.
    fn settle_earlier(&self, group: SessionId, statuses: &[ShareStatus]) -> Result<()> {
        let mut open = BTreeMap::new();
        let holding = self.shares.holding(group)?;
        let epoch = holding.share.as_ref().map_or(0, |share| share.epoch());
        let mut note = |messages: &[Message]| {
            if let Some(Ok(change)) = handover_of(messages)
                && change.group_id() == group
                && change.epoch() > epoch
            {
                open.entry(change.session()).or_insert(change);
            }
        };
        for status in statuses {
            note(&parse_lines(&status.next).map_err(|error| self.blame(error))?);
        }
        if let Some(next) = holding.pending() {
            note(&[next.proposal().clone()]);
        }
        for mut change in open.into_values() {
            let mut asked = BTreeSet::new();
            // The second round tells everybody what the first one found out.
            for _ in 0..2 {
                self.say_own(&mut change)?;
                for peer in &self.peers {
                    let messages = lines(change.messages());
                    let request = PeerRequest::Reshare { messages, wanted: Answer::Settle };
                    let said = self.ask_for_messages(peer, &request)?;
                    asked.insert(peer.name.clone());
                    let taken = said.iter().try_for_each(|message| change.receive(message).map(drop));
                    taken.map_err(|error| self.blame(error))?;
                }
                if self.holds_new_share(&change)? {
                    self.settle(&change)?;
                }
            }
            if !self.counts(&change) && change.failure().is_none() {
                return Err(unavailable("an earlier change of the shares is not settled".to_owned()));
            }
        }
        Ok(())
    }

    /// Whether the change gives this node a share. A node that lost its keys is not the one that
    /// had them: its word would be signed by another card than that of the change.
    fn is_holder(&self, change: &Handover) -> bool {
        change.holders().card(&self.name).is_some_and(|card| *card == self.keys.card())
    }

    /// This node's own word on a change that somebody else, or an earlier process, began.
    fn say_own(&self, change: &mut Handover) -> Result<()> {
        let holding = self.shares.holding(change.group_id())?;
        let opening = change.messages().next().expect("the opening is the first").clone();
        if !self.is_holder(change) || holding.share.as_ref().is_some_and(|share| share.proposal() == &opening)
        {
            return Ok(());
        }
        let said = match holding.confirmed(change.session()) {
            Some(next) => confirm(&self.keys, next),
            None => {
                self.shares.withdraw(change)?;
                withdraw(&self.keys, &opening)
            }
        };
        said.and_then(|said| change.receive(&said)).map_err(|error| self.blame(error)).map(drop)
    }

    /// Finds out what became of the changes that this node has confirmed, without disturbing one
    /// that goes on.
    pub(super) fn ask_for_ends(&self) {
        for group in self.shares.unsettled() {
            // An error is one of now: it is asked again soon.
            if let Err(error) = self.ask_for_end(group) {
                tracing::debug!("a change of shares is not settled yet: {error}");
            }
        }
    }

    fn ask_for_end(&self, group: SessionId) -> Result<()> {
        let Ok(_one) = self.settling.try_lock() else { return Ok(()) };
        // A change that this node makes itself is settled there. Meanwhile, it must not keep others
        // from making one.
        if self.changing.try_lock().is_err() {
            return Ok(());
        }
        let holding = self.shares.holding(group)?;
        let Some(next) = holding.pending() else { return Ok(()) };
        let mut change = Handover::of(next.proposal()).map_err(|error| self.blame(error))?;
        self.say_own(&mut change)?;
        for peer in self.peers.iter().filter(|peer| peer.standing() == Standing::Answering) {
            let Ok(status) = self.level(peer, group) else { continue };
            for message in parse_lines(&status.next).unwrap_or_default() {
                // Of another change, or of a node that lies: it proves nothing.
                let _ = change.receive(&message);
            }
        }
        if self.holds_new_share(&change)? {
            self.settle(&change)?;
        }
        Ok(())
    }
}
