//! A keystore's statements about its keys.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::approval::ApprovalRule;
use crate::backend::SOFTWARE;
use crate::id::{KeyId, KeyVersionId, Name};
use crate::key_shares::KeyShares;
use crate::key_signature::{Signature, Verdict};
use crate::policy::{KeyDerivation, KeyState, Origin, RotationPolicy, VersionState};
use crate::public_key::PublicKey;
use crate::record::KeyRecord;
use crate::reserved;
use crate::time::Timestamp;

/// Everything about a key except its private keys.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// The key.
    pub key: KeyId,
    /// The name under which [`Keystore::find`](crate::Keystore::find) finds it within its tenant.
    pub label: Option<Name>,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Whether it signs.
    pub state: KeyState,
    /// The number of the key's last change, which increases by one with each change.
    /// [`Keystore::update`](crate::Keystore::update) compares it.
    pub revision: u64,
    /// The backend that holds the private keys.
    pub backend: String,
    /// Whether the private keys may ever be exported.
    pub exportable: bool,
    /// Whether clients of the Vault-compatible interface may destroy the key without a waiting
    /// time; left out of the JSON where it is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_allowed: bool,
    /// Whether it signs digests that callers hash themselves, and so no statements of the keystore;
    /// left out of the JSON where it is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signs_digests: bool,
    /// The minimum version; older versions do not verify.
    pub minimum_version: u32,
    /// The oldest version that signs when a caller names it; 0 and 1 allow all. None if only the
    /// latest version signs, and then left out of the JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_signing_version: Option<u32>,
    /// The key that encrypts; left out of the JSON if it is the version's own.
    #[serde(default, skip_serializing_if = "is_none")]
    pub derivation: KeyDerivation,
    /// The policy by which the keystore rotates the key by itself.
    pub rotation: RotationPolicy,
    /// If the key is used only with approvals: by whom; otherwise left out of the JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRule>,
    /// The latest version, the one that signs.
    #[serde(rename = "head")]
    pub latest_version: u32,
    /// All versions, version 1 first.
    pub versions: Vec<VersionAttestation>,
}

/// One version of a key.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionAttestation {
    /// The id of this version.
    pub id: KeyVersionId,
    /// Its number, from 1.
    pub version: u32,
    /// Its public key. None for a symmetric algorithm, and then left out of the JSON: nothing that
    /// is computed from the secret is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<PublicKey>,
    /// When it was made.
    pub created: Timestamp,
    /// When the next version took its place; none for the latest version.
    pub retired: Option<Timestamp>,
    /// Whether it may be used.
    pub state: VersionState,
    /// Where its key pair comes from.
    pub origin: Origin,
    /// Who holds shares of the private key; left out of the JSON if it is in one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<KeyShares>,
}

fn is_none(derivation: &KeyDerivation) -> bool {
    *derivation == KeyDerivation::None
}

impl Attestation {
    /// A statement about an enabled key with these versions, version 1 first. The other fields have
    /// their usual values: see [`NewKey::new`](crate::NewKey::new).
    pub fn new(key: KeyId, versions: Vec<VersionAttestation>) -> Self {
        Self {
            label: None,
            algorithm: key.algorithm(),
            state: KeyState::Enabled,
            revision: 0,
            backend: SOFTWARE.to_owned(),
            exportable: false,
            deletion_allowed: false,
            signs_digests: false,
            minimum_version: 1,
            minimum_signing_version: None,
            derivation: KeyDerivation::None,
            rotation: RotationPolicy::default(),
            approval: None,
            latest_version: versions.last().map_or(0, |latest| latest.version),
            key,
            versions,
        }
    }
}

impl VersionAttestation {
    /// A statement about a version that was generated, may be used, and is the latest one.
    pub fn new(id: KeyVersionId, public_key: impl Into<Option<PublicKey>>, created: Timestamp) -> Self {
        Self {
            version: id.version(),
            id,
            public_key: public_key.into(),
            created,
            retired: None,
            state: VersionState::Usable,
            origin: Origin::Generated,
            shares: None,
        }
    }
}

impl From<&KeyRecord> for Attestation {
    fn from(record: &KeyRecord) -> Self {
        let retired = record.versions.iter().skip(1).map(|next| Some(next.created)).chain([None]);
        let versions: Vec<_> = (record.versions.iter().zip(retired).zip(1..))
            .filter_map(|((stored, retired), version)| {
                Some(VersionAttestation {
                    id: record.key.version(NonZeroU32::new(version)?),
                    version,
                    public_key: stored.public_key.clone(),
                    created: stored.created,
                    retired,
                    state: stored.state,
                    origin: stored.origin,
                    shares: None,
                })
            })
            .collect();
        Self {
            key: record.key.clone(),
            label: record.label.clone(),
            algorithm: record.key.algorithm(),
            state: record.state,
            revision: record.revision,
            backend: record.backend.clone(),
            exportable: record.exportable,
            deletion_allowed: record.deletion_allowed,
            signs_digests: record.signs_digests,
            minimum_version: record.minimum_version.max(1),
            minimum_signing_version: record.minimum_signing_version,
            derivation: record.derivation,
            rotation: record.rotation,
            approval: record.approval.clone(),
            latest_version: record.latest_number().get(),
            versions,
        }
    }
}

impl Attestation {
    /// The bytes that the latest version signs: `bulla attestation`, a zero byte, `v1`, a zero
    /// byte, and the attestation as JSON with its fields in the order of this type, without white
    /// space.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let json =
            serde_json::to_vec(self).expect("an attestation has text keys and no values that can fail");
        [reserved::ATTESTATION, b"v1\0", &json].concat()
    }
}

/// An attestation, signed by the key's latest version: see
/// [`Keystore::attest_signed`](crate::Keystore::attest_signed).
///
/// ```
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let signed = keystore.attest_signed(key.key_id())?;
/// assert!(signed.verify().is_valid());
/// println!("{} bytes are signed", signed.attestation.signed_bytes().len());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedAttestation {
    /// The attestation.
    pub attestation: Attestation,
    /// The signature of [`Attestation::signed_bytes`].
    pub signature: Signature,
}

impl SignedAttestation {
    /// Whether the key's latest version, which the attestation names, signed it. It is also
    /// `Invalid` if another key version signed it.
    ///
    /// The public key comes from the attestation itself: compare one of its keys with a key that
    /// reached you in another way.
    pub fn verify(&self) -> Verdict {
        let latest = self.attestation.versions.last();
        match latest.filter(|latest| {
            latest.id == self.signature.key && latest.version == self.attestation.latest_version
        }) {
            Some(VersionAttestation { public_key: Some(key), .. }) => {
                key.verify(&self.attestation.signed_bytes(), &self.signature.bytes)
            }
            _ => Verdict::Invalid,
        }
    }
}
