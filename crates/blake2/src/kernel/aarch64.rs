//! The AArch64 kernel: many inputs in columns. One input stays in general registers, through the
//! portable code.

use super::portable;
use super::{Functions, Tables, Tuning};
use crate::generic::columns::{self, Rounds};
use crate::job::CompressJob;
use bulla_simd::Pair;
use bulla_simd::aarch64::{U32x4, U64x2};
use bulla_simd::cpu::Isa;
use bulla_simd::scalar::{U32x1, U64x1};

impl Rounds for U32x4 {}
impl Rounds for Pair<U32x4> {}
impl Rounds for U64x2 {}
impl Rounds for Pair<U64x2> {}

pub(super) static NEON: Tables = Tables {
    isa: Isa::Neon,
    tuning: Tuning::Only,
    blake2b: &Functions { lanes: 4, compress: portable::compress::<U64x1>, compress_lanes: lanes_2b },
    blake2s: &Functions { lanes: 8, compress: portable::compress::<U32x1>, compress_lanes: lanes_2s },
};

#[target_feature(enable = "neon")]
unsafe fn lanes_2b(jobs: &mut [CompressJob<'_, u64>]) -> usize {
    // SAFETY: the table's caller promised it; so in both functions.
    unsafe { columns::compress_lanes::<Pair<U64x2>, 4>(jobs) }
}

#[target_feature(enable = "neon")]
unsafe fn lanes_2s(jobs: &mut [CompressJob<'_, u32>]) -> usize {
    // SAFETY: see `lanes_2b`.
    unsafe {
        if jobs.len() <= 4 {
            return columns::compress_lanes::<U32x4, 4>(jobs);
        }
        columns::compress_lanes::<Pair<U32x4>, 8>(jobs)
    }
}
