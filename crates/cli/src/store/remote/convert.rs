//! A service's texts as the keystore's types.

use super::connection::unexpected;
use crate::error::Result;
use bulla_client::{Key, Rotation, Version};
use bulla_kms::{
    Algorithm, Attestation, KeyState, Origin, PublicKey, RotationPolicy, Timestamp, VersionAttestation,
    VersionState,
};
use std::num::NonZeroU64;
use std::str::FromStr;

/// Reads a text of an answer.
pub(super) fn read<T: FromStr>(text: &str, what: &str) -> Result<T> {
    text.parse().map_err(|_| unexpected(&format!("{what} in it does not have the expected form")))
}

pub(super) fn attestation(key: Key) -> Result<Attestation> {
    let (algorithm, state): (Algorithm, _) = (read(&key.algorithm, "an algorithm")?, state(&key)?);
    Ok(Attestation {
        key: read(&key.name, "a key's name")?,
        label: key.label.map(|label| read(&label, "a label")).transpose()?,
        algorithm,
        state,
        revision: key.revision,
        backend: key.backend,
        exportable: key.exportable,
        deletion_allowed: key.deletion_allowed,
        signs_digests: key.signs_digests,
        minimum_version: key.minimum_version,
        minimum_signing_version: key.minimum_signing_version,
        rotation: RotationPolicy {
            max_age_seconds: key.rotation.max_age_seconds.and_then(NonZeroU64::new),
            max_uses: key.rotation.max_uses.and_then(NonZeroU64::new),
        },
        head: key.head,
        versions: key.versions.into_iter().map(|one| version(algorithm, one)).collect::<Result<_>>()?,
    })
}

pub(super) fn rotation(policy: RotationPolicy) -> Rotation {
    Rotation {
        max_age_seconds: policy.max_age_seconds.map(Into::into),
        max_uses: policy.max_uses.map(Into::into),
    }
}

fn state(key: &Key) -> Result<KeyState> {
    use bulla_client::KeyState as Told;
    match (key.state, &key.destroy_after) {
        (Told::Enabled, _) => Ok(KeyState::Enabled),
        (Told::Disabled, _) => Ok(KeyState::Disabled),
        (Told::PendingDestruction, Some(after)) => {
            Ok(KeyState::PendingDestruction { after: read(after, "a time")? })
        }
        (Told::Destroyed, _) => Ok(KeyState::Destroyed),
        _ => Err(unexpected("a key in it has a state that this program does not know")),
    }
}

fn version(algorithm: Algorithm, version: Version) -> Result<VersionAttestation> {
    use bulla_client::{Origin as From, VersionState as Told};
    let unknown = || unexpected("a key version in it has a state that this program does not know");
    Ok(VersionAttestation {
        id: read(&version.id, "the name of a key version")?,
        version: version.version,
        public_key: PublicKey::from_bytes(algorithm, &version.public_key)?,
        created: read::<Timestamp>(&version.created, "a time")?,
        retired: version.retired.map(|time| read(&time, "a time")).transpose()?,
        state: match version.state {
            Told::Usable => VersionState::Usable,
            Told::Revoked => VersionState::Revoked,
            Told::Destroyed => VersionState::Destroyed,
            _ => return Err(unknown()),
        },
        origin: match version.origin {
            From::Generated => Origin::Generated,
            From::Imported => Origin::Imported,
            From::PublicOnly => Origin::PublicOnly,
            _ => return Err(unknown()),
        },
    })
}
