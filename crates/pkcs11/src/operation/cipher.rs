//! Encryption: RSA by OAEP, and AES in Galois/Counter Mode.
//!
//! The service makes the nonces of AES-GCM. So a program decrypts as with every token, but encrypts
//! with the functions of PKCS #11 3.0 for messages, where the token may make the nonce. With a key
//! of a session, it chooses the nonce.

use std::sync::Arc;

use bulla_kms::CiphertextParts;
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::Backend;
use crate::error::{Failure, Result, fail, require};
use crate::object::{KeyOfObject, Object};
use crate::operation::mechanism::{
    Direction, MAX_PLAINTEXT_LEN, Mechanism, NONCE_LEN, Parameters, TAG_LEN, is_aes,
};
use crate::reply::Reply;
use crate::session::cipher::SessionCipher;

/// How many bytes a plaintext of OAEP with SHA-256 is shorter than the modulus, at least.
const OAEP_OVERHEAD: usize = 66;

/// What a ciphertext depends on, beside the key.
enum Cipher {
    /// The label of OAEP.
    Oaep(Vec<u8>),
    Gcm {
        nonce: Vec<u8>,
        associated_data: Vec<u8>,
    },
}

/// An encryption or decryption.
pub(crate) enum CipherOperation {
    Service(ServiceCipher),
    /// With a key of a session.
    Session(SessionCipher),
}

impl CipherOperation {
    /// With a key that has a flag set.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`; `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`;
    /// `CKR_MECHANISM_PARAM_INVALID`.
    pub(crate) fn new(
        direction: Direction,
        mechanism: Mechanism,
        object: Arc<Object>,
        flag: CK_ATTRIBUTE_TYPE,
    ) -> Result<Self> {
        Ok(match object.session_key {
            Some(_) => Self::Session(SessionCipher::new(direction, mechanism, object, flag)?),
            None => Self::Service(ServiceCipher::new(direction, mechanism, object, flag)?),
        })
    }

    /// Adds a piece, and gives what is known by then. What the service computes is known at the
    /// end.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` or `CKR_ENCRYPTED_DATA_LEN_RANGE` if the data become too long.
    pub(crate) fn update(&mut self, data: &[u8], room: Option<usize>) -> Result<Reply> {
        match self {
            Self::Service(_) if room.is_none() => Ok(Reply::Length(0)),
            Self::Service(cipher) => {
                cipher.update(data)?;
                Ok(Reply::Bytes(Zeroizing::default()))
            }
            Self::Session(cipher) => cipher.update(data, room),
        }
    }

    /// The length of the result, or more, with `more` bytes of input.
    pub(crate) fn output_len(&self, more: usize) -> usize {
        match self {
            Self::Service(cipher) => cipher.output_len(more),
            Self::Session(cipher) => cipher.output_len(more),
        }
    }

    /// The result, with a last piece. It is remembered: if there is no room for it, it is asked for
    /// again.
    ///
    /// # Errors
    /// Those of the service; `CKR_DATA_LEN_RANGE`, `CKR_ENCRYPTED_DATA_LEN_RANGE` and
    /// `CKR_ENCRYPTED_DATA_INVALID`.
    pub(crate) fn finish(
        &mut self,
        backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
        rest: &[u8],
    ) -> Result<&Zeroizing<Vec<u8>>> {
        match self {
            Self::Service(cipher) => {
                if !cipher.is_finished() {
                    cipher.update(rest)?;
                }
                cipher.finish(backend)
            }
            Self::Session(cipher) => cipher.finish(rest),
        }
    }
}

/// An encryption or decryption with a key of the service. The public half encrypts in the module.
pub(crate) struct ServiceCipher {
    object: Arc<Object>,
    cipher: Cipher,
    direction: Direction,
    input: Zeroizing<Vec<u8>>,
    /// The result, once it is known, if the program had no room for it.
    output: Option<Zeroizing<Vec<u8>>>,
}

impl ServiceCipher {
    /// # Errors
    /// `CKR_MECHANISM_INVALID`; `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`;
    /// `CKR_MECHANISM_PARAM_INVALID`.
    fn new(
        direction: Direction,
        mechanism: Mechanism,
        object: Arc<Object>,
        flag: CK_ATTRIBUTE_TYPE,
    ) -> Result<Self> {
        let key = object.key()?;
        let fits = match (mechanism.kind, direction) {
            (CKM_RSA_PKCS_OAEP, _) => key.algorithm.is_rsa(),
            (CKM_AES_GCM, Direction::Decrypt) => is_aes(key.algorithm),
            _ => return fail(CKR_MECHANISM_INVALID),
        };
        require(object.attributes.is_set(flag), CKR_KEY_FUNCTION_NOT_PERMITTED)?;
        require(fits, CKR_KEY_TYPE_INCONSISTENT)?;
        let cipher = match mechanism.parameters {
            Parameters::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label } => Cipher::Oaep(label),
            Parameters::Gcm { nonce, associated_data, tag_bits }
                if nonce.len() == NONCE_LEN && tag_bits == 8 * TAG_LEN as CK_ULONG =>
            {
                Cipher::Gcm { nonce, associated_data }
            }
            _ => return fail(CKR_MECHANISM_PARAM_INVALID),
        };
        let is_pair = matches!(cipher, Cipher::Oaep(_)) == (mechanism.kind == CKM_RSA_PKCS_OAEP);
        require(is_pair, CKR_MECHANISM_PARAM_INVALID)?;
        Ok(Self { object, cipher, direction, input: Zeroizing::default(), output: None })
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` or `CKR_ENCRYPTED_DATA_LEN_RANGE` if it becomes too long.
    fn update(&mut self, data: &[u8]) -> Result<()> {
        let fits = self.input.len() + data.len() <= MAX_PLAINTEXT_LEN + TAG_LEN;
        require(fits, self.length_code())?;
        // A buffer that grows leaves no copy behind.
        if self.input.capacity() < self.input.len() + data.len() {
            let mut longer = Zeroizing::new(Vec::with_capacity(2 * (self.input.len() + data.len())));
            longer.extend_from_slice(&self.input);
            self.input = longer;
        }
        self.input.extend_from_slice(data);
        Ok(())
    }

    fn length_code(&self) -> CK_RV {
        match self.direction {
            Direction::Encrypt => CKR_DATA_LEN_RANGE,
            Direction::Decrypt => CKR_ENCRYPTED_DATA_LEN_RANGE,
        }
    }

    /// The length of the result, or more, with `more` bytes of input.
    fn output_len(&self, more: usize) -> usize {
        let modulus = || self.object.key.as_ref().map_or(0, |key| key.algorithm.output_length());
        match (&self.output, &self.cipher, self.direction) {
            (Some(output), ..) => output.len(),
            (None, Cipher::Oaep(_), Direction::Encrypt) => modulus(),
            (None, Cipher::Oaep(_), Direction::Decrypt) => modulus().saturating_sub(OAEP_OVERHEAD),
            (None, Cipher::Gcm { .. }, _) => (self.input.len() + more).saturating_sub(TAG_LEN),
        }
    }

    /// Whether the result is known.
    fn is_finished(&self) -> bool {
        self.output.is_some()
    }

    /// The result. It is remembered: if there is no room for it, it is asked for again.
    ///
    /// # Errors
    /// Those of the service; `CKR_DATA_LEN_RANGE` and `CKR_ENCRYPTED_DATA_LEN_RANGE`.
    fn finish(&mut self, backend: impl FnOnce() -> Result<Arc<dyn Backend>>) -> Result<&Zeroizing<Vec<u8>>> {
        let output = match self.output.take() {
            Some(output) => output,
            None => self.compute(backend)?,
        };
        Ok(self.output.insert(output))
    }

    fn compute(&self, backend: impl FnOnce() -> Result<Arc<dyn Backend>>) -> Result<Zeroizing<Vec<u8>>> {
        let key = self.object.key.as_ref().ok_or(Failure(CKR_GENERAL_ERROR))?;
        match (&self.cipher, self.direction) {
            (Cipher::Oaep(label), Direction::Encrypt) => {
                let public = key.public.as_ref().ok_or(Failure(CKR_KEY_HANDLE_INVALID))?;
                let made = public.encrypt(&self.input, label);
                Ok(Zeroizing::new(made.map_err(|_| Failure(CKR_DATA_LEN_RANGE))?))
            }
            (Cipher::Oaep(label), Direction::Decrypt) => {
                require(self.input.len() == key.algorithm.output_length(), CKR_ENCRYPTED_DATA_LEN_RANGE)?;
                decrypt(&*backend()?, key, &self.input, label)
            }
            (Cipher::Gcm { nonce, associated_data }, Direction::Decrypt) => {
                let body = [nonce.as_slice(), &self.input].concat();
                decrypt(&*backend()?, key, &body, associated_data)
            }
            (Cipher::Gcm { .. }, Direction::Encrypt) => fail(CKR_MECHANISM_INVALID),
        }
    }
}

/// Decrypts what the service writes after the number of the version.
pub(crate) fn decrypt(
    backend: &dyn Backend,
    key: &KeyOfObject,
    body: &[u8],
    associated_data: &[u8],
) -> Result<Zeroizing<Vec<u8>>> {
    let service = key.of_service()?;
    let parts = CiphertextParts::new(key.algorithm, service.version, body);
    let ciphertext = parts.map_err(|_| Failure(CKR_ENCRYPTED_DATA_LEN_RANGE))?.to_bytes();
    backend.decrypt(&service.key, &ciphertext, associated_data)
}

/// A message that the service encrypted by AES-GCM.
pub(crate) struct EncryptedMessage {
    pub(crate) nonce: Vec<u8>,
    /// As long as the plaintext.
    pub(crate) ciphertext: Vec<u8>,
    pub(crate) tag: Vec<u8>,
}

/// Encrypts a message with a nonce that the service makes.
pub(crate) fn encrypt_message(
    backend: &dyn Backend,
    key: &KeyOfObject,
    plaintext: &[u8],
    associated_data: &[u8],
) -> Result<EncryptedMessage> {
    let service = key.of_service()?;
    let made = backend.encrypt(&service.id, plaintext, associated_data)?;
    let parts = CiphertextParts::parse(key.algorithm, &made).map_err(|_| Failure(CKR_DEVICE_ERROR))?;
    let body = parts.ciphertext();
    let end = body.len().checked_sub(TAG_LEN).ok_or(Failure(CKR_DEVICE_ERROR))?;
    let (ciphertext, tag) = body.split_at(end);
    Ok(EncryptedMessage { nonce: parts.nonce().to_vec(), ciphertext: ciphertext.to_vec(), tag: tag.to_vec() })
}
