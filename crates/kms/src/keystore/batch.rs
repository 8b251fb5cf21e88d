//! Verifying many signatures at once.

use std::collections::BTreeMap;

use super::Keystore;
use crate::algorithm::Algorithm;
use crate::backend::Request;
use crate::id::KeyId;
use crate::public_key::Verdict;

/// One signature to verify: see [`Keystore::verify_batch`].
#[derive(Clone, Copy, Debug)]
pub struct VerifyItem<'a> {
    /// The key version that is said to have signed.
    pub key: &'a KeyId,
    /// The message.
    pub message: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}

impl Keystore {
    /// The verdict on each item, in their order: the one of [`Keystore::verify`], or [`Verdict::Unusable`] where that
    /// is an error. No item's verdict depends on another one. All see the keys as they are at one moment.
    pub fn verify_batch(&self, items: &[VerifyItem<'_>]) -> Vec<Verdict> {
        let index = self.index.load_full();
        let mut verdicts = vec![Verdict::Unusable; items.len()];
        let mut by_algorithm: BTreeMap<Algorithm, (Vec<usize>, Vec<Request<'_>>)> = BTreeMap::new();
        for (place, item) in items.iter().enumerate() {
            let Ok(version) = index.key(item.key.family()).and_then(|key| key.usable(item.key)) else {
                continue;
            };
            let public_key = &version.public_key;
            let (places, requests) = by_algorithm.entry(public_key.algorithm()).or_default();
            places.push(place);
            requests.push(Request { public_key, message: item.message, signature: item.signature });
        }
        for (algorithm, (places, requests)) in by_algorithm {
            let Ok(backend) = self.backends.verifier(algorithm) else { continue };
            for (place, verdict) in places.into_iter().zip(backend.verify_many(&requests)) {
                verdicts[place] = verdict;
            }
        }
        verdicts
    }

    /// Whether all items are valid; true for none.
    pub fn verify_all(&self, items: &[VerifyItem<'_>]) -> bool {
        self.verify_batch(items).into_iter().all(Verdict::is_valid)
    }
}
