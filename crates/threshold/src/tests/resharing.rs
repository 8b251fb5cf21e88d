//! New holders and another threshold for a key that exists.

use std::sync::Arc;

use super::*;
use crate::message::Encrypted;
use crate::{
    Card, Handover, Nonce, Repair, Resharing, SigningOrder, combine, confirm, reconstruct, withdraw,
};

fn cards(keys: &[&ParticipantKeys]) -> Vec<Card> {
    keys.iter().map(|keys| keys.card()).collect()
}

fn group(keys: &[&ParticipantKeys], threshold: u16) -> Group {
    Group::new(name("releases"), threshold, cards(keys)).unwrap()
}

fn share_of(shares: &[Arc<KeyShare>], keys: &ParticipantKeys) -> Option<Arc<KeyShare>> {
    shares.iter().find(|share| share.holder() == keys.name()).cloned()
}

/// All sides of a resharing, with their parts.
fn open(
    all: &[&ParticipantKeys],
    shares: &[Arc<KeyShare>],
    helpers: &[&ParticipantKeys],
    to: Group,
) -> Vec<Resharing> {
    let first = share_of(shares, helpers[0]).unwrap();
    let opening = Resharing::propose(helpers[0], &first, &cards(helpers), to).unwrap();
    all.iter().map(|keys| Resharing::join(keys, share_of(shares, keys).as_ref(), &opening).unwrap()).collect()
}

fn reshare(
    all: &[&ParticipantKeys],
    shares: &[Arc<KeyShare>],
    helpers: &[&ParticipantKeys],
    to: Group,
) -> Vec<Arc<KeyShare>> {
    let mut sides = open(all, shares, helpers, to);
    exchange(&mut sides);
    let made = sides.iter().zip(all).filter_map(|(side, keys)| side.new_share(keys).unwrap());
    made.map(Arc::new).collect()
}

fn sign_by(shares: &[&Arc<KeyShare>]) -> Result<[u8; 64]> {
    let nonces: Vec<_> = shares.iter().map(|share| Nonce::fresh(share, 1).remove(0)).collect();
    let commitments =
        shares.iter().zip(&nonces).map(|(share, nonce)| (share.holder().clone(), nonce.commitments()));
    let order = SigningOrder::new(shares[0], b"a message", commitments.collect());
    let parts = shares
        .iter()
        .zip(nonces)
        .map(|(share, nonce)| Ok((share.holder().clone(), nonce.sign(&prepared(share, &order)?)?)))
        .collect::<Result<_>>()?;
    combine(shares[0], &[(&prepared(shares[0], &order)?, &parts)]).remove(0)
}

#[test]
fn other_holders_sign_with_another_threshold_and_the_key_stays() {
    let keys = people(6);
    let [ann, bob, carol, dave, erin, frank] = [0, 1, 2, 3, 4, 5].map(|at| &keys[at]);
    let old: Vec<_> = generate(&keys[..3], 2).into_iter().map(Arc::new).collect();
    // Carol leaves, three others join, and three of five sign.
    let everybody = [ann, bob, dave, erin, frank];
    let new = reshare(&everybody, &old, &[ann, bob], group(&everybody, 3));
    assert_eq!(new.len(), 5);
    for share in &new {
        assert_eq!((share.epoch(), share.group().threshold()), (1, 3));
        assert_eq!(share.public_key(), old[0].public_key());
        assert_eq!(share.group_id(), old[0].group_id());
        let again = KeyShare::from_secret_bytes(&share.to_secret_bytes()).unwrap();
        assert_eq!(again.shares_id(), new[0].shares_id());
    }
    assert_accepted(&new[2], b"a message", &sign_by(&[&new[4], &new[2], &new[0]]).unwrap());
    // The same key as before, which three give and two do not.
    let whole = reconstruct(&[&old[0], &old[2]]).unwrap();
    assert_eq!(reconstruct(&[&new[1], &new[3], &new[4]]).unwrap(), whole);
    assert_blames(reconstruct(&[&new[1], &new[3]]), ErrorCode::NotEnoughShares, &[]);
    assert_blames(reconstruct(&[&new[1], &new[3], &old[0]]), ErrorCode::NotEnoughShares, &[]);
    // Old and new shares do not sign together.
    assert_blames(sign_by(&[&old[0], &new[1]]), ErrorCode::WrongSession, &[]);
    assert_blames(sign_by(&[&new[0], &new[2], &old[1]]), ErrorCode::WrongSession, &[]);

    // And back again, by holders who joined.
    let back = reshare(&[dave, erin, frank, carol], &new, &[dave, erin, frank], group(&[carol, dave], 2));
    assert_eq!(back.iter().map(|share| share.epoch()).collect::<Vec<_>>(), [2, 2]);
    assert_accepted(&back[0], b"a message", &sign_by(&[&back[0], &back[1]]).unwrap());
    assert_eq!(reconstruct(&[&back[0], &back[1]]).unwrap(), whole);
    // A share that others have refreshed is repaired, also with new keys of a participant.
    let lost = ParticipantKeys::generate(name("erin")).unwrap();
    let helpers = [name("ann"), name("bob"), name("dave")];
    let cards = [lost.card()];
    let proposal = new[0].proposal();
    let request = Repair::request_with_cards(&lost, proposal, new[0].shares_id(), &helpers, &cards).unwrap();
    assert_blames(Repair::help(ann, copy(&new[0]), &request), ErrorCode::BadSignature, &[]);
    let help = |keys, share: &KeyShare| Repair::help_with_cards(keys, copy(share), &request, &cards).unwrap();
    let mut sides = vec![help(ann, &new[0]), help(bob, &new[1]), help(dave, &new[2])];
    sides.push(Repair::receive_with_cards(&lost, proposal, &request, &cards).unwrap());
    for _ in 0..3 {
        exchange(&mut sides);
        for (side, keys) in sides.iter_mut().zip([ann, bob, dave, &lost]) {
            side.advance(keys).unwrap();
        }
    }
    let repaired = sides.pop().unwrap().into_share().unwrap();
    assert_eq!(repaired.to_secret_bytes(), new[3].to_secret_bytes());
}

#[test]
fn whoever_shares_something_else_is_named_by_those_who_can_know() {
    let keys = people(4);
    let [ann, bob, carol, dave] = [0, 1, 2, 3].map(|at| &keys[at]);
    let old: Vec<_> = dealt(&keys[..3], 2).into_iter().map(Arc::new).collect();
    let other: Vec<_> = dealt_with(&keys[..3], 2, 8).into_iter().map(Arc::new).collect();
    let all = [ann, bob, carol, dave];
    let mut sides = open(&all, &old, &[ann, bob], group(&all, 2));
    // Bob shares another key, in a part that fits itself.
    let stranger = open(&all, &other, &[ann, bob], group(&all, 2));
    let part = find(&stranger[1], "reshare-part", "bob");
    let MessageContent::ResharePart { commitment, .. } = part.content() else { unreachable!() };
    let opening = find(&sides[0], "reshare", "ann");
    let mine = find(&sides[1], "reshare-part", "bob");
    let MessageContent::ResharePart { shares, commitment: honest } = mine.content() else { unreachable!() };
    let like = |content| Message::sign(bob, opening.digest(), content).unwrap();
    let lie = like(MessageContent::ResharePart { commitment: commitment.clone(), shares: shares.clone() });
    assert_blames(sides[0].receive(&lie), ErrorCode::Misbehavior, &["bob"]);
    assert_blames(sides[2].receive(&lie), ErrorCode::Misbehavior, &["bob"]);
    // Dave has no old share: he notices that his part does not fit.
    let from_ann = find(&sides[0], "reshare-part", "ann");
    sides[3].receive(&from_ann).unwrap();
    sides[3].receive(&lie).unwrap();
    assert_blames(sides[3].new_share(dave), ErrorCode::Misbehavior, &["bob"]);
    // A part for other holders, and one with too few commitments.
    let mut fewer = shares.clone();
    fewer.remove(&name("dave"));
    let lie = like(MessageContent::ResharePart { commitment: honest.clone(), shares: fewer });
    assert_blames(sides[0].receive(&lie), ErrorCode::Misbehavior, &["bob"]);
    // A wrong secret for one of them alone.
    let secret = [1; 32];
    let context = sides[0].context("reshare-part", bob.name(), carol.name());
    let mut wrong = shares.clone();
    wrong.insert(name("carol"), Encrypted(carol.card().encrypt(&secret, &context).unwrap()));
    let lie = like(MessageContent::ResharePart { commitment: honest.clone(), shares: wrong });
    sides[2].receive(&from_ann).unwrap();
    sides[2].receive(&lie).unwrap();
    assert_blames(sides[2].new_share(carol), ErrorCode::Misbehavior, &["bob"]);
    // Two different parts prove the lie to everybody.
    assert_blames(sides[2].receive(&mine), ErrorCode::Equivocation, &["bob"]);
    // Carol does not help, and a confirmation is no part.
    let not_asked = Message::sign(carol, opening.digest(), mine.content().clone()).unwrap();
    assert_blames(sides[0].receive(&not_asked), ErrorCode::UnknownSender, &[]);
    assert_blames(sides[0].receive(&withdraw(bob, &opening).unwrap()), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn a_resharing_of_other_shares_or_by_too_few_is_refused() {
    let keys = people(4);
    let [ann, bob, carol, dave] = [0, 1, 2, 3].map(|at| &keys[at]);
    let old: Vec<_> = dealt(&keys[..3], 2).into_iter().map(Arc::new).collect();
    let to = || group(&[ann, bob, carol], 2);
    let propose = |helpers: &[&ParticipantKeys]| Resharing::propose(ann, &old[0], &cards(helpers), to());
    assert_blames(propose(&[ann]), ErrorCode::InvalidArgument, &[]);
    assert_blames(propose(&[ann, bob, carol]), ErrorCode::InvalidArgument, &[]);
    assert_blames(propose(&[ann, dave]), ErrorCode::InvalidArgument, &[]);
    assert_blames(propose(&[ann, ann]), ErrorCode::InvalidArgument, &[]);
    let opening = propose(&[ann, bob]).unwrap();
    // Dave gets no share, Bob cannot help without his.
    assert_blames(Resharing::join(dave, None, &opening), ErrorCode::InvalidArgument, &[]);
    assert_blames(Resharing::join(bob, None, &opening), ErrorCode::InvalidArgument, &[]);
    // A share of another key, and one that was refreshed since.
    let other = Arc::new(dealt(&keys[..3], 2).remove(2));
    assert_blames(Resharing::join(carol, Some(&other), &opening), ErrorCode::WrongSession, &[]);
    let new = reshare(&[ann, bob, carol], &old, &[ann, bob], to());
    assert_blames(Resharing::join(carol, Some(&new[2]), &opening), ErrorCode::WrongSession, &[]);
    // An opening in the name of somebody else.
    let forged = Message::sign(
        &ParticipantKeys::generate(name("ann")).unwrap(),
        opening.session(),
        opening.content().clone(),
    );
    assert_blames(Resharing::join(carol, Some(&old[2]), &forged.unwrap()), ErrorCode::BadSignature, &[]);
}

#[test]
fn a_handover_counts_when_all_have_confirmed_the_same_shares() {
    let keys = people(3);
    let [ann, bob, carol] = [0, 1, 2].map(|at| &keys[at]);
    let old: Vec<_> = dealt(&keys, 2).into_iter().map(Arc::new).collect();
    let new = reshare(&[ann, bob, carol], &old, &[ann, carol], group(&[ann, bob, carol], 2));
    let opening = new[0].proposal();
    assert!(confirm(ann, &old[0]).is_err(), "a share that no resharing made");
    let said: Vec<_> = keys.iter().zip(&new).map(|(keys, share)| confirm(keys, share).unwrap()).collect();
    assert_eq!(said[0], confirm(ann, &new[0]).unwrap(), "it is the same whenever it is made");
    let mut handover = Handover::of(opening).unwrap();
    assert_eq!(handover.old_shares_id(), old[0].shares_id());
    handover.receive(&said[0]).unwrap();
    handover.receive(&said[2]).unwrap();
    assert_eq!(handover.missing(), [name("bob")]);
    // Bob confirms other shares: those of another resharing.
    let others = reshare(&[ann, bob, carol], &old, &[ann, carol], group(&[ann, bob, carol], 2));
    let other = confirm(bob, &others[1]).unwrap();
    assert_blames(handover.receive(&other), ErrorCode::WrongSession, &[]);
    let lie = Message::sign(bob, opening.digest(), other.content().clone()).unwrap();
    let mut split = handover.clone();
    split.receive(&lie).unwrap();
    assert_eq!(split.missing(), [name("bob")]);
    assert!(split.failure().unwrap().contains("bob has confirmed other shares"));
    assert_blames(split.receive(&said[1]), ErrorCode::Equivocation, &["bob"]);
    handover.receive(&said[1]).unwrap();
    assert!(handover.missing().is_empty() && handover.failure().is_none());
    assert_eq!(handover.shares_id(), Some(new[1].shares_id()));
    // Somebody else has all of it from the messages alone.
    let lines: Vec<_> = handover.messages().map(Message::to_string).collect();
    let mut again = Handover::of(&Message::parse(&lines[0]).unwrap()).unwrap();
    lines.iter().for_each(|line| assert!(again.receive(&Message::parse(line).unwrap()).is_ok()));
    assert!(again.missing().is_empty());
    let mut given_up = Handover::of(opening).unwrap();
    given_up.receive(&withdraw(carol, opening).unwrap()).unwrap();
    assert_eq!(given_up.failure().unwrap(), "carol has withdrawn");
}
