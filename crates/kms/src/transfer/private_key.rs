//! An imported private key.

use std::fmt;

use super::refusal::malformed;
use crate::algorithm::Algorithm;
use crate::backend::{Backends, KeyMaterial, SOFTWARE};
use crate::error::{Code, Result};
use crate::public_key::PublicKey;

/// A private key that was read and checked. Its public key was computed, and matches the one that
/// came with it, if any. It is wiped on drop, and its debug output shows only the public key.
pub struct PrivateKeyData {
    algorithm: Algorithm,
    material: KeyMaterial,
    public_key: PublicKey,
}

impl PrivateKeyData {
    /// A key from its material. `claimed` is the public key that came with it.
    pub(super) fn new(algorithm: Algorithm, material: KeyMaterial, claimed: Option<&[u8]>) -> Result<Self> {
        let backend = Backends::software().find(SOFTWARE, algorithm)?;
        let key = backend.load(algorithm, &material).map_err(|error| match error.code {
            Code::KeystoreCorrupt => {
                malformed(format_args!("a private key of {algorithm} has another length"))
            }
            _ => error,
        })?;
        let public_key = key.public_key()?;
        if claimed.is_some_and(|claimed| claimed != public_key) {
            return Err(malformed("the public key beside it is not its own"));
        }
        if !backend.is_consistent(algorithm, &material) {
            return Err(malformed("its parts do not fit each other"));
        }
        Ok(Self { algorithm, material, public_key: PublicKey::from_bytes(algorithm, &public_key)? })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public key that belongs to it.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    pub(crate) fn material(&self) -> &KeyMaterial {
        &self.material
    }
}

impl fmt::Debug for PrivateKeyData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKeyData").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}
