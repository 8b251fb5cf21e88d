//! A guard that trusts another party's clock, by that party's signature.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::{RollbackGuard, StoreMark};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::{Signature, Verdict};
use crate::public_key::NamedPublicKey;
use crate::random;
use crate::reserved;
use crate::time::Timestamp;

/// A time that a named key signed in answer to a nonce: see
/// [`Keystore::sign_time`](crate::Keystore::sign_time).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedTime {
    /// The time.
    pub time: Timestamp,
    /// The key version, and its signature of the time and the nonce.
    pub signature: Signature,
}

impl SignedTime {
    /// The bytes that are signed: `bulla time`, a zero byte, `v1`, a zero byte, the nonce in 64
    /// hexadecimal digits, a space, and the time as text.
    pub fn signed_bytes(nonce: &[u8; 32], time: Timestamp) -> Vec<u8> {
        let text = format!("{} {time}", encoding::hex(nonce));
        [reserved::TIME, b"v1\0", text.as_bytes()].concat()
    }

    /// The time in such bytes; none if they are others.
    pub(crate) fn time_in(signed_bytes: &[u8]) -> Option<Timestamp> {
        let text = signed_bytes.strip_prefix(reserved::TIME)?.strip_prefix(b"v1\0")?;
        let (nonce, time) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        let time = time.parse().ok()?;
        let nonce = encoding::from_hex(nonce)?.try_into().ok()?;
        (Self::signed_bytes(&nonce, time) == signed_bytes).then_some(time)
    }

    /// The time, if this key signed it in answer to this nonce.
    ///
    /// # Errors
    /// [`Code::GuardMismatch`] if it did not.
    pub fn verify(&self, key: &NamedPublicKey, nonce: &[u8; 32]) -> Result<Timestamp> {
        let signed = Self::signed_bytes(nonce, self.time);
        let verdict = key.public_key.verify(&signed, &self.signature.bytes);
        if self.signature.key == key.key && verdict == Verdict::Valid {
            return Ok(self.time);
        }
        let message = format!("{} did not sign this time just now", key.key);
        Err(KmsError::new(Code::GuardMismatch, message))
    }
}

/// The source of a signed time: a service, a device, another keystore.
///
/// ```
/// use bulla_kms::rollback::{SignedTime, TimeSource};
/// use bulla_kms::{Algorithm, KeyId, Keystore, NewKey, Result};
///
/// /// A keystore on another machine, for example behind a service.
/// #[derive(Debug)]
/// struct Elsewhere(Keystore, KeyId);
///
/// impl TimeSource for Elsewhere {
///     fn now(&self, nonce: &[u8; 32]) -> Result<SignedTime> {
///         self.0.sign_time(&self.1, nonce)
///     }
/// }
///
/// let keystore = Keystore::in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "time".parse()?, Algorithm::Ed25519))?;
/// let public_key = keystore.public_key(&key)?;
/// let SignedTime { time, signature, .. } = Elsewhere(keystore, key.key_id().clone()).now(&[7; 32])?;
/// // Programs without this library check the same bytes.
/// assert!(public_key.verify(&SignedTime::signed_bytes(&[7; 32], time), &signature.bytes).is_valid());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub trait TimeSource: fmt::Debug + Send + Sync {
    /// The current time. The nonce is new for each call, so that an old answer cannot pass for the
    /// current time.
    ///
    /// # Errors
    /// Errors of reaching the source.
    fn now(&self, nonce: &[u8; 32]) -> Result<SignedTime>;
}

/// A guard that refuses a store whose last change is older than a limit. Its clock depends neither
/// on the store's disk nor on the machine's own clock. It stores nothing, so it detects an older
/// copy only when that copy's age exceeds the limit. If a store does not change, mark it before it
/// reaches the limit: [`Keystore::refresh`](crate::Keystore::refresh).
#[derive(Clone, Debug)]
pub struct TimeGuard {
    source: Arc<dyn TimeSource>,
    key: NamedPublicKey,
    oldest: Duration,
}

impl TimeGuard {
    /// A guard that asks `source` for times signed by `key`, and refuses stores whose last change
    /// is longer ago than `oldest`.
    pub fn new(source: Arc<dyn TimeSource>, key: NamedPublicKey, oldest: Duration) -> Self {
        Self { source, key, oldest }
    }
}

impl RollbackGuard for TimeGuard {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        let now = self.time()?;
        let age = Duration::from_millis(now.unix_millis().saturating_sub(mark.changed.unix_millis()));
        if age <= self.oldest {
            return Ok(());
        }
        Err(KmsError::new(
            Code::RolledBack,
            format!(
                "the keystore was last changed at {}, longer ago than allowed at {now}: an older copy may have been \
                 put in its place; find the newest copy, or open it without the guard and refresh it",
                mark.changed
            ),
        ))
    }

    fn advance(&self, _mark: &StoreMark) -> Result<()> {
        Ok(())
    }

    fn time(&self) -> Result<Timestamp> {
        let mut nonce = [0; 32];
        random::fill(&mut nonce)?;
        self.source.now(&nonce)?.verify(&self.key, &nonce)
    }
}
