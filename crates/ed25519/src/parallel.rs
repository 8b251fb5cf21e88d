//! Many signatures on many threads.

use crate::many::verify_many_into;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of signatures that one step of the lanes verifies.
const LANES: usize = 8;

/// Like [`verify_many`](crate::verify_many), on the caller's thread and the threads of the caller's
/// rayon pool. The verdicts are in the order of the items.
///
/// If there is too little work to share, the caller's thread does all of it, so that it never takes
/// longer than with one thread.
///
/// # Panics
///
/// If [`verify_many`](crate::verify_many) panics.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, Verdict, VerifyItem, verify_many_parallel};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let (public_key, signature) = (signer.verifying_key(), signer.sign(b"message").to_bytes());
/// let (public_key, signature) = (public_key.as_bytes(), &signature);
/// let items = [VerifyItem { public_key, message: b"message", signature }; 20];
/// assert_eq!(verify_many_parallel(&items), [Verdict::Valid; 20]);
/// ```
pub fn verify_many_parallel(items: &[VerifyItem<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
    verify_many_parallel_into(items, &mut out);
    out
}

/// Like [`verify_many_parallel`], with the verdicts in `out`.
///
/// # Panics
///
/// If `out` is not as long as `items`, or if [`verify_many`](crate::verify_many) panics.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, Verdict, VerifyItem, verify_many_parallel_into};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let (public_key, signature) = (signer.verifying_key(), signer.sign(b"message").to_bytes());
/// let (public_key, signature) = (public_key.as_bytes(), &signature);
/// let items = [VerifyItem { public_key, message: b"message", signature }; 20];
/// let mut verdicts = [Verdict::Valid; 20];
/// verify_many_parallel_into(&items, &mut verdicts);
/// assert_eq!(verdicts, [Verdict::Valid; 20]);
/// ```
pub fn verify_many_parallel_into(items: &[VerifyItem<'_>], out: &mut [Verdict]) {
    assert_eq!(items.len(), out.len(), "one verdict for each item");
    par_split(items, out, LANES, verify_many_into);
}

/// A thread's share of the remaining work is divided by this to get a piece. The last pieces are
/// small, so that all threads end at about the same time, whenever each one started.
const THREAD_SHARE_DIVISOR: usize = 2;
/// The maximum number of steps of the lanes in a piece: as many as share an inversion. Larger
/// pieces gain nothing.
const MAX_PIECE_STEPS: usize = 16;
/// The minimum number of steps for which threads are woken: waking takes as long as two or three
/// steps.
const MIN_SHARED_STEPS: usize = 4;
/// The time for which to poll for the end of the other threads' last pieces before sleeping: waking
/// up takes as long.
const MAX_SPIN_TIME: Duration = Duration::from_micros(100);

/// Runs `run` on pieces of `items`, and of `out` at the same places, on this thread and the threads
/// of the caller's rayon pool. Every piece except the last has whole groups of `lanes`.
///
/// This is not part of the public interface. The keystore uses it to share its batches, also those
/// of other algorithms.
#[doc(hidden)]
pub fn par_split<I: Sync, O: Send>(
    items: &[I],
    out: &mut [O],
    lanes: usize,
    run: impl Fn(&[I], &mut [O]) + Sync,
) {
    let threads = rayon::current_num_threads();
    if threads <= 1 || items.len() < MIN_SHARED_STEPS * lanes {
        return run(items, out);
    }
    let done = AtomicUsize::new(0);
    let left = Mutex::new((items, out));
    let next = || {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        let count = piece(left.0.len(), lanes, threads);
        let (items, out) = (left.0.split_off(..count)?, left.1.split_off_mut(..count)?);
        Some((items, out))
    };
    let work = || {
        while let Some((items, out)) = next() {
            run(items, out);
            done.fetch_add(items.len(), Ordering::Release);
        }
    };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads.min(items.len() / lanes) {
            scope.spawn(|_| work());
        }
        // This thread begins at once; the others join when they are awake.
        work();
        let start = Instant::now();
        while done.load(Ordering::Acquire) < items.len() && start.elapsed() < MAX_SPIN_TIME {
            std::hint::spin_loop();
        }
    });
}

/// The number of items in the next piece if `left` items are left.
fn piece(left: usize, lanes: usize, threads: usize) -> usize {
    (left / (THREAD_SHARE_DIVISOR * threads))
        .next_multiple_of(lanes)
        .clamp(lanes, MAX_PIECE_STEPS * lanes)
        .min(left.max(1))
}

#[cfg(test)]
mod tests {
    use super::{par_split, piece};

    #[test]
    fn pieces_are_groups() {
        assert_eq!(piece(512, 8, 2), 128);
        assert_eq!(piece(384, 8, 2), 96);
        assert_eq!(piece(64, 8, 2), 16);
        assert_eq!(piece(9, 8, 2), 8);
        assert_eq!(piece(1, 8, 2), 1);
        assert_eq!(piece(4000, 8, 2), 128);
        assert_eq!(piece(5, 1, 8), 1);
    }

    #[test]
    fn every_item_is_worked_on_once_and_in_its_place() {
        for (length, lanes) in (0..100).chain([1000, 5000]).flat_map(|length| [(length, 1), (length, 8)]) {
            let items: Vec<u32> = (0..length).collect();
            let mut out = vec![0; items.len()];
            par_split(&items, &mut out, lanes, |items, out| {
                for (item, out) in items.iter().zip(out) {
                    *out += item + 1;
                }
            });
            assert!(out.iter().zip(&items).all(|(out, item)| *out == item + 1), "{length} {lanes}");
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let items: Vec<u32> = (0..1000).collect();
        let run = |_: &[u32], _: &mut [()]| panic!("on purpose");
        let shared = std::panic::catch_unwind(|| par_split(&items, &mut [(); 1000], 8, run));
        assert!(shared.is_err());
    }
}
