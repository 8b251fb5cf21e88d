//! Mnemonics by the numbers of the decoders.

use super::{aarch64, instruction_set::Arch, x86_64};

impl Arch {
    /// The mnemonic behind [`Token::op`](super::Token::op).
    pub(crate) fn mnemonic(self, op: u16) -> String {
        match self {
            Self::X86_64 => x86_64::mnemonic(op).to_owned(),
            Self::Aarch64 => aarch64::mnemonic(op),
        }
    }

    /// The [`Token::op`](super::Token::op) of `mnemonic`, if there is one.
    pub(crate) fn op(self, mnemonic: &str) -> Option<u16> {
        match self {
            Self::X86_64 => x86_64::op(mnemonic),
            Self::Aarch64 => Some(aarch64::intern(mnemonic)),
        }
    }
}
