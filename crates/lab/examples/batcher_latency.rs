//! Measures how long calls take through a batcher at half of its maximum load, compared with a
//! single verification.
//!
//! Calls come at random times (a Poisson process), whether or not earlier ones are answered, and
//! each is timed from the moment at which it was scheduled, so that a batcher that falls behind is
//! noticed. `cargo run --release -p bulla-lab --example batcher_latency`

use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use bulla_kms::batcher::{Answer, Batcher, BatcherOptions};
use bulla_kms::{Algorithm, KeyVersionId, Keystore, NewKey, Verdict};

const KEYS: usize = 64;
const CALLS: usize = 100_000;

struct Call {
    key: KeyVersionId,
    message: [u8; 128],
    signature: Vec<u8>,
}

/// Notes when it was woken.
struct Done {
    due: Instant,
    latency: OnceLock<Duration>,
}

impl Wake for Done {
    fn wake(self: Arc<Self>) {
        let _ = self.latency.set(self.due.elapsed());
    }
}

fn main() {
    let keystore = Arc::new(Keystore::in_memory().unwrap());
    let calls = calls(&keystore);
    let alone = alone(&keystore, &calls);
    let batcher = Batcher::new(Arc::clone(&keystore), &BatcherOptions::default()).expect("threads start");
    let capacity = capacity(&batcher, &calls);
    let mut latencies = open_loop(&batcher, &calls, capacity / 2.0);
    latencies.sort_unstable();
    let at = |share: f64| {
        let latency = latencies[((latencies.len() - 1) as f64 * share) as usize];
        latency.saturating_sub(alone).as_secs_f64() * 1e6
    };
    println!(
        "{{\"alone_us\":{:.1},\"capacity_per_s\":{capacity:.0},\"load\":0.5,\"added_p50_us\":{:.0},\"added_p99_us\":{:.0},\"added_p999_us\":{:.0}}}",
        alone.as_secs_f64() * 1e6,
        at(0.5),
        at(0.99),
        at(0.999)
    );
}

fn calls(keystore: &Keystore) -> Vec<Call> {
    let name = |text: &str| text.parse().expect("a name");
    let mut random = fastrand::Rng::with_seed(3);
    let make = |_| {
        let new = NewKey::new(name("lab"), name("bench"), Algorithm::Ed25519);
        let key = keystore.create_key(new).expect("a key in memory");
        let mut message = [0; 128];
        random.fill(&mut message);
        let signature = keystore.sign(&key, &message).expect("the key signs").bytes;
        Call { key, message, signature }
    };
    (0..KEYS).map(make).collect()
}

/// The median time of one verification.
fn alone(keystore: &Keystore, calls: &[Call]) -> Duration {
    let time = |Call { key, message, signature }: &Call| {
        let start = Instant::now();
        let _ = black_box(keystore.verify(key, message, signature).expect("the key is there"));
        start.elapsed()
    };
    let mut times: Vec<_> = (0..50).flat_map(|_| calls.iter().map(time)).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Calls a second when 256 are always waiting for an answer.
fn capacity(batcher: &Batcher, calls: &[Call]) -> f64 {
    let start = Instant::now();
    let mut open = std::collections::VecDeque::new();
    for number in 0..CALLS {
        let Call { key, message, signature } = &calls[number % KEYS];
        open.push_back(batcher.verify(key.clone(), &message[..], &signature[..]));
        if open.len() == 256 {
            let answer = open.pop_front().expect("256 are open").wait();
            assert!(answer.expect("a verdict").is_valid());
        }
    }
    open.into_iter().for_each(|answer| assert!(answer.wait().expect("a verdict").is_valid()));
    CALLS as f64 / start.elapsed().as_secs_f64()
}

fn open_loop(batcher: &Batcher, calls: &[Call], rate: f64) -> Vec<Duration> {
    let mut random = fastrand::Rng::with_seed(4);
    let (mut due, mut open) = (Instant::now() + Duration::from_millis(10), Vec::with_capacity(CALLS));
    for number in 0..CALLS {
        due += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / rate);
        // Without spinning: a processor that only waits would not be at half load.
        while Instant::now() < due {
            yield_now();
        }
        let Call { key, message, signature } = &calls[number % KEYS];
        let mut answer = Box::pin(batcher.verify(key.clone(), &message[..], &signature[..]));
        let done = Arc::new(Done { due, latency: OnceLock::new() });
        let waker = Waker::from(Arc::clone(&done));
        let first = pin!(&mut answer).poll(&mut Context::from_waker(&waker));
        if first.is_ready() {
            Arc::clone(&done).wake();
        }
        open.push((answer, done, first));
    }
    let latency = |(mut answer, done, first): (Pin<Box<Answer<Verdict>>>, Arc<Done>, Poll<_>)| {
        while done.latency.get().is_none() {
            yield_now();
        }
        // A future that was ready at once must not be polled again.
        let given = if first.is_ready() {
            first
        } else {
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        assert!(matches!(given, Poll::Ready(Ok(_))), "a call was not answered: {given:?}");
        *done.latency.get().expect("it was woken")
    };
    open.into_iter().map(latency).collect()
}
