//! The AArch64 backend: NEON, 128-bit vectors without rotates.
//!
//! There is nothing to detect: the calling convention of every target that has these types passes
//! them in vector registers, so that no program for it starts on a processor without them.

use crate::vector::{Columns, Rows, Vector, WordColumns};
use core::arch::{aarch64::*, asm};

/// Four words in a vector register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct U32x4(pub uint32x4_t);

/// Trait methods that consist of one expression of intrinsics.
macro_rules! forward {
    ($(fn $name:ident $(<const $imm:ident: i32>)? ($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:expr;)*) => { $(
        #[inline(always)]
        unsafe fn $name $(<const $imm: i32>)? ($($arg: $type),*) $(-> $ret)? {
            // SAFETY: the target has NEON; pointers are valid as the method's caller promised.
            #[allow(unused_unsafe, reason = "some bodies contain no intrinsic")]
            unsafe {
                $body
            }
        }
    )* };
}

/// The places of the bytes of a vector whose words of `word` bytes are rotated right by `by` bytes.
const fn byte_rotation(word: usize, by: usize) -> [u8; 16] {
    let mut places = [0; 16];
    let mut i = 0;
    while i < 16 {
        places[i] = (i / word * word + (i + by) % word) as u8;
        i += 1;
    }
    places
}

/// Words of `WORD` bytes rotated right by `BY` bytes.
///
/// # Safety
///
/// The CPU must have NEON.
#[inline(always)]
unsafe fn rotate_bytes<const WORD: usize, const BY: usize>(a: uint8x16_t) -> uint8x16_t {
    let places = const { &byte_rotation(WORD, BY) };
    // SAFETY: sixteen bytes are readable; the caller has NEON.
    unsafe { vqtbl1q_u8(a, vld1q_u8(places.as_ptr())) }
}

/// The four-by-four transpose of words.
///
/// # Safety
///
/// The CPU must have NEON.
#[inline(always)]
unsafe fn transpose(r: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    // SAFETY: the caller has NEON.
    unsafe {
        let wide = |a| vreinterpretq_u64_u32(a);
        let (a, b) = (wide(vtrn1q_u32(r[0], r[1])), wide(vtrn2q_u32(r[0], r[1])));
        let (c, d) = (wide(vtrn1q_u32(r[2], r[3])), wide(vtrn2q_u32(r[2], r[3])));
        [
            vreinterpretq_u32_u64(vtrn1q_u64(a, c)),
            vreinterpretq_u32_u64(vtrn1q_u64(b, d)),
            vreinterpretq_u32_u64(vtrn2q_u64(a, c)),
            vreinterpretq_u32_u64(vtrn2q_u64(b, d)),
        ]
    }
}

/// All bits of the lanes whose bit in `mask` is set.
///
/// # Safety
///
/// The CPU must have NEON.
#[inline(always)]
unsafe fn chosen(mask: u32) -> uint32x4_t {
    // SAFETY: four words are readable; the caller has NEON.
    unsafe { vtstq_u32(vdupq_n_u32(mask), vld1q_u32([1, 2, 4, 8].as_ptr())) }
}

impl Vector for U32x4 {
    type Word = u32;
    const LANES: usize = 4;

    forward! {
        fn splat(word: u32) -> Self = U32x4(vdupq_n_u32(word));
        fn load(from: *const u32) -> Self = U32x4(vld1q_u32(from));
        fn add(a: Self, b: Self) -> Self = U32x4(vaddq_u32(a.0, b.0));
        fn xor(a: Self, b: Self) -> Self = U32x4(veorq_u32(a.0, b.0));
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller promised four writable words.
        unsafe { vst1q_u32(to, self.0) }
    }

    #[inline(always)]
    unsafe fn rotate<const I: usize>(a: Self) -> Self {
        // SAFETY: the caller promised NEON.
        unsafe {
            U32x4(match I {
                0 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(a.0))),
                1 => vsriq_n_u32::<12>(vshlq_n_u32::<20>(a.0), a.0),
                2 => vreinterpretq_u32_u8(rotate_bytes::<4, 1>(vreinterpretq_u8_u32(a.0))),
                _ => vsriq_n_u32::<7>(vshlq_n_u32::<25>(a.0), a.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn opaque(a: Self) -> Self {
        let mut value = a.0;
        // SAFETY: no instruction.
        unsafe { asm!("/* {0:v} */", inout(vreg) value, options(pure, nomem, nostack, preserves_flags)) }
        U32x4(value)
    }
}

impl Rows for U32x4 {
    forward! {
        fn splat_row(row: *const u32) -> Self = U32x4(vld1q_u32(row));
        fn splat_u64_pair(low: u64, high: u64) -> Self =
            U32x4(vreinterpretq_u32_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high))));
        fn gather_rows(blocks: *const *const u8, offset: usize) -> Self =
            U32x4(vreinterpretq_u32_u8(vld1q_u8((*blocks).wrapping_add(offset))));
        fn rotate_words_left<const N: i32>(a: Self) -> Self = U32x4(vextq_u32::<N>(a.0, a.0));
    }

    #[inline(always)]
    unsafe fn store_row_pairs(first: Self, second: Self, to: *mut u8) {
        // SAFETY: the caller promised 32 writable bytes.
        unsafe {
            vst1q_u8(to, vreinterpretq_u8_u32(first.0));
            vst1q_u8(to.add(16), vreinterpretq_u8_u32(second.0));
        }
    }

    /// The compiler sees one shuffle in the four words, and finds its instructions.
    #[inline(always)]
    unsafe fn shuffle<const I: i32>(a: Self, b: Self) -> Self {
        // SAFETY: vectors and arrays of four words have the same size, and every value of one is
        // one of the other.
        unsafe {
            let [a, b] = core::mem::transmute::<[uint32x4_t; 2], [[u32; 4]; 2]>([a.0, b.0]);
            let place = |k: u32| (I >> (2 * k) & 3) as usize;
            U32x4(core::mem::transmute::<[u32; 4], uint32x4_t>([
                a[place(0)],
                a[place(1)],
                b[place(2)],
                b[place(3)],
            ]))
        }
    }
}

impl Columns for U32x4 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        // SAFETY: the caller promised four pointers, with 64 readable bytes at the offset of each.
        unsafe {
            let row = |i: usize, quarter: usize| {
                vreinterpretq_u32_u8(vld1q_u8((*blocks.add(i)).wrapping_add(offset + 16 * quarter)))
            };
            let mut words = [U32x4(vdupq_n_u32(0)); 16];
            let mut q = 0;
            while q < 4 {
                let columns = transpose([row(0, q), row(1, q), row(2, q), row(3, q)]);
                let mut i = 0;
                while i < 4 {
                    words[4 * q + i] = U32x4(columns[i]);
                    i += 1;
                }
                q += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_chaining_values(words: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 4 * 32 writable bytes.
        unsafe { store_columns(&words, to) }
    }

    #[inline(always)]
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 4 * 64 writable bytes.
        unsafe { store_columns(&words, to) }
    }

    forward! {
        fn unzip(left: Self, right: Self) -> (Self, Self) =
            (U32x4(vuzp1q_u32(left.0, right.0)), U32x4(vuzp2q_u32(left.0, right.0)));
        fn equal(a: Self, b: Self) -> u32 =
            vaddvq_u32(vandq_u32(vceqq_u32(a.0, b.0), vld1q_u32([1, 2, 4, 8].as_ptr())));
        fn select(mask: u32, yes: Self, no: Self) -> Self = U32x4(vbslq_u32(chosen(mask), yes.0, no.0));
    }
}

/// Writes `N` words of each of the four lanes, one lane after the other.
///
/// # Safety
///
/// `16 * N` bytes must be writable. N is a multiple of four.
#[inline(always)]
unsafe fn store_columns<const N: usize>(w: &[U32x4; N], to: *mut u8) {
    let mut q = 0;
    while q < N / 4 {
        // SAFETY: as the caller promised.
        unsafe {
            let rows = transpose([w[4 * q].0, w[4 * q + 1].0, w[4 * q + 2].0, w[4 * q + 3].0]);
            let mut i = 0;
            while i < 4 {
                vst1q_u8(to.add(4 * N * i + 16 * q), vreinterpretq_u8_u32(rows[i]));
                i += 1;
            }
        }
        q += 1;
    }
}

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
    unsafe fn opaque(a: Self) -> Self {
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
    unsafe fn load_states(states: *const *mut u64) -> [Self; 8] {
        // SAFETY: the caller promised two pointers at eight words each.
        unsafe {
            let mut words = [U64x2(vdupq_n_u64(0)); 8];
            let mut i = 0;
            while i < 4 {
                let a = vld1q_u64((*states).add(2 * i));
                let b = vld1q_u64((*states.add(1)).add(2 * i));
                words[2 * i] = U64x2(vtrn1q_u64(a, b));
                words[2 * i + 1] = U64x2(vtrn2q_u64(a, b));
                i += 1;
            }
            words
        }
    }

    #[inline(always)]
    unsafe fn store_states(words: [Self; 8], states: *const *mut u64) {
        let mut i = 0;
        while i < 4 {
            let (a, b) = (words[2 * i].0, words[2 * i + 1].0);
            // SAFETY: see `load_states`.
            unsafe {
                vst1q_u64((*states).add(2 * i), vtrn1q_u64(a, b));
                vst1q_u64((*states.add(1)).add(2 * i), vtrn2q_u64(a, b));
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
            let mut words = [U32x4(vdupq_n_u32(0)); 8];
            let mut half = 0;
            while half < 2 {
                let row = |lane: usize| vld1q_u32((*states.add(lane)).add(4 * half));
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
            // SAFETY: see `load_states`.
            unsafe {
                let rows =
                    transpose([w[4 * half].0, w[4 * half + 1].0, w[4 * half + 2].0, w[4 * half + 3].0]);
                let mut lane = 0;
                while lane < 4 {
                    vst1q_u32((*states.add(lane)).add(4 * half), rows[lane]);
                    lane += 1;
                }
            }
            half += 1;
        }
    }
}
