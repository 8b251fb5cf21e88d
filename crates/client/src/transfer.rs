//! Export and import of keys.

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::encoding::{Base64, base64_len};
use crate::error::Result;
use crate::keys::{Key, NewKey, PublicKeyFormat};
use crate::operation::Operation;
use crate::request::{Call, MAX_JSON_FRAME_LEN};

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
pub struct ExportedKey {
    /// The key version id.
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
            base64_len(key.data.0.len()) + 6 * key.passphrase.map_or(0, str::len)
        });
        MAX_JSON_FRAME_LEN + secret
    }
}

impl Client {
    /// Exports the private key of the latest version, or of the version that the key version id
    /// names, wrapped for a recipient.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::Recipient;
    ///
    /// let exported = client.export_key("invoices", Recipient::Key("transport")).await?;
    /// std::fs::write("invoices.key", exported.wrapped).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export_key(&self, key: &str, recipient: Recipient<'_>) -> Result<ExportedKey> {
        self.call(Call::of_key(Operation::ExportKey, key).body(&recipient)).await
    }

    /// Imports a key as a new key. Its algorithm is that of the material, and it is kept in
    /// software: the `algorithm` and the `backend` of `new` are ignored.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{KeyMaterial, NewKey};
    ///
    /// let wrapped = std::fs::read_to_string("invoices.key").unwrap();
    /// let material = KeyMaterial::Wrapped { wrapped: &wrapped, recipient: "transport" };
    /// let key = client.import_key(&NewKey::default(), material).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import_key(&self, new: &NewKey, material: KeyMaterial<'_>) -> Result<Key> {
        let new = NewKey { algorithm: None, backend: None, ..new.clone() };
        self.import(Call::new(Operation::ImportKey), Import::new(Some(new), material)).await
    }

    /// Imports a key as the latest version of a key: it signs from now on.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{KeyMaterial, PublicKeyFormat};
    ///
    /// let text = std::fs::read_to_string("invoices.pem").unwrap();
    /// let format = PublicKeyFormat::Pem;
    /// let material = KeyMaterial::Public { format, text: &text, algorithm: None };
    /// let key = client.import_version("invoices", material).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import_version(&self, key: &str, material: KeyMaterial<'_>) -> Result<Key> {
        self.import(Call::of_key(Operation::ImportVersion, key), Import::new(None, material)).await
    }

    async fn import(&self, call: Call, import: Import<'_>) -> Result<Key> {
        // The service keeps no answer of an import, so that a repetition could be a second key.
        self.call(call.secret_body(&import, import.length())).await
    }
}
