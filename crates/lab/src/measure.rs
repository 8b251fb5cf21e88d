//! Interleaved measurement: contenders take turns, in random order, on the same data.
//!
//! What we know about this kind of timing, and what this module does about it:
//! - A shared machine drifts. So contenders are compared within a round, and the median is taken of
//!   the ratios.
//! - Order matters, because each contender finds the caches of the one before. So each round draws
//!   a new order.
//! - Alignment matters. So each round draws a new offset of the data, the same for all.
//! - The position of the stack matters. So each round draws a new one, the same for all.
//! - Another thread of the same core slows some code down more than other code. So a round counts
//!   only if the core was ours: [`crate::core_probe`].
//! - The other addresses of a process depend on luck. So the caller launches the whole process
//!   several times.
//! - A call through a table or a loop around a closure is not free. So the loop is inside [`Op`],
//!   where the operation is inlined as in a user's code.

use std::{
    hint::{black_box, spin_loop},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use crate::core_probe::Quiet;

/// The data of one round.
#[derive(Debug)]
pub struct Input<'a> {
    /// All bytes.
    pub whole: &'a [u8],
    /// The same bytes as separate inputs, for cases with many inputs; otherwise empty.
    pub parts: Vec<&'a [u8]>,
}

/// Something that can be timed, and whose result can be compared.
pub trait Subject {
    /// Runs the operation `iterations` times on `input`.
    fn time(&mut self, input: &Input<'_>, iterations: u64) -> Duration;
    /// Runs the operation once and returns its result.
    fn output(&mut self, input: &Input<'_>) -> Vec<u8>;
}

/// An operation, as a closure from the input to `result`, and the conversion of `result` to bytes.
pub struct Op<R, F, B> {
    /// The memory to which the operation writes its result, so that no result can be optimized
    /// away.
    pub result: R,
    /// The operation.
    pub run: F,
    /// The bytes that contenders must agree on.
    pub bytes: B,
}

impl<R, F: FnMut(&Input<'_>, &mut R), B: Fn(&R) -> Vec<u8>> Subject for Op<R, F, B> {
    fn time(&mut self, input: &Input<'_>, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            (self.run)(black_box(input), &mut self.result);
            black_box(&mut self.result);
        }
        start.elapsed()
    }

    fn output(&mut self, input: &Input<'_>) -> Vec<u8> {
        (self.run)(input, &mut self.result);
        (self.bytes)(&self.result)
    }
}

/// A subject that takes longer than necessary: a regression on purpose, to see that the gate fails.
pub struct Slowed {
    /// The subject to slow down.
    pub subject: Box<dyn Subject>,
    /// The slowdown in percent.
    pub percent: u32,
}

impl Subject for Slowed {
    /// The time that really passes: it is not computed by multiplication.
    fn time(&mut self, input: &Input<'_>, iterations: u64) -> Duration {
        let start = Instant::now();
        let needed = self.subject.time(input, iterations);
        let end = needed + needed * self.percent / 100;
        loop {
            let time = start.elapsed();
            if time >= end {
                return time;
            }
            spin_loop();
        }
    }

    fn output(&mut self, input: &Input<'_>) -> Vec<u8> {
        self.subject.output(input)
    }
}

/// The durations and numbers of samples and rounds.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The minimum time of one sample. The timer costs about 25 ns, and the first operations after
    /// a change of contender run with cold branch predictors. In 10 us, both are negligible, and an
    /// interruption is still unlikely.
    pub sample: Duration,
    /// The minimum number of rounds. Odd numbers have a median.
    pub min_rounds: u32,
    /// The minimum number of rounds if an operation takes longer than [`LONG_OPERATION`].
    pub min_long_rounds: u32,
    /// The maximum number of rounds: beyond that, the remaining noise is not random.
    pub max_rounds: u32,
    /// The time that a case may take, once the minimum number of rounds is done.
    pub budget: Duration,
    /// The additional time that a case may take to wait until the core is ours alone, and to repeat
    /// rounds in which it was not.
    pub patience: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            sample: Duration::from_micros(10),
            min_rounds: 51,
            min_long_rounds: 9,
            max_rounds: 101,
            budget: Duration::from_millis(250),
            patience: Duration::from_secs(1),
        }
    }
}

/// An operation that takes longer is one whose spread is small: fewer rounds are enough.
pub const LONG_OPERATION: Duration = Duration::from_millis(20);

/// The limit of the data's random offsets: a page, so that every position in a cache line and every
/// distance to other data occurs.
const MAX_OFFSET: usize = 4096;

/// The result of a measurement.
#[derive(Debug)]
pub struct Samples {
    /// Operations in one sample.
    pub iterations: u64,
    /// Nanoseconds for one operation: for each contender in its place, one value per round.
    pub ns: Vec<Vec<f64>>,
    /// The share of the rounds in which something else used the core.
    pub disturbed: f64,
}

/// Random data from which each round takes a slice.
pub struct Data {
    bytes: Vec<u8>,
    length: usize,
    part: Option<usize>,
}

impl Data {
    /// Data with `length` bytes per operation; if `part` is given, as separate inputs of that many
    /// bytes.
    pub fn random(length: usize, part: Option<usize>, random: &mut fastrand::Rng) -> Self {
        let mut bytes = vec![0; length + MAX_OFFSET];
        random.fill(&mut bytes);
        Self { bytes, length, part }
    }

    fn at(&self, offset: usize) -> Input<'_> {
        let whole = &self.bytes[offset..offset + self.length];
        Input { whole, parts: self.part.map(|part| whole.chunks(part).collect()).unwrap_or_default() }
    }
}

/// Times the contenders against each other on `data`.
///
/// # Errors
/// The contenders' results differ. Then nothing is timed.
pub fn measure(
    contenders: &mut [Box<dyn Subject>],
    data: &Data,
    plan: &Plan,
    random: &mut fastrand::Rng,
    quiet: &mut Quiet,
) -> Result<Samples> {
    agree(contenders, &data.at(random.usize(..MAX_OFFSET)))?;
    let start = Instant::now();
    let (iterations, longest) = calibrate(contenders, &data.at(0), plan);
    let min_rounds = if longest > LONG_OPERATION { plan.min_long_rounds } else { plan.min_rounds };
    let mut samples = Samples { iterations, ns: vec![Vec::new(); contenders.len()], disturbed: 0.0 };
    let (mut rounds, mut disturbed) = (0, 0);
    let mut patience = plan.patience;
    while rounds < plan.max_rounds {
        // An odd number of rounds, at least the minimum, and no more than fit into the budget.
        if rounds >= min_rounds && rounds % 2 == 1 && start.elapsed() > plan.budget {
            break;
        }
        let begun = Instant::now();
        quiet.wait(begun + patience);
        let waited = begun.elapsed();
        patience = patience.saturating_sub(waited);
        let (times, was_quiet) = round(contenders, data, iterations, random, quiet);
        if !was_quiet {
            // As long as there is patience left, such a round does not count.
            patience = patience.saturating_sub(begun.elapsed() - waited);
            if !patience.is_zero() {
                continue;
            }
            disturbed += 1;
        }
        rounds += 1;
        for (ns, time) in samples.ns.iter_mut().zip(times) {
            ns.push(time.as_nanos() as f64 / iterations as f64);
        }
    }
    samples.disturbed = f64::from(disturbed) / f64::from(rounds.max(1));
    Ok(samples)
}

/// One sample of each contender, in their order, and whether the core was ours alone throughout.
fn round(
    contenders: &mut [Box<dyn Subject>],
    data: &Data,
    iterations: u64,
    random: &mut fastrand::Rng,
    quiet: &mut Quiet,
) -> (Vec<Duration>, bool) {
    let input = data.at(random.usize(..MAX_OFFSET));
    let depth = random.u32(..MAX_DEPTH);
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    random.shuffle(&mut order);
    let mut times = vec![Duration::ZERO; contenders.len()];
    let mut was_quiet = true;
    for index in order {
        let contender = &mut contenders[index];
        times[index] = deeper(depth, &mut || {
            // At least one: after half a millisecond without wide vectors, the first operation
            // takes up to twice as long.
            contender.time(&input, (iterations / 8).max(1));
            contender.time(&input, iterations)
        });
        was_quiet &= quiet.now();
    }
    (times, was_quiet)
}

/// The maximum number of frames above the stack of a round: with frames of about a hundred bytes,
/// it can begin anywhere in a page.
const MAX_DEPTH: u32 = 48;

/// Runs `timed` with the stack pointer `depth` frames lower.
#[inline(never)]
fn deeper(depth: u32, timed: &mut dyn FnMut() -> Duration) -> Duration {
    // Keep it in memory until the end, so that this frame is real and the call below is not a jump.
    let frame = black_box([depth; 12]);
    let time = if depth == 0 { timed() } else { deeper(depth - 1, timed) };
    black_box(&frame);
    time
}

fn agree(contenders: &mut [Box<dyn Subject>], input: &Input<'_>) -> Result<()> {
    let outputs: Vec<_> = contenders.iter_mut().map(|contender| contender.output(input)).collect();
    for (index, output) in outputs.iter().enumerate() {
        ensure!(*output == outputs[0], "contender {index} computes something else than contender 0");
    }
    Ok(())
}

/// The number of operations in a sample: the fastest contender decides, so that every sample is
/// long enough. Also the longest time of a single operation, if a sample has only one.
fn calibrate(contenders: &mut [Box<dyn Subject>], input: &Input<'_>, plan: &Plan) -> (u64, Duration) {
    let mut iterations = 1;
    loop {
        let times: Vec<_> =
            contenders.iter_mut().map(|contender| contender.time(input, iterations)).collect();
        if times.iter().all(|time| *time >= plan.sample) {
            let longest = times.into_iter().max().filter(|_| iterations == 1);
            return (iterations, longest.unwrap_or_default());
        }
        iterations = (iterations * 5).div_ceil(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Plan = Plan {
        sample: Duration::from_nanos(200),
        min_rounds: 5,
        min_long_rounds: 5,
        max_rounds: 9,
        budget: Duration::ZERO,
        patience: Duration::ZERO,
    };

    /// A subject that claims to take a millisecond.
    struct Millisecond;

    impl Subject for Millisecond {
        fn time(&mut self, _: &Input<'_>, _: u64) -> Duration {
            Duration::from_millis(1)
        }

        fn output(&mut self, _: &Input<'_>) -> Vec<u8> {
            Vec::new()
        }
    }

    #[test]
    fn what_is_slowed_down_takes_longer() {
        let mut slowed = Slowed { subject: Box::new(Millisecond), percent: 5 };
        let start = Instant::now();
        let time = slowed.time(&Input { whole: &[], parts: vec![] }, 1);
        assert!(time >= Duration::from_micros(1050) && start.elapsed() >= time, "{time:?}");
    }

    fn sum(factor: u8) -> Box<dyn Subject> {
        Box::new(Op {
            result: [0_u8],
            run: move |input: &Input<'_>, out: &mut [u8; 1]| {
                out[0] = input.whole.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) | factor;
            },
            bytes: |out: &[u8; 1]| out.to_vec(),
        })
    }

    #[test]
    fn every_contender_gets_every_round() {
        let mut random = fastrand::Rng::with_seed(1);
        let data = Data::random(100, None, &mut random);
        let samples =
            measure(&mut [sum(0), sum(0), sum(0)], &data, &QUICK, &mut random, &mut Quiet::new(None))
                .unwrap();
        assert_eq!(samples.ns.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5]);
        assert!(samples.iterations >= 1 && samples.ns.iter().flatten().all(|ns| *ns > 0.0));
    }

    #[test]
    fn contenders_that_differ_are_refused() {
        let mut random = fastrand::Rng::with_seed(1);
        let data = Data { bytes: vec![0; MAX_OFFSET + 8], length: 8, part: None };
        let error = measure(&mut [sum(0), sum(0), sum(1)], &data, &QUICK, &mut random, &mut Quiet::new(None))
            .unwrap_err();
        assert!(error.to_string().contains("contender 2"), "{error}");
    }

    #[test]
    fn parts_cover_the_whole() {
        let mut random = fastrand::Rng::with_seed(1);
        let data = Data::random(66, Some(11), &mut random);
        let input = data.at(7);
        assert_eq!(input.parts.len(), 6);
        assert_eq!(input.parts.concat(), input.whole);
    }
}
