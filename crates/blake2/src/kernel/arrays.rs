//! Kernels over arrays instead of vector registers. With them, every machine, also Miri's, can run
//! the generic bodies. The shapes are those of the kernels for SSE4.1 and AVX-512.

use super::table::{Functions, Tables, Tuning};
use crate::generic::SIGMA;
use crate::generic::columns::{self, Rounds};
use crate::generic::rows::{self, CompiledRounds};
use crate::word::Word;
use bulla_simd::arrays::Array;
use bulla_simd::cpu::Isa;
use bulla_simd::{Vector, half_round};

/// A loop over the rounds: all rounds of arrays, one after another, would be a third of a megabyte
/// of code.
macro_rules! in_a_loop {
    ($word:ty) => {
        impl<const N: usize> Rounds for Array<$word, N> {
            #[inline(never)]
            unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
                for schedule in SIGMA.iter().cycle().take(<$word>::ROUNDS) {
                    // SAFETY: arrays need no instruction set.
                    unsafe {
                        half_round!(v, m, schedule, 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                        half_round!(v, m, schedule, 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
                    }
                }
            }
        }
    };
}

in_a_loop!(u32);
in_a_loop!(u64);

/// The vectors of the kernels for architectures without vector types. Miri would take four times as
/// long for their rounds.
#[cfg(not(miri))]
type Narrow<W> = bulla_simd::lanes::Lanes<W, 4>;
#[cfg(miri)]
type Narrow<W> = Array<W, 4>;

pub(crate) static NARROW: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 4,
        compress: rows::compress_input::<CompiledRounds<Narrow<u64>>>,
        compress_lanes: columns::compress_lanes::<Narrow<u64>, 4>,
    },
    blake2s: &Functions {
        lanes: 4,
        compress: rows::compress_input::<CompiledRounds<Narrow<u32>>>,
        compress_lanes: columns::compress_lanes::<Narrow<u32>, 4>,
    },
};

pub(crate) static WIDE: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 8,
        compress: rows::compress_input::<CompiledRounds<Array<u64, 4>>>,
        compress_lanes: columns::compress_lanes::<Array<u64, 8>, 8>,
    },
    blake2s: &Functions {
        lanes: 16,
        compress: rows::compress_input::<CompiledRounds<Array<u32, 4>>>,
        compress_lanes: columns::compress_lanes::<Array<u32, 16>, 16>,
    },
};

mod tests;
