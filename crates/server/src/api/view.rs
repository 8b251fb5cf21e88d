//! Keys as clients see them.

use bulla_kms::{Attestation, KeyState, Origin, VersionState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::encode;

/// A key, without its private keys.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyView {
    /// The key's name: `TENANT/PURPOSE/ALGORITHM/UUID`.
    #[schema(example = "local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11")]
    key: String,
    /// The key's label, unique within its tenant.
    label: Option<String>,
    /// The key's algorithm.
    #[schema(example = "ed25519")]
    algorithm: &'static str,
    /// `enabled`, `disabled`, `pending_destruction` or `destroyed`.
    state: &'static str,
    /// From this time on the key may be destroyed; none unless its destruction is scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    destroy_after: Option<String>,
    /// The number of the key's last change.
    revision: u64,
    /// The backend that holds the private keys.
    #[schema(example = "software")]
    backend: String,
    /// Whether the private keys may ever be exported.
    exportable: bool,
    /// Whether clients of the Vault-compatible interface may destroy the key without a waiting
    /// time; absent if they may not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    deletion_allowed: bool,
    /// Whether it signs digests that callers hash themselves, and so no statements; absent if it
    /// does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    signs_digests: bool,
    /// Older versions do not verify.
    minimum_version: u32,
    /// The oldest version that signs when a client of the Vault-compatible interface names it; 0
    /// and 1 allow all. Absent if only the newest version signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_signing_version: Option<u32>,
    /// When the keystore rotates the key by itself.
    rotation: RotationView,
    /// The newest version, the one that signs.
    head: u32,
    /// All versions, version 1 first.
    versions: Vec<VersionView>,
}

/// When the keystore rotates a key by itself.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotationView {
    /// A version signs for at most this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_seconds: Option<u64>,
    /// A version makes at most this many signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_uses: Option<u64>,
}

/// One version of a key.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionView {
    /// The version's name: the key's name, and `/vN`.
    id: String,
    /// The version's number, from 1.
    version: u32,
    /// The public key, base64.
    public_key: String,
    /// When it was made.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    created: String,
    /// When the next version took its place; none for the newest.
    retired: Option<String>,
    /// `usable`, `revoked` or `destroyed`.
    state: &'static str,
    /// `generated`, `imported` or `public_only`.
    origin: &'static str,
}

impl From<&Attestation> for KeyView {
    fn from(key: &Attestation) -> Self {
        let (state, destroy_after) = match key.state {
            KeyState::Enabled => ("enabled", None),
            KeyState::Disabled => ("disabled", None),
            KeyState::PendingDestruction { after } => ("pending_destruction", Some(after.to_string())),
            KeyState::Destroyed => ("destroyed", None),
            _ => ("unknown", None),
        };
        let versions = key.versions.iter().map(|version| VersionView {
            id: version.id.to_string(),
            version: version.version,
            public_key: encode(version.public_key.as_bytes()),
            created: version.created.to_string(),
            retired: version.retired.map(|time| time.to_string()),
            state: match version.state {
                VersionState::Usable => "usable",
                VersionState::Revoked => "revoked",
                VersionState::Destroyed => "destroyed",
                _ => "unknown",
            },
            origin: match version.origin {
                Origin::Generated => "generated",
                Origin::Imported => "imported",
                Origin::PublicOnly => "public_only",
                _ => "unknown",
            },
        });
        Self {
            key: key.key.to_string(),
            label: key.label.as_ref().map(ToString::to_string),
            algorithm: key.algorithm.as_str(),
            state,
            destroy_after,
            revision: key.revision,
            backend: key.backend.clone(),
            exportable: key.exportable,
            deletion_allowed: key.deletion_allowed,
            signs_digests: key.signs_digests,
            minimum_version: key.minimum_version,
            minimum_signing_version: key.minimum_signing_version,
            rotation: RotationView {
                max_age_seconds: key.rotation.max_age_seconds.map(Into::into),
                max_uses: key.rotation.max_uses.map(Into::into),
            },
            head: key.head,
            versions: versions.collect(),
        }
    }
}
