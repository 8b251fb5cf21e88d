//! Kernels over arrays instead of vector registers. With them, every machine, also Miri's, can run
//! the generic bodies and the dispatch over them.

use super::define::{kernel, wide};
use super::table::Tuning;
use crate::generic::column_rounds::{LoadBetween, Rounds};
use crate::spec::SCHEDULE;
use bulla_simd::arrays::Array;
use bulla_simd::cpu::Isa;
use bulla_simd::{Pair, Vector, half_round};

impl<const N: usize> Rounds for Array<u32, N> {
    type Messages = LoadBetween<Self>;

    /// A loop, and one function for all kernels: seven rounds of arrays in each of them would be
    /// megabytes of code.
    #[inline(never)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        for schedule in &SCHEDULE {
            // SAFETY: arrays need no instruction set.
            unsafe {
                half_round!(v, m, schedule, 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                half_round!(v, m, schedule, 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            }
        }
    }
}

/// The vectors of the kernels for architectures without vector types. Miri would take four times as
/// long for their rounds.
#[cfg(not(miri))]
type Narrow = bulla_simd::lanes::U32x4;
#[cfg(miri)]
type Narrow = Array<u32, 4>;

wide!(narrow_wide, inline, Narrow);
wide!(middle_wide, inline, Array<u32, 8>);
wide!(wide_wide, inline, Array<u32, 16>);

// The shapes are those of the kernels for SSE4.1, AVX2, and both kinds of AVX-512.

kernel!(
    NARROW, narrow_kernel, narrow_wide, Isa::Portable, Tuning::Only, inline,
    Narrow, Narrow,
    up to 2 => rows::<Pair<Array<u32, 4>>>,
);

kernel!(
    MIDDLE, middle_kernel, middle_wide, Isa::Portable, Tuning::Only, inline,
    Array<u32, 8>, Array<u32, 4>,
    up to 2 => rows::<Array<u32, 8>>,
    up to 4 => rows::<Pair<Array<u32, 8>>>,
);

kernel!(
    WIDE_ROWS, wide_rows_kernel, wide_wide, Isa::Portable, Tuning::Only, inline,
    Array<u32, 16>, Array<u32, 4>,
    up to 2 => rows::<Array<u32, 8>>,
    up to 4 => rows::<Array<u32, 16>>,
    up to 8 => rows::<Pair<Array<u32, 16>>>,
);

kernel!(
    WIDE_COLUMNS, wide_columns_kernel, wide_wide, Isa::Portable, Tuning::Only, inline,
    Array<u32, 16>, Array<u32, 4>,
    up to 2 => rows::<Array<u32, 8>>,
    up to 4 => rows::<Pair<Array<u32, 8>>>,
    up to 8 => columns::<Array<u32, 8>>,
);

mod tests;
