//! `/v1/transit/backup` and `restore`: one key as an encrypted text, which this service restores.
//! And `/v1/transit/config/keys` and `cache-config`, which have nothing to set here.

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KeyChange, KeyId, Keystore, KmsError, Name};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::keys::{KEY_NAME_DOC, existing, find, label, missing};
use super::request::{OptionalText, PathName, VaultBody, VaultCaller, decode_into, flag, number};
use crate::request::{Caller, encode};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_backup))
        .routes(routes!(transit_restore).map(|router| router.put(erased(transit_restore))))
        .routes(routes!(transit_restore_as).map(|router| router.put(erased(transit_restore_as))))
        .routes(
            routes!(transit_upsert, transit_set_upsert).map(|router| router.put(erased(transit_set_upsert))),
        )
        .routes(routes!(transit_cache, transit_set_cache).map(|router| router.put(erased(transit_set_cache))))
}

/// A backup.
#[derive(Serialize, ToSchema)]
struct TransitBackup {
    /// The key, encrypted under the keystore's root key, base64.
    backup: String,
}

/// Back up one key with all its versions. Only this service restores it, or another one with the
/// same keystore.
#[utoipa::path(get, path = "/v1/transit/backup/{name}", tag = "transit", params(("name" = String, Path, description = KEY_NAME_DOC)),
    extensions(("x-permission" = json!("export"))),
    responses((status = 200, description = "The backup", body = Envelope<TransitBackup>), (status = "default", body = VaultErrorBody)))]
async fn transit_backup(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let none = || missing(format!("key \"{name}\" not found"));
    let key_id = find(&caller, &name, TokenOperation::Export, none)?;
    check_backup(&caller.unsealed.keystore, &key_id)?;
    let made =
        worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| keystore.backup_key(&key_id));
    Ok(answer::data(&worker, &TransitBackup { backup: encode(&made.await?) }))
}

/// # Errors
/// The key may not be backed up, in Vault's words.
fn check_backup(keystore: &Keystore, key_id: &KeyId) -> Result<()> {
    let refuse = |words: &'static str, message: &str| {
        let error = VaultError::from(KmsError::new(Code::NotExportable, message));
        Err(error.replace_words(words))
    };
    if !keystore.attest(key_id)?.exportable {
        let message = "the key was not made exportable, and that cannot be changed";
        return refuse("exporting is disallowed on the policy", message);
    }
    if !keystore.backup_allowed(key_id)? {
        let message = "set allow_plaintext_backup in the key's config first";
        return refuse("plaintext backup is disallowed on the policy", message);
    }
    Ok(())
}

/// A backup to restore. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitRestore<'a> {
    /// The backup.
    #[serde(borrow, default)]
    #[schema(value_type = String)]
    backup: OptionalText<'a>,
    /// Whether a key that has the name loses it. It is not destroyed, and its id still finds it.
    /// This needs the permission `update` on that key.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    force: Option<bool>,
}

/// Restore a key under the name that it had. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/restore", tag = "transit", request_body = TransitRestore,
    extensions(("x-permission" = json!("import"))),
    responses((status = 204, description = "The key is restored"), (status = "default", body = VaultErrorBody)))]
async fn transit_restore(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    restore(&worker, &caller, None, &body).await
}

/// Restore a key under another name. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/restore/{name}", tag = "transit", request_body = TransitRestore,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("import"))),
    responses((status = 204, description = "The key is restored"), (status = "default", body = VaultErrorBody)))]
async fn transit_restore_as(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    restore(&worker, &caller, Some(label(&name)?), &body).await
}

async fn restore(
    worker: &Worker,
    caller: &Caller,
    label: Option<Name>,
    body: &VaultBody,
) -> Result<Response> {
    caller.session.check_tenant(TokenOperation::Import)?;
    let request: TransitRestore<'_> = body.parse()?;
    let text = request.backup.given().ok_or_else(|| VaultError::invalid("'backup' must be supplied"))?;
    let mut backup = Vec::with_capacity(text.len() / 4 * 3);
    decode_into(text, "backup", &mut backup)?;
    let tenant = caller.session.authority.tenant.clone();
    let replaces = request.force == Some(true);
    let may_update = {
        let session = std::sync::Arc::clone(&caller.session);
        move |key: &KeyId| session.authority.permits(TokenOperation::Update, key)
    };
    let room = caller.session.room_for_key(&caller.unsealed.keystore)?;
    let restored = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let _room = room;
        match keystore.restore_key(&tenant, label.as_ref(), &backup) {
            Err(error) if error.code == Code::LabelTaken && replaces => {
                let label = match label {
                    Some(label) => label,
                    None => keystore.backed_up_label(&tenant, &backup)?.ok_or_else(|| error.clone())?,
                };
                let former = existing(keystore, &tenant, &label)?.ok_or_else(|| error.clone())?;
                if !may_update(&former.key) {
                    return Err(error);
                }
                keystore.update(&former.key, Some(former.revision), &KeyChange::Label(None))?;
                let restored = keystore.restore_key(&tenant, Some(&label), &backup).inspect_err(|_| {
                    // If this fails too, the former key is still found by its id.
                    let _ = keystore.update(&former.key, None, &KeyChange::Label(Some(label.clone())));
                });
                Ok((restored?, Some(former.key)))
            }
            restored => Ok((restored?, None)),
        }
    });
    let (restored, former) = restored.await.map_err(|error| {
        let error = VaultError::from(error);
        error.in_vault_words(Code::LabelTaken, "the key already exists")
    })?;
    for key in former.iter().chain([restored.key_id()]) {
        worker.service.key_changed(key);
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Whether keys are made by their first encryption.
#[derive(Serialize, ToSchema)]
struct TransitUpsert {
    /// Always false: an encryption makes its key, for callers who may create keys.
    disable_upsert: bool,
}

/// A setting of the engine. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitSetUpsert {
    /// `true` is refused: tokens without the permission `create` make no keys.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    disable_upsert: Option<bool>,
}

/// Tell whether an encryption makes a key that does not exist.
#[utoipa::path(get, path = "/v1/transit/config/keys", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The setting", body = Envelope<TransitUpsert>), (status = "default", body = VaultErrorBody)))]
async fn transit_upsert(State(worker): State<Worker>, VaultCaller(_): VaultCaller) -> Response {
    answer::data(&worker, &TransitUpsert { disable_upsert: false })
}

/// Set that an encryption makes its key, which is always so. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/config/keys", tag = "transit", request_body = TransitSetUpsert,
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The setting", body = Envelope<TransitUpsert>), (status = "default", body = VaultErrorBody)))]
async fn transit_set_upsert(
    State(worker): State<Worker>,
    VaultCaller(_): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    let request: TransitSetUpsert = body.parse()?;
    if request.disable_upsert == Some(true) {
        return Err(VaultError::not_supported(
            "an encryption makes its key only for tokens that permit `create`: mint tokens without it",
        ));
    }
    Ok(answer::data(&worker, &TransitUpsert { disable_upsert: false }))
}

/// The size of the cache of keys.
#[derive(Serialize, ToSchema)]
struct TransitCache {
    /// Always 0, without a bound.
    size: i64,
}

/// A setting of the cache. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitSetCache {
    /// How many keys the cache holds: 0, or at least 10.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    size: Option<i64>,
}

/// Tell the size of the cache of keys: all are in memory.
#[utoipa::path(get, path = "/v1/transit/cache-config", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The setting", body = Envelope<TransitCache>), (status = "default", body = VaultErrorBody)))]
async fn transit_cache(State(worker): State<Worker>, VaultCaller(_): VaultCaller) -> Response {
    answer::data(&worker, &TransitCache { size: 0 })
}

/// Set the size of the cache of keys. It has no effect, and a warning says so. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/cache-config", tag = "transit", request_body = TransitSetCache,
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The setting", body = Envelope<TransitCache>), (status = "default", body = VaultErrorBody)))]
async fn transit_set_cache(
    State(worker): State<Worker>,
    VaultCaller(_): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    let TransitSetCache { size } = body.parse()?;
    let warnings = match size.unwrap_or_default() {
        0 => Vec::new(),
        10.. => vec!["the size has no effect: bulla has all keys in memory".to_owned()],
        _ => return Err(VaultError::invalid("size must be 0 or a value greater or equal to 10")),
    };
    Ok(answer::data_and_warnings(&worker, &TransitCache { size: 0 }, &warnings))
}
