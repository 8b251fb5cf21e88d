//! Statements of succession, which older versions sign.

use super::handle::Keystore;
use super::index::LoadedKey;
use super::lifecycle::{check_enabled, check_statements};
use super::load;
use super::observe::Subject;
use super::signing::check_purpose;
use crate::algorithm::KeyUsage;
use crate::audit_log::AuditOperation;
use crate::backend::key_usage_mismatch;
use crate::encryption::EnvelopeKind;
use crate::error::{KmsError, Result};
use crate::id::{KeyId, KeyVersionId};
use crate::key_signature::Signature;
use crate::store::Rows;
use crate::succession::Succession;

impl Keystore {
    /// The statements that lead holders of any older public key of a key to the newest one. Each
    /// usable version with a private key names the later ones, up to the next one that can also
    /// sign. Revoked versions, and versions below the minimum version, do not sign statements, and
    /// no statement names them. A key with one version has no statements.
    ///
    /// No rotation policy counts these signatures.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`](crate::Code::KeyNotFound),
    /// [`Code::KeyDisabled`](crate::Code::KeyDisabled),
    /// [`Code::KeyPendingDestruction`](crate::Code::KeyPendingDestruction),
    /// [`Code::KeyDestroyed`](crate::Code::KeyDestroyed),
    /// [`Code::NoPrivateKey`](crate::Code::NoPrivateKey),
    /// [`Code::KeyUsageMismatch`](crate::Code::KeyUsageMismatch); errors of reading the store, of the backend, and
    /// of recording.
    pub fn successions(&self, key_id: &KeyId) -> Result<Vec<Succession>> {
        let algorithm = key_id.algorithm();
        if algorithm.usage() != KeyUsage::Signature {
            return Err(key_usage_mismatch(algorithm));
        }
        check_purpose(key_id.into())?;
        // The private keys of older versions stay sealed in the store until now.
        let rows = self.writer().store.load()?;
        let (_, _, index) = load::index(&self.cipher, &rows, Some(&self.index.load()))?;
        let key = index.key(key_id)?;
        check_enabled(&key.record)?;
        check_statements(&key.record)?;
        let usable: Vec<KeyVersionId> = numbered(key).filter(|id| key.usable(id).is_ok()).collect();
        let mut statements = Vec::new();
        for (place, id) in usable.iter().enumerate() {
            if !key.version(id)?.is_held() {
                continue;
            }
            for successor in &usable[place + 1..] {
                statements.push(self.succession(&rows, key, id, successor)?);
                if key.version(successor)?.is_held() {
                    break;
                }
            }
        }
        Ok(statements)
    }

    /// The statement of one version about a later one.
    fn succession(
        &self,
        rows: &Rows,
        key: &LoadedKey,
        id: &KeyVersionId,
        successor: &KeyVersionId,
    ) -> Result<Succession> {
        let later = key.version(successor)?;
        let unsigned = Succession {
            key: id.clone(),
            public_key: key.version(id)?.public_key.clone(),
            successor: successor.clone(),
            successor_public_key: later.public_key.clone(),
            time: later.created,
            signature: Vec::new(),
        };
        let message = unsigned.signed_bytes();
        let signature = self.observed(Subject::message(AuditOperation::Sign, id, &message), || {
            let bytes = self.sign_as_older(rows, key, id, &message)?;
            Ok(Signature { key: id.clone(), bytes })
        })?;
        Ok(Succession { signature: signature.bytes, ..unsigned })
    }

    fn sign_as_older(
        &self,
        rows: &Rows,
        key: &LoadedKey,
        id: &KeyVersionId,
        message: &[u8],
    ) -> Result<Vec<u8>> {
        let name = id.to_string();
        let sealed = rows
            .private_keys
            .get(&name)
            .ok_or_else(|| KmsError::corrupt(format!("the private key of {id} is missing from the store")))?;
        let material = self.cipher.decrypt(&EnvelopeKind::PrivateKey(name), sealed)?;
        let algorithm = id.key_id().algorithm();
        let private_key = self.backends.find(&key.record.backend, algorithm)?.load(algorithm, &material)?;
        if private_key.public_key()? != key.version(id)?.public_key.as_bytes() {
            return Err(KmsError::corrupt(format!("the private key of {id} does not match its public key")));
        }
        private_key.sign(message)
    }
}

/// The ids of all versions, version 1 first.
fn numbered(key: &LoadedKey) -> impl Iterator<Item = KeyVersionId> {
    (1..=key.record.head().get())
        .filter_map(std::num::NonZeroU32::new)
        .map(|version| key.record.key.version(version))
}
