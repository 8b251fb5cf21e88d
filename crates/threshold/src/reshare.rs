//! New shares of the same key for any holders and any threshold, made by enough holders of the old
//! shares and without the key ever being whole.
//!
//! The scheme is that of Desmedt and Jajodia, made verifiable as by Wong, Wang and Wing
//! ("Verifiable Secret Redistribution for Archive Systems", 2002): each helper shares what its old
//! share contributes to the key, as a dealer would, and the new share is the sum of the parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bulla_kms::{Name, PublicKey};
use frost_ed25519::keys::{
    self, IdentifierList, KeyPackage, PublicKeyPackage, SecretShare, SigningShare,
    VerifiableSecretSharingCommitment, VerifyingShare,
};
use frost_ed25519::{Ed25519Group, Ed25519ScalarField, Field as _, Group as _, Identifier};
use rand_core::OsRng;
use zeroize::Zeroizing;

use crate::board::{Board, Receipt};
use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::{Group, stranger};
use crate::keygen::check_card;
use crate::message::{Encrypted, Message, MessageContent, SessionId};
use crate::participant::{Card, ParticipantKeys};
use crate::share::KeyShare;

type Scalar = <Ed25519ScalarField as frost_ed25519::Field>::Scalar;
type Element = <Ed25519Group as frost_ed25519::Group>::Element;

/// One participant's side of a resharing: of a helper, who has an old share, of a holder, who gets
/// a new one, or of both.
///
/// The new shares have the same public key and the next epoch, and do not sign together with the
/// old ones. The old ones are worth nothing once enough of them are destroyed, and must not be
/// destroyed before all holders have kept their new ones: [`Handover`] says when that is so.
///
/// Unlike a refresh by [`KeyGeneration`](crate::KeyGeneration), it needs only as many old shares as
/// sign together, the holders may be others than before, and so may the threshold.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_threshold::{Group, Handover, ParticipantKeys, Resharing, confirm};
/// # use bulla_threshold::{deal, take_dealt};
/// # let keys = ["a", "b", "c"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// # let group = Group::new("releases".parse()?, 2, keys[..2].iter().map(ParticipantKeys::card).collect())?;
/// # let proposal = group.propose(&keys[0])?;
/// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
/// # let dealt = deal(&keys[0], &proposal, &key)?;
/// # let [a, b] = [0, 1].map(|one| {
/// #     Arc::new(take_dealt(&keys[one], &proposal, &dealt, &keys[0].card()).unwrap())
/// # });
///
/// // a and b sign together. From now on, two of three do.
/// let helpers = [keys[0].card(), keys[1].card()];
/// let to = Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?;
/// let opening = Resharing::propose(&keys[0], &a, &helpers, to)?;
/// let mut sides = [
///     Resharing::join(&keys[0], Some(&a), &opening)?,
///     Resharing::join(&keys[1], Some(&b), &opening)?,
///     Resharing::join(&keys[2], None, &opening)?,
/// ];
/// let sent: Vec<_> = sides.iter().flat_map(Resharing::messages).cloned().collect();
/// let mut handover = Handover::of(&opening)?;
/// for (side, keys) in sides.iter_mut().zip(&keys) {
///     sent.iter().try_for_each(|message| side.receive(message).map(drop))?;
///     let share = side.new_share(keys)?.expect("all parts are there");
///     assert_eq!((share.epoch(), share.public_key()), (1, a.public_key()));
///     // The new share must be on the disk before this.
///     handover.receive(&confirm(keys, &share)?)?;
/// }
/// assert!(handover.missing().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Resharing {
    opening: Message,
    terms: Terms,
    board: Board,
    me: Name,
    /// This participant's old share.
    old: Option<Arc<KeyShare>>,
}

/// What the opening message of a resharing says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) group: SessionId,
    pub(crate) shares: SessionId,
    pub(crate) epoch: u32,
    pub(crate) public_key: PublicKey,
    pub(crate) helpers: Vec<Card>,
    pub(crate) to: Group,
}

impl Terms {
    /// Reads an opening message, and checks its signature by the card in it. Whether the cards are
    /// the right ones is for the caller to know.
    pub(crate) fn of(opening: &Message) -> Result<Self> {
        let MessageContent::Reshare { group, shares, epoch, public_key, helpers, to } = opening.content()
        else {
            let text = format!("the message does not open a resharing: it is a {}", opening.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        let invalid = |text: &str| ThresholdError::new(ErrorCode::InvalidArgument, text);
        to.check()?;
        helpers.iter().try_for_each(Card::check)?;
        if helpers.is_empty() || helpers.len() > crate::MAX_PARTICIPANTS {
            return Err(invalid("a resharing has from 1 to 32 helpers"));
        }
        let names: BTreeSet<_> = helpers.iter().map(|card| &card.name).collect();
        if names.len() != helpers.len() {
            return Err(invalid("a helper of the resharing is named twice"));
        }
        if helpers.iter().any(|card| to.card(&card.name).is_some_and(|other| other != card)) {
            return Err(invalid("a helper of the resharing has two cards"));
        }
        if *epoch == 0 || public_key.algorithm() != bulla_kms::Algorithm::Ed25519 {
            return Err(invalid("a resharing has an epoch after 0, and a key of Ed25519"));
        }
        let sender = helpers.iter().find(|card| card.name == *opening.sender());
        opening.verify(sender.ok_or_else(|| stranger(opening.sender()))?)?;
        Ok(Self {
            group: *group,
            shares: *shares,
            epoch: *epoch,
            public_key: public_key.clone(),
            helpers: helpers.clone(),
            to: to.clone(),
        })
    }

    fn board(&self, opening: &Message) -> Board {
        Board::with_others(opening.digest(), self.to.clone(), self.helpers.clone())
    }

    fn helps(&self, name: &Name) -> bool {
        self.helpers.iter().any(|card| card.name == *name)
    }
}

impl Resharing {
    /// Makes the message that opens a resharing: the helpers, who have old shares, give everybody
    /// in `to` a new one. The caller must be one of the helpers.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the helpers are not exactly as many as sign together now,
    /// or one of them has no share.
    pub fn propose(keys: &ParticipantKeys, share: &KeyShare, helpers: &[Card], to: Group) -> Result<Message> {
        check_helpers(share, helpers)?;
        let content = MessageContent::Reshare {
            group: share.group_id(),
            shares: share.shares_id(),
            epoch: share.epoch() + 1,
            public_key: share.public_key(),
            helpers: helpers.to_vec(),
            to,
        };
        let opening = Message::sign(keys, share.group_id(), content)?;
        Terms::of(&opening).map(|_| opening)
    }

    /// Joins a resharing, and makes this participant's part if it helps. Check before that the
    /// cards, the holders, the threshold and the public key are the right ones
    /// ([`Handover::helpers`], [`Handover::holders`], [`Handover::public_key`]).
    ///
    /// # Errors
    /// [`ErrorCode::BadSignature`]; [`ErrorCode::WrongSession`] if the resharing is of other shares
    /// than the old one; [`ErrorCode::InvalidArgument`] if this participant has nothing to do in
    /// it, or is asked to help and has no old share.
    pub fn join(keys: &ParticipantKeys, old: Option<&Arc<KeyShare>>, opening: &Message) -> Result<Self> {
        let terms = Terms::of(opening)?;
        let invalid = |text: String| ThresholdError::new(ErrorCode::InvalidArgument, text);
        if let Some(old) = old {
            old.check_shares(terms.group, terms.shares)?;
            check_helpers(old, &terms.helpers)?;
            if old.epoch().checked_add(1) != Some(terms.epoch) || old.public_key() != terms.public_key {
                return Err(invalid("the resharing is of another epoch or key than the share".to_owned()));
            }
        }
        let me = keys.name().clone();
        let is_holder = terms.to.card(&me).is_some();
        if is_holder {
            check_card(keys, &terms.to)?;
        }
        let mut this =
            Self { board: terms.board(opening), opening: opening.clone(), me, terms, old: old.cloned() };
        if this.terms.helps(&this.me) {
            let old = old.filter(|old| *old.holder() == this.me);
            let old = old.ok_or_else(|| invalid(format!("{} is asked to help and has no share", this.me)))?;
            this.send_part(keys, &Arc::clone(old))?;
        } else if !is_holder {
            return Err(invalid(format!("{} gets no share in this resharing, and does not help", this.me)));
        }
        Ok(this)
    }

    /// Shares what the old share contributes to the key, as a dealer would.
    fn send_part(&mut self, keys: &ParticipantKeys, old: &KeyShare) -> Result<()> {
        let to = &self.terms.to;
        let failed = |error| to.blame(&error, "the old share cannot be shared");
        let weight = weight(old.group(), &self.terms.helpers, &self.me)?;
        let bytes = Zeroizing::new(old.key().signing_share().serialize());
        let scalar = Zeroizing::new((read_scalar(&bytes)? * weight).to_bytes());
        let contribution = frost_ed25519::SigningKey::deserialize(&*scalar).map_err(failed)?;
        let count = u16::try_from(to.participants().len()).expect("the number of participants is bounded");
        let (shares, _) =
            keys::split(&contribution, count, to.threshold(), IdentifierList::Default, &mut OsRng)
                .map_err(failed)?;
        let mut encrypted = BTreeMap::new();
        let mut commitment = None;
        for card in to.participants() {
            let share = &shares[&to.identifier(&card.name)?];
            commitment = Some(share.commitment().clone());
            let secret = Zeroizing::new(share.signing_share().serialize());
            let context = self.board.context("reshare-part", &self.me, &card.name);
            encrypted.insert(card.name.clone(), Encrypted(card.encrypt(&secret, &context)?));
        }
        let commitment = commitment.expect("a group has participants");
        self.board.send(keys, MessageContent::ResharePart { commitment, shares: encrypted })
    }

    /// Takes a message of another participant. The opening message is known already.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`], [`ErrorCode::UnknownSender`], [`ErrorCode::BadSignature`],
    /// [`ErrorCode::Equivocation`]; [`ErrorCode::Misbehavior`] if it is not what the resharing asks
    /// for.
    pub fn receive(&mut self, message: &Message) -> Result<Receipt> {
        if *message == self.opening {
            return Ok(Receipt::Known);
        }
        self.board.authenticate(message)?;
        let sender = message.sender();
        let MessageContent::ResharePart { commitment, shares } = message.content() else {
            let text = format!("sent a {} in place of a part", message.kind());
            return Err(ThresholdError::misbehavior(sender, text));
        };
        if !self.terms.helps(sender) {
            return Err(stranger(sender));
        }
        let length = commitment.serialize().map_or(0, |all| all.len());
        if length != usize::from(self.terms.to.threshold()) || !self.terms.to.names().eq_set(shares.keys()) {
            let text = "sent a part for other holders or another number of signers";
            return Err(ThresholdError::misbehavior(sender, text));
        }
        if let Some(old) = &self.old {
            let promised = commitment.serialize().ok().and_then(|all| all.into_iter().next());
            if promised != Some(contribution_point(old, &self.terms.helpers, sender)?) {
                let text = "shared something else than its own share";
                return Err(ThresholdError::misbehavior(sender, text));
            }
        }
        self.board.receive(message)
    }

    /// Returns this participant's new share, once all parts are there. Keep it on the disk before
    /// you [`confirm`] it.
    ///
    /// # Errors
    /// [`ErrorCode::Misbehavior`], with the culprit if the part itself proves it. If only the sum
    /// is wrong, nothing tells whose part was: the holders with old shares can.
    pub fn new_share(&self, keys: &ParticipantKeys) -> Result<Option<KeyShare>> {
        if self.terms.to.card(&self.me).is_none() || !self.missing().is_empty() {
            return Ok(None);
        }
        let identifier = self.terms.to.identifier(&self.me)?;
        let mut sum = Zeroizing::new([0; 32]);
        let mut commitments = Vec::new();
        for card in &self.terms.helpers {
            let (share, commitment) = self.take_part(keys, &card.name, identifier)?;
            let bytes = Zeroizing::new(share.serialize());
            *sum = (read_scalar(&*sum)? + read_scalar(&bytes)?).to_bytes();
            commitments.push(commitment);
        }
        let wrong = || {
            let text = "the parts of the resharing do not give the key: one of the helpers sent a wrong one";
            ThresholdError::new(ErrorCode::Misbehavior, text)
        };
        let total = sum_commitments(&commitments).ok_or_else(wrong)?;
        let names = self.terms.to.names().map(|name| self.terms.to.identifier(name));
        let public = PublicKeyPackage::from_commitment(&names.collect::<Result<_>>()?, &total)
            .map_err(|error| self.terms.to.blame(&error, "the resharing"))?;
        if public.verifying_key().serialize().ok().as_deref() != Some(self.terms.public_key.as_bytes()) {
            return Err(wrong());
        }
        let share = SigningShare::deserialize(&*sum).map_err(|_| wrong())?;
        let mine = VerifyingShare::from(share);
        let key =
            KeyPackage::new(identifier, share, mine, *public.verifying_key(), self.terms.to.threshold());
        KeyShare::new(self.opening.clone(), self.me.clone(), self.terms.epoch, key, public)
            .map(Some)
            .map_err(|_| wrong())
    }

    /// One helper's part for this participant, which fits the helper's commitment.
    fn take_part(
        &self,
        keys: &ParticipantKeys,
        helper: &Name,
        me: Identifier,
    ) -> Result<(SigningShare, VerifiableSecretSharingCommitment)> {
        let wrong = || ThresholdError::misbehavior(helper, format!("sent {} a wrong part", self.me));
        let content = self.board.get("reshare-part", 0, helper).map(Message::content);
        let Some(MessageContent::ResharePart { commitment, shares }) = content else { return Err(wrong()) };
        let encrypted = shares.get(&self.me).ok_or_else(wrong)?;
        let context = self.board.context("reshare-part", helper, &self.me);
        let secret = keys.decrypt(&encrypted.0, &context).map_err(|_| wrong())?;
        let share = SigningShare::deserialize(&secret).map_err(|_| wrong())?;
        SecretShare::new(me, share, commitment.clone()).verify().map_err(|_| wrong())?;
        Ok((share, commitment.clone()))
    }

    /// Returns the helpers whose parts are still missing.
    pub fn missing(&self) -> Vec<Name> {
        self.board.missing("reshare-part", 0, self.terms.helpers.iter().map(|card| &card.name))
    }

    /// Returns all messages of the session so far, its own and the others', with the one that
    /// opened it.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        std::iter::once(&self.opening).chain(self.board.all())
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.board.session
    }

    #[cfg(test)]
    pub(crate) fn context(&self, kind: &str, from: &Name, to: &Name) -> Vec<u8> {
        self.board.context(kind, from, to)
    }
}

impl fmt::Debug for Resharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resharing")
            .field("session", &self.board.session)
            .field("me", &self.me)
            .field("epoch", &self.terms.epoch)
            .field("missing", &self.missing())
            .finish_non_exhaustive()
    }
}

/// Says that this participant has kept its new share: only now may the others give up their old
/// ones. The message is the same whenever it is made.
///
/// # Errors
/// [`ErrorCode::InvalidArgument`] if the share was not made by a [`Resharing`], or is not of these
/// keys.
pub fn confirm(keys: &ParticipantKeys, share: &KeyShare) -> Result<Message> {
    Terms::of(share.proposal())?;
    check_card(keys, share.group())?;
    let content = MessageContent::Confirmation { public: share.public().clone() };
    Message::sign(keys, share.proposal().digest(), content)
}

/// Says that this participant has no new share of a resharing, and will never confirm one. Whoever
/// says so must remember it.
///
/// # Errors
/// [`ErrorCode::InvalidArgument`] if the message opens no resharing.
pub fn withdraw(keys: &ParticipantKeys, opening: &Message) -> Result<Message> {
    Terms::of(opening)?;
    Message::sign(keys, opening.digest(), MessageContent::Withdrawal {})
}

/// What the holders of new shares say of a resharing. When all of them have confirmed the same
/// shares, it counts, for everybody and for ever: everybody can verify it from these messages. When
/// one has withdrawn, or has confirmed other shares, it never will.
#[derive(Clone, Debug)]
pub struct Handover {
    opening: Message,
    terms: Terms,
    board: Board,
}

impl Handover {
    /// Begins with nothing but the message that opens the resharing.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if it opens none; [`ErrorCode::BadSignature`].
    pub fn of(opening: &Message) -> Result<Self> {
        let terms = Terms::of(opening)?;
        Ok(Self { opening: opening.clone(), board: terms.board(opening), terms })
    }

    /// Takes a confirmation or a withdrawal. Other messages of the session are ignored.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`], [`ErrorCode::UnknownSender`], [`ErrorCode::BadSignature`];
    /// [`ErrorCode::Equivocation`] if a holder confirms different shares.
    pub fn receive(&mut self, message: &Message) -> Result<Receipt> {
        if *message == self.opening {
            return Ok(Receipt::Known);
        }
        self.board.authenticate(message)?;
        let sender = message.sender();
        let is_word =
            matches!(message.content(), MessageContent::Confirmation { .. } | MessageContent::Withdrawal {});
        if !is_word {
            return Ok(Receipt::Known);
        }
        if self.terms.to.card(sender).is_none() {
            return Err(stranger(sender));
        }
        self.board.receive(message)
    }

    /// What a holder has confirmed.
    fn confirmed_by(&self, name: &Name) -> Option<SessionId> {
        self.board.get("confirmation", 0, name)?.confirms()
    }

    /// Returns the [`KeyShare::shares_id`] of the new shares that most holders have confirmed.
    pub fn shares_id(&self) -> Option<SessionId> {
        let mut counts = BTreeMap::new();
        for shares in self.terms.to.names().filter_map(|name| self.confirmed_by(name)) {
            *counts.entry(shares).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|(shares, count)| (*count, *shares)).map(|(shares, _)| shares)
    }

    /// Returns the holders who have not confirmed these shares.
    pub fn missing(&self) -> Vec<Name> {
        let shares = self.shares_id();
        let has_not = |name: &&Name| shares.is_none() || self.confirmed_by(name) != shares;
        self.terms.to.names().filter(has_not).cloned().collect()
    }

    /// Returns why the resharing will never count: a holder has withdrawn, or two have confirmed
    /// different shares, so that a helper or one of them has lied.
    pub fn failure(&self) -> Option<String> {
        if let Some(name) = self.terms.to.names().find(|name| self.board.get("withdrawal", 0, name).is_some())
        {
            return Some(format!("{name} has withdrawn"));
        }
        let shares = self.shares_id()?;
        let other = |name: &&Name| self.confirmed_by(name).is_some_and(|confirmed| confirmed != shares);
        let name = self.terms.to.names().find(other)?;
        Some(format!(
            "{name} has confirmed other shares than the others: one of those who helped, or {name}, lied"
        ))
    }

    /// Returns the message that opens the resharing, the confirmations and the withdrawals.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        std::iter::once(&self.opening).chain(self.board.all())
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.board.session
    }

    /// Returns the id of the group whose key it is: see [`KeyShare::group_id`].
    pub fn group_id(&self) -> SessionId {
        self.terms.group
    }

    /// Returns the [`KeyShare::shares_id`] of the old shares.
    pub fn old_shares_id(&self) -> SessionId {
        self.terms.shares
    }

    /// Returns the epoch of the new shares.
    pub fn epoch(&self) -> u32 {
        self.terms.epoch
    }

    /// Returns the key.
    pub fn public_key(&self) -> &PublicKey {
        &self.terms.public_key
    }

    /// Returns the cards of those who help with their old shares.
    pub fn helpers(&self) -> &[Card] {
        &self.terms.helpers
    }

    /// Returns those who get new shares, with the threshold from then on.
    pub fn holders(&self) -> &Group {
        &self.terms.to
    }
}

/// Whether names are those of a set, in any order.
trait EqSet<'a> {
    fn eq_set(self, set: impl Iterator<Item = &'a Name>) -> bool;
}

impl<'a, I: Iterator<Item = &'a Name>> EqSet<'a> for I {
    fn eq_set(self, set: impl Iterator<Item = &'a Name>) -> bool {
        self.collect::<BTreeSet<_>>() == set.collect::<BTreeSet<_>>()
    }
}

/// Exactly as many helpers as sign together, all with a share.
fn check_helpers(share: &KeyShare, helpers: &[Card]) -> Result<()> {
    let invalid = |text: String| Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
    let wanted = usize::from(share.group().threshold());
    if helpers.len() != wanted {
        return invalid(format!("{wanted} holders of old shares help, and not {}", helpers.len()));
    }
    match helpers.iter().find(|card| !share.is_member(&card.name)) {
        Some(card) => invalid(format!("{} has no share now, and cannot help", card.name)),
        None => Ok(()),
    }
}

fn read_scalar(bytes: &[u8]) -> Result<Scalar> {
    let bytes = <[u8; 32]>::try_from(bytes).ok().map(Zeroizing::new);
    bytes.and_then(|bytes| Ed25519ScalarField::deserialize(&bytes).ok()).ok_or_else(|| {
        ThresholdError::new(ErrorCode::InvalidArgument, "a number is not one of the scalars of Ed25519")
    })
}

fn read_element(bytes: &[u8]) -> Option<Element> {
    Ed25519Group::deserialize(&bytes.try_into().ok()?).ok()
}

/// The coefficient of Lagrange by which a helper's share contributes to the key.
fn weight(group: &Group, helpers: &[Card], name: &Name) -> Result<Scalar> {
    let at = |name: &Name| read_scalar(&group.identifier(name)?.serialize());
    let mine = at(name)?;
    let (mut above, mut below) = (Ed25519ScalarField::one(), Ed25519ScalarField::one());
    for card in helpers.iter().filter(|card| card.name != *name) {
        let other = at(&card.name)?;
        above *= other;
        below *= other - mine;
    }
    let inverse = Ed25519ScalarField::invert(&below);
    inverse
        .map(|inverse| above * inverse)
        .map_err(|_| ThresholdError::new(ErrorCode::InvalidArgument, "two helpers have the same number"))
}

/// What a helper must commit to first: its public share, times its weight.
fn contribution_point(old: &KeyShare, helpers: &[Card], helper: &Name) -> Result<Vec<u8>> {
    let missing = || stranger(helper);
    let public = old.public().verifying_shares().get(&old.group().identifier(helper)?).ok_or_else(missing)?;
    let bytes = public.serialize().map_err(|_| missing())?;
    let point = read_element(&bytes).ok_or_else(missing)? * weight(old.group(), helpers, helper)?;
    Ok(Ed25519Group::serialize(&point).map_err(|_| missing())?.to_vec())
}

/// The sum, coefficient by coefficient. All have the same length.
fn sum_commitments(all: &[VerifiableSecretSharingCommitment]) -> Option<VerifiableSecretSharingCommitment> {
    let mut sums: Vec<Element> = Vec::new();
    for commitment in all {
        let points = commitment.serialize().ok()?;
        sums.resize(points.len(), Ed25519Group::identity());
        for (sum, point) in sums.iter_mut().zip(&points) {
            *sum += read_element(point)?;
        }
    }
    let bytes = sums.iter().map(|sum| Ed25519Group::serialize(sum).ok()).collect::<Option<Vec<_>>>()?;
    VerifiableSecretSharingCommitment::deserialize(bytes).ok()
}
