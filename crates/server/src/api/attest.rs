//! Attestations of keys, and statements of succession.

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use bulla_kms::Succession;
use bulla_kms::token::TokenOperation;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::keys::{KEY_DOC, Rotation, SharesView};
use super::signatures::json;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, Path, resolve_key};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(attest)).routes(routes!(successions))
}

/// Everything about a key except its private keys, signed by its latest version.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what the keystore writes")]
struct SignedAttestation {
    /// What is attested.
    attestation: Attestation,
    /// The signature of `bulla attestation`, a zero byte, `v1`, a zero byte, and the attestation as
    /// this JSON without white space.
    signature: AttestationSignature,
}

/// The signature of an attestation.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what the keystore writes")]
struct AttestationSignature {
    /// The key version that signed.
    key: String,
    /// The signature, base64.
    signature: String,
}

/// Everything about a key except its private keys. The fields have this order.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what the keystore writes")]
struct Attestation {
    /// The key's name: `TENANT/PURPOSE/ALGORITHM/UUID`.
    key: String,
    /// The key's label, unique within its tenant.
    label: Option<String>,
    /// The key's algorithm.
    algorithm: String,
    /// `enabled`, `disabled`, `destroyed`, or an object `pending_destruction` with the time
    /// `after`.
    #[schema(value_type = serde_json::Value)]
    state: (),
    /// The number of the key's last change.
    revision: u64,
    /// The backend that holds the private keys.
    backend: String,
    /// Whether the private keys may ever be exported.
    exportable: bool,
    /// Whether clients of the Vault-compatible interface may destroy the key without a waiting
    /// time; absent if they may not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    deletion_allowed: bool,
    /// Older versions do not verify.
    minimum_version: u32,
    /// The oldest version that signs when a client of the Vault-compatible interface names it;
    /// absent if only the latest version signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_signing_version: Option<u32>,
    /// When the keystore rotates the key by itself.
    #[schema(value_type = Rotation)]
    rotation: (),
    /// The latest version, the one that signs.
    head: u32,
    /// All versions, version 1 first.
    versions: Vec<AttestedVersion>,
}

/// One version of an attested key.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what the keystore writes")]
struct AttestedVersion {
    /// The version's name: the key's name, and `/vN`.
    id: String,
    /// The version's number, from 1.
    version: u32,
    /// The public key: base64 for Ed25519, `ALGORITHM:BASE64` for every other algorithm.
    public_key: String,
    /// When it was made.
    created: String,
    /// When the next version took its place; none for the newest.
    retired: Option<String>,
    /// `usable`, `revoked` or `destroyed`.
    state: String,
    /// `generated`, `imported` or `public_only`.
    origin: String,
    /// Who holds shares of the private key; absent if it is in one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<SharesView>,
}

/// Attest a key: its latest version signs everything about it.
///
/// It is no use of the key: no rotation policy counts it. A key that signs tokens attests nothing.
#[utoipa::path(post, path = "/api/v1/keys/{key}/attest", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The attestation", body = SignedAttestation), (status = "default", body = ErrorBody)))]
async fn attest(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    _: BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Read)?;
    let key_id = key.as_ref().key_id().clone();
    let attested = worker
        .run_blocking(&caller.unsealed, &caller.session, move |keystore| keystore.attest_signed(&key_id));
    let text = serde_json::to_vec(&attested.await?);
    Ok(json(text.map_err(|_| ApiError::internal("an attestation has no JSON"))?))
}

/// Statements of succession.
#[derive(Serialize, ToSchema)]
struct Successions {
    /// The text of each statement. Together they are a file that `bulla verify --succession` reads.
    #[schema(value_type = Vec<String>)]
    successions: Vec<Succession>,
}

/// List the statements by which a key's older versions vouch for its newer ones.
///
/// People who trust an older public key can follow them to the newest one. A key with one version
/// has none.
#[utoipa::path(get, path = "/api/v1/keys/{key}/successions", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The statements", body = Successions), (status = "default", body = ErrorBody)))]
async fn successions(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<Json<Successions>> {
    let key = resolve_key(&caller, &key, TokenOperation::Read)?;
    let key_id = key.as_ref().key_id().clone();
    let made =
        worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| keystore.successions(&key_id));
    Ok(Json(Successions { successions: made.await? }))
}
