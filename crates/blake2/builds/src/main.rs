//! Times `bulla-blake2` as it was built into this program. One line for each case: its name, and
//! the nanoseconds of one operation.
//!
//! `cargo xtask bench blake2-builds` builds this with many flags and compares.

use std::hint::black_box;
use std::time::Instant;

use bulla_blake2::{blake2b, blake2s, kernel};

/// The least time of a sample, in nanoseconds: the timer and cold predictors drown in it.
const SAMPLE: u128 = 20_000;

/// Samples of a case. They are taken in turns, so that a slow moment of the machine does not fall
/// on one case alone.
const ROUNDS: usize = 101;

/// How many inputs are hashed beside each other.
const MANY: usize = 64;

/// An operation on its input, and how many times it makes a sample.
struct Case {
    name: String,
    run: Box<dyn Fn(u64)>,
    iterations: u64,
    samples: Vec<f64>,
}

impl Case {
    fn new(name: String, run: impl Fn() + 'static) -> Self {
        let run = Box::new(move |iterations| (0..iterations).for_each(|_| run()));
        let mut case = Self { name, run, iterations: 1, samples: Vec::new() };
        while case.time() < SAMPLE {
            case.iterations *= 2;
        }
        case
    }

    /// Nanoseconds of a sample.
    fn time(&self) -> u128 {
        // The first operations after another case run with cold branch predictors.
        (self.run)(self.iterations.div_ceil(8));
        let start = Instant::now();
        (self.run)(self.iterations);
        start.elapsed().as_nanos()
    }
}

/// `len` bytes at the begin of a page: the alignment of data is not what is compared.
fn input(len: usize) -> &'static [u8] {
    const PAGE: usize = 4096;
    let bytes: Vec<u8> = (0..len + PAGE).map(|i| (i * 7 + i / 251) as u8).collect();
    let bytes = bytes.leak();
    let start = bytes.as_ptr().align_offset(PAGE);
    &bytes[start..start + len]
}

/// The cases of one hash function.
macro_rules! cases {
    ($cases:ident, $library:ident, $one:ident, $parallel:ident) => {
        for len in [64, 128, 1024, 16384] {
            let data = input(len);
            $cases.push(Case::new(format!("{}/{len}", stringify!($one)), move || {
                black_box($library::$one(black_box(data)));
            }));
        }
        let data = input(65536);
        $cases.push(Case::new(format!("{}/65536", stringify!($parallel)), move || {
            black_box($library::$parallel::$parallel(black_box(data)));
        }));
        for len in [128, 1024] {
            let data = input(MANY * len);
            $cases.push(Case::new(format!("{}-many/{len}", stringify!($one)), move || {
                let params = $library::Params::new();
                let jobs =
                    black_box(data).chunks(len).map(|part| $library::many::HashManyJob::new(&params, part));
                let mut jobs: Vec<_> = jobs.collect();
                $library::many::hash_many(&mut jobs);
                black_box(jobs);
            }));
        }
    };
}

fn main() {
    let mut cases = Vec::new();
    cases!(cases, blake2b, blake2b, blake2bp);
    cases!(cases, blake2s, blake2s, blake2sp);
    for _ in 0..ROUNDS {
        for case in &mut cases {
            let ns = case.time() as f64 / case.iterations as f64;
            case.samples.push(ns);
        }
    }
    println!("kernel {}", kernel::active());
    for mut case in cases {
        case.samples.sort_by(f64::total_cmp);
        // The lower quartile: what disturbs a sample only ever makes it longer.
        println!("{} {:.2}", case.name, case.samples[ROUNDS / 4]);
    }
}
