//! The kernel for little-endian POWER: four inputs in columns. One input goes through general
//! registers: the compiler makes no vectors of rows here. See
//! `docs/decisions/0201-vectors-without-vector-types.md`.

use super::define::{beside_scalar, wide};
use crate::spec::BLOCK_LEN;
use bulla_simd::cpu::Isa;
use bulla_simd::lanes::U32x4;

// There is nothing to enable: the target has the instructions everywhere.
wide!(vsx_wide, inline(never), U32x4);

beside_scalar!(VSX, vsx_kernel, vsx_wide, Isa::Vsx, 6 * BLOCK_LEN, inline(never), U32x4,);
