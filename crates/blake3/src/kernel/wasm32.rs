//! The WebAssembly kernel, and the two functions in the npm package's module.
//!
//! Browsers download every byte of that module, so it contains each form once, in a function that
//! is not inlined: four inputs in columns, and one input in rows.

use super::define::{kernel, wide};
use super::table::Tuning;
use crate::generic::columns::{LoadBetween, Rounds, compress};
use crate::generic::rows::rounds;
use crate::spec::{BLOCK_LEN, IV, OUT_LEN, Words};
use bulla_simd::cpu::Isa;
use bulla_simd::{Columns as _, Pair, Rows as _, Vector as _};
use core::arch::wasm32::{v128_and, v128_load};
use core::ops::Range;

pub use bulla_simd::wasm32::U32x4;

impl Rounds for U32x4 {
    type Messages = LoadBetween<Self>;
}

wide!(simd128_wide, target_feature(enable = "simd128"), U32x4);

kernel!(
    SIMD128, simd128_kernel, simd128_wide, Isa::Simd128, Tuning::Only, target_feature(enable = "simd128"),
    U32x4, U32x4,
    up to 2 => rows::<Pair<U32x4>>,
);

/// The column form: absorbs the blocks `range` of every lane. `rest` has the last four words of the
/// state: counter, length, flags. `edges` has the additional flags of the first and of the last of
/// these blocks.
///
/// # Safety
///
/// Every block in `range` of every lane must be readable: 64 bytes each.
#[inline(never)]
pub unsafe fn absorb4(
    h: &mut [U32x4; 8],
    blocks: &[*const u8; 4],
    range: Range<usize>,
    rest: &[U32x4; 4],
    edges: (u32, u32),
) {
    let [low, high, len, flags] = *rest;
    let (mut value, mut first) = (*h, edges.0);
    for block in range.clone() {
        let last = if block + 1 == range.end { edges.1 } else { 0 };
        // SAFETY: as the caller promised.
        unsafe {
            let flags = U32x4::xor(flags, U32x4::splat(first | last));
            let m = U32x4::load_blocks(blocks.as_ptr(), BLOCK_LEN * block);
            value = compress(&value, &m, (low, high), len, flags);
        }
        first = 0;
    }
    *h = value;
}

/// The row form: absorbs one input of at most a chunk, and writes both halves of the last block's
/// output. The first half is the next chaining value. `flags` apply to every block; of the
/// additional flags, the first apply to the first block and the second to the last.
///
/// # Safety
///
/// `input` must be readable for `len` bytes and up to the next multiple of 64, at least 64; both
/// halves must be writable for 32.
#[inline(never)]
pub unsafe fn fold1(
    mut input: *const u8,
    mut len: usize,
    key: &Words,
    counter: u64,
    mut flags: u32,
    (mut first_flags, last_flags): (u32, u32),
    halves: [*mut u8; 2],
) {
    // SAFETY: as the caller promised; whole blocks are read.
    unsafe {
        let mut h = [U32x4::load(key.as_ptr()), U32x4::load(key.as_ptr().add(4))];
        let iv = U32x4::load(IV.as_ptr());
        loop {
            let block = len.min(BLOCK_LEN);
            len -= block;
            let mut m = [0, 16, 32, 48].map(|at| U32x4::load(input.add(at).cast()));
            if len == 0 {
                flags |= last_flags;
                if block < BLOCK_LEN {
                    m = cut(m, block);
                }
            }
            let rest = U32x4::splat_u64_pair(counter, block as u64 | u64::from(flags | first_flags) << 32);
            let [a, b, c, d] = rounds([h[0], h[1], iv, rest], m);
            let next = [U32x4::xor(a, c), U32x4::xor(b, d)];
            if len == 0 {
                U32x4::store_row_pairs(next[0], next[1], halves[0]);
                U32x4::store_row_pairs(U32x4::xor(c, h[0]), U32x4::xor(d, h[1]), halves[1]);
                return;
            }
            h = next;
            first_flags = 0;
            input = input.add(BLOCK_LEN);
        }
    }
}

/// A block of `len` bytes, padded with zeros in registers. If it were padded in memory, it would be
/// read before the narrow writes have arrived there, which costs a fifth of a compression.
#[inline(always)]
fn cut(block: [U32x4; 4], len: usize) -> [U32x4; 4] {
    static MASKS: [[u8; BLOCK_LEN]; 2] = [[0xff; BLOCK_LEN], [0; BLOCK_LEN]];
    let masks = MASKS.as_flattened()[BLOCK_LEN - len..].as_ptr();
    let mut i = 0;
    block.map(|words| {
        // SAFETY: 64 bytes from there are in the table.
        let mask = unsafe { v128_load(masks.add(16 * i).cast()) };
        i += 1;
        U32x4(v128_and(words.0, mask))
    })
}

/// Four chaining values from columns.
#[inline(always)]
pub fn store_chaining_values(h: &[U32x4; 8], values: &mut [[u8; OUT_LEN]; 4]) {
    // SAFETY: 4 * 32 bytes are writable.
    unsafe { U32x4::store_chaining_values(*h, values.as_mut_ptr().cast()) }
}

/// `n <= 64` bytes from `from`, and zeros after them, to the 64 bytes at `to`.
///
/// # Safety
///
/// `from` must be readable for n bytes, `to` writable for 64.
#[inline(always)]
pub unsafe fn copy_padded(from: *const u8, n: usize, to: *mut u8) {
    // SAFETY: as the caller promised.
    unsafe { U32x4::copy_padded(from, n, to) }
}
