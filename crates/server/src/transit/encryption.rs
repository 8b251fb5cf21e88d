//! `/v1/transit/encrypt`, `decrypt`, `rewrap` and `datakey`.

use std::io::Write as _;
use std::num::NonZeroU32;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base64_simd::STANDARD;
use bulla_kms::token::TokenOperation;
use bulla_kms::{
    Algorithm, Ciphertext, CiphertextParts, Code, DataKeyLength, EncryptionOptions, KeyDerivation, KeyId,
    KeySelector, KeyUsage, Keystore, KmsError, Plaintext, SecretBytes,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, ErrorOrResults, Result, VaultError, VaultErrorBody};
use super::batch::{Batch, FailureStatus, JSON_FRAME_LEN, RequestForm, check_not_empty, cost_of};
use super::change::{create_or_find, derivation, new_key};
use super::keys::{KEY_NAME_DOC, algorithm, find, is_visible, kind, label, missing, selector, version_error};
use super::request::{
    OptionalSecret, OptionalText, PathName, SecretVaultContent, VaultCaller, decode_into, decode_secret,
    flag, items, number,
};
use super::scheme::{VERSION_PREFIX, VERSION_TOO_OLD, split_version};
use crate::error::ApiError;
use crate::request::{Caller, resolve_key};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_encrypt).map(|router| router.put(erased(transit_encrypt))))
        .routes(routes!(transit_decrypt).map(|router| router.put(erased(transit_decrypt))))
        .routes(routes!(transit_rewrap).map(|router| router.put(erased(transit_rewrap))))
        .routes(routes!(transit_datakey).map(|router| router.put(erased(transit_datakey))))
}

const KEY_NOT_FOUND: &str = "encryption key not found";

const MISSING_CONTEXT: &str = "missing 'context' for key derivation; the key was created using a derived key, which \
                               means additional, per-request information must be included in order to perform \
                               operations with the key";

/// What to encrypt. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitEncrypt<'a> {
    /// The plaintext, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    plaintext: OptionalSecret<'a>,
    /// Associated data, base64. Only the same associated data decrypts the ciphertext.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    associated_data: OptionalText<'a>,
    /// The context from which the key is derived, base64, if the key is derived.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: OptionalText<'a>,
    /// The version that encrypts: 0 for the newest, or one from `min_encryption_version` on.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
    /// The type of the key, if this request makes it: `aes256-gcm96` (default) or another one that
    /// encrypts.
    #[serde(borrow, default, rename = "type")]
    #[schema(value_type = Option<String>)]
    kind: OptionalText<'a>,
    /// Whether the key encrypts convergently, if this request makes it.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    convergent_encryption: Option<bool>,
    /// The status of the answer, instead of 400, to a batch of which only some items fail.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    partial_failure_response_code: Option<i64>,
    /// Many plaintexts instead of one.
    #[serde(borrow, default, deserialize_with = "items")]
    #[schema(max_items = 100_000)]
    batch_input: Option<Vec<TransitEncryptItem<'a>>>,
}

/// One plaintext of a batch.
#[derive(Default, Deserialize, ToSchema)]
struct TransitEncryptItem<'a> {
    /// The plaintext, base64.
    #[serde(borrow, default)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    plaintext: OptionalSecret<'a>,
    /// Associated data, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    associated_data: OptionalText<'a>,
    /// The context from which the key is derived, base64. All items have one, or none.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: OptionalText<'a>,
    /// The version that encrypts.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    reference: OptionalText<'a>,
}

/// What to decrypt or to rewrap. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitDecrypt<'a> {
    /// `vault:vN:` and the ciphertext.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    ciphertext: OptionalText<'a>,
    /// The associated data with which it was encrypted, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    associated_data: OptionalText<'a>,
    /// The context with which it was encrypted, base64, if the key is derived.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: OptionalText<'a>,
    /// The version that encrypts again, for `rewrap`.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
    /// The status of the answer of `decrypt`, instead of 400, to a batch of which only some items
    /// fail.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    partial_failure_response_code: Option<i64>,
    /// Many ciphertexts instead of one.
    #[serde(borrow, default, deserialize_with = "items")]
    #[schema(max_items = 100_000)]
    batch_input: Option<Vec<TransitDecryptItem<'a>>>,
}

/// One ciphertext of a batch.
#[derive(Default, Deserialize, ToSchema)]
struct TransitDecryptItem<'a> {
    /// `vault:vN:` and the ciphertext.
    #[serde(borrow, default)]
    #[schema(value_type = String)]
    ciphertext: OptionalText<'a>,
    /// The associated data with which it was encrypted, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    associated_data: OptionalText<'a>,
    /// The context with which it was encrypted, base64. All items have one, or none.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: OptionalText<'a>,
    /// The version that encrypts again, for `rewrap`.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
    /// A text that the result repeats.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    reference: OptionalText<'a>,
}

/// A ciphertext, or the results of a batch.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitCiphertext {
    /// `vault:vN:` and the ciphertext.
    #[schema(example = "vault:v1:8SDd3WHDOjf7mq69CyCqYjBXAiQQAVZRkFM13ok481zoCmHnSeDX9vyf7w==")]
    ciphertext: Option<String>,
    /// The version that encrypted.
    key_version: Option<u32>,
    /// One for each item of a batch, in their order.
    batch_results: Option<Vec<TransitCiphertextItem>>,
}

/// The result of one item.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitCiphertextItem {
    ciphertext: Option<String>,
    /// The version that encrypted.
    key_version: Option<u32>,
    /// Why there is no ciphertext, in Vault's words.
    error: Option<String>,
    /// The error's code, for programs.
    code: Option<String>,
    reference: String,
}

/// A plaintext, or the results of a batch.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitPlaintext {
    /// The plaintext, base64.
    plaintext: Option<String>,
    /// One for each item of a batch, in their order.
    batch_results: Option<Vec<TransitPlaintextItem>>,
}

/// The result of one item.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitPlaintextItem {
    /// The plaintext, base64; empty after an error.
    plaintext: String,
    /// Why there is no plaintext, in Vault's words.
    error: Option<String>,
    /// The error's code, for programs.
    code: Option<String>,
    reference: String,
}

/// Encrypt a plaintext, or many, with a key's latest version or the one that is named. A caller who
/// may create keys makes the key, if there is none. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/encrypt/{name}", tag = "transit", request_body = TransitEncrypt,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("encrypt"))),
    responses((status = 200, description = "The ciphertexts", body = Envelope<TransitCiphertext>),
        (status = "default", body = ErrorOrResults<TransitCiphertext>)))]
async fn transit_encrypt(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    let found = key_to_encrypt_with(&caller, &name)?;
    let mut request: TransitEncrypt<'_> = body.parse()?;
    let (items, form) = request.take_items()?;
    form.count(&worker, &caller, items.len())?;
    let is_derived = all_or_none(items.iter().map(|item| &item.context))?;
    let key_id = match found {
        Some(key_id) => key_id,
        None => create(&worker, &caller, &name, &request, is_derived).await?,
    };
    let key = EncryptionKey::new(&caller, key_id)?;
    let read: Vec<_> = items.iter().map(|item| ToEncrypt::read(&key, item)).collect();
    let length = items.iter().map(|item| item.plaintext.as_deref().map_or(0, str::len)).sum();
    let batch = Batch {
        cost: cost_of(&caller, &read, |item| &item.key, items.len(), length),
        read,
        references: items.iter().map(|item| &item.reference).collect(),
        length,
        form,
        failure: FailureStatus::Status(request.partial_failure_response_code),
    };
    batch.answer(&worker, &caller, ToEncrypt::encrypt, write_ciphertext).await
}

/// Decrypt a ciphertext, or many. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/decrypt/{name}", tag = "transit", request_body = TransitDecrypt,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("decrypt"))),
    responses((status = 200, description = "The plaintexts", body = Envelope<TransitPlaintext>),
        (status = "default", body = ErrorOrResults<TransitPlaintext>)))]
async fn transit_decrypt(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    let key_id = find(&caller, &name, TokenOperation::Decrypt, || missing(KEY_NOT_FOUND))?;
    let mut request: TransitDecrypt<'_> = body.parse()?;
    let (mut items, form) = request.take_items()?;
    // As in Vault, it is a parameter of `rewrap` alone: the ciphertext says which version decrypts.
    items.iter_mut().for_each(|item| item.key_version = None);
    let without = items.iter().position(|item| item.ciphertext.as_deref().is_none());
    if let Some(place) = without.filter(|_| form == RequestForm::Batch) {
        return Err(missing_in_batch(place, "ciphertext", "decrypt"));
    }
    let failure = FailureStatus::Status(request.partial_failure_response_code);
    let batch = read_ciphertexts(&worker, &caller, key_id, &items, form, failure, 0)?;
    batch.answer(&worker, &caller, ToDecrypt::decrypt, write_plaintext).await
}

/// Encrypt a ciphertext, or many, again with the key's latest version or the one that is named,
/// without showing the plaintext. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/rewrap/{name}", tag = "transit", request_body = TransitDecrypt,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("rewrap"))),
    responses((status = 200, description = "The ciphertexts", body = Envelope<TransitCiphertext>),
        (status = "default", body = ErrorOrResults<TransitCiphertext>)))]
async fn transit_rewrap(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    let key_id = find(&caller, &name, TokenOperation::Rewrap, || missing(KEY_NOT_FOUND))?;
    let mut request: TransitDecrypt<'_> = body.parse()?;
    let (items, form) = request.take_items()?;
    let (failure, uses) = (FailureStatus::InItems, items.len());
    let batch = read_ciphertexts(&worker, &caller, key_id, &items, form, failure, uses)?;
    batch.answer(&worker, &caller, ToDecrypt::rewrap, write_ciphertext).await
}

/// A data key to make. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitDataKey<'a> {
    /// Its length in bits: 128, 256 (default) or 512.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>, example = 256)]
    bits: Option<i64>,
    /// Associated data, base64. Only the same associated data decrypts the data key.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    associated_data: OptionalText<'a>,
    /// The context from which the key is derived, base64, if the key is derived.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: OptionalText<'a>,
    /// The version that encrypts: 0 for the newest, or one from `min_encryption_version` on.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    key_version: Option<i64>,
}

/// A data key.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written by hand")]
struct TransitDataKeyMade {
    /// `vault:vN:` and the encrypted data key: decrypt it as any ciphertext.
    ciphertext: String,
    /// The version that encrypted it.
    key_version: u32,
    /// The data key, base64, if the path asks for it.
    plaintext: Option<String>,
}

/// Make a random key for data, and encrypt it. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/datakey/{output}/{name}", tag = "transit", request_body = TransitDataKey,
    params(("output" = String, Path, description = "`plaintext` for the data key and its ciphertext, or `wrapped` for its ciphertext alone", example = "plaintext"),
        ("name" = String, Path, description = KEY_NAME_DOC)),
    extensions(("x-permission" = json!("generate_data_key"))),
    responses((status = 200, description = "The data key", body = Envelope<TransitDataKeyMade>),
        (status = "default", body = VaultErrorBody)))]
async fn transit_datakey(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName((output, name)): PathName<(String, String)>,
    body: SecretVaultContent,
) -> Result<Response> {
    let key_id = find(&caller, &name, TokenOperation::GenerateDataKey, || missing(KEY_NOT_FOUND))?;
    let shows_plaintext = match output.as_str() {
        "plaintext" => true,
        "wrapped" => false,
        _ => return Err(VaultError::invalid("Invalid path, must be 'plaintext' or 'wrapped'")),
    };
    let request: TransitDataKey<'_> = body.parse()?;
    let key = EncryptionKey::new(&caller, key_id)?;
    let options = key.options(&request.associated_data, &request.context)?;
    let bits = request.bits.unwrap_or(256);
    let length = u32::try_from(bits).ok().and_then(|bits| DataKeyLength::from_bits(bits).ok());
    let length = length.ok_or_else(|| VaultError::invalid("invalid bit length"))?;
    let key = selector(key.key_id, request.key_version, "encryption")?;
    let cost = caller.cost_of_secrets(key.as_ref(), 1, length.bytes());
    let made = worker.run_at_cost(&caller.unsealed, &caller.session, cost, move |keystore| {
        keystore.generate_data_key(key.as_ref(), length, &options.get())
    });
    let made = made.await.map_err(encryption_error)?;
    Ok(answer::secret_written(&worker, StatusCode::OK, JSON_FRAME_LEN, &[], |out| {
        out.push(b'{');
        write_ciphertext(out, Ok(&made.wrapped));
        if shows_plaintext {
            out.extend_from_slice(b",\"plaintext\":\"");
            STANDARD.encode_append(&*made.plaintext, out);
            out.push(b'"');
        }
        out.push(b'}');
    }))
}

/// The key, if there is one and the caller may encrypt with it. None if there is none, and the
/// caller may make it.
fn key_to_encrypt_with(caller: &Caller, name: &str) -> Result<Option<KeyId>> {
    let label = label(name)?;
    match resolve_key(caller, label.as_str(), TokenOperation::Encrypt) {
        Ok(KeySelector::Key(key_id)) if is_visible(&key_id) => Ok(Some(key_id)),
        Ok(_) => Err(missing(KEY_NOT_FOUND)),
        Err(error) => {
            let error = VaultError::from(error);
            if !error.has(Code::KeyNotFound) {
                return Err(error);
            }
            // Vault also forbids it to those who may encrypt, and not create.
            caller.session.check_tenant(TokenOperation::Create)?;
            Ok(None)
        }
    }
}

/// Makes the key with which a request encrypts.
async fn create(
    worker: &Worker,
    caller: &Caller,
    name: &str,
    request: &TransitEncrypt<'_>,
    is_derived: bool,
) -> Result<KeyId> {
    let is_convergent = request.convergent_encryption == Some(true);
    if is_convergent && !is_derived {
        let words = "convergent encryption requires derivation to be enabled, so context is required";
        return Err(VaultError::invalid(words));
    }
    let algorithm = algorithm(request.kind.as_deref(), None).ok();
    let algorithm = algorithm.filter(|algorithm| algorithm.usage() == KeyUsage::Encryption);
    let algorithm = algorithm.ok_or_else(|| VaultError::invalid("unknown key type"))?;
    let label = label(name)?;
    let new =
        new_key(caller, &label, algorithm).derivation(derivation(algorithm, is_derived, is_convergent)?);
    let (key, _) = create_or_find(worker, caller, new, label).await?;
    Ok(key.key)
}

impl<'a> TransitEncrypt<'a> {
    /// The plaintexts.
    fn take_items(&mut self) -> Result<(Vec<TransitEncryptItem<'a>>, RequestForm)> {
        let Some(items) = self.batch_input.take() else {
            if self.plaintext.as_deref().is_none() {
                return Err(VaultError::invalid("missing plaintext to encrypt"));
            }
            let item = TransitEncryptItem {
                plaintext: std::mem::take(&mut self.plaintext),
                associated_data: std::mem::take(&mut self.associated_data),
                context: std::mem::take(&mut self.context),
                key_version: self.key_version,
                reference: OptionalText::default(),
            };
            return Ok((vec![item], RequestForm::Single));
        };
        check_not_empty(&items)?;
        match items.iter().position(|item| item.plaintext.as_deref().is_none()) {
            Some(place) => Err(missing_in_batch(place, "plaintext", "encrypt")),
            None => Ok((items, RequestForm::Batch)),
        }
    }
}

impl<'a> TransitDecrypt<'a> {
    /// The ciphertexts.
    fn take_items(&mut self) -> Result<(Vec<TransitDecryptItem<'a>>, RequestForm)> {
        if let Some(items) = self.batch_input.take() {
            check_not_empty(&items)?;
            return Ok((items, RequestForm::Batch));
        }
        let item = TransitDecryptItem {
            ciphertext: std::mem::take(&mut self.ciphertext),
            associated_data: std::mem::take(&mut self.associated_data),
            context: std::mem::take(&mut self.context),
            key_version: self.key_version,
            reference: OptionalText::default(),
        };
        Ok((vec![item], RequestForm::Single))
    }
}

fn missing_in_batch(place: usize, field: &str, to: &str) -> VaultError {
    VaultError::invalid(format!("failed to parse batch input: '[{place}].{field}' missing {field} to {to}"))
}

/// Whether all contexts are given.
///
/// # Errors
/// Only some are.
fn all_or_none<'a>(contexts: impl Iterator<Item = &'a OptionalText<'a>>) -> Result<bool> {
    let mut given = contexts.map(|context| context.given().is_some());
    let first = given.next().unwrap_or_default();
    if given.all(|given| given == first) {
        return Ok(first);
    }
    Err(VaultError::invalid("context should be set either in all the request blocks or in none"))
}

/// A key, and how its ciphertexts are made.
struct EncryptionKey {
    key_id: KeyId,
    derivation: KeyDerivation,
}

impl EncryptionKey {
    fn new(caller: &Caller, key_id: KeyId) -> Result<Self> {
        let derivation = caller.unsealed.keystore.derivation(&key_id)?;
        Ok(Self { key_id, derivation })
    }

    /// # Errors
    /// Keys of the type do not do this: `what` names it.
    fn check_usage(&self, what: &str) -> Result<()> {
        let algorithm = self.key_id.algorithm();
        if algorithm.has_usage(KeyUsage::Encryption) {
            return Ok(());
        }
        let (kind, _) = kind(algorithm);
        let message = "keys of this type do not encrypt";
        let error = ApiError::from(KmsError::new(Code::KeyUsageMismatch, message));
        Err(VaultError::in_words(format!("message {what} not supported for key type {kind}"), error))
    }

    /// The options of a ciphertext. As in Vault, the context of a key that is not derived has no
    /// effect.
    fn options(&self, associated_data: &OptionalText<'_>, context: &OptionalText<'_>) -> Result<Options> {
        let context = decoded(context, "context")?;
        let associated_data = decoded(associated_data, "associated_data")?;
        let context = match self.derivation {
            KeyDerivation::None => Vec::new(),
            _ if context.is_empty() => return Err(VaultError::invalid(MISSING_CONTEXT)),
            _ => context,
        };
        Ok(Options { associated_data, context })
    }
}

/// What a text encodes, if it is given.
fn decoded(text: &OptionalText<'_>, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(text) = text.given() {
        decode_into(text, what, &mut bytes)
            .map_err(|error| VaultError::in_words(format!("failed to base64-decode {what}"), error))?;
    }
    Ok(bytes)
}

/// The associated data and the context of a ciphertext.
struct Options {
    associated_data: Vec<u8>,
    context: Vec<u8>,
}

impl Options {
    fn get(&self) -> EncryptionOptions<'_> {
        EncryptionOptions::default().associated_data(&self.associated_data).context(&self.context)
    }
}

/// The keystore's error in Vault's words.
fn encryption_error(error: impl Into<VaultError>) -> VaultError {
    version_error(error, "encryption")
}

/// A plaintext that is decoded.
struct ToEncrypt {
    key: KeySelector,
    plaintext: SecretBytes,
    options: Options,
}

impl ToEncrypt {
    fn read(key: &EncryptionKey, item: &TransitEncryptItem<'_>) -> Result<Self> {
        key.check_usage("encryption")?;
        let plaintext = decode_secret(item.plaintext.as_deref().unwrap_or_default(), "plaintext")?;
        let options = key.options(&item.associated_data, &item.context)?;
        Ok(Self { key: selector(key.key_id.clone(), item.key_version, "encryption")?, plaintext, options })
    }

    fn encrypt(&self, keystore: &Keystore) -> Result<Ciphertext> {
        let made = keystore.encrypt(self.key.as_ref(), &self.plaintext, &self.options.get());
        made.map_err(encryption_error)
    }
}

/// A ciphertext that is decoded.
struct ToDecrypt {
    /// The key, or its version that encrypts again.
    key: KeySelector,
    /// The version that encrypted, as the ciphertext says.
    version: NonZeroU32,
    ciphertext: Vec<u8>,
    options: Options,
}

impl ToDecrypt {
    fn read(key: &EncryptionKey, item: &TransitDecryptItem<'_>) -> Result<Self> {
        let text = item.ciphertext.given();
        let text = text.ok_or_else(|| VaultError::invalid("missing ciphertext to decrypt"))?;
        key.check_usage("decryption")?;
        let (version, ciphertext) = read_ciphertext(key.key_id.algorithm(), text)?;
        let options = key.options(&item.associated_data, &item.context)?;
        let key = selector(key.key_id.clone(), item.key_version, "encryption")?;
        Ok(Self { key, version, ciphertext, options })
    }

    /// # Errors
    /// The key has no such version yet. That is no secret, and it tells what is wrong.
    fn check_version(&self, keystore: &Keystore) -> Result<()> {
        let latest = keystore.latest_version_id(self.key.key_id())?;
        if self.version.get() <= latest.version() { Ok(()) } else { Err(version_too_new()) }
    }

    fn decrypt(&self, keystore: &Keystore) -> Result<Plaintext> {
        self.check_version(keystore)?;
        let found = keystore.decrypt(self.key.key_id(), &self.ciphertext, &self.options.get());
        found.map_err(decryption_error)
    }

    fn rewrap(&self, keystore: &Keystore) -> Result<Ciphertext> {
        self.check_version(keystore)?;
        let made = keystore.rewrap(self.key.as_ref(), &self.ciphertext, &self.options.get());
        made.map_err(|error| match error.code {
            Code::VersionNotUsable if matches!(self.key, KeySelector::Key(_)) => decryption_error(error),
            Code::InvalidCiphertext => decryption_error(error),
            _ => encryption_error(error),
        })
    }
}

/// The keystore's error in Vault's words. They do not say which of ciphertext, context and
/// associated data is wrong.
fn decryption_error(error: KmsError) -> VaultError {
    let error = VaultError::from(error);
    let error = error.in_vault_words(Code::InvalidCiphertext, "cipher: message authentication failed");
    error.in_vault_words(Code::VersionNotUsable, VERSION_TOO_OLD)
}

fn version_too_new() -> VaultError {
    let error = ApiError::from(KmsError::new(Code::UnknownVersion, "the key has no such version"));
    VaultError::in_words("invalid ciphertext: version is too new", error)
}

/// The version and the bytes of a ciphertext of Vault. As in Vault, version 0 is the first.
fn read_ciphertext(algorithm: Algorithm, text: &str) -> Result<(NonZeroU32, Vec<u8>)> {
    let (version, base64) = split_version(text, "ciphertext")?;
    if version < 0 {
        let error = KmsError::new(Code::VersionNotUsable, "versions begin with 1");
        return Err(VaultError::in_words(VERSION_TOO_OLD, ApiError::from(error)));
    }
    let version = u32::try_from(version.max(1)).ok().and_then(NonZeroU32::new);
    let version = version.ok_or_else(version_too_new)?;
    let mut body = Vec::with_capacity(base64.len() / 4 * 3);
    decode_into(base64, "ciphertext", &mut body)
        .map_err(|error| VaultError::in_words("invalid ciphertext: could not decode base64", error))?;
    let parts = CiphertextParts::new(algorithm, version, &body);
    let parts = parts.map_err(|error| VaultError::in_words("invalid ciphertext length", error))?;
    Ok((version, parts.to_bytes()))
}

/// Reads all ciphertexts. So many of them, `uses`, are encrypted again.
fn read_ciphertexts<'a>(
    worker: &Worker,
    caller: &Caller,
    key_id: KeyId,
    items: &'a [TransitDecryptItem<'a>],
    form: RequestForm,
    failure: FailureStatus,
    uses: usize,
) -> Result<Batch<'a, ToDecrypt>> {
    form.count(worker, caller, items.len())?;
    all_or_none(items.iter().map(|item| &item.context))?;
    let key = EncryptionKey::new(caller, key_id)?;
    let read: Vec<_> = items.iter().map(|item| ToDecrypt::read(&key, item)).collect();
    let length = items.iter().map(|item| item.ciphertext.as_deref().map_or(0, str::len)).sum();
    Ok(Batch {
        cost: cost_of(caller, &read, |item| &item.key, uses, length),
        read,
        references: items.iter().map(|item| &item.reference).collect(),
        length,
        form,
        failure,
    })
}

fn write_ciphertext(out: &mut Vec<u8>, made: Result<&Ciphertext, &VaultError>) {
    let Ok(made) = made else { return };
    let version = made.key.version();
    let parts = CiphertextParts::parse(made.key.key_id().algorithm(), &made.bytes);
    let body = parts.as_ref().map_or(&[][..], CiphertextParts::nonce_and_ciphertext);
    // Writing to a vector cannot fail.
    let _ = write!(out, "\"ciphertext\":\"{VERSION_PREFIX}{version}:");
    STANDARD.encode_append(body, out);
    let _ = write!(out, "\",\"key_version\":{version}");
}

fn write_plaintext(out: &mut Vec<u8>, found: Result<&Plaintext, &VaultError>) {
    out.extend_from_slice(b"\"plaintext\":\"");
    if let Ok(found) = found {
        STANDARD.encode_append(&*found.bytes, out);
    }
    out.push(b'"');
}
