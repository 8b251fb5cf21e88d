//! The kernel for little-endian POWER: many inputs in columns. One input stays in general
//! registers, through the portable code. See `docs/decisions/0201-vectors-without-vector-types.md`.

use super::portable;
use super::{Functions, Tables, Tuning};
use crate::generic::columns;
use crate::job::CompressJob;
use bulla_simd::cpu::Isa;
use bulla_simd::lanes::{U32x4, U64x4};
use bulla_simd::scalar::{U32x1, U64x1};

pub(super) static VSX: Tables = Tables {
    isa: Isa::Vsx,
    tuning: Tuning::Only,
    blake2b: &Functions { lanes: 4, compress: portable::compress::<U64x1>, compress_lanes: lanes_2b },
    blake2s: &Functions { lanes: 4, compress: portable::compress::<U32x1>, compress_lanes: lanes_2s },
};

#[inline(never)]
unsafe fn lanes_2b(jobs: &mut [CompressJob<'_, u64>]) -> usize {
    // SAFETY: the table's caller promised it; so in both functions.
    unsafe { columns::compress_lanes::<U64x4, 4>(jobs) }
}

#[inline(never)]
unsafe fn lanes_2s(jobs: &mut [CompressJob<'_, u32>]) -> usize {
    // SAFETY: see `lanes_2b`.
    unsafe { columns::compress_lanes::<U32x4, 4>(jobs) }
}
