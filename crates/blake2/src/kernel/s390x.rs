//! The kernel for IBM Z with the vector facility: many inputs in columns, and one input of BLAKE2s
//! in rows. One input of BLAKE2b stays in general registers. See
//! `docs/decisions/0201-vectors-without-vector-types.md`.

use super::portable;
use super::table::{Functions, Tables, Tuning};
use crate::generic::columns;
use crate::generic::rows::{self, Compiled};
use crate::job::{Input, Job, Last};
use bulla_simd::cpu::Isa;
use bulla_simd::lanes::{U32x4, U64x4};
use bulla_simd::scalar::U64x1;

pub(super) static VECTOR: Tables = Tables {
    isa: Isa::ZVector,
    tuning: Tuning::Only,
    blake2b: &Functions { lanes: 4, compress: portable::compress::<U64x1>, lanes_of: lanes_2b },
    blake2s: &Functions { lanes: 4, compress: compress_2s, lanes_of: lanes_2s },
};

#[target_feature(enable = "vector")]
unsafe fn compress_2s(words: &mut [u32; 8], input: Input, counter: [u32; 2], last: Last) {
    // SAFETY: the table's caller promised it; so in all functions here.
    unsafe { rows::input::<Compiled<U32x4>>(words, input, counter, last) }
}

#[target_feature(enable = "vector")]
unsafe fn lanes_2b(jobs: &mut [Job<'_, u64>]) -> usize {
    // SAFETY: see `compress_2s`.
    unsafe { columns::step::<U64x4, 4>(jobs) }
}

#[target_feature(enable = "vector")]
unsafe fn lanes_2s(jobs: &mut [Job<'_, u32>]) -> usize {
    // SAFETY: see `compress_2s`.
    unsafe { columns::step::<U32x4, 4>(jobs) }
}
