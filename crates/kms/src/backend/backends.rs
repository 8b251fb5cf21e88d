//! Which backends there are.

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

/// The first of two with one name and algorithm is used.
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
    /// Those that this build has: keys in software.
    pub fn software() -> &'static Self {
        &DEFAULT
    }

    /// None at all, to begin with.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The backends of a build without the feature `fast`: the same keys and verdicts, and other signers.
    #[cfg(feature = "fast")]
    pub fn plain() -> &'static Self {
        &PLAIN
    }

    /// Adds a backend. If several backends support an algorithm under the same name, the first one is used.
    #[must_use]
    pub fn with(mut self, backend: Arc<dyn Backend>) -> Self {
        self.0.push(backend);
        self
    }

    /// The backend of that name for an algorithm.
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

    /// The backend that verifies signatures of an algorithm: that of keys in software, else the first that can.
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
