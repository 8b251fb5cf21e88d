//! Where the two predicates differ, and that single verification and batches agree under each.

use crate::cases::{self, Case};
use bulla_ed25519::kernel::{self, Kernel};
use bulla_ed25519::{InvalidReason, Verdict, VerifyItem, cofactored, verify_strict};
use curve25519_dalek::Scalar;

fn cofactored_by(kernel: Kernel, items: &[VerifyItem<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Valid; items.len()];
    cofactored::verify_many_by(kernel, items, &mut out);
    out
}

/// The kernels that are fast enough for many cases.
fn kernels() -> impl Iterator<Item = Kernel> {
    kernel::available().filter(|kernel| kernel.name() != "scalar-model")
}

#[test]
fn torsion_is_where_they_differ() {
    let mut random = fastrand::Rng::with_seed(31);
    let mut differ = 0;
    for on_a in 0..8 {
        for on_r in 0..8 {
            let (a, r) = (cases::scalar(&mut random), cases::scalar(&mut random));
            let case = Case::with_torsion("", a, on_a, r, on_r, vec![on_a as u8, on_r as u8]);
            assert_eq!(cofactored::verify(&case.item()), Verdict::Valid, "{on_a} {on_r}");
            let strict = verify_strict(&case.item());
            assert_eq!(strict.is_valid(), case.dalek_strict());
            if on_a == 0 {
                assert_eq!(strict.is_valid(), on_r == 0);
            }
            differ += usize::from(!strict.is_valid());
        }
    }
    assert!(differ >= 49, "{differ}");
}

#[test]
fn strictly_valid_is_cofactored_valid_but_for_encodings_of_keys() {
    for case in cases::cases(1600, 60, 32) {
        let (strict, cofactored) = (verify_strict(&case.item()), cofactored::verify(&case.item()));
        assert!(!strict.is_valid() || cofactored.is_valid() || case.kind.starts_with("odd"), "{case:x?}");
    }
}

#[test]
fn batches_agree_with_single_verification() {
    let cases = cases::cases(1200, 60, 33);
    let items: Vec<_> = cases.iter().map(Case::item).collect();
    let expected: Vec<_> = items.iter().map(cofactored::verify).collect();
    for kernel in kernels() {
        assert_eq!(cofactored_by(kernel, &items), expected, "{kernel}");
        for size in (1..70).chain([127, 128, 200, 319, 320, 400]) {
            assert_eq!(
                cofactored_by(kernel, &items[size..2 * size]),
                expected[size..2 * size],
                "{kernel}: {size}"
            );
        }
    }
    if cfg!(feature = "scalar-model") {
        let model = Kernel::by_name("scalar-model").unwrap();
        assert_eq!(cofactored_by(model, &items[..40]), expected[..40]);
    }
}

#[test]
fn order_splits_and_neighbors_change_no_cofactored_verdict() {
    let mut cases = cases::cases(480, 60, 37);
    let mut random = fastrand::Rng::with_seed(38);
    for kernel in kernels() {
        for _ in 0..3 {
            let expected: Vec<_> = cases.iter().map(|case| cofactored::verify(&case.item())).collect();
            let items: Vec<_> = cases.iter().map(Case::item).collect();
            let mut at = 0;
            while at < items.len() {
                let end = (at + random.usize(1..160)).min(items.len());
                assert_eq!(
                    cofactored_by(kernel, &items[at..end]),
                    expected[at..end],
                    "{kernel}: {at} to {end}"
                );
                at = end;
            }
            random.shuffle(&mut cases);
        }
    }
}

#[test]
fn batches_without_a_fault_pass_and_one_fault_is_found() {
    let mut random = fastrand::Rng::with_seed(34);
    let odd = cases::odd_encodings();
    let mut cases: Vec<_> = (0..520).map(|_| cases::case(0, vec![7; 20], &odd, &mut random)).collect();
    for size in [32, 64, 150, 520] {
        let bad = random.usize(..size);
        let items: Vec<_> = cases[..size].iter().map(Case::item).collect();
        assert!(kernels().all(|kernel| cofactored_by(kernel, &items) == vec![Verdict::Valid; size]));
        cases[bad].message.push(1);
        let items: Vec<_> = cases[..size].iter().map(Case::item).collect();
        for kernel in kernels() {
            for (i, verdict) in cofactored_by(kernel, &items).into_iter().enumerate() {
                let expected =
                    if i == bad { Verdict::Invalid(InvalidReason::Mismatch) } else { Verdict::Valid };
                assert_eq!(verdict, expected, "{kernel}: {i} of {size}");
            }
        }
        cases[bad].message.pop();
    }
}

#[test]
fn many_faults_are_found_too() {
    let mut random = fastrand::Rng::with_seed(39);
    let mut cases: Vec<_> = (0..520).map(|_| cases::case(0, vec![7; 20], &[], &mut random)).collect();
    for every in [16, 5, 2, 1] {
        for case in cases.iter_mut().step_by(every) {
            case.message = vec![8; 20];
        }
        for size in [33, 64, 520] {
            let items: Vec<_> = cases[..size].iter().map(Case::item).collect();
            let expected: Vec<_> = items.iter().map(cofactored::verify).collect();
            assert!(kernels().all(|kernel| cofactored_by(kernel, &items) == expected), "{every} {size}");
        }
    }
}

#[test]
fn errors_that_cancel_without_coefficients_do_not_pass() {
    let mut random = fastrand::Rng::with_seed(35);
    let odd = cases::odd_encodings();
    let mut cases: Vec<_> = (0..64).map(|_| cases::case(0, vec![7; 20], &odd, &mut random)).collect();
    // S of one raised and of another lowered by as much: the plain sum of all equations holds.
    for (place, by) in [(3, Scalar::ONE), (40, -Scalar::ONE)] {
        let s: [u8; 32] = cases[place].signature[32..].try_into().unwrap();
        let moved = Scalar::from_canonical_bytes(s).unwrap() + by;
        cases[place].signature[32..].copy_from_slice(moved.as_bytes());
    }
    let items: Vec<_> = cases.iter().map(Case::item).collect();
    for kernel in kernels() {
        let verdicts = cofactored_by(kernel, &items);
        let bad: Vec<_> = (0..64).filter(|i| !verdicts[*i].is_valid()).collect();
        assert_eq!(bad, [3, 40], "{kernel}");
    }
}

#[cfg(feature = "dalek-batch")]
#[test]
fn the_batch_of_dalek_is_reachable_and_another_predicate() {
    /// By the function of dalek's name, which gives dalek's answer.
    fn verify_batch(items: &[VerifyItem<'_>]) -> bool {
        use {bulla_ed25519 as ours, ed25519_dalek as dalek};
        let messages: Vec<_> = items.iter().map(|item| item.message).collect();
        let signatures: Vec<_> =
            items.iter().map(|item| ours::Signature::from_bytes(item.signature)).collect();
        let key = |item: &VerifyItem<'_>| ours::VerifyingKey::from_bytes(item.public_key).unwrap();
        let keys: Vec<_> = items.iter().map(key).collect();
        let key = |item: &VerifyItem<'_>| dalek::VerifyingKey::from_bytes(item.public_key).unwrap();
        let dalek_keys: Vec<_> = items.iter().map(key).collect();
        let is_valid = ours::verify_batch(&messages, &signatures, &keys).is_ok();
        assert_eq!(is_valid, dalek::verify_batch(&messages, &signatures, &dalek_keys).is_ok());
        is_valid
    }
    let mut random = fastrand::Rng::with_seed(36);
    let odd = cases::odd_encodings();
    let honest: Vec<_> = (0..4).map(|_| cases::case(0, vec![1], &odd, &mut random)).collect();
    let items: Vec<_> = honest.iter().map(Case::item).collect();
    assert!(verify_batch(&items) && verify_batch(&[]));
    let (a, r) = (cases::scalar(&mut random), cases::scalar(&mut random));
    // R moved by a point of order two: it passes with every second coefficient, and the
    // coefficients follow from the message.
    let passed = (0..64_u8).filter(|message| {
        let torsion = Case::with_torsion("", a, 0, r, 4, vec![*message]);
        assert!(!verify_strict(&torsion.item()).is_valid());
        verify_batch(&[torsion.item()])
    });
    assert!((1..64).contains(&passed.count()));
}
