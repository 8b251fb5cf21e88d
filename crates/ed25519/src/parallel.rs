//! Many signatures on many threads.

use crate::{Item, Reason, Verdict, verify_many_into};
use rayon::prelude::*;

/// The least that is worth handing to another thread: two groups of eight, about a tenth of a millisecond.
const LEAST: usize = 16;
/// What shares one inversion: more in a piece wins nothing.
const MOST: usize = 128;

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
    let piece = piece(items.len(), rayon::current_num_threads());
    if piece >= items.len() {
        return verify_many_into(items, out);
    }
    items
        .par_chunks(piece)
        .zip(out.par_chunks_mut(piece))
        .for_each(|(items, out)| verify_many_into(items, out));
}

/// Items of a piece: whole groups, as equal among the threads as can be.
fn piece(items: usize, threads: usize) -> usize {
    let rounds = items.div_ceil(threads * MOST).max(1);
    items.div_ceil(threads * rounds).next_multiple_of(8).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn pieces_are_groups_and_equal() {
        assert_eq!(piece(512, 2), 128);
        assert_eq!(piece(64, 2), 32);
        assert_eq!(piece(17, 2), 16);
        assert_eq!(piece(16, 8), 16);
        assert_eq!(piece(1024, 3), 120);
    }
}
