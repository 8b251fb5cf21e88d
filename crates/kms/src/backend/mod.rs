//! Backends make and use private keys. A backend is one small trait, which anyone may implement.
//!
//! A backend implements algorithms on one kind of device. The keystore above it handles names,
//! versions and policy. With the key's record, it keeps the encrypted data that the backend needs
//! to find a private key again.

mod aead;
mod cipher;
#[cfg(feature = "mldsa")]
mod composite;
#[cfg(feature = "nist")]
mod ecdh;
mod ed25519;
mod ed25519_key;
#[cfg(any(feature = "fast", all(feature = "nist", feature = "p256")))]
mod fast;
mod interface;
mod mac;
#[cfg(feature = "mldsa")]
mod mldsa;
#[cfg(feature = "mlkem")]
mod mlkem;
#[cfg(feature = "nist")]
pub(crate) mod nist_curves;
#[cfg(feature = "p256")]
pub(crate) mod p256;
#[cfg(any(feature = "mldsa", feature = "slhdsa"))]
mod post_quantum;
#[cfg(feature = "nist")]
pub(crate) mod rsa;
#[cfg(feature = "slhdsa")]
mod slhdsa;
#[cfg(test)]
pub(crate) mod test_backend;

use std::fmt;
use std::sync::{Arc, LazyLock};

pub(crate) use self::cipher::open_xchacha20_poly1305;
pub(crate) use self::ed25519_key::{DecodedKey, verdict as ed25519_verdict};
#[cfg(any(feature = "fast", all(feature = "nist", feature = "p256")))]
use self::fast::FastBackend;
pub use self::interface::{
    Backend, Capabilities, DecryptRequest, Encapsulated, EncryptRequest, EncryptionMode, GROUP, KeyMaterial,
    PrivateKey, RsaMessage, SOFTWARE, SharedKey, SignRequest, VerifyRequest,
};
pub(crate) use self::interface::{check_usage, invalid_ciphertext, key_usage_mismatch, no_shares};
pub use self::mac::HmacHash;
pub(crate) use self::mac::hmac_key;
use crate::algorithm::{Algorithm, KeyUsage};
use crate::error::{Code, KmsError, Result};
pub use crate::public_key::{EncodedKey, Prepared};

/// The backends that a keystore may use.
#[derive(Clone)]
pub struct Backends(Vec<Arc<dyn Backend>>);

#[cfg(not(any(feature = "fast", all(feature = "nist", feature = "p256"))))]
use self::PLAIN as DEFAULT;

/// If two have the same name and algorithm, the first one is used.
#[cfg(any(feature = "fast", all(feature = "nist", feature = "p256")))]
static DEFAULT: LazyLock<Backends> = LazyLock::new(|| {
    let fast: Vec<Arc<dyn Backend>> = vec![
        #[cfg(feature = "fast")]
        Arc::new(FastBackend::ed25519(ed25519::Ed25519Backend)),
        #[cfg(feature = "p256")]
        Arc::new(FastBackend::p256(p256::P256Backend)),
    ];
    Backends(fast.into_iter().chain(PLAIN.0.iter().cloned()).collect())
});

static PLAIN: LazyLock<Backends> = LazyLock::new(|| {
    Backends(vec![
        Arc::new(ed25519::Ed25519Backend),
        #[cfg(feature = "p256")]
        Arc::new(p256::P256Backend),
        #[cfg(feature = "nist")]
        Arc::new(nist_curves::CurveBackend),
        #[cfg(feature = "nist")]
        Arc::new(ecdh::EcdhBackend),
        #[cfg(feature = "nist")]
        Arc::new(rsa::RsaBackend),
        #[cfg(feature = "mldsa")]
        Arc::new(mldsa::MlDsaBackend),
        #[cfg(feature = "mldsa")]
        Arc::new(composite::CompositeBackend),
        #[cfg(feature = "slhdsa")]
        Arc::new(slhdsa::SlhDsaBackend),
        #[cfg(feature = "mlkem")]
        Arc::new(mlkem::MlKemBackend),
        Arc::new(aead::AeadBackend),
        Arc::new(mac::MacBackend),
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
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    /// use bulla_kms::backend::Backends;
    ///
    /// // Both make the same signatures, and each reads the other's keys.
    /// let [plain, fast] =
    ///     [Backends::plain(), Backends::software()].map(|all| all.find("software", Algorithm::Ed25519));
    /// assert_eq!(plain?.name(), fast?.name());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
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
    ///
    /// ```
    /// use bulla_kms::Algorithm;
    /// use bulla_kms::backend::Backends;
    ///
    /// let software = Backends::software();
    /// let backend = software.find("software", Algorithm::Ed25519)?;
    /// assert_eq!(software.verifier(Algorithm::Ed25519)?.name(), backend.name());
    ///
    /// // Other programs add their own.
    /// let mine = Backends::none().with(backend.clone());
    /// assert!(mine.find("device", Algorithm::Ed25519).is_err());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn find(&self, name: &str, algorithm: Algorithm) -> Result<&Arc<dyn Backend>> {
        self.0
            .iter()
            .find(|backend| backend.name() == name && backend.capabilities(algorithm).is_some())
            .ok_or_else(|| unsupported(name, algorithm))
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

/// The error for an algorithm that no backend of this name has.
fn unsupported(name: &str, algorithm: Algorithm) -> KmsError {
    let is_of_nist = algorithm.is_rsa()
        || algorithm.usage() == KeyUsage::KeyAgreement
        || matches!(algorithm, Algorithm::EcdsaP384 | Algorithm::EcdsaP521);
    let message = if name == SOFTWARE && is_of_nist && !cfg!(feature = "nist") {
        format!("this program was built without {algorithm}; the service, `bulla-serve`, has it")
    } else {
        format!("this keystore has no backend {name} for the algorithm {algorithm}")
    };
    KmsError::new(Code::UnsupportedAlgorithm, message)
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|backend| backend.name())).finish()
    }
}
