//! The key that signs the audit log's checkpoints.

use bulla_kms::audit_log::AuditLog;
use bulla_kms::{Code, KeyId, KeyVersionId, Keystore, KmsError, PublicKey, Result, VersionState};

/// The key that signs checkpoints.
///
/// # Errors
/// There is none.
pub(crate) fn log_key(keystore: &Keystore, log: &AuditLog) -> Result<KeyId> {
    let missing = || KmsError::new(Code::KeyNotFound, "the keystore has no key that signs the audit log");
    let (tenant, label) = log.signer().ok_or_else(missing)?;
    keystore.find(tenant, label)?.ok_or_else(missing)
}

/// The public keys whose checkpoints count: those of the key that signs them, without its revoked
/// versions.
///
/// # Errors
/// Those of [`log_key`].
pub(crate) fn trusted_log_keys(
    keystore: &Keystore,
    log: &AuditLog,
) -> Result<Vec<(KeyVersionId, PublicKey)>> {
    let versions = keystore.attest(&log_key(keystore, log)?)?.versions.into_iter();
    let usable = versions.filter(|version| version.state != VersionState::Revoked);
    Ok(usable.map(|version| (version.id, version.public_key)).collect())
}
