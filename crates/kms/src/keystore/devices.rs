//! Private keys on a device: when a keystore gives up a private key, the device deletes it too.
//!
//! The store and the device cannot change at the same moment. So the store changes first, and with
//! the change it notes what must still be deleted. When the device has deleted it, the note is
//! removed. Whatever fails between these steps, no private key that is still needed is deleted, and
//! no deletion is forgotten.

use zeroize::Zeroizing;

use super::handle::Keystore;
use super::index::LoadedKey;
use super::writer::Edit;
use crate::backend::SOFTWARE;
use crate::encoding;
use crate::error::{KmsError, Result};
use crate::id::KeyId;
use crate::record::{KeyRecord, VersionRecord};

/// Whether the device still has to delete private keys of this key.
pub(super) fn has_leftovers(record: &KeyRecord) -> bool {
    record.versions.iter().any(|version| version.leftover.is_some())
}

impl Keystore {
    /// Notes in a key's next record which private keys this change gives up.
    pub(super) fn note_leftovers(&self, old: &LoadedKey, new: &mut KeyRecord) -> Result<()> {
        if new.backend == SOFTWARE {
            return Ok(());
        }
        let given_up: Vec<_> = old
            .record
            .held()
            .filter(|id| new.version(id.version()).is_some_and(|version| !version.is_held()))
            .collect();
        for id in given_up {
            let material = old.sealed_material(&id, &self.cipher)?;
            if let Some(version) = new.versions.get_mut(id.version() as usize - 1) {
                version.leftover = Some(encoding::base64(&material));
            }
        }
        Ok(())
    }

    /// Deletes the noted private keys from the device, and then the notes.
    ///
    /// # Errors
    /// Errors of the device; errors of writing. The notes stay, and the next call tries again.
    pub(super) fn delete_leftovers(&self, key_id: &KeyId) -> Result<()> {
        let key = self.index.load().key(key_id)?.clone();
        let record = &key.record;
        if !has_leftovers(record) {
            return Ok(());
        }
        let algorithm = key_id.algorithm();
        let backend = self.backends.find(&record.backend, algorithm)?;
        for leftover in record.versions.iter().filter_map(|version| version.leftover.as_deref()) {
            let material = encoding::from_base64(leftover)
                .ok_or_else(|| KmsError::corrupt(format!("the record of {key_id} is malformed")))?;
            backend.destroy(algorithm, &Zeroizing::new(material))?;
        }
        let done: Vec<_> = record.versions.iter().map(|version| version.leftover.clone()).collect();
        self.edit(|index| {
            let mut record = index.key(key_id)?.record.clone();
            for (version, done) in record.versions.iter_mut().zip(&done) {
                forget(version, done.as_deref());
            }
            let changed = record != index.key(key_id)?.record;
            Ok(changed.then_some(Edit { record, new_head: None }))
        })?;
        Ok(())
    }
}

fn forget(version: &mut VersionRecord, done: Option<&str>) {
    if done.is_some() && version.leftover.as_deref() == done {
        version.leftover = None;
    }
}
