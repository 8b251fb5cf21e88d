use crate::vector::{Columns, Rows, Vector, WordColumns};

/// Two vectors side by side: two independent chains of instructions that fill each other's gaps.
#[derive(Clone, Copy)]
pub struct Pair<V>(V, V);

macro_rules! both {
    ($(fn $name:ident($($arg:ident),*);)*) => { $(
        #[inline(always)]
        unsafe fn $name($($arg: Self),*) -> Self {
            // SAFETY: the caller's promise for the pair is the promise for each half.
            unsafe { Pair(V::$name($($arg.0),*), V::$name($($arg.1),*)) }
        }
    )* };
}

impl<V: Vector> Vector for Pair<V> {
    type Word = V::Word;
    const LANES: usize = 2 * V::LANES;
    const REGISTERS: usize = 2 * V::REGISTERS;

    both! {
        fn add(a, b);
        fn xor(a, b);
        fn opaque(a);
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::rotate::<I>(a.0), V::rotate::<I>(a.1)) }
    }

    #[inline(always)]
    unsafe fn splat(word: V::Word) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::splat(word), V::splat(word)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const V::Word) -> Self {
        // SAFETY: the caller promised twice the lanes of a half.
        unsafe { Pair(V::load(from), V::load(from.add(V::LANES))) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut V::Word) {
        // SAFETY: the caller promised twice the lanes of a half.
        unsafe {
            self.0.store(to);
            self.1.store(to.add(V::LANES));
        }
    }
}

impl<V: Rows> Rows for Pair<V> {
    #[inline(always)]
    unsafe fn rotate_words_left<const N: i32>(a: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::rotate_words_left::<N>(a.0), V::rotate_words_left::<N>(a.1)) }
    }

    #[inline(always)]
    unsafe fn splat_row(row: *const u32) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::splat_row(row), V::splat_row(row)) }
    }

    #[inline(always)]
    unsafe fn splat_u64_pair(low: u64, high: u64) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::splat_u64_pair(low, high), V::splat_u64_pair(low, high)) }
    }

    #[inline(always)]
    unsafe fn gather_rows(blocks: *const *const u8, offset: usize) -> Self {
        // SAFETY: the caller promised pointers for the states of both halves.
        unsafe { Pair(V::gather_rows(blocks, offset), V::gather_rows(blocks.add(V::STATES), offset)) }
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        // SAFETY: the caller promised memory for the states of both halves.
        unsafe {
            V::store_row_pairs(first.0, second.0, to);
            V::store_row_pairs(first.1, second.1, to.add(32 * V::STATES));
        }
    }

    #[inline(always)]
    unsafe fn shuffle<const I: i32>(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::shuffle::<I>(a.0, b.0), V::shuffle::<I>(a.1, b.1)) }
    }
}

impl<V: Columns> Columns for Pair<V> {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised pointers for the lanes of both halves.
        unsafe { join_pairs(&V::load_blocks(blocks, offset), &V::load_blocks(blocks.add(V::LANES), offset)) }
    }

    #[inline(always)]
    unsafe fn store_chaining_values(words: [Self; 8], to: *mut u8) {
        let (first, second) = split_pairs(&words);
        // SAFETY: the caller promised memory for the lanes of both halves.
        unsafe {
            V::store_chaining_values(first, to);
            V::store_chaining_values(second, to.add(32 * V::LANES));
        }
    }

    #[inline(always)]
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8) {
        let (first, second) = split_pairs(&words);
        // SAFETY: the caller promised memory for the lanes of both halves.
        unsafe {
            V::store_blocks(first, to);
            V::store_blocks(second, to.add(64 * V::LANES));
        }
    }

    #[inline(always)]
    unsafe fn unzip(left: Self, right: Self) -> (Self, Self) {
        // SAFETY: as the caller promised.
        unsafe {
            let ((a, b), (c, d)) = (V::unzip(left.0, left.1), V::unzip(right.0, right.1));
            (Pair(a, c), Pair(b, d))
        }
    }

    #[inline(always)]
    unsafe fn equal(a: Self, b: Self) -> u32 {
        // SAFETY: as the caller promised.
        unsafe { V::equal(a.0, b.0) | V::equal(a.1, b.1) << V::LANES }
    }

    #[inline(always)]
    unsafe fn select(mask: u32, yes: Self, no: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::select(mask, yes.0, no.0), V::select(mask >> V::LANES, yes.1, no.1)) }
    }
}

impl<V: WordColumns> WordColumns for Pair<V> {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised pointers for the lanes of both halves.
        unsafe { join_pairs(&V::load_blocks(blocks, offset), &V::load_blocks(blocks.add(V::LANES), offset)) }
    }

    #[inline(always)]
    unsafe fn load_states(words: *const *mut V::Word) -> [Self; 8] {
        // SAFETY: the caller promised pointers for the lanes of both halves.
        unsafe { join_pairs(&V::load_states(words), &V::load_states(words.add(V::LANES))) }
    }

    #[inline(always)]
    unsafe fn store_states(words: [Self; 8], to: *const *mut V::Word) {
        let (first, second) = split_pairs(&words);
        // SAFETY: the caller promised pointers for the lanes of both halves.
        unsafe {
            V::store_states(first, to);
            V::store_states(second, to.add(V::LANES));
        }
    }
}

/// The first and the second vectors of pairs.
#[inline(always)]
fn split_pairs<V: Copy, const N: usize>(pairs: &[Pair<V>; N]) -> ([V; N], [V; N]) {
    let (mut first, mut second) = ([pairs[0].0; N], [pairs[0].1; N]);
    let mut i = 1;
    while i < N {
        (first[i], second[i]) = (pairs[i].0, pairs[i].1);
        i += 1;
    }
    (first, second)
}

/// Pairs of vectors: the reverse of `split_pairs`.
#[inline(always)]
fn join_pairs<V: Copy, const N: usize>(first: &[V; N], second: &[V; N]) -> [Pair<V>; N] {
    let mut pairs = [Pair(first[0], second[0]); N];
    let mut i = 1;
    while i < N {
        pairs[i] = Pair(first[i], second[i]);
        i += 1;
    }
    pairs
}
