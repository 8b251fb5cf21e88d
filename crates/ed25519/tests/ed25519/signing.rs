//! Signatures, and prepared keys.

use crate::cases::{self, Case};
use bulla_ed25519::kernel::{self, Kernel};
use bulla_ed25519::{
    KeyCache, PrecomputedTables, PreparedItem, PreparedKey, SignItem, SigningKey, Verdict,
    verify_many_prepared,
};
use ed25519_dalek::Signer as _;

fn signers(count: usize) -> Vec<(ed25519_dalek::SigningKey, SigningKey)> {
    let mut random = fastrand::Rng::with_seed(21);
    let mut seed = [0; 32];
    (0..count)
        .map(|_| {
            random.fill(&mut seed);
            (ed25519_dalek::SigningKey::from_bytes(&seed), SigningKey::from_bytes(&seed))
        })
        .collect()
}

/// Signs `count` messages of `length` bytes and more, and compares with dalek.
fn compare(kernel: Kernel, count: usize, length: usize) {
    let signers = signers(count);
    let messages: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; length + i % 3]).collect();
    let items: Vec<_> =
        signers.iter().zip(&messages).map(|((_, key), message)| SignItem { key, message }).collect();
    let mut out = vec![[0; 64]; count];
    kernel.sign_many_into(&items, &mut out);
    for (((dalek, ours), message), signature) in signers.iter().zip(&messages).zip(&out) {
        assert_eq!(*signature, dalek.sign(message).to_bytes(), "{kernel}: {count} of {length}");
        assert_eq!(*ours.as_ref().as_bytes(), dalek.verifying_key().to_bytes());
        assert_eq!(*signature, ours.sign(message).to_bytes());
    }
}

#[test]
fn signatures_are_those_of_dalek() {
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        for count in (0..=17).chain([63, 64, 65, 130]) {
            compare(kernel, count, 100);
        }
        for length in 0..=300 {
            compare(kernel, 1, length);
            compare(kernel, 9, length);
        }
    }
    if cfg!(feature = "scalar-model") {
        compare(Kernel::by_name("scalar-model").unwrap(), 1, 50);
        compare(Kernel::by_name("scalar-model").unwrap(), 9, 50);
    }
}

#[test]
fn keys_do_not_show_their_secrets() {
    let text = format!("{:?}", signers(1)[0].1);
    assert!(
        text.starts_with("SigningKey { verifying_key: VerifyingKey(") && text.ends_with("), .. }"),
        "{text}"
    );
    assert!(["prefix", "scalar", "seed", "secret"].iter().all(|word| !text.contains(word)), "{text}");
}

/// Cases of every kind, and more signatures under some of their keys.
fn repeated() -> Vec<Case> {
    let mut cases = cases::cases(320, 100, 22);
    let again: Vec<_> = cases.iter().take(64).cloned().collect();
    for _ in 0..3 {
        cases.extend(again.iter().cloned());
    }
    fastrand::Rng::with_seed(23).shuffle(&mut cases);
    cases
}

#[test]
fn prepared_keys_change_no_verdict() {
    let cases = repeated();
    let items: Vec<_> = cases.iter().map(Case::item).collect();
    let keys: Vec<_> = cases.iter().step_by(2).map(|case| case.public_key).collect();
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        let mut expected = vec![Verdict::Valid; items.len()];
        kernel.verify_many_into(&items, &mut expected);
        for tables in [PrecomputedTables::One, PrecomputedTables::Two, PrecomputedTables::Four] {
            let mut prepared = KeyCache::with_kernel(kernel, &keys, tables);
            assert_eq!(prepared.verify_many(&items), expected, "{kernel}, {tables:?}");
        }
    }
}

#[test]
fn keys_that_are_used_much_get_more_tables_while_there_is_room() {
    assert_eq!(PrecomputedTables::for_use(1, 1), PrecomputedTables::One);
    assert_eq!(PrecomputedTables::for_use(1, 4), PrecomputedTables::Two);
    assert_eq!(PrecomputedTables::for_use(64, 12), PrecomputedTables::Four);
    for keys in [1 << 20, usize::MAX] {
        assert_eq!(PrecomputedTables::for_use(keys, usize::MAX), PrecomputedTables::One);
    }
}

#[test]
fn a_prepared_key_alone_changes_no_verdict() {
    let cases = cases::cases(640, 100, 26);
    for kernel in kernel::available() {
        let cases = if kernel.name() == "scalar-model" { &cases[..32] } else { &cases[..] };
        for case in cases {
            let mut expected = [Verdict::Valid];
            kernel.verify_many_into(&[case.item()], &mut expected);
            let key = PreparedKey::with_kernel(kernel, &case.public_key);
            assert_eq!(key.verify(&case.message, &case.signature), expected[0], "{kernel}: {case:x?}");
        }
    }
}

#[test]
fn every_size_of_batches_under_prepared_keys() {
    let cases = cases::cases(80, 100, 27);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        let keys: Vec<_> =
            cases.iter().map(|case| PreparedKey::with_kernel(kernel, &case.public_key)).collect();
        let items = keys.iter().zip(&cases).map(|(key, case)| PreparedItem {
            key,
            message: &case.message,
            signature: &case.signature,
        });
        let items: Vec<_> = items.collect();
        let expected: Vec<_> = cases.iter().map(|case| bulla_ed25519::verify_strict(&case.item())).collect();
        for size in 0..=items.len() {
            assert_eq!(verify_many_prepared(&items[..size]), expected[..size], "{kernel}: {size}");
        }
    }
}

#[test]
fn order_and_splits_change_no_verdict_under_prepared_keys() {
    let mut cases = repeated();
    let keys: Vec<_> = cases.iter().step_by(2).map(|case| case.public_key).collect();
    let mut random = fastrand::Rng::with_seed(25);
    let mut prepared = KeyCache::new(&keys, PrecomputedTables::Two);
    for _ in 0..3 {
        let items: Vec<_> = cases.iter().map(Case::item).collect();
        let mut at = 0;
        while at < items.len() {
            let end = (at + random.usize(1..70)).min(items.len());
            let expected: Vec<_> = items[at..end].iter().map(bulla_ed25519::verify_strict).collect();
            assert_eq!(prepared.verify_many(&items[at..end]), expected, "{at} to {end}");
            at = end;
        }
        random.shuffle(&mut cases);
    }
}

#[test]
fn a_learning_cache_is_bounded_and_changes_no_verdict() {
    let cases = repeated();
    let items: Vec<_> = cases.iter().map(Case::item).collect();
    let expected = bulla_ed25519::verify_many(&items);
    let mut keys =
        KeyCache::new(&[], PrecomputedTables::Two).with_capacity_bytes(10 * PrecomputedTables::Two.bytes());
    assert!(keys.is_empty());
    for _ in 0..4 {
        for (items, expected) in items.chunks(50).zip(expected.chunks(50)) {
            assert_eq!(keys.verify_many(items), expected);
            assert!(keys.len() <= 10);
        }
    }
    assert_eq!(keys.len(), 10);
}

#[test]
fn hot_keys_are_learnt_and_pinned_ones_stay() {
    let cases = cases::cases(64, 10, 24);
    let mut keys = KeyCache::new(&[cases[0].public_key], PrecomputedTables::One)
        .with_capacity_bytes(2 * PrecomputedTables::One.bytes());
    for case in &cases[16..20] {
        for times in 1..=3 {
            assert!(!keys.contains(&case.public_key), "{times}");
            let _ = keys.verify_many(&[case.item()]);
        }
        assert!(keys.contains(&case.public_key));
        assert!(keys.contains(&cases[0].public_key) && keys.len() <= 3);
    }
}
