//! Key generation and refresh, with participants who misbehave.

use super::*;
use crate::message::Encrypted;
use crate::reconstruct;

fn sides_of(keys: &[ParticipantKeys], threshold: u16) -> Vec<KeyGeneration> {
    let proposal = proposal(keys, threshold);
    keys.iter().map(|one| KeyGeneration::join(one, &proposal).unwrap()).collect()
}

fn advance(keys: &[ParticipantKeys], sides: &mut [KeyGeneration]) {
    sides.iter_mut().zip(keys).for_each(|(side, keys)| side.advance(keys).unwrap());
}

#[test]
fn every_subset_of_the_threshold_signs_with_a_generated_key() {
    for (count, threshold) in [(2, 2), (3, 2), (4, 3)] {
        let keys = people(count);
        let shares = generate(&keys, threshold);
        for subset in 0_u32..1 << count {
            if subset.count_ones() != u32::from(threshold) {
                continue;
            }
            let chosen: Vec<_> = (0..count).filter(|index| subset >> index & 1 == 1).collect();
            let keys: Vec<_> = chosen.iter().map(|index| &keys[*index]).collect();
            let some: Vec<_> = chosen.iter().map(|index| &shares[*index]).collect();
            let signature = sign(&keys, &some, b"a release", 1)[0];
            assert_accepted(&shares[0], b"a release", &signature);
        }
    }
}

#[test]
fn fewer_shares_than_the_threshold_do_not_give_the_key() {
    let keys = people(4);
    let shares = dealt(&keys, 3);
    let scalar = reconstruct(&[&shares[0], &shares[1], &shares[3]]).unwrap();
    assert_eq!(*scalar, SigningKey::from_bytes(&[7; 32]).to_scalar().to_bytes());
    let few = reconstruct(&[&shares[0], &shares[1]]);
    assert_blames(few, ErrorCode::NotEnoughShares, &[]);
    // One share twice is not two shares.
    assert_blames(reconstruct(&[&shares[0], &shares[1], &shares[1]]), ErrorCode::NotEnoughShares, &[]);
    let others = dealt(&keys, 3);
    let mixed = reconstruct(&[&shares[0], &shares[1], &others[2]]);
    assert_blames(mixed, ErrorCode::NotEnoughShares, &[]);
}

#[test]
fn a_key_generation_continues_from_what_was_kept() {
    let keys = people(3);
    let mut sides = sides_of(&keys, 2);
    for _ in 0..4 {
        exchange(&mut sides);
        advance(&keys, &mut sides);
        sides = sides
            .iter()
            .zip(&keys)
            .map(|(side, keys)| KeyGeneration::from_secret_bytes(keys, &side.to_secret_bytes()).unwrap())
            .collect();
    }
    assert!(sides.iter().all(KeyGeneration::is_complete));
    let key = sides[0].public_key();
    assert!(key.is_some() && sides.iter().all(|side| side.public_key() == key));
}

#[test]
fn the_session_waits_for_those_who_are_silent() {
    let keys = people(3);
    let mut sides = sides_of(&keys, 2);
    let bob = sides.remove(1);
    exchange(&mut sides);
    sides[0].advance(&keys[0]).unwrap();
    assert_eq!(sides[0].waits_for(), (1, vec![name("bob")]));
    assert!(!sides[0].is_complete() && sides[0].public_key().is_none());
    for message in bob.messages() {
        sides[0].receive(message).unwrap();
    }
    sides[0].advance(&keys[0]).unwrap();
    assert_eq!(sides[0].waits_for(), (2, vec![name("bob"), name("carol")]));
    assert!(sides.remove(0).into_share().is_none());
}

#[test]
fn a_participant_who_sends_a_wrong_share_is_named() {
    let keys = people(3);
    for damaged in [false, true] {
        let mut sides = sides_of(&keys, 2);
        exchange(&mut sides);
        advance(&keys, &mut sides);
        let round2 = find(&sides[1], "round2", "bob");
        let MessageContent::Round2 { seen, mut shares } = round2.content().clone() else { unreachable!() };
        // A share that is encrypted to carol, but is not the one that bob committed to; or bytes.
        let context = sides[1].context("round2", &name("bob"), &name("carol"));
        let mut wrong = [0; 32];
        wrong[0] = 9;
        let wrong = keys[2].card().encrypt(&wrong, &context).unwrap();
        shares.insert(name("carol"), Encrypted(if damaged { vec![1, 2, 3] } else { wrong }));
        let wrong = forge(&keys[1], &round2, MessageContent::Round2 { seen, shares });
        let sent = find(&sides[0], "round2", "ann");
        sides[2].receive(&sent).unwrap();
        sides[2].receive(&wrong).unwrap();
        assert_blames(sides[2].advance(&keys[2]), ErrorCode::Misbehavior, &["bob"]);
    }
}

#[test]
fn a_share_that_is_missing_or_for_another_participant_is_noticed() {
    let keys = people(3);
    let mut sides = sides_of(&keys, 2);
    exchange(&mut sides);
    advance(&keys, &mut sides);
    let round2 = find(&sides[1], "round2", "bob");
    let MessageContent::Round2 { seen, shares } = round2.content().clone() else { unreachable!() };
    let mut fewer = shares.clone();
    fewer.remove(&name("carol"));
    let fewer = forge(&keys[1], &round2, MessageContent::Round2 { seen: seen.clone(), shares: fewer });
    assert_blames(sides[0].receive(&fewer), ErrorCode::Misbehavior, &["bob"]);
    // Ann's share cannot be decrypted as carol's.
    let mut swapped = shares.clone();
    swapped.insert(name("carol"), shares[&name("ann")].clone());
    let swapped = forge(&keys[1], &round2, MessageContent::Round2 { seen, shares: swapped });
    let sent = find(&sides[0], "round2", "ann");
    sides[2].receive(&sent).unwrap();
    sides[2].receive(&swapped).unwrap();
    assert_blames(sides[2].advance(&keys[2]), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn different_messages_to_different_participants_are_noticed() {
    let keys = people(3);
    let mut sides = sides_of(&keys, 2);
    let opening = sides[0].messages().next().unwrap().clone();
    let other = KeyGeneration::join(&keys[1], &opening).unwrap();
    let (first, second) = (find(&sides[1], "round1", "bob"), find(&other, "round1", "bob"));
    // Whoever gets both knows at once.
    sides[0].receive(&first).unwrap();
    assert_blames(sides[0].receive(&second), ErrorCode::Equivocation, &["bob"]);
    // Ann has the first and carol the second.
    let (from_ann, from_carol) = (find(&sides[0], "round1", "ann"), find(&sides[2], "round1", "carol"));
    sides[0].receive(&from_carol).unwrap();
    sides[2].receive(&second).unwrap();
    sides[2].receive(&from_ann).unwrap();
    for index in [0, 2] {
        sides[index].advance(&keys[index]).unwrap();
    }
    let mut other = other;
    other.receive(&from_ann).unwrap();
    other.receive(&from_carol).unwrap();
    other.advance(&keys[1]).unwrap();
    let round2 = [find(&sides[2], "round2", "carol"), find(&other, "round2", "bob")];
    for message in &round2 {
        sides[0].receive(message).unwrap();
    }
    let error = sides[0].advance(&keys[0]).unwrap_err();
    assert_eq!(error.code, ErrorCode::Equivocation);
    assert!(error.message.contains("in the name of bob"), "{error}");
    assert!(sides[0].public_key().is_none());
}

#[test]
fn wrong_commitments_and_proofs_are_named() {
    let keys = people(3);
    let mut sides = sides_of(&keys, 2);
    let own = find(&sides[1], "round1", "bob");
    // The commitments of carol with bob's signature: bob has no proof that he knows the secret.
    let stolen = find(&sides[2], "round1", "carol").content().clone();
    let sent = find(&sides[2], "round1", "carol");
    sides[0].receive(&sent).unwrap();
    sides[0].receive(&forge(&keys[1], &own, stolen)).unwrap();
    assert_blames(sides[0].advance(&keys[0]), ErrorCode::Misbehavior, &["bob"]);
    // A polynomial of another degree would change how many sign.
    let higher = sides_of(&keys, 3).remove(1);
    let higher = find(&higher, "round1", "bob").content().clone();
    assert_blames(sides[2].receive(&forge(&keys[1], &own, higher)), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn a_confirmation_of_another_key_is_named() {
    let keys = people(2);
    let mut sides = sides_of(&keys, 2);
    exchange(&mut sides);
    advance(&keys, &mut sides);
    let round2 = find(&sides[1], "round2", "bob");
    sides[0].receive(&round2).unwrap();
    let other = generate(&keys, 2).remove(0).public().clone();
    sides[0].receive(&forge(&keys[1], &round2, MessageContent::Confirmation { public: other })).unwrap();
    assert_blames(sides[0].advance(&keys[0]), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn a_group_is_possible_and_its_participants_are_distinct() {
    let keys = people(3);
    let cards: Vec<_> = keys.iter().map(ParticipantKeys::card).collect();
    for (threshold, cards) in [
        (1, cards.clone()),
        (4, cards.clone()),
        (2, vec![cards[0].clone(), cards[0].clone()]),
        (2, Vec::new()),
    ] {
        assert_blames(Group::new(name("x"), threshold, cards), ErrorCode::InvalidArgument, &[]);
    }
    // A participant cannot be replaced by other keys with the same name.
    let proposal = proposal(&keys, 2);
    let other = ParticipantKeys::generate(name("bob")).unwrap();
    assert_blames(KeyGeneration::join(&other, &proposal), ErrorCode::InvalidArgument, &[]);
    let stranger = ParticipantKeys::generate(name("mallory")).unwrap();
    assert_blames(KeyGeneration::join(&stranger, &proposal), ErrorCode::UnknownSender, &[]);
}

fn refresh(keys: &[&ParticipantKeys], shares: &[&KeyShare]) -> Vec<KeyGeneration> {
    let members: Vec<_> = keys.iter().map(|one| one.name().clone()).collect();
    let opening = KeyGeneration::propose_refresh(keys[0], shares[0], &members).unwrap();
    let join = |(keys, share): (&&ParticipantKeys, &&KeyShare)| {
        KeyGeneration::join_refresh(keys, copy(share), &opening).unwrap()
    };
    keys.iter().zip(shares).map(join).collect()
}

#[test]
fn refreshed_shares_sign_with_the_same_key_and_not_with_old_ones() {
    let keys = people(4);
    let old = dealt(&keys, 2);
    // Dave gets no new share.
    let members: Vec<_> = keys[..3].iter().collect();
    let sides = refresh(&members, &old[..3].iter().collect::<Vec<_>>());
    let kept: Vec<_> = sides
        .iter()
        .zip(&members)
        .map(|(side, keys)| KeyGeneration::from_secret_bytes(keys, &side.to_secret_bytes()).unwrap())
        .collect();
    let new = complete(&members, kept).unwrap();
    assert_eq!((new[0].epoch(), new[0].public_key()), (1, old[0].public_key()));
    assert_eq!(new[0].members(), [name("ann"), name("bob"), name("carol")]);
    let signature = sign(&members[1..], &[&new[1], &new[2]], b"after", 1)[0];
    assert_accepted(&new[0], b"after", &signature);

    let request = SigningSession::request(&keys[0], &new[0], "a job", 1).unwrap();
    let with_old = SigningSession::open(&keys[1], copy(&old[1]), &request);
    assert_blames(with_old, ErrorCode::WrongSession, &[]);
    assert_blames(reconstruct(&[&new[0], &old[1]]), ErrorCode::NotEnoughShares, &[]);
    let of_dave = SigningSession::request(&keys[3], &new[0], "a job", 1).unwrap();
    let of_dave = SigningSession::open(&keys[1], copy(&new[1]), &of_dave);
    assert_blames(of_dave, ErrorCode::UnknownSender, &[]);
}

#[test]
fn a_refresh_twice_with_a_larger_threshold_still_signs() {
    let keys = people(3);
    let all: Vec<_> = keys.iter().collect();
    let mut shares = generate(&keys, 3);
    for epoch in 1..=2 {
        shares = complete(&all, refresh(&all, &shares.iter().collect::<Vec<_>>())).unwrap();
        assert_eq!(shares[2].epoch(), epoch);
    }
    let signature = sign(&all, &shares.iter().collect::<Vec<_>>(), b"again", 1)[0];
    assert_accepted(&shares[0], b"again", &signature);
}

#[test]
fn a_participant_who_sends_a_wrong_share_in_a_refresh_is_named() {
    let keys = people(3);
    let shares = dealt(&keys, 2);
    let all: Vec<_> = keys.iter().collect();
    let mut sides = refresh(&all, &shares.iter().collect::<Vec<_>>());
    exchange(&mut sides);
    advance(&keys, &mut sides);
    let round2 = find(&sides[1], "round2", "bob");
    let MessageContent::Round2 { seen, shares: mut all_shares } = round2.content().clone() else {
        unreachable!()
    };
    let context = sides[1].context("round2", &name("bob"), &name("carol"));
    let wrong = keys[2].card().encrypt(&[1; 32].map(|_: u8| 1), &context).unwrap();
    all_shares.insert(name("carol"), Encrypted(wrong));
    let sent = find(&sides[0], "round2", "ann");
    sides[2].receive(&sent).unwrap();
    sides[2].receive(&forge(&keys[1], &round2, MessageContent::Round2 { seen, shares: all_shares })).unwrap();
    assert_blames(sides[2].advance(&keys[2]), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn a_refresh_needs_enough_members_who_have_shares() {
    let keys = people(3);
    let shares = dealt(&keys, 2);
    for members in [vec!["ann"], vec!["ann", "mallory"], vec!["ann", "bob", "bob"]] {
        let members: Vec<_> = members.into_iter().map(name).collect();
        let refused = KeyGeneration::propose_refresh(&keys[0], &shares[0], &members);
        assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    }
}

#[test]
fn a_dealer_who_deals_a_wrong_share_is_named() {
    let keys = people(3);
    let proposal = proposal(&keys, 2);
    let dealer = keys[0].card();
    let message = deal(&keys[0], &proposal, &SigningKey::from_bytes(&[7; 32])).unwrap();
    let other = deal(&keys[0], &proposal, &SigningKey::from_bytes(&[8; 32])).unwrap();
    let (
        MessageContent::Dealt { public, commitment, shares },
        MessageContent::Dealt { shares: wrong, public: wrong_public, .. },
    ) = (message.content().clone(), other.content().clone())
    else {
        unreachable!()
    };
    let contents = [
        MessageContent::Dealt { public, commitment: commitment.clone(), shares: wrong },
        MessageContent::Dealt { public: wrong_public, commitment, shares },
    ];
    for content in contents {
        let wrong = forge(&keys[0], &message, content);
        assert_blames(take_dealt(&keys[1], &proposal, &wrong, &dealer), ErrorCode::Misbehavior, &["ann"]);
    }
    let elsewhere = super::proposal(&keys, 2);
    let refused = take_dealt(&keys[1], &elsewhere, &message, &dealer);
    assert_blames(refused, ErrorCode::WrongSession, &[]);
    let refused = take_dealt(&keys[1], &proposal, &message, &keys[2].card());
    assert_blames(refused, ErrorCode::BadSignature, &[]);
}
