//! Messages as text, and secrets that are in none.

use base64ct::{Base64UrlUnpadded, Encoding as _};

use super::*;
use crate::{Card, MAX_MESSAGES};

#[test]
fn a_message_that_was_cut_or_edited_is_refused() {
    let keys = people(2);
    let proposal = proposal(&keys, 2);
    let mut side = KeyGeneration::join(&keys[0], &proposal).unwrap();
    let sent = find(&KeyGeneration::join(&keys[1], &proposal).unwrap(), "round1", "bob");
    let line = sent.to_string();
    assert_eq!(Message::parse(&line).unwrap(), sent);
    for end in 0..line.len() {
        assert_blames(Message::parse(&line[..end]), ErrorCode::MalformedMessage, &[]);
    }
    for at in 0..line.len() {
        let mut edited = line.clone().into_bytes();
        edited[at] = if edited[at] == b'A' { b'B' } else { b'A' };
        match Message::parse(std::str::from_utf8(&edited).unwrap()) {
            Ok(message) => {
                let code = side.receive(&message).unwrap_err().code;
                let refused = [ErrorCode::BadSignature, ErrorCode::WrongSession, ErrorCode::UnknownSender]
                    .contains(&code);
                assert!(refused, "{code:?}");
            }
            Err(error) => {
                assert!(matches!(error.code, ErrorCode::MalformedMessage | ErrorCode::MessageTooNew))
            }
        }
    }
    side.receive(&sent).unwrap();
    assert_eq!(side.receive(&sent).unwrap(), Receipt::Known);
}

#[test]
fn a_message_has_one_form() {
    let keys = people(1);
    let line = keys[0].card_message().unwrap().to_string();
    let body = line.split(':').nth(2).unwrap();
    let text = String::from_utf8(Base64UrlUnpadded::decode_vec(body).unwrap()).unwrap();
    let spaced = text.replacen(':', ": ", 1);
    let unknown = text.replacen('{', r#"{"more":1,"#, 1);
    for other in [spaced, unknown] {
        let other = line.replacen(body, &Base64UrlUnpadded::encode_string(other.as_bytes()), 1);
        assert_blames(Message::parse(&other), ErrorCode::MalformedMessage, &[]);
    }
    let other_kind = line.replacen(":card:", ":share:", 1);
    assert_blames(Message::parse(&other_kind), ErrorCode::MalformedMessage, &[]);
    let newer = line.replacen("-v1:", "-v2:", 1);
    assert_blames(Message::parse(&newer), ErrorCode::MessageTooNew, &[]);
}

#[test]
fn texts_with_messages_can_be_joined() {
    let keys = people(2);
    let cards = keys.iter().map(|one| one.card_message().unwrap().to_string());
    let text = cards.map(|line| format!("# a card\n\n{line}\r\n")).collect::<String>();
    let messages = Message::parse_all(&text).unwrap();
    assert_eq!(Card::of(&messages[1]).unwrap(), keys[1].card());
    let error = Message::parse_all(&format!("{text}what?\n")).unwrap_err();
    assert!(error.message.starts_with("line 7: "), "{error}");
    let many = format!("{}\n", messages[0]).repeat(MAX_MESSAGES + 1);
    assert_blames(Message::parse_all(&many), ErrorCode::MalformedMessage, &[]);
    // A card that another signed.
    let forged =
        Message::sign(&keys[0], messages[0].session(), MessageContent::Card(keys[1].card())).unwrap();
    assert_blames(Card::of(&forged), ErrorCode::BadSignature, &[]);
}

#[test]
fn a_message_of_another_session_is_refused() {
    let keys = people(2);
    let (here, elsewhere) = (proposal(&keys, 2), proposal(&keys, 2));
    let mut side = KeyGeneration::join(&keys[0], &here).unwrap();
    let other = KeyGeneration::join(&keys[1], &elsewhere).unwrap();
    let replayed = find(&other, "round1", "bob");
    assert_blames(side.receive(&replayed), ErrorCode::WrongSession, &[]);
    assert_blames(side.receive(&elsewhere), ErrorCode::WrongSession, &[]);
}

#[test]
fn nothing_that_is_printed_has_a_secret() {
    let keys = people(2);
    let shares = dealt(&keys, 2);
    let proposal = proposal(&keys, 2);
    let generation = KeyGeneration::join(&keys[0], &proposal).unwrap();
    let session = approved(&[&keys[0], &keys[1]], &[&shares[0], &shares[1]], 1).remove(0);
    let printed = format!("{:?} {:?} {generation:?} {session:?}", keys[0], shares[0]);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let share = shares[0].key().signing_share().serialize();
    let sent: String = session.messages().chain(generation.messages()).map(Message::to_string).collect();
    let sent: Vec<_> = sent.split(':').filter_map(|part| Base64UrlUnpadded::decode_vec(part).ok()).collect();
    let sent = String::from_utf8_lossy(&sent.concat()).into_owned();
    for secret in [hex(&share), format!("{share:?}"), "SECRET".to_owned()] {
        assert!(!printed.contains(&secret) && !sent.contains(&secret));
    }
    let kept = String::from_utf8(shares[0].to_secret_bytes().to_vec()).unwrap();
    assert!(kept.contains(&hex(&share)), "the test looks for the right form");
}

/// One message of each kind, from sessions that end well.
fn one_of_each_kind() -> Vec<Message> {
    let keys = people(3);
    let both = [&keys[0], &keys[1]];
    let shares = generate(&keys, 2);
    let proposal = shares[0].proposal().clone();
    let mut side = KeyGeneration::join(&keys[0], &proposal).unwrap();
    let mut others: Vec<_> =
        keys[1..].iter().map(|one| KeyGeneration::join(one, &proposal).unwrap()).collect();
    for _ in 0..3 {
        exchange(&mut others);
        for (other, keys) in others.iter_mut().zip(&keys[1..]) {
            for message in side.sent() {
                other.receive(&message).unwrap();
            }
            other.advance(keys).unwrap();
            for message in other.sent() {
                side.receive(&message).unwrap();
            }
        }
        side.advance(&keys[0]).unwrap();
    }
    let members = [name("ann"), name("bob")];
    let refresh = KeyGeneration::propose_refresh(&keys[0], &shares[0], &members).unwrap();
    let mut session = approved(&both, &[&shares[0], &shares[1]], 1).remove(0);
    session.advance(&keys[0], |_| Ok(b"a release".to_vec())).unwrap();
    let request = crate::Repair::request(&keys[2], &proposal, shares[0].shares_id(), &members).unwrap();
    let mut helpers =
        [0, 1].map(|index| crate::Repair::help(&keys[index], copy(&shares[index]), &request).unwrap());
    exchange(&mut helpers);
    helpers[0].advance(&keys[0]).unwrap();
    let shares: Vec<_> = shares.into_iter().map(std::sync::Arc::new).collect();
    let cards: Vec<_> = both.iter().map(|keys| keys.card()).collect();
    let to = Group::new(name("releases"), 2, cards.clone()).unwrap();
    let opening = crate::Resharing::propose(&keys[0], &shares[0], &cards, to).unwrap();
    let resharing = crate::Resharing::join(&keys[0], Some(&shares[0]), &opening).unwrap();
    let mut messages = vec![keys[0].card_message().unwrap(), refresh];
    messages.push(deal(&keys[0], &proposal, &SigningKey::from_bytes(&[7; 32])).unwrap());
    messages.extend(side.sent());
    messages.extend(session.sent());
    messages.extend(helpers[0].sent());
    messages.extend(resharing.sent());
    messages.push(crate::withdraw(&keys[0], &opening).unwrap());
    let mut seen = std::collections::BTreeSet::new();
    messages.retain(|message| seen.insert(message.kind()));
    messages
}

#[test]
fn the_seeds_of_the_fuzzer_are_messages_of_every_kind() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds.json");
    let seeds: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let kinds =
        |messages: &[Message]| messages.iter().map(Message::kind).collect::<std::collections::BTreeSet<_>>();
    let seeds: Vec<_> = seeds["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|seed| Message::parse(seed["text"].as_str().unwrap()).unwrap())
        .collect();
    let made = one_of_each_kind();
    assert_eq!(kinds(&seeds), kinds(&made));
    assert_eq!(made.len(), 16);
}
