//! Signing and verifying messages, one or many.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use crate::request::handler::routes;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bulla_kms::approval::KeyUse;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Algorithm, KeyMessage, KeySelector, KeyVersionId, Keystore, Signature, Verdict, VerifyItem};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::{OpenApi, RefOr, Schema};
use utoipa_axum::router::OpenApiRouter;

use super::approvals::GivenApproval;
use super::batch::{BatchKeys, DecodedBuffer, count_items, key_of, sign_items, verify_items, write_error};
use super::keys::KEY_DOC;
use super::prehash::{HashName, PaddingName, scheme};
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, Items, Path, decode, encode, parse, resolve_key, resolve_version};
use crate::service::{BatchCost, Worker};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(sign))
        .routes(routes!(sign_many))
        .routes(routes!(verify))
        .routes(routes!(verify_many))
}

/// A message to sign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Sign<'a> {
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: Cow<'a, str>,
    /// The hash function, for ECDSA and RSA: `sha256`, `sha384` or `sha512`. When absent, the one
    /// of the curve, and `sha256` for RSA.
    #[serde(default)]
    hash: Option<HashName>,
    /// How an RSA key pads the digest; `pss` when absent.
    #[serde(default)]
    padding: Option<PaddingName>,
    /// The request for approval that permits this, for a key that is used only with approvals.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    approval: Option<Cow<'a, str>>,
    /// Why this is done without the approvals, in an emergency.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    override_reason: Option<Cow<'a, str>>,
}

/// A signature.
#[derive(Serialize, ToSchema)]
pub(crate) struct Signed {
    /// The key version that signed.
    #[schema(example = "local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The signature, base64.
    signature: String,
}

/// Sign a message with a key's latest version.
#[utoipa::path(post, path = "/api/v1/keys/{key}/sign", tag = "signatures", request_body = Sign,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signature", body = Signed), (status = "default", body = ErrorBody)))]
async fn sign(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Sign)?;
    let Sign { message, hash, padding, approval, override_reason } = parse(&body)?;
    let (approval, reason) = (approval.as_deref(), override_reason.as_deref());
    let approval = GivenApproval::read(&worker, &caller, key.key_id(), approval, reason)?;
    let message = decode(&message, "message")?;
    let scheme = scheme(key.as_ref().key_id().algorithm(), hash, padding);
    if let Some(approval) = approval {
        let service = Arc::clone(&worker.service);
        let sign = move |keystore: &Keystore| {
            let used = KeyUse::Message(&message);
            let keystore = approval.use_once(&service, keystore, key.as_ref(), used)?;
            match scheme {
                None => keystore.sign(key.as_ref(), &message),
                Some((hash, padding)) => keystore.sign_hashed(key.as_ref(), &message, hash, padding),
            }
        };
        // What is rare is boxed: each request would move memory for it.
        let signature = Box::pin(worker.run_blocking(&caller.unsealed, &caller.session, sign)).await?;
        return Ok(json(write_one(&signature)));
    }
    let signature = match scheme {
        None => worker.sign(&caller.unsealed, &caller.session, key, message).await?,
        Some((hash, padding)) => {
            let cost = BatchCost::of_signature(&caller.unsealed.keystore, key.as_ref(), message.len());
            let sign = move |keystore: &Keystore| keystore.sign_hashed(key.as_ref(), &message, hash, padding);
            Box::pin(worker.run_at_cost(&caller.unsealed, &caller.session, cost, sign)).await?
        }
    };
    Ok(json(write_one(&signature)))
}

pub(crate) fn write_one(signature: &Signature) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + signature.bytes.len() * 4 / 3);
    out.extend_from_slice(b"{");
    write_signature(&mut out, signature);
    out.extend_from_slice(b"}");
    out
}

/// Writes the fields of [`Signed`]. Names of keys and base64 have no character that needs an
/// escape.
fn write_signature(out: &mut Vec<u8>, signature: &Signature) {
    use std::io::Write as _;
    let (key, version) = (&signature.key, signature.key.version());
    // Writing to a vector cannot fail.
    let _ = write!(out, "\"key\":\"{key}\",\"version\":{version},\"signature\":\"");
    out.extend_from_slice(encode(&signature.bytes).as_bytes());
    out.extend_from_slice(b"\"");
}

pub(crate) fn json(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Messages to sign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignMany<'a> {
    /// The key of all items that name none.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, example = "invoices")]
    key: Option<Cow<'a, str>>,
    /// The messages.
    #[serde(borrow)]
    #[schema(value_type = Vec<SignOne>, min_items = 1, max_items = 100_000)]
    items: Items<SignOne<'a>>,
}

/// One message to sign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignOne<'a> {
    /// The key.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    key: Option<Cow<'a, str>>,
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: Cow<'a, str>,
}

/// Signatures, in the order of the items.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct SignedMany {
    results: Vec<SignedOne>,
}

/// A signature with its key and version, or an error.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct SignedOne {
    /// The key version that signed.
    key: Option<String>,
    /// The number of that version.
    version: Option<u32>,
    /// The signature, base64.
    signature: Option<String>,
    /// Why there is no signature.
    error: Option<ErrorBody>,
}

/// Adds to the description that a result has the fields of a signature or an error, and not both.
///
/// Two types with one `oneOf` would say that, too. But clients that generators make cannot tell two
/// types apart by the fields that are absent.
pub(super) fn describe_results(description: &mut OpenApi) {
    let schemas = &mut description.components.get_or_insert_default().schemas;
    if let Some(RefOr::T(Schema::Object(result))) = schemas.get_mut("SignedOne") {
        let forms = json!([{ "required": ["key", "version", "signature"] }, { "required": ["error"] }]);
        result.extensions.get_or_insert_default().insert("oneOf".to_owned(), forms);
    }
}

/// Sign many messages, each with a key's latest version.
///
/// An item's error does not affect the others.
#[utoipa::path(post, path = "/api/v1/sign", tag = "signatures", request_body = SignMany, extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "A signature or an error for each item", body = SignedMany), (status = "default", body = ErrorBody)))]
async fn sign_many(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let batch = read_sign_batch(&worker, &caller, &body)?;
    let Caller { session, unsealed } = &caller;
    let quick = batch.keys.iter().all(|key| unsealed.keystore.signs_quickly(key.as_ref()));
    let items = batch.items.len();
    let length = batch.keys.iter().map(|key| key.as_ref().key_id().algorithm().output_length()).max();
    let cost = BatchCost::of_results(quick, items * length.unwrap_or_default());
    let results = worker.run_batch_sliced(unsealed, session, cost, batch, items, SignBatch::sign).await?;
    Ok(json(write_signatures(&results)))
}

/// A batch whose keys are found and whose messages are decoded.
struct SignBatch {
    keys: Vec<KeySelector>,
    buffer: DecodedBuffer,
    /// The key and the message of each item, or the reason why it cannot be signed.
    items: Vec<Result<(usize, Range<usize>)>>,
}

fn read_sign_batch(worker: &Worker, caller: &Caller, body: &[u8]) -> Result<SignBatch> {
    let SignMany { key, items } = parse(body)?;
    count_items(worker, caller, items.len())?;
    let mut keys = BatchKeys::new(caller, TokenOperation::Sign);
    let mut buffer =
        DecodedBuffer::with_capacity(items.iter().map(|item| item.message.len()).sum::<usize>() / 4 * 3);
    let decoded = items.iter().map(|item| {
        let name = key_of(item.key.as_deref(), key.as_deref())?;
        Ok((keys.place(name, None)?, buffer.decode(&item.message, "message")?))
    });
    let decoded = decoded.collect();
    Ok(SignBatch { keys: keys.into_names(), items: decoded, buffer })
}

impl SignBatch {
    /// The results of one step of the items.
    fn sign(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<Signature>> {
        let items = self.items[step].iter().map(|item| {
            let (key, message) = item.as_ref().map_err(ApiError::clone)?;
            Ok(KeyMessage { key: self.keys[*key].as_ref(), message: self.buffer.get(message) })
        });
        sign_items(keystore, items.collect(), ApiError::from)
    }
}

fn write_signatures(results: &[Result<Signature>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + results.len() * 256);
    out.extend_from_slice(b"{\"results\":[");
    for (place, result) in results.iter().enumerate() {
        out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
        match result {
            Ok(signature) => write_signature(&mut out, signature),
            Err(error) => write_error(&mut out, &error.body),
        }
        out.extend_from_slice(b"}");
    }
    out.extend_from_slice(b"]}");
    out
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
    /// The hash function, for ECDSA and RSA: `sha256`, `sha384` or `sha512`. When absent, the one
    /// of the curve, and `sha256` for RSA.
    #[serde(default)]
    hash: Option<HashName>,
    /// How an RSA key pads the digest; `pss` when absent.
    #[serde(default)]
    padding: Option<PaddingName>,
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
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdict", body = Verified), (status = "default", body = ErrorBody)))]
async fn verify(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Verify)?;
    let Verify { message, signature, hash, padding, version } = parse(&body)?;
    let key = resolve_version(&caller, key, version)?;
    let (message, signature) = (decode(&message, "message")?, decode(&signature, "signature")?);
    let verdict = match scheme(key.key_id().algorithm(), hash, padding) {
        None => worker.verify(&caller.unsealed, &caller.session, key, message, signature).await?,
        Some((hash, padding)) => {
            let verify =
                move |keystore: &Keystore| keystore.verify_hashed(&key, &message, hash, padding, &signature);
            worker.run_blocking(&caller.unsealed, &caller.session, verify).await?
        }
    };
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
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let batch = read_verify_batch(&worker, &caller, &body)?;
    let is_quick = |key: &Result<KeyVersionId>| {
        key.as_ref().is_ok_and(|key| key.key_id().algorithm() == Algorithm::Ed25519)
    };
    let cost = BatchCost::quick_if(batch.keys.iter().all(is_quick));
    let items = batch.items.len();
    let results = worker
        .run_batch_sliced(&caller.unsealed, &caller.session, cost, batch, items, VerifyBatch::verify)
        .await?;
    Ok(json(write_verdicts(&results)))
}

/// The places of a key, a message and a signature.
type VerifyRanges = (usize, Range<usize>, Range<usize>);

/// A batch whose keys are found and whose texts are decoded.
struct VerifyBatch {
    keys: Vec<Result<KeyVersionId>>,
    buffer: DecodedBuffer,
    /// The key, the message and the signature of each item, or the reason why it cannot be
    /// verified.
    items: Vec<Result<VerifyRanges>>,
}

fn read_verify_batch(worker: &Worker, caller: &Caller, body: &[u8]) -> Result<VerifyBatch> {
    let VerifyMany { key, items } = parse(body)?;
    count_items(worker, caller, items.len())?;
    let mut keys = BatchKeys::new(caller, TokenOperation::Verify);
    let texts: usize = items.iter().map(|item| item.message.len() + item.signature.len()).sum();
    let mut buffer = DecodedBuffer::with_capacity(texts / 4 * 3);
    let decoded = items.iter().map(|item| {
        let key = keys.place(key_of(item.key.as_deref(), key.as_deref())?, item.version)?;
        let message = buffer.decode(&item.message, "message")?;
        Ok((key, message, buffer.decode(&item.signature, "signature")?))
    });
    let decoded = decoded.collect();
    Ok(VerifyBatch { keys: keys.into_ids(), items: decoded, buffer })
}

impl VerifyBatch {
    /// The results of one step of the items.
    fn verify(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<bool>> {
        let items = self.items[step].iter().map(|item| self.item(item)).collect();
        verify_items(keystore, items, ApiError::from)
    }

    fn item(&self, item: &Result<VerifyRanges>) -> Result<VerifyItem<'_>> {
        let (key, message, signature) = item.as_ref().map_err(ApiError::clone)?;
        let key = self.keys[*key].as_ref().map_err(ApiError::clone)?;
        Ok(VerifyItem { key, message: self.buffer.get(message), signature: self.buffer.get(signature) })
    }
}

fn write_verdicts(results: &[Result<bool>]) -> Vec<u8> {
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
