//! The kernel for CPUs on which a chain of vector operations takes longer than the same chain on
//! general registers: one input goes through general registers, several through vectors. See
//! `docs/decisions/0196-zen-5-one-input-without-vectors.md`.
//!
//! For the same reason two groups go side by side: one group has only four chains. See
//! `docs/decisions/0233-zen-5-two-groups.md`.

use super::portable::PORTABLE;
use super::table::{Functions, KernelShape, Tuning};
use super::x86_64::AVX512_FULL;
#[cfg(target_pointer_width = "64")]
use super::x86_64::avx512_two;
use crate::plan::{Lane, MAX_LANES};
use crate::spec::{BLOCK_LEN, Words};

pub(super) static AVX512_SLOW_CHAINS: Functions = Functions {
    tuning: Tuning::SlowVectorChains,
    shapes: &SHAPES,
    serial_tail_max: 10 * BLOCK_LEN,
    chunk: PORTABLE.chunk,
    block: PORTABLE.block,
    chunk_prefix: PORTABLE.chunk_prefix,
    #[cfg(target_pointer_width = "64")]
    two_groups: Some(avx512_two::two_groups),
    hash_lanes,
    hash_equal_len,
    parents,
    ..AVX512_FULL
};

/// Those of the kernel for several inputs, after the scalar one.
const SHAPES: [KernelShape; AVX512_FULL.shapes.len()] = {
    let mut shapes = [KernelShape::SCALAR; AVX512_FULL.shapes.len()];
    let mut i = 1;
    while i < shapes.len() {
        shapes[i] = AVX512_FULL.shapes[i];
        i += 1;
    }
    shapes
};

unsafe fn hash_lanes(inputs: &[Lane<'_>], key: &Words, flags: u32, out: *mut u8) {
    // SAFETY: the table's caller promised it; so in all functions here.
    unsafe {
        if let [lane] = inputs {
            let (input, len) = (lane.input.as_ptr(), lane.input.len());
            return (PORTABLE.chunk)(input, len, key, lane.counter, flags, lane.last_flags, out);
        }
        (AVX512_FULL.hash_lanes)(inputs, key, flags, out);
    }
}

unsafe fn hash_equal_len(
    inputs: &[*const u8; MAX_LANES],
    n: usize,
    len: usize,
    key: &Words,
    counters: (u64, u64),
    (flags, last_flags): (u32, u32),
    out: *mut u8,
) {
    // SAFETY: see `hash_lanes`.
    unsafe {
        if n == 1 {
            return (PORTABLE.chunk)(inputs[0], len, key, counters.0, flags, last_flags, out);
        }
        (AVX512_FULL.hash_equal_len)(inputs, n, len, key, counters, (flags, last_flags), out);
    }
}

unsafe fn parents(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
    // SAFETY: see `hash_lanes`.
    unsafe {
        if n == 1 {
            return (PORTABLE.parents)(values, 1, key, flags, out);
        }
        (AVX512_FULL.parents)(values, n, key, flags, out);
    }
}
