//! Key agreement: secrets that a key and the public key of a peer share.

use std::num::NonZeroU32;

use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KeyUsage, Keystore, KmsError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use zeroize::Zeroizing;

use super::keys::KEY_DOC;
use super::transfer::PublicKeyText;
use crate::error::{ErrorBody, Result};
use crate::request::handler::routes;
use crate::request::{BodyBytes, Caller, Path, encode, parse, resolve_key, resolve_version, secret_json};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(derive_shared_secret))
}

/// At least the JSON around the values of an answer: the names of its fields, and a key version's
/// name.
const JSON_FRAME_LEN: usize = 512;

/// The peer of an agreement.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DeriveSharedSecret<'a> {
    /// The peer's public key, on the same curve. Its algorithm is that of the key, and need not be
    /// named.
    #[serde(borrow)]
    public_key: PublicKeyText<'a>,
    /// The version whose public key the peer has; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A shared secret.
#[derive(Serialize, ToSchema)]
struct DerivedSecret<'a> {
    /// The key version that derived it.
    #[schema(example = "local/mail/ecdh-p256/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The shared secret, base64: 32, 48 or 66 bytes, which are the x of a point, or the 32 bytes
    /// of X25519. Derive a key from it before it is used.
    shared_secret: &'a str,
}

/// Derive the secret that a key shares with the holder of a peer's private key, by elliptic-curve
/// Diffie-Hellman.
#[utoipa::path(post, path = "/api/v1/keys/{key}/derive-shared-secret", tag = "agreement", request_body = DeriveSharedSecret,
    params(("key" = String, Path, description = KEY_DOC)),
    extensions(("x-permission" = json!("derive_shared_secret"))),
    responses((status = 200, description = "The shared secret", body = DerivedSecret), (status = "default", body = ErrorBody)))]
async fn derive_shared_secret(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::DeriveSharedSecret)?;
    let DeriveSharedSecret { public_key, version } = parse(&body)?;
    let key = resolve_version(&caller, key, version)?;
    let algorithm = key.key_id().algorithm();
    if algorithm.usage() != KeyUsage::KeyAgreement {
        let message = format!("a key of {algorithm} does not agree on shared secrets");
        return Err(KmsError::new(Code::KeyUsageMismatch, message).into());
    }
    let peer = public_key.read_as(Some(algorithm))?;
    let id = key.clone();
    let derived = move |keystore: &Keystore| keystore.derive_shared_secret(&id, &peer);
    let derived = worker.run_blocking(&caller.unsealed, &caller.session, derived).await?;
    let shared_secret = Zeroizing::new(encode(&derived));
    let answer =
        DerivedSecret { key: key.to_string(), version: key.version(), shared_secret: &shared_secret };
    secret_json(&answer, JSON_FRAME_LEN + shared_secret.len())
}
