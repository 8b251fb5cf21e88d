//! Encryption to keys of the service, and export and import of keys.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::base64::{Base64, bytes, encoded, secret_bytes};
use crate::call::{Call, Effect, key_path};
use crate::client::Client;
use crate::error::Result;
use crate::keys::{Key, NewKey, PublicKeyFormat};

/// At least the length of the JSON around a request's secret.
const JSON_FRAME_LEN: usize = 4096;

/// A shared key, and the ciphertext that carries it.
#[non_exhaustive]
#[derive(Clone, Deserialize)]
pub struct Encapsulated {
    /// The key version that decapsulates the ciphertext.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The ciphertext.
    #[serde(deserialize_with = "bytes")]
    pub ciphertext: Vec<u8>,
    /// The shared key, 32 bytes.
    #[serde(deserialize_with = "secret_bytes")]
    pub shared_key: Zeroizing<Vec<u8>>,
}

/// Shows no shared key.
impl std::fmt::Debug for Encapsulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encapsulated").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The recipient of an export.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum Recipient<'a> {
    /// A public key of ML-KEM or X-Wing: `x-wing:BASE64`, `ml-kem-768:BASE64`, or a public key file
    /// of bulla.
    #[serde(rename = "recipient")]
    PublicKey(&'a str),
    /// A key of the same service.
    #[serde(rename = "recipient_key")]
    Key(&'a str),
}

/// A private key that only its recipient opens.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct Exported {
    /// The key version.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The text of the wrapped key, which [`KeyMaterial::Wrapped`] and `bulla keys import --format
    /// wrapped` take.
    pub wrapped: String,
}

/// How a private key is written.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivateKeyFormat {
    /// PKCS#8 (RFC 5958) as PEM, not encrypted.
    Pem,
    /// The private key as DER (RFC 5958).
    Der,
    /// A private key file of OpenSSH, not encrypted: Ed25519.
    OpenSsh,
    /// The bytes of the algorithm alone, for Ed25519 the seed.
    Raw,
    /// One value of `keys` as Vault and OpenBao export it.
    Vault,
}

#[derive(Serialize)]
struct Encrypt<'a> {
    data: Base64<'a>,
    keys: &'a [&'a str],
    recipients: &'a [&'a str],
}

#[derive(Deserialize)]
struct Encrypted {
    #[serde(deserialize_with = "bytes")]
    encrypted_data: Vec<u8>,
}

#[derive(Deserialize)]
struct Decrypted {
    #[serde(deserialize_with = "secret_bytes")]
    data: Zeroizing<Vec<u8>>,
}

#[derive(Deserialize)]
struct Decapsulated {
    #[serde(deserialize_with = "secret_bytes")]
    shared_key: Zeroizing<Vec<u8>>,
}

/// A key to import, in one of three forms.
#[derive(Clone, Copy)]
pub enum KeyMaterial<'a> {
    /// A private key. Only TLS protects it on its way: prefer [`KeyMaterial::Wrapped`].
    Private {
        /// How it is written.
        format: PrivateKeyFormat,
        /// The bytes of the file.
        bytes: &'a [u8],
        /// The algorithm that the key must have. `Raw` needs it.
        algorithm: Option<&'a str>,
        /// The passphrase of an encrypted file of OpenSSH.
        passphrase: Option<&'a str>,
    },
    /// A private key that was wrapped for a key of the service, in any version.
    Wrapped {
        /// The text of the wrapped key.
        wrapped: &'a str,
        /// The key for which it was wrapped.
        recipient: &'a str,
    },
    /// A public key alone: it verifies signatures or is encrypted to, and does nothing else.
    Public {
        /// How it is written.
        format: PublicKeyFormat,
        /// Text as it is, or bytes as base64.
        text: &'a str,
        /// The algorithm that the key must have. `Raw` needs it.
        algorithm: Option<&'a str>,
    },
}

/// Shows no key.
impl std::fmt::Debug for KeyMaterial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMaterial").finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Import<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    private_key: Option<Private<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrapped_key: Option<Wrapped<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<Public<'a>>,
    /// None for a version of a key.
    #[serde(flatten)]
    new: Option<NewKey>,
}

#[derive(Serialize)]
struct Private<'a> {
    format: PrivateKeyFormat,
    data: Base64<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passphrase: Option<&'a str>,
}

#[derive(Serialize)]
struct Wrapped<'a> {
    wrapped: &'a str,
    recipient: &'a str,
}

#[derive(Serialize)]
struct Public<'a> {
    format: &'static str,
    data: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'a str>,
}

impl<'a> Import<'a> {
    fn new(new: Option<NewKey>, material: KeyMaterial<'a>) -> Self {
        let mut import = Self { private_key: None, wrapped_key: None, public_key: None, new };
        match material {
            KeyMaterial::Private { format, bytes, algorithm, passphrase } => {
                import.private_key = Some(Private { format, data: Base64(bytes), algorithm, passphrase });
            }
            KeyMaterial::Wrapped { wrapped, recipient } => {
                import.wrapped_key = Some(Wrapped { wrapped, recipient });
            }
            KeyMaterial::Public { format, text, algorithm } => {
                import.public_key = Some(Public { format: format.as_str(), data: text, algorithm });
            }
        }
        import
    }

    /// At least the length of the JSON, if it has a secret in it.
    fn length(&self) -> usize {
        let secret = self.private_key.as_ref().map_or(0, |key| {
            // A character has at most six bytes in JSON.
            encoded(key.data.0.len()) + 6 * key.passphrase.map_or(0, str::len)
        });
        JSON_FRAME_LEN + secret
    }
}

impl Client {
    /// Makes a shared key of 32 bytes, and the ciphertext from which the service's key makes the
    /// same.
    pub async fn encapsulate(&self, key: &str) -> Result<Encapsulated> {
        self.call(Call::post(key_path(key, "/encapsulate"), Effect::None)).await
    }

    /// The shared key of 32 bytes that a ciphertext carries. Best give as `key` the name of the
    /// version for which it was made.
    pub async fn decapsulate(&self, key: &str, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        #[derive(Serialize)]
        struct Decapsulate<'a> {
            ciphertext: Base64<'a>,
        }
        let body = Decapsulate { ciphertext: Base64(ciphertext) };
        let call = Call::post(key_path(key, "/decapsulate"), Effect::None).body(&body);
        Ok(self.call::<Decapsulated>(call).await?.shared_key)
    }

    /// Encrypts data to keys of the service and to recipients elsewhere. Each of them decrypts it,
    /// also with `bulla decrypt`.
    pub async fn encrypt(&self, data: &[u8], keys: &[&str], recipients: &[&str]) -> Result<Vec<u8>> {
        let body = Encrypt { data: Base64(data), keys, recipients };
        let names: usize = keys.iter().chain(recipients).map(|text| text.len() + 3).sum();
        let call = Call::post("/api/v1/encrypt", Effect::None);
        let call = call.secret_body(&body, JSON_FRAME_LEN + encoded(data.len()) + names);
        Ok(self.call::<Encrypted>(call).await?.encrypted_data)
    }

    /// Decrypts data with any key of the service that the caller may use.
    pub async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        #[derive(Serialize)]
        struct Decrypt<'a> {
            encrypted_data: Base64<'a>,
        }
        let call =
            Call::post("/api/v1/decrypt", Effect::None).body(&Decrypt { encrypted_data: Base64(encrypted) });
        Ok(self.call::<Decrypted>(call).await?.data)
    }

    /// Exports the private key of the latest version, or of the one that the name has, wrapped for
    /// a recipient.
    pub async fn export_key(&self, key: &str, recipient: Recipient<'_>) -> Result<Exported> {
        self.call(Call::post(key_path(key, "/export"), Effect::None).body(&recipient)).await
    }

    /// Imports a key as a new key. Its algorithm is that of the material, and it is kept in
    /// software: what `new` says of both does not count.
    pub async fn import_key(&self, new: &NewKey, material: KeyMaterial<'_>) -> Result<Key> {
        let new = NewKey { algorithm: None, backend: None, ..new.clone() };
        self.import("/api/v1/import".to_owned(), Import::new(Some(new), material)).await
    }

    /// Imports a key as the latest version of a key: it signs from now on.
    pub async fn import_version(&self, key: &str, material: KeyMaterial<'_>) -> Result<Key> {
        self.import(key_path(key, "/import"), Import::new(None, material)).await
    }

    async fn import(&self, path: String, import: Import<'_>) -> Result<Key> {
        // The service keeps no answer of an import, so that a repetition could be a second key.
        self.call(Call::post(path, Effect::Change).secret_body(&import, import.length())).await
    }
}
