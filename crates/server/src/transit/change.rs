//! `/v1/transit/keys`: making, rotating, configuring, trimming and deleting.

use std::num::{NonZeroU32, NonZeroU64};

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bulla_kms::token::TokenOperation;
use bulla_kms::{
    Algorithm, Attestation, Code, KeyChange, KeyDerivation, KeyState, KeyUsage, Keystore, KmsError, Name,
    NewKey, RotationPolicy, Timestamp,
};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope};
use super::answer::{Result, VaultError, VaultErrorBody};
use super::keys::{KEY_NAME_DOC, algorithm, existing, find, kind, label, missing};
use super::keys::{KeyData, min_available};
use super::request::{OptionalText, Seconds, flag, number, seconds};
use super::request::{PathName, VaultBody, VaultCaller};
use crate::request::Caller;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_create, transit_delete).map(|router| router.put(erased(transit_create))))
        .routes(routes!(transit_rotate).map(|router| router.put(erased(transit_rotate))))
        .routes(routes!(transit_configure).map(|router| router.put(erased(transit_configure))))
        .routes(routes!(transit_trim).map(|router| router.put(erased(transit_trim))))
}

/// The purpose of keys that clients of Vault make.
fn purpose() -> Name {
    "transit".parse().expect("the name is one")
}

/// A key to make. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitCreate<'a> {
    /// `aes256-gcm96` (default), `aes128-gcm96`, `chacha20-poly1305`, `xchacha20-poly1305`, `hmac`,
    /// `rsa-2048`, `rsa-3072`, `rsa-4096`, `ed25519`, `ecdsa-p256`, `ecdsa-p384`, `ecdsa-p521`,
    /// `ml-dsa` or `slh-dsa` with a parameter set, `mldsa-44`, `mldsa-65`, `mldsa-87`, or another
    /// algorithm of bulla that signs, encrypts or makes MACs.
    #[serde(borrow, default, rename = "type")]
    #[schema(value_type = String, example = "ed25519")]
    kind: OptionalText<'a>,
    /// The parameter set of `ml-dsa` (44, 65, 87) or `slh-dsa`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "65")]
    parameter_set: OptionalText<'a>,
    /// Whether the private keys may ever be exported. It cannot be changed later.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    exportable: Option<bool>,
    /// The time after which a version is replaced: seconds, or a duration such as `24h`; 0 for
    /// never.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>, example = "24h")]
    auto_rotate_period: Option<Seconds>,
    /// Whether the key that encrypts is derived from a context. It cannot be changed later.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    derived: Option<bool>,
    /// Whether equal plaintexts in one context have equal ciphertexts; for a derived key.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    convergent_encryption: Option<bool>,
    /// The length of a key for HMAC: that of the MAC, which is 32 for `hmac`, or 0.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_size: Option<i64>,
    /// Whether backups of the key may be made, if it is exportable. They are encrypted.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    allow_plaintext_backup: Option<bool>,
}

/// Checks a time after which versions are replaced.
pub(super) fn period(period: Seconds) -> Result<Option<NonZeroU64>> {
    match period.0 {
        1..3600 => Err(VaultError::invalid("auto rotate period must be 0 to disable or at least an hour")),
        seconds => Ok(NonZeroU64::new(seconds)),
    }
}

/// Create a key. One that exists already stays as it is, with a warning. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}", tag = "transit", request_body = TransitCreate,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("create"))),
    responses((status = 200, description = "The key", body = Envelope<KeyData>), (status = "default", body = VaultErrorBody)))]
async fn transit_create(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    caller.session.check_tenant(TokenOperation::Create)?;
    let label = label(&name)?;
    let request: TransitCreate<'_> = body.parse()?;
    let algorithm = algorithm(request.kind.as_deref(), request.parameter_set.given())?;
    let asks = |flag: Option<bool>| flag == Some(true);
    let derivation = derivation(algorithm, asks(request.derived), asks(request.convergent_encryption))?;
    check_key_size(algorithm, request.key_size)?;
    let max_age_seconds = period(request.auto_rotate_period.unwrap_or(Seconds(0)))?;
    let new = new_key(&caller, &label, algorithm)
        .derivation(derivation)
        .exportable(asks(request.exportable))
        .backup_allowed(asks(request.allow_plaintext_backup))
        .rotation(RotationPolicy::default().max_age_seconds(max_age_seconds));
    let (key, is_new) = create_or_find(&worker, &caller, new, label).await?;
    if is_new {
        return Ok(answer::data(&worker, &KeyData::of(&caller.unsealed.keystore, &key)));
    }
    let taken = |why: &str| {
        VaultError::from(KmsError::new(Code::LabelTaken, format!("the key {name} exists already{why}")))
    };
    if !caller.session.authority.permits(TokenOperation::Read, &key.key) {
        return Err(taken(""));
    }
    if key.algorithm != algorithm {
        return Err(taken(", with another type"));
    }
    let warnings = [format!("key {name} already existed")];
    Ok(answer::data_and_warnings(&worker, &KeyData::of(&caller.unsealed.keystore, &key), &warnings))
}

/// A key for clients of Vault.
pub(super) fn new_key(caller: &Caller, label: &Name, algorithm: Algorithm) -> NewKey {
    NewKey::new(caller.session.authority.tenant.clone(), purpose(), algorithm)
        .label(label.clone())
        // As clients of Vault expect it of every key. Such a key signs no statements of bulla.
        .signs_digests(algorithm.can_sign_digests())
        .minimum_signing_version(0)
}

/// Makes a key of the caller's tenant. If there is one of this label, returns that, and false.
pub(super) async fn create_or_find(
    worker: &Worker,
    caller: &Caller,
    new: NewKey,
    label: Name,
) -> Result<(Attestation, bool)> {
    let (tenant, keystore) = (caller.session.authority.tenant.clone(), &caller.unsealed.keystore);
    // A key that is there needs no room.
    if let Some(key) = existing(keystore, &tenant, &label)? {
        return Ok((key, false));
    }
    let room = caller.session.room_for_key(keystore)?;
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let _room = room;
        match keystore.create_key(new) {
            Ok(key) => Ok((keystore.attest(key.key_id())?, true)),
            Err(error) if error.code == Code::LabelTaken => match existing(keystore, &tenant, &label)? {
                Some(key) => Ok((key, false)),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    });
    let (key, is_new) = made.await?;
    if is_new {
        worker.service.key_changed(&key.key);
    }
    Ok((key, is_new))
}

/// How the key that encrypts is derived.
///
/// # Errors
/// Keys of the algorithm are not derived, or Vault does not have this.
pub(super) fn derivation(algorithm: Algorithm, derived: bool, convergent: bool) -> Result<KeyDerivation> {
    let derivation = match (derived, convergent) {
        (false, false) => return Ok(KeyDerivation::None),
        (false, true) => {
            return Err(VaultError::invalid("convergent encryption requires derivation to be enabled"));
        }
        (true, false) => KeyDerivation::PerContext,
        (true, true) => KeyDerivation::Convergent,
    };
    if algorithm.usage() == KeyUsage::Encryption {
        return Ok(derivation);
    }
    let (kind, _) = kind(algorithm);
    Err(VaultError::not_supported(format!(
        "key derivation and convergent encryption not supported for keys of type {kind}"
    )))
}

/// Checks that new keys have this length, if it matters.
fn check_key_size(algorithm: Algorithm, asked: Option<i64>) -> Result<()> {
    let length = algorithm.output_length();
    match asked {
        Some(asked)
            if algorithm.usage() == KeyUsage::Authentication
                && asked != 0
                && usize::try_from(asked) != Ok(length) =>
        {
            let message = format!("a new key of this type has {length} bytes: leave key_size out");
            Err(VaultError::not_supported(message))
        }
        _ => Ok(()),
    }
}

/// Rotate a key: a new version signs or encrypts from now on. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/rotate", tag = "transit",
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("rotate"))),
    responses((status = 200, description = "The key", body = Envelope<KeyData>), (status = "default", body = VaultErrorBody)))]
async fn transit_rotate(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let key_id = find(&caller, &name, TokenOperation::Rotate, || missing("key not found"))?;
    let rotated = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.rotate(&key_id)?;
        keystore.attest(&key_id)
    });
    let rotated = rotated.await?;
    worker.service.key_changed(&rotated.key);
    Ok(answer::data(&worker, &KeyData::of(&caller.unsealed.keystore, &rotated)))
}

/// Changes to a key. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitConfigure {
    /// Older versions do not verify or decrypt.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    min_decryption_version: Option<i64>,
    /// Older versions do not sign or encrypt when they are named; 0 for no bound but
    /// `min_decryption_version`. Without effect for a key of which only the latest version does.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    min_encryption_version: Option<i64>,
    /// Whether the key may be deleted.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    deletion_allowed: Option<bool>,
    /// The time after which a version is replaced: seconds, or a duration such as `24h`; 0 for
    /// never.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>, example = "24h")]
    auto_rotate_period: Option<Seconds>,
    /// This is fixed when a key is made: `true` is refused for a key that is not exportable.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    exportable: Option<bool>,
    /// Whether backups of the key may be made, if it is exportable. They are encrypted.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    allow_plaintext_backup: Option<bool>,
}

impl TransitConfigure {
    /// The changes, and the warnings for the client.
    fn changes(&self, key: &Attestation) -> Result<(Vec<KeyChange>, Vec<String>)> {
        let (mut changes, mut warnings) = (Vec::new(), Vec::new());
        if self.exportable == Some(true) && !key.exportable {
            let message = "whether a key is exportable is settled when it is made, and this one is not";
            return Err(VaultError::from(KmsError::new(Code::NotExportable, message)));
        }
        if let Some(least) = self.min_decryption_version {
            let least = if least == 0 {
                warnings.push("versions begin with 1: min_decryption_version is 1".to_owned());
                1
            } else {
                least
            };
            let least = within(least, key.latest_version, "min_decryption_version")?;
            if least.get() < min_available(key) {
                return Err(VaultError::invalid(
                    "min decryption version should not be less then min available version",
                ));
            }
            changes.push(KeyChange::MinimumVersion(least));
        }
        if let Some(least) = self.min_encryption_version {
            let least = signing_version(least, key.latest_version)?;
            if key.minimum_signing_version.is_some() {
                changes.push(KeyChange::MinimumSigningVersion(least));
            } else if least != 0 {
                let words = "min_encryption_version has no effect: only the latest version of this key signs";
                warnings.push(words.to_owned());
            }
        }
        check_order(key, &changes)?;
        if let Some(time) = self.auto_rotate_period {
            let rotation = key.rotation.max_age_seconds(period(time)?);
            changes.push(KeyChange::Rotation(rotation));
        }
        changes.extend(self.deletion_allowed.map(KeyChange::DeletionAllowed));
        // As in Vault, it cannot be forbidden again: there may be backups.
        changes.extend(self.allow_plaintext_backup.filter(|allows| *allows).map(|_| KeyChange::AllowBackup));
        Ok((changes, warnings))
    }
}

/// The oldest version that signs, or 0.
fn signing_version(version: i64, newest: u32) -> Result<u32> {
    if version < 0 {
        return Err(VaultError::invalid("min encryption version cannot be negative"));
    }
    u32::try_from(version).ok().filter(|version| *version <= newest).ok_or_else(|| {
        VaultError::invalid(format!(
            "cannot set min encryption version of {version}, latest key version is {newest}"
        ))
    })
}

/// Checks that no version would sign that does not verify.
fn check_order(key: &Attestation, changes: &[KeyChange]) -> Result<()> {
    let (mut verifies, mut signs) = (key.minimum_version, key.minimum_signing_version.unwrap_or(0));
    for change in changes {
        match change {
            KeyChange::MinimumVersion(least) => verifies = least.get(),
            KeyChange::MinimumSigningVersion(least) => signs = *least,
            _ => {}
        }
    }
    if signs == 0 || signs >= verifies {
        return Ok(());
    }
    Err(VaultError::invalid(format!(
        "cannot set min encryption/decryption values; min encryption version of {signs} must be greater than or \
         equal to min decryption version of {verifies}"
    )))
}

/// A version that the key has.
fn within(version: i64, newest: u32, what: &str) -> Result<NonZeroU32> {
    let known = u32::try_from(version).ok().filter(|version| *version <= newest).and_then(NonZeroU32::new);
    known.ok_or_else(|| {
        VaultError::invalid(format!("cannot set {what} of {version}, versions are from 1 to {newest}"))
    })
}

/// Configure a key. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/config", tag = "transit", request_body = TransitConfigure,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("update"))),
    responses((status = 200, description = "The changed key", body = Envelope<KeyData>), (status = "default", body = VaultErrorBody)))]
async fn transit_configure(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    let none = || missing(format!("no existing key named {name} could be found"));
    let key_id = find(&caller, &name, TokenOperation::Update, none)?;
    let request: TransitConfigure = body.parse()?;
    let key = caller.unsealed.keystore.attest(&key_id)?;
    let (changes, warnings) = request.changes(&key)?;
    let key = apply(&worker, &caller, key, changes).await?;
    Ok(answer::data_and_warnings(&worker, &KeyData::of(&caller.unsealed.keystore, &key), &warnings))
}

/// Makes changes to a key that nobody else changes meanwhile, in this order.
async fn apply(
    worker: &Worker,
    caller: &Caller,
    key: Attestation,
    changes: Vec<KeyChange>,
) -> Result<Attestation> {
    let key_id = key.key.clone();
    let change = move |keystore: &Keystore| {
        changes.iter().try_fold(key, |key, change| keystore.update(&key.key, Some(key.revision), change))
    };
    let changed = worker.run_blocking(&caller.unsealed, &caller.session, change).await;
    worker.service.key_changed(&key_id);
    Ok(changed?)
}

/// Which versions to trim.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitTrim {
    /// The oldest version to keep.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = i64)]
    min_available_version: Option<i64>,
}

/// Trim a key: revoke the versions below `min_available_version`, and destroy their private keys.
/// This cannot be undone. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/trim", tag = "transit", request_body = TransitTrim,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("update"))),
    responses((status = 200, description = "The changed key", body = Envelope<KeyData>), (status = "default", body = VaultErrorBody)))]
async fn transit_trim(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    let key_id = find(&caller, &name, TokenOperation::Update, || missing("invalid key name"))?;
    let TransitTrim { min_available_version } = body.parse()?;
    let asked = min_available_version.ok_or_else(|| VaultError::invalid("missing min_available_version"))?;
    let key = caller.unsealed.keystore.attest(&key_id)?;
    let trimmed = min_available(&key);
    let oldest = match asked {
        ..0 => return Err(VaultError::invalid("minimum available version cannot be negative")),
        0 => return Err(VaultError::invalid("minimum available version should be positive")),
        asked if asked < i64::from(trimmed) => {
            return Err(VaultError::invalid("minimum available version cannot be decremented"));
        }
        asked => {
            u32::try_from(asked).ok().filter(|oldest| *oldest <= key.minimum_version).ok_or_else(|| {
                VaultError::invalid(
                    "minimum available version cannot be greater than minimum decryption version",
                )
            })?
        }
    };
    // The oldest first: an interrupted trim is a shorter trim.
    let versions = (trimmed.max(1)..oldest).filter_map(NonZeroU32::new);
    let key = apply(&worker, &caller, key, versions.map(KeyChange::Revoke).collect()).await?;
    Ok(answer::data(&worker, &KeyData::of(&caller.unsealed.keystore, &key)))
}

/// Delete a key that may be deleted: destroy its private keys, and free its name. This cannot be
/// undone.
#[utoipa::path(delete, path = "/v1/transit/keys/{name}", tag = "transit",
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("destroy"))),
    responses((status = 204, description = "The key is deleted"), (status = "default", body = VaultErrorBody)))]
async fn transit_delete(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let none = || missing(format!("error deleting policy {name}: could not delete key; not found"));
    let key_id = find(&caller, &name, TokenOperation::Destroy, none)?;
    let key = caller.unsealed.keystore.attest(&key_id)?;
    if !key.deletion_allowed {
        let error = KmsError::new(Code::DestructionNotDue, "set deletion_allowed in the key's config first");
        let words = format!("error deleting policy {name}: deletion is not allowed for this key");
        return Err(VaultError::in_words(words, crate::error::ApiError::from(error)));
    }
    apply(&worker, &caller, key.clone(), deletion(&key)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The changes that destroy a key at once, also after an earlier attempt that was interrupted.
fn deletion(key: &Attestation) -> Result<Vec<KeyChange>> {
    let mut changes = Vec::new();
    if key.state != KeyState::Destroyed {
        changes.push(KeyChange::ScheduleDestruction(Timestamp::now()?));
        changes.push(KeyChange::Destroy);
    }
    changes.push(KeyChange::Label(None));
    Ok(changes)
}
