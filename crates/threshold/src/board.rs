//! The messages of one session: verified, and one of each kind from each participant.

use std::collections::BTreeMap;

use bulla_kms::Name;

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::{Group, stranger};
use crate::message::{Message, MessageContent, SessionId};
use crate::participant::{Card, ParticipantKeys};

/// What a session did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is new.
    Added,
    /// The session had it already.
    Known,
}

/// The kind of a message, its step and its sender.
type Slot = (&'static str, u8, Name);

/// The verified messages of one session.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    pub(crate) session: SessionId,
    pub(crate) group: Group,
    /// Participants of the session who are not in the group.
    others: Vec<Card>,
    messages: BTreeMap<Slot, Message>,
}

impl Board {
    pub(crate) fn new(session: SessionId, group: Group) -> Self {
        Self::with_others(session, group, Vec::new())
    }

    pub(crate) fn with_others(session: SessionId, group: Group, others: Vec<Card>) -> Self {
        Self { session, group, others, messages: BTreeMap::new() }
    }

    fn card(&self, name: &Name) -> Option<&Card> {
        self.group.card(name).or_else(|| self.others.iter().find(|card| card.name == *name))
    }

    /// Checks that a message belongs to this session and is from the participant that it names:
    /// before its content is blamed on somebody.
    pub(crate) fn authenticate(&self, message: &Message) -> Result<()> {
        let sender = message.sender();
        if message.session() != self.session {
            let text = format!(
                "the {} from {sender} belongs to another session: it was sent for something else",
                message.kind()
            );
            return Err(ThresholdError::new(ErrorCode::WrongSession, text));
        }
        message.verify(self.card(sender).ok_or_else(|| stranger(sender))?)
    }

    /// Verifies a message and keeps it.
    pub(crate) fn receive(&mut self, message: &Message) -> Result<Receipt> {
        self.authenticate(message)?;
        let sender = message.sender();
        let slot = (message.kind(), message.content().step(), sender.clone());
        match self.messages.get(&slot) {
            None => {
                self.messages.insert(slot, message.clone());
                Ok(Receipt::Added)
            }
            Some(known) if known == message => Ok(Receipt::Known),
            // The signatures under both prove it to everybody.
            Some(_) => {
                let what = format!("sent two different messages of the kind {}", message.kind());
                Err(ThresholdError {
                    code: ErrorCode::Equivocation,
                    ..ThresholdError::misbehavior(sender, what)
                })
            }
        }
    }

    /// Verifies a message and keeps it in place of another one of its kind and sender.
    pub(crate) fn replace(&mut self, message: &Message) -> Result<()> {
        let slot = (message.kind(), message.content().step(), message.sender().clone());
        let old = self.messages.remove(&slot);
        let received = self.receive(message).map(drop);
        if let (Err(_), Some(old)) = (&received, old) {
            self.messages.insert(slot, old);
        }
        received
    }

    /// Signs a message and keeps it.
    pub(crate) fn send(&mut self, keys: &ParticipantKeys, content: MessageContent) -> Result<()> {
        let message = Message::sign(keys, self.session, content)?;
        self.receive(&message).map(drop)
    }

    pub(crate) fn get(&self, kind: &'static str, step: u8, from: &Name) -> Option<&Message> {
        self.messages.get(&(kind, step, from.clone()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Message> {
        self.messages.values()
    }

    /// The participants, of those given, who have not sent such a message.
    pub(crate) fn missing<'a>(
        &self,
        kind: &'static str,
        step: u8,
        from: impl IntoIterator<Item = &'a Name>,
    ) -> Vec<Name> {
        from.into_iter().filter(|name| self.get(kind, step, name).is_none()).cloned().collect()
    }

    /// What a secret of this session is bound to when it is encrypted.
    pub(crate) fn context(&self, kind: &str, from: &Name, to: &Name) -> Vec<u8> {
        [
            b"bulla threshold v1 secret\0",
            self.session.as_bytes().as_slice(),
            kind.as_bytes(),
            b"\0",
            from.as_str().as_bytes(),
            b"\0",
            to.as_str().as_bytes(),
        ]
        .concat()
    }
}
