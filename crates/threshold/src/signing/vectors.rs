//! The test vectors of RFC 9591, appendix E.1, through a session and through an order: participants
//! 1 and 3 of 3 sign.

use std::collections::BTreeMap;
use std::sync::Arc;

use frost_ed25519::keys::{KeyPackage, PublicKeyPackage, SigningShare, VerifyingShare};
use frost_ed25519::round1::SigningNonces;
use frost_ed25519::{Identifier, VerifyingKey};

use crate::message::{Message, MessageContent};
use crate::nonce::nonce_of;
use crate::tests::{exchange, people};
use crate::{Group, KeyShare, Nonce, ParticipantKeys, PreparedOrder, SigningOrder, SigningSession, combine};

const KEY: &str = "15d21ccd7ee42959562fc8aa63224c8851fb3ec85a3faf66040d380fb9738673";
const SHARES: [&str; 3] = [
    "929dcc590407aae7d388761cddb0c0db6f5627aea8e217f4a033f2ec83d93509",
    "a91e66e012e4364ac9aaa405fcafd370402d9859f7b6685c07eed76bf409e80d",
    "d3cb090a075eb154e82fdb4b3cb507f110040905468bb9c46da8bdea643a9a02",
];
/// Hiding and binding nonces, and their commitments.
const NONCES: [[&str; 4]; 2] = [
    [
        "ef6599dea4010581a72b3018c37c29a4341d7cab0773e8687ca74dcf14009701",
        "2baadfa0c69aa60d517ad4751de372a73f9d89cfc39026601f18458cdec12605",
        "9b116f12589591a7e23fe8048059ab10ab48e67739e7a2fb3890f61a7999478c",
        "c39b66b7dfccb122da24f13587f9a08c4347cae70046ca15169adf90ba65854d",
    ],
    [
        "80f8d9a4b8f9366e1a0b618107c907cd3ee29fa9bb40b4691cc1bde696240005",
        "2610b664a5a187b4855e87d2ff485bebdf043dc2f161fcd4854cd01dc0276404",
        "e679a2a971748ccfaabead4dbe8ac1def61275c186c79d471e1e45091ad1e687",
        "b2a942478453fabb6bd3181c56ba657413447b4136e1daea2484d396d1a516b3",
    ],
];
/// What the nonces are made of.
const RANDOMNESS: [[&str; 2]; 2] = [
    [
        "06894e04ee4aceec8619d5f6a0a180e2f47194d2ac306cba586b555e7c48d765",
        "40d6f879ff22e22409f7d808fed81f37118e7d3e4af71c0f44c60207553bcbce",
    ],
    [
        "fa5d950626782aade9e33fa781376d4888c2d1de7c37518bc248eb818ed0cdde",
        "7459a4d14ded0e365b085271be8dc6600d5b88f3978a2174297ffa32001a5afc",
    ],
];
const SIGNATURE_SHARES: [&str; 2] = [
    "60997f0142e43e8005027fe5ab7447dac00d22c2d7ddd9571a02613ba7d81c08",
    "79390e78bc59699c7af831f8f5fb478ec871a85f561a8641b5670ac4443f720f",
];
const SIGNATURE: &str = "154fb694ee7fcb37bf2381d94488c2a84b03b3352ad085feca81ad26d45852b7ecfe971ce4da95c4a95db93ac376b053897fca212ef85f99cf696bffeb178f07";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn nonces([hiding, binding, hiding_commitment, binding_commitment]: [&str; 4]) -> SigningNonces {
    let header = r#"{"version":0,"ciphersuite":"FROST-ED25519-SHA512-v1"}"#;
    serde_json::from_str(&format!(
        r#"{{"header":{header},"hiding":"{hiding}","binding":"{binding}","commitments":
            {{"header":{header},"hiding":"{hiding_commitment}","binding":"{binding_commitment}"}}}}"#
    ))
    .unwrap()
}

/// The session of a participant, who approves with given nonces.
fn session(keys: &ParticipantKeys, share: KeyShare, request: &Message, given: [&str; 4]) -> SigningSession {
    let mut session = SigningSession::open(keys, share, request).unwrap();
    let given = nonces(given);
    let commitments = vec![*given.commitments()];
    session.board.send(keys, MessageContent::Approval { made: 0, commitments }).unwrap();
    session.nonces = vec![Some(given)];
    session
}

/// The shares of the vectors, for three participants.
fn shares(keys: &[ParticipantKeys]) -> [KeyShare; 3] {
    let group = Group::new("rfc".parse().unwrap(), 2, keys.iter().map(ParticipantKeys::card).collect());
    let proposal = group.unwrap().propose(&keys[0]).unwrap();
    let key = VerifyingKey::deserialize(&bytes(KEY)).unwrap();
    let secrets = SHARES.map(|share| SigningShare::deserialize(&bytes(share)).unwrap());
    let number = |index: usize| Identifier::try_from(u16::try_from(index + 1).unwrap()).unwrap();
    let public: BTreeMap<_, VerifyingShare> =
        secrets.iter().enumerate().map(|(index, share)| (number(index), (*share).into())).collect();
    let public = PublicKeyPackage::new(public, key, Some(2));
    [0, 1, 2].map(|index| {
        let package = KeyPackage::new(number(index), secrets[index], secrets[index].into(), key, 2);
        let name = keys[index].name().clone();
        KeyShare::new(proposal.clone(), name, 0, package, public.clone()).unwrap()
    })
}

#[test]
fn the_vectors_of_the_rfc_hold_in_a_session() {
    let keys = people(3);
    let [first, _, third] = shares(&keys);
    let request = SigningSession::request(&keys[0], &first, "vectors", 1).unwrap();
    let signers = [&keys[0], &keys[2]];
    let mut sessions =
        [session(&keys[0], first, &request, NONCES[0]), session(&keys[2], third, &request, NONCES[1])];
    for _ in 0..2 {
        exchange(&mut sessions);
        for (session, keys) in sessions.iter_mut().zip(signers) {
            session.advance(keys, |_| Ok(b"test".to_vec())).unwrap();
        }
    }
    for session in &sessions {
        assert_eq!(session.signatures().unwrap()[0].to_vec(), bytes(SIGNATURE));
        for (keys, expected) in signers.into_iter().zip(SIGNATURE_SHARES) {
            let MessageContent::Share { share, .. } =
                session.board.get("share", 0, keys.name()).unwrap().content()
            else {
                panic!("the message of the kind share has one");
            };
            assert_eq!(share.serialize(), bytes(expected));
        }
    }
}

#[test]
fn the_vectors_of_the_rfc_hold_for_an_order() {
    let keys = people(3);
    let [first, _, third] = shares(&keys).map(Arc::new);
    let signers = [&first, &third];
    let nonces = [0, 1].map(|at| {
        let share = signers[at].key().signing_share().serialize();
        let secrets = RANDOMNESS[at].map(|random| nonce_of(&bytes(random).try_into().unwrap(), &share));
        assert_eq!(
            secrets.each_ref().map(|one| one.to_bytes().to_vec()),
            [0, 1].map(|n| bytes(NONCES[at][n]))
        );
        Nonce::from_secrets(signers[at], vec![secrets]).remove(0)
    });
    for (nonce, expected) in nonces.iter().zip(NONCES) {
        let commitments = nonce.commitments();
        let points = [commitments.hiding, commitments.binding].map(|point| point.compress().to_bytes());
        assert_eq!(points.map(Vec::from), [bytes(expected[2]), bytes(expected[3])]);
    }
    let commitments = nonces.iter().map(|nonce| (nonce.holder().clone(), nonce.commitments()));
    let order = SigningOrder::new(&first, b"test", commitments.collect());
    let mut parts = BTreeMap::new();
    for ((share, nonce), expected) in signers.into_iter().zip(nonces).zip(SIGNATURE_SHARES) {
        let prepared = PreparedOrder::prepare_all(share, vec![order.clone()]).remove(0).unwrap();
        let part = nonce.sign(&prepared).unwrap();
        assert_eq!(part.0.to_bytes().to_vec(), bytes(expected));
        parts.insert(share.holder().clone(), part);
    }
    let prepared = PreparedOrder::prepare_all(&first, vec![order]).remove(0).unwrap();
    let signature = combine(&first, &[(&prepared, &parts)]).remove(0).unwrap();
    assert_eq!(signature.to_vec(), bytes(SIGNATURE));
}
