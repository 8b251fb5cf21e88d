//! Tests that need the inside: a participant who misbehaves signs messages that the API never
//! makes.

mod generating;
mod messages;
mod orders;
mod repairing;
mod resharing;
mod signing;
mod stock;

use bulla_ed25519::{SigningKey, VerifyItem, cofactored};
use bulla_kms::Name;

use crate::message::{Message, MessageContent};
use crate::{
    ErrorCode, Group, KeyGeneration, KeyShare, ParticipantKeys, PreparedOrder, Receipt, Result, SigningOrder,
    SigningSession, ThresholdError, deal, take_dealt,
};

const NAMES: [&str; 6] = ["ann", "bob", "carol", "dave", "erin", "frank"];

pub(crate) fn people(count: usize) -> Vec<ParticipantKeys> {
    NAMES[..count].iter().map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap()).collect()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn proposal(keys: &[ParticipantKeys], threshold: u16) -> Message {
    let cards = keys.iter().map(ParticipantKeys::card).collect();
    Group::new(name("releases"), threshold, cards).unwrap().propose(&keys[0]).unwrap()
}

/// Shares of a dealer's key: quicker to make than by a key generation.
fn dealt(keys: &[ParticipantKeys], threshold: u16) -> Vec<KeyShare> {
    dealt_with(keys, threshold, 7)
}

/// Shares of the key whose seed has this byte everywhere.
fn dealt_with(keys: &[ParticipantKeys], threshold: u16, seed: u8) -> Vec<KeyShare> {
    let proposal = proposal(keys, threshold);
    let dealt = deal(&keys[0], &proposal, &SigningKey::from_bytes(&[seed; 32])).unwrap();
    keys.iter().map(|one| take_dealt(one, &proposal, &dealt, &keys[0].card()).unwrap()).collect()
}

fn copy(share: &KeyShare) -> KeyShare {
    KeyShare::from_secret_bytes(&share.to_secret_bytes()).unwrap()
}

/// What a test does with sides of any kind of session.
pub(crate) trait Side {
    fn sent(&self) -> Vec<Message>;
    fn take(&mut self, message: &Message) -> Result<Receipt>;
}

macro_rules! sides {
    ($($side:ty),+) => {$(
        impl Side for $side {
            fn sent(&self) -> Vec<Message> {
                self.messages().cloned().collect()
            }

            fn take(&mut self, message: &Message) -> Result<Receipt> {
                self.receive(message)
            }
        }
    )+};
}

sides!(KeyGeneration, SigningSession, crate::Repair, crate::Resharing);

/// Everybody gets what everybody has.
pub(crate) fn exchange(sides: &mut [impl Side]) {
    try_exchange(sides).unwrap();
}

fn try_exchange(sides: &mut [impl Side]) -> Result<()> {
    let sent: Vec<_> = sides.iter().flat_map(Side::sent).collect();
    sides.iter_mut().try_for_each(|side| sent.iter().try_for_each(|message| side.take(message).map(drop)))
}

/// Runs a key generation or a refresh to its end.
fn complete(keys: &[&ParticipantKeys], mut sides: Vec<KeyGeneration>) -> Result<Vec<KeyShare>> {
    for _ in 0..4 {
        try_exchange(&mut sides)?;
        sides.iter_mut().zip(keys).try_for_each(|(side, keys)| side.advance(keys))?;
    }
    Ok(sides.into_iter().map(|side| side.into_share().expect("it is complete")).collect())
}

fn generate(keys: &[ParticipantKeys], threshold: u16) -> Vec<KeyShare> {
    let proposal = proposal(keys, threshold);
    let sides = keys.iter().map(|one| KeyGeneration::join(one, &proposal).unwrap()).collect();
    complete(&keys.iter().collect::<Vec<_>>(), sides).unwrap()
}

/// Sessions of some participants, who have all approved and have each other's approvals.
fn approved(keys: &[&ParticipantKeys], shares: &[&KeyShare], steps: u8) -> Vec<SigningSession> {
    let request = SigningSession::request(keys[0], shares[0], "a job", steps).unwrap();
    let mut sessions: Vec<_> = keys
        .iter()
        .zip(shares)
        .map(|(keys, share)| SigningSession::open(keys, copy(share), &request).unwrap())
        .collect();
    for (session, keys) in sessions.iter_mut().zip(keys) {
        session.approve(keys).unwrap();
    }
    exchange(&mut sessions);
    sessions
}

/// What a step of the tests signs: it depends on the signatures before.
fn step_message(message: &[u8], signatures: &[[u8; 64]]) -> Vec<u8> {
    [message, signatures.as_flattened()].concat()
}

fn sign(keys: &[&ParticipantKeys], shares: &[&KeyShare], message: &[u8], steps: u8) -> Vec<[u8; 64]> {
    let mut sessions = approved(keys, shares, steps);
    for _ in 0..=steps {
        for (session, keys) in sessions.iter_mut().zip(keys) {
            session.advance(keys, |before| Ok(step_message(message, before))).unwrap();
        }
        exchange(&mut sessions);
    }
    let signatures = sessions[0].signatures().expect("everybody has signed").to_vec();
    assert!(sessions.iter().all(|session| session.signatures() == Some(&*signatures)));
    signatures
}

/// One order, prepared for a share's holder.
fn prepared(share: &KeyShare, order: &SigningOrder) -> Result<PreparedOrder> {
    PreparedOrder::prepare_all(share, vec![order.clone()]).remove(0)
}

/// Every predicate of this project, and `ed25519-dalek`, accept a signature.
fn assert_accepted(share: &KeyShare, message: &[u8], signature: &[u8; 64]) {
    let public = share.public_key();
    let key: &[u8; 32] = public.as_bytes().try_into().unwrap();
    assert!(public.verify(message, signature).is_valid());
    let item = VerifyItem { public_key: key, message, signature };
    assert!(bulla_ed25519::verify_strict(&item).is_valid());
    assert!(cofactored::verify(&item).is_valid());
    let dalek = ed25519_dalek::VerifyingKey::from_bytes(key).unwrap();
    let signature = ed25519_dalek::Signature::from_bytes(signature);
    dalek.verify_strict(message, &signature).unwrap();
    ed25519_dalek::Verifier::verify(&dalek, message, &signature).unwrap();
}

/// An error of this kind that names these participants and nobody else.
#[track_caller]
fn assert_blames<T: std::fmt::Debug>(result: Result<T>, code: ErrorCode, culprits: &[&str]) {
    let error: ThresholdError = result.unwrap_err();
    assert_eq!(error.code, code, "{error}");
    let names: Vec<_> = error.culprits.iter().map(Name::as_str).collect();
    assert_eq!(names, culprits, "{error}");
}

/// A message of a participant with any content, in the session of another message.
fn forge(keys: &ParticipantKeys, like: &Message, content: MessageContent) -> Message {
    Message::sign(keys, like.session(), content).unwrap()
}

fn find(side: &impl Side, kind: &str, sender: &str) -> Message {
    let found = side.sent().into_iter().find(|one| one.kind() == kind && one.sender().as_str() == sender);
    found.unwrap_or_else(|| panic!("{sender} has sent a {kind}"))
}
