//! Public keys in many formats.

use std::num::NonZeroU32;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Attestation, Code, KeyId, KeyUsage, Keystore, KmsError, NamedPublicKey, PublicKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::keys::KEY_DOC;
use super::signatures::json;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{Caller, Path, encode, resolve_key, resolve_version};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(public)).routes(routes!(jwks))
}

/// How a public key is written.
#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PublicKeyFormat {
    /// SubjectPublicKeyInfo, PEM.
    #[default]
    Pem,
    /// The same as DER, base64.
    Der,
    /// The bytes of the algorithm's specification, base64.
    Raw,
    /// A JSON Web Key: Ed25519, ECDSA, RSA, ML-DSA, ECDH and X25519.
    Jwk,
    /// A line as in `authorized_keys`: Ed25519.
    OpenSsh,
    /// A public key file of minisign: Ed25519.
    Minisign,
    /// The public key file of bulla, which also names the key version.
    Bulla,
}

impl PublicKeyFormat {
    /// The format, if it is one of others.
    pub(crate) fn foreign(self) -> Option<PublicFormat> {
        match self {
            Self::Pem => Some(PublicFormat::Pem),
            Self::Der => Some(PublicFormat::Der),
            Self::Raw => Some(PublicFormat::Raw),
            Self::Jwk => Some(PublicFormat::Jwk),
            Self::OpenSsh => Some(PublicFormat::OpenSsh),
            Self::Minisign => Some(PublicFormat::Minisign),
            Self::Bulla => None,
        }
    }

    /// Whether JSON has it as base64, because it is not text.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Der | Self::Raw)
    }

    fn write(self, key: &NamedPublicKey) -> Result<String> {
        let Some(format) = self.foreign() else { return Ok(key.to_string()) };
        let bytes = export_public(&key.public_key, format)?;
        if self.is_binary() {
            return Ok(encode(&bytes));
        }
        String::from_utf8(bytes).map_err(|_| ApiError::internal("a format of text is not text"))
    }
}

/// The version and the format of a public key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicQuery {
    #[serde(default)]
    format: PublicKeyFormat,
    version: Option<NonZeroU32>,
}

/// A public key.
#[derive(Serialize, ToSchema)]
struct PublicKeyView {
    /// The key version.
    #[schema(example = "local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The key's algorithm.
    #[schema(example = "ed25519")]
    algorithm: &'static str,
    /// How the public key is written.
    format: PublicKeyFormat,
    /// The public key: text as it is, bytes as base64.
    #[schema(
        example = "-----BEGIN PUBLIC KEY_DOC-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY_DOC-----\n"
    )]
    public_key: String,
}

/// Caches may keep public keys for a minute, for this caller.
const CACHE_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60")),
    (header::VARY, HeaderValue::from_static("authorization, x-vault-token")),
];

/// Read a public key in one of many formats.
///
/// Versions that do not verify any more are refused.
#[utoipa::path(get, path = "/api/v1/keys/{key}/public", tag = "keys",
    params(("key" = String, Path, description = KEY_DOC),
        ("format" = Option<PublicKeyFormat>, Query, description = "How it is written; `pem` when absent"),
        ("version" = Option<u32>, Query, description = "The version; the newest when absent", minimum = 1)),
    extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The public key", body = PublicKeyView), (status = "default", body = ErrorBody)))]
async fn public(
    caller: Caller,
    Path(key): Path<String>,
    query: Result<Query<PublicQuery>, QueryRejection>,
) -> Result<([(HeaderName, HeaderValue); 2], Json<PublicKeyView>)> {
    let key = resolve_key(&caller, &key, TokenOperation::Read)?;
    let Query(PublicQuery { format, version }) =
        query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let key = resolve_version(&caller, key, version)?;
    let keystore = &caller.unsealed.keystore;
    keystore.check_usable(&key)?;
    let named = NamedPublicKey { public_key: keystore.public_key(&key)?, key };
    let public_key = format.write(&named)?;
    let NamedPublicKey { key, .. } = named;
    let (version, algorithm) = (key.version(), key.key_id().algorithm().as_str());
    let view = PublicKeyView { key: key.to_string(), version, algorithm, format, public_key };
    Ok((CACHE_HEADERS, Json(view)))
}

/// A JSON Web Key Set (RFC 7517).
#[derive(Serialize, ToSchema)]
pub(super) struct Jwks {
    /// The keys.
    pub(super) keys: Vec<Jwk>,
}

/// A JSON Web Key of a key version that verifies signatures.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Jwk {
    /// `OKP` for Ed25519 (RFC 8037), `EC` for ECDSA and `RSA` (RFC 7518), `AKP` for ML-DSA (RFC
    /// 9964).
    #[schema(example = "OKP")]
    kty: String,
    /// The curve, of an `OKP` or an `EC` key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Ed25519")]
    crv: Option<String>,
    /// The algorithm of signatures. An RSA key has several, and names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "EdDSA")]
    pub(super) alg: Option<String>,
    /// The public key of an `OKP` key, or the x of an `EC` key, base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    /// The y of an `EC` key, base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    /// The modulus of an `RSA` key, base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    /// The exponent of an `RSA` key, base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    /// The public key of an `AKP` key, base64url.
    #[serde(rename = "pub", skip_serializing_if = "Option::is_none")]
    public: Option<String>,
    /// The key version's name.
    #[serde(default)]
    kid: String,
    /// Always `sig`.
    #[serde(rename = "use", default)]
    usage: String,
}

/// Read all public keys that verify signatures, as a JSON Web Key Set.
///
/// It has every usable version of each key that the caller may read. Keys whose algorithm has no
/// JSON Web Key are left out.
#[utoipa::path(get, path = "/api/v1/jwks", tag = "keys", extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The keys", body = Jwks), (status = "default", body = ErrorBody)))]
async fn jwks(
    State(worker): State<Worker>,
    caller: Caller,
) -> Result<([(HeaderName, HeaderValue); 2], Response)> {
    let session = caller.session.clone();
    if !session.authority.operations.contains(TokenOperation::Read) {
        return Err(ApiError::forbidden());
    }
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let authority = &session.authority;
        let may_read = |key: &KeyId| authority.permits(TokenOperation::Read, key);
        let keys = keystore.list_page(&authority.tenant, None, usize::MAX, &may_read);
        let signing = keys.iter().filter(|key| key.algorithm.usage() == KeyUsage::Signature);
        let sets = signing.map(|key| jwks_of(keystore, key)).collect::<bulla_kms::Result<Vec<_>>>()?;
        // Written here, because a tenant may have many keys.
        let text = serde_json::to_vec(&Jwks { keys: sets.into_iter().flatten().collect() });
        text.map_err(|_| KmsError::new(Code::Internal, "a set of keys has no JSON"))
    });
    Ok((CACHE_HEADERS, json(made.await?)))
}

/// The usable versions of a key.
pub(super) fn jwks_of(keystore: &Keystore, key: &Attestation) -> bulla_kms::Result<Vec<Jwk>> {
    let usable = key.versions.iter().filter(|version| keystore.check_usable(&version.id).is_ok());
    let made = usable.filter_map(|version| {
        let jwk = jwk(version.public_key.as_ref()?).transpose()?;
        Some(jwk.map(|jwk| Jwk { kid: version.id.to_string(), ..jwk }))
    });
    made.collect()
}

/// The JSON Web Key of a public key; `None` if its algorithm has no such form.
fn jwk(key: &PublicKey) -> bulla_kms::Result<Option<Jwk>> {
    let text = match export_public(key, PublicFormat::Jwk) {
        Err(error) if error.code == Code::UnsupportedFormat => return Ok(None),
        written => written?,
    };
    let jwk: Jwk = serde_json::from_slice(&text)
        .map_err(|_| KmsError::new(Code::Internal, "a JSON Web Key has members that are not known"))?;
    // An RSA key has several.
    let alg = key.algorithm().jose_name().filter(|_| !key.algorithm().is_rsa()).map(str::to_owned);
    Ok(Some(Jwk { alg, usage: "sig".to_owned(), ..jwk }))
}
