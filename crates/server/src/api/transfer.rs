//! Keys that are imported from elsewhere, and private keys that are exported.

use std::borrow::Cow;
use std::num::NonZeroU32;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use bulla_kms::token::{Grant, GrantedKeys, Revocations, Token, TokenOperation};
use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, WrappedPrivateKey, import_public};
use bulla_kms::{
    Algorithm, Attestation, Code, KeyId, KeyVersionId, Keystore, KmsError, Name, NamedPublicKey, NewKey,
    PublicKey, SecretString, Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use zeroize::Zeroizing;

use super::keys::{KEY_DOC, KeyView, Rotation, default_purpose};
use super::operator::check_purpose;
use super::public_keys::PublicKeyFormat;
use super::tokens::ensure_root;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{
    BodyBytes, Caller, Path, SecretContent, SecretText, decode, decode_secret, parse, resolve_key,
    resolve_version, token,
};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(export))
}

/// Endpoints that change the keystore.
pub(crate) fn changes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(import)).routes(routes!(import_version))
}

/// A key to import: exactly one of `private_key`, `wrapped_key` and `public_key`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ImportKey<'a> {
    /// A private key, in the clear. TLS alone protects it on its way; prefer `wrapped_key`.
    #[serde(borrow)]
    private_key: Option<PrivateKeyText<'a>>,
    /// A private key that was exported for a key of this keystore.
    #[serde(borrow)]
    wrapped_key: Option<WrappedKeyText<'a>>,
    /// A public key alone: it verifies signatures or is encrypted to, and does nothing else.
    #[serde(borrow)]
    public_key: Option<PublicKeyText<'a>>,
    /// What the key is for.
    #[serde(default = "default_purpose")]
    #[schema(value_type = String, example = "files", default = "files")]
    purpose: Name,
    /// A label, unique within the tenant.
    #[schema(value_type = Option<String>, example = "invoices")]
    label: Option<Name>,
    /// Whether the private keys may ever be exported. It cannot be changed later.
    #[serde(default)]
    exportable: bool,
    /// Whether it signs digests that callers hash themselves, for ECDSA and RSA. It cannot be
    /// changed later. Such a key signs no statements.
    #[serde(default)]
    signs_digests: bool,
    /// When the keystore rotates the key by itself.
    rotation: Option<Rotation>,
}

/// A version to import: exactly one of `private_key`, `wrapped_key` and `public_key`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ImportVersion<'a> {
    /// A private key, in the clear. TLS alone protects it on its way; prefer `wrapped_key`.
    #[serde(borrow)]
    private_key: Option<PrivateKeyText<'a>>,
    /// A private key that was exported for a key of this keystore.
    #[serde(borrow)]
    wrapped_key: Option<WrappedKeyText<'a>>,
    /// A public key, for a key that has only public keys.
    #[serde(borrow)]
    public_key: Option<PublicKeyText<'a>>,
}

/// How a private key is written.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PrivateKeyFormat {
    /// PKCS#8 (RFC 5958) as PEM, not encrypted.
    Pem,
    /// The private key as DER (RFC 5958).
    Der,
    /// A private key file of OpenSSH, encrypted or not: Ed25519.
    OpenSsh,
    /// The bytes of the algorithm alone, for Ed25519 the seed.
    Raw,
    /// One value of `keys` as Vault and OpenBao export it: an Ed25519 key as base64 of 64 bytes, a
    /// key of ECDSA as PEM of an ECPrivateKey, an RSA key as PEM of an RSAPrivateKey.
    Vault,
}

impl From<PrivateKeyFormat> for PrivateFormat {
    fn from(format: PrivateKeyFormat) -> Self {
        match format {
            PrivateKeyFormat::Pem => Self::Pkcs8Pem,
            PrivateKeyFormat::Der => Self::Pkcs8Der,
            PrivateKeyFormat::OpenSsh => Self::OpenSsh,
            PrivateKeyFormat::Raw => Self::Raw,
            PrivateKeyFormat::Vault => Self::Vault,
        }
    }
}

/// A private key in the clear.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PrivateKeyText<'a> {
    /// How it is written.
    format: PrivateKeyFormat,
    /// The bytes of the file, base64, also where they are text.
    #[serde(borrow)]
    #[schema(value_type = String)]
    data: SecretText<'a>,
    /// The algorithm that the key must have. `raw` needs it, and so does a key of ECDH: PKCS#8 does
    /// not say whether a key of a curve is for ECDSA, which is meant without it, or for ECDH.
    #[schema(value_type = Option<String>, example = "ed25519")]
    algorithm: Option<Algorithm>,
    /// The passphrase of an encrypted file of OpenSSH.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    passphrase: Option<SecretText<'a>>,
}

/// A private key that only its recipient opens.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WrappedKeyText<'a> {
    /// The text of the wrapped key, as an export gives it.
    #[serde(borrow)]
    #[schema(value_type = String)]
    wrapped: Cow<'a, str>,
    /// The key of this keystore that it was wrapped for, in any version. The caller may decapsulate
    /// with it.
    #[serde(borrow)]
    #[schema(value_type = String, example = "transport")]
    recipient: Cow<'a, str>,
}

/// A public key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PublicKeyText<'a> {
    /// How it is written.
    format: PublicKeyFormat,
    /// The public key: text as it is, bytes as base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    data: Cow<'a, str>,
    /// The algorithm that the key must have. `raw` needs it.
    #[schema(value_type = Option<String>, example = "ed25519")]
    algorithm: Option<Algorithm>,
}

/// The key in a request, decoded and not parsed yet.
enum ImportSource {
    Private {
        bytes: Zeroizing<Vec<u8>>,
        format: PrivateFormat,
        algorithm: Option<Algorithm>,
        passphrase: Option<SecretString>,
    },
    Wrapped {
        wrapped: Box<WrappedPrivateKey>,
        recipient: KeyId,
    },
    Public(PublicKey),
}

/// A parsed key.
enum ImportedMaterial {
    Private(PrivateKeyData),
    Public(PublicKey),
}

impl ImportSource {
    fn new(
        caller: &Caller,
        private: Option<PrivateKeyText<'_>>,
        wrapped: Option<WrappedKeyText<'_>>,
        public: Option<PublicKeyText<'_>>,
    ) -> Result<Self> {
        match (private, wrapped, public) {
            (Some(PrivateKeyText { format, data, algorithm, passphrase }), None, None) => Ok(Self::Private {
                bytes: decode_secret(&data, "data")?.into(),
                format: format.into(),
                algorithm,
                passphrase: passphrase.map(|text| SecretString::from(text.to_owned())),
            }),
            (None, Some(WrappedKeyText { wrapped, recipient }), None) => {
                let recipient = resolve_key(caller, &recipient, TokenOperation::Decapsulate)?;
                let recipient = recipient.as_ref().key_id().clone();
                Ok(Self::Wrapped { wrapped: Box::new(wrapped.parse()?), recipient })
            }
            (None, None, Some(public)) => Ok(Self::Public(public.read()?)),
            _ => {
                Err(ApiError::malformed("name exactly one of `private_key`, `wrapped_key` and `public_key`"))
            }
        }
    }

    /// Parses it. This may take long, because the passphrase of a file is stretched.
    fn read(self, keystore: &Keystore) -> bulla_kms::Result<ImportedMaterial> {
        match self {
            Self::Private { bytes, format, algorithm, passphrase } => {
                PrivateKeyData::read(&bytes, format, algorithm, passphrase.as_ref())
                    .map(ImportedMaterial::Private)
            }
            Self::Wrapped { wrapped, recipient } => {
                // It may have been wrapped for any version.
                let versions = keystore.attest(&recipient)?.versions;
                let is_recipient = |key: &PublicKey| wrapped.check_recipient(key).is_ok();
                let version =
                    versions.iter().find(|version| version.public_key.as_ref().is_some_and(is_recipient));
                let other = || {
                    let message = format!("the key was wrapped for another recipient, not for {recipient}");
                    KmsError::new(Code::InvalidArgument, message)
                };
                keystore.unwrap_key(&version.ok_or_else(other)?.id, &wrapped).map(ImportedMaterial::Private)
            }
            Self::Public(key) => Ok(ImportedMaterial::Public(key)),
        }
    }
}

impl PublicKeyText<'_> {
    fn read(&self) -> Result<PublicKey> {
        self.read_as(self.algorithm)
    }

    /// The key, which must have this algorithm if there is one.
    pub(super) fn read_as(&self, algorithm: Option<Algorithm>) -> Result<PublicKey> {
        let key = match self.format.foreign() {
            None => self.data.parse::<NamedPublicKey>()?.public_key,
            Some(format) if self.format.is_binary() => {
                import_public(&decode(&self.data, "data")?, format, algorithm)?
            }
            Some(format) => import_public(self.data.as_bytes(), format, algorithm)?,
        };
        match algorithm {
            Some(wanted) if wanted != key.algorithm() => {
                let message = format!("the key is one of {}, and one of {wanted} is wanted", key.algorithm());
                Err(KmsError::new(Code::InvalidArgument, message).into())
            }
            _ => Ok(key),
        }
    }
}

impl ImportedMaterial {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Private(key) => key.algorithm(),
            Self::Public(key) => key.algorithm(),
        }
    }

    fn create(&self, keystore: &Keystore, new: NewKey) -> bulla_kms::Result<KeyVersionId> {
        match self {
            Self::Private(key) => keystore.import_key(new, key),
            Self::Public(key) => keystore.import_public_key(new, key),
        }
    }

    fn add(&self, keystore: &Keystore, key_id: &KeyId) -> bulla_kms::Result<KeyVersionId> {
        match self {
            Self::Private(key) => keystore.import_version(key_id, key),
            Self::Public(key) => keystore.import_public_version(key_id, key),
        }
    }
}

/// Import a key as a new one: a private key, one that was wrapped for a key of this keystore, or a
/// public key alone.
///
/// A private key may come in the clear, because TLS protects the connection: never send one over a
/// connection without TLS. The service cannot wipe every copy that the network libraries left in
/// memory, and does not know where else the key is stored. A wrapped key has no such weakness. To
/// import one, the caller must also have the right `decapsulate` on its recipient.
#[utoipa::path(post, path = "/api/v1/import", tag = "keys", request_body = ImportKey,
    extensions(("x-permission" = json!("import"))),
    responses((status = 201, description = "The key is imported", body = KeyView), (status = "default", body = ErrorBody)))]
async fn import(
    State(worker): State<Worker>,
    caller: Caller,
    body: SecretContent,
) -> Result<(StatusCode, Json<KeyView>)> {
    caller.session.check_tenant(TokenOperation::Import)?;
    let ImportKey {
        private_key,
        wrapped_key,
        public_key,
        purpose,
        label,
        exportable,
        signs_digests,
        rotation,
    } = parse(&body)?;
    check_purpose(&caller, &purpose)?;
    let brought = ImportSource::new(&caller, private_key, wrapped_key, public_key)?;
    let tenant = caller.session.authority.tenant.clone();
    let rotation = rotation.map(Into::into).unwrap_or_default();
    let room = caller.session.room_for_key(&caller.unsealed.keystore)?;
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let _room = room;
        let key = brought.read(keystore)?;
        let mut new = NewKey::new(tenant, purpose, key.algorithm())
            .exportable(exportable)
            .signs_digests(signs_digests)
            .rotation(rotation);
        new.label = label;
        keystore.attest(key.create(keystore, new)?.key_id())
    });
    Ok((StatusCode::CREATED, imported(&worker, &made.await?)))
}

/// Import a key as the latest version of a key: it signs from now on.
///
/// A private key in the clear has the same weaknesses here as in the import of a new key.
#[utoipa::path(post, path = "/api/v1/keys/{key}/import", tag = "keys", request_body = ImportVersion,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("import"))),
    responses((status = 200, description = "The key with its new version", body = KeyView), (status = "default", body = ErrorBody)))]
async fn import_version(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Import)?;
    let key_id = key.as_ref().key_id().clone();
    check_purpose(&caller, key_id.purpose())?;
    let ImportVersion { private_key, wrapped_key, public_key } = parse(&body)?;
    let brought = ImportSource::new(&caller, private_key, wrapped_key, public_key)?;
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        brought.read(keystore)?.add(keystore, &key_id)?;
        keystore.attest(&key_id)
    });
    Ok(imported(&worker, &made.await?))
}

fn imported(worker: &Worker, key: &Attestation) -> Json<KeyView> {
    worker.service.key_changed(&key.key);
    Json(key.into())
}

/// The lifetime of the token that the service makes for a caller who has none, in milliseconds.
const EXPORT_TOKEN_LIFETIME: u64 = 60_000;

/// The recipient of an export: exactly one of `recipient` and `recipient_key`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Export<'a> {
    /// A public key of ML-KEM or X-Wing: `x-wing:BASE64`, `ml-kem-768:BASE64`, or a public key file
    /// of bulla.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    recipient: Option<Cow<'a, str>>,
    /// A key of this keystore that the caller may read.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, example = "transport")]
    recipient_key: Option<Cow<'a, str>>,
    /// The version to export; the newest when absent. A key that signs exports its newest one only.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A private key that only its recipient opens.
#[derive(Serialize, ToSchema)]
struct Exported {
    /// The key version.
    key: String,
    /// The number of that version.
    version: u32,
    /// The text of the wrapped key, which an import takes.
    wrapped: String,
}

/// Export a private key, wrapped for a recipient. The key must be exportable.
///
/// The keystore checks the caller's token once more, by itself. For a caller without a token it
/// checks one that the service makes for this export, which needs a root key in the key's tenant.
#[utoipa::path(post, path = "/api/v1/keys/{key}/export", tag = "keys", request_body = Export,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("export"))),
    responses((status = 200, description = "The wrapped key", body = Exported), (status = "default", body = ErrorBody)))]
async fn export(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    headers: HeaderMap,
    BodyBytes(body): BodyBytes,
) -> Result<Json<Exported>> {
    let key = resolve_key(&caller, &key, TokenOperation::Export)?;
    check_purpose(&caller, key.as_ref().key_id().purpose())?;
    let Export { recipient, recipient_key, version } = parse(&body)?;
    let recipient = match (recipient, recipient_key) {
        (Some(text), None) => public_key(&text)?,
        (None, Some(name)) => {
            let key = resolve_version(&caller, resolve_key(&caller, &name, TokenOperation::Read)?, None)?;
            caller.unsealed.keystore.recipient(&key)?.public_key
        }
        _ => return Err(ApiError::malformed("name exactly one of `recipient` and `recipient_key`")),
    };
    let key = resolve_version(&caller, key, version)?;
    let id = key.clone();
    let token = ExportToken::of(&worker, &caller, &headers, id.key_id(), TokenOperation::Export)?;
    let wrapped = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.export_key(&id, &recipient, &token.get(keystore)?, &token.revoked)
    });
    let wrapped = wrapped.await?.to_string();
    Ok(Json(Exported { key: key.to_string(), version: key.version(), wrapped }))
}

/// The token with which the keystore checks an export once more, by itself.
pub(crate) struct ExportToken {
    key: KeyId,
    operation: TokenOperation,
    /// The token of the request; none if the caller has another credential, or one that the
    /// keystore alone cannot judge: it knows neither policies nor mounts.
    token: Option<Token>,
    is_at_mount: bool,
    pub(crate) revoked: Revocations,
}

impl ExportToken {
    /// # Errors
    /// The request has something else in place of a token.
    pub(crate) fn of(
        worker: &Worker,
        caller: &Caller,
        headers: &HeaderMap,
        key: &KeyId,
        operation: TokenOperation,
    ) -> Result<Self> {
        let is_at_mount = caller.session.home.is_some();
        let token = token(headers)?.filter(|_| !is_at_mount && caller.session.acls.is_empty());
        let token = token.map(read_token).transpose()?;
        let revoked = worker.service.revoked_tokens().revocations_of(key.tenant());
        Ok(Self { key: key.clone(), operation, token, is_at_mount, revoked })
    }

    /// The caller's token. For a caller who has none, and is permitted the export, it is one for
    /// this export, which never leaves the service.
    ///
    /// # Errors
    /// The tenant has no key that signs tokens, and is not that of a mount.
    pub(crate) fn get(&self, keystore: &Keystore) -> bulla_kms::Result<Token> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let expires = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + EXPORT_TOKEN_LIFETIME)?;
        let keys = GrantedKeys::These(vec![self.key.clone()]);
        let grant = Grant::new(self.key.tenant().clone(), keys, vec![self.operation], expires);
        if self.is_at_mount {
            // The tokens of its callers are of another tenant.
            ensure_root(keystore, self.key.tenant())?;
        }
        keystore.mint_token(&grant).map_err(|error| match error.code {
            Code::KeyNotFound => {
                let message = format!("{}: an export needs it", error.message);
                KmsError::new(Code::KeyNotFound, message)
            }
            _ => error,
        })
    }
}

fn public_key(text: &str) -> Result<PublicKey> {
    if text.starts_with("bulla public key ") {
        let named: NamedPublicKey = text.parse()?;
        return Ok(named.public_key);
    }
    Ok(text.trim_ascii().parse()?)
}

/// The token of the request, which was found valid before.
fn read_token(token: &[u8]) -> Result<Token> {
    let text = std::str::from_utf8(token).map_err(|_| ApiError::forbidden())?;
    text.parse().map_err(|_| ApiError::forbidden())
}
