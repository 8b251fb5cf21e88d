//! Keys: making, listing, reading, rotating and changing them.

use hyper::Method;
use serde::{Deserialize, Serialize};

use crate::base64::bytes;
use crate::call::{Call, Effect, escaped, key_path};
use crate::client::Client;
use crate::error::Result;

/// A key, without its private keys.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Key {
    /// Its name: `TENANT/PURPOSE/ALGORITHM/UUID`.
    #[serde(rename = "key")]
    pub name: String,
    /// Its label, unique within its tenant.
    pub label: Option<String>,
    /// Its algorithm.
    pub algorithm: String,
    /// Whether it signs.
    pub state: KeyState,
    /// From this time on it may be destroyed, if its destruction is scheduled: RFC 3339 in UTC.
    pub destroy_after: Option<String>,
    /// The number of its last change.
    pub revision: u64,
    /// The backend that holds its private keys.
    pub backend: String,
    /// Whether its private keys may ever be exported.
    pub exportable: bool,
    /// Whether clients of the Vault-compatible interface may destroy it without a waiting time.
    #[serde(default)]
    pub deletion_allowed: bool,
    /// Whether it signs digests that callers hash themselves, and so no statements.
    #[serde(default)]
    pub signs_digests: bool,
    /// Older versions do not verify.
    pub minimum_version: u32,
    /// The oldest version that signs when a client of the Vault-compatible interface names it; none
    /// if only the latest version signs.
    #[serde(default)]
    pub minimum_signing_version: Option<u32>,
    /// When the service rotates it by itself.
    pub rotation: Rotation,
    /// The latest version, the one that signs.
    pub head: u32,
    /// All versions, version 1 first.
    pub versions: Vec<Version>,
}

/// Whether a key signs.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It signs.
    Enabled,
    /// It does not sign. Its older signatures still verify.
    Disabled,
    /// Its destruction is scheduled.
    PendingDestruction,
    /// Its private keys are gone.
    Destroyed,
    /// A state that this client does not know.
    #[serde(other)]
    Unknown,
}

/// When the service rotates a key by itself; without a bound, never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// A version signs for at most this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u64>,
    /// A version makes at most this many signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u64>,
}

/// One version of a key.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Version {
    /// Its name: the key's name, and `/vN`.
    pub id: String,
    /// Its number, from 1.
    pub version: u32,
    /// Its public key, as the algorithm's specification writes it.
    #[serde(deserialize_with = "bytes")]
    pub public_key: Vec<u8>,
    /// When it was made: RFC 3339 in UTC.
    pub created: String,
    /// When the next version took its place; none for the newest.
    pub retired: Option<String>,
    /// Whether it may be used.
    pub state: VersionState,
    /// Where its key pair comes from.
    pub origin: Origin,
}

/// Whether a version may be used.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionState {
    /// It may be used.
    Usable,
    /// Its signatures do not verify any more.
    Revoked,
    /// Its private key was destroyed.
    Destroyed,
    /// A state that this client does not know.
    #[serde(other)]
    Unknown,
}

/// Where a key pair comes from.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The service made it.
    Generated,
    /// It was imported, and somebody else may have it.
    Imported,
    /// Only the public key was imported.
    PublicOnly,
    /// An origin that this client does not know.
    #[serde(other)]
    Unknown,
}

/// A key to create. The default is an Ed25519 key for files, without a label.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewKey {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Its algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Its label, unique within the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether its private keys may ever be exported. It cannot be changed later.
    pub exportable: bool,
    /// Whether it signs digests that callers hash themselves, for ECDSA. It cannot be changed
    /// later. Such a key signs no statements.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub signs_digests: bool,
    /// When the service rotates it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// What makes and keeps the private keys: `pkcs11` is the service's device. In software when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
}

/// A page of keys.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct KeyPage {
    /// The keys, sorted by their names.
    pub keys: Vec<Key>,
    /// The argument of [`Client::keys_page`] for the next page; none on the last.
    pub next: Option<String>,
}

/// One change to a key.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyUpdate<'a> {
    /// A new label. An empty text removes the label.
    Label(&'a str),
    /// Whether the key signs.
    Enabled(bool),
    /// The oldest version that verifies.
    MinimumVersion(u32),
    /// When the service rotates the key by itself.
    Rotation(Rotation),
}

/// How a public key is written.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicKeyFormat {
    /// SubjectPublicKeyInfo, PEM.
    Pem,
    /// The same as DER, base64.
    Der,
    /// The bytes of the algorithm's specification, base64.
    Raw,
    /// A JSON Web Key.
    Jwk,
    /// A line as in `authorized_keys`: Ed25519.
    OpenSsh,
    /// A public key file of minisign: Ed25519.
    Minisign,
    /// The public key file of bulla, which also names the key version.
    Bulla,
}

impl PublicKeyFormat {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pem => "pem",
            Self::Der => "der",
            Self::Raw => "raw",
            Self::Jwk => "jwk",
            Self::OpenSsh => "openssh",
            Self::Minisign => "minisign",
            Self::Bulla => "bulla",
        }
    }
}

/// A public key.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct PublicKey {
    /// The key version.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// Its algorithm.
    pub algorithm: String,
    /// The public key: text as it is, bytes as base64.
    pub public_key: String,
}

#[derive(Deserialize)]
struct Successions {
    successions: Vec<String>,
}

impl Client {
    /// Creates a key with its version 1.
    pub async fn create_key(&self, key: &NewKey) -> Result<Key> {
        self.call(Call::change(Method::POST, "/api/v1/keys").body(key)).await
    }

    /// Reads a key.
    pub async fn key(&self, key: &str) -> Result<Key> {
        self.call(Call::get(key_path(key, ""))).await
    }

    /// Lists up to 1,000 of the keys that the caller may read: the first ones, or those after the
    /// `next` of the page before.
    pub async fn keys_page(&self, after: Option<&str>) -> Result<KeyPage> {
        let after = after.map_or_else(String::new, |after| format!("&after={}", escaped(after)));
        self.call(Call::get(format!("/api/v1/keys?limit=1000{after}"))).await
    }

    /// Lists all keys that the caller may read, sorted by their names. Each page is a call of its
    /// own.
    pub async fn keys(&self) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        let mut next = None;
        loop {
            let page = self.keys_page(next.as_deref()).await?;
            keys.extend(page.keys);
            next = page.next;
            if next.is_none() {
                return Ok(keys);
            }
        }
    }

    /// Adds a version to a key. The new version signs from now on.
    pub async fn rotate(&self, key: &str) -> Result<Key> {
        self.call(Call::change(Method::POST, key_path(key, "/rotate"))).await
    }

    /// Changes a key. With a revision, the key must be at that one.
    pub async fn update(&self, key: &str, revision: Option<u64>, change: KeyUpdate<'_>) -> Result<Key> {
        #[derive(Serialize)]
        struct Update<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            revision: Option<u64>,
            #[serde(flatten)]
            change: KeyUpdate<'a>,
        }
        self.call(Call::change(Method::PATCH, key_path(key, "")).body(&Update { revision, change })).await
    }

    /// Makes a disabled key sign again.
    pub async fn enable(&self, key: &str) -> Result<Key> {
        self.update(key, None, KeyUpdate::Enabled(true)).await
    }

    /// Disables a key: it does not sign. Its older signatures still verify.
    pub async fn disable(&self, key: &str) -> Result<Key> {
        self.update(key, None, KeyUpdate::Enabled(false)).await
    }

    /// Schedules a key's destruction: from the time `after` on (RFC 3339 in UTC) it may be
    /// destroyed. It does not sign from now on.
    pub async fn schedule_destruction(&self, key: &str, after: &str) -> Result<Key> {
        #[derive(Serialize)]
        struct Schedule<'a> {
            after: &'a str,
        }
        let call = Call::change(Method::POST, key_path(key, "/schedule-destruction"));
        self.call(call.body(&Schedule { after })).await
    }

    /// Cancels a key's scheduled destruction. The key is disabled then.
    pub async fn cancel_destruction(&self, key: &str) -> Result<Key> {
        self.call(Call::change(Method::POST, key_path(key, "/cancel-destruction"))).await
    }

    /// Destroys a key's private keys, when their destruction is due. This cannot be undone.
    pub async fn destroy(&self, key: &str) -> Result<Key> {
        self.call(Call::change(Method::DELETE, key_path(key, ""))).await
    }

    /// Revokes an older version: its signatures do not verify any more. This cannot be undone.
    pub async fn revoke_version(&self, key: &str, version: u32) -> Result<Key> {
        let path = key_path(key, &format!("/versions/{version}/revoke"));
        self.call(Call::change(Method::POST, path)).await
    }

    /// Destroys the private key of an older version. It still verifies. This cannot be undone.
    pub async fn destroy_version(&self, key: &str, version: u32) -> Result<Key> {
        let path = key_path(key, &format!("/versions/{version}/destroy"));
        self.call(Call::change(Method::POST, path)).await
    }

    /// Reads the public key of the latest version, or of the one that the name has.
    pub async fn public_key(&self, key: &str, format: PublicKeyFormat) -> Result<PublicKey> {
        let part = format!("/public?format={}", format.as_str());
        self.call(Call::get(key_path(key, &part))).await
    }

    /// Has a key's latest version sign everything about the key. This is the JSON as the service
    /// wrote it, because the signature is one of the attestation in that form.
    pub async fn attest(&self, key: &str) -> Result<String> {
        self.text(Call::post(key_path(key, "/attest"), Effect::None)).await
    }

    /// Lists the statements by which a key's older versions vouch for its newer ones.
    pub async fn successions(&self, key: &str) -> Result<Vec<String>> {
        let Successions { successions } = self.call(Call::get(key_path(key, "/successions"))).await?;
        Ok(successions)
    }
}
