//! The kernel for IBM Z with the vector facility: four inputs in columns, one in rows.
//! See `docs/decisions/0201-vectors-without-vector-types.md`.

use super::define::{kernel, wide};
use super::table::Tuning;
use bulla_simd::cpu::Isa;
use bulla_simd::lanes::U32x4;

wide!(vector_wide, target_feature(enable = "vector"), U32x4);

// Two inputs in rows would be slower than four in columns.
kernel!(
    VECTOR,
    vector_kernel,
    vector_wide,
    Isa::ZVector,
    Tuning::Only,
    target_feature(enable = "vector"),
    U32x4,
    U32x4,
);
