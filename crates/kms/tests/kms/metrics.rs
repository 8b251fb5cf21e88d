//! What is counted, and that nothing in it names anybody.
#![cfg(feature = "with-metrics")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulla_kms::audit_log::{Actor, AuditOperation};
use bulla_kms::batcher::{Batcher, BatcherOptions, Reason};
use bulla_kms::metrics::Metrics;
use bulla_kms::{Algorithm, Keystore, KeystoreOptions, NewKey, Unlock, VerifyItem};

fn counted() -> (Arc<Metrics>, Arc<Keystore>) {
    let metrics = Arc::new(Metrics::default());
    let options = KeystoreOptions::default().metrics(metrics.clone());
    (metrics, Arc::new(options.in_memory().unwrap()))
}

fn new_key() -> NewKey {
    NewKey::new("secrettenant".parse().unwrap(), "secretpurpose".parse().unwrap(), Algorithm::Ed25519)
        .label("secretlabel".parse().unwrap())
}

/// The value of a sample, by its name with its labels.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

#[test]
fn operations_failures_and_latencies_are_counted() {
    let (metrics, keystore) = counted();
    let key = keystore.create_key(new_key()).unwrap();
    let signature = keystore.sign(&key, b"message").unwrap();
    assert!(keystore.verify(&key, b"message", &signature.bytes).unwrap().is_valid());
    assert!(!keystore.verify(&key, b"other", &signature.bytes).unwrap().is_valid());
    let item = VerifyItem { key: &key, message: b"message", signature: &signature.bytes };
    assert!(keystore.verify_all(&[item; 5]));
    keystore.disable(key.key_id()).unwrap();
    assert!(keystore.sign(&key, b"message").is_err());
    let text = metrics.text();
    let expected = [
        (r#"kms_ops_total{op="create",alg="ed25519"}"#, 1.0),
        (r#"kms_ops_total{op="sign",alg="ed25519"}"#, 2.0),
        (r#"kms_ops_total{op="verify",alg="ed25519"}"#, 7.0),
        (r#"kms_failures_total{op="sign",kind="key_disabled"}"#, 1.0),
        (r#"kms_failures_total{op="verify",kind="invalid"}"#, 1.0),
        (r#"kms_op_latency_seconds_count{op="verify"}"#, 3.0),
        (r#"kms_op_latency_seconds_count{op="disable"}"#, 1.0),
    ];
    for (sample, expected) in expected {
        assert_eq!(value(&text, sample), Some(expected), "{sample} in:\n{text}");
    }
    assert!(text.contains(r#"kms_op_latency_seconds_bucket{le="0.000001",op="sign"}"#), "{text}");
}

#[test]
fn batches_are_counted_with_their_lengths_waits_and_reasons() {
    let (metrics, keystore) = counted();
    let key = keystore.create_key(new_key()).unwrap();
    let options = BatcherOptions::default().workers(1.try_into().unwrap());
    let batcher = Batcher::new(keystore, &options).unwrap();
    let answers: Vec<_> = (0..200_u8).map(|call| batcher.sign(key.clone(), [call])).collect();
    answers.into_iter().for_each(|answer| drop(answer.wait().unwrap()));
    let text = metrics.text();
    let batches = value(&text, "kms_batch_len_count").unwrap();
    assert_eq!(value(&text, "kms_batch_len_sum"), Some(200.0));
    assert_eq!(value(&text, "kms_batch_wait_seconds_count"), Some(200.0));
    let reasons = Reason::ALL.iter().copied().map(|reason| {
        value(&text, &format!("kms_batch_flushes_total{{reason=\"{}\"}}", reason.as_str())).unwrap_or(0.0)
    });
    assert_eq!(reasons.sum::<f64>(), batches);
}

#[test]
fn a_call_that_is_refused_is_counted() {
    let (metrics, keystore) = counted();
    let key = keystore.create_key(new_key()).unwrap();
    let batcher = Batcher::new(keystore, &BatcherOptions::default()).unwrap();
    batcher.close();
    assert!(batcher.sign(key, *b"message").wait().is_err());
    assert_eq!(value(&metrics.text(), r#"kms_failures_total{op="sign",kind="shutting_down"}"#), Some(1.0));
}

/// The whole exposition: label names and values are of fixed sets, whatever the names of tenants,
/// keys and callers.
#[test]
fn labels_are_fixed_sets_and_name_nobody() {
    let (metrics, keystore) = counted();
    let key = keystore.create_key(new_key()).unwrap();
    let who: Actor = "secretuser".parse().unwrap();
    let signature = keystore.on_behalf_of(&who).sign(&key, b"secretmessage").unwrap();
    let batcher = Batcher::new(keystore.clone(), &BatcherOptions::default()).unwrap();
    let answer = batcher.verify_on_behalf_of(&who, key.clone(), *b"secretmessage", signature.bytes);
    assert!(answer.wait().unwrap().is_valid());
    let unknown = "secrettenant/x/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v1".parse().unwrap();
    assert!(keystore.verify(&unknown, b"", b"").is_err());
    // It is of no algorithm, and a keystore in memory has no secret.
    let secret = Unlock::Passphrase("secretsecret".into());
    assert!(keystore.rekey(&secret, &secret).is_err());
    let text = metrics.text();
    assert!(!text.contains("secret") && !text.contains(&key.key_id().uuid().to_string()), "{text}");
    fn words<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        words.map(str::to_owned).collect()
    }
    let allowed = BTreeMap::from([
        ("op", words(AuditOperation::ALL.iter().map(|operation| operation.as_str()))),
        ("alg", words(Algorithm::ALL.iter().map(|algorithm| algorithm.as_str()).chain(["none"]))),
        ("reason", words(Reason::ALL.iter().map(|reason| reason.as_str()))),
        ("kind", words(["key_not_found", "not_found", "invalid"].into_iter())),
    ]);
    assert_eq!(value(&text, r#"kms_ops_total{op="reseal",alg="none"}"#), Some(1.0), "{text}");
    let mut seen = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, labels)) = line.split_once('{') else { continue };
        for label in labels.split_once('}').unwrap().0.split(',').filter(|label| !label.is_empty()) {
            let (name, value) = label.split_once('=').unwrap();
            let value = value.trim_matches('"');
            assert!(name == "le" || allowed[name].contains(value), "{line}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{text}");
}
