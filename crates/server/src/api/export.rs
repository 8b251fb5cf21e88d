//! A private key leaves the service only like this: wrapped for a recipient.

use std::borrow::Cow;
use std::num::NonZeroU32;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use bulla_kms::token::{Grant, GrantedKeys, Token, TokenOperation};
use bulla_kms::{Code, KeyVersionId, Keystore, KmsError, NamedPublicKey, PublicKey, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::keys::KEY;
use super::scope::check_purpose;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{Caller, Content, Path, exact, parse, resolve, token};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(export))
}

/// The lifetime of the token that the service makes for a caller who has none, in milliseconds.
const LIFE: u64 = 60_000;

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
    params(("key" = String, Path, description = KEY)), extensions(("x-permission" = json!("export"))),
    responses((status = 200, description = "The wrapped key", body = Exported), (status = "default", body = ErrorBody)))]
async fn export(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    headers: HeaderMap,
    Content(body): Content,
) -> Result<Json<Exported>> {
    let key = resolve(&caller, &key, TokenOperation::Export)?;
    check_purpose(&caller, key.as_ref().key_id().purpose())?;
    let Export { recipient, recipient_key, version } = parse(&body)?;
    let recipient = match (recipient, recipient_key) {
        (Some(text), None) => public_key(&text)?,
        (None, Some(name)) => {
            let key = exact(&caller, resolve(&caller, &name, TokenOperation::Read)?, None)?;
            caller.unsealed.keystore.recipient(&key)?.public_key
        }
        _ => return Err(ApiError::malformed("name exactly one of `recipient` and `recipient_key`")),
    };
    let key = exact(&caller, key, version)?;
    let id = key.clone();
    let token = token(&headers)?.map(read_token).transpose()?;
    let revoked = worker.service.revoked_tokens().of(key.key_id().tenant());
    let wrapped = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let token = token.map_or_else(|| token_for(keystore, &id), Ok)?;
        keystore.export_key(&id, &recipient, &token, &revoked)
    });
    let wrapped = wrapped.await?.to_string();
    Ok(Json(Exported { key: key.to_string(), version: key.version(), wrapped }))
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

/// A token for one export, for a caller who has none and is permitted the export. It never leaves
/// the service.
fn token_for(keystore: &Keystore, key: &KeyVersionId) -> bulla_kms::Result<Token> {
    let end = Timestamp::now()?.unix_millis() + LIFE;
    let keys = GrantedKeys::These(vec![key.key_id().clone()]);
    let expires = Timestamp::from_unix_millis(end)?;
    let grant = Grant {
        tenant: key.key_id().tenant().clone(),
        keys,
        operations: vec![TokenOperation::Export],
        expires,
    };
    keystore.mint_token(&grant).map_err(|error| match error.code {
        Code::KeyNotFound => {
            let message = format!("{}: an export needs it", error.message);
            KmsError::new(Code::KeyNotFound, message)
        }
        _ => error,
    })
}
