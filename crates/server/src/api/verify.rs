//! Verifying one signature, and many.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;

use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Algorithm, KeyVersionId, Keystore, Verdict, VerifyItem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::items::{Buffer, Keys, count, key_of, write_error};
use super::keys::KEY;
use super::sign::json;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{Caller, Content, Items, Path, decode, exact, parse, resolve};
use crate::service::{Cost, Worker};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(verify)).routes(routes!(verify_many))
}

/// A signature to verify.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Verify<'a> {
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: Cow<'a, str>,
    /// The signature, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    signature: Cow<'a, str>,
    /// The version that signed, as the caller says; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// Whether a signature is valid.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(crate) struct Verified {
    /// Whether the key version made this signature of this message.
    valid: bool,
}

/// Verify a signature.
#[utoipa::path(post, path = "/api/v1/keys/{key}/verify", tag = "signatures", request_body = Verify,
    params(("key" = String, Path, description = KEY)), extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdict", body = Verified), (status = "default", body = ErrorBody)))]
async fn verify(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    Content(body): Content,
) -> Result<Response> {
    let key = resolve(&caller, &key, TokenOperation::Verify)?;
    let Verify { message, signature, version } = parse(&body)?;
    let key = exact(&caller, key, version)?;
    let (message, signature) = (decode(&message, "message")?, decode(&signature, "signature")?);
    let verdict = worker.verify(&caller.unsealed, &caller.session, key, message, signature).await?;
    Ok(json(verdict_text(verdict).as_bytes().to_vec()))
}

pub(crate) fn verdict_text(verdict: Verdict) -> &'static str {
    if verdict.is_valid() { "{\"valid\":true}" } else { "{\"valid\":false}" }
}

/// Signatures to verify.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VerifyMany<'a> {
    /// The key of all items that name none.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, example = "invoices")]
    key: Option<Cow<'a, str>>,
    /// The signatures.
    #[serde(borrow)]
    #[schema(value_type = Vec<VerifyOne>, min_items = 1, max_items = 100_000)]
    items: Items<VerifyOne<'a>>,
}

/// One signature to verify.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VerifyOne<'a> {
    /// The key. Best give its name with a version, as signing returns it.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    key: Option<Cow<'a, str>>,
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: Cow<'a, str>,
    /// The signature, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    signature: Cow<'a, str>,
    /// The version that signed, as the caller says; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// Verdicts, in the order of the items.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct VerifiedMany {
    results: Vec<VerifiedOne>,
}

/// A verdict. If nothing could be verified, it is not valid, and `error` says why.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct VerifiedOne {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// Verify many signatures.
///
/// No item's verdict depends on another item.
#[utoipa::path(post, path = "/api/v1/verify", tag = "signatures", request_body = VerifyMany, extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "A verdict for each item", body = VerifiedMany), (status = "default", body = ErrorBody)))]
async fn verify_many(
    State(worker): State<Worker>,
    caller: Caller,
    Content(body): Content,
) -> Result<Response> {
    let batch = read(&worker, &caller, &body)?;
    let is_quick = |key: &Result<KeyVersionId>| {
        key.as_ref().is_ok_and(|key| key.key_id().algorithm() == Algorithm::Ed25519)
    };
    let cost = Cost::quick_if(batch.keys.iter().all(is_quick));
    let items = batch.items.len();
    let results =
        worker.run_batch_sliced(&caller.unsealed, &caller.session, cost, batch, items, Batch::verify).await?;
    Ok(json(write(&results)))
}

/// The places of a key, a message and a signature.
type Item = (usize, Range<usize>, Range<usize>);

/// A batch whose keys are found and whose texts are decoded.
struct Batch {
    keys: Vec<Result<KeyVersionId>>,
    buffer: Buffer,
    /// The key, the message and the signature of each item, or the reason why it cannot be
    /// verified.
    items: Vec<Result<Item>>,
}

fn read(worker: &Worker, caller: &Caller, body: &[u8]) -> Result<Batch> {
    let VerifyMany { key, items } = parse(body)?;
    count(worker, caller, items.len())?;
    let mut keys = Keys::new(caller, TokenOperation::Verify);
    let texts: usize = items.iter().map(|item| item.message.len() + item.signature.len()).sum();
    let mut buffer = Buffer::with_capacity(texts / 4 * 3);
    let decoded = items.iter().map(|item| {
        let key = keys.place(key_of(item.key.as_deref(), key.as_deref())?, item.version)?;
        let message = buffer.decode(&item.message, "message")?;
        Ok((key, message, buffer.decode(&item.signature, "signature")?))
    });
    let decoded = decoded.collect();
    Ok(Batch { keys: keys.into_ids(), items: decoded, buffer })
}

impl Batch {
    /// The results of one step of the items.
    fn verify(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<bool>> {
        let step = &self.items[step];
        let usable: Vec<_> = step.iter().map(|item| self.item(item)).collect();
        let items: Vec<_> = usable.iter().filter_map(|item| item.as_ref().ok().copied()).collect();
        let mut verdicts = keystore.verify_batch(&items).into_iter();
        let results = usable.into_iter().map(|item| {
            let item = item?;
            match verdicts.next() {
                Some(Verdict::Unusable) | None => {
                    keystore.check_usable(item.key)?;
                    Ok(false)
                }
                Some(verdict) => Ok(verdict.is_valid()),
            }
        });
        results.collect()
    }

    fn item(&self, item: &Result<Item>) -> Result<VerifyItem<'_>> {
        let (key, message, signature) = item.as_ref().map_err(ApiError::clone)?;
        let key = self.keys[*key].as_ref().map_err(ApiError::clone)?;
        Ok(VerifyItem { key, message: self.buffer.get(message), signature: self.buffer.get(signature) })
    }
}

fn write(results: &[Result<bool>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + results.len() * 16);
    out.extend_from_slice(b"{\"results\":[");
    for (place, result) in results.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        match result {
            Ok(true) => out.extend_from_slice(b"{\"valid\":true}"),
            Ok(false) => out.extend_from_slice(b"{\"valid\":false}"),
            Err(error) => {
                out.extend_from_slice(b"{\"valid\":false,");
                write_error(&mut out, &error.body);
                out.extend_from_slice(b"}");
            }
        }
    }
    out.extend_from_slice(b"]}");
    out
}
