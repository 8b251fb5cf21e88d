//! Kernels over arrays instead of vector registers. With them, every machine, also Miri's, can run the generic bodies. The shapes are those
//! of the kernels for SSE4.1 and AVX-512.

use super::table::{Functions, Tables, Tuning};
use crate::generic::columns::{self, Rounds};
use crate::generic::rows::{self, Compiled};
use bulla_simd::arrays::Array;
use bulla_simd::cpu::Isa;

impl<const N: usize> Rounds for Array<u32, N> {}
impl<const N: usize> Rounds for Array<u64, N> {}

pub(crate) static NARROW: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 2,
        compress: rows::input::<Compiled<Array<u64, 4>>>,
        lanes_of: columns::step::<Array<u64, 2>, 2>,
    },
    blake2s: &Functions {
        lanes: 4,
        compress: rows::input::<Compiled<Array<u32, 4>>>,
        lanes_of: columns::step::<Array<u32, 4>, 4>,
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
