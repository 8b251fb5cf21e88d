//! Statements of succession: who signs them, what they bind, and where they lead.

use std::num::NonZeroU32;

use bulla_kms::backend::SOFTWARE;
use bulla_kms::succession::{Succession, follow};
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyId, KeyVersionId, Keystore, NamedPublicKey, NewKey, PublicKey, Timestamp,
    Unlock,
};
use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;

/// A keystore with a key that was rotated so often.
fn rotated(algorithm: Algorithm, rotations: u32) -> (Keystore, KeyId) {
    let keystore = Keystore::in_memory().unwrap();
    let key = new_key(&keystore, algorithm, rotations);
    (keystore, key)
}

fn new_key(keystore: &Keystore, algorithm: Algorithm, rotations: u32) -> KeyId {
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm);
    let key = keystore.create_key(new).unwrap().key_id().clone();
    for _ in 0..rotations {
        keystore.rotate(&key).unwrap();
    }
    key
}

fn number(version: u32) -> NonZeroU32 {
    NonZeroU32::new(version).unwrap()
}

fn named(keystore: &Keystore, key: &KeyId, version: u32) -> NamedPublicKey {
    let id = key.version(number(version));
    NamedPublicKey { public_key: keystore.public_key(&id).unwrap(), key: id }
}

/// From which version to which each statement leads.
fn steps(statements: &[Succession]) -> Vec<(u32, u32)> {
    statements.iter().map(|one| (one.key.version(), one.successor.version())).collect()
}

/// The versions that the holder of `version` comes to.
fn reached(keystore: &Keystore, key: &KeyId, version: u32, statements: &[Succession]) -> Vec<NamedPublicKey> {
    let from = named(keystore, key, version);
    let with_name = follow(&from.public_key, Some(&from.key), statements);
    assert_eq!(follow(&from.public_key, None, statements), with_name);
    with_name
}

const FIXED: &str = "\
bulla succession v1
key: local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3
public-key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
successor: local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v4
successor-public-key: PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=
time: 2026-01-31T09:30:00.123Z
signature: WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWg==
";

#[test]
fn the_text_is_that_of_the_specification() {
    let one: Succession = FIXED.parse().unwrap();
    assert_eq!(one.to_string(), FIXED);
    assert_eq!(one.time, Timestamp::from_unix_millis(1_769_851_800_123).unwrap());
    let signed =
        [&b"bulla succession\0v1\0"[..], FIXED.split("signature: ").next().unwrap().as_bytes()].concat();
    assert_eq!(one.signed_bytes(), signed);
    assert!(!one.verify().is_valid());
    let json = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<Succession>(&json).unwrap(), one);
}

#[test]
fn texts_that_are_no_statements_are_refused_by_line() {
    for (from, to, line) in [
        ("bulla succession v1", "bulla signature v1", 1),
        ("succession v1", "succession v01", 1),
        ("key: local", "key:  local", 2),
        ("/v3\n", "\n", 2),
        ("/v3\n", "/v3\r\n", 2),
        ("local/files/ed25519", "local/files/x-wing", 2),
        ("11qYAYKx", "11qYAYK", 3),
        ("/v4\n", "/v3\n", 4),
        ("/v4\n", "/v2\n", 4),
        ("successor: local", "successor: other", 4),
        ("successor-public-key: PUAX", "successor-public-key: ecdsa-p256:PUAX", 5),
        (".123Z", "Z", 6),
        ("Wg==\n", "Wlo=\n", 7),
        ("Wg==\n", "Wg==", 7),
    ] {
        let bad = FIXED.replacen(from, to, 1);
        assert_ne!(bad, FIXED);
        let error = Succession::parse_all(bad.as_bytes()).unwrap_err();
        assert_eq!(error.code, Code::MalformedSignature, "{bad}");
        assert!(error.message.contains(&format!("line {line}: ")), "{error}");
    }
    for bad in [FIXED.repeat(2) + "\n", format!("\n{FIXED}"), String::new(), FIXED.replace('\n', "\n\n")] {
        assert_eq!(Succession::parse_all(bad.as_bytes()).unwrap_err().code, Code::MalformedSignature);
    }
    let error = Succession::parse_all(FIXED.replace("v1", "v2").as_bytes()).unwrap_err();
    assert_eq!(error.code, Code::SignatureTooNew);
    assert_eq!(Succession::parse_all(FIXED.repeat(3).as_bytes()).unwrap().len(), 3);
    let error = FIXED.repeat(2).parse::<Succession>().unwrap_err();
    assert!(error.message.contains("line 8: nothing may follow"), "{error}");
    assert!(Succession::parse_all(b"\xff\n").is_err());
}

proptest! {
    #[test]
    fn what_parses_is_the_only_text_of_itself(
        place in 0..FIXED.len(),
        byte in prop_oneof![Just(b'\n'), Just(b' '), Just(b'0'), any::<u8>()],
    ) {
        let mut text = FIXED.as_bytes().to_vec();
        text[place] = byte;
        if let Ok(statements) = Succession::parse_all(&text) {
            let again: String = statements.iter().map(ToString::to_string).collect();
            prop_assert_eq!(again.as_bytes(), &text[..]);
        }
    }
}

#[test]
fn one_rotation_and_three_lead_from_every_version_to_the_newest() {
    for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::MlDsa65Ed25519] {
        for rotations in [1, 3] {
            let (keystore, key) = rotated(algorithm, rotations);
            let statements = keystore.successions(&key).unwrap();
            assert_eq!(steps(&statements), (1..=rotations).map(|v| (v, v + 1)).collect::<Vec<_>>());
            let text: String = statements.iter().map(ToString::to_string).collect();
            assert_eq!(Succession::parse_all(text.as_bytes()).unwrap(), statements);
            let backwards: Vec<_> = statements.iter().rev().cloned().collect();
            for version in 1..=rotations + 1 {
                let later: Vec<_> =
                    (version + 1..=rotations + 1).map(|v| named(&keystore, &key, v)).collect();
                assert_eq!(reached(&keystore, &key, version, &statements), later);
                assert_eq!(reached(&keystore, &key, version, &backwards), later);
            }
        }
    }
}

#[test]
fn a_key_with_one_version_has_no_statements() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 0);
    assert_eq!(keystore.successions(&key).unwrap(), []);
}

#[test]
fn a_missing_link_ends_the_chain() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 3);
    let mut statements = keystore.successions(&key).unwrap();
    statements.remove(1);
    assert_eq!(reached(&keystore, &key, 1, &statements), [named(&keystore, &key, 2)]);
    assert_eq!(reached(&keystore, &key, 3, &statements), [named(&keystore, &key, 4)]);
}

#[test]
fn a_statement_binds_every_line() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 2);
    let statements = keystore.successions(&key).unwrap();
    let good = statements[0].clone();
    assert!(good.verify().is_valid());
    let (other_store, other) = rotated(Algorithm::Ed25519, 3);
    let stranger = named(&other_store, &other, 1).public_key;
    let third = key.version(number(3));
    let mut signature = good.signature.clone();
    signature[0] ^= 1;
    let forged = [
        Succession { successor_public_key: stranger.clone(), ..good.clone() },
        Succession { public_key: stranger, ..good.clone() },
        Succession { successor: third.clone(), ..good.clone() },
        Succession { time: Timestamp::from_unix_millis(0).unwrap(), ..good.clone() },
        Succession { signature, ..good.clone() },
        // One of a signer that is not the one it names.
        Succession { signature: statements[1].signature.clone(), ..good },
    ];
    for one in forged {
        assert!(!one.verify().is_valid(), "{one}");
        assert_eq!(reached(&keystore, &key, 1, &[one]), []);
    }
}

#[test]
fn another_keys_statement_leads_nowhere() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 1);
    let other = new_key(&keystore, Algorithm::Ed25519, 1);
    let theirs = keystore.successions(&other).unwrap();
    assert!(theirs[0].verify().is_valid());
    assert_eq!(reached(&keystore, &key, 1, &theirs), []);
    // And a trusted key under another name than the one it is known by.
    let trusted = named(&keystore, &other, 1).public_key;
    assert_eq!(follow(&trusted, Some(&key.version(number(1))), &theirs), []);
    assert_eq!(follow(&trusted, None, &theirs), [named(&keystore, &other, 2)]);
}

/// A statement about `to` that `from` signs. Any name may stand in it.
fn stated(
    (key, from): (&KeyVersionId, &SigningKey),
    (successor, to): (&KeyVersionId, &SigningKey),
) -> Succession {
    let public =
        |key: &SigningKey| PublicKey::from_bytes(Algorithm::Ed25519, key.verifying_key().as_bytes()).unwrap();
    let mut one = Succession {
        key: key.clone(),
        public_key: public(from),
        successor: successor.clone(),
        successor_public_key: public(to),
        time: Timestamp::from_unix_millis(0).unwrap(),
        signature: Vec::new(),
    };
    one.signature = from.sign(&one.signed_bytes()).to_bytes().to_vec();
    one
}

/// A stranger can sign under the name of a version that was found, and the holder of a key under
/// any name.
#[test]
fn a_link_has_both_the_name_and_the_key_that_were_found() {
    let ids = |tenant: &str| {
        let key_id: KeyId =
            format!("{tenant}/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11").parse().unwrap();
        [1, 2, 3].map(|version| key_id.version(number(version)))
    };
    let (ours, others) = (ids("local"), ids("other"));
    let [first, second, third, stranger] = [1, 2, 3, 4].map(|seed| SigningKey::from_bytes(&[seed; 32]));
    let link = stated((&ours[0], &first), (&ours[1], &second));
    let found = |next: Succession| {
        assert!(next.verify().is_valid());
        follow(&link.public_key, Some(&link.key), &[link.clone(), next]).len()
    };
    assert_eq!(found(stated((&ours[1], &second), (&ours[2], &third))), 2);
    assert_eq!(found(stated((&ours[1], &stranger), (&ours[2], &third))), 1);
    assert_eq!(found(stated((&others[1], &second), (&others[2], &third))), 1);
}

#[test]
fn revoked_and_refused_versions_neither_sign_nor_are_named() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 3);
    keystore.update(&key, None, &KeyChange::Revoke(number(2))).unwrap();
    assert_eq!(steps(&keystore.successions(&key).unwrap()), [(1, 3), (3, 4)]);
    keystore.update(&key, None, &KeyChange::MinimumVersion(number(3))).unwrap();
    assert_eq!(steps(&keystore.successions(&key).unwrap()), [(3, 4)]);
}

#[test]
fn a_version_without_its_private_key_is_named_and_passed_over() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 3);
    keystore.update(&key, None, &KeyChange::DestroyVersion(number(2))).unwrap();
    let statements = keystore.successions(&key).unwrap();
    assert_eq!(steps(&statements), [(1, 2), (1, 3), (3, 4)]);
    let reached: Vec<_> =
        reached(&keystore, &key, 1, &statements).into_iter().map(|key| key.key.version()).collect();
    assert_eq!(reached, [2, 3, 4]);
}

#[test]
fn a_disabled_key_and_one_that_signs_nothing_of_the_kind_are_refused() {
    let (keystore, key) = rotated(Algorithm::Ed25519, 1);
    keystore.update(&key, None, &KeyChange::Disable).unwrap();
    assert_eq!(keystore.successions(&key).unwrap_err().code, Code::KeyDisabled);
    let kem = new_key(&keystore, Algorithm::XWing, 1);
    assert_eq!(keystore.successions(&kem).unwrap_err().code, Code::KeyUsageMismatch);
    let new = NewKey::new("local".parse().unwrap(), "tokens".parse().unwrap(), Algorithm::Ed25519);
    let tokens: KeyVersionId = keystore.create_key(new.backend(SOFTWARE.to_owned())).unwrap();
    keystore.rotate(tokens.key_id()).unwrap();
    assert_eq!(keystore.successions(tokens.key_id()).unwrap_err().code, Code::KeyUsageMismatch);
}

#[test]
fn a_keystore_on_the_disk_makes_the_same_statements_after_it_was_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("keystore"), folder.path().join("key"));
    bulla_kms::KeyFile::create(&file).unwrap();
    let unlock = Unlock::KeyFile(file);
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let key = new_key(&keystore, Algorithm::Ed25519, 2);
    let statements = keystore.successions(&key).unwrap();
    drop(keystore);
    let keystore = Keystore::open(&path, &unlock).unwrap();
    assert_eq!(keystore.successions(&key).unwrap(), statements);
    assert_eq!(steps(&statements), [(1, 2), (2, 3)]);
}

/// What the fuzz target begins with: it comes past the parser only with statements that verify.
#[test]
fn kept_statements_lead_on() {
    let kept: serde_json::Value = serde_json::from_str(include_str!("../../fuzz/seeds.json")).unwrap();
    for case in kept["successions"].as_array().unwrap() {
        let statements = Succession::parse_all(case["text"].as_str().unwrap().as_bytes()).unwrap();
        let first = &statements[0];
        assert_eq!(follow(&first.public_key, Some(&first.key), &statements).len(), 2);
    }
}
