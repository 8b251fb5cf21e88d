//! `/v1/transit/export` and `/v1/transit/byok-export`: keys that leave the keystore, as they are or
//! wrapped for an RSA key.

use std::collections::BTreeMap;

use crate::request::handler::routes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::transfer::PrivateKeyData;
use bulla_kms::{Attestation, Code, KeyUsage, KeyVersionId, KmsError, PublicKey};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use zeroize::Zeroizing;

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::certificates::chain_of;
use super::keys::{KEY_NAME_DOC, find, kind, missing, public_key, usable_versions};
use super::request::{PathName, VaultCaller};
use crate::api::ExportToken;
use crate::request::{Caller, encode};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_export))
        .routes(routes!(transit_export_version))
        .routes(routes!(transit_byok_export))
        .routes(routes!(transit_byok_export_version))
}

/// A secret text in an answer, which is wiped.
struct SecretText(Zeroizing<String>);

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Exported keys.
#[derive(Serialize, ToSchema)]
struct ExportedKeys {
    /// The key's name: its label.
    name: String,
    /// The key's type.
    #[serde(rename = "type")]
    #[schema(example = "ed25519")]
    kind: &'static str,
    /// The keys of the versions, by their numbers.
    #[schema(value_type = BTreeMap<String, String>)]
    keys: BTreeMap<u32, SecretText>,
}

impl ExportedKeys {
    fn new(key: &Attestation, keys: BTreeMap<u32, SecretText>) -> Self {
        let name = key.label.as_ref().map(ToString::to_string).unwrap_or_default();
        Self { name, kind: kind(key.algorithm).0, keys }
    }

    fn answer(&self, worker: &Worker) -> Response {
        // A character may take six in JSON.
        let length: usize = self.keys.values().map(|key| 6 * key.0.len() + 32).sum();
        answer::secret_written(worker, StatusCode::OK, 256 + length, &[], |out| {
            // Writing to a vector cannot fail, and every text can be written as JSON.
            let _ = serde_json::to_writer(out, self);
        })
    }
}

/// Which key is exported: the one that encrypts, signs or makes HMACs, or the public one; or its
/// certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportType {
    Encryption,
    Signing,
    Hmac,
    Public,
    Certificates,
}

impl ExportType {
    /// # Errors
    /// There is no such type.
    fn named(name: &str) -> Result<Self> {
        match name {
            "encryption-key" => Ok(Self::Encryption),
            "signing-key" => Ok(Self::Signing),
            "hmac-key" => Ok(Self::Hmac),
            "public-key" => Ok(Self::Public),
            "certificate-chain" => Ok(Self::Certificates),
            _ => Err(VaultError::invalid(format!("invalid export type: {name}"))),
        }
    }

    /// The operation that a caller must be permitted.
    fn operation(self) -> TokenOperation {
        match self {
            Self::Public | Self::Certificates => TokenOperation::Read,
            _ => TokenOperation::ExportPlaintext,
        }
    }

    /// # Errors
    /// The key may not be exported, or has nothing of this type.
    fn check(self, key: &Attestation) -> Result<()> {
        if self.operation() != TokenOperation::Read {
            check_exportable(key)?;
        }
        let wrong = |words: &'static str| {
            let (kind, _) = kind(key.algorithm);
            let error =
                KmsError::new(Code::KeyUsageMismatch, format!("a key of type {kind} has no such key"));
            Err(VaultError::from(error).replace_words(words))
        };
        match self {
            Self::Encryption if !key.algorithm.has_usage(KeyUsage::Encryption) => {
                wrong("encryption not supported for the key")
            }
            Self::Signing if key.algorithm.usage() != KeyUsage::Signature => {
                wrong("signing not supported for the key")
            }
            Self::Public if key.algorithm.is_symmetric() => {
                wrong("unknown key type for export type: public-key")
            }
            Self::Certificates if key.algorithm.usage() != KeyUsage::Signature => {
                wrong("certificate chain not supported for keys that do not support signing")
            }
            _ => Ok(()),
        }
    }

    /// The text of a private key.
    fn text(self, key: &PrivateKeyData) -> bulla_kms::Result<SecretText> {
        match self {
            Self::Hmac => Ok(SecretText(Zeroizing::new(encode(&key.hmac_key())))),
            _ => key.to_vault().map(SecretText),
        }
    }
}

/// # Errors
/// The key was not made to be exported.
fn check_exportable(key: &Attestation) -> Result<()> {
    if key.exportable {
        return Ok(());
    }
    let message = "the key was not made exportable, and that cannot be changed";
    let error = VaultError::from(KmsError::new(Code::NotExportable, message));
    Err(error.replace_words("private key material is not exportable"))
}

/// The versions that a request names: one, the latest one, or all that may be used.
fn versions(key: &Attestation, asked: Option<&str>) -> Result<Vec<KeyVersionId>> {
    let all = || usable_versions(key).map(|version| version.id.clone());
    let number = match asked {
        None => return Ok(all().collect()),
        Some("latest") => key.latest_version,
        Some(text) => text.parse().map_err(|_| VaultError::invalid("invalid key version"))?,
    };
    if number < key.minimum_version {
        return Err(VaultError::invalid("version for export is below minimum decryption version"));
    }
    let found: Vec<_> = all().filter(|id| id.version() == number).collect();
    if found.is_empty() {
        let error = KmsError::new(Code::UnknownVersion, "the key has no such version");
        return Err(VaultError::from(error).replace_words("version does not exist or cannot be found"));
    }
    Ok(found)
}

/// Export the keys of all versions that may be used, as plain text.
#[utoipa::path(get, path = "/v1/transit/export/{type}/{name}", tag = "transit",
    params(("type" = String, Path, description = "`encryption-key`, `signing-key`, `hmac-key`; or `public-key` and `certificate-chain`, which need the permission `read`", example = "signing-key"),
        ("name" = String, Path, description = KEY_NAME_DOC)),
    extensions(("x-permission" = json!("export_plaintext"))),
    responses((status = 200, description = "The keys", body = Envelope<ExportedKeys>), (status = "default", body = VaultErrorBody)))]
async fn transit_export(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((kind, name)): PathName<(String, String)>,
    headers: HeaderMap,
) -> Result<Response> {
    export(&worker, &caller, &headers, (&kind, &name), None).await
}

/// Export the key of one version, as plain text.
#[utoipa::path(get, path = "/v1/transit/export/{type}/{name}/{version}", tag = "transit",
    params(("type" = String, Path, description = "As above", example = "signing-key"),
        ("name" = String, Path, description = KEY_NAME_DOC),
        ("version" = String, Path, description = "The number of a version, or `latest`", example = "latest")),
    extensions(("x-permission" = json!("export_plaintext"))),
    responses((status = 200, description = "The key", body = Envelope<ExportedKeys>), (status = "default", body = VaultErrorBody)))]
async fn transit_export_version(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((kind, name, version)): PathName<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response> {
    export(&worker, &caller, &headers, (&kind, &name), Some(&version)).await
}

async fn export(
    worker: &Worker,
    caller: &Caller,
    headers: &HeaderMap,
    (kind, name): (&str, &str),
    version: Option<&str>,
) -> Result<Response> {
    let exported = ExportType::named(kind)?;
    let none = || VaultError::empty_not_found("the tenant has no key of this name");
    let key_id = find(caller, name, exported.operation(), none)?;
    let key = caller.unsealed.keystore.attest(&key_id)?;
    exported.check(&key)?;
    if exported == ExportType::Certificates {
        // Without a version it is the latest one, as in Vault.
        let versions = versions(&key, version.or(Some("latest")))?;
        let keys = certificates(caller, &versions)?;
        return Ok(ExportedKeys::new(&key, keys).answer(worker));
    }
    let versions = versions(&key, version)?;
    let keys = if exported == ExportType::Public {
        let is_asked = |id: &KeyVersionId| versions.contains(id);
        let public = key.versions.iter().filter(|version| is_asked(&version.id));
        let text = |key: &PublicKey| SecretText(Zeroizing::new(public_key(key)));
        public.filter_map(|one| Some((one.version, text(one.public_key.as_ref()?)))).collect()
    } else {
        let token = ExportToken::of(worker, caller, headers, &key_id, exported.operation())?;
        let keys = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
            let (token, revoked) = (token.get(keystore)?, &token.revoked);
            let one = |id: &KeyVersionId| {
                Ok((id.version(), exported.text(&keystore.export_plaintext(id, &token, revoked)?)?))
            };
            versions.iter().map(one).collect::<bulla_kms::Result<BTreeMap<_, _>>>()
        });
        keys.await?
    };
    Ok(ExportedKeys::new(&key, keys).answer(worker))
}

/// # Errors
/// A version has no certificates.
fn certificates(caller: &Caller, versions: &[KeyVersionId]) -> Result<BTreeMap<u32, SecretText>> {
    let text = |id: &KeyVersionId| {
        let text = chain_of(&caller.unsealed.keystore, id)?;
        if text.is_empty() {
            let words = "selected key version does not have a certificate chain imported";
            return Err(VaultError::invalid(words));
        }
        Ok((id.version(), SecretText(Zeroizing::new(text))))
    };
    versions.iter().map(text).collect()
}

/// Export the keys of all versions that may be used, wrapped for an RSA key, as `import` takes
/// them.
///
/// A wrapped key is an AES key of 256 bits that is encrypted by RSAES-OAEP with SHA-256, and after
/// it the key, wrapped with that by AES-KWP.
#[utoipa::path(get, path = "/v1/transit/byok-export/{destination}/{name}", tag = "transit",
    params(("destination" = String, Path, description = "The name of the RSA key, which the caller may read", example = "destination"),
        ("name" = String, Path, description = KEY_NAME_DOC)),
    extensions(("x-permission" = json!("export"))),
    responses((status = 200, description = "The wrapped keys, base64", body = Envelope<ExportedKeys>), (status = "default", body = VaultErrorBody)))]
async fn transit_byok_export(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((destination, name)): PathName<(String, String)>,
    headers: HeaderMap,
) -> Result<Response> {
    export_wrapped(&worker, &caller, &headers, (&destination, &name), None).await
}

/// Export the key of one version, wrapped for an RSA key.
#[utoipa::path(get, path = "/v1/transit/byok-export/{destination}/{name}/{version}", tag = "transit",
    params(("destination" = String, Path, description = "As above", example = "destination"),
        ("name" = String, Path, description = KEY_NAME_DOC),
        ("version" = String, Path, description = "The number of a version, or `latest`", example = "latest")),
    extensions(("x-permission" = json!("export"))),
    responses((status = 200, description = "The wrapped key, base64", body = Envelope<ExportedKeys>), (status = "default", body = VaultErrorBody)))]
async fn transit_byok_export_version(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((destination, name, version)): PathName<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response> {
    export_wrapped(&worker, &caller, &headers, (&destination, &name), Some(&version)).await
}

async fn export_wrapped(
    worker: &Worker,
    caller: &Caller,
    headers: &HeaderMap,
    (destination, name): (&str, &str),
    version: Option<&str>,
) -> Result<Response> {
    let none = |what: &'static str| move || missing(format!("no such {what} key to export"));
    let key_id = find(caller, name, TokenOperation::Export, none("source"))?;
    let destination = find(caller, destination, TokenOperation::Read, none("destination"))?;
    let keystore = &caller.unsealed.keystore;
    let key = keystore.attest(&key_id)?;
    check_exportable(&key)?;
    let recipient = keystore.public_key(&keystore.latest_version_id(&destination)?)?;
    if !recipient.algorithm().is_rsa() {
        let message = "the destination is a key of RSA, of which the public key is enough";
        return Err(KmsError::new(Code::KeyUsageMismatch, message).into());
    }
    let versions = versions(&key, version)?;
    let token = ExportToken::of(worker, caller, headers, &key_id, TokenOperation::Export)?;
    let keys = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let (token, revoked) = (token.get(keystore)?, &token.revoked);
        let one = |id: &KeyVersionId| {
            let wrapped = keystore.export_for_rsa(id, &recipient, &token, revoked)?;
            Ok((id.version(), SecretText(Zeroizing::new(encode(wrapped.as_bytes())))))
        };
        versions.iter().map(one).collect::<bulla_kms::Result<BTreeMap<_, _>>>()
    });
    Ok(ExportedKeys::new(&key, keys.await?).answer(worker))
}
