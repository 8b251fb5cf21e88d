//! The traits of the `digest` crate, under the names of the crate `blake2` (0.11). A program for
//! that crate needs only `use bulla_blake2::digest_traits as blake2;`. A type of the `digest` crate
//! has one output length. So [`State`](crate::State) does not implement the traits: its parameters
//! determine the length.
//!
//! ```
//! use bulla_blake2::{blake2b, digest_traits as blake2};
//! use blake2::{Blake2b, Blake2b512, Digest, digest::consts::U10};
//!
//! assert_eq!(Blake2b512::digest(b"abc")[..], *blake2b(b"abc").as_bytes());
//! assert_eq!(Blake2b::<U10>::digest(b"abc").len(), 10);
//! ```
//!
//! With a salt and a personalization, as a MAC or as the core of a hasher of another crate:
//!
//! ```
//! use bulla_blake2::{blake2b::Params, digest_traits as blake2};
//! use blake2::digest::block_api::{Buffer, VariableOutputCore};
//! use blake2::digest::consts::U32;
//! use blake2::{Blake2bMac, Blake2bVarCore, digest::Mac};
//!
//! let expected = |key: &[u8]| {
//!     let mut params = Params::new();
//!     params.hash_length(32).key(key).salt(b"salt").personal(b"example.com").hash(b"abc")
//! };
//! let mut mac = Blake2bMac::<U32>::new_with_salt_and_personal(Some(b"key"), b"salt", b"example.com")?;
//! mac.update(b"abc");
//! assert_eq!(mac.finalize().into_bytes()[..], *expected(b"key").as_bytes());
//!
//! let mut core = Blake2bVarCore::new_with_params(b"salt", b"example.com", 0, 32);
//! let (mut buffer, mut digest) = (Buffer::<Blake2bVarCore>::new(b"abc"), Default::default());
//! core.finalize_variable_core(&mut buffer, &mut digest);
//! assert_eq!(digest[..32], *expected(b"").as_bytes());
//! # Ok::<(), blake2::digest::InvalidLength>(())
//! ```

use crate::job::Finalization;
use crate::kernel::Kernel;
use crate::params::compress;
use crate::variant::{self, Variant};
use crate::{blake2b, blake2s};
use core::fmt;
use core::marker::PhantomData;
use digest::array::{Array, ArraySize};
use digest::block_api::{
    AlgorithmName, Block, Buffer, BufferKindUser, TruncSide, UpdateCore, VariableOutputCore,
    VariableOutputCoreCustomized,
};
use digest::block_buffer::Lazy;
use digest::common::{BlockSizeUser, KeySizeUser};
use digest::consts::{U16, U32, U64, U128};
use digest::typenum::{IsLessOrEqual, True};
use digest::{
    CustomizedInit, FixedOutput, FixedOutputReset, HashMarker, InvalidLength, InvalidOutputSize, Key,
    KeyInit, MacMarker, Output, OutputSizeUser, Reset, Update,
};

pub use digest::{self, Digest};

/// The core that the `digest` crate wraps in its buffers: it takes blocks, for a digest of any
/// length.
macro_rules! core {
    ($(#[$doc:meta])* $Core:ident, $Variant:ty, $module:ident, $name:literal, $Out:ty, $Block:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $Core {
            words: [<$Variant as Variant>::Word; 8],
            start: [<$Variant as Variant>::Word; 8],
            count: u128,
            kernel: Kernel,
        }

        impl $Core {
            /// A core with these parameters. With a key of `key_size` bytes, the first block of
            /// input must be the key, padded with zeros.
            ///
            /// # Panics
            ///
            /// If a parameter is too long for the parameter block, or the output is empty.
            pub fn new_with_params(salt: &[u8], persona: &[u8], key_size: usize, output_size: usize) -> Self {
                let mut params = $module::Params::new();
                params.hash_length(output_size).salt(salt).personal(persona).key_length(key_size);
                Self { words: params.words, start: params.words, count: 0, kernel: params.kernel }
            }

            fn take(&mut self, input: &[u8], last: Finalization) {
                compress(<$Variant>::functions(self.kernel), &mut self.words, input, self.count, last);
                self.count = self.count.wrapping_add(input.len() as u128);
            }
        }

        impl HashMarker for $Core {}

        impl BlockSizeUser for $Core {
            type BlockSize = $Block;
        }

        impl BufferKindUser for $Core {
            type BufferKind = Lazy;
        }

        impl OutputSizeUser for $Core {
            type OutputSize = $Out;
        }

        impl UpdateCore for $Core {
            fn update_blocks(&mut self, blocks: &[Block<Self>]) {
                if !blocks.is_empty() {
                    self.take(Array::cast_slice_to_core(blocks).as_flattened(), Finalization::None);
                }
            }
        }

        impl VariableOutputCore for $Core {
            const TRUNC_SIDE: TruncSide = TruncSide::Left;

            fn new(output_size: usize) -> Result<Self, InvalidOutputSize> {
                if !(1..=$module::OUTBYTES).contains(&output_size) {
                    return Err(InvalidOutputSize);
                }
                Ok(Self::new_with_params(&[], &[], 0, output_size))
            }

            fn finalize_variable_core(&mut self, buffer: &mut Buffer<Self>, out: &mut Output<Self>) {
                let len = buffer.get_pos();
                self.take(&buffer.pad_with_zeros()[..len], Finalization::LastBlock);
                out.copy_from_slice($module::Hash::new(&self.words, $module::OUTBYTES as u8).as_bytes());
            }
        }

        impl VariableOutputCoreCustomized for $Core {
            fn new_customized(customization: &[u8], output_size: usize) -> Self {
                Self::new_with_params(&[], customization, 0, output_size)
            }
        }

        impl Reset for $Core {
            fn reset(&mut self) {
                self.words = self.start;
                self.count = 0;
            }
        }

        impl AlgorithmName for $Core {
            fn write_alg_name(f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }

        /// Omits the state's words: with them, others could append to the input.
        impl fmt::Debug for $Core {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Core)).finish_non_exhaustive()
            }
        }

        #[cfg(feature = "zeroize")]
        impl Drop for $Core {
            fn drop(&mut self) {
                use zeroize::Zeroize;
                self.words.zeroize();
                self.start.zeroize();
            }
        }

        #[cfg(feature = "zeroize")]
        impl zeroize::ZeroizeOnDrop for $Core {}
    };
}

core!(
    /** Blocks of BLAKE2b. */
    Blake2bVarCore, variant::Blake2b, blake2b, "Blake2b", U64, U128
);
core!(
    /** Blocks of BLAKE2s. */
    Blake2sVarCore, variant::Blake2s, blake2s, "Blake2s", U32, U64
);

digest::buffer_ct_variable!(
    /// BLAKE2b with a digest of this many bytes, 1 to 64.
    pub struct Blake2b<OutSize>(Blake2bVarCore);
    exclude: SerializableState;
    max_size: U64;
);
digest::buffer_ct_variable!(
    /// BLAKE2s with a digest of this many bytes, 1 to 32.
    pub struct Blake2s<OutSize>(Blake2sVarCore);
    exclude: SerializableState;
    max_size: U32;
);

/// BLAKE2b with a digest of 16 bytes.
pub type Blake2b128 = Blake2b<U16>;
/// BLAKE2b with a digest of 32 bytes.
pub type Blake2b256 = Blake2b<U32>;
/// BLAKE2b with a digest of 64 bytes.
pub type Blake2b512 = Blake2b<U64>;
/// BLAKE2s with a digest of 16 bytes.
pub type Blake2s128 = Blake2s<U16>;
/// BLAKE2s with a digest of 32 bytes.
pub type Blake2s256 = Blake2s<U32>;
/// BLAKE2b as a MAC with a tag of 64 bytes.
pub type Blake2bMac512 = Blake2bMac<U64>;
/// BLAKE2s as a MAC with a tag of 32 bytes.
pub type Blake2sMac256 = Blake2sMac<U32>;

/// Digests for a purpose: the customization is the personalization, padded with zeros.
macro_rules! customized {
    ($Hash:ident, $Out:ty) => {
        impl<OutSize> CustomizedInit for $Hash<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            /// # Panics
            ///
            /// If the customization is too long for a personalization.
            fn new_customized(customization: &[u8]) -> Self {
                Self { core: CustomizedInit::new_customized(customization), buffer: Default::default() }
            }
        }
    };
}

customized!(Blake2b, U64);
customized!(Blake2s, U32);

/// A MAC. The key has at most as many bytes as the longest digest.
macro_rules! mac {
    ($(#[$doc:meta])* $Mac:ident, $module:ident, $Out:ty, $Block:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            state: $module::State,
            start: $module::State,
            out_size: PhantomData<OutSize>,
        }

        impl<OutSize> $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            /// A MAC with a salt and a personalization, with or without a key.
            ///
            /// # Errors
            ///
            /// If the key is empty, or one of the three is too long.
            pub fn new_with_salt_and_personal(
                key: Option<&[u8]>,
                salt: &[u8],
                persona: &[u8],
            ) -> Result<Self, InvalidLength> {
                if key.is_some_and(|key| key.is_empty() || key.len() > $module::KEYBYTES)
                    || salt.len() > $module::SALTBYTES
                    || persona.len() > $module::PERSONALBYTES
                {
                    return Err(InvalidLength);
                }
                let mut params = $module::Params::new();
                params.hash_length(OutSize::USIZE).salt(salt).personal(persona).key(key.unwrap_or_default());
                Ok(Self::starting(params.to_state()))
            }

            fn starting(start: $module::State) -> Self {
                Self { state: start.clone(), start, out_size: PhantomData }
            }
        }

        impl<OutSize> KeySizeUser for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            type KeySize = $Out;
        }

        impl<OutSize> KeyInit for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn new(key: &Key<Self>) -> Self {
                Self::new_from_slice(key).expect("a key of full length")
            }

            /// An empty key puts a block of zeros before the input here, as in the crate `blake2`.
            /// Do not use one.
            fn new_from_slice(key: &[u8]) -> Result<Self, InvalidLength> {
                if !key.is_empty() {
                    return Self::new_with_salt_and_personal(Some(key), &[], &[]);
                }
                let mut start = $module::Params::new().hash_length(OutSize::USIZE).to_state();
                start.update(&[0; $module::BLOCKBYTES]);
                Ok(Self::starting(start))
            }
        }

        impl<OutSize> Update for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn update(&mut self, data: &[u8]) {
                self.state.update(data);
            }
        }

        impl<OutSize> BlockSizeUser for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            type BlockSize = $Block;
        }

        impl<OutSize> OutputSizeUser for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            type OutputSize = OutSize;
        }

        impl<OutSize> FixedOutput for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn finalize_into(self, out: &mut Output<Self>) {
                out.copy_from_slice(self.state.finalize().as_bytes());
            }
        }

        impl<OutSize> Reset for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn reset(&mut self) {
                self.state = self.start.clone();
            }
        }

        impl<OutSize> FixedOutputReset for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
                out.copy_from_slice(self.state.finalize().as_bytes());
                self.reset();
            }
        }

        impl<OutSize> MacMarker for $Mac<OutSize> where OutSize: ArraySize + IsLessOrEqual<$Out, Output = True> {}

        /// Omits the state: with it, others could append to the input.
        impl<OutSize> fmt::Debug for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Mac)).field("state", &self.state).finish_non_exhaustive()
            }
        }

        #[cfg(feature = "zeroize")]
        impl<OutSize> Drop for $Mac<OutSize>
        where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>,
        {
            fn drop(&mut self) {
                use zeroize::Zeroize;
                self.state.zeroize();
                self.start.zeroize();
            }
        }

        #[cfg(feature = "zeroize")]
        impl<OutSize> zeroize::ZeroizeOnDrop for $Mac<OutSize> where
            OutSize: ArraySize + IsLessOrEqual<$Out, Output = True>
        {
        }
    };
}

mac!(
    /** BLAKE2b as a MAC with a tag of this many bytes, 1 to 64, and a key of up to 64. */
    Blake2bMac, blake2b, U64, U128
);
mac!(
    /** BLAKE2s as a MAC with a tag of this many bytes, 1 to 32, and a key of up to 32. */
    Blake2sMac, blake2s, U32, U64
);
