//! A key's record in a store, and the state that binds all records together. Both are sealed.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, KeyUsage};
use crate::approval::{ApprovalRule, RuleChange};
use crate::backend::{PrivateKey, SOFTWARE, key_usage_mismatch};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyVersionId, Name};
use crate::key_identity::{CheckValue, KeyIdentity};
use crate::policy::{KeyDerivation, KeyState, Origin, RotationPolicy, UseLimit, VersionState};
use crate::public_key::PublicKey;
use crate::rollback::StoreMark;
use crate::ssh_authority::SshAuthority;
use crate::time::Timestamp;
use crate::x509::X509Authority;

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
    /// Whether backups of this key alone may be made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) backup_allowed: bool,
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
    /// The key that encrypts. This is fixed when the key is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) derivation: KeyDerivation,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) rotation: RotationPolicy,
    /// If it is there, the key signs certificates of OpenSSH that it permits, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ssh_authority: Option<Box<SshAuthority>>,
    /// If it is there, the key signs X.509 certificates that it permits, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) x509_authority: Option<Box<X509Authority>>,
    /// If it is there, the key is used only with approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalRule>,
    /// The last changes of the rule, the oldest first, with what permitted them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) rule_changes: Vec<RuleChange>,
    /// Version 1 first; never empty. The last one is the latest version.
    pub(crate) versions: Vec<VersionRecord>,
}

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionRecord {
    pub(crate) created: Timestamp,
    /// None if the algorithm is symmetric.
    #[serde(
        default,
        deserialize_with = "PublicKey::deserialize_trusted",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) public_key: Option<PublicKey>,
    /// Of a symmetric algorithm, and of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_value: Option<CheckValue>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) origin: Origin,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) state: VersionState,
    /// The number of signatures, ciphertexts or MACs that were, or may have been, made: a process
    /// reserves uses before it makes them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) uses: u64,
    /// The backend's material, in base64, as long as the device still has to delete the private
    /// key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) leftover: Option<String>,
    /// The certificates of the public key, each DER in base64, the key's own first. The keystore
    /// only remembers them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) certificates: Vec<String>,
}

impl VersionRecord {
    /// A version that was just made.
    pub(crate) fn new(created: Timestamp, identity: KeyIdentity, origin: Origin) -> Self {
        let (public_key, check_value) = identity.into_fields();
        let state = VersionState::Usable;
        Self {
            created,
            public_key,
            check_value,
            origin,
            state,
            uses: 0,
            leftover: None,
            certificates: Vec::new(),
        }
    }

    /// The public key of a version of this key.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`](crate::Code::KeyUsageMismatch) if the algorithm is symmetric.
    pub(crate) fn public_key_of(&self, key: &KeyId) -> Result<&PublicKey> {
        self.public_key.as_ref().ok_or_else(|| key_usage_mismatch(key.algorithm()))
    }

    /// Whether this is the private key of the version.
    pub(crate) fn is_of(&self, key: &dyn PrivateKey) -> Result<bool> {
        match (&self.public_key, self.check_value) {
            (Some(public_key), _) => Ok(key.public_key()? == public_key.as_bytes()),
            (None, Some(value)) => Ok(CheckValue::of(key)? == value),
            (None, None) => Ok(false),
        }
    }

    /// Whether both versions have one private key.
    pub(crate) fn has_key_of(&self, other: &Self) -> bool {
        (&self.public_key, self.check_value) == (&other.public_key, other.check_value)
    }

    /// Whether the version has this identity.
    #[cfg(feature = "transfer")]
    pub(crate) fn has_identity(&self, identity: &KeyIdentity) -> bool {
        match identity {
            KeyIdentity::PublicKey(key) => self.public_key.as_ref() == Some(key),
            KeyIdentity::CheckValue(value) => self.check_value == Some(*value),
        }
    }

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

fn malformed(error: serde_json::Error) -> KmsError {
    KmsError::corrupt("a key's record is malformed").with_source(error)
}

/// The error if a record names an algorithm that this program does not know: a newer one wrote it.
fn unknown_algorithm(record: &[u8]) -> Option<KmsError> {
    #[derive(Deserialize)]
    struct Named<'a> {
        key: &'a str,
    }
    let named: Named<'_> = serde_json::from_slice(record).ok()?;
    let algorithm = named.key.split('/').nth(2).filter(|name| name.parse::<Algorithm>().is_err())?;
    let message = format!(
        "the keystore has a key of the algorithm {algorithm:?}, which this program does not know; use a newer version of the program"
    );
    Some(KmsError::new(Code::KeystoreTooNew, message))
}

impl KeyRecord {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record has text keys and no values that can fail")
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let mut record: Self = serde_json::from_slice(bytes)
            .map_err(|error| unknown_algorithm(bytes).unwrap_or_else(|| malformed(error)))?;
        if record.versions.is_empty() || u32::try_from(record.versions.len()).is_err() {
            return Err(KmsError::corrupt("a key's record has no versions, or too many"));
        }
        // A keystore has as many of them as keys, and most keys have one version.
        record.versions.shrink_to_fit();
        let algorithm = record.key.algorithm();
        let is_consistent = |version: &VersionRecord| match (&version.public_key, version.check_value) {
            (Some(key), None) => key.algorithm() == algorithm && !algorithm.is_symmetric(),
            (None, Some(_)) => algorithm.is_symmetric() && version.origin != Origin::PublicOnly,
            _ => false,
        };
        if !record.versions.iter().all(is_consistent) {
            return Err(KmsError::corrupt("a key's record has a public key of another algorithm"));
        }
        let encrypts = algorithm.usage() == KeyUsage::Encryption;
        if record.derivation != KeyDerivation::None && !encrypts {
            return Err(KmsError::corrupt("a key's record derives keys, and its algorithm does not encrypt"));
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

    /// How often one version may be used; none if nothing limits that.
    pub(crate) fn use_limit(&self) -> Option<UseLimit> {
        UseLimit::of(self.rotation, self.key.algorithm())
    }

    /// The latest version's record.
    pub(crate) fn latest_version(&self) -> &VersionRecord {
        self.versions.last().expect("a record has a version")
    }

    /// The ids of the versions whose private keys the store holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = KeyVersionId> {
        self.held_numbers().map(|number| self.key.version(number))
    }

    /// The numbers of the versions whose private keys the store holds.
    pub(crate) fn held_numbers(&self) -> impl Iterator<Item = NonZeroU32> {
        let numbered = (1..).filter_map(NonZeroU32::new).zip(&self.versions);
        numbered.filter(|(_, version)| version.is_held()).map(|(number, _)| number)
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
