//! Kernels over arrays instead of vector registers. With them, every machine, also Miri's, can run the generic bodies. The shapes are those
//! of the kernels for SSE4.1 and AVX-512.

use super::table::{Functions, Tables, Tuning};
use crate::generic::columns::{self, Rounds};
use crate::generic::rows::{self, Compiled};
use bulla_simd::arrays::Array;
use bulla_simd::cpu::Isa;

impl<const N: usize> Rounds for Array<u32, N> {}
impl<const N: usize> Rounds for Array<u64, N> {}

/// The vectors of the kernels for architectures without vector types. Miri would take four times as long for their rounds.
#[cfg(not(miri))]
type Narrow<W> = bulla_simd::lanes::Lanes<W, 4>;
#[cfg(miri)]
type Narrow<W> = Array<W, 4>;

pub(crate) static NARROW: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 4,
        compress: rows::input::<Compiled<Narrow<u64>>>,
        lanes_of: columns::step::<Narrow<u64>, 4>,
    },
    blake2s: &Functions {
        lanes: 4,
        compress: rows::input::<Compiled<Narrow<u32>>>,
        lanes_of: columns::step::<Narrow<u32>, 4>,
    },
};

pub(crate) static WIDE: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 8,
        compress: rows::input::<Compiled<Array<u64, 4>>>,
        lanes_of: columns::step::<Array<u64, 8>, 8>,
    },
    blake2s: &Functions {
        lanes: 16,
        compress: rows::input::<Compiled<Array<u32, 4>>>,
        lanes_of: columns::step::<Array<u32, 16>, 16>,
    },
};

mod tests;
