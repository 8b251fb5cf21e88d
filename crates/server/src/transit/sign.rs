//! `/v1/transit/sign`.

use std::num::NonZeroU32;
use std::ops::Range;

use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KeyId, KeySelector, Keystore, SignItem, Signature};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use super::envelope::{self, Envelope};
use super::error::{Result, VaultError, VaultErrorBody};
use super::extract::{Body, By, Named};
use super::key::{NAME, find, missing};
use super::lenient::{Text, decode_into, flag, items, number};
use super::scheme::{Marshaling, Parameters, Scheme};
use super::signature;
use crate::api::items::count;
use crate::error::ApiError;
use crate::request::Caller;
use crate::service::{Cost, Worker};

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_sign).map(|router| router.put(transit_sign)))
        .routes(routes!(transit_sign_with_hash).map(|router| router.put(transit_sign_with_hash)))
}

/// What to sign. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitSign<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: Text<'a>,
    /// The version that signs: 0 for the newest, or one from `min_encryption_version` on.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
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
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: Text<'a>,
    /// `asn1` or `jws`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "asn1")]
    marshaling_algorithm: Text<'a>,
    /// Many messages instead of one.
    #[serde(borrow, default, deserialize_with = "items")]
    #[schema(max_items = 100_000)]
    batch_input: Option<Vec<TransitSignItem<'a>>>,
}

/// One message of a batch.
#[derive(Default, Deserialize, ToSchema)]
pub(super) struct TransitSignItem<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: Text<'a>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: Text<'a>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    reference: Text<'a>,
}

/// A signature, or the results of a batch.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(super) struct TransitSigned {
    /// `vault:vN:` and the signature.
    #[schema(example = "vault:v1:mF2J...")]
    signature: Option<String>,
    /// The version that signed.
    key_version: Option<u32>,
    /// One for each item of a batch, in their order.
    batch_results: Option<Vec<TransitSignedItem>>,
}

/// The result of one item.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
pub(super) struct TransitSignedItem {
    signature: Option<String>,
    /// The version that signed; 0 if none did.
    key_version: u32,
    /// Why there is no signature, in Vault's words.
    error: Option<String>,
    /// The same, for programs.
    code: Option<String>,
    reference: String,
}

/// Sign a message, or many, with a key's newest version or the one that is named. PUT does the
/// same.
#[utoipa::path(post, path = "/v1/transit/sign/{name}", tag = "transit", request_body = TransitSign,
    params(("name" = String, Path, description = NAME)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signatures", body = Envelope<TransitSigned>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_sign(
    State(worker): State<Worker>,
    By(caller): By,
    Named(name): Named<String>,
    body: Body,
) -> Result<Response> {
    sign(worker, caller, &name, None, &body).await
}

/// The same, with the hash function in the path.
#[utoipa::path(post, path = "/v1/transit/sign/{name}/{hash}", tag = "transit", request_body = TransitSign,
    params(("name" = String, Path, description = NAME), ("hash" = String, Path, description = "As `hash_algorithm`")),
    extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signatures", body = Envelope<TransitSigned>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_sign_with_hash(
    State(worker): State<Worker>,
    By(caller): By,
    Named((name, hash)): Named<(String, String)>,
    body: Body,
) -> Result<Response> {
    sign(worker, caller, &name, Some(&hash), &body).await
}

async fn sign(
    worker: Worker,
    caller: Caller,
    name: &str,
    hash: Option<&str>,
    body: &Body,
) -> Result<Response> {
    let key_id = find(&caller, name, TokenOperation::Sign, || missing("signing key not found"))?;
    let request: TransitSign<'_> = body.parse()?;
    let parameters = Parameters {
        in_path: hash,
        hash_algorithm: &request.hash_algorithm,
        algorithm: &request.algorithm,
        prehashed: request.prehashed.unwrap_or_default(),
        marshaling: &request.marshaling_algorithm,
    };
    let scheme = parameters.scheme(key_id.algorithm())?;
    let key = version(key_id, request.key_version)?;
    let Some(items) = request.batch_input else {
        let signature =
            sign_one(&worker, &caller, key, scheme, &request.input, &request.signature_context).await?;
        return Ok(envelope::written(&worker, 32 + signature.bytes.len() * 4 / 3, &[], |out| {
            out.extend_from_slice(b"{");
            write_signature(out, &signature, scheme.marshaling);
            out.extend_from_slice(b"}");
        }));
    };
    if items.is_empty() {
        return Err(VaultError::invalid("missing batch input to process"));
    }
    count(&worker, &caller, items.len())?;
    let batch = Batch::read(key, scheme, &items);
    let results = sign_many(&worker, &caller, batch).await?;
    let length = 128 * results.len() + scheme.algorithm.output_length() * results.len() * 4 / 3;
    Ok(envelope::written(&worker, length, &[], |out| write(out, &results, &items, scheme.marshaling)))
}

/// The key, or its version that signs.
fn version(key_id: KeyId, asked: Option<i64>) -> Result<KeySelector> {
    match asked.unwrap_or_default() {
        0 => Ok(key_id.into()),
        ..0 => Err(VaultError::invalid("requested version for signing is negative")),
        asked => match u32::try_from(asked).ok().and_then(NonZeroU32::new) {
            Some(version) => Ok(key_id.version(version).into()),
            None => Err(VaultError::invalid(TOO_NEW)),
        },
    }
}

const TOO_NEW: &str = "requested version for signing is higher than the latest key version";

/// The keystore's error in Vault's words. A key of which only the newest version signs is one in
/// Vault whose minimum version is the newest.
fn called(error: impl Into<VaultError>) -> VaultError {
    let too_old = "requested version for signing is less than the minimum encryption key version";
    let error = error.into().called(Code::UnknownVersion, TOO_NEW);
    error.called(Code::NotLatestVersion, too_old).called(Code::VersionNotUsable, too_old)
}

async fn sign_one(
    worker: &Worker,
    caller: &Caller,
    key: KeySelector,
    scheme: Scheme,
    input: &Text<'_>,
    context: &Text<'_>,
) -> Result<Signature> {
    let mut message = Vec::with_capacity(input.as_deref().map_or(0, str::len) / 4 * 3);
    decode_input(input, &mut message)?;
    let context = decode_context(context, scheme)?;
    let signed = match scheme.prehashed(&message, &context)? {
        Some(digest) => {
            let sign = move |keystore: &Keystore| keystore.sign_prehashed(key.as_ref(), &digest);
            worker.run_blocking(&caller.unsealed, &caller.session, sign).await
        }
        None => worker.sign(&caller.unsealed, &caller.session, key, message).await,
    };
    signed.map_err(called)
}

/// Appends the bytes that an item's input encodes.
pub(super) fn decode_input(input: &Text<'_>, buffer: &mut Vec<u8>) -> Result<Range<usize>> {
    let text = input.as_deref().ok_or_else(|| VaultError::invalid("missing input"))?;
    let begin = buffer.len();
    let decoded = decode_into(text, "input", buffer);
    decoded.map_err(|error| VaultError::in_words("unable to decode input as base64", error))?;
    Ok(begin..buffer.len())
}

/// The context of a signature. Only Ed25519ph has one.
pub(super) fn decode_context(context: &Text<'_>, scheme: Scheme) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(text) = context.given() {
        if !scheme.has_context() {
            let message = "bulla signs with a signature_context as Ed25519ph alone: with prehashed=true and hash_algorithm=sha2-512";
            return Err(VaultError::not_supported(message));
        }
        let decoded = decode_into(text, "signature_context", &mut bytes);
        decoded.map_err(|error| VaultError::in_words("failed to base64-decode signature_context", error))?;
    }
    Ok(bytes)
}

/// Messages that are decoded.
struct Batch {
    key: KeySelector,
    scheme: Scheme,
    buffer: Vec<u8>,
    /// The place of each message and the context of its signature, or the reason why it cannot be
    /// signed.
    items: Vec<Result<(Range<usize>, Vec<u8>)>>,
}

impl Batch {
    fn read(key: KeySelector, scheme: Scheme, items: &[TransitSignItem<'_>]) -> Self {
        let texts = items.iter().map(|item| item.input.as_deref().map_or(0, str::len));
        let mut buffer = Vec::with_capacity(texts.sum::<usize>() / 4 * 3);
        let decoded = items.iter().map(|item| {
            let message = decode_input(&item.input, &mut buffer)?;
            Ok((message, decode_context(&item.signature_context, scheme)?))
        });
        let items = decoded.collect();
        Self { key, scheme, buffer, items }
    }

    /// The results of one step of the items.
    fn sign(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<Signature>> {
        let step = &self.items[step];
        if !self.scheme.signs_messages() {
            return step.iter().map(|item| self.sign_prehashed(keystore, item)).collect();
        }
        let good = step.iter().filter_map(|item| item.as_ref().ok());
        let items = good
            .map(|(message, _)| SignItem { key: self.key.as_ref(), message: &self.buffer[message.clone()] });
        let mut signed = keystore.sign_batch(&items.collect::<Vec<_>>()).into_iter();
        let none = || Err(ApiError::internal("the keystore gave too few signatures").into());
        let results = step.iter().map(|item| match item {
            Ok(_) => signed.next().map_or_else(none, |result| result.map_err(called)),
            Err(error) => Err(error.clone()),
        });
        results.collect()
    }

    fn sign_prehashed(
        &self,
        keystore: &Keystore,
        item: &Result<(Range<usize>, Vec<u8>)>,
    ) -> Result<Signature> {
        let (input, context) = item.as_ref().map_err(Clone::clone)?;
        let digest = self.scheme.prehashed(&self.buffer[input.clone()], context)?;
        let digest = digest.ok_or_else(|| ApiError::internal("the key signs messages"))?;
        keystore.sign_prehashed(self.key.as_ref(), &digest).map_err(called)
    }
}

async fn sign_many(worker: &Worker, caller: &Caller, batch: Batch) -> Result<Vec<Result<Signature>>> {
    let Caller { session, unsealed } = caller;
    let quick = unsealed.keystore.signs_quickly(batch.key.as_ref()) && batch.scheme.signs_messages();
    let items = batch.items.len();
    let cost = Cost::of_results(quick, items * batch.scheme.algorithm.output_length());
    Ok(worker.run_batch_sliced(unsealed, session, cost, batch, items, Batch::sign).await?)
}

/// Writes the fields of a signature.
fn write_signature(out: &mut Vec<u8>, signature: &Signature, marshaling: Marshaling) {
    use std::io::Write as _;
    out.extend_from_slice(b"\"signature\":\"");
    signature::write(out, signature, marshaling);
    // Writing to a vector cannot fail.
    let _ = write!(out, "\",\"key_version\":{}", signature.key.version());
}

/// Writes `"error":...,"code":...`: why an item has no result.
pub(super) fn write_error(out: &mut Vec<u8>, error: &VaultError) {
    out.extend_from_slice(b"\"error\":");
    write_text(out, error.words());
    out.extend_from_slice(b",\"code\":");
    write_text(out, error.code());
}

/// Writes `,"reference":...}`: the end of an item's result.
pub(super) fn write_reference(out: &mut Vec<u8>, reference: &Text<'_>) {
    out.extend_from_slice(b",\"reference\":");
    write_text(out, reference.as_deref().unwrap_or_default());
    out.extend_from_slice(b"}");
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing to a vector cannot fail, and every text can be written as JSON.
    let _ = serde_json::to_writer(out, text);
}

fn write(
    out: &mut Vec<u8>,
    results: &[Result<Signature>],
    items: &[TransitSignItem<'_>],
    marshaling: Marshaling,
) {
    out.extend_from_slice(b"{\"batch_results\":[");
    for (place, (result, item)) in results.iter().zip(items).enumerate() {
        out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
        match result {
            Ok(signature) => write_signature(out, signature, marshaling),
            Err(error) => {
                out.extend_from_slice(b"\"key_version\":0,");
                write_error(out, error);
            }
        }
        write_reference(out, &item.reference);
    }
    out.extend_from_slice(b"]}");
}
