//! `/v1/sys`: the service's state.
#![allow(unused_qualifications, reason = "what utoipa makes of the parameters of a query has them")]

use std::collections::BTreeMap;

use crate::request::handler::{erased, routes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bulla_kms::token::TokenOperation;
use bulla_kms::{SecretString, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer;
use super::answer::{Envelope, Result, VaultError, VaultErrorBody};
use super::request::{InRoot, PathName, SecretVaultBody, VaultCaller, flag};
use crate::api::operator::check_operator;
use crate::api::operator::unseal_by_operator;
use crate::error::ApiError;
use crate::request::{Caller, ConnectionCaller, SecretText};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_health))
        .routes(routes!(transit_seal_status))
        .routes(routes!(transit_leader))
        .routes(routes!(transit_initialized))
        .routes(routes!(transit_seal).map(|router| router.post(erased(transit_seal))))
        .routes(routes!(transit_unseal).map(|router| router.post(erased(transit_unseal))))
        .routes(routes!(transit_mounts))
        .routes(routes!(transit_mount))
        .route("/v1/sys/internal/ui/mounts/{path}/{*rest}", get(erased(mount_of_path)))
}

/// The statuses to answer with. Other parameters, such as `drsecondarycode`,
/// `performancestandbycode` and `standbyok`, have no effect: no service here is a secondary or a
/// standby.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct HealthQuery {
    /// The status when the service can sign; 200 by default.
    #[param(minimum = 200, maximum = 999)]
    activecode: Option<u16>,
    /// The status when the service is sealed; 503 by default.
    #[param(minimum = 200, maximum = 999)]
    sealedcode: Option<u16>,
    /// Without effect: there is always a keystore.
    #[param(minimum = 200, maximum = 999)]
    uninitcode: Option<u16>,
    /// Without effect: no service is a standby.
    #[param(minimum = 200, maximum = 999)]
    standbycode: Option<u16>,
}

/// Whether the service can sign.
#[derive(Serialize, ToSchema)]
struct HealthData {
    /// Always true.
    initialized: bool,
    /// Whether the keystore is closed until somebody unseals it.
    sealed: bool,
    /// Always false.
    standby: bool,
    /// Always false.
    performance_standby: bool,
    /// Always `disabled`.
    replication_performance_mode: &'static str,
    /// Always `disabled`.
    replication_dr_mode: &'static str,
    /// The time, in seconds since 1970.
    server_time_utc: u64,
    /// bulla's version.
    version: &'static str,
    /// Always false.
    enterprise: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Tell whether the service can sign.
#[utoipa::path(get, path = "/v1/sys/health", tag = "transit", params(HealthQuery), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The service can sign", body = HealthData),
        (status = 503, description = "The service is sealed", body = HealthData),
        (status = 400, description = "A status that is asked for is none, or the request names a namespace", body = VaultErrorBody),
        (status = "default", description = "The status that is asked for", body = HealthData)))]
async fn transit_health(
    State(worker): State<Worker>,
    _: InRoot,
    query: Result<Query<HealthQuery>, QueryRejection>,
) -> Result<Response> {
    let wrong = || VaultError::invalid("a status to answer with is a number from 200 to 999");
    let Query(query) = query.map_err(|_| wrong())?;
    let HealthQuery { activecode, sealedcode, uninitcode, standbycode } = query;
    let codes = [activecode, sealedcode, uninitcode, standbycode];
    if codes.into_iter().flatten().any(|code| !(200..1000).contains(&code)) {
        return Err(wrong());
    }
    let sealed = worker.service.is_sealed();
    let status = if sealed { sealedcode.unwrap_or(503) } else { activecode.unwrap_or(200) };
    let status = StatusCode::from_u16(status).map_err(|_| wrong())?;
    if !answer::has_body(status) {
        return Ok(status.into_response());
    }
    let health = HealthData {
        initialized: true,
        sealed,
        standby: false,
        performance_standby: false,
        replication_performance_mode: "disabled",
        replication_dr_mode: "disabled",
        server_time_utc: Timestamp::now()?.unix_millis() / 1000,
        version: VERSION,
        enterprise: false,
    };
    Ok(answer::bare(status, &health))
}

/// Whether the service is sealed.
#[derive(Serialize, ToSchema)]
struct SealStatus {
    /// Always `passphrase`, also if a key file opens the keystore.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Always true.
    initialized: bool,
    /// Whether the keystore is closed until somebody unseals it.
    sealed: bool,
    /// Always 1: one passphrase unseals.
    t: u32,
    /// Always 1.
    n: u32,
    /// Always 0.
    progress: u32,
    /// Always empty.
    nonce: &'static str,
    /// bulla's version.
    version: &'static str,
    /// Always false.
    migration: bool,
    /// Always false.
    recovery_seal: bool,
    /// Always `bulla`.
    storage_type: &'static str,
}

fn seal_status(worker: &Worker) -> Response {
    let status = SealStatus {
        kind: "passphrase",
        initialized: true,
        sealed: worker.service.is_sealed(),
        t: 1,
        n: 1,
        progress: 0,
        nonce: "",
        version: VERSION,
        migration: false,
        recovery_seal: false,
        storage_type: "bulla",
    };
    answer::bare(StatusCode::OK, &status)
}

/// Tell whether the service is sealed.
#[utoipa::path(get, path = "/v1/sys/seal-status", tag = "transit", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "Whether it is", body = SealStatus), (status = "default", body = VaultErrorBody)))]
async fn transit_seal_status(State(worker): State<Worker>) -> Response {
    seal_status(&worker)
}

/// Which node of a cluster answers requests. In bulla's clusters all nodes do, so each names
/// itself.
#[derive(Serialize, ToSchema)]
struct LeaderData {
    /// Whether nodes share the keystore, in etcd.
    ha_enabled: bool,
    /// Whether this node answers requests itself: it is a node of a cluster and is not sealed.
    is_self: bool,
    /// Always empty: no node stands before the others.
    leader_address: &'static str,
    /// Always empty.
    leader_cluster_address: &'static str,
    /// Always false.
    performance_standby: bool,
    /// Always 0.
    performance_standby_last_remote_wal: u64,
}

/// Tell whether this is one node of many. A sealed service answers, too.
#[utoipa::path(get, path = "/v1/sys/leader", tag = "transit", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "Whether it is", body = LeaderData)))]
async fn transit_leader(State(worker): State<Worker>) -> Response {
    let ha_enabled = worker.service.cluster.is_some();
    let leader = LeaderData {
        ha_enabled,
        is_self: ha_enabled && !worker.service.is_sealed(),
        leader_address: "",
        leader_cluster_address: "",
        performance_standby: false,
        performance_standby_last_remote_wal: 0,
    };
    answer::bare(StatusCode::OK, &leader)
}

/// Whether there is a keystore.
#[derive(Serialize, ToSchema)]
struct Initialized {
    /// Always true.
    initialized: bool,
}

/// Tell that there is a keystore: the service does not start without one.
#[utoipa::path(get, path = "/v1/sys/init", tag = "transit", extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "There is", body = Initialized), (status = "default", body = VaultErrorBody)))]
async fn transit_initialized(_: InRoot) -> Response {
    answer::bare(StatusCode::OK, &Initialized { initialized: true })
}

/// Seal the service: close the keystore as soon as the requests that use it are answered. POST does
/// the same.
#[utoipa::path(put, path = "/v1/sys/seal", tag = "transit", extensions(("x-permission" = json!("operator:update"))),
    responses((status = 204, description = "The service is sealed"), (status = "default", body = VaultErrorBody)))]
async fn transit_seal(
    State(worker): State<Worker>,
    _: InRoot,
    VaultCaller(caller): VaultCaller,
) -> Result<Response> {
    check_operator(&worker, &caller, TokenOperation::Update)?;
    let Caller { session, unsealed } = caller;
    worker.service.seal_by_operator(unsealed, &session.actor).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What unseals the service.
#[derive(Deserialize, ToSchema)]
struct TransitUnseal<'a> {
    /// The keystore's passphrase. Without it, the service uses what opened the keystore at its
    /// start: it reads its key file again, for example.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    key: Option<SecretText<'a>>,
    /// Vault forgets the key shares that it was given. Here there are no shares, and nothing
    /// happens.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    reset: Option<bool>,
}

/// Unseal the service with the keystore's passphrase or, for an operator whom the settings name,
/// without it. POST does the same.
#[utoipa::path(put, path = "/v1/sys/unseal", tag = "transit", request_body = TransitUnseal, extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "Whether the service is sealed", body = SealStatus),
        (status = "default", body = VaultErrorBody)))]
async fn transit_unseal(
    State(worker): State<Worker>,
    _: InRoot,
    connected: Result<ConnectionCaller, ApiError>,
    body: SecretVaultBody,
) -> Result<Response> {
    let connected = connected?;
    let TransitUnseal { key, reset } = body.parse()?;
    if reset == Some(true) || !worker.service.is_sealed() {
        return Ok(seal_status(&worker));
    }
    let Some(passphrase) = key.filter(|text| !text.is_empty()) else {
        if !worker.service.auto_unseals() {
            return Err(VaultError::invalid("'key' must be the keystore's passphrase, or 'reset' true"));
        }
        unseal_by_operator(&worker, connected).await?;
        return Ok(seal_status(&worker));
    };
    let unsealed =
        worker.service.try_passphrase(SecretString::from(&*passphrase), connected.peer()?.as_deref()).await;
    // A wrong passphrase is an error in the request.
    unsealed.map_err(|error| VaultError::from(error).into_bad_request())?;
    Ok(seal_status(&worker))
}

/// An engine of Vault.
#[derive(Serialize, ToSchema)]
struct Mount {
    /// Always `transit`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// What it does.
    description: &'static str,
    /// Always `transit_bulla`.
    accessor: &'static str,
    /// Always empty.
    uuid: &'static str,
    /// What nobody can change.
    config: MountConfig,
    /// Always true.
    local: bool,
    /// Always false.
    seal_wrap: bool,
    /// Always false.
    external_entropy_access: bool,
    /// Always null.
    options: Option<String>,
    /// Always empty.
    plugin_version: &'static str,
    /// bulla's version.
    running_plugin_version: &'static str,
    /// Always empty.
    running_sha256: &'static str,
    /// Where it is mounted, if one engine was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

/// The settings of an engine.
#[derive(Serialize, ToSchema)]
struct MountConfig {
    /// Always 0.
    default_lease_ttl: u64,
    /// Always 0.
    max_lease_ttl: u64,
    /// Always false.
    force_no_cache: bool,
}

/// The one engine that is mounted, once or several times.
const MOUNT: Mount = Mount {
    kind: "transit",
    description: "bulla: keys that sign, encrypt and make MACs",
    accessor: "transit_bulla",
    uuid: "",
    config: MountConfig { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false },
    local: true,
    seal_wrap: false,
    external_entropy_access: false,
    options: None,
    plugin_version: "",
    running_plugin_version: VERSION,
    running_sha256: "",
    path: None,
};

/// The engines, by their paths.
#[derive(Serialize, ToSchema)]
struct Mounts(BTreeMap<String, Mount>);

/// List the engines: transit, and its other mounts of the caller's tenant.
#[utoipa::path(get, path = "/v1/sys/mounts", tag = "transit", extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The engines, by their paths", body = Envelope<Mounts>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_mounts(State(worker): State<Worker>, VaultCaller(caller): VaultCaller) -> Response {
    let mounts = worker.service.mounts();
    let others = mounts.paths(&caller.session.authority.tenant).map(|path| (format!("{path}/"), MOUNT));
    answer::data(&worker, &Mounts(others.chain([("transit/".to_owned(), MOUNT)]).collect()))
}

/// Tell which engine a path belongs to.
#[utoipa::path(get, path = "/v1/sys/internal/ui/mounts/{path}", tag = "transit",
    params(("path" = String, Path, description = "An engine; what follows after a slash does not count", example = "transit")),
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The engine", body = Envelope<Mount>), (status = "default", body = VaultErrorBody)))]
async fn transit_mount(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(path): PathName<String>,
) -> Result<Response> {
    mount_of(&worker, &caller, &path)
}

/// The mount of a path with slashes.
async fn mount_of_path(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((path, _)): PathName<(String, String)>,
) -> Result<Response> {
    mount_of(&worker, &caller, &path)
}

fn mount_of(worker: &Worker, caller: &Caller, path: &str) -> Result<Response> {
    let mounts = worker.service.mounts();
    if path != "transit" && mounts.keys_tenant(&caller.session.authority.tenant, path).is_none() {
        return Err(ApiError::forbidden().into());
    }
    Ok(answer::data(worker, &Mount { path: Some(format!("{path}/")), ..MOUNT }))
}
