//! The backend interface: one small trait, which anyone may implement.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, KeyUsage};
use crate::approval::ApprovedUse;
use crate::error::{Code, KmsError, Result};
use crate::key_shares::KeyShares;
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};
use crate::secret_bytes::SecretBytes;
use crate::signature_scheme::{HashFunction, RsaPadding};

/// The data by which a backend finds a private key again: for a software key, the key itself; for a
/// key in a device, its handle. The keystore encrypts it and does not interpret it.
pub type KeyMaterial = Zeroizing<Vec<u8>>;

/// The name of the backend that keeps private keys in this process's memory.
pub const SOFTWARE: &str = "software";

/// The name of the backend whose private keys several nodes of a service have together, and none
/// has whole.
pub const GROUP: &str = "group";

/// What a backend can do for an algorithm.
///
/// ```
/// use bulla_kms::backend::Capabilities;
///
/// let capabilities = Capabilities::default().verify_lanes(8).sign_lanes(8).material_is_key(true);
/// assert_eq!(capabilities.verify_lanes, 8);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How many signatures are best verified together: a call of [`Backend::verify_many`] costs
    /// least per signature with a multiple of this number. 1 if batches gain nothing.
    pub verify_lanes: usize,
    /// How many messages are best signed together, by [`Backend::sign_many`].
    pub sign_lanes: usize,
    /// Whether the material is the private key itself, so that it can be exported and imported.
    pub material_is_key: bool,
}

impl Default for Capabilities {
    /// An algorithm that gains nothing from batches, and whose private keys stay in the backend.
    fn default() -> Self {
        Self { verify_lanes: 1, sign_lanes: 1, material_is_key: false }
    }
}

impl Capabilities {
    /// Sets how many signatures are best verified together.
    #[must_use]
    pub fn verify_lanes(mut self, verify_lanes: usize) -> Self {
        self.verify_lanes = verify_lanes;
        self
    }

    /// Sets how many messages are best signed together.
    #[must_use]
    pub fn sign_lanes(mut self, sign_lanes: usize) -> Self {
        self.sign_lanes = sign_lanes;
        self
    }

    /// Sets whether the material is the private key itself.
    #[must_use]
    pub fn material_is_key(mut self, material_is_key: bool) -> Self {
        self.material_is_key = material_is_key;
        self
    }
}

/// One signature to verify.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct VerifyRequest<'a> {
    /// The public key, of an algorithm that the backend supports.
    pub public_key: &'a EncodedKey,
    /// The message.
    pub message: &'a [u8],
    /// The signature, of any length.
    pub signature: &'a [u8],
}

impl<'a> VerifyRequest<'a> {
    /// The question whether this signature is one of `message` under this public key.
    pub fn new(public_key: &'a EncodedKey, message: &'a [u8], signature: &'a [u8]) -> Self {
        Self { public_key, message, signature }
    }
}

/// One message to sign.
#[non_exhaustive]
#[derive(Clone, Copy)]
pub struct SignRequest<'a> {
    /// The private key, as the backend loaded it.
    pub key: &'a (dyn PrivateKey + 'static),
    /// The message.
    pub message: &'a [u8],
    /// What permits this use: see [`PrivateKey::sign_approved`].
    pub approved: Option<&'a ApprovedUse>,
}

impl<'a> SignRequest<'a> {
    /// The request to sign `message` with this private key.
    pub fn new(key: &'a (dyn PrivateKey + 'static), message: &'a [u8]) -> Self {
        Self { key, message, approved: None }
    }

    /// Sets what permits this use.
    ///
    /// ```
    /// use bulla_kms::approval::ApprovedUse;
    /// use bulla_kms::backend::{PrivateKey, SignRequest};
    ///
    /// type Key = dyn PrivateKey + 'static;
    ///
    /// fn request<'a>(key: &'a Key, approved: &'a ApprovedUse) -> SignRequest<'a> {
    ///     SignRequest::new(key, b"a message").approved(Some(approved))
    /// }
    /// ```
    #[must_use]
    pub fn approved(mut self, approved: Option<&'a ApprovedUse>) -> Self {
        self.approved = approved;
        self
    }

    /// The signature by the private key alone.
    pub(crate) fn sign(&self) -> Result<Vec<u8>> {
        match self.approved {
            Some(approved) => self.key.sign_approved(self.message, approved),
            None => self.key.sign(self.message),
        }
    }
}

/// A digest that an RSA key signs.
///
/// ```
/// use bulla_kms::backend::RsaMessage;
/// use bulla_kms::prehash::{HashFunction, RsaPadding};
///
/// let message = RsaMessage::new(HashFunction::Sha256, RsaPadding::Pkcs1v15, &[7; 32]);
/// assert_eq!(message.digest.len(), message.hash.digest_length());
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct RsaMessage<'a> {
    /// The hash function.
    pub hash: HashFunction,
    /// The padding.
    pub padding: RsaPadding,
    /// The digest, of the hash function's length.
    pub digest: &'a [u8],
}

impl<'a> RsaMessage<'a> {
    /// The digest of a message, to be padded so.
    pub fn new(hash: HashFunction, padding: RsaPadding, digest: &'a [u8]) -> Self {
        Self { hash, padding, digest }
    }
}

/// A key that two parties share after an encapsulation.
pub type SharedKey = Zeroizing<[u8; 32]>;

/// A key and the ciphertext that carries it: see [`Backend::encapsulate`].
#[non_exhaustive]
pub struct Encapsulated {
    /// For the holder of the private key.
    pub ciphertext: Vec<u8>,
    /// For the party that encapsulated it.
    pub shared_key: SharedKey,
}

impl Encapsulated {
    /// A shared key and the ciphertext that carries it.
    pub fn new(ciphertext: Vec<u8>, shared_key: SharedKey) -> Self {
        Self { ciphertext, shared_key }
    }
}

/// The key that encrypts: see [`KeyDerivation`](crate::KeyDerivation).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionMode<'a> {
    /// The version's own key, with a random nonce.
    Direct,
    /// The key that HKDF-SHA-256 (RFC 5869) derives from the version's key, without a salt, with
    /// this context; with a random nonce.
    PerContext(&'a [u8]),
    /// As `PerContext`. The next 32 bytes of HKDF's output are a key of HMAC-SHA-256. The nonce is
    /// the start of the plaintext's HMAC under it.
    Convergent(&'a [u8]),
}

/// A plaintext to encrypt.
#[non_exhaustive]
#[derive(Clone, Copy)]
pub struct EncryptRequest<'a> {
    /// The key that encrypts.
    pub mode: EncryptionMode<'a>,
    /// The data that the tag covers, and that is not part of the ciphertext.
    pub associated_data: &'a [u8],
    /// The plaintext.
    pub plaintext: &'a [u8],
}

impl<'a> EncryptRequest<'a> {
    /// The request to encrypt `plaintext`.
    pub fn new(mode: EncryptionMode<'a>, associated_data: &'a [u8], plaintext: &'a [u8]) -> Self {
        Self { mode, associated_data, plaintext }
    }
}

/// A ciphertext to decrypt.
#[non_exhaustive]
#[derive(Clone, Copy)]
pub struct DecryptRequest<'a> {
    /// The key that encrypted it.
    pub mode: EncryptionMode<'a>,
    /// The data that the tag covers, and that is not part of the ciphertext.
    pub associated_data: &'a [u8],
    /// The nonce of the algorithm's length, which is 0 for RSA.
    pub nonce: &'a [u8],
    /// The ciphertext with its tag, if the algorithm has tags.
    pub ciphertext: &'a [u8],
}

impl<'a> DecryptRequest<'a> {
    /// The request to decrypt `ciphertext`.
    pub fn new(
        mode: EncryptionMode<'a>,
        associated_data: &'a [u8],
        nonce: &'a [u8],
        ciphertext: &'a [u8],
    ) -> Self {
        Self { mode, associated_data, nonce, ciphertext }
    }
}

/// The error for an operation that the algorithm does not have.
pub(crate) fn key_usage_mismatch(algorithm: Algorithm) -> KmsError {
    let does = match algorithm.usage() {
        _ if algorithm.is_rsa() => "signs, verifies, encrypts and decrypts, and does nothing else",
        KeyUsage::Signature => "signs and verifies signatures, and does nothing else",
        KeyUsage::KeyEncapsulation => "encapsulates keys, and does nothing else",
        KeyUsage::KeyAgreement => "agrees on shared secrets, and does nothing else",
        KeyUsage::Encryption => "encrypts and decrypts, and does nothing else: it has no public key",
        KeyUsage::Authentication => "makes and verifies MACs, and does nothing else: it has no public key",
    };
    KmsError::new(Code::KeyUsageMismatch, format!("a key of {algorithm} {does}"))
}

/// An error unless keys of the algorithm have this usage.
pub(crate) fn check_usage(algorithm: Algorithm, wanted: KeyUsage) -> Result<()> {
    if algorithm.has_usage(wanted) { Ok(()) } else { Err(key_usage_mismatch(algorithm)) }
}

/// The error for a key whose backend has it whole.
pub(crate) fn no_shares(backend: &str) -> KmsError {
    let message = format!(
        "the key has no shares: its backend is {backend}, and only keys of several nodes together have some"
    );
    KmsError::new(Code::InvalidArgument, message)
}

/// The one error for a ciphertext that was cut or changed, or was made with another key, version,
/// context or associated data. It does not say which, because an answer to that could help to guess
/// a plaintext.
pub(crate) fn invalid_ciphertext() -> KmsError {
    let message = "the ciphertext does not decrypt: it was changed, or it belongs to another key, key version, context or associated data";
    KmsError::new(Code::InvalidCiphertext, message)
}

/// A backend makes and loads private keys, and verifies signatures.
///
/// The verdict on a signature must not depend on the backend: all implementations of an algorithm
/// compute the predicate that [`PublicKey::verify`](crate::PublicKey::verify) states.
pub trait Backend: fmt::Debug + Send + Sync {
    /// A short name, which is stored in the records of keys: one word in lower case.
    fn name(&self) -> &str;

    /// What this backend can do for `algorithm`; `None` if it does not support it. The other
    /// methods are called only with algorithms that it supports.
    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities>;

    /// Makes a private key.
    ///
    /// # Errors
    /// Errors of the device.
    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial>;

    /// Whether the parts of a private key match. The signatures of an imported key whose parts do
    /// not match could reveal its secrets. A material that is only a seed always matches.
    fn is_consistent(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> bool {
        true
    }

    /// The expanded form of a private key that other programs write beside its seed, as in ML-DSA
    /// (FIPS 204, algorithm 24) and ML-KEM (FIPS 203, algorithm 16); `None` if the algorithm has no
    /// such form, or the seed has a wrong length.
    fn expanded(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> Option<KeyMaterial> {
        None
    }

    /// Prepares a private key once, for many signatures.
    ///
    /// # Errors
    /// An error if [`Backend::generate`] could not have returned the material; errors of the
    /// device.
    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>>;

    /// Deletes a private key from the device that holds it. It is no error if the key is already
    /// gone. If the material is the key itself, there is nothing to do.
    ///
    /// # Errors
    /// Errors of the device.
    fn destroy(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> Result<()> {
        Ok(())
    }

    /// Gives the machines that have this private key together new shares of it.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the backend has its keys whole, which is the default; errors of
    /// the other machines.
    fn refresh_shares(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> Result<()> {
        Err(no_shares(self.name()))
    }

    /// Lets the other machines that have this private key together repair this one's lost share.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the backend has its keys whole, which is the default;
    /// [`Code::Conflict`] if the share is not lost; errors of the other machines.
    fn repair_share(&self, _algorithm: Algorithm, _material: &KeyMaterial) -> Result<()> {
        Err(no_shares(self.name()))
    }

    /// Checks the bytes of a public key and decodes them for [`Backend::verify`].
    ///
    /// # Errors
    /// [`Code::InvalidPublicKey`].
    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared>;

    /// Whether the signature is valid for the message under the public key.
    fn verify(&self, request: VerifyRequest<'_>) -> Verdict;

    /// Whether the signature is valid for a message with this digest, under a key of ECDSA. It is
    /// `Invalid` for other algorithms, which is the default.
    fn verify_digest(&self, public_key: &EncodedKey, digest: &[u8], signature: &[u8]) -> Verdict {
        let _ = (public_key, digest, signature);
        Verdict::Invalid
    }

    /// Whether the signature is valid for a message with this digest, under a key of RSA. It is
    /// `Invalid` for other algorithms, which is the default.
    fn verify_rsa(&self, public_key: &EncodedKey, message: RsaMessage<'_>, signature: &[u8]) -> Verdict {
        let _ = (public_key, message, signature);
        Verdict::Invalid
    }

    /// Encrypts for the holder of the private key: RSAES-OAEP with SHA-256 and this label.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is another one than RSA, which is the default;
    /// [`Code::InvalidArgument`] if the plaintext is too long for the key.
    fn encrypt(&self, public_key: &EncodedKey, label: &[u8], plaintext: &[u8]) -> Result<Vec<u8>> {
        let _ = (label, plaintext);
        Err(key_usage_mismatch(public_key.algorithm()))
    }

    /// Makes a key of 32 bytes, and the ciphertext from which the holder of the private key
    /// recovers it.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm does not encapsulate keys.
    fn encapsulate(&self, public_key: &EncodedKey) -> Result<Encapsulated> {
        Err(key_usage_mismatch(public_key.algorithm()))
    }

    /// The verdict of [`Backend::verify`] on each request, in their order. All requests have one
    /// algorithm.
    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        requests.iter().map(|request| self.verify(*request)).collect()
    }

    /// The result of [`PrivateKey::sign`], or of [`PrivateKey::sign_approved`] where something
    /// permits the use, for each request, in their order. All keys have this
    /// algorithm, and this backend loaded them.
    fn sign_many(&self, _algorithm: Algorithm, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        requests.iter().map(SignRequest::sign).collect()
    }
}

/// A private key, or the secret of a symmetric algorithm, that is ready for use. Implementations
/// wipe it from memory on drop, and never print any part of it.
pub trait PrivateKey: Any + Send + Sync {
    /// The bytes of its public key.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is symmetric; errors of the device.
    fn public_key(&self) -> Result<Vec<u8>>;

    /// Who holds shares of it, as far as this machine knows; none if it is in one place.
    fn shares(&self) -> Option<KeyShares> {
        None
    }

    /// A digest by which the keystore recognizes the secret of a symmetric algorithm, as it
    /// recognizes a private key by its public key. It never leaves the encrypted record.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm has public keys, which is the default; errors of
    /// the device.
    fn check_value(&self) -> Result<[u8; 32]> {
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm has public keys"))
    }

    /// Encrypts, and appends the nonce, the ciphertext and the tag to `output`. After an error,
    /// `output` is as it was.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm does not encrypt, which is the default;
    /// [`Code::RandomUnavailable`]; errors of the device.
    fn encrypt(&self, request: EncryptRequest<'_>, output: &mut Vec<u8>) -> Result<()> {
        let _ = (request, output);
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm does not encrypt"))
    }

    /// Decrypts what [`PrivateKey::encrypt`] made. It returns the whole plaintext or nothing.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm does not encrypt, which is the default;
    /// [`Code::InvalidCiphertext`], with one text for all causes; errors of the device.
    fn decrypt(&self, request: DecryptRequest<'_>) -> Result<Zeroizing<Vec<u8>>> {
        let _ = request;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm does not encrypt"))
    }

    /// The MAC of a message.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm makes no MACs, which is the default; errors of
    /// the device.
    fn mac(&self, message: &[u8]) -> Result<Vec<u8>> {
        let _ = message;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm makes no MACs"))
    }

    /// Whether `mac` is the whole MAC of a message. It compares in constant time.
    ///
    /// # Errors
    /// Those of [`PrivateKey::mac`].
    fn verify_mac(&self, message: &[u8], mac: &[u8]) -> Result<Verdict> {
        let _ = (message, mac);
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm makes no MACs"))
    }

    /// Signs a message.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm does not sign, which is the default; errors of
    /// the device.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let _ = message;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm does not sign"))
    }

    /// Signs a message whose signature several people have approved. A backend whose keys several
    /// machines have together shows them what permits it, and each of them checks that by itself.
    /// The keystore has checked it, and the default is [`PrivateKey::sign`].
    ///
    /// # Errors
    /// Those of [`PrivateKey::sign`].
    fn sign_approved(&self, message: &[u8], approved: &ApprovedUse) -> Result<Vec<u8>> {
        let _ = approved;
        self.sign(message)
    }

    /// The key of 32 bytes that the ciphertext carries. For a ciphertext of the right length that
    /// was made for another key, the algorithm's specification may return a key that nobody else
    /// has, instead of an error.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm does not encapsulate, which is the default;
    /// [`Code::InvalidCiphertext`]; errors of the device.
    fn decapsulate(&self, ciphertext: &[u8]) -> Result<SharedKey> {
        let _ = ciphertext;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm does not encapsulate keys"))
    }

    /// The secret that this key and the holder of the peer's private key share: the x of the point
    /// of both keys, or the u on Curve25519. `peer` is of this key's algorithm.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm does not agree on secrets, which is the default;
    /// [`Code::InvalidPublicKey`]; errors of the device.
    fn derive_shared_secret(&self, peer: &EncodedKey) -> Result<SecretBytes> {
        let _ = peer;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm does not agree on secrets"))
    }

    /// Signs a digest of SHA-512 as Ed25519ph (RFC 8032, section 5.1); `context` has at most 255
    /// bytes.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is another one, or the device does not support
    /// such signatures; errors of the device.
    fn sign_ed25519ph(&self, digest: &[u8; 64], context: &[u8]) -> Result<Vec<u8>> {
        let _ = (digest, context);
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's backend does not make signatures of Ed25519ph"))
    }

    /// Signs a digest by RSA.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is another one, which is the default;
    /// [`Code::InvalidArgument`] for a length of the salt that the backend does not make; errors of
    /// the device.
    fn sign_rsa(&self, message: RsaMessage<'_>) -> Result<Vec<u8>> {
        let _ = message;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's algorithm is not RSA"))
    }

    /// Signs a digest of 32 to 64 bytes by ECDSA (FIPS 186-5, section 6.4.1), which uses its
    /// leftmost bits.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is another one, or the device does not sign
    /// digests, which is the default; errors of the device.
    fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        let _ = digest;
        Err(KmsError::new(Code::KeyUsageMismatch, "the key's backend does not sign digests"))
    }
}
