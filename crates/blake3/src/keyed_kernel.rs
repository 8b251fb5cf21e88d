//! A kernel with the key and flags of a mode, and the values that it makes.

use crate::kernel::Functions;
use crate::spec::{BLOCK_LEN, OUT_LEN, Words};
use core::mem::MaybeUninit;

/// A chaining value as bytes.
pub(crate) type Value = [u8; OUT_LEN];

/// A kernel with the key and flags of a mode.
#[derive(Clone, Copy)]
pub(crate) struct KeyedKernel {
    pub(crate) functions: &'static Functions,
    pub(crate) key: Words,
    /// Flags of the mode, on every compression.
    pub(crate) flags: u32,
}

impl KeyedKernel {
    #[inline(always)]
    pub(crate) fn new(functions: &'static Functions, key: &Words, flags: u32) -> Self {
        KeyedKernel { functions, key: *key, flags }
    }

    /// Chunks in a group.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> usize {
        self.functions.lanes
    }

    /// Whether the input may be a secret, which is assumed in modes with a key.
    #[cfg(feature = "std")]
    pub(crate) fn secrecy(&self) -> Secrecy {
        if self.flags == 0 { Secrecy::Plain } else { Secrecy::Secret }
    }

    /// The chaining value of the parent of the two values in `children`; the root's digest if
    /// `extra_flags` contains `ROOT`.
    pub(crate) fn parent(&self, children: &[u8; BLOCK_LEN], extra_flags: u32) -> Value {
        let mut value = MaybeUninit::<Value>::uninit();
        // SAFETY: 64 readable bytes, one parent of 32 bytes out.
        unsafe {
            let flags = self.flags | extra_flags;
            (self.functions.parents)(children.as_ptr(), 1, &self.key, flags, value.as_mut_ptr().cast());
            value.assume_init()
        }
    }
}

/// Whether copies of input must not outlive their hasher.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Plain,
    Secret,
}

/// The block of a parent.
#[inline(always)]
pub(crate) fn join(left: &Value, right: &Value) -> [u8; BLOCK_LEN] {
    let mut block = [0; BLOCK_LEN];
    block[..OUT_LEN].copy_from_slice(left);
    block[OUT_LEN..].copy_from_slice(right);
    block
}
