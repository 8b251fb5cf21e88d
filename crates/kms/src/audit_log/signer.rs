//! The interface to the keystore that signs a log's checkpoints.

use super::checkpoint::UnsignedCheckpoint;
use super::cosigned::TreeHead;
use crate::error::Result;
use crate::id::{KeyId, KeyRef, Name};
use crate::key_signature::Signature;
use crate::public_key::PublicKey;

/// Signs the checkpoints of a log: a [`Keystore`](crate::Keystore) does.
pub trait CheckpointSigner {
    /// The tenant's key with this label.
    ///
    /// # Errors
    /// Errors of reading.
    fn find_key(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>>;

    /// The right to sign one checkpoint with a key's head. Taking it may rotate the key, and the
    /// rotation is recorded. Using it records nothing, so that the log's lock may be held
    /// meanwhile.
    ///
    /// # Errors
    /// The errors of [`Keystore::sign`](crate::Keystore::sign).
    fn checkpoint_signing_key(&self, key: KeyRef<'_>) -> Result<Box<dyn CheckpointSigningKey + '_>>;
}

/// The right to sign one checkpoint: see [`CheckpointSigner::checkpoint_signing_key`].
pub trait CheckpointSigningKey {
    /// The public key that verifies the signature.
    fn public_key(&self) -> &PublicKey;

    /// Signs [`UnsignedCheckpoint::signed_text`].
    ///
    /// # Errors
    /// Errors of the key's backend.
    fn sign_checkpoint(&self, checkpoint: &UnsignedCheckpoint) -> Result<Signature>;

    /// Signs [`TreeHead::signed_text`].
    ///
    /// # Errors
    /// Errors of the key's backend.
    fn sign_tree_head(&self, head: &TreeHead) -> Result<Signature>;
}
