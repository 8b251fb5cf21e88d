//! Keys: listing, creating, changing and destroying them, and how answers show them.
#![allow(unused_qualifications, reason = "what utoipa makes of the parameters of a query has them")]

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bulla_kms::approval::{ApprovalRule, KeyUse};
use bulla_kms::token::TokenOperation;
use bulla_kms::{
    Algorithm, Attestation, Code, KeyChange, KeyDerivation, KeyId, KeyState, Keystore, KmsError, Name,
    NewKey, Origin, RotationPolicy, Timestamp, VersionState,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::approvals::{ApprovalRuleView, GivenApproval};
use super::operator::check_purpose;
use super::signatures::json;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, Path, Query, encode, parse, parse_short, resolve_key};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(read, update, destroy))
        .routes(routes!(rotate))
        .routes(routes!(refresh_shares))
        .routes(routes!(repair_shares))
        .routes(routes!(schedule))
        .routes(routes!(cancel_destruction))
        .routes(routes!(revoke_version))
        .routes(routes!(destroy_version))
}

/// When the keystore rotates a key by itself; without a bound, never.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rotation {
    /// A version signs for at most this many seconds.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_age_seconds: Option<NonZeroU64>,
    /// A version makes at most this many signatures.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_uses: Option<NonZeroU64>,
}

impl From<Rotation> for RotationPolicy {
    fn from(Rotation { max_age_seconds, max_uses }: Rotation) -> Self {
        Self::default().max_age_seconds(max_age_seconds).max_uses(max_uses)
    }
}

/// A key to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    /// What the key is for.
    #[serde(default = "default_purpose")]
    #[schema(value_type = String, example = "files", default = "files")]
    purpose: Name,
    /// The key's algorithm.
    #[serde(default = "default_algorithm")]
    #[schema(value_type = String, example = "ed25519", default = "ed25519")]
    algorithm: Algorithm,
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
    /// The key that encrypts: `none` for the version's own, `per_context` for one that is derived
    /// from the context of each request, or `convergent`, where equal plaintexts in one context
    /// also have equal ciphertexts. It cannot be changed later.
    #[serde(default)]
    #[schema(value_type = String, example = "none", default = "none")]
    derivation: KeyDerivation,
    /// When the keystore rotates the key by itself.
    rotation: Option<Rotation>,
    /// Who must approve each use of the key. Such a key never loses its rule.
    #[schema(value_type = Option<ApprovalRuleView>)]
    approval_rule: Option<ApprovalRule>,
    /// What makes and keeps the private keys: `pkcs11` is the device with which the service was
    /// started, `group` the nodes of the settings, of which none has the whole key. In software
    /// when absent.
    #[schema(value_type = Option<String>, example = "software")]
    backend: Option<Name>,
}

pub(crate) fn default_purpose() -> Name {
    "files".parse().expect("the name is one")
}

fn default_algorithm() -> Algorithm {
    Algorithm::Ed25519
}

/// Create a key with its version 1.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = CreateKey,
    extensions(("x-permission" = json!("create"))),
    responses((status = 201, description = "The key is made", body = KeyView), (status = "default", body = ErrorBody)))]
async fn create(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<(StatusCode, Json<KeyView>)> {
    caller.session.check_tenant(TokenOperation::Create)?;
    let body: CreateKey = parse_short(&body)?;
    let CreateKey { purpose, algorithm, label, exportable, signs_digests, .. } = body;
    let CreateKey { derivation, rotation, approval_rule, backend, .. } = body;
    check_purpose(&caller, &purpose)?;
    let tenant = caller.session.authority.tenant.clone();
    let rotation = rotation.map(Into::into).unwrap_or_default();
    let mut new = NewKey::new(tenant, purpose, algorithm)
        .exportable(exportable)
        .signs_digests(signs_digests)
        .derivation(derivation)
        .approval(approval_rule)
        .rotation(rotation);
    new.label = label;
    if let Some(backend) = backend {
        new.backend = backend.to_string();
    }
    let room = caller.session.room_for_key(&caller.unsealed.keystore)?;
    let key = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let _room = room;
        let key = keystore.create_key(new)?;
        keystore.attest(key.key_id())
    });
    let key = key.await?;
    worker.service.key_changed(&key.key);
    Ok((StatusCode::CREATED, Json((&key).into())))
}

/// Which keys to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListKeys {
    /// The most keys to return.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Only keys after this one: the `next` of the page before.
    after: Option<String>,
}

/// A page of keys.
#[derive(Serialize, ToSchema)]
struct KeyPage {
    /// The keys, sorted by their names.
    keys: Vec<KeyView>,
    /// The value of `after` for the next page; none on the last.
    next: Option<String>,
}

/// List the keys that the caller may read.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", params(ListKeys), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "A page of keys", body = KeyPage), (status = "default", body = ErrorBody)))]
async fn list(
    State(worker): State<Worker>,
    caller: Caller,
    Query(ListKeys { limit, after }): Query<ListKeys>,
) -> Result<Response> {
    let session = Arc::clone(&caller.session);
    if !session.authority.operations.contains(TokenOperation::Read) {
        return Err(ApiError::forbidden());
    }
    let limit = limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(ApiError::malformed("`limit` is from 1 to 1000"));
    }
    let after = after.map(|after| after.parse::<KeyId>()).transpose()?;
    let page = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let authority = &session.authority;
        let may_read = |key: &KeyId| authority.permits(TokenOperation::Read, key);
        let mut found = keystore.list_page(&authority.tenant, after.as_ref(), limit + 1, &may_read);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|key| key.key.to_string());
        // Written here, because a key may have many versions.
        let page = KeyPage { keys: found.iter().map(Into::into).collect(), next };
        serde_json::to_vec(&page).map_err(|_| KmsError::new(Code::Internal, "a page of keys has no JSON"))
    });
    Ok(json(page.await?))
}

/// Read a key.
#[utoipa::path(get, path = "/api/v1/keys/{key}", tag = "keys", params(("key" = String, Path, description = KEY_DOC)),
    extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The key", body = KeyView), (status = "default", body = ErrorBody)))]
async fn read(caller: Caller, Path(key): Path<String>) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Read)?;
    Ok(Json((&caller.unsealed.keystore.attest(key.as_ref().key_id())?).into()))
}

pub(crate) const KEY_DOC: &str = "A key's label, or its name with each `/` written as `%2F`";

/// Rotate a key: a new version signs from now on.
#[utoipa::path(post, path = "/api/v1/keys/{key}/rotate", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("rotate"))),
    responses((status = 200, description = "The key with its new version", body = KeyView), (status = "default", body = ErrorBody)))]
async fn rotate(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Rotate)?;
    let key_id = key.as_ref().key_id().clone();
    let rotated = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.rotate(&key_id)?;
        keystore.attest(&key_id)
    });
    let rotated = rotated.await?;
    worker.service.key_changed(&rotated.key);
    Ok(Json((&rotated).into()))
}

/// Give the nodes new shares of a key that they have together.
///
/// The nodes and the threshold are those of the settings, which all nodes must have. The public
/// keys stay, and old shares are worth nothing afterwards. All nodes have moved or none has.
#[utoipa::path(post, path = "/api/v1/keys/{key}/refresh-shares", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("rotate"))),
    responses((status = 200, description = "The key with its new shares", body = KeyView), (status = "default", body = ErrorBody)))]
async fn refresh_shares(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    change_shares(&worker, &caller, &key, |keystore, key_id| keystore.refresh_shares(key_id)).await
}

/// Repair the shares that this node has lost, with the help of the others.
///
/// As many other nodes as sign together must answer. A node that has all its shares refuses.
#[utoipa::path(post, path = "/api/v1/keys/{key}/repair-shares", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("rotate"))),
    responses((status = 200, description = "The key with its shares", body = KeyView), (status = "default", body = ErrorBody)))]
async fn repair_shares(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    change_shares(&worker, &caller, &key, |keystore, key_id| keystore.repair_shares(key_id)).await
}

/// Changes the shares of a key, and reads it.
async fn change_shares(
    worker: &Worker,
    caller: &Caller,
    key: &str,
    change: fn(&Keystore, &KeyId) -> bulla_kms::Result<()>,
) -> Result<Json<KeyView>> {
    let key = resolve_key(caller, key, TokenOperation::Rotate)?;
    let key_id = key.as_ref().key_id().clone();
    let changed = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        change(keystore, &key_id)?;
        keystore.attest(&key_id)
    });
    Ok(Json((&changed.await?).into()))
}

/// Changes to a key. What is absent stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateKey {
    /// The revision that the key must be at; any when absent.
    revision: Option<u64>,
    /// A new label. An empty text removes the label.
    label: Option<String>,
    /// Whether the key signs.
    enabled: Option<bool>,
    /// Older versions do not verify.
    #[schema(value_type = Option<u32>)]
    minimum_version: Option<NonZeroU32>,
    /// When the keystore rotates the key by itself.
    rotation: Option<Rotation>,
    /// Who must approve each use of the key. If it has a rule already, the change needs approvals.
    #[schema(value_type = Option<ApprovalRuleView>)]
    approval_rule: Option<ApprovalRule>,
    /// The request for approval that permits the change of the rule.
    approval: Option<String>,
    /// Why the rule is changed without the approvals, in an emergency.
    override_reason: Option<String>,
}

impl UpdateKey {
    /// # Errors
    /// It names no change, or several.
    fn change(&self) -> Result<KeyChange> {
        let mut changes = Vec::new();
        if let Some(label) = &self.label {
            let label = if label.is_empty() { None } else { Some(label.parse()?) };
            changes.push(KeyChange::Label(label));
        }
        if let Some(minimum) = self.minimum_version {
            changes.push(KeyChange::MinimumVersion(minimum));
        }
        if let Some(rotation) = self.rotation {
            changes.push(KeyChange::Rotation(rotation.into()));
        }
        changes.extend(self.approval_rule.clone().map(KeyChange::Approval));
        changes.extend(self.enabled.map(|on| if on { KeyChange::Enable } else { KeyChange::Disable }));
        match (changes.pop(), changes.pop()) {
            (Some(change), None) => Ok(change),
            _ => Err(ApiError::malformed(
                "name exactly one of `label`, `enabled`, `minimum_version`, `rotation` and `approval_rule`: each change is made on its own",
            )),
        }
    }
}

/// Change a key.
#[utoipa::path(patch, path = "/api/v1/keys/{key}", tag = "keys", request_body = UpdateKey,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("update"))),
    responses((status = 200, description = "The changed key", body = KeyView), (status = "default", body = ErrorBody)))]
async fn update(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Update)?;
    let update: UpdateKey = parse_short(&body)?;
    let key_id = key.as_ref().key_id().clone();
    let change = update.change()?;
    let (approval, reason) = (update.approval.as_deref(), update.override_reason.as_deref());
    let changed = match GivenApproval::read(&worker, &caller, &key_id, approval, reason)? {
        None => apply(&worker, &caller, key_id, update.revision, change).await?,
        Some(approval) => change_rule(&worker, &caller, key_id, update.revision, change, approval).await?,
    };
    Ok(Json((&changed).into()))
}

/// Changes the rule of approvals, with approvals by the old one.
async fn change_rule(
    worker: &Worker,
    caller: &Caller,
    key_id: KeyId,
    revision: Option<u64>,
    change: KeyChange,
    approval: GivenApproval,
) -> Result<Attestation> {
    let KeyChange::Approval(rule) = &change else {
        return Err(ApiError::malformed("only a change of `approval_rule` has an `approval`"));
    };
    let (service, rule) = (Arc::clone(&worker.service), rule.clone());
    let changed = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let used = KeyUse::Rule(&rule);
        let keystore = approval.use_once(&service, keystore, (&key_id).into(), used)?;
        keystore.update(&key_id, revision, &change)
    });
    changed.await
}

/// Makes one change.
async fn apply(
    worker: &Worker,
    caller: &Caller,
    key_id: KeyId,
    revision: Option<u64>,
    change: KeyChange,
) -> Result<Attestation> {
    let changed = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.update(&key_id, revision, &change)
    });
    let changed = changed.await?;
    worker.service.key_changed(&changed.key);
    Ok(changed)
}

/// When a key may be destroyed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleDestruction {
    /// From this time on; until then, the destruction can be canceled.
    #[schema(value_type = String, example = "2026-12-31T00:00:00.000Z")]
    after: Timestamp,
}

/// Schedule a key's destruction. It does not sign from now on. Until then, the destruction can be
/// canceled.
#[utoipa::path(post, path = "/api/v1/keys/{key}/schedule-destruction", tag = "keys", request_body = ScheduleDestruction,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("destroy"))),
    responses((status = 200, description = "The key", body = KeyView), (status = "default", body = ErrorBody)))]
async fn schedule(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Destroy)?;
    let ScheduleDestruction { after } = parse(&body)?;
    let key_id = key.as_ref().key_id().clone();
    Ok(Json((&apply(&worker, &caller, key_id, None, KeyChange::ScheduleDestruction(after)).await?).into()))
}

/// Cancel a key's scheduled destruction. The key is disabled then.
#[utoipa::path(post, path = "/api/v1/keys/{key}/cancel-destruction", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("restore"))),
    responses((status = 200, description = "The key", body = KeyView), (status = "default", body = ErrorBody)))]
async fn cancel_destruction(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::CancelDestruction)?;
    let key_id = key.as_ref().key_id().clone();
    Ok(Json((&apply(&worker, &caller, key_id, None, KeyChange::CancelDestruction).await?).into()))
}

/// Destroy a key's private keys, when their destruction is due. This cannot be undone.
#[utoipa::path(delete, path = "/api/v1/keys/{key}", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("destroy"))),
    responses((status = 200, description = "The key, whose signatures still verify", body = KeyView), (status = "default", body = ErrorBody)))]
async fn destroy(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Destroy)?;
    let key_id = key.as_ref().key_id().clone();
    Ok(Json((&apply(&worker, &caller, key_id, None, KeyChange::Destroy).await?).into()))
}

/// Revoke one version: its signatures do not verify any more. This cannot be undone.
#[utoipa::path(post, path = "/api/v1/keys/{key}/versions/{version}/revoke", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC), ("version" = u32, Path, description = "An older version", minimum = 1)),
    extensions(("x-permission" = json!("update"))),
    responses((status = 200, description = "The key", body = KeyView), (status = "default", body = ErrorBody)))]
async fn revoke_version(
    State(worker): State<Worker>,
    caller: Caller,
    Path((key, version)): Path<(String, NonZeroU32)>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Update)?;
    let key_id = key.as_ref().key_id().clone();
    Ok(Json((&apply(&worker, &caller, key_id, None, KeyChange::Revoke(version)).await?).into()))
}

/// Destroy the private key of one version. It still verifies. This cannot be undone.
#[utoipa::path(post, path = "/api/v1/keys/{key}/versions/{version}/destroy", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC), ("version" = u32, Path, description = "An older version", minimum = 1)),
    extensions(("x-permission" = json!("destroy"))),
    responses((status = 200, description = "The key", body = KeyView), (status = "default", body = ErrorBody)))]
async fn destroy_version(
    State(worker): State<Worker>,
    caller: Caller,
    Path((key, version)): Path<(String, NonZeroU32)>,
    _: BodyBytes,
) -> Result<Json<KeyView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Destroy)?;
    let key_id = key.as_ref().key_id().clone();
    Ok(Json((&apply(&worker, &caller, key_id, None, KeyChange::DestroyVersion(version)).await?).into()))
}

/// A key, without its private keys.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyView {
    /// The key's name: `TENANT/PURPOSE/ALGORITHM/UUID`.
    #[schema(example = "local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11")]
    key: String,
    /// The key's label, unique within its tenant.
    label: Option<String>,
    /// The key's algorithm.
    #[schema(example = "ed25519")]
    algorithm: &'static str,
    /// `enabled`, `disabled`, `pending_destruction` or `destroyed`.
    state: &'static str,
    /// From this time on the key may be destroyed; none unless its destruction is scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    destroy_after: Option<String>,
    /// The number of the key's last change.
    revision: u64,
    /// The backend that holds the private keys.
    #[schema(example = "software")]
    backend: String,
    /// Whether the private keys may ever be exported.
    exportable: bool,
    /// Whether clients of the Vault-compatible interface may destroy the key without a waiting
    /// time; absent if they may not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    deletion_allowed: bool,
    /// Whether it signs digests that callers hash themselves, and so no statements; absent if it
    /// does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    signs_digests: bool,
    /// Older versions do not verify.
    minimum_version: u32,
    /// The oldest version that signs when a client of the Vault-compatible interface names it; 0
    /// and 1 allow all. Absent if only the latest version signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_signing_version: Option<u32>,
    /// `per_context` or `convergent`; absent if the version's own key encrypts.
    #[serde(skip_serializing_if = "Option::is_none")]
    derivation: Option<&'static str>,
    /// When the keystore rotates the key by itself.
    rotation: RotationView,
    /// Who must approve each use of the key; absent if it is used without approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ApprovalRuleView>)]
    approval_rule: Option<ApprovalRule>,
    /// The latest version, the one that signs.
    head: u32,
    /// All versions, version 1 first.
    versions: Vec<VersionView>,
}

/// When the keystore rotates a key by itself.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotationView {
    /// A version signs for at most this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_seconds: Option<u64>,
    /// A version makes at most this many signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_uses: Option<u64>,
}

/// One version of a key.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionView {
    /// The version's name: the key's name, and `/vN`.
    id: String,
    /// The version's number, from 1.
    version: u32,
    /// The public key, base64; absent if the algorithm is symmetric.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// When it was made.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    created: String,
    /// When the next version took its place; none for the newest.
    retired: Option<String>,
    /// `usable`, `revoked` or `destroyed`.
    state: &'static str,
    /// `generated`, `imported` or `public_only`.
    origin: &'static str,
    /// Who holds shares of the private key, as this node knows it; absent if it is in one place, or
    /// if this node has no share.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<SharesView>,
}

/// Who has a private key together, when no node has it whole.
#[derive(Serialize, ToSchema)]
pub(crate) struct SharesView {
    /// How many of the holders sign together.
    threshold: u16,
    /// The nodes that hold a share.
    holders: Vec<String>,
    /// How often the shares were changed.
    epoch: u32,
}

impl From<&Attestation> for KeyView {
    fn from(key: &Attestation) -> Self {
        let (state, destroy_after) = match key.state {
            KeyState::Enabled => ("enabled", None),
            KeyState::Disabled => ("disabled", None),
            KeyState::PendingDestruction { after } => ("pending_destruction", Some(after.to_string())),
            KeyState::Destroyed => ("destroyed", None),
            _ => ("unknown", None),
        };
        let versions = key.versions.iter().map(|version| VersionView {
            id: version.id.to_string(),
            version: version.version,
            public_key: version.public_key.as_ref().map(|key| encode(key.as_bytes())),
            created: version.created.to_string(),
            retired: version.retired.map(|time| time.to_string()),
            state: match version.state {
                VersionState::Usable => "usable",
                VersionState::Revoked => "revoked",
                VersionState::Destroyed => "destroyed",
                _ => "unknown",
            },
            origin: match version.origin {
                Origin::Generated => "generated",
                Origin::Imported => "imported",
                Origin::PublicOnly => "public_only",
                _ => "unknown",
            },
            shares: version.shares.as_ref().map(|shares| SharesView {
                threshold: shares.threshold,
                holders: shares.holders.iter().map(ToString::to_string).collect(),
                epoch: shares.epoch,
            }),
        });
        Self {
            key: key.key.to_string(),
            label: key.label.as_ref().map(ToString::to_string),
            algorithm: key.algorithm.as_str(),
            state,
            destroy_after,
            revision: key.revision,
            backend: key.backend.clone(),
            exportable: key.exportable,
            deletion_allowed: key.deletion_allowed,
            signs_digests: key.signs_digests,
            minimum_version: key.minimum_version,
            minimum_signing_version: key.minimum_signing_version,
            derivation: match key.derivation {
                KeyDerivation::PerContext => Some("per_context"),
                KeyDerivation::Convergent => Some("convergent"),
                _ => None,
            },
            rotation: RotationView {
                max_age_seconds: key.rotation.max_age_seconds.map(Into::into),
                max_uses: key.rotation.max_uses.map(Into::into),
            },
            approval_rule: key.approval.clone(),
            head: key.latest_version,
            versions: versions.collect(),
        }
    }
}
