//! A backend for tests: the software backend for Ed25519, in which a test replaces the parts that
//! it wants to observe or to break.

use std::fmt;
use std::sync::Arc;

use super::Backends;
use super::interface::{
    Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, SignRequest, VerifyRequest,
};
use crate::algorithm::Algorithm;
use crate::error::Result;
use crate::key_signature::Verdict;
use crate::public_key::Prepared;

/// The parts that a test replaces; by default none.
pub(crate) trait Replaced: fmt::Debug + Send + Sync {
    fn load(&self, key: Arc<dyn PrivateKey>) -> Arc<dyn PrivateKey> {
        key
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        software().verify(request)
    }

    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        software().verify_many(requests)
    }

    fn sign_many(&self, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        software().sign_many(Algorithm::Ed25519, requests)
    }
}

/// The backend that a test replaces parts of.
pub(crate) fn software() -> &'static Arc<dyn Backend> {
    Backends::software().find(SOFTWARE, Algorithm::Ed25519).unwrap()
}

/// A set of one backend, with these replacements.
pub(crate) fn backends_with(replaced: impl Replaced + 'static) -> Backends {
    Backends::none().with(Arc::new(TestBackend(replaced)))
}

#[derive(Debug)]
struct TestBackend<R>(R);

impl<R: Replaced> Backend for TestBackend<R> {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        software().capabilities(algorithm)
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        software().generate(algorithm)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        Ok(self.0.load(software().load(algorithm, material)?))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        software().prepare(algorithm, public_key)
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        self.0.verify(request)
    }

    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        self.0.verify_many(requests)
    }

    fn sign_many(&self, _: Algorithm, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        self.0.sign_many(requests)
    }
}
