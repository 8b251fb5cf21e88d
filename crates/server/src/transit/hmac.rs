//! `/v1/transit/hmac`, and the part of `/v1/transit/verify` that verifies HMACs.

use std::num::NonZeroU32;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::response::Response;
use base64_simd::STANDARD;
use bulla_kms::token::TokenOperation;
use bulla_kms::{
    Code, HmacHash, KeyId, KeySelector, KeyUsage, KeyVersionId, Keystore, KmsError, Mac, SecretBytes,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody, write_results};
use super::batch::{cost_of, run_each};
use super::keys::{KEY_NAME_DOC, find, missing};
use super::request::{
    OptionalSecret, OptionalText, PathName, SecretVaultContent, VaultCaller, decode_into, decode_secret,
    items, number,
};
use super::scheme::{VERSION_PREFIX, split_version};
use super::signatures::{TransitVerify, TransitVerifyItem};
use crate::api::batch::count_items;
use crate::error::ApiError;
use crate::request::Caller;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_hmac).map(|router| router.put(erased(transit_hmac))))
        .routes(routes!(transit_hmac_with_hash).map(|router| router.put(erased(transit_hmac_with_hash))))
}

/// What to authenticate. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitHmac<'a> {
    /// The message, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: OptionalSecret<'a>,
    /// The version that makes the HMAC: 0 for the newest, or one from `min_encryption_version` on.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
    /// The hash function: `sha2-224`, `sha2-256` (default), `sha2-384` or `sha2-512`. A name in the
    /// path has precedence.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "sha2-256")]
    algorithm: OptionalText<'a>,
    /// Many messages instead of one.
    #[serde(borrow, default, deserialize_with = "items")]
    #[schema(max_items = 100_000)]
    batch_input: Option<Vec<TransitHmacItem<'a>>>,
}

/// One message of a batch.
#[derive(Default, Deserialize, ToSchema)]
struct TransitHmacItem<'a> {
    /// The message, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: OptionalSecret<'a>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    reference: OptionalText<'a>,
}

/// An HMAC, or the results of a batch.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitHmacMade {
    /// `vault:vN:` and the HMAC.
    #[schema(example = "vault:v1:TqO+cEodjPzMakGY76UWBOYHRFLhNuXrYQ2l6ywzNus=")]
    hmac: Option<String>,
    /// One for each item of a batch, in their order.
    batch_results: Option<Vec<TransitHmacMadeItem>>,
}

/// The result of one item.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitHmacMadeItem {
    hmac: Option<String>,
    /// Why there is no HMAC, in Vault's words.
    error: Option<String>,
    /// The error's code, for programs.
    code: Option<String>,
    reference: String,
}

/// Make the HMAC of a message, or of many, with a key's latest version or the one that is named.
/// PUT does the same.
#[utoipa::path(post, path = "/v1/transit/hmac/{name}", tag = "transit", request_body = TransitHmac,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("mac"))),
    responses((status = 200, description = "The HMACs", body = Envelope<TransitHmacMade>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_hmac(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    make(worker, caller, &name, None, &body).await
}

/// Make HMACs as above, with the hash function in the path. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/hmac/{name}/{algorithm}", tag = "transit", request_body = TransitHmac,
    params(("name" = String, Path, description = KEY_NAME_DOC),
        ("algorithm" = String, Path, description = "As `algorithm`", example = "sha2-256")),
    extensions(("x-permission" = json!("mac"))),
    responses((status = 200, description = "The HMACs", body = Envelope<TransitHmacMade>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_hmac_with_hash(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((name, algorithm)): PathName<(String, String)>,
    body: SecretVaultContent,
) -> Result<Response> {
    make(worker, caller, &name, Some(&algorithm), &body).await
}

async fn make(
    worker: Worker,
    caller: Caller,
    name: &str,
    in_path: Option<&str>,
    body: &SecretVaultContent,
) -> Result<Response> {
    let key_id = find(&caller, name, TokenOperation::Mac, || missing("encryption key not found"))?;
    let TransitHmac { input, key_version, algorithm, batch_input } = body.parse()?;
    let key = selector(key_id, key_version)?;
    let hash = hash_function(in_path.or(algorithm.as_deref()))?;
    let is_batch = batch_input.is_some();
    let items = match batch_input {
        Some(items) => items,
        None => vec![TransitHmacItem { input, reference: OptionalText::default() }],
    };
    check_items(&worker, &caller, is_batch, items.len())?;
    let read: Vec<_> = items.iter().map(|item| ToAuthenticate::read(&key, hash, item)).collect();
    // Other keys have a key for HMACs beside their own, whose uses are not counted.
    let is_counted = key.key_id().algorithm().usage() == KeyUsage::Authentication;
    let uses = if is_counted { items.len() } else { 0 };
    let length = read.iter().flatten().map(|item| item.message.len()).sum();
    let cost = cost_of(&caller, &read, |item| &item.key, uses, length);
    let mut made = run_each(&worker, &caller, cost, read, ToAuthenticate::hmac).await?;
    if !is_batch {
        let made = made.pop().unwrap_or_else(|| Err(ApiError::internal("no result").into()))?;
        return Ok(answer::written(&worker, 128, &[], |out| {
            out.push(b'{');
            write_hmac(out, &Ok(made));
            out.push(b'}');
        }));
    }
    let references = items.iter().map(|item| item.reference.as_deref().unwrap_or_default());
    Ok(answer::written(&worker, 160 * made.len(), &[], |out| {
        write_results(out, &made, references, write_hmac)
    }))
}

/// Counts the items of a request.
fn check_items(worker: &Worker, caller: &Caller, is_batch: bool, items: usize) -> Result<()> {
    if items == 0 {
        return Err(VaultError::invalid("missing batch input to process"));
    }
    if is_batch {
        count_items(worker, caller, items)?;
    }
    Ok(())
}

/// The key, or its version that makes an HMAC.
fn selector(key_id: KeyId, asked: Option<i64>) -> Result<KeySelector> {
    match asked.unwrap_or_default() {
        0 => Ok(key_id.into()),
        ..0 => Err(VaultError::invalid("key version does not exist (cannot be negative)")),
        asked => match u32::try_from(asked).ok().and_then(NonZeroU32::new) {
            Some(version) => Ok(key_id.version(version).into()),
            None => Err(VaultError::invalid(UNKNOWN_VERSION)),
        },
    }
}

const UNKNOWN_VERSION: &str = "key version does not exist";

/// The hash function of this name; SHA-256 without one.
fn hash_function(name: Option<&str>) -> Result<HmacHash> {
    match name.unwrap_or("sha2-256") {
        "sha2-224" => Ok(HmacHash::Sha224),
        "sha2-256" => Ok(HmacHash::Sha256),
        "sha2-384" => Ok(HmacHash::Sha384),
        "sha2-512" => Ok(HmacHash::Sha512),
        _ => Err(VaultError::invalid(
            "unsupported algorithm; must be sha2-224, sha2-256, sha2-384 or sha2-512",
        )),
    }
}

/// A message that is decoded.
struct ToAuthenticate {
    key: KeySelector,
    hash: HmacHash,
    message: SecretBytes,
}

impl ToAuthenticate {
    fn read(key: &KeySelector, hash: HmacHash, item: &TransitHmacItem<'_>) -> Result<Self> {
        let text = item.input.as_deref().ok_or_else(|| VaultError::invalid("missing input for HMAC"))?;
        Ok(Self { key: key.clone(), hash, message: decode_message(text)? })
    }

    fn hmac(&self, keystore: &Keystore) -> Result<Mac> {
        keystore.hmac(self.key.as_ref(), self.hash, &self.message).map_err(|error| {
            let error = without_device(error).in_vault_words(Code::UnknownVersion, UNKNOWN_VERSION);
            let too_old = "cannot generate HMAC: version is too old (disallowed by policy)";
            error
                .in_vault_words(Code::NotLatestVersion, too_old)
                .in_vault_words(Code::VersionNotUsable, too_old)
        })
    }
}

fn decode_message(text: &str) -> Result<SecretBytes> {
    let decoded = decode_secret(text, "input");
    decoded.map_err(|error| VaultError::in_words("unable to decode input as base64", error))
}

/// The keystore's error about a key whose secret is in a device.
fn without_device(error: KmsError) -> VaultError {
    match error.code {
        Code::NotExportable => VaultError::not_supported("keys in a device make no HMACs"),
        _ => error.into(),
    }
}

fn write_hmac(out: &mut Vec<u8>, made: &Result<Mac>) {
    use std::io::Write as _;
    let Ok(made) = made else { return };
    // Writing to a vector cannot fail.
    let _ = write!(out, "\"hmac\":\"{VERSION_PREFIX}{}:", made.key.version());
    STANDARD.encode_append(&made.bytes, out);
    out.push(b'"');
}

/// Verifies the HMACs of a request.
pub(super) async fn verify(
    worker: &Worker,
    caller: &Caller,
    key_id: KeyId,
    in_path: Option<&str>,
    request: TransitVerify<'_>,
) -> Result<Response> {
    let TransitVerify { input, hmac, hash_algorithm, algorithm, batch_input, .. } = request;
    let name = in_path.or_else(|| hash_algorithm.given()).or_else(|| algorithm.given());
    let hash = hash_function(name)?;
    let is_batch = batch_input.is_some();
    let items = match batch_input {
        Some(items) => items,
        None => vec![TransitVerifyItem { input, hmac, ..TransitVerifyItem::default() }],
    };
    check_items(worker, caller, is_batch, items.len())?;
    if is_batch && items.iter().any(|item| item.signature.as_deref().is_some()) {
        let words = "elements of batch_input must all provide 'signature' or all provide 'hmac'";
        return Err(VaultError::invalid(words));
    }
    if items.iter().any(|item| item.hmac.as_deref().is_none()) {
        return Err(VaultError::invalid("some elements of batch_input are missing 'hmac'"));
    }
    let read: Vec<_> = items.iter().map(|item| ToVerify::read(&key_id, hash, item)).collect();
    let length = read.iter().flatten().map(|item| item.message.len()).sum();
    // Verifying uses nothing up, so the versions do not matter.
    let cost = caller.cost_of_secrets((&key_id).into(), 0, length);
    let mut verdicts = run_each(worker, caller, cost, read, ToVerify::verify).await?;
    if !is_batch {
        let verdict = verdicts.pop().unwrap_or_else(|| Err(ApiError::internal("no result").into()))?;
        return Ok(answer::written(worker, 16, &[], |out| {
            out.push(b'{');
            write_verdict(out, &Ok(verdict));
            out.push(b'}');
        }));
    }
    let references = items.iter().map(|item| item.reference.as_deref().unwrap_or_default());
    Ok(answer::written(worker, 64 * verdicts.len(), &[], |out| {
        write_results(out, &verdicts, references, write_verdict);
    }))
}

fn write_verdict(out: &mut Vec<u8>, verdict: &Result<bool>) {
    let text: &[u8] = if matches!(verdict, Ok(true)) { b"\"valid\":true" } else { b"\"valid\":false" };
    out.extend_from_slice(text);
}

/// An HMAC that is decoded.
struct ToVerify {
    key: KeyVersionId,
    hash: HmacHash,
    message: SecretBytes,
    mac: Vec<u8>,
}

impl ToVerify {
    fn read(key_id: &KeyId, hash: HmacHash, item: &TransitVerifyItem<'_>) -> Result<Self> {
        let input = item.input.as_deref().ok_or_else(|| VaultError::invalid("missing input"))?;
        let message = decode_message(input)?;
        let (version, base64) = split_version(item.hmac.as_deref().unwrap_or_default(), "HMAC")?;
        let mut mac = Vec::new();
        let words = "unable to decode verification HMAC as base64";
        decode_into(base64, "hmac", &mut mac).map_err(|error| VaultError::in_words(words, error))?;
        if version < 1 {
            let error = KmsError::new(Code::VersionNotUsable, "versions begin with 1");
            return Err(VaultError::in_words(TOO_OLD, ApiError::from(error)));
        }
        let version = u32::try_from(version).ok().and_then(NonZeroU32::new);
        let version = version.ok_or_else(|| VaultError::invalid(TOO_NEW))?;
        Ok(Self { key: key_id.version(version), hash, message, mac })
    }

    fn verify(&self, keystore: &Keystore) -> Result<bool> {
        let verdict = keystore.verify_hmac(&self.key, self.hash, &self.message, &self.mac);
        let verdict = verdict.map_err(|error| {
            let error = without_device(error).in_vault_words(Code::UnknownVersion, TOO_NEW);
            error.in_vault_words(Code::VersionNotUsable, TOO_OLD)
        });
        Ok(verdict?.is_valid())
    }
}

const TOO_OLD: &str = "cannot verify HMAC: version is too old (disallowed by policy)";
const TOO_NEW: &str = "invalid HMAC: version is too new";
