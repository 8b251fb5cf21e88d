//! The peers that any program can build. Each verifies or signs the same messages. Data that a peer
//! may keep between calls is prepared beforehand. Keys are decoded as part of the work, except in
//! the group [`Group::Prepared`].

use aws_lc_rs::signature as aws;
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use ed25519_zebra as zebra;
use rayon::prelude::*;
use ring::signature as ring;

use super::{Group, Signed, signs, verifies};
use crate::suites::suite::{Make, Peer};

/// The peers of a case.
pub(super) fn of(group: Group, count: usize) -> Vec<Peer> {
    match group {
        Group::Strict => vec![
            Peer::of_package("ed25519-dalek", each(count, dalek)),
            Peer::of_package("ring", each(count, ring_decoding)),
            Peer::of_package("aws-lc-rs", each(count, aws_decoding)),
            Peer::of_package("ed25519-zebra", each(count, zebra_decoding)),
        ],
        Group::Prepared => vec![
            Peer::of_package("ed25519-dalek", dalek_decoded(count)),
            Peer::of_package("aws-lc-rs", aws_decoded(count)),
        ],
        Group::Cofactored => vec![
            Peer::of_package("ed25519-dalek", dalek_batch(count)),
            Peer::of_package("ed25519-zebra", zebra_batch(count)),
        ],
        Group::Sign => vec![
            Peer::of_package("ed25519-dalek", dalek_sign(count)),
            Peer::of_package("ring", ring_sign(count)),
            Peer::of_package("aws-lc-rs", aws_sign(count)),
        ],
        Group::Parallel => vec![
            Peer::of_package("ed25519-dalek", each_parallel(count, dalek)),
            Peer::of_package("aws-lc-rs", each_parallel(count, aws_decoding)),
        ],
    }
}

/// Verifies one signature under a key of 32 bytes.
type Verify = fn(&[u8; 32], &[u8], &[u8; 64]) -> bool;

fn dalek(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let signature = Signature::from_bytes(signature);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

fn ring_decoding(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    ring::UnparsedPublicKey::new(&ring::ED25519, key).verify(message, signature).is_ok()
}

fn aws_decoding(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    aws::UnparsedPublicKey::new(&aws::ED25519, key).verify(message, signature).is_ok()
}

fn zebra_decoding(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    zebra::VerificationKey::try_from(*key).is_ok_and(|key| key.verify(&(*signature).into(), message).is_ok())
}

/// One after the other.
fn each(count: usize, verify: Verify) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        verifies(count, move |out| {
            for (item, out) in items.iter().zip(out) {
                *out = verify(item.public_key, item.message, item.signature);
            }
        })
    })
}

/// Shared by all threads.
fn each_parallel(count: usize, verify: Verify) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        verifies(count, move |out| {
            let pairs = items.par_iter().zip(out);
            pairs.for_each(|(item, out)| *out = verify(item.public_key, item.message, item.signature));
        })
    })
}

/// One after the other, under keys that are already decoded.
fn each_decoded<K: 'static>(
    count: usize,
    decode: fn(&[u8; 32]) -> K,
    verify: fn(&K, &[u8], &[u8; 64]) -> bool,
) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let keys: Vec<_> = signed.public_keys.iter().map(decode).collect();
        verifies(count, move |out| {
            let parts = keys.iter().zip(&signed.messages).zip(&signed.signatures);
            for (((key, message), signature), out) in parts.zip(out) {
                *out = verify(key, message, signature);
            }
        })
    })
}

fn dalek_decoded(count: usize) -> Make {
    each_decoded(
        count,
        |key| VerifyingKey::from_bytes(key).expect("a key"),
        |key, message, signature| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok(),
    )
}

fn aws_decoded(count: usize) -> Make {
    each_decoded(
        count,
        |key| aws::ParsedPublicKey::new(&aws::ED25519, key).expect("a key"),
        |key, message, signature| key.verify_sig(message, signature).is_ok(),
    )
}

fn dalek_batch(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        verifies(count, move |out| {
            let keys: Result<Vec<_>, _> = signed.public_keys.iter().map(VerifyingKey::from_bytes).collect();
            let messages: Vec<_> = signed.messages.iter().map(|message| &message[..]).collect();
            let signatures: Vec<_> = signed.signatures.iter().map(Signature::from_bytes).collect();
            let valid =
                keys.is_ok_and(|keys| ed25519_dalek::verify_batch(&messages, &signatures, &keys).is_ok());
            out.fill(valid);
        })
    })
}

fn zebra_batch(count: usize) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        verifies(count, move |out| {
            let mut batch = zebra::batch::Verifier::new();
            for item in &items {
                let key = zebra::VerificationKeyBytes::from(*item.public_key);
                batch.queue((key, (*item.signature).into(), &item.message));
            }
            out.fill(batch.verify(rand::rng()).is_ok());
        })
    })
}

/// A peer that signs one message after the other, with keys that are already made.
fn sign_each<K: 'static>(count: usize, key: fn(&[u8; 32]) -> K, sign: fn(&K, &[u8]) -> [u8; 64]) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let keys: Vec<_> = signed.seeds.iter().map(key).collect();
        signs(count, move |out| {
            for ((key, message), out) in keys.iter().zip(&signed.messages).zip(out) {
                *out = sign(key, message);
            }
        })
    })
}

fn dalek_sign(count: usize) -> Make {
    sign_each(count, ed25519_dalek::SigningKey::from_bytes, |key, message| key.sign(message).to_bytes())
}

fn ring_sign(count: usize) -> Make {
    sign_each(
        count,
        |seed| ring::Ed25519KeyPair::from_seed_unchecked(seed).expect("a key"),
        |key, message| key.sign(message).as_ref().try_into().expect("64 bytes"),
    )
}

fn aws_sign(count: usize) -> Make {
    sign_each(
        count,
        |seed| aws::Ed25519KeyPair::from_seed_unchecked(seed).expect("a key"),
        |key, message| key.sign(message).as_ref().try_into().expect("64 bytes"),
    )
}
