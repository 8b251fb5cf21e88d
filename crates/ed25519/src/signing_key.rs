//! Signing keys, and the input of signing.

use crate::error::{InputError, SignatureError, signature_error};
use crate::verifying_key::{PUBLIC_KEY_LENGTH, VerifyingKey};
use crate::{serial, wipe};
#[cfg(all(feature = "alloc", not(feature = "std")))]
use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt;
use curve25519_dalek::Scalar;
use curve25519_dalek::scalar::clamp_integer;
#[cfg(feature = "hazmat")]
use ed25519::Signature;
use ed25519::signature::KeypairRef;
use sha2::{Digest as _, Sha512};
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize as _, ZeroizeOnDrop, Zeroizing};

/// The length of a [`SecretKey`] in bytes.
pub const SECRET_KEY_LENGTH: usize = 32;

/// The length of a secret key and its public key in bytes.
pub const KEYPAIR_LENGTH: usize = SECRET_KEY_LENGTH + PUBLIC_KEY_LENGTH;

/// A seed, which RFC 8032 calls the private key: 32 bytes from a cryptographic generator.
pub type SecretKey = [u8; SECRET_KEY_LENGTH];

/// A private key: the seed, what it expands to, and the public key (RFC 8032, section 5.1.5).
///
/// Expanding a seed costs as much as a signature: keep the key. Its secrets are zeroized on drop,
/// [`Debug`](fmt::Debug) shows nothing of them, and comparisons take constant time.
///
/// ```
/// use bulla_ed25519::{Signature, Signer, SigningKey, Verifier};
///
/// let key = SigningKey::from_bytes(&[7; 32]); // in a real program: `SigningKey::generate`
/// let signature: Signature = key.sign(b"message");
/// assert!(key.verifying_key().verify(b"message", &signature).is_ok());
/// ```
pub struct SigningKey {
    secret: KeptSecret,
    public: VerifyingKey,
}

/// A secret key as signing uses it: the scalar, and the prefix of nonces (RFC 8032, section 5.1.5).
///
/// It is zeroized on drop, and [`Debug`](fmt::Debug) shows nothing of it.
pub struct ExpandedSecretKey {
    /// The secret scalar, reduced.
    pub scalar: Scalar,
    /// What is hashed before a message to make its nonce.
    pub hash_prefix: [u8; 32],
}

impl ExpandedSecretKey {
    /// The halves of 64 bytes, for example of a seed's SHA-512. The first one is clamped, and
    /// reduced modulo the order.
    ///
    /// ```
    /// # #[cfg(feature = "hazmat")] {
    /// use bulla_ed25519::{SigningKey, VerifyingKey, hazmat::ExpandedSecretKey};
    /// use sha2::{Digest, Sha512};
    ///
    /// let expanded = ExpandedSecretKey::from_bytes(&Sha512::digest([7; 32]).into());
    /// assert_eq!(VerifyingKey::from(&expanded), SigningKey::from_bytes(&[7; 32]).verifying_key());
    /// # }
    /// ```
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        let mut scalar = Zeroizing::new([0; 32]);
        let mut hash_prefix = [0; 32];
        scalar.copy_from_slice(&bytes[..32]);
        hash_prefix.copy_from_slice(&bytes[32..]);
        *scalar = clamp_integer(*scalar);
        Self { scalar: Scalar::from_bytes_mod_order(*scalar), hash_prefix }
    }
}

impl From<&SecretKey> for ExpandedSecretKey {
    fn from(secret_key: &SecretKey) -> Self {
        let digest: Zeroizing<[u8; 64]> = Zeroizing::new(Sha512::digest(secret_key).into());
        Self::from_bytes(&digest)
    }
}

impl Drop for ExpandedSecretKey {
    fn drop(&mut self) {
        self.scalar.zeroize();
        self.hash_prefix.zeroize();
    }
}

impl ZeroizeOnDrop for ExpandedSecretKey {}

struct ExpandedSeed {
    seed: SecretKey,
    expanded: ExpandedSecretKey,
}

/// On the heap, so that moving the key leaves no copy of its secrets behind.
#[cfg(feature = "alloc")]
type KeptSecret = Box<ExpandedSeed>;
#[cfg(not(feature = "alloc"))]
type KeptSecret = ExpandedSeed;

impl SigningKey {
    /// The key of a seed.
    ///
    /// ```
    /// use bulla_ed25519::SigningKey;
    ///
    /// // In a real program, from a cryptographic generator.
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// assert_eq!(key.to_bytes(), [7; 32]);
    /// ```
    #[must_use]
    pub fn from_bytes(secret_key: &SecretKey) -> Self {
        wipe::wiping_stack(|| Self::expand(secret_key))
    }

    /// Leaves the scalar, the prefix and the seed in its own frame and in the frames below it,
    /// which the caller wipes.
    #[inline(never)]
    pub(crate) fn expand(seed: &SecretKey) -> Self {
        let secret = KeptSecret::from(ExpandedSeed { seed: *seed, expanded: ExpandedSecretKey::from(seed) });
        let public = VerifyingKey::from(&secret.expanded);
        Self { secret, public }
    }

    /// A new key, from a cryptographic generator.
    ///
    /// ```
    /// use bulla_ed25519::SigningKey;
    /// use bulla_ed25519::rand_core::UnwrapErr;
    ///
    /// let key = SigningKey::generate(&mut UnwrapErr(getrandom::SysRng));
    /// assert_ne!(key, SigningKey::generate(&mut UnwrapErr(getrandom::SysRng)));
    /// ```
    #[cfg(feature = "rand_core")]
    #[must_use]
    pub fn generate<R: rand_core::CryptoRng + ?Sized>(csprng: &mut R) -> Self {
        let mut seed = Zeroizing::new([0; SECRET_KEY_LENGTH]);
        csprng.fill_bytes(&mut *seed);
        Self::from_bytes(&seed)
    }

    /// A copy of the seed, which the caller wipes.
    ///
    /// ```
    /// assert_eq!(bulla_ed25519::SigningKey::from_bytes(&[7; 32]).to_bytes(), [7; 32]);
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> SecretKey {
        self.secret.seed
    }

    /// The seed.
    ///
    /// ```
    /// assert_eq!(bulla_ed25519::SigningKey::from_bytes(&[7; 32]).as_bytes(), &[7; 32]);
    /// ```
    #[must_use]
    pub fn as_bytes(&self) -> &SecretKey {
        &self.secret.seed
    }

    /// The key of a seed that is followed by its public key.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the public key belongs to another seed, or is no point of the curve.
    ///
    /// ```
    /// use bulla_ed25519::SigningKey;
    ///
    /// let mut bytes = SigningKey::from_bytes(&[7; 32]).to_keypair_bytes();
    /// assert!(SigningKey::from_keypair_bytes(&bytes).is_ok());
    /// bytes[0] ^= 1;
    /// assert!(SigningKey::from_keypair_bytes(&bytes).is_err());
    /// ```
    pub fn from_keypair_bytes(bytes: &[u8; KEYPAIR_LENGTH]) -> Result<Self, SignatureError> {
        let (seed, public) = bytes.split_at(SECRET_KEY_LENGTH);
        let (key, public) = (Self::try_from(seed)?, VerifyingKey::try_from(public)?);
        if key.public != public {
            return Err(signature_error(InputError::MismatchedKeyPair));
        }
        Ok(key)
    }

    /// A copy of the seed, followed by the public key. The caller wipes it.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// assert_eq!(key.to_keypair_bytes()[32..], key.verifying_key().to_bytes());
    /// ```
    #[must_use]
    pub fn to_keypair_bytes(&self) -> [u8; KEYPAIR_LENGTH] {
        let mut bytes = [0; KEYPAIR_LENGTH];
        bytes[..SECRET_KEY_LENGTH].copy_from_slice(&self.secret.seed);
        bytes[SECRET_KEY_LENGTH..].copy_from_slice(self.public.as_bytes());
        bytes
    }

    /// The public key. `AsRef` gives a reference to it.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// assert_eq!(&key.verifying_key(), key.as_ref());
    /// ```
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        self.public
    }

    /// A verifier that takes the message in parts: see [`VerifyingKey::verify_stream`].
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if S is not below the order of the group.
    ///
    /// ```
    /// use bulla_ed25519::{Signer, SigningKey};
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let mut verifier = key.verify_stream(&key.sign(b"message"))?;
    /// verifier.update(b"mess");
    /// verifier.update(b"age");
    /// verifier.finalize_and_verify()
    /// # ?; Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    #[cfg(feature = "hazmat")]
    pub fn verify_stream(&self, signature: &Signature) -> Result<crate::StreamVerifier, SignatureError> {
        self.public.verify_stream(signature)
    }

    /// The first half of the seed's SHA-512: the scalar before it is clamped and reduced, as X25519
    /// takes it. The caller wipes it.
    ///
    /// ```
    /// use curve25519_dalek::{MontgomeryPoint, scalar::clamp_integer};
    ///
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// let point = MontgomeryPoint::mul_base_clamped(key.to_scalar_bytes());
    /// assert_eq!(point, key.verifying_key().to_montgomery());
    /// ```
    #[must_use]
    pub fn to_scalar_bytes(&self) -> [u8; 32] {
        wipe::wiping_stack(|| {
            let digest = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(self.secret.seed)));
            *digest.first_chunk().expect("64 bytes have a half")
        })
    }

    /// The secret scalar, clamped and reduced. The caller wipes it.
    ///
    /// ```
    /// use curve25519_dalek::EdwardsPoint;
    ///
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// assert_eq!(EdwardsPoint::mul_base(&key.to_scalar()), key.verifying_key().to_edwards());
    /// ```
    #[must_use]
    pub fn to_scalar(&self) -> Scalar {
        self.secret.expanded.scalar
    }

    /// Signs a message in parts by curve25519-dalek, which leaves the nonce on the stack: the
    /// caller wipes it.
    pub(crate) fn sign_serially(&self, domain: &[u8], message: &[&[u8]]) -> [u8; 64] {
        let update = |hash: &mut Sha512| {
            message.iter().for_each(|part| hash.update(part));
            Ok::<(), Infallible>(())
        };
        let Ok(signature) = serial::sign(&self.secret.expanded, self.public.as_bytes(), domain, update);
        signature
    }

    #[cfg(any(test, lanes))]
    pub(crate) fn public_key(&self) -> &[u8; PUBLIC_KEY_LENGTH] {
        self.public.as_bytes()
    }

    #[cfg(any(test, lanes))]
    pub(crate) fn scalar(&self) -> &[u8; 32] {
        self.secret.expanded.scalar.as_bytes()
    }

    #[cfg(any(test, lanes))]
    pub(crate) fn prefix(&self) -> &[u8; 32] {
        &self.secret.expanded.hash_prefix
    }
}

impl AsRef<VerifyingKey> for SigningKey {
    fn as_ref(&self) -> &VerifyingKey {
        &self.public
    }
}

impl KeypairRef for SigningKey {
    type VerifyingKey = VerifyingKey;
}

impl From<SecretKey> for SigningKey {
    fn from(secret_key: SecretKey) -> Self {
        Self::from_bytes(&Zeroizing::new(secret_key))
    }
}

impl From<&SecretKey> for SigningKey {
    fn from(secret_key: &SecretKey) -> Self {
        Self::from_bytes(secret_key)
    }
}

impl TryFrom<&[u8]> for SigningKey {
    type Error = SignatureError;

    fn try_from(bytes: &[u8]) -> Result<Self, SignatureError> {
        let wrong = InputError::Length { name: "SecretKey", expected: SECRET_KEY_LENGTH };
        let seed: &SecretKey = bytes.try_into().map_err(|_| signature_error(wrong))?;
        Ok(Self::from_bytes(seed))
    }
}

impl Clone for SigningKey {
    fn clone(&self) -> Self {
        wipe::wiping_stack(|| {
            let ExpandedSecretKey { scalar, hash_prefix } = self.secret.expanded;
            let expanded = ExpandedSecretKey { scalar, hash_prefix };
            let secret = KeptSecret::from(ExpandedSeed { seed: self.secret.seed, expanded });
            Self { secret, public: self.public }
        })
    }
}

impl ConstantTimeEq for SigningKey {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.secret.seed.ct_eq(&other.secret.seed)
    }
}

impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for SigningKey {}

impl Drop for ExpandedSeed {
    fn drop(&mut self) {
        self.seed.zeroize();
    }
}

impl ZeroizeOnDrop for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("verifying_key", &self.public).finish_non_exhaustive()
    }
}

#[cfg(feature = "digest")]
mod key_traits {
    use super::SigningKey;
    use curve25519_dalek::digest::common::{InvalidKey, Key, KeySizeUser, TryKeyInit};
    use curve25519_dalek::digest::typenum::U32;

    impl KeySizeUser for SigningKey {
        type KeySize = U32;
    }

    impl TryKeyInit for SigningKey {
        fn new(key: &Key<Self>) -> Result<Self, InvalidKey> {
            Ok(Self::from_bytes(key.as_ref()))
        }
    }

    #[cfg(feature = "rand_core")]
    impl curve25519_dalek::digest::common::Generate for SigningKey {
        fn try_generate_from_rng<R: rand_core::TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Self, R::Error> {
            let mut seed = super::Zeroizing::new(super::SecretKey::default());
            rng.try_fill_bytes(&mut *seed)?;
            Ok(Self::from_bytes(&seed))
        }
    }
}

/// One message to sign.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct SignItem<'a> {
    /// The key that signs.
    pub key: &'a SigningKey,
    /// The message that is signed.
    pub message: &'a [u8],
}
