//! `/v1/transit/verify`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;

use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Algorithm, Code, KeyId, KeyVersionId, Keystore, Verdict, VerifyItem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use super::envelope::{self, Envelope};
use super::error::{Result, VaultError, VaultErrorBody};
use super::extract::{Body, By, Named};
use super::key::{NAME, find, missing};
use super::lenient::{Text, flag, items};
use super::scheme::{Parameters, Scheme};
use super::sign::{decode_context, decode_input, write_error, write_reference};
use super::signature::{self, TOO_OLD};
use crate::api::items::count;
use crate::error::ApiError;
use crate::request::Caller;
use crate::service::{Cost, Worker};

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_verify).map(|router| router.put(transit_verify)))
        .routes(routes!(transit_verify_with_hash).map(|router| router.put(transit_verify_with_hash)))
}

/// What to verify. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitVerify<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: Text<'a>,
    /// `vault:vN:` and the signature.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature: Text<'a>,
    /// Not offered.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    hmac: Text<'a>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: Text<'a>,
    /// The hash function: `sha2-512` for Ed25519ph; `sha2-256` (default), `sha2-384` or `sha2-512`
    /// for ECDSA.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "sha2-256")]
    hash_algorithm: Text<'a>,
    /// The older name of `hash_algorithm`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    algorithm: Text<'a>,
    /// Whether the input is a digest: SHA-512 for Ed25519ph, or of the hash function for ECDSA.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    prehashed: Option<bool>,
    /// `asn1` or `jws`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "asn1")]
    marshaling_algorithm: Text<'a>,
    /// Many signatures instead of one.
    #[serde(borrow, default, deserialize_with = "items")]
    #[schema(max_items = 100_000)]
    batch_input: Option<Vec<TransitVerifyItem<'a>>>,
}

/// One signature of a batch.
#[derive(Default, Deserialize, ToSchema)]
pub(super) struct TransitVerifyItem<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: Text<'a>,
    /// `vault:vN:` and the signature.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature: Text<'a>,
    /// Not offered.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    hmac: Text<'a>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: Text<'a>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    reference: Text<'a>,
}

/// A verdict, or the results of a batch.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(super) struct TransitVerified {
    valid: Option<bool>,
    /// One for each item of a batch, in their order.
    batch_results: Option<Vec<TransitVerifiedItem>>,
}

/// The result of one item.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(super) struct TransitVerifiedItem {
    valid: bool,
    /// Why nothing was verified, in Vault's words.
    error: Option<String>,
    /// The same, for programs.
    code: Option<String>,
    reference: String,
}

/// Verify a signature, or many. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/verify/{name}", tag = "transit", request_body = TransitVerify,
    params(("name" = String, Path, description = NAME)), extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdicts", body = Envelope<TransitVerified>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_verify(
    State(worker): State<Worker>,
    By(caller): By,
    Named(name): Named<String>,
    body: Body,
) -> Result<Response> {
    verify(worker, caller, &name, None, &body).await
}

/// The same, with the hash function in the path.
#[utoipa::path(post, path = "/v1/transit/verify/{name}/{hash}", tag = "transit", request_body = TransitVerify,
    params(("name" = String, Path, description = NAME), ("hash" = String, Path, description = "As `hash_algorithm`")),
    extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdicts", body = Envelope<TransitVerified>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_verify_with_hash(
    State(worker): State<Worker>,
    By(caller): By,
    Named((name, hash)): Named<(String, String)>,
    body: Body,
) -> Result<Response> {
    verify(worker, caller, &name, Some(&hash), &body).await
}

async fn verify(
    worker: Worker,
    caller: Caller,
    name: &str,
    hash: Option<&str>,
    body: &Body,
) -> Result<Response> {
    let key_id =
        find(&caller, name, TokenOperation::Verify, || missing("signature verification key not found"))?;
    let request: TransitVerify<'_> = body.parse()?;
    let parameters = Parameters {
        in_path: hash,
        hash_algorithm: &request.hash_algorithm,
        algorithm: &request.algorithm,
        prehashed: request.prehashed.unwrap_or_default(),
        marshaling: &request.marshaling_algorithm,
    };
    let scheme = parameters.scheme(key_id.algorithm())?;
    let TransitVerify { input, signature, hmac, signature_context, batch_input, .. } = request;
    if let Some(items) = batch_input {
        check(&items)?;
        count(&worker, &caller, items.len())?;
        let batch = Batch::read(&key_id, scheme, &items);
        let results = verify_many(&worker, &caller, batch).await?;
        return Ok(envelope::written(&worker, 64 * results.len(), &[], |out| write(out, &results, &items)));
    }
    let item =
        TransitVerifyItem { input, signature, hmac, signature_context, ..TransitVerifyItem::default() };
    check(std::slice::from_ref(&item))?;
    let valid = verify_one(&worker, &caller, &key_id, scheme, &item).await?;
    let text: &[u8] = if valid { b"{\"valid\":true}" } else { b"{\"valid\":false}" };
    Ok(envelope::written(&worker, text.len(), &[], |out| out.extend_from_slice(text)))
}

/// Checks that all items are signatures.
fn check(items: &[TransitVerifyItem<'_>]) -> Result<()> {
    if items.is_empty() {
        return Err(VaultError::invalid("missing batch input to process"));
    }
    if items.iter().any(|item| item.hmac.as_deref().is_some()) {
        return Err(VaultError::not_supported("bulla verifies signatures, not hmac"));
    }
    let signatures = items.iter().filter(|item| item.signature.as_deref().is_some()).count();
    match signatures {
        0 => Err(VaultError::invalid("no 'signature' was given to verify")),
        some if some < items.len() => {
            Err(VaultError::invalid("some elements of batch_input are missing 'signature'"))
        }
        _ => Ok(()),
    }
}

/// The keystore's error in Vault's words.
fn called(error: impl Into<VaultError>) -> VaultError {
    let too_new = "invalid signature: version is too new";
    error.into().called(Code::UnknownVersion, too_new).called(Code::VersionNotUsable, TOO_OLD)
}

async fn verify_one(
    worker: &Worker,
    caller: &Caller,
    key_id: &KeyId,
    scheme: Scheme,
    item: &TransitVerifyItem<'_>,
) -> Result<bool> {
    let (mut message, mut bytes) = (Vec::new(), Vec::new());
    decode_input(&item.input, &mut message)?;
    let (version, _) = signature::read(item.signature.as_deref().unwrap_or_default(), scheme, &mut bytes)?;
    let context = decode_context(&item.signature_context, scheme)?;
    let key = key_id.version(version);
    let verdict = match scheme.prehashed(&message, &context)? {
        Some(digest) => {
            let verify = move |keystore: &Keystore| keystore.verify_prehashed(&key, &digest, &bytes);
            worker.run_blocking(&caller.unsealed, &caller.session, verify).await
        }
        None => worker.verify(&caller.unsealed, &caller.session, key, message, bytes).await,
    };
    Ok(verdict.map_err(called)?.is_valid())
}

/// One item that can be verified.
struct Item {
    /// Which of the batch's versions.
    key: usize,
    message: Range<usize>,
    signature: Range<usize>,
    context: Vec<u8>,
}

/// Signatures that are decoded.
struct Batch {
    scheme: Scheme,
    keys: Vec<KeyVersionId>,
    buffer: Vec<u8>,
    /// The items, or the reason why each cannot be verified.
    items: Vec<Result<Item>>,
}

impl Batch {
    fn read(key_id: &KeyId, scheme: Scheme, items: &[TransitVerifyItem<'_>]) -> Self {
        let length = |text: &Text<'_>| text.as_deref().map_or(0, str::len);
        let texts: usize = items.iter().map(|item| length(&item.input) + length(&item.signature)).sum();
        let mut batch =
            Self { scheme, keys: Vec::new(), buffer: Vec::with_capacity(texts / 4 * 3), items: Vec::new() };
        let mut versions = HashMap::new();
        batch.items.reserve(items.len());
        for item in items {
            let item = batch.read_item(key_id, &mut versions, item);
            batch.items.push(item);
        }
        batch
    }

    fn read_item(
        &mut self,
        key_id: &KeyId,
        versions: &mut HashMap<NonZeroU32, usize>,
        item: &TransitVerifyItem<'_>,
    ) -> Result<Item> {
        let message = decode_input(&item.input, &mut self.buffer)?;
        let text = item.signature.as_deref().unwrap_or_default();
        let (version, signature) = signature::read(text, self.scheme, &mut self.buffer)?;
        let context = decode_context(&item.signature_context, self.scheme)?;
        let key = *versions.entry(version).or_insert_with(|| {
            self.keys.push(key_id.version(version));
            self.keys.len() - 1
        });
        Ok(Item { key, message, signature, context })
    }

    /// The results of one step of the items.
    fn verify(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<bool>> {
        let step = &self.items[step];
        if !self.scheme.signs_messages() {
            return step.iter().map(|item| self.verify_digest(keystore, item)).collect();
        }
        let items: Vec<_> =
            step.iter().filter_map(|item| item.as_ref().ok()).map(|item| self.item(item)).collect();
        let mut verdicts = keystore.verify_batch(&items).into_iter();
        let results = step.iter().map(|item| {
            let item = self.item(item.as_ref().map_err(Clone::clone)?);
            match verdicts.next() {
                Some(Verdict::Unusable) | None => {
                    keystore.check_usable(item.key).map_err(called)?;
                    Ok(false)
                }
                Some(verdict) => Ok(verdict.is_valid()),
            }
        });
        results.collect()
    }

    fn item(&self, item: &Item) -> VerifyItem<'_> {
        let Item { key, message, signature, .. } = item;
        let (message, signature) = (&self.buffer[message.clone()], &self.buffer[signature.clone()]);
        VerifyItem { key: &self.keys[*key], message, signature }
    }

    fn verify_digest(&self, keystore: &Keystore, item: &Result<Item>) -> Result<bool> {
        let item = item.as_ref().map_err(Clone::clone)?;
        let VerifyItem { key, message, signature } = self.item(item);
        let digest = self.scheme.prehashed(message, &item.context)?;
        let digest = digest.ok_or_else(|| ApiError::internal("the key signs messages"))?;
        Ok(keystore.verify_prehashed(key, &digest, signature).map_err(called)?.is_valid())
    }
}

async fn verify_many(worker: &Worker, caller: &Caller, batch: Batch) -> Result<Vec<Result<bool>>> {
    let quick = batch.scheme.algorithm == Algorithm::Ed25519 && batch.scheme.signs_messages();
    let (cost, items) = (Cost::quick_if(quick), batch.items.len());
    Ok(worker.run_batch_sliced(&caller.unsealed, &caller.session, cost, batch, items, Batch::verify).await?)
}

fn write(out: &mut Vec<u8>, results: &[Result<bool>], items: &[TransitVerifyItem<'_>]) {
    out.extend_from_slice(b"{\"batch_results\":[");
    for (place, (result, item)) in results.iter().zip(items).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        match result {
            Ok(true) => out.extend_from_slice(b"{\"valid\":true"),
            Ok(false) => out.extend_from_slice(b"{\"valid\":false"),
            Err(error) => {
                out.extend_from_slice(b"{\"valid\":false,");
                write_error(out, error);
            }
        }
        write_reference(out, &item.reference);
    }
    out.extend_from_slice(b"]}");
}
