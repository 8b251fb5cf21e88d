//! The WebAssembly kernel: many inputs in columns. One input stays in general registers, through
//! the portable code.

use super::portable;
use super::{Functions, Tables, Tuning};
use crate::generic::columns::{self, Rounds};
use crate::job::CompressJob;
use bulla_simd::cpu::Isa;
use bulla_simd::scalar::{U32x1, U64x1};
use bulla_simd::wasm32::{U32x4, U64x2};

impl Rounds for U32x4 {}
impl Rounds for U64x2 {}

pub(super) static SIMD128: Tables = Tables {
    isa: Isa::Simd128,
    tuning: Tuning::Only,
    blake2b: &Functions { lanes: 2, compress: portable::compress::<U64x1>, compress_lanes: lanes_2b },
    blake2s: &Functions { lanes: 4, compress: portable::compress::<U32x1>, compress_lanes: lanes_2s },
};

#[target_feature(enable = "simd128")]
unsafe fn lanes_2b(jobs: &mut [CompressJob<'_, u64>]) -> usize {
    // SAFETY: the table's caller promised it; so in both functions.
    unsafe { columns::compress_lanes::<U64x2, 2>(jobs) }
}

#[target_feature(enable = "simd128")]
unsafe fn lanes_2s(jobs: &mut [CompressJob<'_, u32>]) -> usize {
    // SAFETY: see `lanes_2b`.
    unsafe { columns::compress_lanes::<U32x4, 4>(jobs) }
}
