//! A digest.

use crate::variant::{Blake2b, Blake2s, Variant};
use crate::word::Word;
use constant_time_eq::constant_time_eq;
use core::fmt::{self, Write as _};

/// A digest, with the length that the parameters set. A comparison takes constant time: it does not
/// depend on where the difference is.
#[derive(Clone, Copy)]
pub struct Hash<V: Variant> {
    pub(crate) bytes: V::Digest,
    pub(crate) len: u8,
}

impl<V: Variant> Hash<V> {
    /// The digest from the state `words`.
    #[inline(always)]
    pub(crate) fn new(words: &[V::Word; 8], len: u8) -> Self {
        let mut bytes = V::NO_DIGEST;
        for (word, out) in words.iter().zip(bytes.as_mut().chunks_exact_mut(V::Word::BYTES)) {
            word.write_le(out);
        }
        Self { bytes, len }
    }

    /// The bytes. The time to compare them depends on how many bytes are equal: if you use BLAKE2
    /// as a MAC, compare `Hash`es instead.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes.as_ref()[..usize::from(self.len)]
    }

    /// The bytes of a digest of full length.
    ///
    /// # Panics
    ///
    /// In builds with debug assertions, if the digest is shorter. In other builds, the bytes after
    /// it are not part of the digest.
    ///
    /// ```
    /// use bulla_blake2::blake2s::blake2s;
    ///
    /// let digest: [u8; 32] = *blake2s(b"input").as_array();
    /// assert_eq!(digest, blake2s(b"input").as_bytes());
    /// ```
    #[inline]
    pub fn as_array(&self) -> &V::Digest {
        debug_assert_eq!(
            usize::from(self.len),
            self.bytes.as_ref().len(),
            "the digest is not of full length"
        );
        &self.bytes
    }

    /// The digest in lower-case hexadecimal, two digits for each byte.
    pub fn to_hex(&self) -> V::Hex {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = V::Hex::default();
        for byte in self.as_bytes() {
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from(DIGITS[usize::from(digit)]);
                hex.write_char(digit).expect("there is room for two digits a byte");
            }
        }
        hex
    }
}

macro_rules! from_array {
    ($($variant:ty: $len:literal),*) => { $(
        impl From<[u8; $len]> for Hash<$variant> {
            fn from(bytes: [u8; $len]) -> Self {
                Self { bytes, len: $len }
            }
        }

        impl From<&[u8; $len]> for Hash<$variant> {
            fn from(bytes: &[u8; $len]) -> Self {
                Self::from(*bytes)
            }
        }
    )* };
}

from_array!(Blake2b: 64, Blake2s: 32);

/// In constant time, if the lengths are the same.
impl<V: Variant> PartialEq for Hash<V> {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq(self.as_bytes(), other.as_bytes())
    }
}

/// In constant time, if the lengths are the same.
impl<V: Variant> PartialEq<[u8]> for Hash<V> {
    fn eq(&self, other: &[u8]) -> bool {
        constant_time_eq(self.as_bytes(), other)
    }
}

impl<V: Variant> Eq for Hash<V> {}

impl<V: Variant> AsRef<[u8]> for Hash<V> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl<V: Variant> fmt::Debug for Hash<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(0x")?;
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

#[cfg(feature = "zeroize")]
impl<V: Variant> zeroize::Zeroize for Hash<V> {
    fn zeroize(&mut self) {
        self.bytes.as_mut().zeroize();
    }
}
