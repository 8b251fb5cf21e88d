//! Random shapes, the same in every run.

/// A small generator of shapes: the same ones in every run.
pub(crate) struct Random(u64);

impl Random {
    /// A generator of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A length up to `most`, short ones as likely as long ones, often a multiple of a block or a
    /// chunk.
    pub(crate) fn length(&mut self, most: usize) -> usize {
        let scale = 1 + (most as u64 >> self.below(20));
        let len = self.below(scale) as usize;
        match self.below(4) {
            0 => len / 1024 * 1024,
            1 => len / 64 * 64,
            _ => len,
        }
        .min(most)
    }
}
