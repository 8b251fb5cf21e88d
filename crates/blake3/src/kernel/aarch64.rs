//! The AArch64 kernel: eight or four inputs in columns. One input goes through general registers,
//! and so do two, one after the other. See `docs/decisions/0201-vectors-without-vector-types.md`.

use super::define::{beside_scalar, wide};
use crate::generic::columns::{LoadBetween, Rounds};
use crate::spec::CHUNK_LEN;
use bulla_simd::Pair;
use bulla_simd::aarch64::U32x4;
use bulla_simd::cpu::Isa;

impl Rounds for U32x4 {
    type Messages = LoadBetween<Self>;
}

impl Rounds for Pair<U32x4> {
    type Messages = LoadBetween<Self>;
}

// Two vectors, because each operation waits two cycles for the one before it, and there are up to
// four units.
wide!(neon_wide, target_feature(enable = "neon"), Pair<U32x4>);

beside_scalar!(
    NEON, neon_kernel, neon_wide, Isa::Neon, CHUNK_LEN, target_feature(enable = "neon"), Pair<U32x4>,
    up to 4 => columns::<U32x4>,
);
