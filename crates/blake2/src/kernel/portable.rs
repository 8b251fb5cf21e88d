//! The portable kernel: one input at a time, through the column form of one lane, which is the
//! plain scalar algorithm.

use super::{Functions, Tables, Tuning};
use crate::generic::columns::{self, Rounds};
use crate::job::{CompressJob, Finalization, StridedInput};
use bulla_simd::cpu::Isa;
use bulla_simd::scalar::{U32x1, U64x1};

pub(super) static PORTABLE: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions { lanes: 1, compress: compress::<U64x1>, compress_lanes: compress_lanes::<U64x1> },
    blake2s: &Functions { lanes: 1, compress: compress::<U32x1>, compress_lanes: compress_lanes::<U32x1> },
};

pub(super) unsafe fn compress<V: Rounds>(
    words: &mut [V::Word; 8],
    input: StridedInput,
    counter: [V::Word; 2],
    last: Finalization,
) {
    // SAFETY: the table's caller promised readable input; one lane needs no instruction set.
    unsafe { columns::compress_input::<V>(words, input, counter, last) }
}

/// Never called, because there is only one lane, but correct.
unsafe fn compress_lanes<V: Rounds>(jobs: &mut [CompressJob<'_, V::Word>]) -> usize {
    for job in jobs {
        // SAFETY: the table's caller promised readable input.
        while unsafe { columns::compress_lanes::<V, 1>(core::slice::from_mut(job)) } > 0 {}
    }
    0
}
