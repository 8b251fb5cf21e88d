//! Every kernel against `verify_strict` of ed25519-dalek.

use crate::cases::{self, Case, KINDS};
use bulla_ed25519::kernel::{self, Kernel};
use bulla_ed25519::{InvalidReason, PreparedKey, Verdict, VerifyItem};

/// The model is a hundred times slower than the kernels, and takes a part of the cases.
fn par_split(kernel: Kernel, cases: &[Case]) -> &[Case] {
    if kernel.name() == "scalar-model" { &cases[..cases.len() / 20] } else { cases }
}

fn verify(kernel: Kernel, cases: &[Case]) -> Vec<Verdict> {
    let items: Vec<VerifyItem<'_>> = cases.iter().map(Case::item).collect();
    let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
    kernel.verify_many_into(&items, &mut out);
    out
}

/// Each case in a call of its own.
fn verify_each(kernel: Kernel, cases: &[Case]) -> Vec<Verdict> {
    cases.iter().flat_map(|case| verify(kernel, std::slice::from_ref(case))).collect()
}

#[test]
fn single_signatures_have_the_same_verdicts_and_reasons() {
    let cases = cases::cases(4000, 400, 6);
    let dalek = verify(Kernel::by_name("dalek").unwrap(), &cases);
    for kernel in kernel::available() {
        let count = if kernel.name() == "scalar-model" { 3 * KINDS.len() } else { cases.len() };
        for ((case, verdict), expected) in cases.iter().zip(verify_each(kernel, &cases[..count])).zip(&dalek)
        {
            assert_eq!(verdict, *expected, "{kernel}: {case:x?}");
            assert_eq!(verdict.is_valid(), case.dalek_strict(), "{kernel}: {case:x?}");
        }
    }
}

/// Every pair of encodings of points of small order, canonical or not, and of every y from the
/// prime on.
#[test]
fn every_pair_of_odd_encodings() {
    let odd = cases::odd_encodings();
    let (mut one, mut below) = ([0; 32], cases::ORDER);
    one[0] = 1;
    below[0] -= 1;
    let mut cases = Vec::new();
    for public_key in &odd {
        for r in &odd {
            for s in [[0; 32], one, below, cases::ORDER] {
                let mut signature = [0; 64];
                signature[..32].copy_from_slice(r);
                signature[32..].copy_from_slice(&s);
                let message = b"odd".to_vec();
                cases.push(Case {
                    kind: "odd encodings of both",
                    public_key: *public_key,
                    message,
                    signature,
                });
            }
        }
    }
    let dalek = verify(Kernel::by_name("dalek").unwrap(), &cases);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        assert_eq!(verify(kernel, &cases), dalek, "{kernel}");
        for count in 1..=8 {
            let verdicts: Vec<_> = cases.chunks(count).flat_map(|cases| verify(kernel, cases)).collect();
            assert_eq!(verdicts, dalek, "{kernel}, {count} at once");
        }
        for cases in cases.chunk_by(|a, b| a.public_key == b.public_key) {
            let key = PreparedKey::with_kernel(kernel, &cases[0].public_key);
            for case in cases {
                let expected = verify(Kernel::by_name("dalek").unwrap(), std::slice::from_ref(case))[0];
                assert_eq!(key.verify(&case.message, &case.signature), expected, "{kernel}: {case:x?}");
            }
        }
    }
    for (case, verdict) in cases.iter().zip(dalek) {
        assert_eq!(verdict.is_valid(), case.dalek_strict(), "{case:x?}");
    }
}

#[test]
fn every_kernel_agrees_with_dalek_on_every_kind() {
    let cases = cases::cases(8000, 400, 1);
    let expected: Vec<bool> = cases.iter().map(Case::dalek_strict).collect();
    let dalek = verify(Kernel::by_name("dalek").unwrap(), &cases);
    for kernel in kernel::available() {
        let cases = par_split(kernel, &cases);
        let verdicts = verify(kernel, cases);
        for (i, case) in cases.iter().enumerate() {
            assert_eq!(verdicts[i].is_valid(), expected[i], "{kernel}: {case:x?}");
            assert_eq!(verdicts[i], dalek[i], "{kernel}: {case:x?}");
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
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        for (verdict, case) in verify(kernel, &cases).iter().zip(&cases) {
            let expected =
                if case.kind == "valid" { Verdict::Valid } else { Verdict::Invalid(InvalidReason::Mismatch) };
            assert_eq!(*verdict, expected, "{kernel}: {} bytes", case.message.len());
        }
    }
}

#[test]
fn every_size_of_batches() {
    let cases = cases::cases(280, 200, 3);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
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

/// Batches of 1 to 17 signatures go different ways: one kind at every place beside valid
/// signatures, and mixtures of all kinds.
#[test]
fn every_kind_at_every_place_of_small_batches() {
    const LONGEST: usize = 17;
    let mut random = fastrand::Rng::with_seed(17);
    let odd = cases::odd_encodings();
    let valid: Vec<_> =
        (0..LONGEST).map(|n| cases::case(0, vec![n as u8; 9 * n], &odd, &mut random)).collect();
    let kinds = cases::cases(4 * KINDS.len(), 300, 18);
    let dalek = Kernel::by_name("dalek").unwrap();
    let expected: Vec<_> = kinds.iter().map(|case| verify(dalek, std::slice::from_ref(case))[0]).collect();
    for (case, verdict) in kinds.iter().zip(&expected) {
        assert_eq!(verdict.is_valid(), case.dalek_strict(), "{case:x?}");
    }
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        for count in 1..=LONGEST {
            for place in 0..count {
                let mut batch = valid[..count].to_vec();
                for (case, expected) in
                    kinds.iter().zip(&expected).skip(place % 4 * KINDS.len()).take(KINDS.len())
                {
                    batch[place] = case.clone();
                    for (n, verdict) in verify(kernel, &batch).into_iter().enumerate() {
                        let expected = if n == place { *expected } else { Verdict::Valid };
                        assert_eq!(verdict, expected, "{kernel}, {n} of {count}: {case:x?}");
                    }
                }
            }
            for _ in 0..8 {
                let places: Vec<_> = (0..count).map(|_| random.usize(..kinds.len())).collect();
                let batch: Vec<_> = places.iter().map(|n| kinds[*n].clone()).collect();
                let all: Vec<_> = places.iter().map(|n| expected[*n]).collect();
                assert_eq!(verify(kernel, &batch), all, "{kernel}, {count}: {batch:x?}");
            }
        }
    }
}

#[test]
fn order_splits_and_neighbors_change_nothing() {
    let mut cases = cases::cases(400, 200, 4);
    let mut random = fastrand::Rng::with_seed(5);
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
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
