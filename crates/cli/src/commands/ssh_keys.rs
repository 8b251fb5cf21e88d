//! Keys of a keystore or a service, as OpenSSH and git know them.

use super::key_change::check_signs;
use crate::error::{Error, Result};
use crate::store::Keys;
use bulla_formats::FormatError;
use bulla_formats::ssh::{SshKey, rsa_signature_blob, signature_blob};
use bulla_keystore::AUDIT_LOG_LABEL;
use bulla_kms::prehash::HashFunction;
use bulla_kms::{Attestation, KeyVersionId, PublicKey, TOKEN_ROOT_PURPOSE};

/// A key that signs for OpenSSH and git, by its latest version.
#[derive(Clone)]
pub(super) struct SshSigningKey {
    pub(super) key: SshKey,
    pub(super) public_key: PublicKey,
    /// The version that signs.
    pub(super) version: KeyVersionId,
    /// Its label, or its id.
    pub(super) name: String,
}

impl SshSigningKey {
    /// The version of a key that signs. `name` is how the user names the key.
    ///
    /// # Errors
    /// The key does not sign, or has an algorithm that OpenSSH does not have.
    pub(super) fn of(key: &Attestation, name: &str) -> Result<Self> {
        check_signs(key, name)?;
        let newest =
            key.versions.last().and_then(|version| Some((version.id.clone(), version.public_key.clone()?)));
        let (version, public_key) =
            newest.ok_or_else(|| Error::new("no_public_key", "has no public key").about(name))?;
        let ssh_key = SshKey::of(&public_key).map_err(|error| unusable(name, &error))?;
        Ok(Self { key: ssh_key, public_key, version, name: name.to_owned() })
    }

    /// Signs with the key that the user names `key`. RSA signs by this hash function; other
    /// algorithms have their own. Returns the version that signed, and the signature as the
    /// protocols of SSH have it.
    pub(super) fn sign(
        &self,
        keys: &dyn Keys,
        key: &str,
        message: &[u8],
        hash: HashFunction,
    ) -> Result<(KeyVersionId, Vec<u8>)> {
        let (signature, blob) = if self.is_rsa() {
            let signature = keys.sign_hashed(key, message, hash)?;
            let blob = rsa_signature_blob(hash, &signature.bytes);
            (signature, blob)
        } else {
            let signature = keys.sign(key, message)?;
            let blob = signature_blob(&self.public_key, &signature.bytes);
            (signature, blob)
        };
        let blob = blob.map_err(|error| Error::new("not_signed", error.to_string()).about(&*self.name))?;
        Ok((signature.key, blob))
    }

    /// Whether somebody must say by which hash function the key signs.
    pub(super) fn is_rsa(&self) -> bool {
        self.public_key.algorithm().is_rsa()
    }
}

/// Whether a key is for users: the keystore itself uses some.
pub(super) fn is_for_users(key: &Attestation) -> bool {
    let label = key.label.as_ref().map(|label| label.as_str());
    key.key.purpose().as_str() != TOKEN_ROOT_PURPOSE && label != Some(AUDIT_LOG_LABEL)
}

/// A key's label, or its id.
pub(super) fn name_of(key: &Attestation) -> String {
    key.label.as_ref().map_or_else(|| key.key.to_string(), ToString::to_string)
}

/// The error for a key that OpenSSH cannot use.
fn unusable(name: &str, error: &FormatError) -> Error {
    Error::new("unsupported_algorithm", error.to_string())
        .about(name)
        .hint("`bulla keys create LABEL` makes a key of Ed25519")
}
