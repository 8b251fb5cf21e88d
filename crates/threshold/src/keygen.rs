//! Distributed key generation, and the refresh of shares: three rounds of messages, no dealer.
//!
//! The key generation is that of the FROST paper (Figure 1: Pedersen's, with proofs of knowledge),
//! which RFC 9591, Appendix C, refers to. It assumes that everybody gets the same messages of round
//! 1, so each message of round 2 says which ones its sender got.

use std::collections::BTreeMap;
use std::fmt;

use bulla_kms::{Name, PublicKey};
use frost_ed25519::keys::dkg::{self, round1, round2};
use frost_ed25519::keys::{KeyPackage, PublicKeyPackage, SigningShare, VerifyingShare, refresh};
use frost_ed25519::{Ed25519Group, Ed25519ScalarField, Field as _, Group as _, Identifier};
use rand_core::OsRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::board::{Board, Receipt};
use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::Group;
use crate::message::{Encrypted, Message, MessageContent, SessionId, random};
use crate::participant::{ParticipantKeys, SecretText, from_secret_json, secret_json};
use crate::share::KeyShare;

/// One participant's side of a key generation or of a refresh.
///
/// Give it the messages of the others by [`KeyGeneration::receive`], call
/// [`KeyGeneration::advance`], and send all of [`KeyGeneration::messages`] to all others, in any
/// order and as often as you like: what is secret in them is encrypted. Keep
/// [`KeyGeneration::to_secret_bytes`] before you send, if the process may end in between.
///
/// ```
/// use bulla_threshold::{Group, KeyGeneration, ParticipantKeys};
///
/// let keys = ["ann", "bob", "carol"].map(|name|
/// ParticipantKeys::generate(name.parse().unwrap()).unwrap()); let group =
/// Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?; let
/// proposal = group.propose(&keys[0])?;
///
/// let mut sides = keys.each_ref().map(|keys| KeyGeneration::join(keys, &proposal).unwrap());
/// while !sides.iter().all(KeyGeneration::is_complete) {
///     let sent: Vec<_> = sides.iter().flat_map(KeyGeneration::messages).cloned().collect();
///     for (side, keys) in sides.iter_mut().zip(&keys) {
///         sent.iter().try_for_each(|message| side.receive(message).map(drop))?;
///         side.advance(keys)?;
///     }
/// }
/// let shares = sides.map(|side| side.into_share().unwrap());
/// assert_eq!(shares[0].public_key(), shares[2].public_key());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyGeneration {
    opening: Message,
    board: Board,
    me: Name,
    members: Vec<Name>,
    secret: round1::SecretPackage,
    /// The share to be refreshed.
    old: Option<KeyShare>,
    share: Option<KeyShare>,
}

/// As a [`KeyGeneration`] is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptGeneration {
    opening: String,
    messages: Vec<String>,
    secret: round1::SecretPackage,
    old: Option<SecretText>,
}

impl KeyGeneration {
    /// Joins the group that a message proposes, and makes the message of round 1.
    ///
    /// # Errors
    /// Those of [`Group::of`]; [`ErrorCode::InvalidArgument`] if the keys are not those of a
    /// participant.
    pub fn join(keys: &ParticipantKeys, proposal: &Message) -> Result<Self> {
        let group = Group::of(proposal)?;
        check_card(keys, &group)?;
        let members: Vec<_> = group.names().cloned().collect();
        let count = u16::try_from(members.len()).expect("the number of participants is bounded");
        let (secret, package) = dkg::part1(group.identifier(keys.name())?, count, group.threshold(), OsRng)
            .map_err(|error| group.blame(&error, "round 1"))?;
        Self::start(keys, proposal, group, members, (secret, package), None)
    }

    /// Makes the message that opens a refresh: the members get new shares of the same key, and the
    /// old shares are worth nothing once enough of them are destroyed. Whoever is not among the
    /// members has no share any more.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the members are fewer than sign together, or one of them
    /// has no share now.
    pub fn propose_refresh(keys: &ParticipantKeys, share: &KeyShare, members: &[Name]) -> Result<Message> {
        let members = members.to_vec();
        let content = MessageContent::Refresh {
            group: share.group_id(),
            shares: share.shares_id(),
            members: checked_members(share, &members)?,
            nonce: random(),
        };
        Message::sign(keys, share.group_id(), content)
    }

    /// Joins a refresh, and makes the message of round 1. Keep the old share until
    /// [`KeyGeneration::is_complete`], and destroy it then.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the message opens no refresh or the holder is not among
    /// the members; [`ErrorCode::WrongSession`]; [`ErrorCode::BadSignature`].
    pub fn join_refresh(keys: &ParticipantKeys, share: KeyShare, opening: &Message) -> Result<Self> {
        let MessageContent::Refresh { group: id, shares, members, .. } = opening.content() else {
            let text = format!("the message does not open a refresh: it is a {}", opening.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        let group = share.group().clone();
        check_card(keys, &group)?;
        let sender = group.card(opening.sender()).ok_or_else(|| crate::group::stranger(opening.sender()))?;
        opening.verify(sender)?;
        share.check_shares(*id, *shares)?;
        let members = checked_members(&share, members)?;
        if !members.contains(keys.name()) || share.holder() != keys.name() {
            let text = format!("{} gets no share in this refresh", keys.name());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        let count = u16::try_from(members.len()).expect("the number of participants is bounded");
        let made =
            refresh::refresh_dkg_part1(group.identifier(keys.name())?, count, group.threshold(), OsRng)
                .map_err(|error| group.blame(&error, "round 1"))?;
        Self::start(keys, opening, group, members, made, Some(share))
    }

    fn start(
        keys: &ParticipantKeys,
        opening: &Message,
        group: Group,
        members: Vec<Name>,
        (secret, package): (round1::SecretPackage, round1::Package),
        old: Option<KeyShare>,
    ) -> Result<Self> {
        let mut board = Board::new(opening.digest(), group);
        board.send(keys, MessageContent::Round1 { package })?;
        Ok(Self {
            opening: opening.clone(),
            board,
            me: keys.name().clone(),
            members,
            secret,
            old,
            share: None,
        })
    }

    /// Takes a message of another participant. The opening message is known already.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`], [`ErrorCode::UnknownSender`], [`ErrorCode::BadSignature`],
    /// [`ErrorCode::Equivocation`]; [`ErrorCode::Misbehavior`] if it is not what the round asks
    /// for.
    pub fn receive(&mut self, message: &Message) -> Result<Receipt> {
        if *message == self.opening {
            return Ok(Receipt::Known);
        }
        self.board.authenticate(message)?;
        let sender = message.sender();
        if !self.members.contains(sender) {
            return Err(crate::group::stranger(sender));
        }
        match message.content() {
            MessageContent::Round1 { package } => {
                let expected = usize::from(self.board.group.threshold()) - usize::from(self.old.is_some());
                if package.commitment().serialize().map_or(0, |all| all.len()) != expected {
                    let text = "sent commitments for another number of signers";
                    return Err(ThresholdError::misbehavior(sender, text));
                }
            }
            MessageContent::Round2 { shares, .. } => {
                if self.members.iter().any(|name| name != sender && !shares.contains_key(name)) {
                    return Err(ThresholdError::misbehavior(sender, "did not send a share to everybody"));
                }
            }
            MessageContent::Confirmation { .. } => {}
            _ => {
                let text = format!("sent a {} into a key generation", message.kind());
                return Err(ThresholdError::misbehavior(sender, text));
            }
        }
        self.board.receive(message)
    }

    /// Does whatever the messages so far allow: round 2, the share, the confirmation.
    ///
    /// # Errors
    /// [`ErrorCode::Misbehavior`] and [`ErrorCode::Equivocation`], with the culprits. The session
    /// has failed then: start another one, without them.
    pub fn advance(&mut self, keys: &ParticipantKeys) -> Result<()> {
        if !self.board.missing("round1", 0, &self.members).is_empty() {
            return Ok(());
        }
        let packages = self.packages()?;
        let part2 = match &self.old {
            None => dkg::part2(self.secret.clone(), &packages),
            Some(_) => refresh::refresh_dkg_part2(self.secret.clone(), &packages),
        };
        let (secret, sent) = part2.map_err(|error| self.board.group.blame(&error, "round 1"))?;
        if self.board.get("round2", 0, &self.me).is_none() {
            self.send_round2(keys, &sent)?;
        }
        if !self.board.missing("round2", 0, &self.members).is_empty() {
            return Ok(());
        }
        self.compare_views()?;
        if self.share.is_none() {
            let (key, public) = self.finish(keys, &secret, &packages)?;
            let epoch = self.old.as_ref().map_or(0, |old| old.epoch() + 1);
            let proposal = self.old.as_ref().map_or(&self.opening, KeyShare::proposal).clone();
            self.share = Some(KeyShare::new(proposal, self.me.clone(), epoch, key, public)?);
        }
        let public = self.share.as_ref().expect("it was just made").public().clone();
        if self.board.get("confirmation", 0, &self.me).is_none() {
            self.board.send(keys, MessageContent::Confirmation { public: public.clone() })?;
        }
        for name in &self.members {
            if let Some(MessageContent::Confirmation { public: theirs }) =
                self.board.get("confirmation", 0, name).map(Message::content)
                && *theirs != public
            {
                return Err(ThresholdError::misbehavior(name, "confirms another key than the others"));
            }
        }
        Ok(())
    }

    /// The packages of round 1 of the others.
    fn packages(&self) -> Result<BTreeMap<Identifier, round1::Package>> {
        let others = self.members.iter().filter(|name| **name != self.me);
        let packages = others.filter_map(|name| match self.board.get("round1", 0, name)?.content() {
            MessageContent::Round1 { package } => Some((name.clone(), package.clone())),
            _ => None,
        });
        self.board.group.by_identifier(packages)
    }

    /// The digests of the messages of round 1, as this participant got them.
    fn seen(&self) -> BTreeMap<Name, SessionId> {
        let digest = |name: &Name| Some((name.clone(), self.board.get("round1", 0, name)?.digest()));
        self.members.iter().filter_map(digest).collect()
    }

    fn send_round2(
        &mut self,
        keys: &ParticipantKeys,
        packages: &BTreeMap<Identifier, round2::Package>,
    ) -> Result<()> {
        let mut shares = BTreeMap::new();
        for name in self.members.iter().filter(|name| **name != self.me) {
            let package = &packages[&self.board.group.identifier(name)?];
            let secret = Zeroizing::new(package.signing_share().serialize());
            let card = self.board.group.card(name).expect("members are participants");
            let encrypted = card.encrypt(&secret, &self.board.context("round2", &self.me, name))?;
            shares.insert(name.clone(), Encrypted(encrypted));
        }
        self.board.send(keys, MessageContent::Round2 { seen: self.seen(), shares })
    }

    /// Whether everybody got the same messages of round 1.
    fn compare_views(&self) -> Result<()> {
        let mine = self.seen();
        for name in &self.members {
            let Some(MessageContent::Round2 { seen, .. }) =
                self.board.get("round2", 0, name).map(Message::content)
            else {
                continue;
            };
            if let Some(other) = self.members.iter().find(|one| seen.get(*one) != mine.get(*one)) {
                let text = format!(
                    "{name} and {} got different messages of round 1 in the name of {other}: compare them; whoever signed both lied",
                    self.me
                );
                return Err(ThresholdError::new(ErrorCode::Equivocation, text));
            }
        }
        Ok(())
    }

    fn finish(
        &self,
        keys: &ParticipantKeys,
        secret: &round2::SecretPackage,
        packages: &BTreeMap<Identifier, round1::Package>,
    ) -> Result<(KeyPackage, PublicKeyPackage)> {
        let group = &self.board.group;
        let mut received = BTreeMap::new();
        for name in self.members.iter().filter(|name| **name != self.me) {
            let wrong = || ThresholdError::misbehavior(name, format!("sent {} a wrong share", self.me));
            let Some(MessageContent::Round2 { shares, .. }) =
                self.board.get("round2", 0, name).map(Message::content)
            else {
                return Err(wrong());
            };
            let encrypted = shares.get(&self.me).ok_or_else(wrong)?;
            let context = self.board.context("round2", name, &self.me);
            let share = keys.decrypt(&encrypted.0, &context).map_err(|_| wrong())?;
            let share = SigningShare::deserialize(&share).map_err(|_| wrong())?;
            let sender = group.identifier(name)?;
            if self.old.is_some() && !is_refreshing_share(&share, &packages[&sender], secret.identifier()) {
                return Err(wrong());
            }
            received.insert(sender, round2::Package::new(share));
        }
        let made = match &self.old {
            None => dkg::part3(secret, packages, &received),
            Some(old) => {
                let public = self.members_only(old)?;
                refresh::refresh_dkg_shares(secret, packages, &received, public, old.key().clone())
            }
        };
        made.map_err(|error| group.blame(&error, "round 2"))
    }

    /// The public shares of those who take part in the refresh.
    fn members_only(&self, old: &KeyShare) -> Result<PublicKeyPackage> {
        let mut shares = BTreeMap::new();
        for name in &self.members {
            let identifier = self.board.group.identifier(name)?;
            shares.insert(identifier, old.public().verifying_shares()[&identifier]);
        }
        let threshold = Some(self.board.group.threshold());
        Ok(PublicKeyPackage::new(shares, *old.public().verifying_key(), threshold))
    }

    /// Returns all messages of the session so far, its own and the others', with the one that
    /// opened it.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        std::iter::once(&self.opening).chain(self.board.all())
    }

    /// Returns the group.
    pub fn group(&self) -> &Group {
        &self.board.group
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.board.session
    }

    #[cfg(test)]
    pub(crate) fn context(&self, kind: &str, from: &Name, to: &Name) -> Vec<u8> {
        self.board.context(kind, from, to)
    }

    /// Returns the round that waits for messages, from 1 to 3, and whose they are.
    pub fn waits_for(&self) -> (u8, Vec<Name>) {
        for (round, kind) in [(1, "round1"), (2, "round2")] {
            let missing = self.board.missing(kind, 0, &self.members);
            if !missing.is_empty() {
                return (round, missing);
            }
        }
        (3, self.board.missing("confirmation", 0, &self.members))
    }

    /// Returns the share that is refreshed, if it is a refresh.
    pub fn old_share(&self) -> Option<&KeyShare> {
        self.old.as_ref()
    }

    /// Returns the [`KeyShare::shares_id`] of the new shares, once this participant has one.
    pub fn shares_id(&self) -> Option<SessionId> {
        self.share.as_ref().map(KeyShare::shares_id)
    }

    /// Returns the public key, once this participant has a share.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.share.as_ref().map(KeyShare::public_key)
    }

    /// Returns whether everybody has a share and has confirmed the key. Before that, publish
    /// nothing that needs the key: a participant may be without a share.
    pub fn is_complete(&self) -> bool {
        self.share.is_some() && self.board.missing("confirmation", 0, &self.members).is_empty()
    }

    /// Returns the share, if the generation is complete.
    pub fn into_share(self) -> Option<KeyShare> {
        if self.is_complete() { self.share } else { None }
    }

    /// Returns everything as bytes, for a file that must be encrypted. Nothing in it is used only
    /// once: a session continues from an older copy.
    ///
    /// # Panics
    /// Never: the fields are plain.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        let old = self.old.as_ref().map(|share| {
            let bytes = share.to_secret_bytes();
            SecretText(Zeroizing::new(std::str::from_utf8(&bytes).expect("JSON is text").to_owned()))
        });
        secret_json(&KeptGeneration {
            opening: self.opening.to_string(),
            messages: self.board.all().map(Message::to_string).collect(),
            secret: self.secret.clone(),
            old,
        })
    }

    /// Reads what [`KeyGeneration::to_secret_bytes`] wrote.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] for anything else, or for other keys.
    pub fn from_secret_bytes(keys: &ParticipantKeys, bytes: &[u8]) -> Result<Self> {
        let kept: KeptGeneration = from_secret_json(bytes, "state of a key generation")?;
        let opening = Message::parse(&kept.opening)?;
        let old = kept.old.map(|old| KeyShare::from_secret_bytes(old.0.as_bytes())).transpose()?;
        let group = old.as_ref().map_or_else(|| Group::of(&opening), |old| Ok(old.group().clone()))?;
        check_card(keys, &group)?;
        let members = match opening.content() {
            MessageContent::Refresh { members, .. } => members.clone(),
            _ => group.names().cloned().collect(),
        };
        let mut this = Self {
            board: Board::new(opening.digest(), group),
            opening,
            me: keys.name().clone(),
            members,
            secret: kept.secret,
            old,
            share: None,
        };
        for line in &kept.messages {
            this.receive(&Message::parse(line)?)?;
        }
        this.advance(keys)?;
        Ok(this)
    }
}

impl fmt::Debug for KeyGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyGeneration")
            .field("session", &self.board.session)
            .field("me", &self.me)
            .field("members", &self.members)
            .field("waits_for", &self.waits_for())
            .finish_non_exhaustive()
    }
}

pub(crate) fn check_card(keys: &ParticipantKeys, group: &Group) -> Result<()> {
    match group.card(keys.name()) {
        Some(card) if *card == keys.card() => Ok(()),
        Some(_) => Err(ThresholdError::new(
            ErrorCode::InvalidArgument,
            format!("{} in the group is somebody else: the keys on the card are not yours", keys.name()),
        )),
        None => Err(crate::group::stranger(keys.name())),
    }
}

/// The members, sorted as in the group.
///
/// # Errors
/// A member has no share.
fn checked_members(share: &KeyShare, members: &[Name]) -> Result<Vec<Name>> {
    let invalid = |text: String| Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
    if let Some(name) = members.iter().find(|name| !share.is_member(name)) {
        return invalid(format!("{name} has no share now"));
    }
    let ordered: Vec<_> = share.group().names().filter(|name| members.contains(name)).cloned().collect();
    if ordered.len() != members.len() {
        return invalid("a member is named twice".to_owned());
    }
    if ordered.len() < usize::from(share.group().threshold()) {
        return invalid(format!("at least {} members must remain", share.group().threshold()));
    }
    Ok(ordered)
}

/// Whether a share of a refresh is the one that its sender committed to. The library checks it too,
/// without saying whose share is wrong.
fn is_refreshing_share(share: &SigningShare, package: &round1::Package, me: &Identifier) -> bool {
    let check = || {
        let bytes: [u8; 32] = me.serialize().try_into().ok()?;
        let me = Ed25519ScalarField::deserialize(&bytes).ok()?;
        let mut power = me;
        let mut expected = Ed25519Group::identity();
        // The first coefficient is 0, and is left out.
        for commitment in package.commitment().serialize().ok()? {
            let bytes: [u8; 32] = commitment.try_into().ok()?;
            expected += Ed25519Group::deserialize(&bytes).ok()? * power;
            power *= me;
        }
        let share = VerifyingShare::from(*share).serialize().ok()?;
        Some(share == Ed25519Group::serialize(&expected).ok()?)
    };
    check().unwrap_or(false)
}
