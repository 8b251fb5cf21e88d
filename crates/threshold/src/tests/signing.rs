//! Signing, with participants who misbehave, and nonces that are used once.

use frost_ed25519::round2::SignatureShare;
use proptest::prelude::*;

use super::*;
use crate::Waiting;

fn job(_: &[[u8; 64]]) -> Result<Vec<u8>> {
    Ok(b"a release".to_vec())
}

fn pair(keys: &[ParticipantKeys]) -> [&ParticipantKeys; 2] {
    [&keys[0], &keys[1]]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_participants_of_the_threshold_sign_anything(
        count in 2_usize..=6,
        threshold in 2_u16..=6,
        order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle(),
        message in prop::collection::vec(any::<u8>(), 0..200),
        steps in 1_u8..=3,
    ) {
        let threshold = threshold.min(u16::try_from(count).unwrap());
        let keys = people(count);
        let shares = dealt(&keys, threshold);
        let chosen: Vec<_> =
            order.into_iter().filter(|index| *index < count).take(usize::from(threshold)).collect();
        let some: Vec<_> = chosen.iter().map(|index| &keys[*index]).collect();
        let of_some: Vec<_> = chosen.iter().map(|index| &shares[*index]).collect();
        let signatures = sign(&some, &of_some, &message, steps);
        for (step, signature) in signatures.iter().enumerate() {
            assert_accepted(&shares[0], &step_message(&message, &signatures[..step]), signature);
        }
    }
}

#[test]
fn too_few_approvals_sign_nothing() {
    let keys = people(3);
    let shares = dealt(&keys, 3);
    let mut sessions = approved(&pair(&keys), &[&shares[0], &shares[1]], 1);
    for (session, keys) in sessions.iter_mut().zip(&keys) {
        session.advance(keys, job).unwrap();
        assert_eq!(session.waits_for(), Waiting::Approvals(1));
        assert!(session.signatures().is_none());
        assert!(session.messages().all(|message| message.kind() != "share"));
    }
}

/// A share of bob that is not the one he should send.
fn with_share(session: &SigningSession, keys: &ParticipantKeys, share: SignatureShare) -> Message {
    let sent = find(session, "share", keys.name().as_str());
    let MessageContent::Share { step, signers, message, .. } = sent.content().clone() else { unreachable!() };
    forge(keys, &sent, MessageContent::Share { step, signers, message, share })
}

#[test]
fn all_who_send_a_wrong_signature_share_are_named() {
    let keys = people(3);
    let shares = dealt(&keys, 3);
    let all: Vec<_> = keys.iter().collect();
    let mut sessions = approved(&all, &shares.iter().collect::<Vec<_>>(), 1);
    for (session, keys) in sessions.iter_mut().zip(&keys) {
        session.advance(keys, job).unwrap();
    }
    let wrong = SignatureShare::deserialize(&[1; 32].map(|_: u8| 1)).unwrap();
    for index in [1, 2] {
        let wrong = with_share(&sessions[index], &keys[index], wrong);
        sessions[0].receive(&wrong).unwrap();
    }
    assert_blames(sessions[0].advance(&keys[0], job), ErrorCode::Misbehavior, &["bob", "carol"]);
    assert!(sessions[0].signatures().is_none());
}

#[test]
fn commitments_that_are_not_the_senders_are_named() {
    let keys = people(2);
    let shares = dealt(&keys, 2);
    let mut sessions = approved(&pair(&keys), &[&shares[0], &shares[1]], 1);
    // Bob approves with the commitments of another session, whose nonces he does not use.
    let other = approved(&pair(&keys), &[&shares[0], &shares[1]], 1);
    let MessageContent::Approval { commitments, .. } = find(&other[1], "approval", "bob").content().clone()
    else {
        unreachable!()
    };
    let own = find(&sessions[1], "approval", "bob");
    let wrong = forge(&keys[1], &own, MessageContent::Approval { made: u64::MAX, commitments });
    let mut bob = sessions.remove(1);
    sessions[0].receive(&wrong).unwrap();
    sessions[0].advance(&keys[0], job).unwrap();
    bob.advance(&keys[1], job).unwrap();
    // His share says that it is for the other approval, so nobody takes it for this one.
    sessions[0].receive(&find(&bob, "share", "bob")).unwrap();
    sessions[0].advance(&keys[0], job).unwrap();
    assert_eq!(sessions[0].waits_for(), Waiting::Elsewhere(vec![name("bob")]));
    // If he claims now that it is for this one, he has said two different things.
    let MessageContent::Share { step, message, share, .. } = find(&bob, "share", "bob").content().clone()
    else {
        unreachable!()
    };
    let MessageContent::Share { signers, .. } = find(&sessions[0], "share", "ann").content().clone() else {
        unreachable!()
    };
    let claimed = forge(&keys[1], &own, MessageContent::Share { step, signers, message, share });
    let refused = sessions[0].receive(&claimed);
    assert_blames(refused, ErrorCode::Equivocation, &["bob"]);
}

#[test]
fn a_share_of_another_message_is_named() {
    let keys = people(2);
    let shares = dealt(&keys, 2);
    let mut sessions = approved(&pair(&keys), &[&shares[0], &shares[1]], 1);
    sessions[1].advance(&keys[1], |_| Ok(b"another release".to_vec())).unwrap();
    let share = find(&sessions[1], "share", "bob");
    sessions[0].receive(&share).unwrap();
    assert_blames(sessions[0].advance(&keys[0], job), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn another_number_of_commitments_is_named() {
    let keys = people(2);
    let shares = dealt(&keys, 2);
    let mut sessions = approved(&pair(&keys), &[&shares[0], &shares[1]], 2);
    let own = find(&sessions[1], "approval", "bob");
    let fewer = forge(&keys[1], &own, MessageContent::Approval { made: u64::MAX, commitments: Vec::new() });
    assert_blames(sessions[0].receive(&fewer), ErrorCode::Misbehavior, &["bob"]);
}

#[test]
fn nonces_sign_once_whatever_others_ask_for() {
    let keys = people(3);
    let shares = dealt(&keys, 2);
    let all: Vec<_> = keys.iter().collect();
    let mut sessions = approved(&all, &shares.iter().collect::<Vec<_>>(), 1);
    assert_blames(sessions[0].approve(&keys[0]), ErrorCode::NoncesSpent, &[]);
    sessions[0].advance(&keys[0], job).unwrap();
    let first = find(&sessions[0], "share", "ann");
    let MessageContent::Share { signers, .. } = first.content().clone() else { unreachable!() };
    assert!(signers.contains_key(&name("bob")) && !signers.contains_key(&name("carol")));
    // Carol asks ann to sign with her, and bob has approved again.
    let approval = |index: usize| find(&sessions[index], "approval", NAMES[index]).digest();
    let with_carol = [(name("ann"), approval(0)), (name("carol"), approval(2))].into_iter().collect();
    let MessageContent::Share { message, share, .. } = first.content().clone() else { unreachable!() };
    let asked =
        forge(&keys[2], &first, MessageContent::Share { step: 0, signers: with_carol, message, share });
    sessions[0].receive(&asked).unwrap();
    let request = sessions[1].messages().next().unwrap().clone();
    let mut bob = SigningSession::open(&keys[1], copy(&shares[1]), &request).unwrap();
    bob.approve(&keys[1]).unwrap();
    let again = find(&bob, "approval", "bob");
    if again != find(&sessions[0], "approval", "bob") {
        assert_blames(sessions[0].receive(&again), ErrorCode::Equivocation, &["bob"]);
    }
    // Nor does another message of the own program get a second share.
    let other = sessions[0].advance(&keys[0], |_| Ok(b"another release".to_vec()));
    assert_blames(other, ErrorCode::Misbehavior, &["ann"]);
    sessions[0].advance(&keys[0], job).unwrap();
    let sent = sessions[0].sent();
    let own: Vec<_> =
        sent.iter().filter(|one| one.kind() == "share" && one.sender().as_str() == "ann").collect();
    assert_eq!(own, [&first]);
}

#[test]
fn whoever_lost_the_nonces_approves_again_and_the_others_go_on() {
    let keys = people(2);
    let shares = dealt(&keys, 2);
    let request = SigningSession::request(&keys[0], &shares[0], "a job", 1).unwrap();
    let open = |index: usize| {
        let mut session = SigningSession::open(&keys[index], copy(&shares[index]), &request).unwrap();
        session.approve(&keys[index]).unwrap();
        session
    };
    let mut ann = open(0);
    let lost = open(1);
    let old = find(&lost, "approval", "bob");
    drop(lost);
    ann.receive(&old).unwrap();
    let MessageContent::Approval { made: old_time, .. } = *old.content() else { unreachable!() };
    // The clock may not have moved since.
    let (mut bob, new) = loop {
        let bob = open(1);
        let new = find(&bob, "approval", "bob");
        match new.content() {
            MessageContent::Approval { made, .. } if *made > old_time => break (bob, new),
            _ => {}
        }
    };
    assert_ne!(old, new);
    assert_eq!(ann.receive(&new).unwrap(), Receipt::Added);
    // The old one comes again, from somebody's file.
    assert_eq!(ann.receive(&old).unwrap(), Receipt::Known);
    assert_eq!(bob.receive(&old).unwrap(), Receipt::Known);
    for _ in 0..2 {
        for message in ann.sent() {
            bob.receive(&message).unwrap();
        }
        bob.advance(&keys[1], job).unwrap();
        for message in bob.sent() {
            ann.receive(&message).unwrap();
        }
        ann.advance(&keys[0], job).unwrap();
    }
    assert_accepted(&shares[0], b"a release", &ann.signatures().unwrap()[0]);
    assert_eq!(ann.waits_for(), Waiting::Nothing);
}

#[test]
fn a_request_is_for_one_group_and_comes_from_a_member() {
    let keys = people(3);
    let (here, elsewhere) = (dealt(&keys, 2), dealt(&keys, 2));
    let request = SigningSession::request(&keys[0], &elsewhere[0], "a job", 1).unwrap();
    let refused = SigningSession::open(&keys[1], copy(&here[1]), &request);
    assert_blames(refused, ErrorCode::WrongSession, &[]);
    let stranger = ParticipantKeys::generate(name("mallory")).unwrap();
    let request = SigningSession::request(&stranger, &here[0], "a job", 1).unwrap();
    let refused = SigningSession::open(&keys[1], copy(&here[1]), &request);
    assert_blames(refused, ErrorCode::UnknownSender, &[]);
    // Approvals of one session are worth nothing in another.
    let replayed = find(&approved(&pair(&keys), &[&here[0], &here[1]], 1)[1], "approval", "bob");
    let request = SigningSession::request(&keys[0], &here[0], "a job", 1).unwrap();
    let mut session = SigningSession::open(&keys[0], copy(&here[0]), &request).unwrap();
    assert_blames(session.receive(&replayed), ErrorCode::WrongSession, &[]);
    for (text, steps) in [("x".repeat(crate::MAX_JOB_LEN + 1), 1), (String::new(), 0), (String::new(), 5)] {
        let refused = SigningSession::request(&keys[0], &here[0], &text, steps);
        assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    }
}
