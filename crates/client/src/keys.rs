//! Keys: creating, listing, reading, rotating and changing them.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::approvals::ApprovalRule;
use crate::client::Client;
use crate::encoding::{format_time, optional_bytes, optional_seconds, optional_time, time};
use crate::error::Result;
use crate::operation::Operation;
use crate::pages::Pages;
use crate::request::Call;

/// A key, without its private keys.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Key {
    /// The key id: `TENANT/PURPOSE/ALGORITHM/UUID`.
    #[serde(rename = "key")]
    pub id: String,
    /// Its label, unique within its tenant.
    pub label: Option<String>,
    /// Its algorithm.
    pub algorithm: String,
    /// Whether it may be used.
    pub state: KeyState,
    /// From this time on it may be destroyed; none unless its destruction is scheduled.
    #[serde(default, deserialize_with = "optional_time")]
    pub destroy_after: Option<SystemTime>,
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
    /// Older versions do not verify, and do not decrypt.
    pub minimum_version: u32,
    /// The oldest version that signs or encrypts when a client of the Vault-compatible interface
    /// names it; none if only the latest version does.
    #[serde(default)]
    pub minimum_signing_version: Option<u32>,
    /// What encrypts, for algorithms that encrypt.
    #[serde(default)]
    pub derivation: KeyDerivation,
    /// When the service rotates it by itself.
    pub rotation: Rotation,
    /// Who must approve each use of it; none if it is used without approvals.
    #[serde(default)]
    pub approval_rule: Option<ApprovalRule>,
    /// The number of the latest version, the one that signs, encrypts or makes MACs.
    #[serde(rename = "head")]
    pub latest_version: u32,
    /// All versions, version 1 first.
    pub versions: Vec<KeyVersion>,
}

/// The key that encrypts, for algorithms that encrypt. It is fixed when the key is made.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyDerivation {
    /// The version's own key. Callers give no context.
    #[default]
    None,
    /// A key that is derived from the version's key and the context, which callers must give.
    PerContext,
    /// As `PerContext`, and the same plaintext in the same context always gives the same
    /// ciphertext. Anyone who sees two ciphertexts then sees whether their plaintexts are equal.
    /// Use it only to search for equal values. Callers give no associated data.
    Convergent,
    /// A derivation that this client does not know.
    #[serde(other)]
    Unknown,
}

impl KeyDerivation {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Whether a key may be used.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It may be used.
    Enabled,
    /// It does not sign, encrypt or decrypt, and makes no MACs. Its older signatures still verify.
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
    /// A version signs, encrypts or makes MACs for at most this long. The service counts whole
    /// seconds.
    #[serde(
        default,
        rename = "max_age_seconds",
        skip_serializing_if = "Option::is_none",
        with = "optional_seconds"
    )]
    pub max_age: Option<Duration>,
    /// A version makes at most this many signatures, ciphertexts or MACs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u64>,
}

/// One version of a key.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyVersion {
    /// The key version id: the key id, and `/vN`.
    pub id: String,
    /// Its number, from 1.
    pub version: u32,
    /// Its public key, as the algorithm's specification writes it; none if the algorithm is
    /// symmetric.
    #[serde(default, deserialize_with = "optional_bytes")]
    pub public_key: Option<Vec<u8>>,
    /// When it was made.
    #[serde(deserialize_with = "time")]
    pub created: SystemTime,
    /// When the next version took its place; none for the newest.
    #[serde(default, deserialize_with = "optional_time")]
    pub retired: Option<SystemTime>,
    /// Whether it may be used.
    pub state: VersionState,
    /// Where its key pair comes from.
    pub origin: Origin,
    /// Who holds shares of its private key; none if it is in one place.
    #[serde(default)]
    pub shares: Option<KeyShares>,
}

/// Who has a private key together, when no node of the service has it whole.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyShares {
    /// How many of the holders sign together.
    pub threshold: u16,
    /// The nodes that hold a share.
    pub holders: Vec<String>,
    /// How often the shares were changed.
    pub epoch: u32,
}

/// Whether a version may be used.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionState {
    /// It may be used.
    Usable,
    /// Its signatures and MACs do not verify any more, and its ciphertexts do not decrypt.
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
    /// What it is for, a word of the caller's choice; `files` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Its algorithm, for example `ed25519`, `aes-256-gcm` or `hmac-sha256`; `ed25519` when absent.
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
    /// What encrypts, for algorithms that encrypt. It cannot be changed later.
    #[serde(skip_serializing_if = "KeyDerivation::is_none")]
    pub derivation: KeyDerivation,
    /// When the service rotates it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// Who must approve each use of it. Such a key never loses its rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_rule: Option<ApprovalRule>,
    /// What makes and keeps the private keys: `pkcs11` is the service's device, `group` its nodes
    /// together. In software when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
}

/// A page of keys.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct KeyPage {
    /// The keys, sorted by their ids.
    pub keys: Vec<Key>,
    /// The argument of [`Client::key_page`] for the next page; none on the last.
    pub next: Option<String>,
}

/// One change to a key.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyUpdate<'a> {
    /// A new label, or none.
    #[serde(serialize_with = "label_or_empty")]
    Label(Option<&'a str>),
    /// Whether the key may be used.
    Enabled(bool),
    /// The oldest version that verifies and decrypts.
    MinimumVersion(u32),
    /// When the service rotates the key by itself.
    Rotation(Rotation),
    /// Who must approve each use of the key from now on. The service refuses it for a key that has
    /// a rule already.
    ApprovalRule(&'a ApprovalRule),
}

/// The service removes the label for an empty text.
fn label_or_empty<S: serde::Serializer>(label: &Option<&str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(label.unwrap_or_default())
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
    /// The key version id.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// Its algorithm.
    pub algorithm: String,
    /// The public key: text as it is, bytes as base64.
    #[serde(rename = "public_key")]
    pub text: String,
}

impl Client {
    /// Creates a key with its version 1.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::NewKey;
    ///
    /// let new = NewKey { label: Some("invoices".to_owned()), ..NewKey::default() };
    /// let key = client.create_key(&new).await?;
    /// assert_eq!(key.latest_version, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_key(&self, key: &NewKey) -> Result<Key> {
        self.call(Call::new(Operation::CreateKey).body(key)).await
    }

    /// Reads a key.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let key = client.key("invoices").await?;
    /// println!("{} was made at {:?}", key.id, key.versions[0].created);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn key(&self, key: &str) -> Result<Key> {
        self.call(Call::of_key(Operation::Key, key)).await
    }

    /// Lists all keys that the caller may read, sorted by their ids. It reads the next page when
    /// the keys of the page before have been taken. Each page is a call of its own.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let mut keys = client.keys();
    /// while let Some(key) = keys.try_next().await? {
    ///     println!("{}", key.id);
    /// }
    /// let keys: Vec<_> = client.keys().try_collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> Pages<Key> {
        let client = self.clone();
        Pages::new(move |next: Option<String>| {
            let client = client.clone();
            Box::pin(async move {
                let page = client.key_page(next.as_deref()).await?;
                Ok((page.keys, page.next))
            })
        })
    }

    /// Lists up to 1,000 of the keys that the caller may read: the first ones, or those after the
    /// `next` of the page before.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let first = client.key_page(None).await?;
    /// let second = client.key_page(first.next.as_deref()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn key_page(&self, after: Option<&str>) -> Result<KeyPage> {
        let call = Call::new(Operation::Keys).query("limit", "1000");
        self.call(match after {
            Some(after) => call.query("after", after),
            None => call,
        })
        .await
    }

    /// Adds a version to a key. The new version signs, encrypts or makes MACs from now on.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let key = client.rotate_key("invoices").await?;
    /// println!("version {} signs", key.latest_version);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rotate_key(&self, key: &str) -> Result<Key> {
        self.call(Call::of_key(Operation::RotateKey, key)).await
    }

    /// Gives the nodes of the service new shares of a key that they have together: as many, and for
    /// those nodes, that their settings name now. The public keys stay.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let key = client.refresh_shares("releases").await?;
    /// if let Some(shares) = &key.versions[0].shares {
    ///     println!("{} of {} nodes sign", shares.threshold, shares.holders.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refresh_shares(&self, key: &str) -> Result<Key> {
        self.call(Call::of_key(Operation::RefreshShares, key)).await
    }

    /// Lets the other nodes repair the shares of a key that the node which answers has lost.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.repair_shares("releases").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn repair_shares(&self, key: &str) -> Result<Key> {
        self.call(Call::of_key(Operation::RepairShares, key)).await
    }

    /// Changes a key. With a revision, the key must be at that one.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::KeyUpdate;
    ///
    /// let key = client.key("invoices").await?;
    /// client.update_key(&key.id, Some(key.revision), KeyUpdate::Label(Some("bills"))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_key(&self, key: &str, revision: Option<u64>, update: KeyUpdate<'_>) -> Result<Key> {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            revision: Option<u64>,
            #[serde(flatten)]
            update: KeyUpdate<'a>,
        }
        self.call(Call::of_key(Operation::UpdateKey, key).body(&Body { revision, update })).await
    }

    /// Enables a key: it may be used again.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.enable_key("invoices").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enable_key(&self, key: &str) -> Result<Key> {
        self.update_key(key, None, KeyUpdate::Enabled(true)).await
    }

    /// Disables a key: it does not sign, encrypt or decrypt. Its older signatures still verify.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.disable_key("invoices").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn disable_key(&self, key: &str) -> Result<Key> {
        self.update_key(key, None, KeyUpdate::Enabled(false)).await
    }

    /// Schedules a key's destruction: from the time `after` on it may be destroyed. It is disabled
    /// from now on.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use std::time::{Duration, SystemTime};
    ///
    /// let in_a_month = SystemTime::now() + Duration::from_secs(30 * 24 * 60 * 60);
    /// client.schedule_destruction("invoices", in_a_month).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schedule_destruction(&self, key: &str, after: SystemTime) -> Result<Key> {
        #[derive(Serialize)]
        struct Body {
            after: String,
        }
        let body = Body { after: format_time(after)? };
        self.call(Call::of_key(Operation::ScheduleDestruction, key).body(&body)).await
    }

    /// Cancels a key's scheduled destruction. The key is disabled then.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.cancel_destruction("invoices").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_destruction(&self, key: &str) -> Result<Key> {
        self.call(Call::of_key(Operation::CancelDestruction, key)).await
    }

    /// Destroys a key's private keys, when their destruction is due. This cannot be undone.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.destroy_key("invoices").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn destroy_key(&self, key: &str) -> Result<Key> {
        self.call(Call::of_key(Operation::DestroyKey, key)).await
    }

    /// Revokes an older version: its signatures and MACs do not verify any more, and its
    /// ciphertexts do not decrypt. This cannot be undone.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.revoke_version("invoices", 1).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_version(&self, key: &str, version: u32) -> Result<Key> {
        let call = Call::of_key(Operation::RevokeVersion, key);
        self.call(call.path_param("{version}", &version.to_string())).await
    }

    /// Destroys the private key of an older version. Its signatures still verify. This cannot be
    /// undone.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.destroy_version("invoices", 1).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn destroy_version(&self, key: &str, version: u32) -> Result<Key> {
        let call = Call::of_key(Operation::DestroyVersion, key);
        self.call(call.path_param("{version}", &version.to_string())).await
    }

    /// Reads the public key of the latest version, or of the version that the key version id names.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::PublicKeyFormat;
    ///
    /// let public_key = client.public_key("invoices", PublicKeyFormat::Pem).await?;
    /// print!("{}", public_key.text);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn public_key(&self, key: &str, format: PublicKeyFormat) -> Result<PublicKey> {
        self.call(Call::of_key(Operation::PublicKey, key).query("format", format.as_str())).await
    }

    /// Reads all public keys that verify signatures, as a JSON Web Key Set (RFC 7517). Keys whose
    /// algorithm has no JSON Web Key are left out.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let set = client.json_web_key_set().await?;
    /// assert!(set.starts_with('{'));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn json_web_key_set(&self) -> Result<String> {
        self.text(Call::new(Operation::JsonWebKeySet)).await
    }

    /// Makes a key's latest version sign everything about the key. This is the JSON as the service
    /// wrote it, because the signature is one of the attestation in that form.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let attestation = client.attest_key("invoices").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn attest_key(&self, key: &str) -> Result<String> {
        self.text(Call::of_key(Operation::AttestKey, key)).await
    }

    /// Lists the statements by which a key's older versions vouch for its newer ones.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// for statement in client.successions("invoices").await? {
    ///     println!("{statement}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn successions(&self, key: &str) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Body {
            successions: Vec<String>,
        }
        let Body { successions } = self.call(Call::of_key(Operation::Successions, key)).await?;
        Ok(successions)
    }
}
