//! The traits of the `digest` crate.

use crate::{BLOCK_LEN, Hasher, KEY_LEN, OUT_LEN, OutputReader};
use digest::array::sizes::{U32, U64};
use digest::common::{BlockSizeUser, KeySizeUser};
use digest::{
    ExtendableOutput, ExtendableOutputReset, FixedOutput, FixedOutputReset, HashMarker, Key, KeyInit,
    MacMarker, Output, OutputSizeUser, Reset, Update, XofReader,
};

const _: () = assert!(OUT_LEN == 32 && KEY_LEN == 32 && BLOCK_LEN == 64);

impl HashMarker for Hasher {}

impl MacMarker for Hasher {}

impl Update for Hasher {
    fn update(&mut self, data: &[u8]) {
        Hasher::update(self, data);
    }
}

impl Reset for Hasher {
    fn reset(&mut self) {
        Hasher::reset(self);
    }
}

impl OutputSizeUser for Hasher {
    type OutputSize = U32;
}

impl BlockSizeUser for Hasher {
    type BlockSize = U64;
}

impl KeySizeUser for Hasher {
    type KeySize = U32;
}

impl KeyInit for Hasher {
    fn new(key: &Key<Self>) -> Self {
        Hasher::new_keyed(&(*key).into())
    }
}

impl FixedOutput for Hasher {
    fn finalize_into(self, out: &mut Output<Self>) {
        out.copy_from_slice(self.finalize().as_bytes());
    }
}

impl FixedOutputReset for Hasher {
    fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
        out.copy_from_slice(self.finalize().as_bytes());
        self.reset();
    }
}

impl ExtendableOutput for Hasher {
    type Reader = OutputReader;

    fn finalize_xof(self) -> OutputReader {
        Hasher::finalize_xof(&self)
    }
}

impl ExtendableOutputReset for Hasher {
    fn finalize_xof_reset(&mut self) -> OutputReader {
        let reader = Hasher::finalize_xof(self);
        self.reset();
        reader
    }
}

impl XofReader for OutputReader {
    fn read(&mut self, out: &mut [u8]) {
        self.fill(out);
    }
}
