//! `/v1/transit/wrapping_key`, and the import of keys that were wrapped for it.
//!
//! A client encrypts a new AES key for the wrapping key (RSAES-OAEP), wraps the key to import with
//! that AES key (AES-KWP, RFC 5649), and sends both in a row.

use std::num::NonZeroU32;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::TokenOperation;
use bulla_kms::transfer::{PrivateKeyData, PublicFormat, WrappedForRsa, export_public, import_public};
use bulla_kms::{
    Algorithm, Attestation, Code, KeyId, KeyState, Keystore, KmsError, Name, NewKey, Origin, PublicKey,
    RotationPolicy, VersionAttestation, VersionState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::change::{derivation, new_key, period};
use super::keys::{KEY_NAME_DOC, algorithm, find, label, missing};
use super::request::{
    OptionalText, PathName, Seconds, VaultBody, VaultCaller, decode_into, flag, number, seconds,
};
use crate::error::ApiError;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_wrapping_key))
        .routes(routes!(transit_import).map(|router| router.put(erased(transit_import))))
        .routes(routes!(transit_import_version).map(|router| router.put(erased(transit_import_version))))
}

/// The purpose of the keys for which clients wrap what they import: one in each tenant.
fn wrapping_purpose() -> Name {
    "transit-wrapping".parse().expect("the name is one")
}

/// The public half of the key for which clients wrap what they import.
#[derive(Serialize, ToSchema)]
struct WrappingKey {
    /// An RSA key of 4096 bits, as PEM.
    public_key: String,
}

/// Read the public key for which keys to import are wrapped. The first request makes it.
#[utoipa::path(get, path = "/v1/transit/wrapping_key", tag = "transit", extensions(("x-permission" = json!("import"))),
    responses((status = 200, description = "The public key", body = Envelope<WrappingKey>), (status = "default", body = VaultErrorBody)))]
async fn transit_wrapping_key(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
) -> Result<Response> {
    caller.session.check_tenant(TokenOperation::Import)?;
    let tenant = caller.session.authority.tenant.clone();
    let public_key = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let key_id = match find_wrapping_key(keystore, &tenant) {
            Some(key_id) => key_id,
            None => {
                keystore.create_key(NewKey::new(tenant.clone(), wrapping_purpose(), Algorithm::Rsa4096))?;
                // Another request may have made one a moment before: the older one counts.
                find_wrapping_key(keystore, &tenant).ok_or_else(no_wrapping_key)?
            }
        };
        export_public(&keystore.public_key(&key_id.version(NonZeroU32::MIN))?, PublicFormat::Pem)
    });
    let public_key = String::from_utf8(public_key.await?).unwrap_or_default();
    Ok(answer::data(&worker, &WrappingKey { public_key }))
}

/// The oldest wrapping key of a tenant that unwraps.
fn find_wrapping_key(keystore: &Keystore, tenant: &Name) -> Option<KeyId> {
    let purpose = wrapping_purpose();
    let is_one = |key: &KeyId| *key.purpose() == purpose && key.algorithm() == Algorithm::Rsa4096;
    let mut all = keystore.list_page(tenant, None, usize::MAX, &is_one).into_iter();
    all.find(unwraps).map(|key| key.key)
}

/// Whether the first version of a key decrypts, and nobody brought it: whoever did could read what
/// is wrapped for it.
fn unwraps(key: &Attestation) -> bool {
    let is_usable = |first: &VersionAttestation| {
        first.state == VersionState::Usable && first.origin == Origin::Generated && key.minimum_version <= 1
    };
    key.state == KeyState::Enabled && key.versions.first().is_some_and(is_usable)
}

fn no_wrapping_key() -> KmsError {
    KmsError::new(Code::KeyNotFound, "there is no wrapping key yet: read transit/wrapping_key first")
}

/// A key to import. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitImport<'a> {
    /// The wrapped key, base64: an AES key of 256 bits that is encrypted for the wrapping key by
    /// RSAES-OAEP, and the key to import, wrapped with that by AES-KWP.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    ciphertext: OptionalText<'a>,
    /// The hash function of OAEP: `SHA256`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "SHA256")]
    hash_function: OptionalText<'a>,
    /// The type of the key: `aes256-gcm96` (default) or another one. A key that signs is PKCS#8,
    /// and every other key is its bytes.
    #[serde(borrow, default, rename = "type")]
    #[schema(value_type = Option<String>)]
    kind: OptionalText<'a>,
    /// The parameter set of `ml-dsa` (44, 65, 87) or `slh-dsa`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "65")]
    parameter_set: OptionalText<'a>,
    /// A public key alone, as PEM, instead of `ciphertext`. Such a key verifies or encrypts, and is
    /// a destination of `byok-export`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    public_key: OptionalText<'a>,
    /// Whether the key that encrypts is derived from a context.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    derived: Option<bool>,
    /// `true` is refused, as in Vault.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    convergent_encryption: Option<bool>,
    /// The time after which a version is replaced: seconds, or a duration such as `24h`; 0 for
    /// never.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>, example = "24h")]
    auto_rotate_period: Option<Seconds>,
    /// Refused for a new version, which gets the next number.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    version: Option<i64>,
    /// Whether the private keys may ever be exported.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    exportable: Option<bool>,
    /// Whether backups of the key may be made, if it is exportable. They are encrypted.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    allow_plaintext_backup: Option<bool>,
}

/// Import a key. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/import", tag = "transit", request_body = TransitImport,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("import"))),
    responses((status = 204, description = "The key is imported"), (status = "default", body = VaultErrorBody)))]
async fn transit_import(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    caller.session.check_tenant(TokenOperation::Import)?;
    let label = label(&name)?;
    let request: TransitImport<'_> = body.parse()?;
    let algorithm = algorithm(request.kind.as_deref(), request.parameter_set.given())?;
    if request.convergent_encryption == Some(true) {
        return Err(VaultError::invalid("import cannot be used on keys with convergent encryption enabled"));
    }
    let max_age_seconds = period(request.auto_rotate_period.unwrap_or(Seconds(0)))?;
    let brought = request.key()?;
    let new = new_key(&caller, &label, algorithm)
        .derivation(derivation(algorithm, request.derived == Some(true), false)?)
        .rotation(RotationPolicy::default().max_age_seconds(max_age_seconds))
        .exportable(request.exportable == Some(true))
        .backup_allowed(request.allow_plaintext_backup == Some(true));
    let tenant = caller.session.authority.tenant.clone();
    let room = caller.session.room_for_key(&caller.unsealed.keystore)?;
    let imported = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let _room = room;
        match brought {
            ImportedKey::Wrapped(wrapped) => {
                keystore.import_key(new, &unwrap(keystore, &tenant, algorithm, &wrapped)?)
            }
            ImportedKey::Public(key) => keystore.import_public_key(new, &key),
        }
    });
    let existing = "the import path cannot be used with an existing key; use import-version to rotate an existing imported key";
    let imported =
        imported.await.map_err(|error| import_error(error).in_vault_words(Code::LabelTaken, existing))?;
    worker.service.key_changed(imported.key_id());
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Import the next version of a key. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/import_version", tag = "transit", request_body = TransitImport,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("import"))),
    responses((status = 204, description = "The version is imported"), (status = "default", body = VaultErrorBody)))]
async fn transit_import_version(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    let none =
        || missing(format!("no key found with name {name}; to import a new key, use the import/ endpoint"));
    let key_id = find(&caller, &name, TokenOperation::Import, none)?;
    let request: TransitImport<'_> = body.parse()?;
    if request.version.is_some_and(|version| version != 0) {
        return Err(VaultError::not_supported(
            "an imported version gets the next number: leave `version` out",
        ));
    }
    let brought = request.key()?;
    let tenant = caller.session.authority.tenant.clone();
    let imported = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| match brought {
        ImportedKey::Wrapped(wrapped) => {
            let key = unwrap(keystore, &tenant, key_id.algorithm(), &wrapped)?;
            keystore.import_version(&key_id, &key)
        }
        ImportedKey::Public(key) => keystore.import_public_version(&key_id, &key),
    });
    let imported = imported.await.map_err(import_error)?;
    worker.service.key_changed(imported.key_id());
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A key to import.
enum ImportedKey {
    Wrapped(WrappedForRsa),
    Public(PublicKey),
}

impl TransitImport<'_> {
    /// The key.
    fn key(&self) -> Result<ImportedKey> {
        match (self.ciphertext.given(), self.public_key.given()) {
            (Some(_), Some(_)) => Err(VaultError::invalid(
                "only one of the following fields, ciphertext and public_key, can be set",
            )),
            (None, Some(pem)) => {
                let pem = format!("{}\n", pem.trim_end());
                Ok(ImportedKey::Public(import_public(pem.as_bytes(), PublicFormat::Pem, None)?))
            }
            _ => Ok(ImportedKey::Wrapped(WrappedForRsa::from_bytes(&self.wrapped()?))),
        }
    }

    /// The bytes of the wrapped key.
    fn wrapped(&self) -> Result<Vec<u8>> {
        match self.hash_function.given().unwrap_or("SHA256") {
            "SHA256" => {}
            "SHA1" | "SHA224" | "SHA384" | "SHA512" => {
                return Err(VaultError::not_supported("keys are wrapped by OAEP with SHA256"));
            }
            _ => return Err(VaultError::invalid("unsupported hash_function")),
        }
        let text = self.ciphertext.given();
        let text = text.ok_or_else(|| VaultError::invalid("'ciphertext' must be provided"))?;
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
        decode_into(text, "ciphertext", &mut bytes)?;
        Ok(bytes)
    }
}

/// Unwraps a key. One error says that this failed, and not where.
fn unwrap(
    keystore: &Keystore,
    tenant: &Name,
    algorithm: Algorithm,
    wrapped: &WrappedForRsa,
) -> bulla_kms::Result<PrivateKeyData> {
    let wrapping_key = find_wrapping_key(keystore, tenant).ok_or_else(no_wrapping_key)?;
    keystore.unwrap_for_rsa(&wrapping_key.version(NonZeroU32::MIN), algorithm, wrapped)
}

fn import_error(error: ApiError) -> VaultError {
    VaultError::from(error).in_vault_words(
        Code::InvalidCiphertext,
        "failed to unwrap the key: it was not wrapped for this wrapping key",
    )
}
