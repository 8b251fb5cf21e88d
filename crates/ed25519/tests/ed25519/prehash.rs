//! Prehashed signatures.

use crate::cases::{self, Case};
use bulla_ed25519::prehash::{ContextTooLong, Prehash, sign_ed25519ph_digest};
use bulla_ed25519::{
    SignItem, Signer as _, SigningKey, Verdict, VerifyItem, verify_many, verify_many_parallel,
};
use sha2::{Digest as _, Sha512};

fn keys(count: u8) -> Vec<SigningKey> {
    (0..count).map(|i| SigningKey::from_bytes(&[i; 32])).collect()
}

/// Signs and verifies `count` messages, and returns the signatures.
fn round_trip(prehash: Prehash<'_>, keys: &[SigningKey], messages: &[Vec<u8>]) -> Vec<[u8; 64]> {
    let to_sign: Vec<_> = keys.iter().zip(messages).map(|(key, message)| SignItem { key, message }).collect();
    let signatures = prehash.sign_many(&to_sign).unwrap();
    let items: Vec<_> = to_sign
        .iter()
        .zip(&signatures)
        .map(|(item, signature)| VerifyItem {
            public_key: item.key.as_ref().as_bytes(),
            message: item.message,
            signature,
        })
        .collect();
    assert!(prehash.verify_many(&items).unwrap().into_iter().all(Verdict::is_valid));
    assert!(!verify_many(&items).into_iter().any(Verdict::is_valid), "it is no plain signature");
    signatures
}

#[test]
fn ed25519ph_is_that_of_dalek() {
    let keys = keys(18);
    let messages: Vec<Vec<u8>> = (0..18).map(|i| vec![i; 10 * usize::from(i)]).collect();
    for context in [b"".as_slice(), b"a context"] {
        let signatures = round_trip(Prehash::Ed25519ph { context }, &keys, &messages);
        for (i, signature) in signatures.iter().enumerate() {
            let dalek = ed25519_dalek::SigningKey::from_bytes(&[i as u8; 32]);
            let expected =
                dalek.sign_prehashed(Sha512::new_with_prefix(&messages[i]), Some(context)).unwrap();
            assert_eq!(*signature, expected.to_bytes());
            let digest = Sha512::digest(&messages[i]).into();
            assert_eq!(sign_ed25519ph_digest(&keys[i], &digest, context), Ok(*signature));
        }
        // One alone goes another way.
        assert_eq!(round_trip(Prehash::Ed25519ph { context }, &keys[..1], &messages[..1]), signatures[..1]);
    }
}

#[test]
fn messages_of_all_lengths_are_hashed_side_by_side() {
    let keys = keys(70);
    for first in [0, 70, 140] {
        let messages: Vec<Vec<u8>> = (first..first + 70).map(|i| vec![i as u8; i * 3]).collect();
        let signatures = round_trip(Prehash::Ed25519ph { context: b"" }, &keys, &messages);
        for (i, signature) in signatures.iter().enumerate() {
            let dalek = ed25519_dalek::SigningKey::from_bytes(&[i as u8; 32]);
            let expected = dalek.sign_prehashed(Sha512::new_with_prefix(&messages[i]), None).unwrap();
            assert_eq!(*signature, expected.to_bytes(), "{} bytes", messages[i].len());
        }
    }
}

#[test]
fn blake3_signs_the_documented_bytes() {
    let (keys, messages) = (keys(9), vec![b"message".to_vec(); 9]);
    let signatures = round_trip(Prehash::Blake3 { context: b"use" }, &keys, &messages);
    let framed =
        [b"bulla ed25519 blake3\0\x03use".as_slice(), bulla_blake3::hash(b"message").as_bytes()].concat();
    assert_eq!(signatures[0], keys[0].sign(&framed).to_bytes());
}

#[test]
fn kinds_and_contexts_are_apart() {
    let (keys, messages) = (keys(2), vec![b"message".to_vec(); 2]);
    let kinds = [
        Prehash::Ed25519ph { context: b"" },
        Prehash::Ed25519ph { context: b"a" },
        Prehash::Blake3 { context: b"" },
        Prehash::Blake3 { context: b"a" },
    ];
    for signed in kinds {
        let signatures = round_trip(signed, &keys, &messages);
        let item = |i: usize| VerifyItem {
            public_key: keys[i].as_ref().as_bytes(),
            message: &messages[i],
            signature: &signatures[i],
        };
        for read in kinds {
            let verdicts = read.verify_many(&[item(0), item(1)]).unwrap();
            assert!(verdicts.into_iter().all(|verdict| verdict.is_valid() == (read == signed)));
        }
    }
}

#[test]
fn contexts_have_an_end() {
    let context = [0; 256];
    assert!(Prehash::Ed25519ph { context: &context[..255] }.sign_many(&[]).is_ok());
    assert_eq!(Prehash::Ed25519ph { context: &context }.sign_many(&[]), Err(ContextTooLong));
    assert_eq!(sign_ed25519ph_digest(&keys(1)[0], &[0; 64], &context), Err(ContextTooLong));
    assert_eq!(Prehash::Blake3 { context: &context }.verify_many(&[]), Err(ContextTooLong));
}

#[test]
fn threads_change_no_verdict() {
    let cases = cases::cases(700, 100, 41);
    let items: Vec<_> = cases.iter().map(Case::item).collect();
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for size in [0, 1, 2, 16, 17, 31, 33, 128, 129, 700] {
            let parallel = pool.install(|| verify_many_parallel(&items[..size]));
            assert_eq!(parallel, verify_many(&items[..size]), "{threads} threads, {size} items");
        }
    }
}
