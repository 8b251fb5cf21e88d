//! The summary of a backup's content.

use crate::time::Timestamp;

/// A summary of a backup's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// When it was made.
    pub made: Timestamp,
    /// How many changes the keystore had seen then.
    pub counter: u64,
    /// Its keys.
    pub keys: u64,
    /// Their private keys: one for each version that was not destroyed or revoked.
    pub private_keys: u64,
}
