//! Keys that encrypt, alone and in batches; random bytes.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::request::handler::routes;
use axum::extract::State;
use axum::response::Response;
use bulla_kms::approval::KeyUse;
use bulla_kms::token::TokenOperation;
use bulla_kms::{
    Ciphertext, DataKeyLength, EncryptionOptions, KeyId, KeySelector, Keystore, KmsError, Plaintext,
    SecretBytes,
};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use zeroize::Zeroizing;

use super::approvals::GivenApproval;
use super::batch::count_items;
use super::keys::KEY_DOC;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{
    Caller, Items, Path, SecretContent, SecretText, decode, decode_secret, encode, parse, resolve_key,
    resolve_version, secret_json,
};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(encrypt))
        .routes(routes!(encrypt_many))
        .routes(routes!(decrypt))
        .routes(routes!(decrypt_many))
        .routes(routes!(rewrap))
        .routes(routes!(rewrap_many))
        .routes(routes!(generate_data_key))
        .routes(routes!(random))
}

/// At least the JSON around the values of one result: the names of its fields, and a key version's
/// name.
const JSON_FRAME_LEN: usize = 512;
/// The most random bytes of one answer.
const MAX_RANDOM_LEN: usize = 64 << 10;

/// The base64 of a secret, which is wiped.
struct SecretBase64(Zeroizing<String>);

impl SecretBase64 {
    fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(encode(bytes)))
    }
}

impl Serialize for SecretBase64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The associated data and the context of a ciphertext.
struct Options {
    associated_data: Vec<u8>,
    context: Vec<u8>,
}

impl Options {
    fn read(associated_data: Option<&str>, context: Option<&str>) -> Result<Self> {
        let bytes = |text: Option<&str>, what| text.map_or(Ok(Vec::new()), |text| decode(text, what));
        Ok(Self {
            associated_data: bytes(associated_data, "associated_data")?,
            context: bytes(context, "context")?,
        })
    }

    fn get(&self) -> EncryptionOptions<'_> {
        EncryptionOptions::default().associated_data(&self.associated_data).context(&self.context)
    }
}

/// The key as a whole, or the named version of it.
pub(super) fn of_version(
    caller: &Caller,
    key: KeySelector,
    version: Option<NonZeroU32>,
) -> Result<KeySelector> {
    match version {
        None => Ok(key),
        version => Ok(resolve_version(caller, key, version)?.into()),
    }
}

/// Runs a function for each item that could be read; the others keep their errors.
pub(super) async fn run_each<I: Send + 'static, T: Send + 'static>(
    worker: &Worker,
    caller: &Caller,
    items: Vec<Result<I>>,
    run: impl Fn(&Keystore, &I) -> Result<T, KmsError> + Send + 'static,
) -> Result<Vec<Result<T>>> {
    let all = move |keystore: &Keystore| {
        let one = |item: Result<I>| -> Result<T> { Ok(run(keystore, &item?)?) };
        Ok(items.into_iter().map(one).collect())
    };
    worker.run_blocking(&caller.unsealed, &caller.session, all).await
}

/// Results, in the order of the items.
#[derive(Serialize)]
struct Results<T> {
    results: Vec<T>,
}

/// An answer with the results of a batch. `length` is that of the values in them.
pub(super) fn answer_many<T: Serialize>(results: Vec<T>, length: usize) -> Result<Response> {
    let frames = JSON_FRAME_LEN * (results.len() + 1);
    secret_json(&Results { results }, frames + length)
}

/// The results of a batch. Each has the fields of `$view`, or an error.
macro_rules! batch_results {
    (
        $(#[$result_doc:meta])* $result:ident,
        $(#[$results_doc:meta])* $results:ident of $view:ident, $value:ident: $type:ty
    ) => {
        $(#[$result_doc])*
        #[derive(Serialize, ToSchema)]
        struct $result {
            /// The key version that was used.
            #[serde(skip_serializing_if = "Option::is_none")]
            key: Option<String>,
            /// The number of that version.
            #[serde(skip_serializing_if = "Option::is_none")]
            version: Option<u32>,
            /// The result, base64.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<String>)]
            $value: Option<$type>,
            /// Why there is no result.
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<ErrorBody>,
        }

        impl<T: Into<$view>> From<Result<T>> for $result {
            fn from(result: Result<T>) -> Self {
                match result.map(Into::into) {
                    Ok($view { key, version, $value }) => {
                        Self { key: Some(key), version: Some(version), $value: Some($value), error: None }
                    }
                    Err(error) => Self { key: None, version: None, $value: None, error: Some(error.body) },
                }
            }
        }

        $(#[$results_doc])*
        #[derive(Serialize, ToSchema)]
        #[allow(dead_code, reason = "it describes the results of a batch")]
        struct $results {
            results: Vec<$result>,
        }
    };
}
pub(super) use batch_results;

/// A plaintext to encrypt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PlaintextToEncrypt<'a> {
    /// The plaintext, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    plaintext: SecretText<'a>,
    /// Associated data, base64. Only the same associated data decrypts the ciphertext.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    associated_data: Option<Cow<'a, str>>,
    /// The context from which the key is derived, base64: for a key that was made for that.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    context: Option<Cow<'a, str>>,
    /// The version; the newest when absent. An older one encrypts only if the key was made for
    /// that.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A plaintext whose key is found and which is decoded.
struct ToEncrypt {
    key: KeySelector,
    plaintext: SecretBytes,
    options: Options,
}

impl ToEncrypt {
    fn read(caller: &Caller, key: KeySelector, body: &PlaintextToEncrypt<'_>) -> Result<Self> {
        Ok(Self {
            key: of_version(caller, key, body.version)?,
            plaintext: decode_secret(&body.plaintext, "plaintext")?,
            options: Options::read(body.associated_data.as_deref(), body.context.as_deref())?,
        })
    }

    fn encrypt(&self, keystore: &Keystore) -> Result<Ciphertext, KmsError> {
        keystore.encrypt(self.key.as_ref(), &self.plaintext, &self.options.get())
    }
}

/// A ciphertext.
#[derive(Serialize, ToSchema)]
struct CiphertextView {
    /// The key version that encrypted.
    #[schema(example = "local/orders/aes-256-gcm/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The ciphertext, base64.
    ciphertext: String,
}

impl From<Ciphertext> for CiphertextView {
    fn from(made: Ciphertext) -> Self {
        let (key, version) = (made.key.to_string(), made.key.version());
        Self { key, version, ciphertext: encode(&made.bytes) }
    }
}

/// Encrypt a plaintext with a key's latest version.
#[utoipa::path(post, path = "/api/v1/keys/{key}/encrypt", tag = "symmetric", request_body = PlaintextToEncrypt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("encrypt"))),
    responses((status = 200, description = "The ciphertext", body = CiphertextView), (status = "default", body = ErrorBody)))]
async fn encrypt(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<axum::Json<CiphertextView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Encrypt)?;
    let item = ToEncrypt::read(&caller, key, &parse(&body)?)?;
    let cost = caller.cost_of_secrets(item.key.as_ref(), 1, item.plaintext.len());
    let run = move |keystore: &Keystore| item.encrypt(keystore);
    let made = worker.run_at_cost(&caller.unsealed, &caller.session, cost, run).await?;
    Ok(axum::Json(made.into()))
}

/// Plaintexts to encrypt with one key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PlaintextsToEncrypt<'a> {
    /// The plaintexts.
    #[serde(borrow)]
    #[schema(value_type = Vec<PlaintextToEncrypt>, min_items = 1, max_items = 100_000)]
    items: Items<PlaintextToEncrypt<'a>>,
}

batch_results! {
    /// A ciphertext with its key and version, or an error.
    CiphertextResult,
    /// Ciphertexts, in the order of the items.
    CiphertextResults of CiphertextView, ciphertext: String
}

fn answer_ciphertexts(made: Vec<Result<Ciphertext>>) -> Result<Response> {
    let results: Vec<CiphertextResult> = made.into_iter().map(Into::into).collect();
    let length = results.iter().map(|one| one.ciphertext.as_ref().map_or(0, String::len)).sum();
    answer_many(results, length)
}

/// Encrypt many plaintexts with one key.
///
/// An item's error does not affect the others.
#[utoipa::path(post, path = "/api/v1/keys/{key}/encrypt/batch", tag = "symmetric", request_body = PlaintextsToEncrypt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("encrypt"))),
    responses((status = 200, description = "A ciphertext or an error for each item", body = CiphertextResults), (status = "default", body = ErrorBody)))]
async fn encrypt_many(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Encrypt)?;
    let PlaintextsToEncrypt { items } = parse(&body)?;
    count_items(&worker, &caller, items.len())?;
    let items = items.iter().map(|item| ToEncrypt::read(&caller, key.clone(), item)).collect();
    let made = run_each(&worker, &caller, items, |keystore, item: &ToEncrypt| item.encrypt(keystore));
    answer_ciphertexts(made.await?)
}

/// A ciphertext to decrypt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CiphertextToDecrypt<'a> {
    /// The ciphertext, base64. It names the key's version.
    #[serde(borrow)]
    #[schema(value_type = String)]
    ciphertext: Cow<'a, str>,
    /// The associated data with which it was encrypted, base64.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    associated_data: Option<Cow<'a, str>>,
    /// The context with which it was encrypted, base64.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    context: Option<Cow<'a, str>>,
    /// The request for approval that permits this, for a key that is used only with approvals. Only
    /// a single ciphertext to decrypt has it.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    approval: Option<Cow<'a, str>>,
    /// Why this is done without the approvals, in an emergency.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    override_reason: Option<Cow<'a, str>>,
}

/// A ciphertext whose key is found and which is decoded.
struct ToDecrypt {
    key: KeyId,
    ciphertext: Vec<u8>,
    options: Options,
}

impl ToDecrypt {
    /// A ciphertext that is decrypted or rewrapped without approvals.
    fn read(key: &KeySelector, body: &CiphertextToDecrypt<'_>) -> Result<Self> {
        if body.approval.is_some() || body.override_reason.is_some() {
            return Err(ApiError::malformed("only a single ciphertext to decrypt has an `approval`"));
        }
        Self::decode(key, body)
    }

    fn decode(key: &KeySelector, body: &CiphertextToDecrypt<'_>) -> Result<Self> {
        Ok(Self {
            key: key.key_id().clone(),
            ciphertext: decode(&body.ciphertext, "ciphertext")?,
            options: Options::read(body.associated_data.as_deref(), body.context.as_deref())?,
        })
    }

    fn decrypt(&self, keystore: &Keystore) -> Result<Plaintext, KmsError> {
        keystore.decrypt(&self.key, &self.ciphertext, &self.options.get())
    }

    fn rewrap(&self, keystore: &Keystore) -> Result<Ciphertext, KmsError> {
        keystore.rewrap(&self.key, &self.ciphertext, &self.options.get())
    }
}

/// A decrypted plaintext.
#[derive(Serialize, ToSchema)]
struct PlaintextView {
    /// The key version that decrypted.
    key: String,
    /// The number of that version.
    version: u32,
    /// The plaintext, base64.
    #[schema(value_type = String)]
    plaintext: SecretBase64,
}

impl From<Plaintext> for PlaintextView {
    fn from(found: Plaintext) -> Self {
        let (key, version) = (found.key.to_string(), found.key.version());
        Self { key, version, plaintext: SecretBase64::new(&found.bytes) }
    }
}

/// Decrypt a ciphertext of any version of a key.
///
/// `invalid_ciphertext` does not say whether the ciphertext was changed, or belongs to another key,
/// version, context or associated data.
#[utoipa::path(post, path = "/api/v1/keys/{key}/decrypt", tag = "symmetric", request_body = CiphertextToDecrypt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("decrypt"))),
    responses((status = 200, description = "The plaintext", body = PlaintextView), (status = "default", body = ErrorBody)))]
async fn decrypt(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Decrypt)?;
    let wanted: CiphertextToDecrypt<'_> = parse(&body)?;
    let (approval, reason) = (wanted.approval.as_deref(), wanted.override_reason.as_deref());
    let approval = GivenApproval::read(&worker, &caller, key.key_id(), approval, reason)?;
    let item = ToDecrypt::decode(&key, &wanted)?;
    if let Some(approval) = approval {
        let service = Arc::clone(&worker.service);
        let run = move |keystore: &Keystore| {
            let used = KeyUse::Ciphertext(&item.ciphertext);
            item.decrypt(&approval.use_once(&service, keystore, (&item.key).into(), used)?)
        };
        let found = worker.run_blocking(&caller.unsealed, &caller.session, run).await?;
        return answer_plaintext(found);
    }
    let cost = caller.cost_of_secrets((&item.key).into(), 0, item.ciphertext.len());
    let run = move |keystore: &Keystore| item.decrypt(keystore);
    let found = worker.run_at_cost(&caller.unsealed, &caller.session, cost, run).await?;
    answer_plaintext(found)
}

fn answer_plaintext(found: Plaintext) -> Result<Response> {
    let view = PlaintextView::from(found);
    let length = JSON_FRAME_LEN + view.plaintext.0.len();
    secret_json(&view, length)
}

/// Ciphertexts to decrypt with one key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CiphertextsToDecrypt<'a> {
    /// The ciphertexts.
    #[serde(borrow)]
    #[schema(value_type = Vec<CiphertextToDecrypt>, min_items = 1, max_items = 100_000)]
    items: Items<CiphertextToDecrypt<'a>>,
}

batch_results! {
    /// A plaintext with its key and version, or an error.
    PlaintextResult,
    /// Plaintexts, in the order of the items.
    PlaintextResults of PlaintextView, plaintext: SecretBase64
}

fn read_ciphertexts(
    worker: &Worker,
    caller: &Caller,
    key: &KeySelector,
    body: &[u8],
) -> Result<Vec<Result<ToDecrypt>>> {
    let CiphertextsToDecrypt { items } = parse(body)?;
    count_items(worker, caller, items.len())?;
    Ok(items.iter().map(|item| ToDecrypt::read(key, item)).collect())
}

/// Decrypt many ciphertexts with one key.
///
/// An item's error does not affect the others.
#[utoipa::path(post, path = "/api/v1/keys/{key}/decrypt/batch", tag = "symmetric", request_body = CiphertextsToDecrypt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("decrypt"))),
    responses((status = 200, description = "A plaintext or an error for each item", body = PlaintextResults), (status = "default", body = ErrorBody)))]
async fn decrypt_many(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Decrypt)?;
    let items = read_ciphertexts(&worker, &caller, &key, &body)?;
    let found = run_each(&worker, &caller, items, |keystore, item: &ToDecrypt| item.decrypt(keystore));
    let results: Vec<PlaintextResult> = found.await?.into_iter().map(Into::into).collect();
    let length = results.iter().map(|one| one.plaintext.as_ref().map_or(0, |text| text.0.len())).sum();
    answer_many(results, length)
}

/// Encrypt a ciphertext again with the key's latest version, without showing the plaintext.
#[utoipa::path(post, path = "/api/v1/keys/{key}/rewrap", tag = "symmetric", request_body = CiphertextToDecrypt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("rewrap"))),
    responses((status = 200, description = "The new ciphertext", body = CiphertextView), (status = "default", body = ErrorBody)))]
async fn rewrap(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<axum::Json<CiphertextView>> {
    let key = resolve_key(&caller, &key, TokenOperation::Rewrap)?;
    let item = ToDecrypt::read(&key, &parse(&body)?)?;
    let made =
        worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| item.rewrap(keystore)).await?;
    Ok(axum::Json(made.into()))
}

/// Encrypt many ciphertexts again with the key's latest version.
///
/// An item's error does not affect the others.
#[utoipa::path(post, path = "/api/v1/keys/{key}/rewrap/batch", tag = "symmetric", request_body = CiphertextsToDecrypt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("rewrap"))),
    responses((status = 200, description = "A ciphertext or an error for each item", body = CiphertextResults), (status = "default", body = ErrorBody)))]
async fn rewrap_many(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Rewrap)?;
    let items = read_ciphertexts(&worker, &caller, &key, &body)?;
    let made = run_each(&worker, &caller, items, |keystore, item: &ToDecrypt| item.rewrap(keystore));
    answer_ciphertexts(made.await?)
}

/// A data key to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DataKeyToMake<'a> {
    /// Its length in bits: 128, 256 or 512; 256 when absent.
    bits: Option<u32>,
    /// Whether the answer has the data key itself beside its ciphertext; it has when this is
    /// absent.
    plaintext: Option<bool>,
    /// Associated data, base64. Only the same associated data decrypts the data key.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    associated_data: Option<Cow<'a, str>>,
    /// The context from which the key is derived, base64: for a key that was made for that.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    context: Option<Cow<'a, str>>,
}

/// A data key.
#[derive(Serialize, ToSchema)]
struct DataKeyView {
    /// The key version that encrypted it.
    key: String,
    /// The number of that version.
    version: u32,
    /// The data key encrypted, base64: decrypt it as any ciphertext.
    ciphertext: String,
    /// The data key, base64. It is a secret. Absent if the request did not want it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    plaintext: Option<SecretBase64>,
}

/// Make a random key for data, and encrypt it with a key's latest version.
#[utoipa::path(post, path = "/api/v1/keys/{key}/data-key", tag = "symmetric", request_body = DataKeyToMake,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("generate_data_key"))),
    responses((status = 200, description = "The data key", body = DataKeyView), (status = "default", body = ErrorBody)))]
async fn generate_data_key(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    body: SecretContent,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::GenerateDataKey)?;
    let DataKeyToMake { bits, plaintext, associated_data, context } = parse(&body)?;
    let length = bits.map_or(Ok(DataKeyLength::default()), DataKeyLength::from_bits)?;
    let options = Options::read(associated_data.as_deref(), context.as_deref())?;
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.generate_data_key(key.as_ref(), length, &options.get())
    });
    let made = made.await?;
    let CiphertextView { key, version, ciphertext } = made.wrapped.into();
    let is_wanted = plaintext.unwrap_or(true);
    let plaintext = is_wanted.then(|| SecretBase64::new(&made.plaintext));
    secret_json(&DataKeyView { key, version, ciphertext, plaintext }, 2 * JSON_FRAME_LEN)
}

/// How many random bytes to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RandomToMake {
    /// How many bytes.
    #[schema(minimum = 1, maximum = 65536, example = 32)]
    bytes: usize,
}

/// Random bytes.
#[derive(Serialize, ToSchema)]
struct RandomView {
    /// The bytes, base64. No key was used.
    #[schema(value_type = String)]
    random: SecretBase64,
}

/// Make random bytes, from the service's operating system.
#[utoipa::path(post, path = "/api/v1/random", tag = "symmetric", request_body = RandomToMake,
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The random bytes", body = RandomView), (status = "default", body = ErrorBody)))]
async fn random(_caller: Caller, body: SecretContent) -> Result<Response> {
    let RandomToMake { bytes } = parse(&body)?;
    if !(1..=MAX_RANDOM_LEN).contains(&bytes) {
        return Err(ApiError::malformed(format!("`bytes` is from 1 to {MAX_RANDOM_LEN}")));
    }
    let mut made = Zeroizing::new(vec![0; bytes]);
    getrandom::fill(&mut made).map_err(|_| {
        KmsError::new(bulla_kms::Code::RandomUnavailable, "the operating system gave no random bytes")
    })?;
    let random = SecretBase64::new(&made);
    let length = JSON_FRAME_LEN + random.0.len();
    secret_json(&RandomView { random }, length)
}
