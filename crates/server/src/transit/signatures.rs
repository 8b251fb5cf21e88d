//! `/v1/transit/sign` and `/v1/transit/verify`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{
    Algorithm, Code, KeyId, KeyMessage, KeySelector, KeyVersionId, Keystore, Signature, VerifyItem,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{Envelope, Result, VaultError, VaultErrorBody, write_results};
use super::keys::{KEY_NAME_DOC, find, missing, selector, version_error};
use super::request::{
    OptionalText, PathName, VaultBody, VaultCaller, decode_into, flag, items, lenient, number,
};
use super::scheme::{Marshaling, SaltLength, Scheme, SchemeParameters, VERSION_TOO_OLD};
use super::{answer, hmac, scheme};
use crate::api::batch::{count_items, sign_items, verify_items};
use crate::request::Caller;
use crate::service::{BatchCost, Worker};

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_sign).map(|router| router.put(erased(transit_sign))))
        .routes(routes!(transit_sign_with_hash).map(|router| router.put(erased(transit_sign_with_hash))))
        .routes(routes!(transit_verify).map(|router| router.put(erased(transit_verify))))
        .routes(routes!(transit_verify_with_hash).map(|router| router.put(erased(transit_verify_with_hash))))
}

/// What to sign. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitSign<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: OptionalText<'a>,
    /// The version that signs: 0 for the newest, or one from `min_encryption_version` on.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
    /// The hash function: `sha2-512` for Ed25519ph; `sha2-256` (default), `sha2-384` or `sha2-512`
    /// for ECDSA and RSA.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "sha2-256")]
    hash_algorithm: OptionalText<'a>,
    /// The older name of `hash_algorithm`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    algorithm: OptionalText<'a>,
    /// Whether the input is a digest: SHA-512 for Ed25519ph, or of the hash function for ECDSA and
    /// RSA.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    prehashed: Option<bool>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: OptionalText<'a>,
    /// `asn1` or `jws`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "asn1")]
    marshaling_algorithm: OptionalText<'a>,
    /// How an RSA key pads the digest: `pss` (default) or `pkcs1v15`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "pss")]
    signature_algorithm: OptionalText<'a>,
    /// The length of the salt of `pss`: `auto` (default), `hash`, or a number of bytes. `auto`
    /// makes the longest salt, and verifies the usual ones.
    #[serde(default, deserialize_with = "lenient")]
    #[schema(value_type = Option<String>, example = "auto")]
    salt_length: Option<SaltLength>,
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
    input: OptionalText<'a>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: OptionalText<'a>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    reference: OptionalText<'a>,
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
    /// The error's code, for programs.
    code: Option<String>,
    reference: String,
}

/// Sign a message, or many, with a key's latest version or the one that is named. PUT does the
/// same.
#[utoipa::path(post, path = "/v1/transit/sign/{name}", tag = "transit", request_body = TransitSign,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signatures", body = Envelope<TransitSigned>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_sign(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    sign(worker, caller, &name, None, &body).await
}

/// Sign as above, with the hash function in the path. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/sign/{name}/{hash}", tag = "transit", request_body = TransitSign,
    params(("name" = String, Path, description = KEY_NAME_DOC), ("hash" = String, Path, description = "As `hash_algorithm`")),
    extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signatures", body = Envelope<TransitSigned>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_sign_with_hash(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((name, hash)): PathName<(String, String)>,
    body: VaultBody,
) -> Result<Response> {
    sign(worker, caller, &name, Some(&hash), &body).await
}

async fn sign(
    worker: Worker,
    caller: Caller,
    name: &str,
    hash: Option<&str>,
    body: &VaultBody,
) -> Result<Response> {
    let key_id = find(&caller, name, TokenOperation::Sign, || missing("signing key not found"))?;
    let request: TransitSign<'_> = body.parse()?;
    let parameters = SchemeParameters {
        in_path: hash,
        hash_algorithm: &request.hash_algorithm,
        algorithm: &request.algorithm,
        prehashed: request.prehashed.unwrap_or_default(),
        marshaling: &request.marshaling_algorithm,
        signature_algorithm: &request.signature_algorithm,
        salt_length: request.salt_length,
    };
    let scheme = parameters.scheme(key_id.algorithm())?;
    let key = selector(key_id, request.key_version, "signing")?;
    let Some(items) = request.batch_input else {
        let signature =
            sign_one(&worker, &caller, key, scheme, &request.input, &request.signature_context).await?;
        return Ok(answer::written(&worker, 32 + signature.bytes.len() * 4 / 3, &[], |out| {
            out.extend_from_slice(b"{");
            write_signature(out, &signature, scheme.marshaling);
            out.extend_from_slice(b"}");
        }));
    };
    if items.is_empty() {
        return Err(VaultError::invalid("missing batch input to process"));
    }
    count_items(&worker, &caller, items.len())?;
    let batch = SignBatch::read(key, scheme, &items);
    let results = sign_many(&worker, &caller, batch).await?;
    let length = 128 * results.len() + scheme.algorithm.output_length() * results.len() * 4 / 3;
    Ok(answer::written(&worker, length, &[], |out| {
        let references = items.iter().map(|item| item.reference.as_deref().unwrap_or_default());
        write_results(out, &results, references, |out, result| match result {
            Ok(signature) => write_signature(out, signature, scheme.marshaling),
            Err(_) => out.extend_from_slice(b"\"key_version\":0"),
        });
    }))
}

/// The keystore's error in Vault's words.
fn signing_error(error: impl Into<VaultError>) -> VaultError {
    version_error(error, "signing")
}

async fn sign_one(
    worker: &Worker,
    caller: &Caller,
    key: KeySelector,
    scheme: Scheme,
    input: &OptionalText<'_>,
    context: &OptionalText<'_>,
) -> Result<Signature> {
    let mut message = Vec::with_capacity(input.as_deref().map_or(0, str::len) / 4 * 3);
    decode_input(input, scheme, &mut message)?;
    let context = decode_context(context, scheme)?;
    let signed = if scheme.signs_messages() {
        worker.sign(&caller.unsealed, &caller.session, key, message).await
    } else {
        let cost = BatchCost::of_signature(&caller.unsealed.keystore, key.as_ref(), message.len());
        let sign = move |keystore: &Keystore| scheme.sign(keystore, key.as_ref(), &message, &context);
        worker.run_at_cost(&caller.unsealed, &caller.session, cost, sign).await
    };
    signed.map_err(signing_error)
}

/// Appends the bytes that an item's input encodes.
fn decode_input(input: &OptionalText<'_>, scheme: Scheme, buffer: &mut Vec<u8>) -> Result<Range<usize>> {
    let text = input.as_deref().ok_or_else(|| VaultError::invalid("missing input"))?;
    let begin = buffer.len();
    let decoded = decode_into(text, "input", buffer);
    decoded.map_err(|error| VaultError::in_words("unable to decode input as base64", error))?;
    scheme.check_length(&buffer[begin..])?;
    Ok(begin..buffer.len())
}

/// The context of a signature. Only Ed25519ph has one.
fn decode_context(context: &OptionalText<'_>, scheme: Scheme) -> Result<Vec<u8>> {
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
struct SignBatch {
    key: KeySelector,
    scheme: Scheme,
    buffer: Vec<u8>,
    /// The place of each message and the context of its signature, or the reason why it cannot be
    /// signed.
    items: Vec<Result<(Range<usize>, Vec<u8>)>>,
}

impl SignBatch {
    fn read(key: KeySelector, scheme: Scheme, items: &[TransitSignItem<'_>]) -> Self {
        let texts = items.iter().map(|item| item.input.as_deref().map_or(0, str::len));
        let mut buffer = Vec::with_capacity(texts.sum::<usize>() / 4 * 3);
        let decoded = items.iter().map(|item| {
            let message = decode_input(&item.input, scheme, &mut buffer)?;
            Ok((message, decode_context(&item.signature_context, scheme)?))
        });
        let items = decoded.collect();
        Self { key, scheme, buffer, items }
    }

    /// The results of one step of the items.
    fn sign(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<Signature>> {
        let step = &self.items[step];
        if !self.scheme.signs_messages() {
            return step.iter().map(|item| self.sign_one(keystore, item)).collect();
        }
        let items = step.iter().map(|item| {
            let (message, _) = item.as_ref().map_err(VaultError::clone)?;
            Ok(KeyMessage { key: self.key.as_ref(), message: &self.buffer[message.clone()] })
        });
        sign_items(keystore, items.collect(), signing_error)
    }

    fn sign_one(&self, keystore: &Keystore, item: &Result<(Range<usize>, Vec<u8>)>) -> Result<Signature> {
        let (input, context) = item.as_ref().map_err(VaultError::clone)?;
        let signed = self.scheme.sign(keystore, self.key.as_ref(), &self.buffer[input.clone()], context);
        signed.map_err(signing_error)
    }
}

async fn sign_many(worker: &Worker, caller: &Caller, batch: SignBatch) -> Result<Vec<Result<Signature>>> {
    let Caller { session, unsealed } = caller;
    let quick = unsealed.keystore.signs_quickly(batch.key.as_ref()) && batch.scheme.signs_messages();
    let items = batch.items.len();
    let cost = BatchCost::of_results(quick, items * batch.scheme.algorithm.output_length());
    Ok(worker.run_batch_sliced(unsealed, session, cost, batch, items, SignBatch::sign).await?)
}

/// Writes the fields of a signature.
fn write_signature(out: &mut Vec<u8>, signature: &Signature, marshaling: Marshaling) {
    use std::io::Write as _;
    out.extend_from_slice(b"\"signature\":\"");
    scheme::write_signature(out, signature, marshaling);
    // Writing to a vector cannot fail.
    let _ = write!(out, "\",\"key_version\":{}", signature.key.version());
}

/// What to verify. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransitVerify<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    pub(super) input: OptionalText<'a>,
    /// `vault:vN:` and the signature.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) signature: OptionalText<'a>,
    /// `vault:vN:` and the HMAC, instead of a signature. It needs the permission `verify_mac`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) hmac: OptionalText<'a>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    signature_context: OptionalText<'a>,
    /// The hash function: `sha2-512` for Ed25519ph; `sha2-256` (default), `sha2-384` or `sha2-512`
    /// for ECDSA and RSA.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "sha2-256")]
    pub(super) hash_algorithm: OptionalText<'a>,
    /// The older name of `hash_algorithm`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) algorithm: OptionalText<'a>,
    /// Whether the input is a digest: SHA-512 for Ed25519ph, or of the hash function for ECDSA and
    /// RSA.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    prehashed: Option<bool>,
    /// `asn1` or `jws`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "asn1")]
    marshaling_algorithm: OptionalText<'a>,
    /// How an RSA key pads the digest: `pss` (default) or `pkcs1v15`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "pss")]
    signature_algorithm: OptionalText<'a>,
    /// The length of the salt of `pss`: `auto` (default), `hash`, or a number of bytes. `auto`
    /// makes the longest salt, and verifies the usual ones.
    #[serde(default, deserialize_with = "lenient")]
    #[schema(value_type = Option<String>, example = "auto")]
    salt_length: Option<SaltLength>,
    /// Many signatures instead of one.
    #[serde(borrow, default, deserialize_with = "items")]
    #[schema(max_items = 100_000)]
    pub(super) batch_input: Option<Vec<TransitVerifyItem<'a>>>,
}

/// One signature of a batch.
#[derive(Default, Deserialize, ToSchema)]
pub(super) struct TransitVerifyItem<'a> {
    /// The message, base64; with `prehashed` its digest.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    pub(super) input: OptionalText<'a>,
    /// `vault:vN:` and the signature.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) signature: OptionalText<'a>,
    /// `vault:vN:` and the HMAC, instead of a signature. It needs the permission `verify_mac`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) hmac: OptionalText<'a>,
    /// The context of Ed25519ph, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) signature_context: OptionalText<'a>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    pub(super) reference: OptionalText<'a>,
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
    /// The error's code, for programs.
    code: Option<String>,
    reference: String,
}

/// Verify a signature or an HMAC, or many. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/verify/{name}", tag = "transit", request_body = TransitVerify,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdicts", body = Envelope<TransitVerified>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_verify(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    verify(worker, caller, &name, None, &body).await
}

/// Verify as above, with the hash function in the path. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/verify/{name}/{hash}", tag = "transit", request_body = TransitVerify,
    params(("name" = String, Path, description = KEY_NAME_DOC), ("hash" = String, Path, description = "As `hash_algorithm`")),
    extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdicts", body = Envelope<TransitVerified>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_verify_with_hash(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((name, hash)): PathName<(String, String)>,
    body: VaultBody,
) -> Result<Response> {
    verify(worker, caller, &name, Some(&hash), &body).await
}

async fn verify(
    worker: Worker,
    caller: Caller,
    name: &str,
    hash: Option<&str>,
    body: &VaultBody,
) -> Result<Response> {
    let key_id =
        find(&caller, name, TokenOperation::Verify, || missing("signature verification key not found"));
    let hmac_key = || find(&caller, name, TokenOperation::VerifyMac, || missing("encryption key not found"));
    if let Err(error) = &key_id {
        // The caller may verify HMACs alone.
        hmac_key().map_err(|_| error.clone())?;
    }
    let request: TransitVerify<'_> = body.parse()?;
    if request.is_of_hmacs() {
        let key_id = hmac_key()?;
        return hmac::verify(&worker, &caller, key_id, hash, request).await;
    }
    let key_id = key_id?;
    let parameters = SchemeParameters {
        in_path: hash,
        hash_algorithm: &request.hash_algorithm,
        algorithm: &request.algorithm,
        prehashed: request.prehashed.unwrap_or_default(),
        marshaling: &request.marshaling_algorithm,
        signature_algorithm: &request.signature_algorithm,
        salt_length: request.salt_length,
    };
    let scheme = parameters.scheme(key_id.algorithm())?;
    let TransitVerify { input, signature, signature_context, batch_input, .. } = request;
    if let Some(items) = batch_input {
        check_signatures_given(&items)?;
        count_items(&worker, &caller, items.len())?;
        let batch = VerifyBatch::read(&key_id, scheme, &items);
        let results = verify_many(&worker, &caller, batch).await?;
        return Ok(answer::written(&worker, 64 * results.len(), &[], |out| {
            let references = items.iter().map(|item| item.reference.as_deref().unwrap_or_default());
            write_results(out, &results, references, |out, valid| {
                let text: &[u8] =
                    if matches!(valid, Ok(true)) { b"\"valid\":true" } else { b"\"valid\":false" };
                out.extend_from_slice(text);
            });
        }));
    }
    let item = TransitVerifyItem { input, signature, signature_context, ..TransitVerifyItem::default() };
    check_signatures_given(std::slice::from_ref(&item))?;
    let valid = verify_one(&worker, &caller, &key_id, scheme, &item).await?;
    let text: &[u8] = if valid { b"{\"valid\":true}" } else { b"{\"valid\":false}" };
    Ok(answer::written(&worker, text.len(), &[], |out| out.extend_from_slice(text)))
}

impl TransitVerify<'_> {
    /// Whether an HMAC is to be verified. As in Vault, a signature beside it takes precedence.
    fn is_of_hmacs(&self) -> bool {
        let is_hmac = |hmac: &OptionalText<'_>, signature: &OptionalText<'_>| {
            hmac.as_deref().is_some() && signature.as_deref().is_none()
        };
        match &self.batch_input {
            Some(items) => items.iter().any(|item| is_hmac(&item.hmac, &item.signature)),
            None => is_hmac(&self.hmac, &self.signature),
        }
    }
}

/// Checks that all items are signatures.
fn check_signatures_given(items: &[TransitVerifyItem<'_>]) -> Result<()> {
    if items.is_empty() {
        return Err(VaultError::invalid("missing batch input to process"));
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
fn verification_error(error: impl Into<VaultError>) -> VaultError {
    let too_new = "invalid signature: version is too new";
    error
        .into()
        .in_vault_words(Code::UnknownVersion, too_new)
        .in_vault_words(Code::VersionNotUsable, VERSION_TOO_OLD)
}

async fn verify_one(
    worker: &Worker,
    caller: &Caller,
    key_id: &KeyId,
    scheme: Scheme,
    item: &TransitVerifyItem<'_>,
) -> Result<bool> {
    let (mut message, mut bytes) = (Vec::new(), Vec::new());
    decode_input(&item.input, scheme, &mut message)?;
    let (version, _) =
        scheme::read_signature(item.signature.as_deref().unwrap_or_default(), scheme, &mut bytes)?;
    let context = decode_context(&item.signature_context, scheme)?;
    let key = key_id.version(version);
    let verdict = if scheme.signs_messages() {
        worker.verify(&caller.unsealed, &caller.session, key, message, bytes).await
    } else {
        let verify = move |keystore: &Keystore| {
            let item = VerifyItem { key: &key, message: &message, signature: &bytes };
            scheme.verify(keystore, &item, &context)
        };
        worker.run_blocking(&caller.unsealed, &caller.session, verify).await
    };
    Ok(verdict.map_err(verification_error)?.is_valid())
}

/// One item that can be verified.
struct VerifyRanges {
    /// Which of the batch's versions.
    key: usize,
    message: Range<usize>,
    signature: Range<usize>,
    context: Vec<u8>,
}

/// Signatures that are decoded.
struct VerifyBatch {
    scheme: Scheme,
    keys: Vec<KeyVersionId>,
    buffer: Vec<u8>,
    /// The items, or the reason why each cannot be verified.
    items: Vec<Result<VerifyRanges>>,
}

impl VerifyBatch {
    fn read(key_id: &KeyId, scheme: Scheme, items: &[TransitVerifyItem<'_>]) -> Self {
        let length = |text: &OptionalText<'_>| text.as_deref().map_or(0, str::len);
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
    ) -> Result<VerifyRanges> {
        let message = decode_input(&item.input, self.scheme, &mut self.buffer)?;
        let text = item.signature.as_deref().unwrap_or_default();
        let (version, signature) = scheme::read_signature(text, self.scheme, &mut self.buffer)?;
        let context = decode_context(&item.signature_context, self.scheme)?;
        let key = *versions.entry(version).or_insert_with(|| {
            self.keys.push(key_id.version(version));
            self.keys.len() - 1
        });
        Ok(VerifyRanges { key, message, signature, context })
    }

    /// The results of one step of the items.
    fn verify(&self, keystore: &Keystore, step: Range<usize>) -> Vec<Result<bool>> {
        let step = &self.items[step];
        if !self.scheme.signs_messages() {
            return step.iter().map(|item| self.verify_one(keystore, item)).collect();
        }
        let items = step.iter().map(|item| Ok(self.item(item.as_ref().map_err(VaultError::clone)?)));
        verify_items(keystore, items.collect(), verification_error)
    }

    fn item(&self, item: &VerifyRanges) -> VerifyItem<'_> {
        let VerifyRanges { key, message, signature, .. } = item;
        let (message, signature) = (&self.buffer[message.clone()], &self.buffer[signature.clone()]);
        VerifyItem { key: &self.keys[*key], message, signature }
    }

    fn verify_one(&self, keystore: &Keystore, item: &Result<VerifyRanges>) -> Result<bool> {
        let item = item.as_ref().map_err(VaultError::clone)?;
        let verdict = self.scheme.verify(keystore, &self.item(item), &item.context);
        Ok(verdict.map_err(verification_error)?.is_valid())
    }
}

async fn verify_many(worker: &Worker, caller: &Caller, batch: VerifyBatch) -> Result<Vec<Result<bool>>> {
    let quick = batch.scheme.algorithm == Algorithm::Ed25519 && batch.scheme.signs_messages();
    let (cost, items) = (BatchCost::quick_if(quick), batch.items.len());
    Ok(worker
        .run_batch_sliced(&caller.unsealed, &caller.session, cost, batch, items, VerifyBatch::verify)
        .await?)
}
