//! Measures the gain of a second thread: `verify_many_parallel` on two threads against
//! `verify_many`, taking turns.
//!
//! Usage: `cargo run --release -p bulla-ed25519 --example threads -- [ROUNDS]`. It prints medians:
//! the time on one thread and on two, the median of the ratios, and the machine's maximum, which is
//! the result of two threads that each verify all signatures separately.

use bulla_ed25519::{Signer as _, SigningKey, Verdict, VerifyItem, verify_many, verify_many_parallel};
use std::hint::black_box;
use std::time::Instant;

/// The seconds that `run` takes.
fn seconds(run: impl FnOnce() -> Vec<Verdict>) -> f64 {
    let start = Instant::now();
    let verdicts = black_box(run());
    let taken = start.elapsed();
    assert!(verdicts.iter().all(|verdict| verdict.is_valid()));
    taken.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(101, |text| text.parse().expect("a number"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let mut random = fastrand::Rng::with_seed(1);
    let signed: Vec<_> = (0..2048)
        .map(|_| {
            let (mut seed, mut message) = ([0; 32], [0; 128]);
            random.fill(&mut seed);
            random.fill(&mut message);
            let key = SigningKey::from_bytes(&seed);
            (key.verifying_key().to_bytes(), message, key.sign(&message).to_bytes())
        })
        .collect();
    let item = |(public_key, message, signature)| VerifyItem { public_key, message, signature };
    let items: Vec<_> =
        signed.iter().map(|(key, message, signature)| item((key, &message[..], signature))).collect();
    // Run everything on a thread of the pool: passing work to it from outside must not be measured.
    pool.install(|| compare(&items, rounds));
}

fn compare(items: &[VerifyItem<'_>], rounds: usize) {
    println!("signatures  one thread, us  two threads, us  ratio  at most");
    for count in [8, 16, 32, 64, 128, 512, 2048] {
        let items = &items[..count];
        let times: Vec<_> = (0..rounds)
            .map(|_| {
                let one = seconds(|| verify_many(items));
                let two = seconds(|| verify_many_parallel(items));
                let both = || {
                    let (mut first, second) = rayon::join(|| verify_many(items), || verify_many(items));
                    first.extend(second);
                    first
                };
                [one, two, one / two, 2.0 * one / seconds(both)]
            })
            .collect();
        let [one, two, ratio, most] = [0, 1, 2, 3].map(|n| median(times.iter().map(|row| row[n]).collect()));
        println!("{count:>10} {:>15.1} {:>16.1} {ratio:>6.2} {most:>8.2}", one * 1e6, two * 1e6);
    }
}
