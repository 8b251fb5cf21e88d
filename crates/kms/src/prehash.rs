//! Signatures of digests, for messages that are not available to the signer or are too long to
//! send.
//!
//! Both kinds of Ed25519 keys come from [`bulla_ed25519::prehash`]; its documentation describes
//! their bytes. A context separates the uses of one key: a signature under one context does not
//! verify under another.
//!
//! ECDSA and RSA have no context, and their signature of a digest is that of the message. So a key
//! signs digests only if it was made for that
//! ([`NewKey::signs_digests`](crate::NewKey::signs_digests)), and then it signs no statements of
//! the keystore.

use bulla_ed25519::prehash::verify_ed25519ph_digest;

use crate::algorithm::Algorithm;
use crate::backend::{Backends, DecodedKey, RsaMessage, ed25519_verdict};
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::PublicKey;
use crate::reserved;
pub use crate::signature_scheme::{HashFunction, Prehash, PssSaltLength, RsaPadding};

/// The beginning of contexts that the keystore itself uses.
const RESERVED_CONTEXT: &[u8] = b"bulla ";
/// The context of signature files.
pub(crate) const SIGNATURE_FILE: &[u8] = b"bulla signature file";

impl Prehash {
    /// The digest of a message, to be signed or verified under `context`.
    ///
    /// # Errors
    /// The errors of [`Prehashed::new`].
    pub fn of(self, message: &[u8], context: &[u8]) -> Result<Prehashed> {
        Prehashed::new(self.digest(message), context)
    }

    pub(crate) fn digest(self, message: &[u8]) -> Digest {
        match self {
            Self::Blake3 => Digest::Blake3(bulla_blake3::hash(message)),
            Self::Ed25519ph => Digest::Sha512(<sha2::Sha512 as sha2::Digest>::digest(message).into()),
        }
    }
}

/// The digest of a message.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// For [`Prehash::Blake3`].
    Blake3(bulla_blake3::Hash),
    /// For ECDSA and RSA.
    Sha256([u8; 32]),
    /// For ECDSA and RSA.
    Sha384([u8; 48]),
    /// For [`Prehash::Ed25519ph`], and for ECDSA and RSA.
    Sha512([u8; 64]),
}

impl Digest {
    /// The hash function of the SHA-2 family and the digest; none for BLAKE3.
    fn sha2(&self) -> Option<(HashFunction, &[u8])> {
        match self {
            Self::Blake3(_) => None,
            Self::Sha256(digest) => Some((HashFunction::Sha256, digest)),
            Self::Sha384(digest) => Some((HashFunction::Sha384, digest)),
            Self::Sha512(digest) => Some((HashFunction::Sha512, digest)),
        }
    }
}

impl HashFunction {
    /// The digest of a message, to be signed or verified by a key of ECDSA or RSA; by RSA with the
    /// default padding, or with that of [`Prehashed::rsa_padding`].
    ///
    /// ```
    /// use bulla_kms::prehash::HashFunction;
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// # if cfg!(not(feature = "p256")) { return Ok(()) }
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::EcdsaP256);
    /// let key = keystore.create_key(new)?;
    /// let signature = keystore.sign(&key, b"a message")?;
    /// let digest = HashFunction::Sha256.of(b"a message");
    /// assert!(keystore.verify_prehashed(&key, &digest, &signature.bytes)?.is_valid());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn of(self, message: &[u8]) -> Prehashed {
        let digest = self.digest(&self.hash(message)).expect("a digest has its length");
        Prehashed { digest, context: Vec::new(), rsa_padding: RsaPadding::default() }
    }

    /// A digest that a caller made; none if it does not have the length of one.
    ///
    /// ```
    /// use bulla_kms::prehash::{Digest, HashFunction};
    ///
    /// assert_eq!(HashFunction::Sha256.digest(&[7; 32]), Some(Digest::Sha256([7; 32])));
    /// assert_eq!(HashFunction::Sha256.digest(&[7; 31]), None);
    /// ```
    pub fn digest(self, digest: &[u8]) -> Option<Digest> {
        match self {
            Self::Sha256 => digest.try_into().ok().map(Digest::Sha256),
            Self::Sha384 => digest.try_into().ok().map(Digest::Sha384),
            Self::Sha512 => digest.try_into().ok().map(Digest::Sha512),
        }
    }
}

/// A digest and the context under which it is signed.
///
/// ```
/// use bulla_kms::prehash::Prehash;
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let message = Prehash::Blake3.of(b"a message", b"example")?;
/// let made = keystore.sign_prehashed(key.key_id(), &message)?;
/// assert!(keystore.verify_prehashed(&made.key, &message, &made.bytes)?.is_valid());
/// // Without the keystore:
/// assert!(keystore.public_key(&made.key)?.verify_prehashed(&message, &made.bytes).is_valid());
/// assert_eq!(Prehash::Blake3.as_str(), "blake3");
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prehashed {
    digest: Digest,
    context: Vec<u8>,
    /// Of interest to RSA keys only.
    rsa_padding: RsaPadding,
}

impl Prehashed {
    /// A digest to be signed or verified under `context`, of at most 255 bytes; it may be empty.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the context is longer, or begins with `bulla `: these contexts
    /// are reserved for the keystore.
    pub fn new(digest: Digest, context: &[u8]) -> Result<Self> {
        if context.starts_with(RESERVED_CONTEXT) {
            let message = "the keystore reserves contexts that begin with \"bulla \"; use another context";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        if context.len() > 255 {
            let message = "a context has at most 255 bytes; shorten it, or hash it";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        Ok(Self { digest, context: context.to_vec(), rsa_padding: RsaPadding::default() })
    }

    /// Sets the padding of an RSA key. Keys of other algorithms ignore it.
    ///
    /// ```
    /// use bulla_kms::prehash::{HashFunction, RsaPadding};
    ///
    /// let message = HashFunction::Sha256.of(b"a message").rsa_padding(RsaPadding::Pkcs1v15);
    /// assert_ne!(message, HashFunction::Sha256.of(b"a message"));
    /// ```
    #[must_use]
    pub fn rsa_padding(mut self, padding: RsaPadding) -> Self {
        self.rsa_padding = padding;
        self
    }

    /// The digest that a signature file signs.
    pub(crate) fn of_file(prehash: Prehash, signed_bytes: &[u8]) -> Self {
        let (digest, context) = (prehash.digest(signed_bytes), SIGNATURE_FILE.to_vec());
        Self { digest, context, rsa_padding: RsaPadding::default() }
    }

    pub(crate) fn context(&self) -> &[u8] {
        &self.context
    }

    /// What a private key of the algorithm signs: for Ed25519 the message that plain Ed25519 signs,
    /// or the digest for Ed25519ph.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if keys of the algorithm do not sign such digests;
    /// [`Code::InvalidArgument`] if they have no contexts.
    pub(crate) fn form(&self, algorithm: Algorithm) -> Result<SignedForm> {
        match (algorithm, self.digest) {
            (Algorithm::Ed25519, Digest::Blake3(digest)) => {
                let length = u8::try_from(self.context.len()).expect("a context has at most 255 bytes");
                let frame = [reserved::BLAKE3_DIGEST, &[length], &self.context, digest.as_bytes()];
                Ok(SignedForm::Message(frame.concat()))
            }
            (Algorithm::Ed25519, Digest::Sha512(digest)) => Ok(SignedForm::Ed25519ph(digest)),
            (Algorithm::Ed25519, Digest::Sha256(_) | Digest::Sha384(_)) => {
                let message = "ed25519 keys sign digests of BLAKE3, and of SHA-512 as Ed25519ph";
                Err(KmsError::new(Code::KeyUsageMismatch, message))
            }
            (algorithm, digest) if algorithm.can_sign_digests() => self.sha2_form(algorithm, &digest),
            (algorithm, _) => Err(not_prehashed(algorithm)),
        }
    }
}

impl Prehashed {
    /// [`Prehashed::form`] for ECDSA and RSA.
    fn sha2_form(&self, algorithm: Algorithm, digest: &Digest) -> Result<SignedForm> {
        let Some((hash, digest)) = digest.sha2() else {
            let message = format!("{algorithm} keys sign digests of SHA-256, SHA-384 and SHA-512");
            return Err(KmsError::new(Code::KeyUsageMismatch, message));
        };
        if !self.context.is_empty() {
            let message = format!("{algorithm} keys sign digests without a context: leave the context out");
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        let digest = digest.to_vec();
        Ok(match algorithm.is_rsa() {
            true => SignedForm::Rsa { hash, padding: self.rsa_padding, digest },
            false => SignedForm::Ecdsa(digest),
        })
    }
}

/// The input of the private key.
#[derive(Debug)]
pub(crate) enum SignedForm {
    Message(Vec<u8>),
    Ed25519ph([u8; 64]),
    Ecdsa(Vec<u8>),
    Rsa { hash: HashFunction, padding: RsaPadding, digest: Vec<u8> },
}

impl PublicKey {
    /// Whether `signature` is a signature of a digest under this key, by the same strict predicate
    /// as [`PublicKey::verify`]. It is `Invalid` for digests that keys of the algorithm do not
    /// sign.
    pub fn verify_prehashed(&self, message: &Prehashed, signature: &[u8]) -> Verdict {
        match message.form(self.algorithm()) {
            Err(_) => Verdict::Invalid,
            Ok(SignedForm::Message(framed)) => self.verify(&framed, signature),
            Ok(SignedForm::Ecdsa(digest)) => match Backends::software().verifier(self.algorithm()) {
                Ok(backend) => backend.verify_digest(self.encoded(), &digest, signature),
                Err(_) => Verdict::Invalid,
            },
            Ok(SignedForm::Rsa { hash, padding, digest }) => {
                let message = RsaMessage::new(hash, padding, &digest);
                match Backends::software().verifier(self.algorithm()) {
                    Ok(backend) => backend.verify_rsa(self.encoded(), message, signature),
                    Err(_) => Verdict::Invalid,
                }
            }
            Ok(SignedForm::Ed25519ph(digest)) => {
                let key = self.encoded().prepared::<DecodedKey>().map(DecodedKey::key);
                let (Some(key), Ok(signature)) = (key, signature.try_into()) else { return Verdict::Invalid };
                verify_ed25519ph_digest(key.as_bytes(), &digest, message.context(), signature)
                    .map_or(Verdict::Invalid, ed25519_verdict)
            }
        }
    }
}

/// The error for a key that does not sign digests.
pub(crate) fn not_prehashed(algorithm: Algorithm) -> KmsError {
    KmsError::new(
        Code::KeyUsageMismatch,
        format!("keys of ed25519, ECDSA and RSA sign digests, not {algorithm} keys"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SOFTWARE;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// RFC 8032, section 7.3: the test of Ed25519ph.
    #[test]
    fn the_vector_of_ed25519ph() {
        let seed = bytes("833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42");
        let expected = "98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae41\
                        31f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406";
        let backend = Backends::software().find(SOFTWARE, Algorithm::Ed25519).unwrap();
        let key = backend.load(Algorithm::Ed25519, &zeroize::Zeroizing::new(seed)).unwrap();
        let message = Prehash::Ed25519ph.of(b"abc", b"").unwrap();
        let Ok(SignedForm::Ed25519ph(digest)) = message.form(Algorithm::Ed25519) else { panic!("a digest") };
        let signature = key.sign_ed25519ph(&digest, b"").unwrap();
        assert_eq!(signature, bytes(expected));
        let public = PublicKey::from_bytes(Algorithm::Ed25519, &key.public_key().unwrap()).unwrap();
        assert!(public.verify_prehashed(&message, &signature).is_valid());
        for index in 0..64 {
            for bit in 0..8 {
                let mut flipped = signature.clone();
                flipped[index] ^= 1 << bit;
                assert!(!public.verify_prehashed(&message, &flipped).is_valid(), "byte {index}, bit {bit}");
            }
        }
    }
}
