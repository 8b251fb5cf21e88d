//! Authenticated encryption in software: AES-GCM, ChaCha20-Poly1305 and XChaCha20-Poly1305. The
//! material is the key: 16 random bytes for AES-128, 32 for the others.
//!
//! Keys by context, and nonces of convergent encryption, are those of Vault's transit engine: the
//! KDF `hkdf_sha256`, and version 3 of convergent encryption.

use std::sync::Arc;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::cipher::Cipher;
use super::interface::{
    Backend, Capabilities, DecryptRequest, EncryptRequest, EncryptionMode, KeyMaterial, PrivateKey, SOFTWARE,
    VerifyRequest, invalid_ciphertext, key_usage_mismatch,
};
use super::mac::{check_value, hmac_sha256};
use crate::algorithm::{Algorithm, KeyUsage, TAG_LEN};
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::Prepared;
use crate::random;

/// The length of the keys of HMAC-SHA-256 that compute nonces.
const NONCE_KEY_LEN: usize = 32;

/// Keys that encrypt, in this process's memory.
#[derive(Debug)]
pub(super) struct AeadBackend;

fn key_length(algorithm: Algorithm) -> usize {
    if algorithm == Algorithm::Aes128Gcm { 16 } else { 32 }
}

impl Backend for AeadBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        (algorithm.usage() == KeyUsage::Encryption).then_some(Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut key = Zeroizing::new(vec![0; key_length(algorithm)]);
        random::fill(&mut key)?;
        Ok(key)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let cipher = Cipher::new(algorithm, material).ok_or_else(|| {
            let length = key_length(algorithm);
            KmsError::corrupt(format!("a stored key of {algorithm} does not have {length} bytes"))
        })?;
        Ok(Arc::new(AeadKey { algorithm, material: material.clone(), cipher }))
    }

    fn prepare(&self, algorithm: Algorithm, _public_key: &[u8]) -> Result<Prepared> {
        Err(key_usage_mismatch(algorithm))
    }

    /// A key that does not sign verifies nothing.
    fn verify(&self, _request: VerifyRequest<'_>) -> Verdict {
        Verdict::Invalid
    }
}

/// The libraries wipe the cipher on drop.
struct AeadKey {
    algorithm: Algorithm,
    material: KeyMaterial,
    cipher: Cipher,
}

/// The key for a context, and the key for its nonces.
struct ContextKeys {
    cipher: Cipher,
    nonce_key: Zeroizing<[u8; NONCE_KEY_LEN]>,
}

impl AeadKey {
    fn context_keys(&self, context: &[u8]) -> ContextKeys {
        let length = self.material.len();
        let mut derived = Zeroizing::new([0; 32 + NONCE_KEY_LEN]);
        let derived = &mut derived[..length + NONCE_KEY_LEN];
        let hkdf = Hkdf::<Sha256>::new(None, &self.material);
        hkdf.expand(context, derived).expect("HKDF-SHA-256 gives up to 8160 bytes");
        let (key, rest) = derived.split_at(length);
        let cipher = Cipher::new(self.algorithm, key).expect("the key has the length of the version's key");
        let mut nonce_key = Zeroizing::new([0; NONCE_KEY_LEN]);
        nonce_key.copy_from_slice(rest);
        ContextKeys { cipher, nonce_key }
    }

    fn encrypt_with(
        &self,
        cipher: &Cipher,
        nonce: Option<&[u8]>,
        request: &EncryptRequest<'_>,
        output: &mut Vec<u8>,
    ) -> Result<()> {
        let start = output.len();
        let mut bytes = [0; 24];
        let bytes = &mut bytes[..self.algorithm.nonce_length()];
        match nonce {
            Some(nonce) => bytes.copy_from_slice(&nonce[..bytes.len()]),
            None => random::fill(bytes)?,
        }
        output.reserve_exact(bytes.len() + request.plaintext.len() + TAG_LEN);
        output.extend_from_slice(bytes);
        cipher.encrypt(bytes, request, output).ok_or_else(|| {
            output.truncate(start);
            KmsError::new(Code::InvalidArgument, "the plaintext or its associated data is too long")
        })
    }
}

impl PrivateKey for AeadKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Err(key_usage_mismatch(self.algorithm))
    }

    fn check_value(&self) -> Result<[u8; 32]> {
        Ok(check_value(&self.material))
    }

    fn encrypt(&self, request: EncryptRequest<'_>, output: &mut Vec<u8>) -> Result<()> {
        match request.mode {
            EncryptionMode::Direct => self.encrypt_with(&self.cipher, None, &request, output),
            EncryptionMode::PerContext(context) => {
                self.encrypt_with(&self.context_keys(context).cipher, None, &request, output)
            }
            EncryptionMode::Convergent(context) => {
                let keys = self.context_keys(context);
                let nonce = hmac_sha256(&*keys.nonce_key, request.plaintext);
                self.encrypt_with(&keys.cipher, Some(&nonce), &request, output)
            }
        }
    }

    fn decrypt(&self, request: DecryptRequest<'_>) -> Result<Zeroizing<Vec<u8>>> {
        let plaintext = match request.mode {
            EncryptionMode::Direct => self.cipher.decrypt(&request),
            EncryptionMode::PerContext(context) | EncryptionMode::Convergent(context) => {
                self.context_keys(context).cipher.decrypt(&request)
            }
        };
        plaintext.ok_or_else(invalid_ciphertext)
    }
}
