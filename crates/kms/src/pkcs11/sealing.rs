//! A key-encryption key that never leaves its token.

use std::ffi::c_ulong;
use std::sync::Arc;

use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use zeroize::Zeroizing;

use super::backend::{ID, NAME, Pkcs11};
use super::fault::Fault;
use super::token::{Access, At, Token};
use crate::encryption::{KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::id::Name;

/// The length of a params and of a key in bytes.
const SIZE: usize = 32;

/// The prefix of the params in the HMAC's input, so that no other use of the token's key computes
/// the same value.
const CONTEXT: &[u8] = b"bulla key encryption key from token v1\0";

/// Key-encryption keys from a secret key on a token.
///
/// The method is `pkcs11`, the name is the label of the key on the token (`CKA_LABEL`), and the
/// params is 32 random bytes. The key-encryption key is HMAC-SHA-256 (RFC 2104), computed by the
/// token, of `bulla key encryption key from token v1`, a zero byte and the params. Nothing opens
/// without the token.
#[derive(Clone, Debug)]
pub struct DeviceKeyProvider {
    token: Arc<Token>,
    name: Name,
}

impl DeviceKeyProvider {
    /// The key with this name on the token.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`] if the token does not have it; errors of the token.
    pub fn new(token: &Pkcs11, name: Name) -> Result<Self> {
        let provider = Self { token: token.token()?, name };
        provider.token.run(Access::Read, |at| provider.find(at).map(drop))?;
        Ok(provider)
    }

    /// Makes the key on the token. It cannot be copied from there: if the token is lost, so is all
    /// data that only this key opens.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if the token has a key with this name; errors of the token.
    pub fn create(token: &Pkcs11, name: Name) -> Result<Self> {
        let provider = Self { token: token.token()?, name };
        provider.token.run(Access::Write, |at| provider.make(at))?;
        Ok(provider)
    }

    fn objects(&self, at: &At<'_>) -> Result<Vec<ObjectHandle>, Fault> {
        at.find(&[
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::GENERIC_SECRET),
            Attribute::Label(self.name.as_str().as_bytes().to_vec()),
        ])
    }

    fn find(&self, at: &At<'_>) -> Result<ObjectHandle, Fault> {
        match self.objects(at)?[..] {
            [key] => Ok(key),
            [] => {
                at.check_present()?;
                let message = format!("the token has no secret key with the label {}", self.name);
                Err(Fault::Failed(KmsError::new(Code::KeyNotFound, message)))
            }
            _ => {
                Err(Fault::failed(format!("the token has several secret keys with the label {}", self.name)))
            }
        }
    }

    fn make(&self, at: &At<'_>) -> Result<(), Fault> {
        if !self.objects(at)?.is_empty() {
            let message = format!("the token already has a secret key with the label {}", self.name);
            return Err(Fault::Failed(KmsError::new(Code::AlreadyExists, message)));
        }
        let mut id = [0; ID];
        crate::random::fill(&mut id)?;
        let key = at.session.generate_key(
            &Mechanism::GenericSecretKeyGen,
            &[
                Attribute::Token(true),
                Attribute::Private(true),
                Attribute::Sensitive(true),
                Attribute::Extractable(false),
                Attribute::Sign(true),
                Attribute::KeyType(KeyType::GENERIC_SECRET),
                Attribute::ValueLen((SIZE as c_ulong).into()),
                Attribute::Id(id.to_vec()),
                Attribute::Label(self.name.as_str().as_bytes().to_vec()),
            ],
        )?;
        let types = [AttributeType::Sensitive, AttributeType::NeverExtractable];
        if at.session.get_attributes(key, &types)?
            == [Attribute::Sensitive(true), Attribute::NeverExtractable(true)]
        {
            return Ok(());
        }
        at.session.destroy_object(key)?;
        Err(Fault::failed("the token created an extractable secret key; bulla deleted that key"))
    }

    fn derive(&self, params: &[u8; SIZE]) -> Result<KeyEncryptionKey> {
        let message = [CONTEXT, params].concat();
        let key = self.token.run(Access::Read, |at| {
            let key = self.find(at)?;
            Ok(Zeroizing::new(at.session.sign(&Mechanism::Sha256Hmac, key, &message)?))
        })?;
        let key = <[u8; SIZE]>::try_from(key.as_slice()).map_err(|_| {
            KmsError::new(Code::DeviceFailed, "the token's HMAC-SHA-256 does not have 32 bytes")
        })?;
        Ok(Zeroizing::new(key))
    }
}

impl KeyProvider for DeviceKeyProvider {
    fn method(&self) -> &str {
        NAME
    }

    fn key_name(&self) -> String {
        self.name.to_string()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let mut params = [0; SIZE];
        crate::random::fill(&mut params)?;
        Ok((self.derive(&params)?, params.to_vec()))
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        match params.bytes().try_into() {
            Ok(bytes) => self.derive(bytes),
            Err(_) => Err(KmsError::corrupt("the params of a key on a token does not have 32 bytes")),
        }
    }
}
