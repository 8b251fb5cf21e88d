//! A key as Vault shows it.

use std::collections::BTreeMap;

use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Algorithm, Attestation, KeyUsage, Origin, PublicKey, VersionState};
use serde::Serialize;
use utoipa::ToSchema;

use super::key::kind;
use crate::request::encode;

/// A key, without its private keys.
#[derive(Serialize, ToSchema)]
pub(super) struct KeyData {
    /// The key's name: its label.
    #[schema(example = "invoices")]
    name: String,
    /// The key's type.
    #[serde(rename = "type")]
    #[schema(example = "ed25519")]
    kind: &'static str,
    /// The parameter set of types that have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_set: Option<&'static str>,
    /// The versions that verify, by their numbers.
    #[schema(value_type = BTreeMap<String, VersionData>)]
    keys: BTreeMap<u32, VersionData>,
    /// The newest version, the one that signs.
    latest_version: u32,
    /// The oldest version that is not trimmed; 0 when none is.
    min_available_version: u32,
    /// Older versions do not verify.
    min_decryption_version: u32,
    /// Older versions do not sign when they are named; 0 for no bound but `min_decryption_version`.
    /// The newest version where only that signs.
    min_encryption_version: u32,
    /// Whether the key may be deleted.
    deletion_allowed: bool,
    /// The age in seconds at which a version is replaced; 0 for never.
    auto_rotate_period: u64,
    /// Whether the private keys may ever be exported.
    exportable: bool,
    /// Always false.
    allow_plaintext_backup: bool,
    /// Always false.
    derived: bool,
    /// Whether the newest version was imported.
    imported_key: bool,
    /// Always false.
    supports_encryption: bool,
    /// Always false.
    supports_decryption: bool,
    /// Always false.
    supports_derivation: bool,
    /// Whether keys of the type sign.
    supports_signing: bool,
}

/// One version of a key.
#[derive(Serialize, ToSchema)]
pub(super) struct VersionData {
    /// The name of the curve or of the type.
    #[schema(example = "ed25519")]
    name: &'static str,
    /// The public key: PEM for `ecdsa-p256`, otherwise base64.
    public_key: String,
    /// When it was made.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    creation_time: String,
}

impl From<&Attestation> for KeyData {
    fn from(key: &Attestation) -> Self {
        let (kind, parameter_set) = kind(key.algorithm);
        let name = if key.algorithm == Algorithm::EcdsaP256 { "P-256" } else { kind };
        let verify = key.versions.iter().filter(|version| {
            version.version >= key.minimum_version && version.state != VersionState::Revoked
        });
        let keys = verify.map(|version| {
            let public_key = public_key(&version.public_key);
            (version.version, VersionData { name, public_key, creation_time: version.created.to_string() })
        });
        let imported = |origin| origin != Origin::Generated;
        Self {
            name: key.label.as_ref().map(ToString::to_string).unwrap_or_default(),
            kind,
            parameter_set,
            keys: keys.collect(),
            latest_version: key.head,
            min_available_version: min_available(key),
            min_decryption_version: key.minimum_version,
            min_encryption_version: key.minimum_signing_version.unwrap_or(key.head),
            deletion_allowed: key.deletion_allowed,
            auto_rotate_period: key.rotation.max_age_seconds.map_or(0, Into::into),
            exportable: key.exportable,
            allow_plaintext_backup: false,
            derived: false,
            imported_key: key.versions.last().is_some_and(|head| imported(head.origin)),
            supports_encryption: false,
            supports_decryption: false,
            supports_derivation: false,
            supports_signing: key.algorithm.usage() == KeyUsage::Signature,
        }
    }
}

/// The oldest version that was not trimmed, or 0 if none was trimmed. Trimming revokes versions, so
/// their states say this.
pub(super) fn min_available(key: &Attestation) -> u32 {
    let trimmed = key.versions.iter().take_while(|version| version.state == VersionState::Revoked);
    trimmed.last().map_or(0, |last| last.version + 1)
}

fn public_key(key: &PublicKey) -> String {
    let pem = match key.algorithm() {
        Algorithm::EcdsaP256 => export_public(key, PublicFormat::Pem).ok(),
        _ => None,
    };
    pem.and_then(|pem| String::from_utf8(pem).ok()).unwrap_or_else(|| encode(key.as_bytes()))
}
