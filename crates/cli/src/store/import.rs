//! Keys to import, and how a keystore of this machine takes them.

use super::named::Named;
use crate::error::{Error, Result};
use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, WrappedPrivateKey};
use bulla_kms::{Algorithm, Attestation, Keystore, NewKey, PublicKey, SecretString};
use zeroize::Zeroizing;

/// A key to import.
pub(crate) enum Material {
    Private(PrivateFile),
    Wrapped {
        text: String,
        wrapped: Box<WrappedPrivateKey>,
        /// The key for which it was wrapped, as the user names it.
        recipient: String,
    },
    Public(PublicKey),
}

/// A private key, and the file that contains it: a service reads that itself.
pub(crate) struct PrivateFile {
    pub(crate) key: PrivateKeyData,
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) format: PrivateFormat,
    pub(crate) passphrase: Option<SecretString>,
}

/// Where an imported key goes.
pub(crate) enum Place {
    New(NewKey),
    /// The next version of the key that a user names.
    VersionOf(String),
}

impl Material {
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Private(file) => file.key.algorithm(),
            Self::Wrapped { wrapped, .. } => wrapped.public_key.algorithm(),
            Self::Public(key) => key.algorithm(),
        }
    }
}

/// Imports a key into a keystore of this machine.
pub(super) fn import(keystore: &Keystore, material: &Material, place: Place) -> Result<Attestation> {
    let unwrapped;
    let private = match material {
        Material::Private(file) => Ok(&file.key),
        Material::Wrapped { wrapped, recipient, .. } => {
            unwrapped = unwrap(keystore, wrapped, recipient)?;
            Ok(&unwrapped)
        }
        Material::Public(key) => Err(key),
    };
    let id = match (place, private) {
        (Place::New(new), Ok(key)) => keystore.import_key(new, key)?,
        (Place::New(new), Err(key)) => keystore.import_public_key(new, key)?,
        (Place::VersionOf(name), key) => {
            let named = Named::find(keystore, &name)?;
            match key {
                Ok(key) => keystore.import_version(named.key_id(), key)?,
                Err(key) => keystore.import_public_version(named.key_id(), key)?,
            }
        }
    };
    Ok(keystore.attest(id.key_id())?)
}

fn unwrap(keystore: &Keystore, wrapped: &WrappedPrivateKey, recipient: &str) -> Result<PrivateKeyData> {
    let named = Named::find(keystore, recipient)?;
    // It may have been wrapped for any version.
    let versions = keystore.attest(named.key_id())?.versions;
    match versions.iter().find(|version| wrapped.check_recipient(&version.public_key).is_ok()) {
        Some(version) => Ok(keystore.unwrap_key(&version.id, wrapped)?),
        None => {
            let message = format!("the key was wrapped for another recipient, not for {}", named.key_id());
            Err(Error::new("invalid_argument", message))
        }
    }
}
