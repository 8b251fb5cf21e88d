//! A key's record in a store, and the state that binds all records together. Both are sealed.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::backend::SOFTWARE;
use crate::error::{KmsError, Result};
use crate::id::{KeyId, KeyVersionId, Name};
use crate::policy::{KeyState, Origin, RotationPolicy, VersionState};
use crate::public_key::PublicKey;
use crate::rollback::StoreMark;
use crate::time::Timestamp;

/// The metadata of one key, as JSON inside its envelope. Fields with default values are omitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRecord {
    pub(crate) key: KeyId,
    pub(crate) label: Option<Name>,
    pub(crate) state: KeyState,
    /// Increases by one with each change of the record.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) revision: u64,
    /// The backend that holds its private keys.
    #[serde(default = "software", skip_serializing_if = "is_software")]
    pub(crate) backend: String,
    /// Whether its private keys may leave the keystore. This is fixed when the key is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) exportable: bool,
    /// Whether clients of the Vault-compatible interface may destroy it without a waiting time. The
    /// keystore only remembers it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) deletion_allowed: bool,
    /// Whether it signs digests that callers hash themselves, and so no statements of the keystore.
    /// This is fixed when the key is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) signs_digests: bool,
    /// Versions below this one are not used for anything; 0 and 1 allow all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) minimum_version: u32,
    /// The oldest version that signs when a caller names it; 0 and 1 allow all. None if only the
    /// head signs, which is fixed when the key is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) minimum_signing_version: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) rotation: RotationPolicy,
    /// Version 1 first; never empty. The last one is the latest version.
    pub(crate) versions: Vec<VersionRecord>,
}

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionRecord {
    pub(crate) created: Timestamp,
    #[serde(deserialize_with = "PublicKey::deserialize_trusted")]
    pub(crate) public_key: PublicKey,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) origin: Origin,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) state: VersionState,
    /// The number of signatures that were, or may have been, made: a process reserves signatures
    /// before it makes them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) uses: u64,
    /// The backend's material, in base64, as long as the device still has to delete the private
    /// key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) leftover: Option<String>,
}

impl VersionRecord {
    /// Whether the store holds the private key.
    pub(crate) fn is_held(&self) -> bool {
        self.state == VersionState::Usable && self.origin != Origin::PublicOnly
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn software() -> String {
    SOFTWARE.to_owned()
}

fn is_software(backend: &str) -> bool {
    backend == SOFTWARE
}

impl KeyRecord {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record has text keys and no values that can fail")
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let record: Self = serde_json::from_slice(bytes)
            .map_err(|error| KmsError::corrupt("a key's record is malformed").with_source(error))?;
        if record.versions.is_empty() || u32::try_from(record.versions.len()).is_err() {
            return Err(KmsError::corrupt("a key's record has no versions, or too many"));
        }
        let algorithm = record.key.algorithm();
        if record.versions.iter().any(|version| version.public_key.algorithm() != algorithm) {
            return Err(KmsError::corrupt("a key's record has a public key of another algorithm"));
        }
        let public_only = record.is_public_only();
        if record.versions.iter().any(|version| (version.origin == Origin::PublicOnly) != public_only) {
            return Err(KmsError::corrupt("a key's record mixes versions with and without private keys"));
        }
        Ok(record)
    }

    /// The latest version.
    pub(crate) fn latest_number(&self) -> NonZeroU32 {
        let versions = u32::try_from(self.versions.len()).ok();
        versions.and_then(NonZeroU32::new).expect("a record has 1 to 2^32 - 1 versions")
    }

    /// One version, if it exists.
    pub(crate) fn version(&self, version: u32) -> Option<&VersionRecord> {
        self.versions.get(usize::try_from(version).ok()?.checked_sub(1)?)
    }

    /// Whether only public keys were imported: then no version has a private key.
    pub(crate) fn is_public_only(&self) -> bool {
        self.latest_version().origin == Origin::PublicOnly
    }

    /// The latest version's record.
    pub(crate) fn latest_version(&self) -> &VersionRecord {
        self.versions.last().expect("a record has a version")
    }

    /// The ids of the versions whose private keys the store holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = KeyVersionId> {
        let numbered = (1..).filter_map(NonZeroU32::new).zip(&self.versions);
        numbered.filter(|(_, version)| version.is_held()).map(|(number, _)| self.key.version(number))
    }
}

/// Binds a store's records together: it has their number, and the exclusive or of their keyed
/// hashes. Removing or adding a record, or restoring an older form of one, changes it.
///
/// This is MSet-XOR-Hash (Clarke, Devadas, van Dijk, Gassend, Suh: "Incremental Multiset Hash
/// Functions", ASIACRYPT 2003) for a set. It needs no nonce of its own, because the value is inside
/// an envelope and is never visible. It can be updated without reading the other records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreState {
    /// Increases by one with each change, so that two states of one store are never equal.
    pub(crate) generation: u64,
    pub(crate) records: u64,
    /// The time of the last change, by the clock of the store's rollback guard.
    pub(crate) changed: Timestamp,
    pub(crate) binding: [u8; 32],
    /// The BLAKE3 digest of the rollback guard's name, if the store remembers a guard. The name is
    /// in its own row.
    pub(crate) guard: Option<[u8; 32]>,
}

impl StoreState {
    /// Adds a record, by its hash, and removes the one that it replaces.
    pub(crate) fn replace(&mut self, old: Option<&[u8; 32]>, new: &[u8; 32]) {
        if old.is_none() {
            self.records += 1;
        }
        for hash in old.into_iter().chain([new]) {
            self.binding.iter_mut().zip(hash).for_each(|(byte, hash)| *byte ^= hash);
        }
    }

    /// The mark that a rollback guard gets for this state of the store `store`. `sealed` is the
    /// encrypted state.
    pub(crate) fn mark(&self, store: [u8; 16], sealed: &[u8]) -> StoreMark {
        let digest = *bulla_blake3::hash(sealed).as_bytes();
        StoreMark { store, counter: self.generation, changed: self.changed, digest }
    }

    /// Whether both bind the same records. Their generations may differ.
    pub(crate) fn binds_the_same(&self, other: &Self) -> bool {
        (self.records, self.binding) == (other.records, other.binding)
    }

    /// generation (8, big-endian), records (8, big-endian), binding (32), time of the change in
    /// milliseconds since 1970 (8, big-endian), and the digest of the guard's name (32), if there
    /// is one.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let changed = self.changed.unix_millis().to_be_bytes();
        let guard = self.guard.as_ref().map_or(&[][..], |guard| guard);
        [&self.generation.to_be_bytes()[..], &self.records.to_be_bytes(), &self.binding, &changed, guard]
            .concat()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let error = || KmsError::corrupt("the store's state has a wrong length");
        let (generation, rest) = bytes.split_first_chunk().ok_or_else(error)?;
        let (records, rest) = rest.split_first_chunk().ok_or_else(error)?;
        let (binding, rest) = rest.split_first_chunk().ok_or_else(error)?;
        let (changed, rest) = rest.split_first_chunk().ok_or_else(error)?;
        let guard = match rest {
            [] => None,
            digest => Some(digest.try_into().map_err(|_| error())?),
        };
        Ok(Self {
            generation: u64::from_be_bytes(*generation),
            records: u64::from_be_bytes(*records),
            changed: Timestamp::from_unix_millis(u64::from_be_bytes(*changed)).map_err(|_| error())?,
            binding: *binding,
            guard,
        })
    }
}
