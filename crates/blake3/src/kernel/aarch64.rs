//! The AArch64 kernel: four inputs in columns, and few in rows.

use super::define::{kernel, wide};
use super::table::Tuning;
use crate::generic::column_rounds::{InTurn, Rounds};
use bulla_simd::Pair;
use bulla_simd::aarch64::U32x4;
use bulla_simd::cpu::Isa;

impl Rounds for U32x4 {
    type Messages = InTurn<Self>;
}

wide!(neon_wide, target_feature(enable = "neon"), U32x4);

kernel!(
    NEON, neon_kernel, neon_wide, Isa::Neon, Tuning::Only, target_feature(enable = "neon"),
    U32x4, U32x4,
    up to 2 => rows::<Pair<U32x4>>,
);
