//! The set of backends that a keystore uses.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::ed25519;
#[cfg(feature = "fast")]
use super::fast::Fast;
use super::interface::{Backend, SOFTWARE};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};

/// The backends that a keystore may use.
#[derive(Clone)]
pub struct Backends(Vec<Arc<dyn Backend>>);

#[cfg(not(feature = "fast"))]
use self::PLAIN as DEFAULT;

/// If two have the same name and algorithm, the first one is used.
#[cfg(feature = "fast")]
static DEFAULT: LazyLock<Backends> = LazyLock::new(|| {
    let fast: [Arc<dyn Backend>; _] = [
        Arc::new(Fast::ed25519(ed25519::Software)),
        #[cfg(feature = "p256")]
        Arc::new(Fast::p256(super::p256::Software)),
    ];
    Backends(fast.into_iter().chain(PLAIN.0.iter().cloned()).collect())
});

static PLAIN: LazyLock<Backends> = LazyLock::new(|| {
    Backends(vec![
        Arc::new(ed25519::Software),
        #[cfg(feature = "p256")]
        Arc::new(super::p256::Software),
        #[cfg(feature = "mldsa")]
        Arc::new(super::mldsa::Software),
        #[cfg(feature = "mldsa")]
        Arc::new(super::composite::Software),
        #[cfg(feature = "slhdsa")]
        Arc::new(super::slhdsa::Software),
        #[cfg(feature = "mlkem")]
        Arc::new(super::mlkem::Software),
    ])
});

impl Backends {
    /// This build's own backends, which keep keys in software.
    pub fn software() -> &'static Self {
        &DEFAULT
    }

    /// An empty set.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The backends of a build without the feature `fast`. Keys and verdicts are the same; the
    /// signers differ.
    #[cfg(feature = "fast")]
    pub fn plain() -> &'static Self {
        &PLAIN
    }

    /// Adds a backend. If several backends support an algorithm under the same name, the first one
    /// is used.
    #[must_use]
    pub fn with(mut self, backend: Arc<dyn Backend>) -> Self {
        self.0.push(backend);
        self
    }

    /// The backend with this name for an algorithm.
    ///
    /// # Errors
    /// [`Code::UnsupportedAlgorithm`].
    pub fn find(&self, name: &str, algorithm: Algorithm) -> Result<&Arc<dyn Backend>> {
        self.0
            .iter()
            .find(|backend| backend.name() == name && backend.capabilities(algorithm).is_some())
            .ok_or_else(|| {
                KmsError::new(
                    Code::UnsupportedAlgorithm,
                    format!("this keystore has no backend {name} for the algorithm {algorithm}"),
                )
            })
    }

    /// The backend that verifies an algorithm's signatures: the software backend or, without one,
    /// the first that can.
    ///
    /// # Errors
    /// [`Code::UnsupportedAlgorithm`].
    pub fn verifier(&self, algorithm: Algorithm) -> Result<&Arc<dyn Backend>> {
        let any = || self.0.iter().find(|backend| backend.capabilities(algorithm).is_some());
        match self.find(SOFTWARE, algorithm) {
            Ok(backend) => Ok(backend),
            Err(error) => any().ok_or(error),
        }
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|backend| backend.name())).finish()
    }
}
