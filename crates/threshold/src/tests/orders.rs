//! Orders and their parts against `frost-ed25519`, and with points that no honest participant
//! sends.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64ct::{Base64, Encoding as _};
use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::{EdwardsPoint, Scalar};
use frost_ed25519::round1::{self, SigningNonces};
use frost_ed25519::{SigningPackage, aggregate, round2};
use proptest::prelude::*;
use rand_core::OsRng;
use zeroize::Zeroizing;

use super::*;
use crate::share::secret_scalar;
use crate::{Nonce, NonceCommitments, OrderShare, combine};

fn shared(keys: &[ParticipantKeys], threshold: u16) -> Vec<Arc<KeyShare>> {
    dealt(keys, threshold).into_iter().map(Arc::new).collect()
}

/// The commitments in their text, with something added to one of the points that travel.
fn moved(commitments: &NonceCommitments, which: usize, by: &EdwardsPoint) -> NonceCommitments {
    let mut eighths = eighths(commitments);
    let point = CompressedEdwardsY(eighths[which]).decompress().unwrap();
    eighths[which] = (point + by).compress().to_bytes();
    text(&eighths).parse().unwrap()
}

fn eighths(commitments: &NonceCommitments) -> [[u8; 32]; 2] {
    let bytes = Base64::decode_vec(&commitments.to_string()).unwrap();
    [bytes[..32].try_into().unwrap(), bytes[32..].try_into().unwrap()]
}

fn text(eighths: &[[u8; 32]; 2]) -> String {
    Base64::encode_string(eighths.as_flattened())
}

/// Nonces of the library, as ours.
fn ours(share: &Arc<KeyShare>, theirs: &SigningNonces) -> Nonce {
    let secrets =
        [theirs.hiding(), theirs.binding()].map(|one| secret_scalar(&Zeroizing::new(one.serialize())));
    let ours = Nonce::from_secrets(share, vec![secrets]).remove(0);
    let commitments = ours.commitments();
    let points = [commitments.hiding, commitments.binding].map(|point| point.compress().to_bytes().to_vec());
    let expected = theirs.commitments();
    assert_eq!(points, [expected.hiding(), expected.binding()].map(|one| one.serialize().unwrap()));
    ours
}

/// Participants, of six at most: as many sign as the threshold says.
fn signers() -> impl Strategy<Value = (usize, Vec<usize>)> {
    (2..=6_usize).prop_flat_map(|count| {
        let numbers: Vec<_> = (0..count).collect();
        (Just(count), prop::sample::subsequence(numbers, 2..=count))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn parts_and_signatures_are_those_of_the_library(
        (count, signers) in signers(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4),
    ) {
        let keys = people(count);
        let shares = shared(&keys, u16::try_from(signers.len()).unwrap());
        let (mut orders, mut packages, mut nonces) = (Vec::new(), Vec::new(), Vec::new());
        for message in &messages {
            let made: Vec<_> = signers
                .iter()
                .map(|at| round1::commit(shares[*at].key().signing_share(), &mut OsRng).0)
                .collect();
            let named = signers.iter().zip(&made).map(|(at, nonces)| (&shares[*at], nonces));
            let commitments = named
                .clone()
                .map(|(share, nonces)| (share.holder().clone(), ours(share, nonces).commitments()));
            orders.push(SigningOrder::new(&shares[0], message, commitments.collect()));
            let commitments = named.map(|(share, nonces)| (share.holder().clone(), *nonces.commitments()));
            let commitments = shares[0].group().by_identifier(commitments).unwrap();
            packages.push(SigningPackage::new(commitments, message));
            nonces.push(made);
        }
        let mut parts = vec![BTreeMap::new(); messages.len()];
        let mut theirs = vec![BTreeMap::new(); messages.len()];
        let mut last = Vec::new();
        for (which, at) in signers.iter().enumerate() {
            let share = &shares[*at];
            last = PreparedOrder::prepare_all(share, orders.clone());
            for (number, prepared) in last.iter().enumerate() {
                let nonces = &nonces[number][which];
                let expected = round2::sign(&packages[number], nonces, share.key()).unwrap();
                let part = ours(share, nonces).sign(prepared.as_ref().unwrap()).unwrap();
                prop_assert_eq!(part.0.as_bytes().to_vec(), expected.serialize());
                parts[number].insert(share.holder().clone(), part);
                theirs[number].insert(share.group().identifier(share.holder()).unwrap(), expected);
            }
        }
        let coordinator = &shares[*signers.last().unwrap()];
        let prepared: Vec<_> = last.into_iter().map(Result::unwrap).collect();
        let all: Vec<_> = prepared.iter().zip(&parts).collect();
        for (number, made) in combine(coordinator, &all).into_iter().enumerate() {
            let expected = aggregate(&packages[number], &theirs[number], coordinator.public()).unwrap();
            prop_assert_eq!(made.unwrap().to_vec(), expected.serialize().unwrap());
        }
    }
}

#[test]
fn whatever_travels_is_a_commitment_of_prime_order_or_refused() {
    let keys = people(2);
    let shares = shared(&keys, 2);
    let nonce = Nonce::fresh(&shares[0], 1).remove(0);
    let honest = nonce.commitments();
    assert_eq!(honest.to_string().parse::<NonceCommitments>().unwrap(), honest);
    for which in 0..2 {
        for torsion in &EIGHT_TORSION {
            let read = moved(&honest, which, torsion);
            assert!(read.hiding.is_torsion_free() && read.binding.is_torsion_free());
            assert_eq!(read, honest);
            // The neutral element commits to nothing.
            let mut small = eighths(&honest);
            small[which] = torsion.compress().to_bytes();
            let refused = text(&small).parse::<NonceCommitments>().unwrap_err();
            assert_eq!(refused.code, ErrorCode::MalformedMessage);
        }
        assert_ne!(moved(&honest, which, &EdwardsPoint::mul_base(&Scalar::ONE)), honest);
        let mut none = eighths(&honest);
        none[which] = [2; 32];
        assert!(CompressedEdwardsY(none[which]).decompress().is_none());
        text(&none).parse::<NonceCommitments>().unwrap_err();
    }
    for wrong in ["", "AAAA", &honest.to_string()[4..], &format!("{honest}AAAA"), "*"] {
        wrong.parse::<NonceCommitments>().unwrap_err();
    }
    // A part is a scalar below the order of the group.
    let order =
        [0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14];
    let mut scalar = [0; 32];
    scalar[..16].copy_from_slice(&order);
    scalar[31] = 0x10;
    Base64::encode_string(&scalar).parse::<OrderShare>().unwrap_err();
    scalar[0] -= 1;
    assert_eq!(Base64::encode_string(&scalar).parse::<OrderShare>().unwrap().0, -Scalar::ONE);
    Base64::encode_string(&scalar[1..]).parse::<OrderShare>().unwrap_err();
}

/// Orders of two signers, with the parts of both.
fn signed(shares: &[Arc<KeyShare>], count: u8) -> (Vec<PreparedOrder>, Vec<BTreeMap<Name, OrderShare>>) {
    let nonces = [0, 1].map(|at| Nonce::fresh(&shares[at], count.into()));
    let order = |number: u8| {
        let commitments =
            nonces.iter().map(|of| (of[0].holder().clone(), of[usize::from(number)].commitments()));
        SigningOrder::new(&shares[0], &[number], commitments.collect())
    };
    let orders: Vec<_> = (0..count).map(order).collect();
    let mut parts = vec![BTreeMap::new(); count.into()];
    for (share, nonces) in shares.iter().zip(nonces) {
        let prepared = PreparedOrder::prepare_all(share, orders.clone());
        for ((order, nonce), parts) in prepared.into_iter().zip(nonces).zip(&mut parts) {
            parts.insert(share.holder().clone(), nonce.sign(&order.unwrap()).unwrap());
        }
    }
    (PreparedOrder::prepare_all(&shares[0], orders).into_iter().map(Result::unwrap).collect(), parts)
}

#[test]
fn a_wrong_part_costs_a_batch_one_signature_and_is_named() {
    let keys = people(3);
    let shares = shared(&keys, 2);
    let (orders, mut parts) = signed(&shares, 20);
    let bob = shares[1].holder();
    let other = parts[4][bob];
    parts[3].insert(bob.clone(), other);
    let altered = OrderShare(parts[9][bob].0 + Scalar::ONE);
    parts[9].insert(bob.clone(), altered);
    for name in [bob, shares[0].holder()] {
        let wrong = OrderShare(-parts[11][name].0);
        parts[11].insert(name.clone(), wrong);
    }
    parts[15].remove(bob);
    let all: Vec<_> = orders.iter().zip(&parts).collect();
    for (number, made) in combine(&shares[0], &all).into_iter().enumerate() {
        match number {
            3 | 9 => assert_blames(made, ErrorCode::Misbehavior, &["bob"]),
            11 => assert_blames(made, ErrorCode::Misbehavior, &["ann", "bob"]),
            15 => assert_blames(made, ErrorCode::InvalidArgument, &[]),
            _ => assert_accepted(&shares[0], &[u8::try_from(number).unwrap()], &made.unwrap()),
        }
    }
    assert!(combine(&shares[0], &[]).is_empty());
    assert!(PreparedOrder::prepare_all(&shares[0], Vec::new()).is_empty());
}

#[test]
fn an_order_that_is_not_valid_has_its_own_error_and_the_others_are_prepared() {
    let keys = people(3);
    let shares = shared(&keys, 2);
    let nonces = [0, 1, 2].map(|at| Nonce::fresh(&shares[at], 3));
    let order = |signers: &[usize], number: usize| {
        let commitments = signers.iter().map(|at| (name(NAMES[*at]), nonces[*at][number].commitments()));
        SigningOrder::new(&shares[0], b"a message", commitments.collect())
    };
    let orders = vec![order(&[0, 1], 0), order(&[0], 1), order(&[1, 2], 1), order(&[0, 2], 2)];
    let prepared = PreparedOrder::prepare_all(&shares[0], orders);
    let [first, alone, others, last] = <[_; 4]>::try_from(prepared).unwrap();
    assert_blames(alone, ErrorCode::InvalidArgument, &[]);
    assert_blames(others, ErrorCode::InvalidArgument, &[]);
    // What was prepared for one signer is of no use for another one, nor with other nonces.
    let [of_ann, of_bob, _] = nonces.map(Vec::into_iter);
    let (first, last) = (first.unwrap(), last.unwrap());
    for (nonce, order) in of_bob.zip([&first, &last]) {
        assert_blames(nonce.sign(order), ErrorCode::InvalidArgument, &[]);
    }
    let [right, wrong, again] = <[_; 3]>::try_from(of_ann.collect::<Vec<_>>()).unwrap();
    right.sign(&first).unwrap();
    assert_blames(wrong.sign(&first), ErrorCode::InvalidArgument, &[]);
    again.sign(&last).unwrap();
}
