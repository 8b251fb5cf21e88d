//! Keys with tables, for programs that manage them themselves;
//! [`KeyCache`](crate::KeyCache) manages many keys by itself.

use crate::kernel::{self, Kernel};
use crate::{InvalidReason, PrecomputedTables, Verdict, VerifyItem};
use std::fmt;

/// A public key with the tables of [`PrecomputedTables::Four`], 22 KiB, made once. If the kernel has no
/// vectors, there are no tables.
///
/// Making the tables takes about as long as one strict verification without them. Many signatures
/// under such keys take half of the time. With eight lanes, a single one takes a third of the time,
/// because all lanes work for it. With four lanes it takes as long as without tables. Verdicts are
/// those of [`verify_strict`](crate::verify_strict).
#[derive(Clone)]
pub struct PreparedKey {
    public_key: [u8; 32],
    kernel: Kernel,
    key: kernel::PreparedKey,
}

impl PreparedKey {
    /// Prepares a key. Under a key that is not a point, or has small order, all signatures are
    /// invalid.
    ///
    /// # Panics
    ///
    /// If [`kernel::active`] panics.
    #[must_use]
    pub fn new(public_key: &[u8; 32]) -> Self {
        Self::with_kernel(kernel::active(), public_key)
    }

    /// Like [`PreparedKey::new`], by a kernel of the caller's choice.
    #[must_use]
    pub fn with_kernel(kernel: Kernel, public_key: &[u8; 32]) -> Self {
        let mut keys = kernel.prepare(&[*public_key], PrecomputedTables::Four.count());
        Self { public_key: *public_key, kernel, key: keys.pop().expect("one key was prepared") }
    }

    /// The key: 32 bytes.
    #[must_use]
    pub fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// The verdict on one signature.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Verdict {
        let mut verdict = [Verdict::Invalid(InvalidReason::Mismatch)];
        let item = VerifyItem { public_key: &self.public_key, message, signature };
        self.kernel.verify_prepared(&[item], &[&self.key], &mut verdict);
        verdict[0]
    }
}

impl fmt::Debug for PreparedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedKey").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}

/// One signature under a prepared key.
#[derive(Clone, Copy, Debug)]
pub struct PreparedItem<'a> {
    /// The key.
    pub key: &'a PreparedKey,
    /// The message.
    pub message: &'a [u8],
    /// The signature: R and S.
    pub signature: &'a [u8; 64],
}

/// Like [`PreparedKey::verify`] for every item, eight at a time. Verdict i belongs to item i, and
/// does not depend on its neighbors.
///
/// # Panics
///
/// If different kernels prepared the keys.
pub fn verify_many_prepared(items: &[PreparedItem<'_>]) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); items.len()];
    let Some(first) = items.first() else { return verdicts };
    let kernel = first.key.kernel;
    assert!(items.iter().all(|item| item.key.kernel == kernel), "all keys are prepared by the same kernel");
    let keys: Vec<_> = items.iter().map(|item| &item.key.key).collect();
    let items = items.iter().map(|PreparedItem { key, message, signature }| VerifyItem {
        public_key: &key.public_key,
        message,
        signature,
    });
    let items: Vec<_> = items.collect();
    kernel.verify_prepared(&items, &keys, &mut verdicts);
    verdicts
}
