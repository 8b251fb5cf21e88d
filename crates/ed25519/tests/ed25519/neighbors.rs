//! The verdict on an item is that of the item alone, whatever stands beside it in a batch.

use crate::cases::{self, Case, OFF_THE_CURVE, off_the_curve};
use bulla_ed25519::kernel::{self, Kernel};
use bulla_ed25519::prehash::Prehash;
use bulla_ed25519::{
    InvalidReason, KeyCache, PrecomputedTables, PreparedItem, PreparedKey, SignItem, SigningKey, Verdict,
    VerifyItem, cofactored, verify_many, verify_many_parallel, verify_many_prepared,
};

/// An item under a key that is no point. With one of the messages 0 to 4, a multiple of the key
/// whose Z is 0 is an end or a part of the sum.
fn hostile(index: usize, message: u32) -> Case {
    let message = message.to_le_bytes().to_vec();
    Case { kind: "A that is no point", public_key: off_the_curve(index), message, signature: [0; 64] }
}

fn valid(count: usize) -> Vec<Case> {
    let mut random = fastrand::Rng::with_seed(11);
    (0..count).map(|n| cases::case(0, n.to_le_bytes().to_vec(), &[], &mut random)).collect()
}

/// Places that together are in each lane and in each group of a batch of 128.
fn places() -> impl Iterator<Item = usize> {
    (0..16).map(|group| 8 * group + (3 * group) % 8)
}

/// Batches of valid signatures, each with hostile items at one place of each lane in turn.
fn batches(mut check: impl FnMut(&[Case])) {
    let mut batch = valid(128);
    for (n, place) in places().enumerate() {
        for message in 0..5 {
            let good = std::mem::replace(&mut batch[place], hostile(n, message));
            check(&batch);
            batch[place] = good;
        }
    }
    // One hostile item in every lane.
    for (n, place) in places().enumerate().take(8) {
        batch[place] = hostile(n, 3);
    }
    check(&batch);
}

fn assert_verdicts(name: &str, batch: &[Case], verdicts: &[Verdict]) {
    for (case, verdict) in batch.iter().zip(verdicts) {
        let expected =
            if case.kind == "valid" { Verdict::Valid } else { Verdict::Invalid(InvalidReason::KeyNotAPoint) };
        assert_eq!(*verdict, expected, "{name}: {case:x?}");
    }
}

fn items(batch: &[Case]) -> Vec<VerifyItem<'_>> {
    batch.iter().map(Case::item).collect()
}

/// All kernels but the model, which is a hundred times slower and has smaller batches of its own.
fn kernels() -> impl Iterator<Item = Kernel> {
    kernel::available().filter(|kernel| kernel.name() != "scalar-model")
}

/// The model with a hostile item in each lane of each of two groups, and each message.
#[cfg(feature = "scalar-model")]
#[test]
fn a_key_that_is_no_point_spoils_no_neighbor_in_the_model() {
    let model = Kernel::by_name("scalar-model").unwrap();
    let mut batch = valid(16);
    for place in 0..batch.len() {
        for message in 0..5 {
            let good = std::mem::replace(&mut batch[place], hostile(place, message));
            let mut verdicts = vec![Verdict::Valid; batch.len()];
            model.verify_many_into(&items(&batch), &mut verdicts);
            assert_verdicts("scalar-model", &batch, &verdicts);
            cofactored::verify_many_by(model, &items(&batch), &mut verdicts);
            assert_verdicts("model, cofactored", &batch, &verdicts);
            if message == (place % 5) as u32 {
                let keys: Vec<_> = batch.iter().map(|case| case.public_key).collect();
                for tables in [PrecomputedTables::One, PrecomputedTables::Two, PrecomputedTables::Four] {
                    let mut keys = KeyCache::with_kernel(model, &keys, tables);
                    assert_verdicts("model, prepared", &batch, &keys.verify_many(&items(&batch)));
                }
            }
            batch[place] = good;
        }
    }
}

#[test]
fn a_key_that_is_no_point_spoils_no_neighbor() {
    for kernel in kernels() {
        batches(|batch| {
            let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); batch.len()];
            kernel.verify_many_into(&items(batch), &mut verdicts);
            assert_verdicts(kernel.name(), batch, &verdicts);
        });
    }
}

#[test]
fn nor_a_neighbor_on_another_thread() {
    batches(|batch| assert_verdicts("parallel", batch, &verify_many_parallel(&items(batch))));
}

#[test]
fn nor_one_under_keys_that_are_prepared() {
    for kernel in kernels() {
        for tables in [PrecomputedTables::One, PrecomputedTables::Two, PrecomputedTables::Four] {
            let mut turn = 0;
            batches(|batch| {
                turn += 1;
                // Making tables takes most of the time: a seventh of the batches has each place and
                // each message.
                if turn % 7 == 0 {
                    let keys: Vec<_> = batch.iter().map(|case| case.public_key).collect();
                    let mut keys = KeyCache::with_kernel(kernel, &keys, tables);
                    assert_verdicts(kernel.name(), batch, &keys.verify_many(&items(batch)));
                }
            });
        }
    }
}

#[test]
fn nor_one_under_keys_that_the_caller_keeps() {
    let mut turn = 0;
    batches(|batch| {
        turn += 1;
        if turn % 7 == 0 {
            let keys: Vec<_> = batch.iter().map(|case| PreparedKey::new(&case.public_key)).collect();
            let items = batch.iter().zip(&keys).map(|(case, key)| PreparedItem {
                key,
                message: &case.message,
                signature: &case.signature,
            });
            assert_verdicts("prepared", batch, &verify_many_prepared(&items.collect::<Vec<_>>()));
        }
    });
}

#[test]
fn nor_one_that_is_cofactored() {
    batches(|batch| {
        let verdicts = cofactored::verify_many(&items(batch));
        assert_verdicts("cofactored", batch, &verdicts);
    });
}

#[test]
fn nor_one_of_a_prehashed_message() {
    let hash = Prehash::Ed25519ph { context: b"" };
    let key = SigningKey::from_bytes(&[5; 32]);
    batches(|batch| {
        let mut batch = batch.to_vec();
        let messages: Vec<_> = batch.iter().map(|case| case.message.clone()).collect();
        let sign: Vec<_> = messages.iter().map(|message| SignItem { key: &key, message }).collect();
        for (case, signature) in batch.iter_mut().zip(hash.sign_many(&sign).unwrap()) {
            if case.kind == "valid" {
                (case.public_key, case.signature) = (key.verifying_key().to_bytes(), signature);
            }
        }
        assert_verdicts("prehashed", &batch, &hash.verify_many(&items(&batch)).unwrap());
    });
}

/// Neighbors of random bytes, of the kinds of the other tests, and of crafted keys: each verdict
/// is that of the item alone.
#[test]
fn arbitrary_neighbors_change_no_verdict() {
    let mut random = fastrand::Rng::with_seed(12);
    let odd = cases::odd_encodings();
    let portable = Kernel::by_name("portable").unwrap();
    for round in 0..60 {
        let batch: Vec<Case> = (0..random.usize(9..200))
            .map(|_| {
                let kind = random.usize(..2 * cases::KINDS.len());
                let mut case = cases::case(kind, vec![random.u8(..); random.usize(..9)], &odd, &mut random);
                match kind % 5 {
                    0 => random.fill(&mut case.public_key),
                    1 => random.fill(&mut case.signature),
                    _ => {}
                }
                case
            })
            .collect();
        let mut alone = vec![Verdict::Invalid(InvalidReason::Mismatch); batch.len()];
        portable.verify_many_into(&items(&batch), &mut alone);
        assert_eq!(verify_many(&items(&batch)), alone, "round {round}");
        for kernel in kernels() {
            let mut verdicts = vec![Verdict::Valid; batch.len()];
            kernel.verify_many_into(&items(&batch), &mut verdicts);
            assert_eq!(verdicts, alone, "{kernel}, round {round}");
        }
    }
}

#[test]
fn crafted_keys_are_no_points() {
    for index in 0..2 * OFF_THE_CURVE.len() {
        assert!(ed25519_dalek::VerifyingKey::from_bytes(&off_the_curve(index)).is_err());
    }
}
