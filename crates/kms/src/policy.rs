//! States of keys and versions, rotation policies, and changes to keys.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::approval::ApprovalRule;
use crate::error::Result;
use crate::id::Name;
use crate::ssh_authority::SshAuthority;
use crate::time::Timestamp;
use crate::x509::X509Authority;

/// Whether a key does what it is for. In this module, *signs* stands for signing, encrypting,
/// decrypting, and making and verifying MACs, and *verifies* for verifying signatures.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// The latest version signs.
    Enabled,
    /// No version signs. Earlier signatures still verify.
    Disabled,
    /// Like disabled. From this time on, the key may be destroyed; until it is destroyed, its
    /// destruction can be canceled.
    PendingDestruction {
        /// The earliest time of destruction.
        after: Timestamp,
    },
    /// The private keys are gone for ever. Earlier signatures still verify.
    Destroyed,
}

/// Whether one version of a key may be used.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionState {
    /// It verifies and decrypts, and it signs and encrypts if it is the latest version.
    #[default]
    Usable,
    /// Its signatures, ciphertexts and MACs are refused, and its private key is deleted for ever.
    Revoked,
    /// Its private key is deleted for ever. It still verifies signatures.
    Destroyed,
}

/// The origin of a version's key pair.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It was made here.
    #[default]
    Generated,
    /// It was imported: others may have the private key.
    Imported,
    /// Only its public key was imported. It verifies, or encrypts for the holder of the private
    /// key, and does nothing else.
    PublicOnly,
}

/// The key that encrypts, for algorithms that encrypt. It is fixed when the key is made.
///
/// Both kinds of derived keys, and the nonces of convergent encryption, are those of Vault's
/// transit engine (`derived`, `convergent_encryption` of version 3).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyDerivation {
    /// The version's own key. Callers give no context.
    #[default]
    None,
    /// A key that is derived from the version's key and the context, which callers must give.
    PerContext,
    /// As `PerContext`, and the same plaintext in the same context always gives the same
    /// ciphertext.
    ///
    /// Anyone who sees two ciphertexts then sees whether their plaintexts are equal, and a caller
    /// who may encrypt can find the plaintext of a ciphertext by guessing. Use it only to search
    /// for equal values. Callers give no associated data: two ciphertexts with one nonce and
    /// different associated data would reveal the key of the tags.
    Convergent,
}

/// When the keystore rotates a key by itself: at the first use that would exceed a limit. By
/// default there are no limits.
///
/// ```
/// use std::num::NonZeroU64;
///
/// use bulla_kms::RotationPolicy;
///
/// let policy = RotationPolicy::default()
///     .max_age_seconds(NonZeroU64::new(90 * 86_400))
///     .max_uses(NonZeroU64::new(1_000_000));
/// assert_eq!(policy.max_age_seconds.unwrap().get(), 7_776_000);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotationPolicy {
    /// The maximum age, in seconds, at which a latest version still signs, encrypts or makes MACs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<NonZeroU64>,
    /// The maximum number of signatures, ciphertexts or MACs that a version makes. After a crash it
    /// may have made fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<NonZeroU64>,
}

impl RotationPolicy {
    /// Sets the maximum age, in seconds, at which a latest version still signs.
    #[must_use]
    pub fn max_age_seconds(mut self, max_age_seconds: impl Into<Option<NonZeroU64>>) -> Self {
        self.max_age_seconds = max_age_seconds.into();
        self
    }

    /// Sets the maximum number of signatures that a version makes.
    #[must_use]
    pub fn max_uses(mut self, max_uses: impl Into<Option<NonZeroU64>>) -> Self {
        self.max_uses = max_uses.into();
        self
    }

    /// Whether a version that was made at `created` must be replaced. It reads the clock only if
    /// the policy limits the age.
    pub(crate) fn is_too_old(
        &self,
        created: Timestamp,
        now: impl FnOnce() -> Result<Timestamp>,
    ) -> Result<bool> {
        let Some(seconds) = self.max_age_seconds else { return Ok(false) };
        let age = now()?.unix_millis().saturating_sub(created.unix_millis());
        Ok(Duration::from_millis(age) >= Duration::from_secs(seconds.get()))
    }

    /// Whether the keystore rotates the key by itself at all.
    fn is_automatic(self) -> bool {
        self.max_age_seconds.is_some() || self.max_uses.is_some()
    }
}

/// How often one version may be used, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UseLimit {
    pub(crate) max_uses: NonZeroU64,
    /// How many uses a process reserves at once, at most.
    max_reserved: u64,
    /// Whether the keystore rotates the key when the limit is reached; otherwise it refuses.
    pub(crate) rotates: bool,
}

impl UseLimit {
    /// The smaller one of the policy's limit and the algorithm's; none if there is neither.
    pub(crate) fn of(policy: RotationPolicy, algorithm: Algorithm) -> Option<Self> {
        const MAX_RESERVED_USES: u64 = 4096;
        // A loss of this many is 2^-16 of the limit of 2^32.
        const MAX_RESERVED_ENCRYPTIONS: u64 = 1 << 16;
        let chosen = policy.max_uses.map(|max_uses| (max_uses, MAX_RESERVED_USES));
        let safe = algorithm.max_encryptions().map(|max_uses| (max_uses, MAX_RESERVED_ENCRYPTIONS));
        let (max_uses, max_reserved) =
            chosen.into_iter().chain(safe).min_by_key(|(max_uses, _)| *max_uses)?;
        Some(Self { max_uses, max_reserved, rotates: policy.is_automatic() })
    }

    /// How many uses to reserve at once, so that not every use writes to the store. The larger the
    /// limit, the more uses a crash may lose.
    pub(crate) fn reservation(self, used: u64) -> u64 {
        const SHARE: u64 = 64;
        let max_uses = self.max_uses.get();
        (max_uses / SHARE).clamp(1, self.max_reserved).min(max_uses.saturating_sub(used))
    }
}

/// A change to a key: see [`Keystore::update`](crate::Keystore::update).
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// Sets or removes the label.
    Label(Option<Name>),
    /// Disables the key: it does not sign until it is enabled.
    Disable,
    /// Enables a disabled key: it signs again.
    Enable,
    /// Versions below this one neither sign nor verify. It may be lowered again.
    MinimumVersion(NonZeroU32),
    /// Sets the rotation policy.
    Rotation(RotationPolicy),
    /// Whether clients of the Vault-compatible interface may destroy the key without a waiting
    /// time. The keystore remembers it, and does not ask it.
    DeletionAllowed(bool),
    /// Allows backups of this key alone ([`Keystore::backup_key`](crate::Keystore::backup_key)).
    /// This cannot be undone: there may be backups.
    AllowBackup,
    /// Sets the certificates of a version, each DER, or removes them. The keystore remembers them,
    /// and does not read them ([`Keystore::certificates`](crate::Keystore::certificates)).
    Certificates {
        /// The version.
        version: NonZeroU32,
        /// The certificates, that of the version's public key first.
        chain: Vec<Vec<u8>>,
    },
    /// Makes the key an authority of OpenSSH: of what callers bring, it signs certificates that
    /// the policy permits, and nothing else; or a key like others again. Only for keys of Ed25519
    /// and P-256 that sign no digests
    /// ([`Keystore::ssh_authority`](crate::Keystore::ssh_authority)).
    SshAuthority(Option<SshAuthority>),
    /// Makes the key an authority of X.509: of what callers bring, it signs certificates that the
    /// policy permits, and what is about its own public key, and nothing else; or a key like others
    /// again. Only for keys of Ed25519, ECDSA and RSA that sign no digests
    /// ([`Keystore::x509_authority`](crate::Keystore::x509_authority)).
    X509Authority(Option<X509Authority>),
    /// Lets the key be used only with approvals by this rule. A key that has a rule gets another
    /// one only with approvals by the old one ([`Keystore::with_approval`]), and none never again.
    ///
    /// [`Keystore::with_approval`]: crate::Keystore::with_approval
    Approval(ApprovalRule),
    /// Versions below this one do not sign when a caller names them; 0 and 1 allow all. Only for
    /// keys of which older versions sign:
    /// [`NewKey::minimum_signing_version`](crate::NewKey::minimum_signing_version).
    MinimumSigningVersion(u32),
    /// Revokes this version, which must not be the latest version: its signatures are refused, and
    /// its private key is deleted. This cannot be undone.
    Revoke(NonZeroU32),
    /// Deletes the private key of this version, which must not be the latest version. This cannot
    /// be undone.
    DestroyVersion(NonZeroU32),
    /// Schedules the key's destruction: it does not sign, and can be destroyed after this time.
    ScheduleDestruction(Timestamp),
    /// Cancels the key's scheduled destruction: the key is disabled instead.
    CancelDestruction,
    /// Deletes all private keys, if the scheduled time has come. This cannot be undone.
    Destroy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_too_old_from_the_end_of_its_age_on() {
        let policy = |seconds| RotationPolicy::default().max_age_seconds(NonZeroU64::new(seconds));
        let at = |millis| Timestamp::from_unix_millis(millis).unwrap();
        let too_old = |policy: RotationPolicy, now| policy.is_too_old(at(10_000), || Ok(at(now))).unwrap();
        assert!(!too_old(policy(5), 14_999));
        assert!(too_old(policy(5), 15_000));
        assert!(too_old(policy(5), 15_001));
        assert!(!too_old(policy(5), 10_000));
        assert!(!too_old(policy(5), 9_000), "a clock that was put back makes nothing old");
        assert!(!policy(0).is_too_old(at(0), || unreachable!("the clock is not asked")).unwrap());
    }

    #[test]
    fn a_reservation_is_a_share_of_the_bound_and_never_exceeds_it() {
        let limit = |max| {
            let policy = RotationPolicy::default().max_uses(NonZeroU64::new(max));
            UseLimit::of(policy, Algorithm::Ed25519).unwrap()
        };
        let reserve = |max, used| limit(max).reservation(used);
        assert_eq!([reserve(1, 0), reserve(63, 0), reserve(64, 0), reserve(128, 0)], [1, 1, 1, 2]);
        assert_eq!([reserve(128, 127), reserve(128, 128), reserve(128, 129)], [1, 0, 0]);
        assert_eq!(reserve(u64::MAX, 0), 4096);
    }

    #[test]
    fn a_cipher_with_short_nonces_has_a_limit_that_no_policy_raises() {
        let policy = |max| RotationPolicy::default().max_uses(NonZeroU64::new(max));
        let limit = |max, algorithm| UseLimit::of(policy(max), algorithm);
        for algorithm in [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305] {
            let safe = limit(0, algorithm).unwrap();
            assert_eq!((safe.max_uses.get(), safe.rotates, safe.reservation(0)), (1 << 32, false, 1 << 16));
            assert_eq!(safe.reservation((1 << 32) - 7), 7);
            assert_eq!(safe.reservation(1 << 32), 0);
            let raised = limit(1 << 40, algorithm).unwrap();
            assert_eq!((raised.max_uses.get(), raised.rotates), (1 << 32, true));
            let lowered = limit(640, algorithm).unwrap();
            assert_eq!((lowered.max_uses.get(), lowered.rotates, lowered.reservation(0)), (640, true, 10));
            let aged = RotationPolicy::default().max_age_seconds(NonZeroU64::new(9));
            assert!(UseLimit::of(aged, algorithm).unwrap().rotates);
        }
        for algorithm in [Algorithm::XChaCha20Poly1305, Algorithm::HmacSha256, Algorithm::Ed25519] {
            assert_eq!(limit(0, algorithm), None);
            assert_eq!(limit(5, algorithm).unwrap().max_uses.get(), 5);
        }
    }
}
