//! The WebAssembly backend: 128-bit vectors without rotates.
//!
//! WebAssembly has no detection: an engine accepts a module with vector code, or refuses it. The
//! backend exists if the build has `simd128`.

use crate::vector::{Columns, Rows, Vector, WordColumns};
use core::arch::wasm32::*;

/// Four words in a v128.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(pub v128);

/// Trait methods that consist of one expression of intrinsics, which are safe if the build has
/// them.
macro_rules! forward {
    ($(fn $name:ident $(<const $imm:ident: i32>)? ($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:expr;)*) => { $(
        #[inline(always)]
        unsafe fn $name $(<const $imm: i32>)? ($($arg: $type),*) $(-> $ret)? {
            $body
        }
    )* };
}

/// Swizzles by constants, not shuffles: engines on x86-64 compile a swizzle to one `pshufb`, but
/// build the mask of a shuffle again at every use.
#[inline(always)]
fn rotate_bytes2(a: v128) -> v128 {
    u8x16_swizzle(a, u8x16(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13))
}

#[inline(always)]
fn rotate_bytes1(a: v128) -> v128 {
    u8x16_swizzle(a, u8x16(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12))
}

/// The four-by-four transpose of words.
#[inline(always)]
fn transpose(r: [v128; 4]) -> [v128; 4] {
    let (a, b) = (u32x4_shuffle::<0, 4, 1, 5>(r[0], r[1]), u32x4_shuffle::<2, 6, 3, 7>(r[0], r[1]));
    let (c, d) = (u32x4_shuffle::<0, 4, 1, 5>(r[2], r[3]), u32x4_shuffle::<2, 6, 3, 7>(r[2], r[3]));
    [
        u64x2_shuffle::<0, 2>(a, c),
        u64x2_shuffle::<1, 3>(a, c),
        u64x2_shuffle::<0, 2>(b, d),
        u64x2_shuffle::<1, 3>(b, d),
    ]
}

/// Two words of `a`, then two of `b`, as the bits of `I` say. Each pick is a separate shuffle with
/// the byte constants that the intrinsic wants. With word shuffles, LLVM would look through one
/// pick to the sources of the last, and need three shuffles instead of one.
#[inline(always)]
fn shuffle_words<const I: i32>(a: v128, b: v128) -> v128 {
    macro_rules! of_two {
        ($high:literal: $($low:literal)*) => { $(
            if I & 255 == $high << 4 | $low {
                return u32x4_shuffle::<{ $low & 3 }, { $low >> 2 }, { 4 + ($high & 3) }, { 4 + ($high >> 2) }>(a, b);
            }
        )* };
    }
    macro_rules! of_four {
        ($($high:literal)*) => { $( of_two!($high: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15); )* };
    }
    of_four!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    unreachable!("eight bits have 256 values")
}

#[inline(always)]
fn blend(mask: u32, yes: v128, no: v128) -> v128 {
    let bits = u32x4(1, 2, 4, 8);
    let chosen = u32x4_eq(v128_and(u32x4_splat(mask), bits), bits);
    v128_bitselect(yes, no, chosen)
}

impl Vector for U32x4 {
    type Word = u32;
    const LANES: usize = 4;

    forward! {
        fn splat(word: u32) -> Self = U32x4(u32x4_splat(word));
        fn add(a: Self, b: Self) -> Self = U32x4(u32x4_add(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U32x4(v128_xor(a.0, b.0));
        fn opaque(a: Self) -> Self = a;
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        U32x4(match I {
            0 => rotate_bytes2(a.0),
            1 => v128_or(u32x4_shr(a.0, 12), u32x4_shl(a.0, 20)),
            2 => rotate_bytes1(a.0),
            _ => v128_or(u32x4_shr(a.0, 7), u32x4_shl(a.0, 25)),
        })
    }

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller promised four readable words.
        unsafe { U32x4(v128_load(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller promised four writable words.
        unsafe { v128_store(to.cast(), self.0) }
    }
}

impl Rows for U32x4 {
    forward! {
        fn splat_u64_pair(low: u64, high: u64) -> Self = U32x4(u64x2(low, high));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x4(match N {
            1 => u32x4_shuffle::<1, 2, 3, 0>(a.0, a.0),
            2 => u32x4_shuffle::<2, 3, 0, 1>(a.0, a.0),
            _ => u32x4_shuffle::<3, 0, 1, 2>(a.0, a.0),
        });
        fn shuffle<const I: i32>(a: Self, b: Self) -> Self = U32x4(shuffle_words::<I>(a.0, b.0));
    }

    #[inline(always)]
    unsafe fn splat_row(row: *const u32) -> Self {
        // SAFETY: the caller promised four readable words.
        unsafe { U32x4(v128_load(row.cast())) }
    }

    #[inline(always)]
    unsafe fn gather_rows(blocks: *const *const u8, offset: usize) -> Self {
        // SAFETY: the caller promised one pointer, with 16 readable bytes at the offset.
        unsafe { U32x4(v128_load((*blocks).wrapping_add(offset).cast())) }
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        // SAFETY: the caller promised 32 writable bytes.
        unsafe {
            v128_store(to.cast(), first.0);
            v128_store(to.add(16).cast(), second.0);
        }
    }
}

impl Columns for U32x4 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised four pointers, with 64 readable bytes at the offset of each.
        unsafe {
            let at = |i: usize, quarter: usize| (*blocks.add(i)).wrapping_add(offset + 16 * quarter).cast();
            let mut words = [U32x4(u32x4_splat(0)); 16];
            let mut q = 0;
            while q < 4 {
                let rows =
                    [v128_load(at(0, q)), v128_load(at(1, q)), v128_load(at(2, q)), v128_load(at(3, q))];
                let [a, b, c, d] = transpose(rows);
                words[4 * q] = U32x4(a);
                words[4 * q + 1] = U32x4(b);
                words[4 * q + 2] = U32x4(c);
                words[4 * q + 3] = U32x4(d);
                q += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_chaining_values(w: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 4 * 32 writable bytes.
        unsafe {
            let first = transpose([w[0].0, w[1].0, w[2].0, w[3].0]);
            let second = transpose([w[4].0, w[5].0, w[6].0, w[7].0]);
            let mut i = 0;
            while i < 4 {
                v128_store(to.add(32 * i).cast(), first[i]);
                v128_store(to.add(32 * i + 16).cast(), second[i]);
                i += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn store_blocks(w: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 4 * 64 writable bytes.
        unsafe {
            let mut q = 0;
            while q < 4 {
                let rows = transpose([w[4 * q].0, w[4 * q + 1].0, w[4 * q + 2].0, w[4 * q + 3].0]);
                let mut i = 0;
                while i < 4 {
                    v128_store(to.add(64 * i + 16 * q).cast(), rows[i]);
                    i += 1;
                }
                q += 1;
            }
        }
    }

    forward! {
        fn unzip(left: Self, right: Self) -> (Self, Self) = (
            U32x4(u32x4_shuffle::<0, 2, 4, 6>(left.0, right.0)),
            U32x4(u32x4_shuffle::<1, 3, 5, 7>(left.0, right.0)),
        );
        fn equal(a: Self, b: Self) -> u32 = u32::from(u32x4_bitmask(u32x4_eq(a.0, b.0)));
        fn select(mask: u32, yes: Self, no: Self) -> Self = U32x4(blend(mask, yes.0, no.0));
    }
}

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
        fn opaque(a: Self) -> Self = a;
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
    unsafe fn load_states(states: *const *mut u64) -> [Self; 8] {
        // SAFETY: the caller promised two pointers at eight words each.
        unsafe {
            let row = |i: usize, pair: usize| v128_load((*states.add(i)).add(2 * pair).cast());
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
    unsafe fn store_states(words: [Self; 8], states: *const *mut u64) {
        let mut i = 0;
        while i < 4 {
            let (first, second) = zip(words[2 * i].0, words[2 * i + 1].0);
            // SAFETY: see `load_states`.
            unsafe {
                v128_store((*states).add(2 * i).cast(), first);
                v128_store((*states.add(1)).add(2 * i).cast(), second);
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
    unsafe fn load_states(states: *const *mut u32) -> [Self; 8] {
        // SAFETY: the caller promised four pointers at eight words each.
        unsafe {
            let mut words = [U32x4(u32x4_splat(0)); 8];
            let mut half = 0;
            while half < 2 {
                let row = |lane: usize| v128_load((*states.add(lane)).add(4 * half).cast());
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
    unsafe fn store_states(w: [Self; 8], states: *const *mut u32) {
        let mut half = 0;
        while half < 2 {
            let at = 4 * half;
            let rows = transpose([w[at].0, w[at + 1].0, w[at + 2].0, w[at + 3].0]);
            let mut lane = 0;
            while lane < 4 {
                // SAFETY: see `load_states`.
                unsafe { v128_store((*states.add(lane)).add(at).cast(), rows[lane]) };
                lane += 1;
            }
            half += 1;
        }
    }
}
