//! Keys that make message authentication codes (MACs), alone and in batches.

use std::borrow::Cow;
use std::num::NonZeroU32;

use crate::request::handler::routes;
use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeySelector, KeyVersionId, Keystore, KmsError, Mac, SecretBytes, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::batch::count_items;
use super::keys::KEY_DOC;
use super::symmetric::{answer_many, batch_results, of_version, run_each};
use crate::error::{ErrorBody, Result};
use crate::request::{
    Caller, Items, Path, SecretContent, SecretText, decode, decode_secret, encode, parse, resolve_key,
    resolve_version,
};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(mac))
        .routes(routes!(mac_many))
        .routes(routes!(verify_mac))
        .routes(routes!(verify_mac_many))
}

/// A message whose MAC to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MessageToAuthenticate<'a> {
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: SecretText<'a>,
    /// The version; the newest when absent. An older one makes MACs only if the key was made for
    /// that.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A message authentication code.
#[derive(Serialize, ToSchema)]
struct MacView {
    /// The key version that made it.
    key: String,
    /// The number of that version.
    version: u32,
    /// The MAC, base64.
    mac: String,
}

impl From<Mac> for MacView {
    fn from(made: Mac) -> Self {
        Self { key: made.key.to_string(), version: made.key.version(), mac: encode(&made.bytes) }
    }
}

/// A message whose key is found and which is decoded.
struct ToAuthenticate {
    key: KeySelector,
    message: SecretBytes,
}

impl ToAuthenticate {
    fn read(caller: &Caller, key: KeySelector, body: &MessageToAuthenticate<'_>) -> Result<Self> {
        let message = decode_secret(&body.message, "message")?;
        Ok(Self { key: of_version(caller, key, body.version)?, message })
    }

    fn mac(&self, keystore: &Keystore) -> Result<Mac, KmsError> {
        keystore.mac(self.key.as_ref(), &self.message)
    }
}

/// Make the message authentication code (MAC) of a message with a key's latest version.
#[utoipa::path(post, path = "/api/v1/keys/{key}/mac", tag = "symmetric", request_body = MessageToAuthenticate,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("mac"))),
    responses((status = 200, description = "The MAC", body = MacView), (status = "default", body = ErrorBody)))]
async fn mac(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<axum::Json<MacView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Mac)?;
    let item = ToAuthenticate::read(&caller, key, &parse(&body)?)?;
    let cost = caller.cost_of_secrets(item.key.as_ref(), 1, item.message.len());
    let run = move |keystore: &Keystore| item.mac(keystore);
    let made = worker.run_at_cost(&caller.unsealed, &caller.session, cost, run).await?;
    Ok(axum::Json(made.into()))
}

/// Messages whose MACs to make with one key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MessagesToAuthenticate<'a> {
    /// The messages.
    #[serde(borrow)]
    #[schema(value_type = Vec<MessageToAuthenticate>, min_items = 1, max_items = 100_000)]
    items: Items<MessageToAuthenticate<'a>>,
}

batch_results! {
    /// A MAC with its key and version, or an error.
    MacResult,
    /// MACs, in the order of the items.
    MacResults of MacView, mac: String
}

/// Make the MACs of many messages with one key.
///
/// An item's error does not affect the others.
#[utoipa::path(post, path = "/api/v1/keys/{key}/mac/batch", tag = "symmetric", request_body = MessagesToAuthenticate,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("mac"))),
    responses((status = 200, description = "A MAC or an error for each item", body = MacResults), (status = "default", body = ErrorBody)))]
async fn mac_many(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Mac)?;
    let MessagesToAuthenticate { items } = parse(&body)?;
    count_items(&worker, &caller, items.len())?;
    let items = items.iter().map(|item| ToAuthenticate::read(&caller, key.clone(), item)).collect();
    let made = run_each(&worker, &caller, items, |keystore, item: &ToAuthenticate| item.mac(keystore));
    answer_many(made.await?.into_iter().map(MacResult::from).collect(), 0)
}

/// A MAC to verify.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MacToVerify<'a> {
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: SecretText<'a>,
    /// The MAC of its whole length, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    mac: Cow<'a, str>,
    /// The version that made it, as the caller says; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A MAC whose key is found and which is decoded.
struct ToVerify {
    key: KeyVersionId,
    message: SecretBytes,
    mac: Vec<u8>,
}

impl ToVerify {
    fn read(caller: &Caller, key: KeySelector, body: &MacToVerify<'_>) -> Result<Self> {
        let (message, mac) = (decode_secret(&body.message, "message")?, decode(&body.mac, "mac")?);
        Ok(Self { key: resolve_version(caller, key, body.version)?, message, mac })
    }

    fn verify(&self, keystore: &Keystore) -> Result<Verdict, KmsError> {
        keystore.verify_mac(&self.key, &self.message, &self.mac)
    }
}

/// Whether a MAC is valid.
#[derive(Serialize, ToSchema)]
struct MacVerdict {
    /// Whether the key version made this MAC of this message.
    valid: bool,
}

/// Verify a message authentication code (MAC).
#[utoipa::path(post, path = "/api/v1/keys/{key}/verify-mac", tag = "symmetric", request_body = MacToVerify,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("verify_mac"))),
    responses((status = 200, description = "The verdict", body = MacVerdict), (status = "default", body = ErrorBody)))]
async fn verify_mac(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<axum::Json<MacVerdict>> {
    let key = resolve_key(&caller, &key, TokenOperation::VerifyMac)?;
    let item = ToVerify::read(&caller, key, &parse(&body)?)?;
    let cost = caller.cost_of_secrets((&item.key).into(), 0, item.message.len());
    let run = move |keystore: &Keystore| item.verify(keystore);
    let verdict = worker.run_at_cost(&caller.unsealed, &caller.session, cost, run).await?;
    Ok(axum::Json(MacVerdict { valid: verdict.is_valid() }))
}

/// MACs to verify with one key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MacsToVerify<'a> {
    /// The MACs.
    #[serde(borrow)]
    #[schema(value_type = Vec<MacToVerify>, min_items = 1, max_items = 100_000)]
    items: Items<MacToVerify<'a>>,
}

/// A verdict. If nothing could be verified, it is not valid, and `error` says why.
#[derive(Serialize, ToSchema)]
struct MacVerdictResult {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// Verdicts, in the order of the items.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes the results of a batch")]
struct MacVerdictResults {
    results: Vec<MacVerdictResult>,
}

/// Verify many MACs with one key.
#[utoipa::path(post, path = "/api/v1/keys/{key}/verify-mac/batch", tag = "symmetric", request_body = MacsToVerify,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("verify_mac"))),
    responses((status = 200, description = "A verdict for each item", body = MacVerdictResults), (status = "default", body = ErrorBody)))]
async fn verify_mac_many(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::VerifyMac)?;
    let MacsToVerify { items } = parse(&body)?;
    count_items(&worker, &caller, items.len())?;
    let items = items.iter().map(|item| ToVerify::read(&caller, key.clone(), item)).collect();
    let verdicts = run_each(&worker, &caller, items, |keystore, item: &ToVerify| item.verify(keystore));
    let result = |verdict: Result<Verdict>| match verdict {
        Ok(verdict) => MacVerdictResult { valid: verdict.is_valid(), error: None },
        Err(error) => MacVerdictResult { valid: false, error: Some(error.body) },
    };
    answer_many(verdicts.await?.into_iter().map(result).collect(), 0)
}
