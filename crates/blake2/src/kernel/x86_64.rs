//! The x86-64 kernels: for each instruction set, the generic bodies inlined into functions of its own.

use super::table::{Functions, Input, Lane, Last, Step, Tables};
use crate::generic::columns::{self, Rounds};
use crate::generic::rows;
use bulla_simd::Words;
use bulla_simd::cpu::Isa;
use bulla_simd::x86_64::{avx2, avx512, sse41, words};

impl Rounds for avx512::U32x4 {}
impl Rounds for avx512::U32x8 {}
impl Rounds for avx512::U32x16 {}
impl Rounds for words::U64x4Avx512 {}
impl Rounds for words::U64x8 {}
impl Rounds for avx2::U32x8 {}
impl Rounds for words::U64x4 {}
impl Rounds for sse41::U32x4 {}
impl Rounds for words::U64x2 {}

// Those of AVX-512 are in `x86_64_rows.rs`.
impl rows::Rounds for words::U64x4 {}
impl rows::Rounds for words::U64x4Sse41 {}
impl rows::Rounds for sse41::U32x4 {}

/// A kernel: its tables, and a module of `#[target_feature]` functions. For each hash function there is the vector of the row form, and
/// those of the column form, narrow ones first.
macro_rules! kernel {
    (
        $TABLES:ident, $module:ident, $isa:expr, $features:literal,
        blake2b: $BRow:ty, [$($BNarrow:ty),*] or $BWide:ty,
        blake2s: $SRow:ty, [$($SNarrow:ty),*] or $SWide:ty
    ) => {
        pub(super) static $TABLES: Tables = Tables {
            isa: $isa,
            blake2b: &Functions {
                lanes: <$BWide as Words>::LANES,
                compress: $module::compress_2b,
                lanes_of: $module::lanes_2b,
            },
            blake2s: &Functions {
                lanes: <$SWide as Words>::LANES,
                compress: $module::compress_2s,
                lanes_of: $module::lanes_2s,
            },
        };

        mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn compress_2b(words: &mut [u64; 8], input: Input, counter: [u64; 2], last: Last) {
                // SAFETY: as the table asks of the caller; so in all functions here.
                unsafe { rows::input::<$BRow>(words, input, counter, last) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn compress_2s(words: &mut [u32; 8], input: Input, counter: [u32; 2], last: Last) {
                // SAFETY: see `compress_2b`.
                unsafe { rows::input::<$SRow>(words, input, counter, last) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn lanes_2b(lanes: &mut [Lane<u64>], step: Step) {
                // SAFETY: see `compress_2b`.
                unsafe { narrowest!(lanes, step, [$($BNarrow),*] or $BWide) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn lanes_2s(lanes: &mut [Lane<u32>], step: Step) {
                // SAFETY: see `compress_2b`.
                unsafe { narrowest!(lanes, step, [$($SNarrow),*] or $SWide) }
            }
        }
    };
}

/// A step of the lanes by the first vector that has enough of them.
macro_rules! narrowest {
    ($lanes:ident, $step:ident, [$($Narrow:ty),*] or $Wide:ty) => {{
        $(
            if $lanes.len() <= <$Narrow as Words>::LANES {
                return columns::lanes::<$Narrow, { <$Narrow as Words>::LANES }>($lanes, $step);
            }
        )*
        columns::lanes::<$Wide, { <$Wide as Words>::LANES }>($lanes, $step)
    }};
}

kernel!(
    AVX512, avx512_kernel, Isa::Avx512, "ssse3,sse4.1,avx2,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq",
    blake2b: words::U64x4Avx512, [words::U64x4Avx512] or words::U64x8,
    blake2s: avx512::U32x4, [avx512::U32x4, avx512::U32x8] or avx512::U32x16
);

kernel!(
    AVX2, avx2_kernel, Isa::Avx2, "ssse3,sse4.1,avx2,bmi1,bmi2",
    blake2b: words::U64x4, [] or words::U64x4,
    blake2s: sse41::U32x4, [sse41::U32x4] or avx2::U32x8
);

kernel!(
    SSE41, sse41_kernel, Isa::Sse41, "ssse3,sse4.1",
    blake2b: words::U64x4Sse41, [] or words::U64x2,
    blake2s: sse41::U32x4, [] or sse41::U32x4
);
