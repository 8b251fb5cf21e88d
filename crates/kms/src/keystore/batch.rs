//! Verifying and signing many messages at once.

use std::collections::BTreeMap;

use super::Keystore;
use super::observe::{Report, Subject, report};
use crate::algorithm::Algorithm;
use crate::audit_log::{Actor, AuditOperation, Outcome};
use crate::backend::{Backend, SignRequest, VerifyRequest};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, KeyVersionId};
use crate::key_signature::{Signature, Verdict};

/// One signature to verify: see [`Keystore::verify_batch`].
#[derive(Clone, Copy, Debug)]
pub struct VerifyItem<'a> {
    /// The key version that supposedly signed.
    pub key: &'a KeyVersionId,
    /// The message.
    pub message: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}

/// One message to sign: see [`Keystore::sign_batch`].
#[derive(Clone, Copy, Debug)]
pub struct KeyMessage<'a> {
    /// The key.
    pub key: KeyRef<'a>,
    /// The message.
    pub message: &'a [u8],
}

/// The requests that one backend signs in one call, with the places of their signatures.
type SignGroup<'a> = (Vec<usize>, Vec<SignRequest<'a>>);

/// The threads that compute a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The calling thread.
    Own,
    /// All threads of the pool, if the build has one.
    All,
}

impl Threads {
    #[cfg(feature = "parallel-batch")]
    fn verify(
        self,
        backend: &dyn Backend,
        algorithm: Algorithm,
        requests: &[VerifyRequest<'_>],
    ) -> Vec<Verdict> {
        if self == Self::Own {
            return verdicts_of(backend, requests);
        }
        let lanes =
            backend.capabilities(algorithm).map_or(1, |capabilities| capabilities.verify_lanes.max(1));
        let mut verdicts = vec![Verdict::Unusable; requests.len()];
        bulla_ed25519::par_split(requests, &mut verdicts, lanes, |requests, verdicts| {
            verdicts.copy_from_slice(&verdicts_of(backend, requests));
        });
        verdicts
    }

    #[cfg(not(feature = "parallel-batch"))]
    fn verify(
        self,
        backend: &dyn Backend,
        _algorithm: Algorithm,
        requests: &[VerifyRequest<'_>],
    ) -> Vec<Verdict> {
        verdicts_of(backend, requests)
    }
}

/// The backend's verdicts. If their number is not that of the requests, nobody can tell which
/// verdict belongs to which request, and none counts.
fn verdicts_of(backend: &dyn Backend, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
    let verdicts = backend.verify_many(requests);
    if verdicts.len() == requests.len() { verdicts } else { vec![Verdict::Unusable; requests.len()] }
}

/// The backend's signatures. If their number is not that of the requests, nobody can tell which
/// signature belongs to which request, and none counts.
fn signatures_of(
    backend: &dyn Backend,
    algorithm: Algorithm,
    requests: &[SignRequest<'_>],
) -> Vec<Result<Vec<u8>>> {
    let made = backend.sign_many(algorithm, requests);
    if made.len() == requests.len() { made } else { vec![Err(no_signature(backend.name())); requests.len()] }
}

fn no_signature(backend: &str) -> KmsError {
    let message = format!("the backend {backend} did not return one signature for each message");
    KmsError::new(Code::DeviceFailed, message)
}

impl Keystore {
    /// The verdict on each item, in their order: the verdict of [`Keystore::verify`], or
    /// [`Verdict::Unusable`] where that returns an error. No item's verdict depends on another
    /// item. All verdicts use the keys as they are at one moment.
    ///
    /// With the feature `parallel-batch`, large batches are divided between the calling thread and
    /// the threads of the rayon pool that the call runs in.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey, VerifyItem};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let signature = keystore.sign(&key, b"a message")?.bytes;
    /// let good = VerifyItem { key: &key, message: b"a message", signature: &signature };
    /// let bad = VerifyItem { message: b"another", ..good };
    /// let verdicts = keystore.verify_batch(&[good, bad]);
    /// assert!(verdicts[0].is_valid() && !verdicts[1].is_valid());
    /// // The reason may be that the version is revoked:
    /// keystore.check_usable(&key)?;
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn verify_batch(&self, items: &[VerifyItem<'_>]) -> Vec<Verdict> {
        self.verify_batch_as(items, Threads::All, &|_| self.actor())
    }

    /// Like [`Keystore::verify_batch`], with the actor of each item.
    pub(crate) fn verify_batch_as(
        &self,
        items: &[VerifyItem<'_>],
        threads: Threads,
        actor: &dyn Fn(usize) -> Actor,
    ) -> Vec<Verdict> {
        self.observed_together(
            AuditOperation::Verify,
            |place| Subject::message(AuditOperation::Verify, items[place].key, items[place].message),
            actor,
            || self.verdicts(items, threads),
            |verdict| Report { outcome: Outcome::Verdict(*verdict), key: None, message: None },
            |_| Verdict::Unusable,
        )
    }

    fn verdicts(&self, items: &[VerifyItem<'_>], threads: Threads) -> Vec<Verdict> {
        let index = self.index.load_full();
        let mut verdicts = vec![Verdict::Unusable; items.len()];
        let mut by_algorithm: BTreeMap<Algorithm, (Vec<usize>, Vec<VerifyRequest<'_>>)> = BTreeMap::new();
        for (place, item) in items.iter().enumerate() {
            let Ok(version) = index.key(item.key.key_id()).and_then(|key| key.usable(item.key)) else {
                continue;
            };
            let Some(public_key) = &version.public_key else { continue };
            let (places, requests) = by_algorithm.entry(public_key.algorithm()).or_default();
            places.push(place);
            let public_key = public_key.encoded();
            requests.push(VerifyRequest { public_key, message: item.message, signature: item.signature });
        }
        for (algorithm, (places, requests)) in by_algorithm {
            let Ok(backend) = self.backends.verifier(algorithm) else { continue };
            for (place, verdict) in places.into_iter().zip(threads.verify(&**backend, algorithm, &requests)) {
                verdicts[place] = verdict;
            }
        }
        verdicts
    }

    /// Checks that the key version may be used to verify.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`], [`Code::UnknownVersion`], [`Code::VersionNotUsable`],
    /// [`Code::UnsupportedAlgorithm`]; [`Code::KeyUsageMismatch`] if the algorithm has no public
    /// keys.
    pub fn check_usable(&self, key: &KeyVersionId) -> Result<()> {
        let index = self.index.load();
        let version = index.key(key.key_id())?.usable(key)?;
        self.backends.verifier(version.public_key_of(key.key_id())?.algorithm()).map(drop)
    }

    /// Whether all items are valid; true for none.
    pub fn verify_all(&self, items: &[VerifyItem<'_>]) -> bool {
        self.verify_batch(items).into_iter().all(Verdict::is_valid)
    }

    /// The result of [`Keystore::sign`] for each item, in their order. The backend gets all
    /// messages for keys of one algorithm together.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, KeyMessage, Keystore, NewKey, VerifyItem};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// let item = KeyMessage { key: key.key_id().into(), message: b"a message" };
    /// for signature in keystore.sign_batch(&[item; 3]) {
    ///     let signature = signature?.bytes;
    ///     let item = VerifyItem { key: &key, message: b"a message", signature: &signature };
    ///     assert!(keystore.verify_all(&[item]));
    /// }
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn sign_batch(&self, items: &[KeyMessage<'_>]) -> Vec<Result<Signature>> {
        self.sign_batch_as(items, &|_| self.actor())
    }

    /// Like [`Keystore::sign_batch`], with the actor of each item.
    pub(crate) fn sign_batch_as(
        &self,
        items: &[KeyMessage<'_>],
        actor: &dyn Fn(usize) -> Actor,
    ) -> Vec<Result<Signature>> {
        self.observed_together(
            AuditOperation::Sign,
            |place| Subject::message(AuditOperation::Sign, items[place].key, items[place].message),
            actor,
            || self.signatures(items),
            report,
            |error| Err(error.clone()),
        )
    }

    fn signatures(&self, items: &[KeyMessage<'_>]) -> Vec<Result<Signature>> {
        let versions: Vec<_> =
            items.iter().map(|item| self.version_for_message(item.key, item.message)).collect();
        let mut signatures = Vec::with_capacity(items.len());
        let mut by_backend: BTreeMap<(Algorithm, &str), SignGroup<'_>> = BTreeMap::new();
        for (place, (version, item)) in versions.iter().zip(items).enumerate() {
            let version = version.as_ref().map_err(Clone::clone);
            let signer =
                version.and_then(|(id, key)| Ok((key, key.private_key(id, &self.cipher, &self.backends)?)));
            signatures.push(signer.and_then(|(key, signer)| {
                let backend = (key.record.key.algorithm(), key.record.backend.as_str());
                let (places, requests) = by_backend.entry(backend).or_default();
                places.push(place);
                let request = SignRequest::new(&**signer, item.message);
                requests.push(request.approved(self.approved.as_deref()));
                Err(no_signature(backend.1))
            }));
        }
        for ((algorithm, backend), (places, requests)) in by_backend {
            let made = match self.backends.find(backend, algorithm) {
                Ok(backend) => signatures_of(&**backend, algorithm, &requests),
                Err(error) => vec![Err(error); requests.len()],
            };
            for (place, signature) in places.into_iter().zip(made) {
                signatures[place] = signature;
            }
        }
        let signature = |(version, bytes): (Result<(KeyVersionId, _)>, Result<Vec<u8>>)| {
            Ok(Signature { key: version?.0, bytes: bytes? })
        };
        versions.into_iter().zip(signatures).map(signature).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KeystoreOptions, NewKey};
    use super::*;
    use crate::backend::test_backend::{self, Replaced};

    /// The software backend, except that the number of its answers to a batch is wrong.
    #[derive(Debug)]
    struct Miscounting(usize);

    impl Replaced for Miscounting {
        fn verify_many(&self, _requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
            vec![Verdict::Valid; self.0]
        }

        fn sign_many(&self, _requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
            vec![Ok(vec![7; 64]); self.0]
        }
    }

    #[test]
    fn a_backend_that_miscounts_signs_nothing_and_verifies_nothing() {
        for (given, wrong) in [(0, true), (1, true), (2, true), (3, false), (4, true)] {
            let backends = test_backend::backends_with(Miscounting(given));
            let keystore = KeystoreOptions::default().backends(backends).in_memory().unwrap();
            let new = NewKey::new("local".parse().unwrap(), "test".parse().unwrap(), Algorithm::Ed25519);
            let key = keystore.create_key(new).unwrap();
            let signed = keystore.sign_batch(&[KeyMessage { key: (&key).into(), message: b"message" }; 3]);
            assert_eq!(signed.len(), 3);
            for signature in signed {
                match signature {
                    Ok(signature) => assert!(!wrong && signature.bytes == [7; 64], "{given} given"),
                    Err(error) => assert!(wrong && error.code == Code::DeviceFailed, "{given} given"),
                }
            }
            let items = [VerifyItem { key: &key, message: b"message", signature: &[7; 64] }; 3];
            let expected = if wrong { Verdict::Unusable } else { Verdict::Valid };
            for threads in [Threads::Own, Threads::All] {
                let verdicts = keystore.verify_batch_as(&items, threads, &|_| keystore.actor());
                assert_eq!(verdicts, [expected; 3], "{given} given, {threads:?}");
            }
        }
    }
}
