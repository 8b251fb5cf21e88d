//! The repair of a lost share, by enough others and without the key ever being whole.
//!
//! The scheme is that of Laing and Stinson (eprint 2017/1155), as `frost-core` has it.

use std::collections::BTreeMap;
use std::fmt;

use bulla_kms::Name;
use frost_ed25519::Ed25519Sha512;
use frost_ed25519::keys::repairable::{self, Delta, Sigma};
use rand_core::OsRng;
use zeroize::Zeroizing;

use crate::board::{Board, Receipt};
use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::{Group, stranger};
use crate::keygen::check_card;
use crate::message::{Encrypted, Message, MessageContent, SessionId, random};
use crate::participant::{Card, ParticipantKeys};
use crate::share::{KeyShare, holders_of, public_digest};

/// One participant's side of the repair of a lost share: of a helper, or of the one who lost it.
///
/// The one who lost the share still has the keys of a participant, and asks for the repair. Without
/// them, nobody can tell who asks: refresh the shares without that participant instead.
///
/// ```
/// use bulla_threshold::{Group, ParticipantKeys, Repair, deal, take_dealt};
///
/// # let keys = ["ann", "bob", "carol"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// # let group = Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?;
/// # let proposal = group.propose(&keys[0])?;
/// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
/// # let dealt = deal(&keys[0], &proposal, &key)?;
/// # let shares = keys.each_ref().map(|one| take_dealt(one, &proposal, &dealt, &keys[0].card()).unwrap());
/// let [ann, bob, lost] = shares;
/// let helpers = [ann.holder().clone(), bob.holder().clone()];
///
/// // Carol has no share any more. Ann tells her which shares the group has now.
/// let offer = Repair::offer(&keys[0], &ann, lost.holder(), &helpers)?;
/// let request = Repair::accept(&keys[2], &proposal, &offer)?;
/// let mut sides = [
///     Repair::help(&keys[0], ann, &request)?,
///     Repair::help(&keys[1], bob, &request)?,
///     Repair::receive_share(&keys[2], &proposal, &request)?,
/// ];
/// for _ in 0..3 {
///     let sent: Vec<_> = sides.iter().flat_map(Repair::messages).cloned().collect();
///     for (side, keys) in sides.iter_mut().zip(&keys) {
///         sent.iter().try_for_each(|message| side.receive(message).map(drop))?;
///         side.advance(keys)?;
///     }
/// }
/// let [_, _, carol] = sides;
/// assert_eq!(carol.into_share().unwrap().to_secret_bytes(), lost.to_secret_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Repair {
    request: Message,
    proposal: Message,
    board: Board,
    me: Name,
    lost: Name,
    helpers: Vec<Name>,
    shares: SessionId,
    /// A helper's own share; of the one who lost it, the repaired one.
    share: Option<KeyShare>,
}

impl Repair {
    /// Makes the message by which a participant offers to repair another one's share. It says
    /// which shares the group has now, which the one who lost a share cannot know.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the helpers are too few, or one of them has no share now,
    /// or the one who lost the share has none since a refresh.
    pub fn offer(keys: &ParticipantKeys, share: &KeyShare, lost: &Name, helpers: &[Name]) -> Result<Message> {
        check_card(keys, share.group())?;
        if let Some(name) = std::iter::once(lost).chain(helpers).find(|name| !share.is_member(name)) {
            let text = format!("{name} has no share now: a refresh left {name} out, or it is another group");
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        check_helpers(share.group(), lost, helpers)?;
        let content = MessageContent::RepairOffer {
            group: share.group_id(),
            shares: share.shares_id(),
            lost: lost.clone(),
            helpers: helpers.to_vec(),
        };
        Message::sign(keys, share.group_id(), content)
    }

    /// Asks for the repair that somebody offered, as [`Repair::request`] does.
    ///
    /// # Errors
    /// Those of [`Repair::request`]; [`ErrorCode::BadSignature`]; [`ErrorCode::WrongSession`] if
    /// the offer is for another group; [`ErrorCode::InvalidArgument`] if it is for somebody else.
    pub fn accept(keys: &ParticipantKeys, proposal: &Message, offer: &Message) -> Result<Message> {
        let MessageContent::RepairOffer { group: id, shares, lost, helpers } = offer.content() else {
            let text = format!("the message does not offer a repair: it is a {}", offer.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        let (own, group) = holders_of(proposal)?;
        offer.verify(group.card(offer.sender()).ok_or_else(|| stranger(offer.sender()))?)?;
        if *id != own {
            return Err(ThresholdError::new(ErrorCode::WrongSession, "the offer is for another group"));
        }
        if lost != keys.name() {
            let text = format!("the share of {lost} is to be repaired, and not that of {}", keys.name());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        Self::request(keys, proposal, *shares, helpers)
    }

    /// Makes the message by which a participant who lost a share asks for its repair. `shares` is
    /// the [`KeyShare::shares_id`] of the helpers.
    ///
    /// # Errors
    /// Those of [`Group::of`]; [`ErrorCode::InvalidArgument`] if the helpers are too few.
    pub fn request(
        keys: &ParticipantKeys,
        proposal: &Message,
        shares: SessionId,
        helpers: &[Name],
    ) -> Result<Message> {
        Self::request_with_cards(keys, proposal, shares, helpers, &[])
    }

    /// Asks as [`Repair::request`] does. `cards` replace those of the same participants in the
    /// proposal: of participants whose keys were lost too, and who are known otherwise.
    ///
    /// # Errors
    /// Those of [`Repair::request`].
    pub fn request_with_cards(
        keys: &ParticipantKeys,
        proposal: &Message,
        shares: SessionId,
        helpers: &[Name],
        cards: &[Card],
    ) -> Result<Message> {
        let (id, group) = holders_of(proposal)?;
        let group = group.with_cards(cards)?;
        check_card(keys, &group)?;
        check_helpers(&group, keys.name(), helpers)?;
        let content =
            MessageContent::Repair { group: id, shares, helpers: helpers.to_vec(), nonce: random() };
        Message::sign(keys, id, content)
    }

    /// Helps to repair the share of the sender of a request, and makes the first message.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`], [`ErrorCode::BadSignature`], [`ErrorCode::WrongSession`].
    pub fn help(keys: &ParticipantKeys, share: KeyShare, request: &Message) -> Result<Self> {
        Self::resume(keys, share, request, [])
    }

    /// Helps as [`Repair::help`] does, with other cards than those of the proposal: see
    /// [`Repair::request_with_cards`].
    ///
    /// # Errors
    /// Those of [`Repair::help`].
    pub fn help_with_cards(
        keys: &ParticipantKeys,
        share: KeyShare,
        request: &Message,
        cards: &[Card],
    ) -> Result<Self> {
        let proposal = share.proposal().clone();
        Self::open(keys, &proposal, request, cards)?.start(keys, share, [])
    }

    /// Helps as [`Repair::help`] does, and goes on where an earlier process stopped. `sent` has
    /// the messages of that process: its own first message is never made twice.
    ///
    /// # Errors
    /// Those of [`Repair::help`] and of [`Repair::receive`].
    pub fn resume<'a>(
        keys: &ParticipantKeys,
        share: KeyShare,
        request: &Message,
        sent: impl IntoIterator<Item = &'a Message>,
    ) -> Result<Self> {
        let proposal = share.proposal().clone();
        Self::open(keys, &proposal, request, &[])?.start(keys, share, sent)
    }

    fn start<'a>(
        self,
        keys: &ParticipantKeys,
        share: KeyShare,
        sent: impl IntoIterator<Item = &'a Message>,
    ) -> Result<Self> {
        let mut this = self;
        share.check_shares(share.group_id(), this.shares)?;
        if !this.helpers.contains(&this.me) || !share.is_member(&this.lost) || share.holder() != &this.me {
            let text = format!("{} is not asked to help, or {} has no share now", this.me, this.lost);
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        for message in sent {
            this.receive(message)?;
        }
        if this.board.get("repair-delta", 0, &this.me).is_none() {
            this.send_delta(keys, &share)?;
        }
        this.share = Some(share);
        Ok(this)
    }

    /// Splits what this helper contributes, one part for each helper.
    fn send_delta(&mut self, keys: &ParticipantKeys, share: &KeyShare) -> Result<()> {
        let group = &self.board.group;
        let helpers: Vec<_> =
            self.helpers.iter().map(|name| group.identifier(name)).collect::<Result<_>>()?;
        let lost = group.identifier(&self.lost)?;
        let deltas =
            repairable::repair_share_part1::<Ed25519Sha512, _>(&helpers, share.key(), &mut OsRng, lost)
                .map_err(|error| group.blame(&error, "the repair"))?;
        let mut shares = BTreeMap::new();
        for name in &self.helpers {
            let secret = Zeroizing::new(deltas[&group.identifier(name)?].serialize());
            let card = group.card(name).ok_or_else(|| stranger(name))?;
            let context = self.board.context("repair-delta", &self.me, name);
            shares.insert(name.clone(), Encrypted(card.encrypt(&secret, &context)?));
        }
        self.board.send(keys, MessageContent::RepairDelta { shares })
    }

    /// Waits for the helpers, as the participant who asked.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if somebody else asked.
    pub fn receive_share(keys: &ParticipantKeys, proposal: &Message, request: &Message) -> Result<Self> {
        Self::receive_with_cards(keys, proposal, request, &[])
    }

    /// Waits as [`Repair::receive_share`] does, with other cards than those of the proposal: see
    /// [`Repair::request_with_cards`].
    ///
    /// # Errors
    /// Those of [`Repair::receive_share`].
    pub fn receive_with_cards(
        keys: &ParticipantKeys,
        proposal: &Message,
        request: &Message,
        cards: &[Card],
    ) -> Result<Self> {
        let this = Self::open(keys, proposal, request, cards)?;
        if this.lost == this.me {
            return Ok(this);
        }
        let text = format!("{} asked for the repair, and not {}", this.lost, this.me);
        Err(ThresholdError::new(ErrorCode::InvalidArgument, text))
    }

    fn open(keys: &ParticipantKeys, proposal: &Message, request: &Message, cards: &[Card]) -> Result<Self> {
        let MessageContent::Repair { group: id, shares, helpers, .. } = request.content() else {
            let text = format!("the message does not ask for a repair: it is a {}", request.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        let (own, group) = holders_of(proposal)?;
        let group = group.with_cards(cards)?;
        check_card(keys, &group)?;
        let lost = request.sender();
        request.verify(group.card(lost).ok_or_else(|| stranger(lost))?)?;
        if *id != own {
            return Err(ThresholdError::new(ErrorCode::WrongSession, "the message is for another group"));
        }
        check_helpers(&group, lost, helpers)?;
        Ok(Self {
            board: Board::new(request.digest(), group),
            me: keys.name().clone(),
            lost: lost.clone(),
            helpers: helpers.clone(),
            shares: *shares,
            request: request.clone(),
            proposal: proposal.clone(),
            share: None,
        })
    }

    /// Takes a message of another participant. The request is known already.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`], [`ErrorCode::UnknownSender`], [`ErrorCode::BadSignature`],
    /// [`ErrorCode::Equivocation`]; [`ErrorCode::Misbehavior`] if a repair does not ask for it.
    pub fn receive(&mut self, message: &Message) -> Result<Receipt> {
        if *message == self.request {
            return Ok(Receipt::Known);
        }
        self.board.authenticate(message)?;
        let sender = message.sender();
        if !self.helpers.contains(sender) {
            return Err(stranger(sender));
        }
        match message.content() {
            MessageContent::RepairDelta { .. } | MessageContent::RepairSigma { .. } => {
                self.board.receive(message)
            }
            _ => Err(ThresholdError::misbehavior(sender, format!("sent a {} into a repair", message.kind()))),
        }
    }

    /// Does whatever the messages so far allow.
    ///
    /// # Errors
    /// [`ErrorCode::Misbehavior`], with the culprit if the message itself proves it. If only the
    /// repaired share is wrong, nothing tells which helper was: repair it with others.
    pub fn advance(&mut self, keys: &ParticipantKeys) -> Result<()> {
        if self.me == self.lost {
            return self.finish(keys);
        }
        if self.board.get("repair-sigma", 0, &self.me).is_some()
            || !self.board.missing("repair-delta", 0, &self.helpers).is_empty()
        {
            return Ok(());
        }
        let mut deltas = Vec::new();
        for name in &self.helpers {
            let wrong = || ThresholdError::misbehavior(name, format!("sent {} a wrong part", self.me));
            let content = self.board.get("repair-delta", 0, name).map(Message::content);
            let Some(MessageContent::RepairDelta { shares }) = content else { return Err(wrong()) };
            let encrypted = shares.get(&self.me).ok_or_else(wrong)?;
            let context = self.board.context("repair-delta", name, &self.me);
            let secret = keys.decrypt(&encrypted.0, &context).map_err(|_| wrong())?;
            deltas.push(Delta::deserialize(&secret).map_err(|_| wrong())?);
        }
        let secret = Zeroizing::new(repairable::repair_share_part2(&deltas).serialize());
        let card = self.board.group.card(&self.lost).ok_or_else(|| stranger(&self.lost))?;
        let context = self.board.context("repair-sigma", &self.me, &self.lost);
        let share = Encrypted(card.encrypt(&secret, &context)?);
        let own = self.share.as_ref().expect("a helper has a share");
        let (public, epoch) = (own.public().clone(), own.epoch());
        self.board.send(keys, MessageContent::RepairSigma { public, epoch, share })
    }

    fn finish(&mut self, keys: &ParticipantKeys) -> Result<()> {
        if self.share.is_some() || !self.board.missing("repair-sigma", 0, &self.helpers).is_empty() {
            return Ok(());
        }
        let mut sigmas = Vec::new();
        let mut known = None;
        for name in &self.helpers {
            let wrong = || ThresholdError::misbehavior(name, format!("sent {} a wrong part", self.me));
            let content = self.board.get("repair-sigma", 0, name).map(Message::content);
            let Some(MessageContent::RepairSigma { public, epoch, share }) = content else {
                return Err(wrong());
            };
            if public_digest(public) != self.shares || known.is_some_and(|known| known != *epoch) {
                return Err(ThresholdError::misbehavior(name, "sent the public side of another key"));
            }
            known = Some(*epoch);
            let context = self.board.context("repair-sigma", name, &self.me);
            let secret = keys.decrypt(&share.0, &context).map_err(|_| wrong())?;
            sigmas.push((Sigma::deserialize(&secret).map_err(|_| wrong())?, public.clone()));
        }
        let (public, epoch) = (sigmas[0].1.clone(), known.expect("there are helpers"));
        let sigmas: Vec<_> = sigmas.into_iter().map(|(sigma, _)| sigma).collect();
        let identifier = self.board.group.identifier(&self.me)?;
        let key = repairable::repair_share_part3(&sigmas, identifier, &public)
            .map_err(|error| self.board.group.blame(&error, "the repair"))?;
        let share = KeyShare::new(self.proposal.clone(), self.me.clone(), epoch, key, public);
        self.share = Some(share.map_err(|_| {
            let text = "the repaired share is wrong: one of the helpers sent a wrong part, and nothing tells which; repair it with others";
            ThresholdError::new(ErrorCode::Misbehavior, text)
        })?);
        Ok(())
    }

    /// Returns all messages of the session so far, its own and the others', with the request.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        std::iter::once(&self.request).chain(self.board.all())
    }

    /// Returns the [`KeyShare::shares_id`] of the group's shares.
    pub fn shares_id(&self) -> SessionId {
        self.shares
    }

    /// Returns who lost the share.
    pub fn lost(&self) -> &Name {
        &self.lost
    }

    /// Returns who helps.
    pub fn helpers(&self) -> &[Name] {
        &self.helpers
    }

    /// Returns the group.
    pub fn group(&self) -> &Group {
        &self.board.group
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.board.session
    }

    /// Returns the helpers whose messages are still missing: the first ones, or else the second.
    /// Nobody is missing when the one who lost the share has what is needed.
    pub fn waits_for(&self) -> Vec<Name> {
        let first = self.board.missing("repair-delta", 0, &self.helpers);
        if !first.is_empty() {
            return first;
        }
        self.board.missing("repair-sigma", 0, &self.helpers)
    }

    #[cfg(test)]
    pub(crate) fn context(&self, kind: &str, from: &Name, to: &Name) -> Vec<u8> {
        self.board.context(kind, from, to)
    }

    /// Returns the repaired share, if this is the side of the one who lost it, and it is repaired.
    /// A helper gets the own share back.
    pub fn into_share(self) -> Option<KeyShare> {
        self.share
    }
}

impl fmt::Debug for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair")
            .field("session", &self.board.session)
            .field("me", &self.me)
            .field("lost", &self.lost)
            .field("helpers", &self.helpers)
            .finish_non_exhaustive()
    }
}

fn check_helpers(group: &Group, lost: &Name, helpers: &[Name]) -> Result<()> {
    let distinct: std::collections::BTreeSet<_> = helpers.iter().collect();
    if let Some(name) = helpers.iter().find(|name| group.card(name).is_none()) {
        return Err(stranger(name));
    }
    if distinct.len() == helpers.len()
        && helpers.len() >= usize::from(group.threshold())
        && !helpers.contains(lost)
    {
        return Ok(());
    }
    let text = format!("a share is repaired by at least {} others", group.threshold());
    Err(ThresholdError::new(ErrorCode::InvalidArgument, text))
}
