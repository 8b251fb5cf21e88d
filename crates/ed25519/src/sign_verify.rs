//! One signature: the traits of the crate `signature`, and the two predicates of `ed25519-dalek`,
//! by the kernels where there are any.

use crate::error::{SignatureError, signature_error};
#[cfg(feature = "std")]
use crate::signing_key::SignItem;
use crate::signing_key::SigningKey;
use crate::verdict::InvalidReason;
use crate::verifying_key::VerifyingKey;
use crate::{serial, wipe};
use ed25519::Signature;
use ed25519::signature::{MultipartSigner, MultipartVerifier, Signer, Verifier};
use sha2::Sha512;

/// Which signatures are valid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predicate {
    /// The equation without the cofactor, R compared as bytes, and S below the order.
    Plain,
    /// In addition, A and R are not of small order.
    Strict,
}

impl SigningKey {
    /// Verifies like [`Verifier::verify`] of the public key.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid.
    ///
    /// ```
    /// use bulla_ed25519::{Signer, SigningKey};
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let signature = key.sign(b"message");
    /// assert!(key.verify(b"message", &signature).is_ok());
    /// assert!(key.verify(b"another", &signature).is_err());
    /// ```
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        self.as_ref().verify(message, signature)
    }

    /// Verifies like [`VerifyingKey::verify_strict`].
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid.
    ///
    /// ```
    /// use bulla_ed25519::{Signer, SigningKey};
    ///
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// assert!(key.verify_strict(b"message", &key.sign(b"message")).is_ok());
    /// ```
    pub fn verify_strict(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        self.as_ref().verify_strict(message, signature)
    }

    /// Signs one message, with a domain before everything that is hashed.
    pub(crate) fn sign_with_domain(&self, domain: &[u8], message: &[u8]) -> Signature {
        #[cfg(feature = "std")]
        {
            let mut out = [[0; 64]];
            crate::kernel::active().sign_in(domain, &[SignItem { key: self, message }], &mut out);
            Signature::from_bytes(&out[0])
        }
        #[cfg(not(feature = "std"))]
        Signature::from_bytes(&self.sign_serially(domain, &[message]))
    }
}

impl Signer<Signature> for SigningKey {
    fn try_sign(&self, message: &[u8]) -> Result<Signature, SignatureError> {
        Ok(self.sign_with_domain(&[], message))
    }
}

impl MultipartSigner<Signature> for SigningKey {
    fn try_multipart_sign(&self, message: &[&[u8]]) -> Result<Signature, SignatureError> {
        match message {
            [message] => self.try_sign(message),
            // The kernels take messages as a whole.
            parts => Ok(Signature::from_bytes(&wipe::wiping_stack(|| self.sign_serially(&[], parts)))),
        }
    }
}

impl Verifier<Signature> for SigningKey {
    fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        self.as_ref().verify(message, signature)
    }
}

impl MultipartVerifier<Signature> for SigningKey {
    fn multipart_verify(&self, message: &[&[u8]], signature: &Signature) -> Result<(), SignatureError> {
        self.as_ref().multipart_verify(message, signature)
    }
}

impl VerifyingKey {
    /// Verifies a signature strictly: the key and R must not be of small order, besides what
    /// [`verify`](Verifier::verify) demands. Then the signature fits no other message, and the
    /// verdict is that of [`verify_many`](crate::verify_many).
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the signature is not valid.
    ///
    /// ```
    /// use bulla_ed25519::{Signer, SigningKey};
    ///
    /// let signer = SigningKey::from_bytes(&[7; 32]);
    /// let (key, signature) = (signer.verifying_key(), signer.sign(b"message"));
    /// assert!(key.verify_strict(b"message", &signature).is_ok());
    /// assert!(key.verify_strict(b"another", &signature).is_err());
    /// ```
    pub fn verify_strict(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        self.check(&[], message, signature, Predicate::Strict)
    }

    /// Verifies one signature, with a domain before everything that is hashed. The kernels know
    /// only the strict predicate: what they refuse and the other one may accept is verified again.
    pub(crate) fn check(
        &self,
        domain: &[u8],
        message: &[u8],
        signature: &Signature,
        predicate: Predicate,
    ) -> Result<(), SignatureError> {
        #[cfg(feature = "std")]
        {
            use crate::verdict::{Verdict, VerifyItem};
            let bytes = signature.to_bytes();
            let item = VerifyItem { public_key: self.as_bytes(), message, signature: &bytes };
            let mut verdict = [Verdict::Invalid(InvalidReason::Mismatch)];
            crate::kernel::active().verify_in(domain, &[item], &mut verdict);
            match verdict[0] {
                Verdict::Valid => return Ok(()),
                Verdict::Invalid(InvalidReason::KeyOfSmallOrder | InvalidReason::ROfSmallOrder)
                    if predicate == Predicate::Plain => {}
                Verdict::Invalid(InvalidReason::ScalarNotCanonical)
                    if cfg!(feature = "legacy_compatibility") => {}
                Verdict::Invalid(reason) => return Err(signature_error(reason)),
            }
        }
        if predicate == Predicate::Strict {
            serial::accepted_scalar(signature.s_bytes()).map_err(signature_error)?;
            if self.is_weak() {
                return Err(signature_error(InvalidReason::KeyOfSmallOrder));
            }
            if serial::has_small_order_y(signature.r_bytes()) {
                return Err(signature_error(InvalidReason::ROfSmallOrder));
            }
        }
        self.verify_serially::<Sha512>(domain, &[message], signature)
    }
}

/// The predicate is the equation without the cofactor, with R compared as bytes and S below the
/// order of the group. The key and R may be of small order.
impl Verifier<Signature> for VerifyingKey {
    fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        self.check(&[], message, signature, Predicate::Plain)
    }
}

impl MultipartVerifier<Signature> for VerifyingKey {
    fn multipart_verify(&self, message: &[&[u8]], signature: &Signature) -> Result<(), SignatureError> {
        match message {
            [message] => self.verify(message, signature),
            // The kernels take messages as a whole.
            parts => self.verify_serially::<Sha512>(&[], parts, signature),
        }
    }
}
