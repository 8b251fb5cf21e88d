//! Hashing by a kernel that the caller names.

use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::kernel::Kernel;
use crate::many::hash_many_in;
use crate::mode::Mode;
use crate::oneshot::digest;
use crate::spec::IV;

impl Kernel {
    /// [`hash`](crate::hash) by this kernel, whatever the process uses otherwise.
    #[inline]
    pub fn hash(self, input: &[u8]) -> Hash {
        digest(self.0, input, &IV, 0)
    }

    /// The digest of `input` in any mode by this kernel, in one go.
    #[inline]
    pub fn hash_in(self, mode: Mode<'_>, input: &[u8]) -> Hash {
        digest(self.0, input, &mode.key_words(), mode.flags())
    }

    /// [`hash_many`](crate::hash_many) by this kernel.
    ///
    /// # Panics
    ///
    /// When `out` is not as long as `inputs`.
    pub fn hash_many(self, inputs: &[&[u8]], out: &mut [Hash]) {
        hash_many_in(self.0, &IV, 0, inputs, out);
    }

    /// A [`Hasher`] of this kernel, whatever the process uses otherwise.
    pub fn hasher(self, mode: Mode<'_>) -> Hasher {
        Hasher::with(self.0, &mode.key_words(), mode.flags())
    }
}
