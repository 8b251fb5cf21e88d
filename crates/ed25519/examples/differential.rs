//! Compares the kernel in use with `verify_strict` of ed25519-dalek on any number of signatures of
//! every kind: each in a batch, alone, and among one to eight.
//!
//! Usage: `cargo run --release -p bulla-ed25519 --example differential -- COUNT [SEED [THREADS]]`.
//! Batches have 1 to 70 items, messages 0 to 300 bytes. It prints the number of accepted signatures
//! of each kind, and stops at the first verdict that differs.

#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../tests/ed25519/cases.rs"]
mod cases;

use bulla_ed25519::kernel::{self, Kernel};
use bulla_ed25519::{InvalidReason, PreparedKey, Verdict, verify_many, verify_strict};
use cases::{Case, KINDS};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The number of cases made at a time: the same number of each kind.
const BLOCK: usize = 240 * KINDS.len();

/// The number of cases, and of accepted ones, of each kind.
type Counts = [[usize; 2]; KINDS.len()];

/// Compares each case alone, and in batches of one to eight, with the verdicts by ed25519-dalek and
/// their reasons: by the kernel in use, by the portable one, and under keys that are prepared.
fn compare_few(dalek: Kernel, all: &[Case], expected: &mut Vec<Verdict>) {
    let items: Vec<_> = all.iter().map(Case::item).collect();
    expected.resize(all.len(), Verdict::Invalid(InvalidReason::Mismatch));
    dalek.verify_many_into(&items, expected);
    for ((case, item), expected) in all.iter().zip(&items).zip(&*expected) {
        assert_eq!(verify_strict(item), *expected, "alone: {case:x?}");
        let key = PreparedKey::new(&case.public_key);
        assert_eq!(key.verify(&case.message, &case.signature), *expected, "prepared: {case:x?}");
    }
    let mut portable = expected.clone();
    Kernel::by_name("portable").expect("it is everywhere").verify_many_into(&items, &mut portable);
    for ((case, portable), expected) in all.iter().zip(&portable).zip(&*expected) {
        assert_eq!(portable, expected, "portable: {case:x?}");
    }
    let (mut at, mut size) = (0, 1);
    while at < items.len() {
        let end = (at + size).min(items.len());
        assert_eq!(verify_many(&items[at..end]), expected[at..end], "{size} from {at}: {:x?}", &all[at..end]);
        (at, size) = (end, size % 8 + 1);
    }
}

/// Compares one block, and adds to `counts`.
fn compare(seed: u64, counts: &mut Counts) {
    let all = cases::cases(BLOCK, 300, seed);
    let mut dalek = Vec::new();
    compare_few(Kernel::by_name("dalek").expect("it is everywhere"), &all, &mut dalek);
    let mut sizes = fastrand::Rng::with_seed(seed);
    let mut at = 0;
    while at < all.len() {
        let batch = &all[at..(at + sizes.usize(1..=70)).min(all.len())];
        at += batch.len();
        let items: Vec<_> = batch.iter().map(Case::item).collect();
        let given = verify_many(&items).into_iter().zip(&dalek[at - batch.len()..]);
        for (case, (verdict, dalek)) in batch.iter().zip(given) {
            let expected = case.dalek_strict();
            assert_eq!(verdict, *dalek, "block {seed}: {case:x?}");
            assert_eq!(verdict.is_valid(), expected, "block {seed}: {case:x?}");
            let kind = KINDS.iter().position(|kind| *kind == case.kind).unwrap();
            counts[kind][0] += 1;
            counts[kind][1] += usize::from(expected);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("numbers"));
    let count = arguments.next().expect("usage: differential COUNT [SEED [THREADS]]") as usize;
    let seed = arguments.next().unwrap_or(1);
    let threads = arguments.next().unwrap_or(1);
    let (start, next) = (Instant::now(), AtomicUsize::new(0));
    let work = || {
        let mut counts = Counts::default();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block * BLOCK >= count {
                return counts;
            }
            compare(seed.wrapping_mul(1 << 32).wrapping_add(block as u64), &mut counts);
            if block.is_multiple_of(100) {
                eprintln!("{} of {count}, {:.0} s", block * BLOCK, start.elapsed().as_secs_f64());
            }
        }
    };
    let all: Vec<Counts> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no verdict differs")).collect()
    });
    println!("kernel {}, seed {seed}, {:.0} s", kernel::active(), start.elapsed().as_secs_f64());
    let mut total = 0;
    for (kind, name) in KINDS.iter().enumerate() {
        let sum = |which: usize| all.iter().map(|counts| counts[kind][which]).sum::<usize>();
        total += sum(0);
        println!("{name:<32} {:>9} cases {:>9} accepted", sum(0), sum(1));
    }
    println!("{total} verdicts, none differs");
}
