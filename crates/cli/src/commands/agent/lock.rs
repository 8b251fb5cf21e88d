//! `ssh-add -x`: an agent that is locked offers no keys until it hears the passphrase again.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A failed attempt to unlock waits this long, once more for each one before it, as in OpenSSH.
const WAIT: Duration = Duration::from_millis(100);
/// The longest wait in units of [`WAIT`].
const MAX_WAITS: u32 = 100;

/// Whether the agent is locked, and by which passphrase.
#[derive(Default)]
pub(super) struct Lock(Mutex<LockState>);

#[derive(Default)]
struct LockState {
    /// The hash of the passphrase. Hashes are compared in constant time.
    passphrase: Option<bulla_blake3::Hash>,
    failures: u32,
}

impl Lock {
    pub(super) fn is_locked(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).passphrase.is_some()
    }

    /// Locks, unless it is locked. Returns whether that was done.
    pub(super) fn lock(&self, passphrase: &[u8]) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.passphrase.is_some() {
            return false;
        }
        state.passphrase = Some(bulla_blake3::hash(passphrase));
        true
    }

    /// Unlocks. Returns whether that was done. After a wrong passphrase nobody gets an answer for a
    /// while.
    pub(super) fn unlock(&self, passphrase: &[u8]) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.passphrase {
            Some(expected) if expected == bulla_blake3::hash(passphrase) => {
                *state = LockState::default();
                true
            }
            Some(_) => {
                state.failures = (state.failures + 1).min(MAX_WAITS);
                thread::sleep(WAIT * state.failures);
                false
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_passphrase_that_locked_unlocks() {
        let lock = Lock::default();
        assert!(!lock.is_locked() && !lock.unlock(b""));
        assert!(lock.lock(b"one") && lock.is_locked());
        assert!(!lock.lock(b"two") && !lock.unlock(b"two") && !lock.unlock(b"") && lock.is_locked());
        assert!(lock.unlock(b"one") && !lock.is_locked());
        assert!(lock.lock(b"") && lock.unlock(b""));
    }
}
