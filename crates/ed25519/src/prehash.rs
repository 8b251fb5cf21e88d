//! Signatures of digests: Ed25519ph, and BLAKE3 with its own domain.
//!
//! Ed25519ph hashes the message with SHA-512 first (RFC 8032, section 5.1). With
//! [`Prehash::Blake3`] the signature is plain Ed25519 over
//!
//! ```text
//! "bulla ed25519 blake3" 00  LENGTH  CONTEXT  DIGEST
//! ```
//!
//! where `00` is a zero byte, LENGTH is the length of CONTEXT in one byte, and DIGEST is the
//! message's BLAKE3 digest of 32 bytes. Any Ed25519 library can verify it. No text begins with
//! these bytes, and no other statement of a keystore does (`spec/signature.md`: `"bulla signature"
//! 00`), so a signature of one kind is never valid as the other kind.

use crate::context::SigningDomain;
pub use crate::error::ContextTooLong;
use crate::{InvalidReason, SignItem, SigningKey, Verdict, VerifyItem, kernel};

/// How messages are hashed before they are signed; side by side, if the CPU has vectors. A context
/// separates the uses of one key; it has at most 255 bytes and may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prehash<'a> {
    /// Ed25519ph (RFC 8032, section 5.1).
    Ed25519ph {
        /// The context.
        context: &'a [u8],
    },
    /// Ed25519 of a BLAKE3 digest: see the module's documentation.
    Blake3 {
        /// The context.
        context: &'a [u8],
    },
}

/// The prefix of everything that is hashed, and the texts that are signed instead of the messages.
struct Hashed {
    domain: Vec<u8>,
    messages: Vec<Vec<u8>>,
}

/// Signs one SHA-512 digest with Ed25519ph. The result is the signature that [`Prehash::sign_many`]
/// makes for a message with this digest: see [`verify_ed25519ph_digest`].
///
/// # Errors
///
/// [`ContextTooLong`].
pub fn sign_ed25519ph_digest(
    key: &SigningKey,
    digest: &[u8; 64],
    context: &[u8],
) -> Result<[u8; 64], ContextTooLong> {
    let mut out = [[0; 64]];
    let domain = SigningDomain::ed25519ph(context)?;
    kernel::active().sign_in(domain.as_bytes(), &[SignItem { key, message: digest }], &mut out);
    Ok(out[0])
}

/// The strict verdict on one Ed25519ph signature of a SHA-512 digest. It is the verdict of
/// [`Prehash::verify_many`] on a message with this digest.
///
/// # Errors
///
/// [`ContextTooLong`].
///
/// ```
/// use bulla_ed25519::SigningKey;
/// use bulla_ed25519::prehash::{sign_ed25519ph_digest, verify_ed25519ph_digest};
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let public_key = key.verifying_key().to_bytes();
/// let digest = [1; 64]; // SHA-512 of the message
/// let signature = sign_ed25519ph_digest(&key, &digest, b"bills")?;
/// assert!(verify_ed25519ph_digest(&public_key, &digest, b"bills", &signature)?.is_valid());
/// assert!(!verify_ed25519ph_digest(&public_key, &digest, b"offers", &signature)?.is_valid());
/// # Ok::<(), bulla_ed25519::ContextTooLong>(())
/// ```
pub fn verify_ed25519ph_digest(
    public_key: &[u8; 32],
    digest: &[u8; 64],
    context: &[u8],
    signature: &[u8; 64],
) -> Result<Verdict, ContextTooLong> {
    let mut out = [Verdict::Invalid(InvalidReason::Mismatch)];
    let domain = SigningDomain::ed25519ph(context)?;
    let item = VerifyItem { public_key, message: digest, signature };
    kernel::active().verify_in(domain.as_bytes(), &[item], &mut out);
    Ok(out[0])
}

impl Prehash<'_> {
    fn hash(self, messages: &[&[u8]]) -> Result<Hashed, ContextTooLong> {
        let (Self::Ed25519ph { context } | Self::Blake3 { context }) = self;
        let length = u8::try_from(context.len()).map_err(|_| ContextTooLong)?;
        match self {
            Self::Ed25519ph { .. } => {
                let domain = SigningDomain::ed25519ph(context)?.as_bytes().to_vec();
                let mut digests = vec![[0; 64]; messages.len()];
                kernel::active().hash(messages, &mut digests);
                Ok(Hashed { domain, messages: digests.iter().map(|digest| digest.to_vec()).collect() })
            }
            Self::Blake3 { .. } => {
                let mut digests = vec![bulla_blake3::hash(&[]); messages.len()];
                bulla_blake3::hash_many(messages, &mut digests);
                let start = [b"bulla ed25519 blake3\0".as_slice(), &[length], context].concat();
                let framed = digests.iter().map(|digest| [start.as_slice(), digest.as_bytes()].concat());
                Ok(Hashed { domain: Vec::new(), messages: framed.collect() })
            }
        }
    }

    /// Like [`verify_many`](crate::verify_many), for prehashed messages. The items have the
    /// messages themselves.
    ///
    /// # Errors
    ///
    /// [`ContextTooLong`].
    pub fn verify_many(self, items: &[VerifyItem<'_>]) -> Result<Vec<Verdict>, ContextTooLong> {
        let hashed = self.hash(&items.iter().map(|item| item.message).collect::<Vec<_>>())?;
        let items: Vec<_> = items
            .iter()
            .zip(&hashed.messages)
            .map(|(item, message)| VerifyItem { message, ..*item })
            .collect();
        let mut out = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
        kernel::active().verify_in(&hashed.domain, &items, &mut out);
        Ok(out)
    }

    /// Like [`sign_many`](crate::sign_many), for prehashed messages. The items have the messages
    /// themselves.
    ///
    /// # Errors
    ///
    /// [`ContextTooLong`].
    pub fn sign_many(self, items: &[SignItem<'_>]) -> Result<Vec<[u8; 64]>, ContextTooLong> {
        let hashed = self.hash(&items.iter().map(|item| item.message).collect::<Vec<_>>())?;
        let items: Vec<_> =
            items.iter().zip(&hashed.messages).map(|(item, message)| SignItem { message, ..*item }).collect();
        let mut out = vec![[0; 64]; items.len()];
        kernel::active().sign_in(&hashed.domain, &items, &mut out);
        Ok(out)
    }
}
