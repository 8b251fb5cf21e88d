//! The traits of the `digest` crate, for digests and tags of the usual lengths. A type of the `digest` crate has one output length, so
//! that these are not implemented on [`State`](crate::State), whose length the parameters say.
//!
//! ```
//! use bulla_blake2::{blake2b, digest_traits::Blake2b512};
//! use digest::Digest;
//!
//! assert_eq!(Blake2b512::digest(b"abc")[..], *blake2b(b"abc").as_bytes());
//! ```

use crate::{blake2b, blake2s};
use core::fmt;
use digest::array::sizes::{U32, U64, U128};
use digest::common::{BlockSizeUser, KeySizeUser};
use digest::{
    FixedOutput, FixedOutputReset, HashMarker, InvalidLength, Key, KeyInit, MacMarker, Output,
    OutputSizeUser, Reset, Update,
};

/// What digests and tags have in common: a state, and the one to begin with.
macro_rules! hasher {
    ($(#[$doc:meta])* $name:ident, $module:ident, $Out:ty, $Block:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            state: $module::State,
            start: $module::State,
        }

        impl $name {
            fn with(params: &$module::Params) -> Self {
                let start = params.to_state();
                Self { state: start.clone(), start }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.state).finish()
            }
        }

        impl Update for $name {
            fn update(&mut self, data: &[u8]) {
                self.state.update(data);
            }
        }

        impl Reset for $name {
            fn reset(&mut self) {
                self.state = self.start.clone();
            }
        }

        impl OutputSizeUser for $name {
            type OutputSize = $Out;
        }

        impl BlockSizeUser for $name {
            type BlockSize = $Block;
        }

        impl FixedOutput for $name {
            fn finalize_into(self, out: &mut Output<Self>) {
                out.copy_from_slice(self.state.finalize().as_bytes());
            }
        }

        impl FixedOutputReset for $name {
            fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
                out.copy_from_slice(self.state.finalize().as_bytes());
                self.reset();
            }
        }
    };
}

/// A digest without a key.
macro_rules! digest {
    ($(#[$doc:meta])* $name:ident, $module:ident, $len:literal, $Out:ty, $Block:ty) => {
        hasher!($(#[$doc])* $name, $module, $Out, $Block);

        impl HashMarker for $name {}

        impl Default for $name {
            fn default() -> Self {
                Self::with($module::Params::new().hash_length($len))
            }
        }
    };
}

/// A tag by a key of at most as many bytes.
macro_rules! mac {
    ($(#[$doc:meta])* $name:ident, $module:ident, $Out:ty, $Block:ty) => {
        hasher!($(#[$doc])* $name, $module, $Out, $Block);

        impl MacMarker for $name {}

        impl KeySizeUser for $name {
            type KeySize = $Out;
        }

        impl KeyInit for $name {
            fn new(key: &Key<Self>) -> Self {
                Self::with($module::Params::new().key(key))
            }

            fn new_from_slice(key: &[u8]) -> Result<Self, InvalidLength> {
                if key.len() > $module::KEYBYTES {
                    return Err(InvalidLength);
                }
                Ok(Self::with($module::Params::new().key(key)))
            }
        }
    };
}

digest!(/** BLAKE2b with a digest of 64 bytes. */ Blake2b512, blake2b, 64, U64, U128);
digest!(/** BLAKE2b with a digest of 32 bytes. */ Blake2b256, blake2b, 32, U32, U128);
digest!(/** BLAKE2s with a digest of 32 bytes. */ Blake2s256, blake2s, 32, U32, U64);
mac!(/** BLAKE2b as a MAC with a tag of 64 bytes, and a key of up to 64. */ Blake2bMac512, blake2b, U64, U128);
mac!(/** BLAKE2s as a MAC with a tag of 32 bytes, and a key of up to 32. */ Blake2sMac256, blake2s, U32, U64);
