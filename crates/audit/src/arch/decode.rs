//! What a decoder is, and what it says of an instruction.

/// One step of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Its bytes.
    pub(crate) len: u8,
    /// Whether it is no instruction: bytes that mean nothing to the CPU.
    pub(crate) bad: bool,
    /// The kinds of vector registers that it names: bit i for `Arch::widths()[i]`.
    pub(crate) widths: u8,
    /// Its mnemonic, by a number of the decoder; only with a register in `widths`.
    pub(crate) op: u16,
}

impl Token {
    pub(crate) const fn bad(len: u8) -> Self {
        Self { len, bad: true, widths: 0, op: 0 }
    }
}

/// Decodes one run of bytes of one instruction set.
pub(crate) trait Decode<'b> {
    /// No instruction is longer, in bytes.
    const LONGEST: usize;

    /// Makes ready to decode `bytes`.
    fn new(bytes: &'b [u8]) -> Self;

    /// Decodes at `at`. The bytes from `stop`, which is behind it, belong to something else.
    fn decode(&mut self, at: usize, stop: usize) -> Token;
}
