//! Signing one message, and many.

use std::borrow::Cow;
use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeySelector, Keystore, SignItem, Signature};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::items::{Buffer, Keys, count, key_of, write_error};
use super::keys::KEY;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{Caller, Content, Items, Path, decode, encode, parse, resolve};
use crate::service::{Cost, Worker};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(sign)).routes(routes!(sign_many))
}

/// A message to sign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Sign<'a> {
    /// The message, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    message: Cow<'a, str>,
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

/// Sign a message with a key's newest version.
#[utoipa::path(post, path = "/api/v1/keys/{key}/sign", tag = "signatures", request_body = Sign,
    params(("key" = String, Path, description = KEY)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signature", body = Signed), (status = "default", body = ErrorBody)))]
async fn sign(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    Content(body): Content,
) -> Result<Response> {
    let key = resolve(&caller, &key, TokenOperation::Sign)?;
    let Sign { message } = parse(&body)?;
    let message = decode(&message, "message")?;
    let signature = worker.sign(&caller.unsealed, &caller.session, key, message).await?;
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

/// A signature, or why there is none.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it describes what is written by hand")]
enum SignedOne {
    Signed(Signed),
    Failed(Failed),
}

/// Why one item of a batch has no result.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct Failed {
    error: ErrorBody,
}

/// Sign many messages, each with a key's newest version.
///
/// An item's error does not affect the others.
#[utoipa::path(post, path = "/api/v1/sign", tag = "signatures", request_body = SignMany, extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "A signature or an error for each item", body = SignedMany), (status = "default", body = ErrorBody)))]
async fn sign_many(State(worker): State<Worker>, caller: Caller, Content(body): Content) -> Result<Response> {
    let batch = read(&worker, &caller, &body)?;
    let Caller { session, unsealed } = &caller;
    let quick = batch.keys.iter().all(|key| unsealed.keystore.signs_quickly(key.as_ref()));
    let items = batch.items.len();
    let length = batch.keys.iter().map(|key| key.as_ref().key_id().algorithm().output_length()).max();
    let cost = Cost::of_results(quick, items * length.unwrap_or_default());
    let results = worker.run_batch_sliced(unsealed, session, cost, batch, items, Batch::sign).await?;
    Ok(json(write(&results)))
}

/// A batch whose keys are found and whose messages are decoded.
struct Batch {
    keys: Vec<KeySelector>,
    buffer: Buffer,
    /// The key and the message of each item, or the reason why it cannot be signed.
    items: Vec<Result<(usize, Range<usize>)>>,
}

fn read(worker: &Worker, caller: &Caller, body: &[u8]) -> Result<Batch> {
    let SignMany { key, items } = parse(body)?;
    count(worker, caller, items.len())?;
    let mut keys = Keys::new(caller, TokenOperation::Sign);
    let mut buffer =
        Buffer::with_capacity(items.iter().map(|item| item.message.len()).sum::<usize>() / 4 * 3);
    let decoded = items.iter().map(|item| {
        let name = key_of(item.key.as_deref(), key.as_deref())?;
        Ok((keys.place(name, None)?, buffer.decode(&item.message, "message")?))
    });
    let decoded = decoded.collect();
    Ok(Batch { keys: keys.into_names(), items: decoded, buffer })
}

impl Batch {
    /// The results of one step of the items.
    fn sign(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<Signature>> {
        let step = &self.items[step];
        let good = step.iter().filter_map(|item| item.as_ref().ok());
        let items = good.map(|(key, message)| SignItem {
            key: self.keys[*key].as_ref(),
            message: self.buffer.get(message),
        });
        let mut signed = keystore.sign_batch(&items.collect::<Vec<_>>()).into_iter();
        let none = || Err(ApiError::internal("the keystore gave too few signatures"));
        let results = step.iter().map(|item| match item {
            Ok(_) => signed.next().map_or_else(none, |result| result.map_err(Into::into)),
            Err(error) => Err(error.clone()),
        });
        results.collect()
    }
}

fn write(results: &[Result<Signature>]) -> Vec<u8> {
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
