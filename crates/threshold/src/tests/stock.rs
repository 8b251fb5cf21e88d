//! Signing in one round trip, with nonces that are ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::{MAX_READY_NONCES, Nonce, NonceStock, OrderShare};

fn shared(keys: &[ParticipantKeys], threshold: u16) -> Vec<Arc<KeyShare>> {
    dealt(keys, threshold).into_iter().map(Arc::new).collect()
}

/// An order to the first share's holder, who coordinates, and to another, with their nonces.
fn order(
    coordinator: &Arc<KeyShare>,
    stock: &mut NonceStock,
    message: &[u8],
) -> (Nonce, crate::ReadyNonce, SigningOrder) {
    let (own, ready) = (Nonce::fresh(coordinator, 1).remove(0), stock.prepare(1)[0]);
    let other = stock.share().holder().clone();
    let commitments =
        BTreeMap::from([(coordinator.holder().clone(), own.commitments()), (other, ready.commitments)]);
    (own, ready, SigningOrder::new(coordinator, message, commitments))
}

/// A part by nonces whose commitments the order may leave out.
fn sign(share: &KeyShare, nonce: Nonce, order: &SigningOrder) -> Result<OrderShare> {
    let order = prepared(share, &order.with(&nonce))?;
    nonce.sign(&order)
}

fn combine(share: &KeyShare, order: &SigningOrder, parts: &BTreeMap<Name, OrderShare>) -> Result<[u8; 64]> {
    crate::combine(share, &[(&prepared(share, order)?, parts)]).remove(0)
}

fn parts(all: [(&Arc<KeyShare>, OrderShare); 2]) -> BTreeMap<Name, OrderShare> {
    all.into_iter().map(|(share, part)| (share.holder().clone(), part)).collect()
}

#[test]
fn every_pair_signs_in_one_round_trip() {
    let keys = people(3);
    let shares = shared(&keys, 2);
    for coordinator in &shares {
        for other in shares.iter().filter(|other| other.holder() != coordinator.holder()) {
            let mut stock = NonceStock::new(Arc::clone(other));
            let (own, ready, order) = order(coordinator, &mut stock, b"a message");
            // As it goes to the other node and back.
            let sent: SigningOrder = serde_json::from_str(&serde_json::to_string(&order).unwrap()).unwrap();
            assert_eq!(sent, order);
            let sent = sent.without(other.holder());
            let from_other = sign(other, stock.take(ready.id).unwrap(), &sent).unwrap();
            let all = parts([(coordinator, sign(coordinator, own, &order).unwrap()), (other, from_other)]);
            let signature = combine(coordinator, &order, &all).unwrap();
            assert_accepted(coordinator, b"a message", &signature);
        }
    }
}

#[test]
fn nonces_sign_once_and_are_gone_after_an_error_and_in_another_process() {
    let keys = people(3);
    let shares = shared(&keys, 2);
    let mut stock = NonceStock::new(Arc::clone(&shares[1]));
    let (_, ready, mut signed) = order(&shares[0], &mut stock, b"a message");
    sign(&shares[1], stock.take(ready.id).unwrap(), &signed).unwrap();
    assert_blames(stock.take(ready.id), ErrorCode::NoncesSpent, &[]);
    // An order that replaces this participant's commitments is refused, and the nonces are gone.
    let (_, ready, other) = order(&shares[0], &mut stock, b"a message");
    signed.message = b"another message".to_vec();
    assert_blames(sign(&shares[1], stock.take(ready.id).unwrap(), &signed), ErrorCode::InvalidArgument, &[]);
    assert_blames(stock.take(ready.id), ErrorCode::NoncesSpent, &[]);
    // What the process of before had ready is unknown to the next one.
    let (_, ready, _) = order(&shares[0], &mut stock, b"a message");
    let mut restarted = NonceStock::new(Arc::clone(&shares[1]));
    let again = restarted.prepare(3);
    assert!(again.iter().all(|one| one.id != ready.id && one.commitments != ready.commitments));
    assert_blames(restarted.take(ready.id), ErrorCode::NoncesSpent, &[]);
    assert_eq!(other.signers().count(), 2);
}

#[test]
fn whoever_sends_a_wrong_part_is_named() {
    let keys = people(3);
    let shares = shared(&keys, 2);
    let mut stock = NonceStock::new(Arc::clone(&shares[1]));
    let (own, ready, order_one) = order(&shares[0], &mut stock, b"a message");
    let (_, other_ready, order_two) = order(&shares[0], &mut stock, b"another message");
    // Bob answers another order, which he replays or mixes up.
    let wrong = sign(&shares[1], stock.take(other_ready.id).unwrap(), &order_two).unwrap();
    let own = sign(&shares[0], own, &order_one).unwrap();
    let all = parts([(&shares[0], own), (&shares[1], wrong)]);
    assert_blames(combine(&shares[0], &order_one, &all), ErrorCode::Misbehavior, &["bob"]);
    // Carol's part in bob's place.
    let mut carol = NonceStock::new(Arc::clone(&shares[2]));
    let (_, carol_ready, carol_order) = order(&shares[0], &mut carol, b"a message");
    let of_carol = sign(&shares[2], carol.take(carol_ready.id).unwrap(), &carol_order).unwrap();
    let all = parts([(&shares[0], own), (&shares[1], of_carol)]);
    assert_blames(combine(&shares[0], &order_one, &all), ErrorCode::Misbehavior, &["bob"]);
    let right = sign(&shares[1], stock.take(ready.id).unwrap(), &order_one).unwrap();
    let all = parts([(&shares[0], own), (&shares[1], right)]);
    combine(&shares[0], &order_one, &all).unwrap();
    // A part is missing.
    let few = BTreeMap::from([(name("ann"), own)]);
    assert_blames(combine(&shares[0], &order_one, &few), ErrorCode::InvalidArgument, &[]);
}

#[test]
fn an_order_is_for_as_many_members_as_sign_together_and_for_the_shares_of_now() {
    let keys = people(3);
    let shares = shared(&keys, 2);
    let mut stock = NonceStock::new(Arc::clone(&shares[1]));
    let sign_changed = |stock: &mut NonceStock, change: &dyn Fn(&mut SigningOrder)| {
        let (_, ready, mut order) = order(&shares[0], stock, b"a message");
        change(&mut order);
        sign(&shares[1], stock.take(ready.id).unwrap(), &order)
    };
    let third = Nonce::fresh(&shares[2], 1)[0].commitments();
    let refused = sign_changed(&mut stock, &|order| {
        order.commitments.insert(name("carol"), third);
    });
    assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    let refused = sign_changed(&mut stock, &|order| {
        order.commitments.remove(&name("ann"));
    });
    assert_blames(refused, ErrorCode::InvalidArgument, &[]);
    let refused = sign_changed(&mut stock, &|order| {
        order.commitments.remove(&name("ann"));
        order.commitments.insert(name("mallory"), third);
    });
    assert_blames(refused, ErrorCode::UnknownSender, &[]);
    let other = dealt(&keys, 2).remove(0);
    let refused = sign_changed(&mut stock, &|order| order.shares = other.group_id());
    assert_blames(refused, ErrorCode::WrongSession, &[]);
    sign_changed(&mut stock, &|_| ()).unwrap();
}

#[test]
fn a_stock_has_a_bound_and_drops_the_oldest() {
    let keys = people(2);
    let shares = shared(&keys, 2);
    let mut stock = NonceStock::new(Arc::clone(&shares[1]));
    let oldest = stock.prepare(1)[0];
    let newest = stock.prepare(MAX_READY_NONCES);
    assert_eq!(newest.len(), MAX_READY_NONCES);
    assert_blames(stock.take(oldest.id), ErrorCode::NoncesSpent, &[]);
    stock.take(newest[0].id).unwrap();
}
