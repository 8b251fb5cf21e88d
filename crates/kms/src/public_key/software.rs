//! What a public key does, by the software backend. Backends get public keys themselves, so the
//! type does not know them.

use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserializer;

use super::encoded::{EncodedKey, Prepared};
use super::{PublicKey, parse};
use crate::algorithm::Algorithm;
use crate::backend::{Backends, Encapsulated, VerifyRequest};
use crate::encoding::TextVisitor;
#[cfg(doc)]
use crate::error::Code;
use crate::error::{KmsError, Result};
use crate::key_signature::Verdict;

/// Decodes a key with the software backend.
fn decode(algorithm: Algorithm, bytes: &[u8]) -> Option<Prepared> {
    Backends::software().verifier(algorithm).ok()?.prepare(algorithm, bytes).ok()
}

impl PublicKey {
    /// Reads the bytes that the algorithm's specification defines; for Ed25519 the 32 bytes of RFC
    /// 8032, section 5.1.5.
    ///
    /// # Errors
    /// [`Code::InvalidPublicKey`] for another length, and for bytes that are not a key. For Ed25519
    /// these are bytes that are not a point of the curve; a point of small order, under which one
    /// signature fits almost every message; and a y that is not reduced, which is a second encoding
    /// of a point. For X-Wing it is an X25519 part of low order. [`Code::UnsupportedAlgorithm`] if
    /// this build cannot verify signatures of the algorithm. [`Code::KeyUsageMismatch`] if the
    /// algorithm has no public keys.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self> {
        let prepared = Backends::software().verifier(algorithm)?.prepare(algorithm, bytes)?;
        Ok(Self(Arc::new(EncodedKey::decoded(algorithm, bytes, decode, prepared))))
    }

    /// Reads the text form of a key that was checked before it was encrypted.
    pub(crate) fn deserialize_trusted<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        /// The parts of the text.
        struct Parts(Algorithm, Vec<u8>);
        impl FromStr for Parts {
            type Err = KmsError;
            fn from_str(text: &str) -> Result<Self> {
                parse(text).map(|(algorithm, bytes)| Self(algorithm, bytes))
            }
        }
        let Parts(algorithm, bytes) = deserializer.deserialize_str(TextVisitor(PhantomData))?;
        Ok(Some(Self(Arc::new(EncodedKey::new(algorithm, &bytes, decode)))))
    }

    /// Whether `signature` is one of `message` under this key.
    ///
    /// For Ed25519 the predicate is the strict one, `verify_strict` of `ed25519-dalek` 3: the
    /// equation without the cofactor, R compared as bytes, S below the order of the group, A and R
    /// not of small order. A signature of the wrong length for the algorithm is invalid.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Verdict {
        match Backends::software().verifier(self.algorithm()) {
            Ok(backend) => backend.verify(VerifyRequest { public_key: self.encoded(), message, signature }),
            Err(_) => Verdict::Invalid,
        }
    }

    /// Makes a key of 32 bytes for the holder of the private key, and the ciphertext that carries
    /// it: [`Keystore::decapsulate`](crate::Keystore::decapsulate).
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the algorithm is one for signatures;
    /// [`Code::UnsupportedAlgorithm`]; [`Code::RandomUnavailable`].
    ///
    /// ```
    /// # #[cfg(feature = "mlkem")]
    /// # (|| {
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "mail".parse()?, Algorithm::XWing);
    /// let public_key = keystore.public_key(&keystore.create_key(new)?)?;
    /// let sent = public_key.encapsulate()?;
    /// assert_eq!(sent.shared_key.len(), 32);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    pub fn encapsulate(&self) -> Result<Encapsulated> {
        Backends::software().verifier(self.algorithm())?.encapsulate(self.encoded())
    }

    /// Encrypts for the holder of an RSA key: RSAES-OAEP with SHA-256, with `label`, which may be
    /// empty, as its label (RFC 8017, section 7.1). The plaintext has at most 66 bytes less than
    /// the modulus: 190, 318 or 446.
    ///
    /// The ciphertext is that of OpenSSL and of others, without the version of the key.
    /// [`CiphertextParts::new`](crate::CiphertextParts::new) adds that for
    /// [`Keystore::decrypt`](crate::Keystore::decrypt), where the label is the associated data.
    ///
    /// ```
    /// # #[cfg(feature = "nist")]
    /// # (|| {
    /// use std::num::NonZeroU32;
    ///
    /// use bulla_kms::{Algorithm, CiphertextParts, EncryptionOptions, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "mail".parse()?, Algorithm::Rsa2048);
    /// let key = keystore.create_key(new)?;
    /// let sent = keystore.public_key(&key)?.encrypt(b"a secret", b"letter 7")?;
    ///
    /// let sent = CiphertextParts::new(Algorithm::Rsa2048, NonZeroU32::MIN, &sent)?.to_bytes();
    /// let options = EncryptionOptions::default().associated_data(b"letter 7");
    /// assert_eq!(**keystore.decrypt(key.key_id(), &sent, &options)?.bytes, *b"a secret");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] for other algorithms; [`Code::InvalidArgument`] for a plaintext
    /// that is too long; [`Code::UnsupportedAlgorithm`].
    pub fn encrypt(&self, plaintext: &[u8], label: &[u8]) -> Result<Vec<u8>> {
        Backends::software().verifier(self.algorithm())?.encrypt(self.encoded(), label, plaintext)
    }
}
