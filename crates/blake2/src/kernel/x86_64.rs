//! The x86-64 kernels: for each instruction set, separate functions with the generic bodies inlined
//! into them.

use super::portable::PORTABLE;
use super::x86_64_rows::{FastRotate, NoRotate, SlowRotate};
use super::{Functions, Tables, Tuning};
use crate::generic::columns::{self, Rounds};
use crate::generic::rows::{self, CompiledRounds};
use crate::job::{CompressJob, Finalization, StridedInput};
use bulla_simd::Vector;
use bulla_simd::cpu::Isa;
use bulla_simd::x86_64::{avx2, avx512, sse41};

/// Passes the message schedule of all rounds, as the literal numbers that assembly needs, to a
/// macro, after its other arguments: `b` for BLAKE2b, `s` for BLAKE2s (RFC 7693, section 2.7).
macro_rules! schedule {
    (s, $macro:ident!($($arguments:tt)*)) => {
        schedule!(ten, $macro!($($arguments)*))
    };
    (b, $macro:ident!($($arguments:tt)*)) => {
        schedule!(
            ten, $macro!($($arguments)*)
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]
            [14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3]
        )
    };
    (ten, $macro:ident!($($arguments:tt)*) $($more:tt)*) => {
        $macro!(
            $($arguments)*
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]
            [14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3]
            [11 8 12 0 5 2 15 13 10 14 3 6 7 1 9 4]
            [7 9 3 1 13 12 11 14 2 6 5 10 4 0 15 8]
            [9 0 5 7 2 4 10 15 14 1 11 12 6 8 3 13]
            [2 12 6 10 0 11 8 3 4 13 7 5 15 14 1 9]
            [12 5 1 15 14 13 4 10 0 7 6 3 9 2 8 11]
            [13 11 7 14 12 1 3 9 5 0 15 4 8 6 2 10]
            [6 15 14 9 11 3 0 8 12 2 13 7 1 4 10 5]
            [10 2 8 4 7 6 1 5 15 11 9 14 3 12 13 0]
            $($more)*
        )
    };
}
pub(super) use schedule;

impl Rounds for avx512::U32x4 {}
impl Rounds for avx512::U32x8 {}
impl Rounds for avx512::U32x16 {}
impl Rounds for avx512::U64x4 {}
impl Rounds for avx512::U64x8 {}
impl Rounds for sse41::U32x4 {}
impl Rounds for sse41::U64x2 {}

/// The functions for many inputs: a module of two `#[target_feature]` functions. For each hash
/// function, it takes the vectors of the column form, the narrow ones first.
macro_rules! lanes {
    (
        $module:ident, $features:literal,
        blake2b: [$($BNarrow:ty),*] or $BWide:ty,
        blake2s: [$($SNarrow:ty),*] or $SWide:ty
    ) => {
        mod $module {
            use super::*;

            pub(super) const OF_2B: usize = <$BWide as Vector>::LANES;
            pub(super) const OF_2S: usize = <$SWide as Vector>::LANES;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn lanes_2b(jobs: &mut [CompressJob<'_, u64>]) -> usize {
                // SAFETY: the table's caller promised it; so in all functions here.
                unsafe { narrowest!(jobs, [$($BNarrow),*] or $BWide) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn lanes_2s(jobs: &mut [CompressJob<'_, u32>]) -> usize {
                // SAFETY: see `lanes_2b`.
                unsafe { narrowest!(jobs, [$($SNarrow),*] or $SWide) }
            }
        }
    };
}

/// Takes a step with the first vector that has enough lanes.
macro_rules! narrowest {
    ($jobs:ident, [$($Narrow:ty),*] or $Wide:ty) => {{
        $(
            if $jobs.len() <= <$Narrow as Vector>::LANES {
                return columns::compress_lanes::<$Narrow, { <$Narrow as Vector>::LANES }>($jobs);
            }
        )*
        columns::compress_lanes::<$Wide, { <$Wide as Vector>::LANES }>($jobs)
    }};
}

lanes!(
    avx512_lanes, "ssse3,sse4.1,avx2,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq",
    blake2b: [avx512::U64x4] or avx512::U64x8,
    blake2s: [avx512::U32x4, avx512::U32x8] or avx512::U32x16
);

lanes!(
    avx2_lanes, "ssse3,sse4.1,avx2,bmi1,bmi2",
    blake2b: [] or avx2::U64x4,
    blake2s: [sse41::U32x4] or avx2::U32x8
);

lanes!(
    sse41_lanes, "ssse3,sse4.1",
    blake2b: [] or sse41::U64x2,
    blake2s: [] or sse41::U32x4
);

/// A kernel: its tables, and a module of `#[target_feature]` functions for one input, each with its
/// implementation of the rounds. The functions for many inputs are in the module `$lanes`.
macro_rules! kernel {
    (
        $TABLES:ident, $module:ident, $lanes:ident, $isa:expr, $tuning:expr, $features:literal,
        blake2b: $BRounds:ty, blake2s: $SRounds:ty
    ) => {
        pub(super) static $TABLES: Tables = Tables {
            isa: $isa,
            tuning: $tuning,
            blake2b: &Functions {
                lanes: $lanes::OF_2B,
                compress: $module::compress_2b,
                compress_lanes: $lanes::lanes_2b,
            },
            blake2s: &Functions {
                lanes: $lanes::OF_2S,
                compress: $module::compress_2s,
                compress_lanes: $lanes::lanes_2s,
            },
        };

        mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn compress_2b(
                words: &mut [u64; 8],
                input: StridedInput,
                counter: [u64; 2],
                last: Finalization,
            ) {
                // SAFETY: the table's caller promised it; so in both functions.
                unsafe { rows::compress_input::<$BRounds>(words, input, counter, last) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn compress_2s(
                words: &mut [u32; 8],
                input: StridedInput,
                counter: [u32; 2],
                last: Finalization,
            ) {
                // SAFETY: see `compress_2b`.
                unsafe { rows::compress_input::<$SRounds>(words, input, counter, last) }
            }
        }
    };
}

// Two kernels for AVX-512, because the best order of one input's operations depends on the CPU: see
// `docs/decisions/0073-blake2-by-cpu.md`.

kernel!(
    AVX512_FAST_ROTATE, avx512_fast_rotate, avx512_lanes, Isa::Avx512, Tuning::FastRotate,
    "ssse3,sse4.1,avx2,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq",
    blake2b: FastRotate<avx512::U64x4>, blake2s: FastRotate<avx512::U32x4>
);

kernel!(
    AVX512_SLOW_ROTATE, avx512_slow_rotate, avx512_lanes, Isa::Avx512, Tuning::SlowRotate,
    "ssse3,sse4.1,avx2,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq",
    blake2b: SlowRotate<avx512::U64x4>, blake2s: SlowRotate<avx512::U32x4>
);

/// The kernel for CPUs on which a chain of vector operations takes longer than the same chain on
/// general registers: see `docs/decisions/0196-zen-5-one-input-without-vectors.md`.
pub(super) static AVX512_SLOW_CHAINS: Tables = Tables {
    tuning: Tuning::SlowVectorChains,
    blake2b: &Functions { compress: PORTABLE.blake2b.compress, ..*AVX512_FAST_ROTATE.blake2b },
    blake2s: &Functions { compress: PORTABLE.blake2s.compress, ..*AVX512_FAST_ROTATE.blake2s },
    ..AVX512_FAST_ROTATE
};

kernel!(
    AVX2, avx2_kernel, avx2_lanes, Isa::Avx2, Tuning::Only, "ssse3,sse4.1,avx2,bmi1,bmi2",
    blake2b: NoRotate<avx2::U64x4>, blake2s: NoRotate<avx2::U32x4>
);

kernel!(
    SSE41, sse41_kernel, sse41_lanes, Isa::Sse41, Tuning::Only, "ssse3,sse4.1",
    blake2b: CompiledRounds<sse41::U64x4>, blake2s: CompiledRounds<sse41::U32x4>
);
