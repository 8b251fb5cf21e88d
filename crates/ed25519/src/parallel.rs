//! Many signatures on many threads.

use crate::{Item, Reason, Verdict, verify_many_into};
use std::sync::{Mutex, PoisonError};

/// The least that is worth handing to another thread: two groups of eight, about a tenth of a millisecond.
const LEAST: usize = 16;
/// What shares one inversion: more in a piece wins nothing.
const MOST: usize = 128;
/// How many pieces there are for each thread, where there is enough.
const PIECES: usize = 4;

/// [`verify_many`](crate::verify_many) on the threads of the rayon pool that it is called in; verdicts are in the order of the items.
///
/// What is too little to be shared is done on the caller's thread, so that it never takes longer than one thread would.
///
/// # Panics
///
/// As [`verify_many`](crate::verify_many).
pub fn verify_many_parallel(items: &[Item<'_>]) -> Vec<Verdict> {
    let mut out = vec![Verdict::Invalid(Reason::Mismatch); items.len()];
    verify_many_parallel_into(items, &mut out);
    out
}

/// [`verify_many_parallel`] in place.
///
/// # Panics
///
/// When `out` is not as long as `items`, and as [`verify_many`](crate::verify_many).
pub fn verify_many_parallel_into(items: &[Item<'_>], out: &mut [Verdict]) {
    assert_eq!(items.len(), out.len(), "one verdict for each item");
    let threads = rayon::current_num_threads();
    let piece = piece(items.len(), threads);
    let pieces = items.len().div_ceil(piece);
    if threads.min(pieces) <= 1 {
        return verify_many_into(items, out);
    }
    // The caller begins at once, and others join it when they are awake, which takes as long as some pieces.
    let left = Mutex::new(items.chunks(piece).zip(out.chunks_mut(piece)));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((items, out)) = next() {
            verify_many_into(items, out);
        }
    };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads.min(pieces) {
            scope.spawn(|_| work());
        }
        work();
    });
}

/// Items of a piece: whole groups, and some pieces for each thread, so that one that comes late takes fewer.
fn piece(items: usize, threads: usize) -> usize {
    (items / (PIECES * threads)).next_multiple_of(8).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn pieces_are_groups() {
        assert_eq!(piece(512, 2), 64);
        assert_eq!(piece(64, 2), 16);
        assert_eq!(piece(17, 2), 16);
        assert_eq!(piece(4000, 2), 128);
        assert_eq!(piece(1000, 3), 88);
    }
}
