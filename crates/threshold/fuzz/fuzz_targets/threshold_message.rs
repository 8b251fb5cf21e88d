//! Texts with messages of a group. A message that parses is written as the same line, and a session
//! takes or refuses it without a panic.
#![no_main]

use std::sync::{LazyLock, Mutex};

use bulla_threshold::{Card, Group, Handover, KeyGeneration, KeyShare, Message, ParticipantKeys, Resharing};
use libfuzzer_sys::fuzz_target;

/// A key generation, to which every message is given.
static GENERATION: LazyLock<(ParticipantKeys, Message)> = LazyLock::new(|| {
    let keys = ["ann", "bob"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
    let cards = keys.iter().map(ParticipantKeys::card).collect();
    let proposal = Group::new("releases".parse().unwrap(), 2, cards).unwrap().propose(&keys[0]).unwrap();
    let [ann, _] = keys;
    (ann, proposal)
});
static SIDE: LazyLock<Mutex<KeyGeneration>> =
    LazyLock::new(|| Mutex::new(KeyGeneration::join(&GENERATION.0, &GENERATION.1).unwrap()));

fuzz_target!(|bytes: &[u8]| {
    let _ = ParticipantKeys::from_secret_bytes(bytes);
    let _ = KeyShare::from_secret_bytes(bytes);
    let _ = KeyGeneration::from_secret_bytes(&GENERATION.0, bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(messages) = Message::parse_all(text) else { return };
    let mut handover = messages.first().map_or_else(|| Handover::of(&GENERATION.1), Handover::of);
    for message in messages {
        assert_eq!(Message::parse(&message.to_string()).as_ref(), Ok(&message));
        let _ = Card::of(&message).map(|card| card.fingerprint());
        let _ = Group::of(&message);
        let _ = KeyGeneration::join(&GENERATION.0, &message);
        let _ = SIDE.lock().unwrap().receive(&message);
        let _ = Resharing::join(&GENERATION.0, None, &message);
        if let Ok(handover) = &mut handover {
            let _ = handover.receive(&message);
        } else {
            handover = Handover::of(&message);
        }
    }
});
