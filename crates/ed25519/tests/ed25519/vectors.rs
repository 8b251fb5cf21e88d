//! The shared vectors, by every kernel.

use bulla_ed25519::{Signer as _, SigningKey, Verdict, VerifyItem, cofactored, kernel, verify_strict};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/ed25519.json")).unwrap()
}

fn bytes(vector: &Value, field: &str) -> Vec<u8> {
    let text = vector[field].as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The items of the vectors of one list.
fn check(
    list: &str,
    expected: impl Fn(&Value) -> bool,
    verdicts: impl Fn(&[VerifyItem<'_>]) -> Vec<Verdict>,
) {
    let vectors = vectors();
    let vectors = vectors[list].as_array().unwrap();
    let parts: Vec<([u8; 32], Vec<u8>, [u8; 64])> = vectors
        .iter()
        .map(|vector| {
            let key = bytes(vector, "public_key").try_into().unwrap();
            (key, bytes(vector, "message"), bytes(vector, "signature").try_into().unwrap())
        })
        .collect();
    let items: Vec<_> = parts
        .iter()
        .map(|(public_key, message, signature)| VerifyItem { public_key, message, signature })
        .collect();
    for (vector, verdict) in vectors.iter().zip(verdicts(&items)) {
        assert_eq!(verdict.is_valid(), expected(vector), "{}", vector["name"]);
    }
}

#[test]
fn rfc_8032() {
    for vector in vectors()["rfc8032"].as_array().unwrap() {
        let key = SigningKey::from_bytes(&bytes(vector, "seed").try_into().unwrap());
        assert_eq!(key.as_ref().as_bytes().as_slice(), bytes(vector, "public_key"));
        assert_eq!(key.sign(&bytes(vector, "message")).to_bytes().as_slice(), bytes(vector, "signature"));
    }
    check("rfc8032", |_| true, |items| items.iter().map(verify_strict).collect());
}

#[test]
fn every_kernel_has_the_verdicts_of_the_vectors() {
    for kernel in kernel::available() {
        for list in ["rfc8032", "predicates"] {
            let expected = |vector: &Value| vector["strict"].as_bool().unwrap_or(true);
            check(list, expected, |items| {
                let mut out = vec![Verdict::Valid; items.len()];
                kernel.verify_many_into(items, &mut out);
                out
            });
        }
        check(
            "predicates",
            |vector| vector["cofactored"].as_bool().unwrap(),
            |items| {
                let mut out = vec![Verdict::Valid; items.len()];
                cofactored::verify_many_by(kernel, items, &mut out);
                out
            },
        );
    }
}
