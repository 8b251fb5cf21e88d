//! Verifying many signatures at once.

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
        for algorithm in Algorithm::ALL {
            let Ok(backend) = self.backends.verifier(algorithm) else { continue };
            let of_algorithm = items.iter().enumerate().filter_map(|(place, item)| {
                let (message, signature) = (item.message, item.signature);
                let key = index.key(item.key.family()).ok()?;
                let public_key = &key.usable(item.key).ok()?.public_key;
                let request = Request { public_key, message, signature };
                (public_key.algorithm() == algorithm).then_some((place, request))
            });
            let (places, requests): (Vec<_>, Vec<_>) = of_algorithm.unzip();
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
