//! The interface of decoders, and their description of an instruction.

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
    const LONGEST: usize;

    /// Prepares to decode `bytes`.
    fn new(bytes: &'b [u8]) -> Self;

    /// Decodes at `at`. The bytes from `stop`, which comes later, belong to something else.
    fn decode(&mut self, at: usize, stop: usize) -> Token;
}
