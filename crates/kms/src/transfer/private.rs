//! Import of private keys.

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::private_key::PrivateKeyData;
use super::refusal::{MAX_INPUT, malformed};
use super::{der, openssh, public, vault};
use crate::algorithm::Algorithm;
use crate::error::Result;

/// The format of a private key to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivateFormat {
    /// PKCS#8 (RFC 5958) as PEM: the label `PRIVATE KEY`, lines of 64 characters, only line feeds.
    /// ML-DSA and ML-KEM keys must have the seed, alone or beside the expanded key. It must not be
    /// encrypted, and must have no attributes.
    Pkcs8Pem,
    /// The same as DER.
    Pkcs8Der,
    /// A private key file of OpenSSH, encrypted or not. Only Ed25519.
    OpenSsh,
    /// Only the bytes that `spec/keystore.md` names for the algorithm: for Ed25519 the seed.
    Raw,
    /// One value of `keys` as Vault and OpenBao export it from their transit engine: an Ed25519 key
    /// as the base64 of 64 bytes, or a P-256 key as PEM with the label `EC PRIVATE KEY`. A line
    /// feed may follow.
    Vault,
}

impl PrivateKeyData {
    /// Reads a private key. If `algorithm` is given, the key must have that algorithm;
    /// [`PrivateFormat::Raw`] needs it. `passphrase` is for an encrypted file of OpenSSH; other
    /// formats ignore it.
    ///
    /// # Errors
    /// [`Code::MalformedKey`](crate::Code::MalformedKey) for anything but one key in the only form
    /// of its format, and for a key that does not match the public key beside it;
    /// [`Code::WrongPassphrase`](crate::Code::WrongPassphrase);
    /// [`Code::InvalidArgument`](crate::Code::InvalidArgument) if the key has another algorithm, or
    /// the algorithm of raw bytes is not given;
    /// [`Code::UnsupportedAlgorithm`](crate::Code::UnsupportedAlgorithm) if this build does not
    /// support it.
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
            PrivateFormat::Vault => vault::parse_private(text()?)?,
            PrivateFormat::Raw => {
                let algorithm = algorithm.ok_or_else(public::raw_without_algorithm)?;
                Self::new(algorithm, Zeroizing::new(bytes.to_vec()), None)?
            }
        };
        public::check_algorithm(key.algorithm(), algorithm)?;
        Ok(key)
    }
}
