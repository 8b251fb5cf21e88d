//! The instruction sets, and their kinds of vector registers.

use serde::{Deserialize, Serialize};

/// An instruction set whose code is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// x86-64.
    #[serde(rename = "x86-64")]
    X86_64,
    /// AArch64, little-endian.
    Aarch64,
}

/// The number of kinds of vector registers that are distinguished.
pub(crate) const WIDTHS: usize = 3;

impl Arch {
    /// Its usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The kinds of vector registers that are counted separately, narrowest first.
    ///
    /// - x86-64: registers of 128, 256 and 512 bits.
    /// - AArch64: scalar floating point (`b`, `h`, `s`, `d`), Advanced SIMD (`v`, `q`), SVE and SME
    ///   (`z`, `p`, `za`).
    #[must_use]
    pub fn widths(self) -> [&'static str; WIDTHS] {
        match self {
            Self::X86_64 => ["xmm", "ymm", "zmm"],
            Self::Aarch64 => ["fp", "neon", "sve"],
        }
    }

    /// The bit of the kind of register called `name`.
    pub(crate) fn width_bit(self, name: &str) -> Option<u8> {
        Some(1 << self.widths().iter().position(|width| *width == name)?)
    }
}

/// The index in `Arch::widths()` of the widest register in the bits `widths`, which must not be
/// empty.
pub(crate) fn widest(widths: u8) -> usize {
    debug_assert!(widths != 0);
    7 - widths.leading_zeros() as usize
}
