//! Every kernel against `verify_strict` of ed25519-dalek.

use crate::cases::{self, Case, KINDS};
use bulla_ed25519::kernel::{self, Kernel};
use bulla_ed25519::{Item, Reason, Verdict};

/// The model is a hundred times slower than the kernels, and takes a part of the cases.
fn share(kernel: Kernel, cases: &[Case]) -> &[Case] {
    if kernel.name() == "model" { &cases[..cases.len() / 20] } else { cases }
}

fn verify(kernel: Kernel, cases: &[Case]) -> Vec<Verdict> {
    let items: Vec<Item<'_>> = cases.iter().map(Case::item).collect();
    let mut out = vec![Verdict::Invalid(Reason::Mismatch); items.len()];
    kernel.verify_many_into(&items, &mut out);
    out
}

#[test]
fn every_kernel_agrees_with_dalek_on_every_kind() {
    let cases = cases::cases(8000, 400, 1);
    let expected: Vec<bool> = cases.iter().map(Case::dalek_strict).collect();
    let portable = verify(Kernel::by_name("portable").unwrap(), &cases);
    for kernel in kernel::available() {
        let cases = share(kernel, &cases);
        let verdicts = verify(kernel, cases);
        for (i, case) in cases.iter().enumerate() {
            assert_eq!(verdicts[i].is_valid(), expected[i], "{kernel}: {case:x?}");
            assert_eq!(verdicts[i], portable[i], "{kernel}: {case:x?}");
        }
    }
    for kind in KINDS {
        let accepted =
            cases.iter().zip(&expected).filter(|(case, valid)| case.kind == kind && **valid).count();
        let all = ["valid", "torsion on both that cancels"].contains(&kind);
        assert_eq!(
            accepted > 0,
            all || kind == "torsion on A" || kind == "torsion on both",
            "{kind}: {accepted}"
        );
    }
}

#[test]
fn every_length_of_messages() {
    let mut random = fastrand::Rng::with_seed(2);
    let odd = cases::odd_encodings();
    let mut cases = Vec::new();
    for length in (0..=300).chain([1 << 20, (1 << 20) + 17]) {
        let mut message = vec![0; length];
        random.fill(&mut message);
        cases.push(cases::case(0, message.clone(), &odd, &mut random));
        cases.push(cases::case(4, message, &odd, &mut random));
    }
    for kernel in kernel::available().filter(|kernel| kernel.name() != "model") {
        for (verdict, case) in verify(kernel, &cases).iter().zip(&cases) {
            let expected =
                if case.kind == "valid" { Verdict::Valid } else { Verdict::Invalid(Reason::Mismatch) };
            assert_eq!(*verdict, expected, "{kernel}: {} bytes", case.message.len());
        }
    }
}

#[test]
fn every_size_of_batches() {
    let cases = cases::cases(280, 200, 3);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "model") {
        let all = verify(kernel, &cases);
        for size in 1..=70 {
            let start = size * 3;
            assert_eq!(
                verify(kernel, &cases[start..start + size]),
                all[start..start + size],
                "{kernel}: {size}"
            );
        }
        assert_eq!(verify(kernel, &[]), []);
    }
}

#[test]
fn order_splits_and_neighbours_change_nothing() {
    let mut cases = cases::cases(400, 200, 4);
    let mut random = fastrand::Rng::with_seed(5);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "model") {
        for _ in 0..6 {
            let before = verify(kernel, &cases);
            let mut order: Vec<usize> = (0..cases.len()).collect();
            random.shuffle(&mut order);
            cases = order.iter().map(|i| cases[*i].clone()).collect();
            let mut at = 0;
            while at < cases.len() {
                let end = (at + random.usize(1..40)).min(cases.len());
                let part = verify(kernel, &cases[at..end]);
                for (i, verdict) in (at..end).zip(part) {
                    assert_eq!(verdict, before[order[i]], "{kernel}: {:x?}", cases[i]);
                }
                at = end;
            }
        }
    }
}
