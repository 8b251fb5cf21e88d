//! Who signs the checkpoints of a log.

use super::checkpoint::UnsignedCheckpoint;
use crate::error::Result;
use crate::id::{KeyFamily, KeyRef, Name};
use crate::key_signature::Signature;
use crate::public_key::PublicKey;

/// Signs the checkpoints of a log: a [`Keystore`](crate::Keystore) does.
pub trait CheckpointSigner {
    /// The key of a tenant that has the label.
    ///
    /// # Errors
    /// Those of reading.
    fn find_key(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>>;

    /// The right to sign one checkpoint with the head of a key. Taking it may rotate the key, which is recorded; using it records
    /// nothing, so that the log can be held meanwhile.
    ///
    /// # Errors
    /// Those of [`Keystore::sign`](crate::Keystore::sign).
    fn one_checkpoint(&self, key: KeyRef<'_>) -> Result<Box<dyn OneCheckpoint + '_>>;
}

/// See [`CheckpointSigner::one_checkpoint`].
pub trait OneCheckpoint {
    /// The public key that verifies the signature.
    fn public_key(&self) -> &PublicKey;

    /// Signs [`UnsignedCheckpoint::signed_text`].
    ///
    /// # Errors
    /// Those of the key's backend.
    fn sign_checkpoint(&self, checkpoint: &UnsignedCheckpoint) -> Result<Signature>;
}
