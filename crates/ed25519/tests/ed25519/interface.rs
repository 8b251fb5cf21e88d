//! What the public items promise beside the verdicts.

use crate::cases;
use bulla_ed25519::{InvalidReason, Verdict, kernel, verify_many, verify_many_into, verify_strict};

#[test]
fn single_and_many_agree() {
    let cases = cases::cases(64, 50, 11);
    let items: Vec<_> = cases.iter().map(cases::Case::item).collect();
    let many = verify_many(&items);
    for (item, verdict) in items.iter().zip(&many) {
        assert_eq!(verify_strict(item), *verdict);
    }
    let mut in_place = vec![Verdict::Valid; items.len()];
    verify_many_into(&items, &mut in_place);
    assert_eq!(in_place, many);
}

#[test]
#[should_panic(expected = "one verdict for each item")]
fn lengths_must_agree() {
    let cases = cases::cases(2, 50, 12);
    let items: Vec<_> = cases.iter().map(cases::Case::item).collect();
    verify_many_into(&items, &mut [Verdict::Valid]);
}

#[test]
fn reasons_come_in_their_order() {
    let mut case = cases::cases(1, 10, 13).remove(0);
    let verdict = |case: &cases::Case| verify_strict(&case.item());
    assert_eq!(verdict(&case), Verdict::Valid);
    case.message.push(1);
    assert_eq!(verdict(&case), Verdict::Invalid(InvalidReason::Mismatch));
    case.signature[..32].fill(0);
    assert_eq!(verdict(&case), Verdict::Invalid(InvalidReason::ROfSmallOrder));
    case.public_key.fill(0);
    assert_eq!(verdict(&case), Verdict::Invalid(InvalidReason::KeyOfSmallOrder));
    case.public_key[0] = 2;
    assert_eq!(verdict(&case), Verdict::Invalid(InvalidReason::KeyNotAPoint));
    case.signature[32..].fill(0xff);
    assert_eq!(verdict(&case), Verdict::Invalid(InvalidReason::ScalarNotCanonical));
}

/// The documentation promises that so much is enough.
#[test]
fn verification_fits_into_a_small_stack() {
    let cases = cases::cases(140, 50, 14);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        let verify = || {
            let items: Vec<_> = cases.iter().map(cases::Case::item).collect();
            for count in [1, 4, 8, 9, 140] {
                kernel.verify_many_into(&items[..count], &mut vec![Verdict::Valid; count]);
            }
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, verify).unwrap();
        });
    }
}

#[test]
fn kernels_have_names_and_unknown_ones_are_listed() {
    let names: Vec<_> = kernel::available().map(|kernel| kernel.name()).collect();
    assert!(names.contains(&"portable"));
    assert_eq!(names.contains(&"scalar-model"), cfg!(feature = "scalar-model"), "{names:?}");
    let text = kernel::Kernel::by_name("no such").unwrap_err().to_string();
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn the_best_kernel_is_chosen() {
    let forced = kernel::forced().unwrap();
    let expected = forced.or_else(|| kernel::available().next()).unwrap();
    assert_eq!(kernel::active(), expected);
    #[cfg(target_arch = "x86_64")]
    if forced.is_none() {
        let best = match () {
            () if is_x86_feature_detected!("avx512ifma") => "x86_64/avx512ifma",
            () if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") => "x86_64/avx2",
            () => "portable",
        };
        assert_eq!(kernel::active().name(), best);
        // Tests on emulated processors say what they expect.
        if let Some(expected) = bulla_kernel_testing::expected_best_kernel() {
            assert_eq!(best, expected);
        }
    }
}
