//! Encapsulated keys: 32 bytes that two parties share.

use std::borrow::Cow;
use std::num::NonZeroU32;

use axum::extract::State;
use axum::response::Response;
use bulla_kms::Keystore;
use bulla_kms::token::TokenOperation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use super::keys::KEY;
use crate::error::{ErrorBody, Result};
use crate::request::{Caller, Content, Path, decode, encode, exact, parse, resolve, secret_json};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(encapsulate)).routes(routes!(decapsulate))
}

/// At least the JSON around the values of an answer: the names of its fields, and a key version's
/// name.
const FRAME: usize = 512;

/// The version to encapsulate to.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Encapsulate {
    /// The version; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A shared key, and the ciphertext that carries it.
#[derive(Serialize, ToSchema)]
struct Encapsulated<'a> {
    /// The key version that decapsulates the ciphertext.
    #[schema(example = "local/transport/x-wing/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The ciphertext, base64.
    ciphertext: String,
    /// The shared key of 32 bytes, base64. It is a secret.
    shared_key: &'a str,
}

/// Make a shared key, and the ciphertext that carries it to the holder of a private key.
///
/// Anybody with the public key can do the same elsewhere.
#[utoipa::path(post, path = "/api/v1/keys/{key}/encapsulate", tag = "encryption", request_body = Encapsulate,
    params(("key" = String, Path, description = KEY)), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The shared key", body = Encapsulated), (status = "default", body = ErrorBody)))]
async fn encapsulate(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    Content(body): Content,
) -> Result<Response> {
    let key = resolve(&caller, &key, TokenOperation::Read)?;
    let Encapsulate { version } = if body.is_empty() { Encapsulate::default() } else { parse(&body)? };
    let key = exact(&caller, key, version)?;
    let id = key.clone();
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.recipient(&id)?.public_key.encapsulate()
    });
    let made = made.await?;
    let shared_key = Zeroizing::new(encode(&*made.shared_key));
    let answer = Encapsulated {
        key: key.to_string(),
        version: key.version(),
        ciphertext: encode(&made.ciphertext),
        shared_key: &shared_key,
    };
    let length = FRAME + answer.ciphertext.len() + shared_key.len();
    secret_json(&answer, length)
}

/// A ciphertext to decapsulate.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Decapsulate<'a> {
    /// The ciphertext, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    ciphertext: Cow<'a, str>,
    /// The version that it was made for; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A shared key.
#[derive(Serialize, ToSchema)]
struct Decapsulated<'a> {
    /// The key version that decapsulated.
    key: String,
    /// The number of that version.
    version: u32,
    /// The shared key of 32 bytes, base64. It is a secret.
    shared_key: &'a str,
}

/// Decapsulate the shared key that a ciphertext carries.
///
/// A ciphertext that was changed, or was made for another version, gives another key and no error:
/// that is how ML-KEM works.
#[utoipa::path(post, path = "/api/v1/keys/{key}/decapsulate", tag = "encryption", request_body = Decapsulate,
    params(("key" = String, Path, description = KEY)), extensions(("x-permission" = json!("decapsulate"))),
    responses((status = 200, description = "The shared key", body = Decapsulated), (status = "default", body = ErrorBody)))]
async fn decapsulate(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    Content(body): Content,
) -> Result<Response> {
    let key = resolve(&caller, &key, TokenOperation::Decapsulate)?;
    let Decapsulate { ciphertext, version } = parse(&body)?;
    let key = exact(&caller, key, version)?;
    let ciphertext = decode(&ciphertext, "ciphertext")?;
    let id = key.clone();
    let shared = move |keystore: &Keystore| keystore.decapsulate(&id, &ciphertext);
    let shared = worker.run_blocking(&caller.unsealed, &caller.session, shared).await?;
    let shared_key = Zeroizing::new(encode(&*shared));
    let answer = Decapsulated { key: key.to_string(), version: key.version(), shared_key: &shared_key };
    secret_json(&answer, FRAME + shared_key.len())
}
