//! A statistical test of the time of signatures, after "Dude, is my code constant time?" (Reparaz,
//! Balasch, Verbauwhede 2017).
//!
//! Usage: `cargo run --release -p bulla-ed25519 --example dudect -- [MEASUREMENTS]`. Two classes
//! take turns at random: signatures of one fixed message under one fixed key, and as many of
//! messages and under keys that change each time; first eight in one call, and then a single one,
//! which uses another code path. If the time depends on secrets, the means differ. It prints
//! Welch's t for all times and for the times below some percentiles, and exits with 1 if one is
//! above 4.5.

use bulla_ed25519::{SignItem, SigningKey, kernel, sign_many_into};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

/// The limit of t for times with the same mean: the probability of a larger t is less than one in a
/// hundred thousand.
const THRESHOLD: f64 = 4.5;

/// Mean, and variance of the mean.
fn moments(times: &[f64]) -> (f64, f64) {
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance / n)
}

/// Welch's t of two samples.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let ((mean_a, of_a), (mean_b, of_b)) = (moments(a), moments(b));
    (mean_a - mean_b) / (of_a + of_b).sqrt()
}

fn main() -> ExitCode {
    let count = std::env::args().nth(1).map_or(100_000, |text| text.parse().expect("a number"));
    println!("kernel {}, {count} measurements each", kernel::active());
    let worst = judged("eight signatures", &measured::<8>(count)).max(judged("one", &measured::<1>(count)));
    println!("{}", if worst > THRESHOLD { "the classes differ" } else { "no difference to be seen" });
    if worst > THRESHOLD { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The times of calls for N signatures in ns: those of the fixed class, and those of the changing
/// one.
fn measured<const N: usize>(count: usize) -> [Vec<f64>; 2] {
    let mut random = fastrand::Rng::new();
    let mut messages = [[0u8; 64]; N];
    let mut out = [[0; 64]; N];
    let mut times = [Vec::with_capacity(count), Vec::with_capacity(count)];
    for _ in 0..count {
        let class = random.usize(..2);
        // Both classes do the same beforehand, and leave keys and messages in the same places:
        // otherwise the caches would distinguish them.
        let keys: [SigningKey; N] = std::array::from_fn(|_| {
            let mut fresh = [0; 32];
            random.fill(&mut fresh);
            SigningKey::from_bytes(&[[7; 32], fresh][class])
        });
        for message in &mut messages {
            let mut fresh = [0; 64];
            random.fill(&mut fresh);
            *message = [[7; 64], fresh][class];
        }
        let items: [_; N] = std::array::from_fn(|i| SignItem { key: &keys[i], message: &messages[i] });
        // The first round loads keys and messages into the caches.
        sign_many_into(black_box(&items), &mut out);
        let start = Instant::now();
        sign_many_into(black_box(&items), &mut out);
        times[class].push(start.elapsed().as_nanos() as f64);
        black_box(&out);
    }
    times
}

/// Prints t for all times and for those up to percentiles, and returns the greatest.
fn judged(what: &str, times: &[Vec<f64>; 2]) -> f64 {
    let mut sorted: Vec<f64> = times.concat();
    sorted.sort_by(f64::total_cmp);
    let mut worst: f64 = 0.0;
    for percentile in [50, 75, 90, 99, 100] {
        let limit = sorted[(sorted.len() - 1) * percentile / 100];
        let [a, b] = [0, 1].map(|class| -> Vec<f64> {
            times[class].iter().copied().filter(|time| *time <= limit).collect()
        });
        let t = welch(&a, &b);
        worst = worst.max(t.abs());
        println!("{what}, times up to the {percentile:>3} % mark ({limit:>8.0} ns): t = {t:>7.2}");
    }
    worst
}
