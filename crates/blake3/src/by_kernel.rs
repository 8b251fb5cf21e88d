//! Hashing by a kernel that the caller names.

use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::kernel::Kernel;
use crate::many::hash_many_in;
use crate::mode::Mode;
use crate::oneshot::digest;
use crate::spec::IV;

impl Kernel {
    /// Like [`hash`](crate::hash), but by this kernel instead of the process's kernel.
    #[inline]
    pub fn hash(self, input: &[u8]) -> Hash {
        digest(self.0, input, &IV, 0)
    }

    /// The digest of `input` in any mode, by this kernel.
    #[inline]
    pub fn hash_in(self, mode: Mode<'_>, input: &[u8]) -> Hash {
        digest(self.0, input, &mode.key_words(), mode.flags())
    }

    /// Like [`hash_many`](crate::hash_many), but by this kernel.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as `inputs`.
    pub fn hash_many(self, inputs: &[&[u8]], out: &mut [Hash]) {
        hash_many_in(self.0, &IV, 0, inputs, out);
    }

    /// A [`Hasher`] that uses this kernel instead of the process's kernel.
    pub fn hasher(self, mode: Mode<'_>) -> Hasher {
        Hasher::with(self.0, &mode.key_words(), mode.flags())
    }
}
