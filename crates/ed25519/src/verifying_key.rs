//! Public keys.

use crate::error::{InputError, SignatureError, signature_error};
use crate::serial;
use crate::signing_key::{ExpandedSecretKey, SigningKey};
use crate::verdict::InvalidReason;
use core::fmt;
use core::hash::{Hash, Hasher};
use curve25519_dalek::digest::{Digest, array::typenum::U64};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::{EdwardsPoint, MontgomeryPoint, Scalar};
use ed25519::Signature;
#[cfg(feature = "hazmat")]
use sha2::Sha512;

/// The length of a public key in bytes.
pub const PUBLIC_KEY_LENGTH: usize = 32;

/// The length of a signature in bytes.
pub const SIGNATURE_LENGTH: usize = Signature::BYTE_SIZE;

/// A public key: a point of the curve, with the bytes that it was decoded from.
///
/// Two keys are equal if their bytes are. A point whose y is not reduced has two encodings, and so
/// two keys, as in `ed25519-dalek`.
///
/// ```
/// use bulla_ed25519::{Signer, SigningKey, Verifier, VerifyingKey};
///
/// let signer = SigningKey::from_bytes(&[7; 32]);
/// let key = VerifyingKey::from_bytes(&signer.verifying_key().to_bytes())?;
/// key.verify(b"message", &signer.sign(b"message"))
/// # ?; Ok::<(), bulla_ed25519::SignatureError>(())
/// ```
#[derive(Clone, Copy, Default, Eq)]
pub struct VerifyingKey {
    compressed: CompressedEdwardsY,
    point: EdwardsPoint,
}

impl VerifyingKey {
    /// Decodes a public key.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the bytes are no point of the curve.
    ///
    /// ```
    /// use bulla_ed25519::{SigningKey, VerifyingKey};
    ///
    /// let bytes = SigningKey::from_bytes(&[7; 32]).verifying_key().to_bytes();
    /// assert_eq!(VerifyingKey::from_bytes(&bytes)?.as_bytes(), &bytes);
    /// assert!(VerifyingKey::from_bytes(&[2; 32]).is_err());
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn from_bytes(bytes: &[u8; PUBLIC_KEY_LENGTH]) -> Result<Self, SignatureError> {
        let compressed = CompressedEdwardsY(*bytes);
        let point = compressed.decompress().ok_or_else(|| signature_error(InvalidReason::KeyNotAPoint))?;
        Ok(Self { compressed, point })
    }

    /// The bytes of the key.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]).verifying_key();
    /// assert_eq!(key.to_bytes(), *key.as_bytes());
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PUBLIC_KEY_LENGTH] {
        self.compressed.0
    }

    /// The bytes of the key.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]).verifying_key();
    /// assert_eq!(key.as_bytes().len(), bulla_ed25519::PUBLIC_KEY_LENGTH);
    /// ```
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; PUBLIC_KEY_LENGTH] {
        &self.compressed.0
    }

    /// Whether the key has small order. One signature under such a key can fit almost every
    /// message: [`VerifyingKey::verify_strict`] refuses it.
    ///
    /// ```
    /// use bulla_ed25519::{SigningKey, VerifyingKey};
    ///
    /// assert!(!SigningKey::from_bytes(&[7; 32]).verifying_key().is_weak());
    /// assert!(VerifyingKey::default().is_weak());
    /// ```
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.point.is_small_order()
    }

    /// A verifier that takes the message in parts, by the predicate of
    /// [`verify`](crate::Verifier::verify).
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if S is not below the order of the group.
    ///
    /// ```
    /// use bulla_ed25519::{Signer, SigningKey};
    ///
    /// let signer = SigningKey::from_bytes(&[7; 32]);
    /// let mut verifier = signer.verifying_key().verify_stream(&signer.sign(b"message"))?;
    /// verifier.update(b"mess");
    /// verifier.update(b"age");
    /// verifier.finalize_and_verify()
    /// # ?; Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    #[cfg(feature = "hazmat")]
    pub fn verify_stream(&self, signature: &Signature) -> Result<StreamVerifier, SignatureError> {
        let s = serial::accepted_scalar(signature.s_bytes()).map_err(signature_error)?;
        Ok(StreamVerifier { hash: self.begin_hash(&[], signature), key: *self, r: *signature.r_bytes(), s })
    }

    /// The point on the Montgomery form of the curve, for X25519.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]).verifying_key();
    /// assert_eq!(key.to_montgomery(), key.to_edwards().to_montgomery());
    /// ```
    #[must_use]
    pub fn to_montgomery(&self) -> MontgomeryPoint {
        self.point.to_montgomery()
    }

    /// The point of the curve.
    ///
    /// ```
    /// use bulla_ed25519::{SigningKey, VerifyingKey};
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
    /// assert_eq!(VerifyingKey::from(key.to_edwards()), key);
    /// ```
    #[must_use]
    pub fn to_edwards(&self) -> EdwardsPoint {
        self.point
    }

    /// Verifies a message in parts by curve25519-dalek, with any hash function. The predicate is
    /// the plain one.
    pub(crate) fn verify_serially<D: Digest<OutputSize = U64>>(
        &self,
        domain: &[u8],
        message: &[&[u8]],
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        let s = serial::accepted_scalar(signature.s_bytes()).map_err(signature_error)?;
        let mut hash: D = self.begin_hash(domain, signature);
        message.iter().for_each(|part| hash.update(part));
        self.check_equation(hash, &s, signature.r_bytes())
    }

    /// The hash function after it took the domain, R and A.
    fn begin_hash<D: Digest>(&self, domain: &[u8], signature: &Signature) -> D {
        D::new_with_prefix(domain).chain_update(signature.r_bytes()).chain_update(self.as_bytes())
    }

    fn check_equation<D: Digest<OutputSize = U64>>(
        &self,
        hash: D,
        s: &Scalar,
        r: &[u8; 32],
    ) -> Result<(), SignatureError> {
        if serial::equation_holds(&Scalar::from_hash(hash), &self.point, s, r) {
            Ok(())
        } else {
            Err(signature_error(InvalidReason::Mismatch))
        }
    }
}

/// Verifies a signature of a message that comes in parts: see [`VerifyingKey::verify_stream`].
///
/// The message must not be acted upon before the end, when it is verified.
#[cfg(feature = "hazmat")]
pub struct StreamVerifier {
    key: VerifyingKey,
    r: [u8; 32],
    s: Scalar,
    hash: Sha512,
}

#[cfg(feature = "hazmat")]
impl StreamVerifier {
    /// Takes the next part of the message.
    ///
    /// ```
    /// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// # use bulla_ed25519::Signer;
    /// let mut verifier = key.verify_stream(&key.sign(b"message"))?;
    /// verifier.update("message");
    /// verifier.finalize_and_verify()
    /// # ?; Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn update(&mut self, chunk: impl AsRef<[u8]>) {
        self.hash.update(chunk);
    }

    /// Verifies the signature of all parts.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid.
    ///
    /// ```
    /// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// # use bulla_ed25519::Signer;
    /// let mut verifier = key.verify_stream(&key.sign(b"message"))?;
    /// verifier.update("another");
    /// assert!(verifier.finalize_and_verify().is_err());
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn finalize_and_verify(self) -> Result<(), SignatureError> {
        self.key.check_equation(self.hash, &self.s, &self.r)
    }
}

#[cfg(feature = "hazmat")]
impl fmt::Debug for StreamVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamVerifier").field("key", &self.key).finish_non_exhaustive()
    }
}

impl From<&ExpandedSecretKey> for VerifyingKey {
    fn from(secret: &ExpandedSecretKey) -> Self {
        EdwardsPoint::mul_base(&secret.scalar).into()
    }
}

impl From<&SigningKey> for VerifyingKey {
    fn from(signing_key: &SigningKey) -> Self {
        signing_key.verifying_key()
    }
}

impl From<EdwardsPoint> for VerifyingKey {
    fn from(point: EdwardsPoint) -> Self {
        Self { compressed: point.compress(), point }
    }
}

impl From<VerifyingKey> for EdwardsPoint {
    fn from(key: VerifyingKey) -> Self {
        key.point
    }
}

impl TryFrom<&[u8]> for VerifyingKey {
    type Error = SignatureError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        let wrong = InputError::Length { name: "VerifyingKey", expected: PUBLIC_KEY_LENGTH };
        Self::from_bytes(bytes.try_into().map_err(|_| signature_error(wrong))?)
    }
}

impl AsRef<[u8]> for VerifyingKey {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for VerifyingKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Hash for VerifyingKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyingKey(")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(feature = "digest")]
impl curve25519_dalek::digest::common::KeySizeUser for VerifyingKey {
    type KeySize = curve25519_dalek::digest::typenum::U32;
}
