//! Private keys that come in.

use std::fmt;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{MAX_INPUT, der, malformed, openssh, public};
use crate::algorithm::Algorithm;
use crate::backend::{Backends, KeyMaterial, SOFTWARE};
use crate::error::{Code, Result};
use crate::public_key::PublicKey;

/// How a private key that is to be imported is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivateFormat {
    /// PKCS#8 (RFC 5958) as PEM: the label `PRIVATE KEY`, lines of 64 characters, line feeds alone. Of ML-DSA and ML-KEM with the
    /// seed, alone or beside the expanded key. Not encrypted, without attributes.
    Pkcs8Pem,
    /// The same as DER.
    Pkcs8Der,
    /// A private key file of OpenSSH, encrypted or not. Ed25519 alone.
    OpenSsh,
    /// The bytes alone that `spec/keystore.md` names for the algorithm: for Ed25519 the seed.
    Raw,
}

/// A private key that was read and found to be one: its public key was computed, and is the one that came with it if one did.
/// It is wiped when it is dropped, and prints its public key only.
pub struct PrivateKeyData {
    algorithm: Algorithm,
    material: KeyMaterial,
    public_key: PublicKey,
}

impl PrivateKeyData {
    /// Reads a private key. `algorithm`, where it is given, is the one that the key must have; [`PrivateFormat::Raw`] needs it.
    /// `passphrase` is for an encrypted file of OpenSSH; other formats take no notice of it.
    ///
    /// # Errors
    /// [`Code::MalformedKey`] for anything but one key in the one form of its format, and for a key that does not fit the public key
    /// beside it; [`Code::WrongPassphrase`]; [`Code::InvalidArgument`] when the key is of another algorithm, or that of raw bytes is not
    /// given; [`Code::UnsupportedAlgorithm`] when this build does not serve it.
    pub fn read(
        bytes: &[u8],
        format: PrivateFormat,
        algorithm: Option<Algorithm>,
        passphrase: Option<&SecretString>,
    ) -> Result<Self> {
        if bytes.len() > MAX_INPUT {
            return Err(malformed(format_args!("it is longer than {MAX_INPUT} bytes")));
        }
        let text = || std::str::from_utf8(bytes).map_err(|_| malformed("it is not text"));
        let key = match format {
            PrivateFormat::Pkcs8Pem => der::parse_private_pem(text()?)?,
            PrivateFormat::Pkcs8Der => der::parse_private_der(bytes)?,
            PrivateFormat::OpenSsh => openssh::parse_private(text()?, passphrase)?,
            PrivateFormat::Raw => {
                let algorithm = algorithm.ok_or_else(public::raw_without_algorithm)?;
                Self::new(algorithm, Zeroizing::new(bytes.to_vec()), None)?
            }
        };
        public::check_algorithm(key.algorithm, algorithm)?;
        Ok(key)
    }

    /// A key from its material. `claimed` is the public key that came with it.
    pub(super) fn new(algorithm: Algorithm, material: KeyMaterial, claimed: Option<&[u8]>) -> Result<Self> {
        let backend = Backends::software().find(SOFTWARE, algorithm)?;
        let key = backend.load(algorithm, &material).map_err(|error| match error.code {
            Code::StoreDamaged => malformed(format_args!("a private key of {algorithm} has another length")),
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
