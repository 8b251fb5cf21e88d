//! Ed25519ph (RFC 8032, section 5.1) under the names of `ed25519-dalek`: signatures of digests,
//! with a context that separates the uses of one key.

use crate::error::ContextTooLong;
#[cfg(feature = "digest")]
use {
    crate::error::{SignatureError, signature_error},
    crate::sign_verify::Predicate,
    crate::signing_key::SigningKey,
    crate::verifying_key::VerifyingKey,
    curve25519_dalek::digest::{Digest, Update, array::typenum::U64},
    ed25519::Signature,
    signature::{DigestSigner, DigestVerifier},
};

/// The maximum length of a context in bytes.
const MAX_CONTEXT_LEN: usize = 255;

/// The beginning of the domain of Ed25519ph, with its flag.
const ED25519PH_PREFIX: &[u8; 33] = b"SigEd25519 no Ed25519 collisions\x01";

/// What is hashed before everything else (RFC 8032, section 5.1: dom2).
pub(crate) struct SigningDomain {
    bytes: [u8; ED25519PH_PREFIX.len() + 1 + MAX_CONTEXT_LEN],
    len: usize,
}

impl SigningDomain {
    /// The domain of Ed25519ph.
    pub(crate) fn ed25519ph(context: &[u8]) -> Result<Self, ContextTooLong> {
        let context_len = u8::try_from(context.len()).map_err(|_| ContextTooLong)?;
        let (start, len) = (ED25519PH_PREFIX.len(), ED25519PH_PREFIX.len() + 1 + context.len());
        let mut bytes = [0; _];
        bytes[..start].copy_from_slice(ED25519PH_PREFIX);
        bytes[start] = context_len;
        bytes[start + 1..len].copy_from_slice(context);
        Ok(Self { bytes, len })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A key with a context, for Ed25519ph.
///
/// [`SigningKey::with_context`] and [`VerifyingKey::with_context`] make it. It signs and verifies
/// by the traits [`DigestSigner`] and [`DigestVerifier`].
///
/// ```
/// use bulla_ed25519::{DigestSigner, DigestVerifier, Sha512, SigningKey};
/// use sha2::Digest;
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let signature =
///     key.with_context(b"a use")?.sign_digest(|digest: &mut Sha512| digest.update(b"message"));
/// let update = |digest: &mut Sha512| {
///     digest.update(b"message");
///     Ok(())
/// };
/// assert!(key.verifying_key().with_context(b"a use")?.verify_digest(update, &signature).is_ok());
/// let other = key.verifying_key();
/// assert!(other.with_context(b"another")?.verify_digest(update, &signature).is_err());
/// # Ok::<(), bulla_ed25519::SignatureError>(())
/// ```
#[cfg(feature = "digest")]
#[derive(Clone, Debug)]
pub struct Context<'k, 'v, K> {
    key: &'k K,
    value: &'v [u8],
}

#[cfg(feature = "digest")]
impl<'k, 'v, K> Context<'k, 'v, K> {
    /// The maximum length of a context in bytes: 255.
    ///
    /// ```
    /// use bulla_ed25519::{Context, SigningKey};
    ///
    /// assert_eq!(Context::<SigningKey>::MAX_LENGTH, 255);
    /// assert!(SigningKey::from_bytes(&[7; 32]).with_context(&[0; 256]).is_err());
    /// ```
    pub const MAX_LENGTH: usize = MAX_CONTEXT_LEN;

    fn new(key: &'k K, value: &'v [u8]) -> Result<Self, SignatureError> {
        if value.len() > Self::MAX_LENGTH {
            return Err(signature_error(ContextTooLong));
        }
        Ok(Self { key, value })
    }

    /// The key.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// assert_eq!(key.with_context(b"a use")?.key(), &key);
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    #[must_use]
    pub fn key(&self) -> &'k K {
        self.key
    }

    /// The bytes of the context.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// assert_eq!(key.with_context(b"a use")?.value(), b"a use");
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    #[must_use]
    pub fn value(&self) -> &'v [u8] {
        self.value
    }
}

#[cfg(feature = "digest")]
impl SigningKey {
    /// The key with a context.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the context has more than 255 bytes.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
    /// assert!(key.with_context(&[0; 255]).is_ok());
    /// assert!(key.with_context(&[0; 256]).is_err());
    /// ```
    pub fn with_context<'k, 'v>(
        &'k self,
        context_value: &'v [u8],
    ) -> Result<Context<'k, 'v, Self>, SignatureError> {
        Context::new(self, context_value)
    }

    /// Signs a digest with Ed25519ph. No context is an empty one.
    ///
    /// RFC 8032 asks for SHA-512 as the hash function of the message. The type system admits others
    /// with digests of 64 bytes, whose signatures other programs refuse.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the context has more than 255 bytes.
    ///
    /// ```
    /// use bulla_ed25519::{Sha512, SigningKey};
    /// use sha2::Digest;
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let digest = Sha512::new_with_prefix(b"message");
    /// let signature = key.sign_prehashed(digest.clone(), Some(b"a use"))?;
    /// key.verify_prehashed(digest, Some(b"a use"), &signature)?;
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn sign_prehashed<MsgDigest: Digest<OutputSize = U64>>(
        &self,
        prehashed_message: MsgDigest,
        context: Option<&[u8]>,
    ) -> Result<Signature, SignatureError> {
        let domain = SigningDomain::ed25519ph(context.unwrap_or_default()).map_err(signature_error)?;
        Ok(self.sign_with_domain(domain.as_bytes(), &prehashed_message.finalize()))
    }

    /// Verifies like [`VerifyingKey::verify_prehashed`].
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid, or the context has more than 255 bytes.
    ///
    /// ```
    /// use bulla_ed25519::{Sha512, SigningKey};
    /// use sha2::Digest;
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let digest = Sha512::new_with_prefix(b"message");
    /// let signature = key.sign_prehashed(digest.clone(), None)?;
    /// assert!(key.verify_prehashed(digest.clone(), None, &signature).is_ok());
    /// assert!(key.verify_prehashed(digest, Some(b"a use"), &signature).is_err());
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn verify_prehashed<MsgDigest: Digest<OutputSize = U64>>(
        &self,
        prehashed_message: MsgDigest,
        context: Option<&[u8]>,
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        AsRef::<VerifyingKey>::as_ref(self).verify_prehashed(prehashed_message, context, signature)
    }
}

#[cfg(feature = "digest")]
impl VerifyingKey {
    /// The key with a context.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the context has more than 255 bytes.
    ///
    /// ```
    /// let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]).verifying_key();
    /// assert!(key.with_context(&[0; 255]).is_ok());
    /// assert!(key.with_context(&[0; 256]).is_err());
    /// ```
    pub fn with_context<'k, 'v>(
        &'k self,
        context_value: &'v [u8],
    ) -> Result<Context<'k, 'v, Self>, SignatureError> {
        Context::new(self, context_value)
    }

    /// Verifies a signature of a digest, by the predicate of [`verify`](crate::Verifier::verify).
    /// No context is an empty one.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid, or the context has more than 255 bytes.
    ///
    /// ```
    /// use bulla_ed25519::{Sha512, SigningKey};
    /// use sha2::Digest;
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let digest = Sha512::new_with_prefix(b"message");
    /// let signature = key.sign_prehashed(digest.clone(), None)?;
    /// key.verifying_key().verify_prehashed(digest, None, &signature)?;
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn verify_prehashed<MsgDigest: Digest<OutputSize = U64>>(
        &self,
        prehashed_message: MsgDigest,
        context: Option<&[u8]>,
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        self.check_prehashed(prehashed_message, context, signature, Predicate::Plain)
    }

    /// Verifies a signature of a digest, by the predicate of [`VerifyingKey::verify_strict`].
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid, or the context has more than 255 bytes.
    ///
    /// ```
    /// use bulla_ed25519::{Sha512, SigningKey};
    /// use sha2::Digest;
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let digest = Sha512::new_with_prefix(b"message");
    /// let signature = key.sign_prehashed(digest.clone(), None)?;
    /// key.verifying_key().verify_prehashed_strict(digest, None, &signature)?;
    /// # Ok::<(), bulla_ed25519::SignatureError>(())
    /// ```
    pub fn verify_prehashed_strict<MsgDigest: Digest<OutputSize = U64>>(
        &self,
        prehashed_message: MsgDigest,
        context: Option<&[u8]>,
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        self.check_prehashed(prehashed_message, context, signature, Predicate::Strict)
    }

    fn check_prehashed<MsgDigest: Digest<OutputSize = U64>>(
        &self,
        prehashed_message: MsgDigest,
        context: Option<&[u8]>,
        signature: &Signature,
        predicate: Predicate,
    ) -> Result<(), SignatureError> {
        let domain = SigningDomain::ed25519ph(context.unwrap_or_default()).map_err(signature_error)?;
        self.check(domain.as_bytes(), &prehashed_message.finalize(), signature, predicate)
    }
}

#[cfg(feature = "digest")]
impl<D: Digest<OutputSize = U64> + Update> DigestSigner<D, Signature> for SigningKey {
    fn try_sign_digest<F: Fn(&mut D) -> Result<(), SignatureError>>(
        &self,
        f: F,
    ) -> Result<Signature, SignatureError> {
        self.sign_prehashed(hashed(f)?, None)
    }
}

#[cfg(feature = "digest")]
impl<D: Digest<OutputSize = U64> + Update> DigestSigner<D, Signature> for Context<'_, '_, SigningKey> {
    fn try_sign_digest<F: Fn(&mut D) -> Result<(), SignatureError>>(
        &self,
        f: F,
    ) -> Result<Signature, SignatureError> {
        self.key.sign_prehashed(hashed(f)?, Some(self.value))
    }
}

#[cfg(feature = "digest")]
impl<D: Digest<OutputSize = U64> + Update> DigestVerifier<D, Signature> for VerifyingKey {
    fn verify_digest<F: Fn(&mut D) -> Result<(), SignatureError>>(
        &self,
        f: F,
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        self.verify_prehashed(hashed(f)?, None, signature)
    }
}

#[cfg(feature = "digest")]
impl<D: Digest<OutputSize = U64> + Update> DigestVerifier<D, Signature> for Context<'_, '_, VerifyingKey> {
    fn verify_digest<F: Fn(&mut D) -> Result<(), SignatureError>>(
        &self,
        f: F,
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        self.key.verify_prehashed(hashed(f)?, Some(self.value), signature)
    }
}

/// The hash function after it took the message.
#[cfg(feature = "digest")]
fn hashed<D: Digest>(update: impl Fn(&mut D) -> Result<(), SignatureError>) -> Result<D, SignatureError> {
    let mut digest = D::new();
    update(&mut digest)?;
    Ok(digest)
}
