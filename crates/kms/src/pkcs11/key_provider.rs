//! A key-encryption key that never leaves its device.

use std::ffi::c_ulong;
use std::sync::Arc;

use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use zeroize::Zeroizing;

use super::backend::{ID_LEN, NAME, Pkcs11};
use super::device::Fault;
use super::device::{Access, Device, DeviceSession};
use crate::encryption::{KeyEncryptionKey, KeyProvider, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::id::Name;

/// The length of the parameters and of a key in bytes.
const KEY_LEN: usize = 32;

/// The prefix of the parameters in the HMAC's input, so that no other use of the device's key
/// computes the same value.
const CONTEXT: &[u8] = b"bulla key encryption key from token v1\0";

/// Key-encryption keys from a secret key on a device.
///
/// The method is `pkcs11`, the name is the label of the key on the device (`CKA_LABEL`), and the
/// parameters are 32 random bytes. The key-encryption key is HMAC-SHA-256 (RFC 2104), computed by
/// the device, of `bulla key encryption key from token v1`, a zero byte and the parameters. Nothing
/// opens without the device.
#[derive(Clone, Debug)]
pub struct DeviceKeyProvider {
    device: Arc<Device>,
    name: Name,
}

impl DeviceKeyProvider {
    /// The key with this name on the device.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`] if the device does not have it; errors of the device.
    pub fn new(device: &Pkcs11, name: Name) -> Result<Self> {
        let provider = Self { device: device.device()?, name };
        provider.device.run(Access::Read, |session| provider.find(session).map(drop))?;
        Ok(provider)
    }

    /// Makes the key on the device. It cannot be copied from there: if the device is lost, so is
    /// all data that only this key opens.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if the device has a key with this name; errors of the device.
    pub fn create(device: &Pkcs11, name: Name) -> Result<Self> {
        let provider = Self { device: device.device()?, name };
        provider.device.run(Access::Write, |session| provider.make(session))?;
        Ok(provider)
    }

    fn objects(&self, session: &DeviceSession<'_>) -> Result<Vec<ObjectHandle>, Fault> {
        session.find(&[
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::GENERIC_SECRET),
            Attribute::Label(self.name.as_str().as_bytes().to_vec()),
        ])
    }

    fn find(&self, session: &DeviceSession<'_>) -> Result<ObjectHandle, Fault> {
        match self.objects(session)?[..] {
            [key] => Ok(key),
            [] => {
                session.check_present()?;
                let message = format!("the device has no secret key with the label {}", self.name);
                Err(Fault::Failed(KmsError::new(Code::KeyNotFound, message)))
            }
            _ => {
                Err(Fault::failed(format!("the device has several secret keys with the label {}", self.name)))
            }
        }
    }

    fn make(&self, session: &DeviceSession<'_>) -> Result<(), Fault> {
        if !self.objects(session)?.is_empty() {
            let message = format!("the device already has a secret key with the label {}", self.name);
            return Err(Fault::Failed(KmsError::new(Code::AlreadyExists, message)));
        }
        let mut id = [0; ID_LEN];
        crate::random::fill(&mut id)?;
        let key = session.raw.generate_key(
            &Mechanism::GenericSecretKeyGen,
            &[
                Attribute::Token(true),
                Attribute::Private(true),
                Attribute::Sensitive(true),
                Attribute::Extractable(false),
                Attribute::Sign(true),
                Attribute::KeyType(KeyType::GENERIC_SECRET),
                Attribute::ValueLen((KEY_LEN as c_ulong).into()),
                Attribute::Id(id.to_vec()),
                Attribute::Label(self.name.as_str().as_bytes().to_vec()),
            ],
        )?;
        let types = [AttributeType::Sensitive, AttributeType::NeverExtractable];
        if session.raw.get_attributes(key, &types)?
            == [Attribute::Sensitive(true), Attribute::NeverExtractable(true)]
        {
            return Ok(());
        }
        session.raw.destroy_object(key)?;
        Err(Fault::failed("the device created an extractable secret key; bulla deleted that key"))
    }

    fn derive(&self, params: &[u8; KEY_LEN]) -> Result<KeyEncryptionKey> {
        let message = [CONTEXT, params].concat();
        let key = self.device.run(Access::Read, |session| {
            let key = self.find(session)?;
            Ok(Zeroizing::new(session.raw.sign(&Mechanism::Sha256Hmac, key, &message)?))
        })?;
        let key = <[u8; KEY_LEN]>::try_from(key.as_slice()).map_err(|_| {
            KmsError::new(Code::DeviceFailed, "the device's HMAC-SHA-256 does not have 32 bytes")
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
        let mut params = [0; KEY_LEN];
        crate::random::fill(&mut params)?;
        Ok((self.derive(&params)?, params.to_vec()))
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        match params.bytes().try_into() {
            Ok(bytes) => self.derive(bytes),
            Err(_) => Err(KmsError::corrupt("the parameters of a key on a device does not have 32 bytes")),
        }
    }
}
