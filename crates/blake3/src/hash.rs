//! A digest: its bytes, its hexadecimal digits, and comparison in constant time.

use crate::spec::OUT_LEN;
use arrayvec::ArrayString;
use constant_time_eq::constant_time_eq_32;
use core::fmt;
use core::str::FromStr;

/// A digest of 32 bytes.
///
/// `==` takes constant time: it does not depend on where the two differ. To compare in another way,
/// or to order digests, use [`as_bytes`](Hash::as_bytes).
///
/// ```
/// use bulla_blake3::Hash;
///
/// let digest = bulla_blake3::hash(b"input");
/// assert_eq!(Hash::from_hex(digest.to_hex().as_str())?, digest);
/// assert_eq!(Hash::from_bytes(*digest.as_bytes()), digest);
/// assert_eq!(Hash::from_slice(digest.as_slice()).ok(), Some(digest));
/// # Ok::<(), bulla_blake3::HexError>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Clone, Copy, Eq)]
pub struct Hash([u8; OUT_LEN]);

impl Hash {
    /// The bytes of the digest.
    #[inline]
    pub const fn as_bytes(&self) -> &[u8; OUT_LEN] {
        &self.0
    }

    /// The digest of these bytes.
    pub const fn from_bytes(bytes: [u8; OUT_LEN]) -> Self {
        Hash(bytes)
    }

    /// The bytes of the digest, as a slice.
    pub const fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The digest of these bytes.
    ///
    /// # Errors
    ///
    /// If there are not exactly 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, core::array::TryFromSliceError> {
        Ok(Hash(bytes.try_into()?))
    }

    /// The digest as 64 lower-case hexadecimal digits.
    pub fn to_hex(&self) -> ArrayString<{ 2 * OUT_LEN }> {
        // The compiler makes vector instructions of this arithmetic, and not of a table.
        let digit = |half: u8| half + if half < 10 { b'0' } else { b'a' - 10 };
        let mut digits = [0; 2 * OUT_LEN];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        ArrayString::from_byte_string(&digits).expect("digits are ASCII")
    }

    /// Parses 64 hexadecimal digits of either case.
    ///
    /// # Errors
    ///
    /// [`HexError`] if the length or a digit is wrong.
    pub fn from_hex(hex: impl AsRef<[u8]>) -> Result<Self, HexError> {
        let hex = hex.as_ref();
        if hex.len() != 2 * OUT_LEN {
            return Err(HexError(HexErrorKind::Length(hex.len())));
        }
        let mut bytes = [0; OUT_LEN];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Hash(bytes))
    }
}

fn digit(byte: u8) -> Result<u8, HexError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(HexError(HexErrorKind::Digit(byte))),
    }
}

impl From<[u8; OUT_LEN]> for Hash {
    fn from(bytes: [u8; OUT_LEN]) -> Self {
        Hash(bytes)
    }
}

impl From<Hash> for [u8; OUT_LEN] {
    fn from(hash: Hash) -> Self {
        hash.0
    }
}

impl FromStr for Hash {
    type Err = HexError;

    fn from_str(hex: &str) -> Result<Self, HexError> {
        Hash::from_hex(hex)
    }
}

impl core::hash::Hash for Hash {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// In constant time.
impl PartialEq for Hash {
    #[inline]
    fn eq(&self, other: &Hash) -> bool {
        constant_time_eq_32(&self.0, &other.0)
    }
}

/// In constant time.
impl PartialEq<[u8; OUT_LEN]> for Hash {
    #[inline]
    fn eq(&self, other: &[u8; OUT_LEN]) -> bool {
        constant_time_eq_32(&self.0, other)
    }
}

/// Compares in constant time if the length is 32.
impl PartialEq<[u8]> for Hash {
    #[inline]
    fn eq(&self, other: &[u8]) -> bool {
        constant_time_eq::constant_time_eq(&self.0, other)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hash").field(&self.to_hex().as_str()).finish()
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for Hash {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// The error of parsing a hexadecimal digest.
#[derive(Clone, Debug)]
pub struct HexError(HexErrorKind);

#[derive(Clone, Debug)]
enum HexErrorKind {
    Length(usize),
    Digit(u8),
}

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            HexErrorKind::Length(len) => {
                write!(f, "a digest has 64 hexadecimal digits, and this text has {len} bytes")
            }
            HexErrorKind::Digit(byte) if byte.is_ascii_graphic() => {
                write!(f, "'{}' is not a hexadecimal digit", char::from(byte))
            }
            HexErrorKind::Digit(byte) => write!(f, "byte 0x{byte:02x} is not a hexadecimal digit"),
        }
    }
}

impl core::error::Error for HexError {}
