//! The words of BLAKE2: two of 64 bits in a v128, and many inputs with words of 32.

use super::{U32x4, forward, transpose};
use crate::vector::{Columns, Vector};
use crate::words::WordColumns;
use core::arch::wasm32::*;

/// Two words in a v128.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x2(pub v128);

/// The words at even places of two rows of two, and those at odd places.
#[inline(always)]
fn zip(a: v128, b: v128) -> (v128, v128) {
    (u64x2_shuffle::<0, 2>(a, b), u64x2_shuffle::<1, 3>(a, b))
}

impl Vector for U64x2 {
    type Word = u64;
    const LANES: usize = 2;

    forward! {
        fn splat(word: u64) -> Self = U64x2(u64x2_splat(word));
        fn add(a: Self, b: Self) -> Self = U64x2(u64x2_add(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U64x2(v128_xor(a.0, b.0));
        fn pin(a: Self) -> Self = a;
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        U64x2(match I {
            0 => u32x4_shuffle::<1, 0, 3, 2>(a.0, a.0),
            1 => u8x16_swizzle(a.0, u8x16(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10)),
            2 => u8x16_swizzle(a.0, u8x16(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9)),
            _ => v128_or(u64x2_shr(a.0, 63), u64x2_add(a.0, a.0)),
        })
    }

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: the caller promised two readable words.
        unsafe { U64x2(v128_load(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the caller promised two writable words.
        unsafe { v128_store(to.cast(), self.0) }
    }
}

impl WordColumns for U64x2 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised two pointers, with 128 readable bytes at the offset of each.
        unsafe {
            let row =
                |i: usize, pair: usize| v128_load((*blocks.add(i)).wrapping_add(offset + 16 * pair).cast());
            let mut words = [U64x2(u64x2_splat(0)); 16];
            let mut i = 0;
            while i < 8 {
                let (even, odd) = zip(row(0, i), row(1, i));
                (words[2 * i], words[2 * i + 1]) = (U64x2(even), U64x2(odd));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn load_halves(halves: *const *mut u64) -> [Self; 8] {
        // SAFETY: the caller promised two pointers at eight words each.
        unsafe {
            let row = |i: usize, pair: usize| v128_load((*halves.add(i)).add(2 * pair).cast());
            let mut words = [U64x2(u64x2_splat(0)); 8];
            let mut i = 0;
            while i < 4 {
                let (even, odd) = zip(row(0, i), row(1, i));
                (words[2 * i], words[2 * i + 1]) = (U64x2(even), U64x2(odd));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_halves(words: [Self; 8], halves: *const *mut u64) {
        let mut i = 0;
        while i < 4 {
            let (first, second) = zip(words[2 * i].0, words[2 * i + 1].0);
            // SAFETY: see `load_halves`.
            unsafe {
                v128_store((*halves).add(2 * i).cast(), first);
                v128_store((*halves.add(1)).add(2 * i).cast(), second);
            }
            i += 1;
        }
    }
}

impl WordColumns for U32x4 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: as the caller promised.
        unsafe { <Self as Columns>::load_blocks(blocks, offset) }
    }

    #[inline(always)]
    unsafe fn load_halves(halves: *const *mut u32) -> [Self; 8] {
        // SAFETY: the caller promised four pointers at eight words each.
        unsafe {
            let mut words = [U32x4(u32x4_splat(0)); 8];
            let mut half = 0;
            while half < 2 {
                let row = |lane: usize| v128_load((*halves.add(lane)).add(4 * half).cast());
                let columns = transpose([row(0), row(1), row(2), row(3)]);
                let mut i = 0;
                while i < 4 {
                    words[4 * half + i] = U32x4(columns[i]);
                    i += 1;
                }
                half += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_halves(w: [Self; 8], halves: *const *mut u32) {
        let mut half = 0;
        while half < 2 {
            let at = 4 * half;
            let rows = transpose([w[at].0, w[at + 1].0, w[at + 2].0, w[at + 3].0]);
            let mut lane = 0;
            while lane < 4 {
                // SAFETY: see `load_halves`.
                unsafe { v128_store((*halves.add(lane)).add(at).cast(), rows[lane]) };
                lane += 1;
            }
            half += 1;
        }
    }
}
