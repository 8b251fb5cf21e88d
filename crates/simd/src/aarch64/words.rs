//! The words of BLAKE2: two of 64 bits in a register, and many inputs with words of 32.

use super::{U32x4, forward, rotate_bytes, transpose};
use crate::vector::{Columns, Vector};
use crate::words::WordColumns;
use core::arch::{aarch64::*, asm};

/// Two words in a vector register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U64x2(pub uint64x2_t);

impl Vector for U64x2 {
    type Word = u64;
    const LANES: usize = 2;

    forward! {
        fn splat(word: u64) -> Self = U64x2(vdupq_n_u64(word));
        fn load(from: *const u64) -> Self = U64x2(vld1q_u64(from));
        fn add(a: Self, b: Self) -> Self = U64x2(vaddq_u64(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U64x2(veorq_u64(a.0, b.0));
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the caller promised two writable words.
        unsafe { vst1q_u64(to, self.0) }
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised NEON.
        unsafe {
            U64x2(match I {
                0 => vreinterpretq_u64_u32(vrev64q_u32(vreinterpretq_u32_u64(a.0))),
                1 => vreinterpretq_u64_u8(rotate_bytes::<8, 3>(vreinterpretq_u8_u64(a.0))),
                2 => vreinterpretq_u64_u8(rotate_bytes::<8, 2>(vreinterpretq_u8_u64(a.0))),
                _ => vsriq_n_u64::<63>(vaddq_u64(a.0, a.0), a.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn pin(a: Self) -> Self {
        let mut value = a.0;
        // SAFETY: no instruction.
        unsafe { asm!("/* {0:v} */", inout(vreg) value, options(pure, nomem, nostack, preserves_flags)) }
        U64x2(value)
    }
}

impl WordColumns for U64x2 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised two pointers, with 128 readable bytes at the offset of each.
        unsafe {
            let row = |i: usize, pair: usize| {
                vreinterpretq_u64_u8(vld1q_u8((*blocks.add(i)).wrapping_add(offset + 16 * pair)))
            };
            let mut words = [U64x2(vdupq_n_u64(0)); 16];
            let mut i = 0;
            while i < 8 {
                let (a, b) = (row(0, i), row(1, i));
                words[2 * i] = U64x2(vtrn1q_u64(a, b));
                words[2 * i + 1] = U64x2(vtrn2q_u64(a, b));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn load_halves(halves: *const *mut u64) -> [Self; 8] {
        // SAFETY: the caller promised two pointers at eight words each.
        unsafe {
            let mut words = [U64x2(vdupq_n_u64(0)); 8];
            let mut i = 0;
            while i < 4 {
                let a = vld1q_u64((*halves).add(2 * i));
                let b = vld1q_u64((*halves.add(1)).add(2 * i));
                words[2 * i] = U64x2(vtrn1q_u64(a, b));
                words[2 * i + 1] = U64x2(vtrn2q_u64(a, b));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_halves(words: [Self; 8], halves: *const *mut u64) {
        let mut i = 0;
        while i < 4 {
            let (a, b) = (words[2 * i].0, words[2 * i + 1].0);
            // SAFETY: see `load_halves`.
            unsafe {
                vst1q_u64((*halves).add(2 * i), vtrn1q_u64(a, b));
                vst1q_u64((*halves.add(1)).add(2 * i), vtrn2q_u64(a, b));
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
            let mut words = [U32x4(vdupq_n_u32(0)); 8];
            let mut half = 0;
            while half < 2 {
                let row = |lane: usize| vld1q_u32((*halves.add(lane)).add(4 * half));
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
            // SAFETY: see `load_halves`.
            unsafe {
                let rows =
                    transpose([w[4 * half].0, w[4 * half + 1].0, w[4 * half + 2].0, w[4 * half + 3].0]);
                let mut lane = 0;
                while lane < 4 {
                    vst1q_u32((*halves.add(lane)).add(4 * half), rows[lane]);
                    lane += 1;
                }
            }
            half += 1;
        }
    }
}
