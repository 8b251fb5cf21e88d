//! The repair of a lost share.

use super::*;
use crate::Repair;

fn start(keys: &[ParticipantKeys], shares: &[KeyShare]) -> [Repair; 3] {
    let proposal = shares[0].proposal();
    let helpers = [name("ann"), name("bob")];
    let request = Repair::request(&keys[2], proposal, shares[0].shares_id(), &helpers).unwrap();
    [
        Repair::help(&keys[0], copy(&shares[0]), &request).unwrap(),
        Repair::help(&keys[1], copy(&shares[1]), &request).unwrap(),
        Repair::receive_share(&keys[2], proposal, &request).unwrap(),
    ]
}

#[test]
fn a_repaired_share_is_the_lost_one() {
    let keys = people(3);
    let shares = generate(&keys, 2);
    let mut sides = start(&keys, &shares);
    for _ in 0..2 {
        exchange(&mut sides);
        sides.iter_mut().zip(&keys).for_each(|(side, keys)| side.advance(keys).unwrap());
    }
    exchange(&mut sides);
    sides[2].advance(&keys[2]).unwrap();
    let [.., carol] = sides;
    assert_eq!(carol.into_share().unwrap().to_secret_bytes(), shares[2].to_secret_bytes());
}

#[test]
fn a_helper_goes_on_after_the_process_ended_and_says_nothing_else() {
    let keys = people(3);
    let shares = dealt(&keys, 2);
    let mut sides = start(&keys, &shares);
    exchange(&mut sides);
    let request = sides[0].messages().find(|message| message.opens().is_some()).unwrap().clone();
    let kept: Vec<_> = sides[0].messages().filter(|one| **one != request).cloned().collect();
    sides[0] = Repair::resume(&keys[0], copy(&shares[0]), &request, &kept).unwrap();
    assert_eq!(sides[0].waits_for(), [name("ann"), name("bob")]);
    sides.iter_mut().zip(&keys).for_each(|(side, keys)| side.advance(keys).unwrap());
    exchange(&mut sides);
    sides[2].advance(&keys[2]).unwrap();
    assert!(sides[2].waits_for().is_empty());
    let [.., carol] = sides;
    assert_eq!(carol.into_share().unwrap().to_secret_bytes(), shares[2].to_secret_bytes());
}

#[test]
fn an_offer_is_accepted_by_the_one_for_whom_it_is() {
    let keys = people(4);
    let shares = dealt(&keys, 2);
    let (proposal, helpers) = (shares[0].proposal(), [name("ann"), name("bob")]);
    let offer = Repair::offer(&keys[0], &shares[0], &name("carol"), &helpers).unwrap();
    let request = Repair::accept(&keys[2], proposal, &offer).unwrap();
    Repair::help(&keys[1], copy(&shares[1]), &request).unwrap();
    let refused = Repair::accept(&keys[3], proposal, &offer);
    assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    let other = dealt(&keys, 2).remove(0);
    assert_blames(Repair::accept(&keys[2], other.proposal(), &offer), ErrorCode::WrongSession, &[]);
    let stranger = ParticipantKeys::generate(name("ann")).unwrap();
    let forged = forge(&stranger, &offer, offer.content().clone());
    assert_blames(Repair::accept(&keys[2], proposal, &forged), ErrorCode::BadSignature, &[]);
    // Nobody repairs a share that a refresh took away.
    let members = [name("ann"), name("bob"), name("dave")];
    let opening = KeyGeneration::propose_refresh(&keys[0], &shares[0], &members).unwrap();
    assert_eq!(opening.refreshed_members(), Some(&members[..]));
    let (kept, left): (Vec<_>, Vec<_>) =
        [0, 1, 3].map(|index| (&keys[index], &shares[index])).into_iter().unzip();
    let join = |(keys, share): (&&ParticipantKeys, &&KeyShare)| {
        KeyGeneration::join_refresh(keys, copy(share), &opening).unwrap()
    };
    let new = complete(&kept, kept.iter().zip(&left).map(join).collect()).unwrap();
    let refused = Repair::offer(&keys[0], &new[0], &name("carol"), &helpers);
    assert_blames(refused, ErrorCode::InvalidArgument, &[]);
}

#[test]
fn a_wrong_part_gives_no_share() {
    let keys = people(3);
    let shares = dealt(&keys, 2);
    let mut sides = start(&keys, &shares);
    exchange(&mut sides);
    sides.iter_mut().zip(&keys).for_each(|(side, keys)| side.advance(keys).unwrap());
    let sigma = find(&sides[1], "repair-sigma", "bob");
    let MessageContent::RepairSigma { public, epoch, .. } = sigma.content().clone() else { unreachable!() };
    let context = sides[1].context("repair-sigma", &name("bob"), &name("carol"));
    let wrong = keys[2].card().encrypt(&[1; 32].map(|_: u8| 1), &context).unwrap();
    let share = crate::message::Encrypted(wrong);
    let sent = find(&sides[0], "repair-sigma", "ann");
    sides[2].receive(&sent).unwrap();
    let content = MessageContent::RepairSigma { public, epoch, share };
    sides[2].receive(&forge(&keys[1], &sigma, content)).unwrap();
    // Nothing proves whose part was wrong.
    assert_blames(sides[2].advance(&keys[2]), ErrorCode::Misbehavior, &[]);
    let [.., carol] = sides;
    assert!(carol.into_share().is_none());
}

#[test]
fn only_enough_others_help_and_only_the_one_who_asked_is_helped() {
    let keys = people(3);
    let shares = dealt(&keys, 2);
    let (proposal, id) = (shares[0].proposal(), shares[0].shares_id());
    for helpers in [vec!["ann"], vec!["ann", "ann"], vec!["ann", "carol"]] {
        let helpers: Vec<_> = helpers.into_iter().map(name).collect();
        let refused = Repair::request(&keys[2], proposal, id, &helpers);
        assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    }
    let request = Repair::request(&keys[2], proposal, id, &[name("ann"), name("bob")]).unwrap();
    let refused = Repair::receive_share(&keys[1], proposal, &request);
    assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    let refused = Repair::help(&keys[2], copy(&shares[2]), &request);
    assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    let other = dealt(&keys, 2).remove(0);
    assert_blames(Repair::help(&keys[0], other, &request), ErrorCode::WrongSession, &[]);
}
