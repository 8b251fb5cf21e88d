//! Low-level functions that are easy to misuse: signing and verifying with an expanded key, and
//! with other hash functions than SHA-512. The names and meanings are those of
//! `ed25519_dalek::hazmat`.
//!
//! A signature under one public key by another [`ExpandedSecretKey`] reveals the secret. Use
//! [`SigningKey`](crate::SigningKey), which keeps the two together.

#[cfg(feature = "digest")]
use crate::context::SigningDomain;
use crate::error::{InputError, SignatureError, signature_error};
use crate::serial;
pub use crate::signing_key::ExpandedSecretKey;
use crate::verifying_key::VerifyingKey;
use crate::wipe;
use core::fmt;
use curve25519_dalek::digest::{Digest, array::typenum::U64};
use ed25519::Signature;
use subtle::{Choice, ConstantTimeEq};

impl ExpandedSecretKey {
    /// Like [`ExpandedSecretKey::from_bytes`].
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if there are not 64 bytes.
    ///
    /// ```
    /// use bulla_ed25519::hazmat::ExpandedSecretKey;
    ///
    /// assert!(ExpandedSecretKey::from_slice(&[1; 64]).is_ok());
    /// assert!(ExpandedSecretKey::from_slice(&[1; 63]).is_err());
    /// ```
    pub fn from_slice(bytes: &[u8]) -> Result<Self, SignatureError> {
        let wrong = InputError::Length { name: "ExpandedSecretKey", expected: 64 };
        bytes.try_into().map(Self::from_bytes).map_err(|_| signature_error(wrong))
    }
}

impl TryFrom<&[u8]> for ExpandedSecretKey {
    type Error = SignatureError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        Self::from_slice(bytes)
    }
}

impl fmt::Debug for ExpandedSecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpandedSecretKey").finish_non_exhaustive()
    }
}

impl ConstantTimeEq for ExpandedSecretKey {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.scalar.ct_eq(&other.scalar) & self.hash_prefix.ct_eq(&other.hash_prefix)
    }
}

impl PartialEq for ExpandedSecretKey {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for ExpandedSecretKey {}

/// Signs a message with `CtxDigest` as the hash function. With SHA-512 this is Ed25519.
///
/// `verifying_key` must be that of the secret key: see the module's documentation.
///
/// ```
/// use bulla_ed25519::hazmat::{ExpandedSecretKey, raw_sign, raw_verify};
/// use bulla_ed25519::VerifyingKey;
/// use sha2::Sha512;
///
/// let secret = ExpandedSecretKey::from(&[7; 32]);
/// let public = VerifyingKey::from(&secret);
/// let signature = raw_sign::<Sha512>(&secret, b"message", &public);
/// assert!(raw_verify::<Sha512>(&public, b"message", &signature).is_ok());
/// assert!(raw_verify::<Sha512>(&public, b"another", &signature).is_err());
/// ```
#[must_use]
pub fn raw_sign<CtxDigest: Digest<OutputSize = U64>>(
    esk: &ExpandedSecretKey,
    message: &[u8],
    verifying_key: &VerifyingKey,
) -> Signature {
    let update = |hash: &mut CtxDigest| {
        hash.update(message);
        Ok(())
    };
    raw_sign_byupdate(esk, update, verifying_key).expect("the update does not fail")
}

/// Like [`raw_sign`], for a message that `msg_update` hashes. It is called twice, and must hash the
/// same bytes each time: otherwise the signature reveals the secret.
///
/// # Errors
///
/// Those of `msg_update`.
///
/// ```
/// use bulla_ed25519::hazmat::{ExpandedSecretKey, raw_sign, raw_sign_byupdate};
/// use bulla_ed25519::VerifyingKey;
/// use sha2::{Digest, Sha512};
///
/// let secret = ExpandedSecretKey::from(&[7; 32]);
/// let public = VerifyingKey::from(&secret);
/// let update = |hash: &mut Sha512| {
///     hash.update(b"mess");
///     hash.update(b"age");
///     Ok(())
/// };
/// let signature = raw_sign_byupdate(&secret, update, &public)?;
/// assert_eq!(signature, raw_sign::<Sha512>(&secret, b"message", &public));
/// # Ok::<(), bulla_ed25519::SignatureError>(())
/// ```
pub fn raw_sign_byupdate<CtxDigest, F>(
    esk: &ExpandedSecretKey,
    msg_update: F,
    verifying_key: &VerifyingKey,
) -> Result<Signature, SignatureError>
where
    CtxDigest: Digest<OutputSize = U64>,
    F: Fn(&mut CtxDigest) -> Result<(), SignatureError>,
{
    let sign = || serial::sign::<CtxDigest, _>(esk, verifying_key.as_bytes(), &[], &msg_update);
    Ok(Signature::from_bytes(&wipe::wiping_stack(sign)?))
}

/// Signs a digest, as Ed25519ph does with SHA-512 for both hash functions. No context is an empty
/// one.
///
/// # Errors
///
/// [`SignatureError`] if the context has more than 255 bytes.
///
/// ```
/// use bulla_ed25519::hazmat::{ExpandedSecretKey, raw_sign_prehashed, raw_verify_prehashed};
/// use bulla_ed25519::{Sha512, VerifyingKey};
/// use sha2::Digest;
///
/// let secret = ExpandedSecretKey::from(&[7; 32]);
/// let public = VerifyingKey::from(&secret);
/// let digest = Sha512::new_with_prefix(b"message");
/// let signature =
///     raw_sign_prehashed::<Sha512, _>(&secret, digest.clone(), &public, Some(b"context"))?;
/// raw_verify_prehashed::<Sha512, _>(&public, digest, Some(b"context"), &signature)?;
/// # Ok::<(), bulla_ed25519::SignatureError>(())
/// ```
#[cfg(feature = "digest")]
pub fn raw_sign_prehashed<CtxDigest, MsgDigest>(
    esk: &ExpandedSecretKey,
    prehashed_message: MsgDigest,
    verifying_key: &VerifyingKey,
    context: Option<&[u8]>,
) -> Result<Signature, SignatureError>
where
    MsgDigest: Digest<OutputSize = U64>,
    CtxDigest: Digest<OutputSize = U64>,
{
    let domain = SigningDomain::ed25519ph(context.unwrap_or_default()).map_err(signature_error)?;
    let digest = prehashed_message.finalize();
    let update = |hash: &mut CtxDigest| {
        hash.update(digest);
        Ok::<(), SignatureError>(())
    };
    let sign = || serial::sign::<CtxDigest, _>(esk, verifying_key.as_bytes(), domain.as_bytes(), update);
    Ok(Signature::from_bytes(&wipe::wiping_stack(sign)?))
}

/// Verifies what [`raw_sign`] made, by the predicate of [`VerifyingKey`]'s
/// [`verify`](crate::Verifier::verify).
///
/// # Errors
///
/// [`SignatureError`] if the signature is not valid.
///
/// ```
/// use bulla_ed25519::hazmat::raw_verify;
/// use bulla_ed25519::{Signer, SigningKey};
/// use sha2::Sha512;
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// raw_verify::<Sha512>(&key.verifying_key(), b"message", &key.sign(b"message"))?;
/// # Ok::<(), bulla_ed25519::SignatureError>(())
/// ```
pub fn raw_verify<CtxDigest: Digest<OutputSize = U64>>(
    vk: &VerifyingKey,
    message: &[u8],
    signature: &Signature,
) -> Result<(), SignatureError> {
    vk.verify_serially::<CtxDigest>(&[], &[message], signature)
}

/// Verifies what [`raw_sign_prehashed`] made.
///
/// # Errors
///
/// [`SignatureError`] if the signature is not valid, or the context has more than 255 bytes.
///
/// ```
/// use bulla_ed25519::hazmat::raw_verify_prehashed;
/// use bulla_ed25519::{Sha512, SigningKey};
/// use sha2::Digest;
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let digest = Sha512::new_with_prefix(b"message");
/// let signature = key.sign_prehashed(digest.clone(), None)?;
/// raw_verify_prehashed::<Sha512, _>(&key.verifying_key(), digest, None, &signature)?;
/// # Ok::<(), bulla_ed25519::SignatureError>(())
/// ```
#[cfg(feature = "digest")]
pub fn raw_verify_prehashed<CtxDigest, MsgDigest>(
    vk: &VerifyingKey,
    prehashed_message: MsgDigest,
    context: Option<&[u8]>,
    signature: &Signature,
) -> Result<(), SignatureError>
where
    MsgDigest: Digest<OutputSize = U64>,
    CtxDigest: Digest<OutputSize = U64>,
{
    let domain = SigningDomain::ed25519ph(context.unwrap_or_default()).map_err(signature_error)?;
    let digest = prehashed_message.finalize();
    vk.verify_serially::<CtxDigest>(domain.as_bytes(), &[&digest], signature)
}
