//! The module over a keystore in memory, for the fuzzer in `fuzz/`; not part of the interface.

use std::sync::{Arc, Mutex, PoisonError};

use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
use bulla_kms::{Algorithm, Attestation, Keystore, NewKey};
use cryptoki_sys::*;

use crate::backend::local::{LocalKeystore, Opener};
use crate::backend::{Backend, Source};
use crate::config::{Login, SlotConfig};
use crate::error::{Result, require};
use crate::module;

/// What logs in to the second slot.
pub const PIN: &[u8] = b"1234";

/// A keystore with keys of each kind, and what it said of them when it was new.
struct Keys {
    keystore: Arc<Keystore>,
    new: Vec<Attestation>,
}

static KEYS: Mutex<Option<Keys>> = Mutex::new(None);

impl Keys {
    /// `rsa` is a private key as PEM: to make one takes longer than all else together.
    fn new(rsa: &[u8]) -> bulla_kms::Result<Self> {
        let keystore = Keystore::in_memory()?;
        let (tenant, purpose) = (bulla_keystore::tenant(), "files".parse::<bulla_kms::Name>()?);
        let new = |algorithm| NewKey::new(tenant.clone(), purpose.clone(), algorithm);
        for (algorithm, signs_digests) in [
            (Algorithm::Ed25519, false),
            (Algorithm::EcdsaP256, true),
            (Algorithm::EcdsaP384, false),
            (Algorithm::EcdsaP521, true),
            (Algorithm::EcdhP256, false),
            (Algorithm::X25519, false),
            (Algorithm::Aes256Gcm, false),
            (Algorithm::HmacSha256, false),
        ] {
            let made = keystore.create_key(new(algorithm).signs_digests(signs_digests))?;
            if algorithm == Algorithm::EcdsaP256 {
                keystore.rotate(made.key_id())?;
            }
        }
        let rsa = PrivateKeyData::read(rsa, PrivateFormat::Pkcs8Pem, None, None)?;
        keystore.import_key(new(Algorithm::Rsa2048).signs_digests(true), &rsa)?;
        Ok(Self { new: keystore.list()?, keystore: Arc::new(keystore) })
    }

    fn is_new(&self) -> bool {
        self.keystore.list().is_ok_and(|now| now == self.new)
    }
}

/// A keystore that stays open.
#[derive(Clone)]
struct Opened(Arc<Keystore>);

impl Opener for Opened {
    fn open(&self) -> Result<Keystore> {
        Ok(self.0.on_behalf_of(&self.0.actor()))
    }

    fn open_to_use(&self, _key: &str) -> Result<Keystore> {
        Opener::open(self)
    }

    fn list(&self) -> Result<Vec<Attestation>> {
        Ok(self.0.list()?)
    }
}

impl Source for Opened {
    fn open(&self) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(LocalKeystore(self.clone())))
    }

    fn log_in(&self, pin: &[u8]) -> Result<Arc<dyn Backend>> {
        require(pin == PIN, CKR_PIN_INCORRECT)?;
        Source::open(self)
    }
}

/// Is `C_Initialize` with two slots: one that needs no login, and one with [`PIN`]. Both show the
/// same keys, which are as when they were new. `rsa` is a private key of RSA as PEM.
///
/// # Panics
/// The keystore does not take the RSA key.
pub fn initialize(rsa: &[u8]) -> CK_RV {
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    if !keys.as_ref().is_some_and(Keys::is_new) {
        *keys = Some(Keys::new(rsa).expect("a keystore in memory"));
    }
    let opened = Opened(keys.as_ref().expect("a keystore").keystore.clone());
    let slot = |label: &str, login| SlotConfig {
        label: label.to_owned(),
        login,
        address: "memory".to_owned(),
        certificates: Vec::new(),
        source: Box::new(opened.clone()),
    };
    let slots = || Ok(vec![slot("open", Login::NotRequired), slot("pin", Login::Pin)]);
    module::initialize(slots).map_or_else(|failure| failure.0, |()| CKR_OK)
}
