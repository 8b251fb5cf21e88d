//! Encryption to keys of the keystore and to recipients elsewhere, and key encapsulation.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::request::handler::routes;
use axum::extract::State;
use axum::response::Response;
use bulla_kms::approval::KeyUse;
use bulla_kms::encrypted_file;
use bulla_kms::encryption::{KeyEncryptionKey, KeyProvider, KeystoreRecipient, Recipient, WrappingParams};
use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KeyVersionId, Keystore, KeystoreProvider, KmsError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use zeroize::Zeroizing;

use super::approvals::GivenApproval;
use super::keys::KEY_DOC;
use crate::access::Authority;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{
    BodyBytes, Caller, List, Path, SecretContent, SecretText, decode, decode_secret, encode, parse,
    resolve_key, resolve_version, secret_json,
};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(encrypt))
        .routes(routes!(decrypt))
        .routes(routes!(encapsulate))
        .routes(routes!(decapsulate))
}

/// The associated data of files that the command `bulla encrypt` makes.
const FILE_ASSOCIATED_DATA: &[u8] = b"bulla file v1";
/// The start of associated data that bulla uses itself.
const RESERVED_PREFIX: &[u8] = b"bulla ";
/// At least the length of the JSON around the values of an answer.
const JSON_FRAME_LEN: usize = 64;

/// Data to encrypt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Encrypt<'a> {
    /// The data, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "aGVsbG8=")]
    data: SecretText<'a>,
    /// Keys of the keystore, each of which decrypts the data: their algorithms encapsulate, and
    /// the caller may read them.
    #[serde(borrow, default)]
    #[schema(value_type = Vec<String>, max_items = 8, example = json!(["transport"]))]
    keys: List<Cow<'a, str>, 8>,
    /// Recipients elsewhere, each of which decrypts the data: `age1...`, `x-wing:...`, or the
    /// public key file of another keystore's key.
    #[serde(borrow, default)]
    #[schema(value_type = Vec<String>, max_items = 8)]
    recipients: List<Cow<'a, str>, 8>,
    /// Associated data, base64. Only the same associated data decrypts it. When absent, the
    /// command `bulla decrypt` decrypts it.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    associated_data: Option<Cow<'a, str>>,
}

/// Encrypted data.
#[derive(Serialize, ToSchema)]
struct Encrypted {
    /// The encrypted data, base64.
    encrypted_data: String,
}

fn associated_data_bytes(text: Option<&str>) -> Result<Vec<u8>> {
    let Some(text) = text else { return Ok(FILE_ASSOCIATED_DATA.to_vec()) };
    let bytes = decode(text, "associated_data")?;
    if bytes.starts_with(RESERVED_PREFIX) {
        let message = "associated data that begins with \"bulla \" is reserved; use other data";
        return Err(KmsError::new(Code::InvalidArgument, message).into());
    }
    Ok(bytes)
}

/// Encrypt data to keys of the keystore and to recipients elsewhere, together at most 8. Each of
/// them decrypts it.
#[utoipa::path(post, path = "/api/v1/encrypt", tag = "encryption", request_body = Encrypt, extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The encrypted data", body = Encrypted), (status = "default", body = ErrorBody)))]
async fn encrypt(
    State(worker): State<Worker>,
    caller: Caller,
    body: SecretContent,
) -> Result<axum::Json<Encrypted>> {
    if !caller.session.authority.operations.contains(TokenOperation::Read) {
        return Err(ApiError::forbidden());
    }
    let Encrypt { data, keys, recipients, associated_data } = parse(&body)?;
    let mut to: Vec<Box<dyn KeyProvider>> = Vec::new();
    for name in keys {
        let key = resolve_version(&caller, resolve_key(&caller, &name, TokenOperation::Read)?, None)?;
        to.push(Box::new(KeystoreRecipient::new(caller.unsealed.keystore.recipient(&key)?)?));
    }
    for text in recipients {
        to.push(Box::new(text.parse::<Recipient>()?));
    }
    let associated = associated_data_bytes(associated_data.as_deref())?;
    let bytes = decode_secret(&data, "data")?;
    let encrypted = worker.run_blocking(&caller.unsealed, &caller.session, move |_| {
        let to: Vec<_> = to.iter().map(|key| &**key).collect();
        Ok(encode(&encrypted_file::encrypt(&bytes, &to, &associated)?))
    });
    Ok(axum::Json(Encrypted { encrypted_data: encrypted.await? }))
}

/// Data to decrypt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Decrypt<'a> {
    /// The encrypted data, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    encrypted_data: Cow<'a, str>,
    /// The associated data with which it was encrypted, base64. Absent for a file that the
    /// command `bulla encrypt` made.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    associated_data: Option<Cow<'a, str>>,
}

/// Decrypted data.
#[derive(Serialize, ToSchema)]
struct Decrypted<'a> {
    /// The data, base64.
    data: &'a str,
}

/// The keys of the keystore with which a caller may decapsulate. Other keys are treated as missing.
#[derive(Debug)]
struct CallerIdentity<'a> {
    keystore: KeystoreProvider<'a>,
    authority: &'a Authority,
}

impl KeyProvider for CallerIdentity<'_> {
    fn method(&self) -> &str {
        self.keystore.method()
    }

    fn key_name(&self) -> String {
        self.keystore.key_name()
    }

    fn new_kek(&self) -> bulla_kms::Result<(KeyEncryptionKey, Vec<u8>)> {
        self.keystore.new_kek()
    }

    fn recover_kek(&self, params: &WrappingParams) -> bulla_kms::Result<KeyEncryptionKey> {
        if self.matches(params) { self.keystore.recover_kek(params) } else { Err(self.wrong_key()) }
    }

    fn matches(&self, params: &WrappingParams) -> bool {
        let permitted = |key: KeyVersionId| self.authority.permits(TokenOperation::Decapsulate, key.key_id());
        self.keystore.matches(params) && params.key_name().parse().is_ok_and(permitted)
    }
}

/// Decrypt data with any key of the keystore with which the caller may decapsulate.
#[utoipa::path(post, path = "/api/v1/decrypt", tag = "encryption", request_body = Decrypt,
    extensions(("x-permission" = json!("decapsulate"))),
    responses((status = 200, description = "The data", body = Decrypted), (status = "default", body = ErrorBody)))]
async fn decrypt(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    if !caller.session.authority.operations.contains(TokenOperation::Decapsulate) {
        return Err(ApiError::forbidden());
    }
    let Decrypt { encrypted_data, associated_data } = parse(&body)?;
    let associated = associated_data_bytes(associated_data.as_deref())?;
    let encrypted = decode(&encrypted_data, "encrypted_data")?;
    let session = caller.session.clone();
    let text = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let keys = CallerIdentity { keystore: KeystoreProvider(keystore), authority: &session.authority };
        Ok(Zeroizing::new(encode(&encrypted_file::decrypt(&encrypted, &[&keys], &associated)?)))
    });
    let text = text.await?;
    secret_json(&Decrypted { data: &text }, JSON_FRAME_LEN + text.len())
}

/// At least the JSON around the values of an answer: the names of its fields, and a key version's
/// name.
const KEM_JSON_FRAME_LEN: usize = 512;

/// The version to encapsulate to.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Encapsulate {
    /// The version; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// A shared key, and the ciphertext that carries it.
#[derive(Serialize, ToSchema)]
struct Encapsulated<'a> {
    /// The key version that decapsulates the ciphertext.
    #[schema(example = "local/transport/x-wing/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The ciphertext, base64.
    ciphertext: String,
    /// The shared key of 32 bytes, base64. It is a secret.
    shared_key: &'a str,
}

/// Make a shared key, and the ciphertext that carries it to the holder of a private key.
///
/// Anybody with the public key can do the same elsewhere.
#[utoipa::path(post, path = "/api/v1/keys/{key}/encapsulate", tag = "encryption", request_body = Encapsulate,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The shared key", body = Encapsulated), (status = "default", body = ErrorBody)))]
async fn encapsulate(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Read)?;
    let Encapsulate { version } = if body.is_empty() { Encapsulate::default() } else { parse(&body)? };
    let key = resolve_version(&caller, key, version)?;
    let id = key.clone();
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.recipient(&id)?.public_key.encapsulate()
    });
    let made = made.await?;
    let shared_key = Zeroizing::new(encode(&*made.shared_key));
    let answer = Encapsulated {
        key: key.to_string(),
        version: key.version(),
        ciphertext: encode(&made.ciphertext),
        shared_key: &shared_key,
    };
    let length = KEM_JSON_FRAME_LEN + answer.ciphertext.len() + shared_key.len();
    secret_json(&answer, length)
}

/// A ciphertext to decapsulate.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Decapsulate<'a> {
    /// The ciphertext, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    ciphertext: Cow<'a, str>,
    /// The version that it was made for; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
    /// The request for approval that permits this, for a key that is used only with approvals.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    approval: Option<Cow<'a, str>>,
    /// Why this is done without the approvals, in an emergency.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    override_reason: Option<Cow<'a, str>>,
}

/// A shared key.
#[derive(Serialize, ToSchema)]
struct Decapsulated<'a> {
    /// The key version that decapsulated.
    key: String,
    /// The number of that version.
    version: u32,
    /// The shared key of 32 bytes, base64. It is a secret.
    shared_key: &'a str,
}

/// Decapsulate the shared key that a ciphertext carries.
///
/// A ciphertext that was changed, or was made for another version, gives another key and no error:
/// that is how ML-KEM works.
#[utoipa::path(post, path = "/api/v1/keys/{key}/decapsulate", tag = "encryption", request_body = Decapsulate,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("decapsulate"))),
    responses((status = 200, description = "The shared key", body = Decapsulated), (status = "default", body = ErrorBody)))]
async fn decapsulate(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Decapsulate)?;
    let Decapsulate { ciphertext, version, approval, override_reason } = parse(&body)?;
    let (approval, reason) = (approval.as_deref(), override_reason.as_deref());
    let approval = GivenApproval::read(&worker, &caller, key.key_id(), approval, reason)?;
    let key = resolve_version(&caller, key, version)?;
    let ciphertext = decode(&ciphertext, "ciphertext")?;
    let id = key.clone();
    let service = Arc::clone(&worker.service);
    let shared = move |keystore: &Keystore| match approval {
        None => keystore.decapsulate(&id, &ciphertext),
        Some(approval) => {
            let used = KeyUse::Ciphertext(&ciphertext);
            approval.use_once(&service, keystore, (&id).into(), used)?.decapsulate(&id, &ciphertext)
        }
    };
    let shared = worker.run_blocking(&caller.unsealed, &caller.session, shared).await?;
    let shared_key = Zeroizing::new(encode(&*shared));
    let answer = Decapsulated { key: key.to_string(), version: key.version(), shared_key: &shared_key };
    secret_json(&answer, KEM_JSON_FRAME_LEN + shared_key.len())
}
