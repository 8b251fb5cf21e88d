use crate::vector::{Rows, Vector};

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
        fn pin(a);
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
    both! {
        fn turn1(a);
        fn turn2(a);
        fn turn3(a);
    }

    #[inline(always)]
    unsafe fn splat_row(row: *const u32) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::splat_row(row), V::splat_row(row)) }
    }

    #[inline(always)]
    unsafe fn splat_halves(low: u64, high: u64) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::splat_halves(low, high), V::splat_halves(low, high)) }
    }

    #[inline(always)]
    unsafe fn gather_rows(blocks: *const *const u8, offset: usize) -> Self {
        // SAFETY: the caller promised pointers for the states of both halves.
        unsafe { Pair(V::gather_rows(blocks, offset), V::gather_rows(blocks.add(V::STATES), offset)) }
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        // SAFETY: the caller promised room for the states of both halves.
        unsafe {
            V::store_row_pairs(first.0, second.0, to);
            V::store_row_pairs(first.1, second.1, to.add(32 * V::STATES));
        }
    }

    #[inline(always)]
    unsafe fn pick<const I: i32>(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promised.
        unsafe { Pair(V::pick::<I>(a.0, b.0), V::pick::<I>(a.1, b.1)) }
    }
}
