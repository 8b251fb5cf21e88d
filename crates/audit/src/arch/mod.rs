//! Instruction sets: their vector registers, their decoders, and the properties of an instruction
//! that the audit counts.

pub(crate) mod aarch64;
mod class;
pub(crate) mod x86_64;

pub use self::class::Class;

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

/// One step of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Its length in bytes.
    pub(crate) len: u8,
    /// Whether the bytes are not an instruction.
    pub(crate) bad: bool,
    /// The kinds of vector registers that it names: bit i for `Arch::widths()[i]`.
    pub(crate) widths: u8,
    /// Its mnemonic, as the decoder's number; only if `widths` has a register.
    pub(crate) op: u16,
}

impl Token {
    pub(crate) const fn bad(len: u8) -> Self {
        Self { len, bad: true, widths: 0, op: 0 }
    }
}

/// Decodes one run of bytes of one instruction set.
pub(crate) trait Decode<'b> {
    /// The length of the longest instruction in bytes.
    const MAX_INSTRUCTION_LEN: usize;

    /// Prepares to decode `bytes`.
    fn new(bytes: &'b [u8]) -> Self;

    /// Decodes at `at`. The bytes from `stop`, which comes later, belong to something else.
    fn decode(&mut self, at: usize, stop: usize) -> Token;
}

impl Arch {
    /// The mnemonic behind [`Token::op`](Token::op).
    pub(crate) fn mnemonic(self, op: u16) -> String {
        match self {
            Self::X86_64 => x86_64::mnemonic(op).to_owned(),
            Self::Aarch64 => aarch64::mnemonic(op),
        }
    }

    /// The [`Token::op`](Token::op) of `mnemonic`, if there is one.
    pub(crate) fn op(self, mnemonic: &str) -> Option<u16> {
        match self {
            Self::X86_64 => x86_64::op(mnemonic),
            Self::Aarch64 => Some(aarch64::intern(mnemonic)),
        }
    }
}
