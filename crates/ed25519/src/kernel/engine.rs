//! The operations of every kernel.

use crate::generic::alone::KeyRows;
use crate::generic::table::KeyTable;
use crate::item::VerifyItem;
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict};

/// The operations of a kernel. `out` must be as long as `items`. `domain` precedes everything that
/// is hashed; it is empty in Ed25519 itself.
pub(crate) trait Engine: Sync {
    /// Strict verdicts.
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]);
    /// Keys with `tables` tables each: 1, 2 or 4.
    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<PreparedKey>;
    /// Strict verdicts: `keys[i]` is that of item i, prepared by the same engine.
    fn verify_prepared(&self, items: &[VerifyItem<'_>], keys: &[&PreparedKey], out: &mut [Verdict]);
    /// Verdicts of the cofactored predicate; 16 random bytes for every item.
    fn verify_cofactored(&self, items: &[VerifyItem<'_>], random: &[[u8; 16]], out: &mut [Verdict]);
    /// SHA-512 of every message.
    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]);
    /// Signatures.
    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]);
}

/// A key, and its tables if it is a usable one.
#[derive(Clone)]
#[cfg_attr(not(any(test, lanes)), expect(dead_code, reason = "no vectors to compute with"))]
pub(crate) struct PreparedKey {
    /// Why no signature under it is valid.
    pub(crate) fault: Option<InvalidReason>,
    /// As many tables as it was prepared with; none for kernels without tables.
    pub(super) tables: Box<[KeyTable]>,
    /// Those for one signature alone, if it was prepared with four tables.
    pub(super) rows: Option<Box<KeyRows>>,
}

impl PreparedKey {
    /// A key without tables.
    pub(crate) fn bare(fault: Option<InvalidReason>) -> Self {
        Self { fault, tables: Box::default(), rows: None }
    }
}
