//! The kernel for IBM Z with the vector facility: many inputs in columns, and one input of BLAKE2s
//! in rows. One input of BLAKE2b stays in general registers. See
//! `docs/decisions/0201-vectors-without-vector-types.md`.

use super::portable;
use super::{Functions, Tables, Tuning};
use crate::generic::columns;
use crate::generic::rows::{self, CompiledRounds};
use crate::job::{CompressJob, Finalization, StridedInput};
use bulla_simd::cpu::Isa;
use bulla_simd::lanes::{U32x4, U64x4};
use bulla_simd::scalar::U64x1;

pub(super) static VECTOR: Tables = Tables {
    isa: Isa::ZVector,
    tuning: Tuning::Only,
    blake2b: &Functions { lanes: 4, compress: portable::compress::<U64x1>, compress_lanes: lanes_2b },
    blake2s: &Functions { lanes: 4, compress: compress_2s, compress_lanes: lanes_2s },
};

#[target_feature(enable = "vector")]
unsafe fn compress_2s(words: &mut [u32; 8], input: StridedInput, counter: [u32; 2], last: Finalization) {
    // SAFETY: the table's caller promised it; so in all functions here.
    unsafe { rows::compress_input::<CompiledRounds<U32x4>>(words, input, counter, last) }
}

#[target_feature(enable = "vector")]
unsafe fn lanes_2b(jobs: &mut [CompressJob<'_, u64>]) -> usize {
    // SAFETY: see `compress_2s`.
    unsafe { columns::compress_lanes::<U64x4, 4>(jobs) }
}

#[target_feature(enable = "vector")]
unsafe fn lanes_2s(jobs: &mut [CompressJob<'_, u32>]) -> usize {
    // SAFETY: see `compress_2s`.
    unsafe { columns::compress_lanes::<U32x4, 4>(jobs) }
}
