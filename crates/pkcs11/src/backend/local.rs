//! A keystore on this machine: its folder, opened for each call.
//!
//! The keystore is locked only while a call changes something in it, so several programs may use
//! the same one. A passphrase is derived once for each login.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bulla_keystore::{KeystoreFolder, PassphraseFile, Secrets, UnlockedFolder, tenant};
use bulla_kms::prehash::HashFunction;
use bulla_kms::{
    Attestation, EncryptionOptions, KeyChange, KeyDerivation, KeyId, KeyState, KeyVersionId, Keystore,
    PublicKey, SecretString, Timestamp, Unlock, VersionAttestation,
};
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::{Backend, EntryState, KeyEntry, NewKey, Source, VersionEntry};
use crate::error::{Failure, Result, fail, report, write_reason};
use crate::object::public::{Digest, kms_padding, prehashed};
use crate::operation::mechanism::Padding;

/// Opens a keystore for one call.
pub(crate) trait Opener: Send + Sync {
    /// Opens the keystore.
    fn open(&self) -> Result<Keystore>;

    /// Opens the keystore to use a key version, or a key, in a way that changes nothing, unless the
    /// key has a rotation policy.
    fn open_to_use(&self, key: &str) -> Result<Keystore>;

    /// Reads what the keystore says of its keys.
    fn list(&self) -> Result<Vec<Attestation>>;
}

impl Opener for UnlockedFolder {
    fn open(&self) -> Result<Keystore> {
        Ok(Self::open(self)?.keystore)
    }

    fn open_to_use(&self, key: &str) -> Result<Keystore> {
        Ok(self.open_to_sign(key)?.keystore)
    }

    fn list(&self) -> Result<Vec<Attestation>> {
        Ok(self.snapshot()?.list())
    }
}

/// The keys of a keystore.
pub(crate) struct LocalKeystore<O>(pub(crate) O);

/// A key id or a key version id, which this keystore gave.
fn parse<T: std::str::FromStr>(id: &str) -> Result<T> {
    id.parse().map_err(|_| Failure(CKR_GENERAL_ERROR))
}

/// A name that a program chose.
fn name(text: &str) -> Result<bulla_kms::Name> {
    text.parse().map_err(|error| {
        report(&error);
        Failure(CKR_ATTRIBUTE_VALUE_INVALID)
    })
}

impl<O: Opener> Backend for LocalKeystore<O> {
    fn keys(&self) -> Result<Vec<KeyEntry>> {
        Ok(self.0.list()?.iter().filter_map(entry_of).collect())
    }

    fn key(&self, key: &str) -> Result<KeyEntry> {
        let id: KeyId = parse(key)?;
        let all = self.0.list()?;
        let found = all.iter().find(|one| one.key == id).and_then(entry_of);
        found.ok_or(Failure(CKR_KEY_HANDLE_INVALID))
    }

    fn create(&self, new: &NewKey) -> Result<KeyEntry> {
        let mut asked = bulla_kms::NewKey::new(tenant(), name(&new.purpose)?, new.algorithm);
        asked.label = new.label.as_deref().map(name).transpose()?;
        let keystore = self.0.open()?;
        let made = keystore.create_key(asked.signs_digests(new.signs_digests))?;
        entry_of(&keystore.attest(made.key_id())?).ok_or(Failure(CKR_DEVICE_ERROR))
    }

    fn set_label(&self, key: &str, label: Option<&str>) -> Result<KeyEntry> {
        let label = label.map(name).transpose()?;
        let changed = self.0.open()?.update(&parse(key)?, None, &KeyChange::Label(label))?;
        entry_of(&changed).ok_or(Failure(CKR_DEVICE_ERROR))
    }

    fn schedule_destruction(&self, key: &str, after: SystemTime) -> Result<()> {
        let change = KeyChange::ScheduleDestruction(Timestamp::try_from(after)?);
        self.0.open()?.update(&parse(key)?, None, &change)?;
        Ok(())
    }

    fn sign(&self, version: &Arc<str>, message: Vec<u8>) -> Result<Vec<u8>> {
        let id: KeyVersionId = parse(version)?;
        Ok(self.0.open_to_use(version)?.sign(&id, &message)?.bytes)
    }

    fn sign_hashed(
        &self,
        version: &str,
        message: &[u8],
        (hash, padding): (HashFunction, Padding),
    ) -> Result<Vec<u8>> {
        let id: KeyVersionId = parse(version)?;
        let keystore = self.0.open_to_use(version)?;
        Ok(keystore.sign_hashed(&id, message, hash, kms_padding(padding))?.bytes)
    }

    fn sign_digest(&self, version: &str, digest: &Digest) -> Result<Vec<u8>> {
        let id: KeyVersionId = parse(version)?;
        let message = prehashed(digest.hash, &digest.bytes, digest.padding)?;
        Ok(self.0.open_to_use(version)?.sign_prehashed(&id, &message)?.bytes)
    }

    fn encrypt(&self, version: &str, plaintext: &[u8], associated_data: &[u8]) -> Result<Vec<u8>> {
        let id: KeyVersionId = parse(version)?;
        let options = EncryptionOptions::default().associated_data(associated_data);
        // It counts the ciphertexts of a key.
        Ok(self.0.open()?.encrypt(&id, plaintext, &options)?.bytes)
    }

    fn decrypt(&self, key: &str, ciphertext: &[u8], associated_data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let id: KeyId = parse(key)?;
        let options = EncryptionOptions::default().associated_data(associated_data);
        let plaintext = self.0.open_to_use(key)?.decrypt(&id, ciphertext, &options)?;
        Ok(Zeroizing::new(plaintext.bytes.to_vec()))
    }

    fn mac(&self, version: &str, message: &[u8]) -> Result<Vec<u8>> {
        let id: KeyVersionId = parse(version)?;
        Ok(self.0.open_to_use(version)?.mac(&id, message)?.bytes)
    }

    fn verify_mac(&self, version: &str, message: &[u8], mac: &[u8]) -> Result<bool> {
        let id: KeyVersionId = parse(version)?;
        Ok(self.0.open_to_use(version)?.verify_mac(&id, message, mac)?.is_valid())
    }

    fn derive_shared_secret(&self, version: &str, peer: &PublicKey) -> Result<Zeroizing<Vec<u8>>> {
        let id: KeyVersionId = parse(version)?;
        let secret = self.0.open_to_use(version)?.derive_shared_secret(&id, peer)?;
        Ok(Zeroizing::new(secret.to_vec()))
    }
}

/// A key as the module has it; none for one of which programs have no use.
pub(crate) fn entry_of(key: &Attestation) -> Option<KeyEntry> {
    if key.derivation != KeyDerivation::None {
        return None;
    }
    let state = match key.state {
        KeyState::Enabled => EntryState::Enabled,
        KeyState::PendingDestruction { .. } | KeyState::Destroyed => EntryState::Gone,
        _ => EntryState::Disabled,
    };
    Some(KeyEntry {
        id: key.key.to_string().into(),
        algorithm: key.algorithm,
        label: key.label.as_ref().map(ToString::to_string),
        revision: key.revision,
        state,
        exportable: key.exportable,
        signs_digests: key.signs_digests,
        minimum_version: key.minimum_version,
        latest_version: key.latest_version,
        versions: key.versions.iter().filter_map(version_of).collect(),
    })
}

fn version_of(version: &VersionAttestation) -> Option<VersionEntry> {
    Some(VersionEntry {
        id: version.id.to_string().into(),
        version: version.version.try_into().ok()?,
        public_key: version.public_key.as_ref().map(|key| key.as_bytes().to_vec()).unwrap_or_default(),
        state: version.state,
        origin: version.origin,
    })
}

/// A keystore's folder.
pub(crate) struct Folder {
    pub(crate) folder: KeystoreFolder,
    /// The file with the passphrase, in place of a PIN.
    pub(crate) passphrase_file: Option<PathBuf>,
}

impl Source for Folder {
    /// A key file opens it, or the file with the passphrase.
    fn open(&self) -> Result<Arc<dyn Backend>> {
        let secrets = match &self.passphrase_file {
            Some(path) => Secrets::new().passphrase(PassphraseFile::at(path)),
            None => Secrets::new(),
        };
        let unlocked = self.folder.unlock(&secrets).map_err(|error| {
            write_reason(&error);
            Failure(CKR_GENERAL_ERROR)
        })?;
        Ok(Arc::new(LocalKeystore(unlocked)))
    }

    /// The PIN is the passphrase.
    fn log_in(&self, pin: &[u8]) -> Result<Arc<dyn Backend>> {
        use bulla_keystore::ErrorCode::Kms;
        use bulla_kms::Code::{InvalidArgument, WrongPassphrase, WrongUnlockMethod};
        let pin = std::str::from_utf8(pin).map_err(|_| Failure(CKR_PIN_INCORRECT))?;
        let unlock = Unlock::Passphrase(SecretString::from(pin));
        let unlocked = self.folder.unlock_with(unlock, &Secrets::new())?;
        match unlocked.snapshot() {
            Ok(_) => Ok(Arc::new(LocalKeystore(unlocked))),
            Err(error) => {
                report(&error);
                match error.code {
                    Kms(WrongPassphrase | WrongUnlockMethod | InvalidArgument) => fail(CKR_PIN_INCORRECT),
                    _ => Err(error.into()),
                }
            }
        }
    }
}
