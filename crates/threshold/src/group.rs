//! Groups: who holds a share of a key, and how many of them sign.

use std::collections::{BTreeMap, BTreeSet};

use bulla_kms::Name;
use frost_ed25519::Identifier;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::message::{Message, MessageContent, SessionId, random};
use crate::participant::{Card, ParticipantKeys};

/// The most participants of a group.
pub const MAX_PARTICIPANTS: usize = 32;

/// Who holds a share of a key, and how many of them sign with it. The proposal of one is a message
/// that opens the session in which the key is made.
///
/// ```
/// use bulla_threshold::{Group, ParticipantKeys};
///
/// let keys = ["ann", "bob", "carol"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// let cards = keys.iter().map(ParticipantKeys::card).collect();
/// let group = Group::new("releases".parse()?, 2, cards)?;
/// assert_eq!((group.threshold(), group.participants().len()), (2, 3));
///
/// let proposal = group.propose(&keys[0])?;
/// assert_eq!(Group::of(&proposal)?, group);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    name: Name,
    threshold: u16,
    participants: Vec<Card>,
    nonce: SessionId,
}

impl Group {
    /// Describes a group. The order of the cards stays: it numbers the participants.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] unless the threshold is at least 2 and at most the number of
    /// participants, which is at most [`MAX_PARTICIPANTS`], and unless names and keys are distinct.
    pub fn new(name: Name, threshold: u16, participants: Vec<Card>) -> Result<Self> {
        let group = Self { name, threshold, participants, nonce: random() };
        group.check()?;
        Ok(group)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |text: &str| Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        let count = self.participants.len();
        if count > MAX_PARTICIPANTS {
            return invalid("a group has at most 32 participants");
        }
        if self.threshold < 2 || usize::from(self.threshold) > count {
            return invalid("at least 2 participants sign, and at most all of them");
        }
        let names: BTreeSet<_> = self.participants.iter().map(|card| &card.name).collect();
        let keys: BTreeSet<_> = self.participants.iter().map(|card| card.signing_key.as_bytes()).collect();
        if names.len() != count || keys.len() != count {
            return invalid("two participants have the same name or the same key");
        }
        self.participants.iter().try_for_each(Card::check)
    }

    /// Makes the message that opens the session. Who proposes a group need not be in it.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the message would be too long.
    pub fn propose(&self, keys: &ParticipantKeys) -> Result<Message> {
        Message::sign(keys, SessionId::NONE, MessageContent::Group(self.clone()))
    }

    /// Returns the group in a proposal. The signature proves nothing if the proposer is a stranger:
    /// a person looks at the names and fingerprints before joining.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the message is something else, or describes a group that
    /// is not possible; [`ErrorCode::BadSignature`] if the proposer is in the group.
    pub fn of(message: &Message) -> Result<Self> {
        let MessageContent::Group(group) = message.content() else {
            let text = format!("the message does not propose a group: it is a {}", message.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        group.check()?;
        if let Some(card) = group.card(message.sender()) {
            message.verify(card)?;
        }
        Ok(group.clone())
    }

    /// The group with other cards of the same participants. Cards of others are ignored.
    pub(crate) fn with_cards(mut self, cards: &[Card]) -> Result<Self> {
        for card in &mut self.participants {
            if let Some(newer) = cards.iter().find(|one| one.name == card.name) {
                card.clone_from(newer);
            }
        }
        self.check()?;
        Ok(self)
    }

    /// Returns the name that the proposer chose.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns how many participants sign together.
    pub fn threshold(&self) -> u16 {
        self.threshold
    }

    /// Returns all participants, in the order of their numbers.
    pub fn participants(&self) -> &[Card] {
        &self.participants
    }

    /// Returns the card of a participant.
    pub fn card(&self, name: &Name) -> Option<&Card> {
        self.participants.iter().find(|card| card.name == *name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.participants.iter().map(|card| &card.name)
    }

    /// The participant's number in the mathematics: from 1.
    pub(crate) fn number(&self, name: &Name) -> Result<u16> {
        let index = self.names().position(|one| one == name).ok_or_else(|| stranger(name))?;
        Ok(u16::try_from(index + 1).expect("the number of participants is bounded"))
    }

    /// The number as the library has it.
    pub(crate) fn identifier(&self, name: &Name) -> Result<Identifier> {
        Ok(Identifier::try_from(self.number(name)?).expect("it is not 0"))
    }

    pub(crate) fn name_of(&self, identifier: &Identifier) -> Option<Name> {
        self.names().find(|name| self.identifier(name).is_ok_and(|one| one == *identifier)).cloned()
    }

    /// Names for the library's identifiers, in an error.
    pub(crate) fn blame(&self, error: &frost_ed25519::Error, what: &str) -> ThresholdError {
        let culprits: Vec<_> = error.culprits().iter().filter_map(|one| self.name_of(one)).collect();
        let names: Vec<_> = culprits.iter().map(Name::as_str).collect();
        let text = match names.is_empty() {
            true => format!("{what}: {error}"),
            false => format!("{what}: {} sent something wrong", names.join(" and ")),
        };
        ThresholdError::new(ErrorCode::Misbehavior, text).caused_by(culprits)
    }

    pub(crate) fn by_identifier<T>(
        &self,
        named: impl IntoIterator<Item = (Name, T)>,
    ) -> Result<BTreeMap<Identifier, T>> {
        named.into_iter().map(|(name, value)| Ok((self.identifier(&name)?, value))).collect()
    }
}

pub(crate) fn stranger(name: &Name) -> ThresholdError {
    ThresholdError::new(ErrorCode::UnknownSender, format!("{name} is not in the group"))
}
