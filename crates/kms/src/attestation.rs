//! What a keystore says of its keys.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::id::{Algorithm, KeyFamily, KeyId, Name};
use crate::public_key::PublicKey;
use crate::record::KeyRecord;
use crate::time::Timestamp;

/// Whether a key signs.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// The head signs.
    Enabled,
    /// No version signs. What was signed before still verifies.
    Disabled,
}

/// All that may be known of a key: everything but its private keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// The key.
    pub key: KeyFamily,
    /// The name under which [`Keystore::find`](crate::Keystore::find) finds it within its tenant.
    pub label: Option<Name>,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Whether it signs.
    pub state: KeyState,
    /// The newest version, the one that signs.
    pub head: u32,
    /// All versions, version 1 first.
    pub versions: Vec<VersionAttestation>,
}

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionAttestation {
    /// The id of this version.
    pub id: KeyId,
    /// Its number, from 1.
    pub version: u32,
    /// Its public key.
    pub public_key: PublicKey,
    /// When it was made.
    pub created: Timestamp,
    /// When the next version took its place; none for the head.
    pub retired: Option<Timestamp>,
}

impl From<&KeyRecord> for Attestation {
    fn from(record: &KeyRecord) -> Self {
        let retired = record.versions.iter().skip(1).map(|next| Some(next.created)).chain([None]);
        let versions: Vec<_> = (record.versions.iter().zip(retired).zip(1..))
            .filter_map(|((stored, retired), version)| {
                Some(VersionAttestation {
                    id: record.key.version(NonZeroU32::new(version)?),
                    version,
                    public_key: stored.public_key,
                    created: stored.created,
                    retired,
                })
            })
            .collect();
        Self {
            key: record.key.clone(),
            label: record.label.clone(),
            algorithm: record.key.algorithm(),
            state: record.state,
            head: record.head().get(),
            versions,
        }
    }
}
