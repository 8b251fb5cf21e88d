//! Secret bytes that are wiped quickly.

use std::fmt;
use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing, optimization_barrier};

/// Bytes that are wiped on drop, with what the vector's memory had before. The debug output does
/// not show them.
///
/// `Zeroizing<Vec<u8>>` does the same one byte at a time: for large plaintexts that takes as long
/// as their encryption.
///
/// ```
/// use bulla_kms::SecretBytes;
///
/// let mut secret = SecretBytes::from(b"a secret".to_vec());
/// secret.push(b'!');
/// assert_eq!(*secret, b"a secret!");
/// assert_eq!(format!("{secret:?}"), "SecretBytes(..)");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Empty bytes that take `capacity` bytes without moving. A vector that moves leaves a copy
    /// behind.
    ///
    /// ```
    /// use bulla_kms::SecretBytes;
    ///
    /// let mut secret = SecretBytes::with_capacity(8);
    /// let memory = secret.as_ptr();
    /// secret.extend_from_slice(b"a secret");
    /// assert_eq!(secret.as_ptr(), memory);
    /// ```
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }
}

impl Deref for SecretBytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for SecretBytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl AsRef<[u8]> for SecretBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<Zeroizing<Vec<u8>>> for SecretBytes {
    fn from(mut bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(std::mem::take(&mut *bytes))
    }
}

impl From<SecretBytes> for Zeroizing<Vec<u8>> {
    fn from(mut bytes: SecretBytes) -> Self {
        Self::new(std::mem::take(&mut bytes.0))
    }
}

impl Zeroize for SecretBytes {
    fn zeroize(&mut self) {
        self.0.clear();
        // All of its memory, which does not move. The barrier keeps the compiler from leaving the
        // writes out.
        self.0.resize(self.0.capacity(), 0);
        optimization_barrier(self.0.as_slice());
        self.0.clear();
    }
}

impl ZeroizeOnDrop for SecretBytes {}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wiping_reaches_all_of_the_memory_and_does_not_move_it() {
        for capacity in [0, 1, 7, 100, 20_000] {
            let mut secret = SecretBytes::with_capacity(capacity);
            let capacity = secret.capacity();
            secret.resize(capacity, 7);
            // What was cut off is still in the memory.
            secret.truncate(capacity / 2);
            let memory = secret.as_ptr();
            secret.zeroize();
            assert!(secret.is_empty() && secret.as_ptr() == memory && secret.capacity() == capacity);
            secret.resize(capacity, 1);
            assert!(secret.iter().all(|byte| *byte == 1) && secret.as_ptr() == memory);
        }
    }

    #[test]
    fn the_bytes_move_between_the_types_without_a_copy() {
        let secret = SecretBytes::from(Zeroizing::new(vec![1, 2, 3]));
        let memory = secret.as_ptr();
        let plain = Zeroizing::<Vec<u8>>::from(secret);
        assert!(*plain == [1, 2, 3] && plain.as_ptr() == memory);
    }
}
