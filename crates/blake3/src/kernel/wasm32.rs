//! The WebAssembly kernel.

use super::define::{kernel, wide};
use super::table::Tuning;
use crate::generic::columns::Rounds;
use bulla_simd::Pair;
use bulla_simd::cpu::Isa;
use bulla_simd::wasm32::U32x4;

impl Rounds for U32x4 {}

wide!(simd128_wide, "simd128", U32x4);

kernel!(
    SIMD128, simd128_kernel, simd128_wide, Isa::Simd128, Tuning::Only, "simd128",
    U32x4, U32x4,
    up to 2 => rows::<Pair<U32x4>>,
);
