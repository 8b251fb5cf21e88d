//! JWTs that the service signs as their issuer (RFC 7519), and what OpenID clients read to verify
//! them.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::TokenOperation;
use bulla_kms::{Attestation, JWT_PURPOSE, KeyId, Keystore, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::keys::KEY_DOC;
use super::public_keys::{Jwks, jwks_of};
use crate::config::{JwtConfig, JwtKeyConfig};
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::login::{Claims, Pattern};
use crate::request::{BodyBytes, Caller, Path, parse_short, resolve_key};
use crate::service::Worker;

/// Where OpenID clients look.
const DISCOVERY: &str = "/.well-known/openid-configuration";
const JWKS: &str = "/.well-known/jwks.json";

/// The most bytes of the claims of a JWT: headers of HTTP carry it.
const MAX_CLAIMS_LEN: usize = 4096;

/// The claims that the service sets.
const OWN_CLAIMS: [&str; 4] = ["exp", "iat", "jti", "nbf"];

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(sign)).routes(routes!(metadata)).routes(routes!(keys))
}

/// What a JWT says.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignJwt {
    /// The claims. `aud` must be there, and each audience must be one that the settings permit for
    /// the key. The service sets `iss`, `iat`, `nbf`, `exp` and `jti`.
    #[schema(value_type = Object, example = json!({ "sub": "job-7", "aud": "https://api.example.org" }))]
    claims: Claims,
    /// How long the JWT is valid, in seconds; as long as the settings permit when absent.
    #[schema(value_type = Option<u64>, example = 300)]
    lifetime_seconds: Option<NonZeroU64>,
}

/// A signed JWT.
#[derive(Serialize, ToSchema)]
struct SignedJwt {
    /// The key version that signed, which is also the JWT's `kid`.
    #[schema(example = "local/jwt-issuer/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1")]
    key: String,
    /// The number of that version.
    version: u32,
    /// The JWT, in the compact form.
    jwt: String,
    /// Its claim `jti`.
    id: String,
    /// When it expires.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    expires: String,
}

/// Sign a JWT with a key's latest version.
///
/// The settings name the issuer, and for each key that signs JWTs the audiences and the longest
/// life. Such a key has the purpose `jwt-issuer`, and signs no other message of a caller.
#[utoipa::path(post, path = "/api/v1/keys/{key}/sign-jwt", tag = "jwt", request_body = SignJwt,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The JWT", body = SignedJwt), (status = "default", body = ErrorBody)))]
async fn sign(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Sign)?;
    let SignJwt { claims, lifetime_seconds } = parse_short(&body)?;
    let key_id = key.as_ref().key_id();
    let settings = worker.service.jwt().ok_or_else(not_an_issuer)?;
    let policy = policy_of(&settings, &caller.unsealed.keystore, key_id)?.ok_or_else(|| no_policy(key_id))?;
    let lifetime = lifetime(policy, lifetime_seconds)?;
    let now = Timestamp::now()?.unix_millis() / 1000;
    let id = random_id()?;
    let claims = complete(claims.0, policy, &settings.issuer, now, lifetime, &id)?;
    let make = move |keystore: &Keystore| -> bulla_kms::Result<_> {
        let mut message = String::new();
        let signature = keystore.sign_jwt(key.as_ref(), |key, public_key| {
            let algorithm = public_key.algorithm().jose_name().unwrap_or_default();
            let header = json!({ "alg": algorithm, "kid": key.to_string(), "typ": "JWT" });
            message =
                format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.as_bytes()));
            message.as_bytes().to_vec()
        })?;
        Ok((message, signature))
    };
    let (message, signature) = worker.run_blocking(&caller.unsealed, &caller.session, make).await?;
    let answer = SignedJwt {
        version: signature.key.version(),
        key: signature.key.to_string(),
        jwt: format!("{message}.{}", base64url(&signature.bytes)),
        id,
        expires: Timestamp::from_unix_millis(now.saturating_add(lifetime).saturating_mul(1000))?.to_string(),
    };
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((no_store, Json(answer)).into_response())
}

fn base64url(bytes: &[u8]) -> String {
    base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes)
}

fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| ApiError::internal("no random bytes"))?;
    Ok(base64url(&bytes))
}

fn not_an_issuer() -> ApiError {
    let message = "the service is no issuer of JWTs: its settings have no table [jwt]";
    bulla_kms::KmsError::new(bulla_kms::Code::KeyUsageMismatch, message).into()
}

fn no_policy(key: &KeyId) -> ApiError {
    let message = format!("the settings do not permit that the key {key} signs JWTs: see [[jwt.key]]");
    bulla_kms::KmsError::new(bulla_kms::Code::KeyUsageMismatch, message).into()
}

/// The policy of a key; none if the settings do not have it.
fn policy_of<'a>(
    settings: &'a JwtConfig,
    keystore: &Keystore,
    key: &KeyId,
) -> Result<Option<&'a JwtKeyConfig>> {
    for policy in settings.key.iter().filter(|policy| policy.tenant == *key.tenant()) {
        if keystore.find(&policy.tenant, &policy.label)?.as_ref() == Some(key) {
            return Ok(Some(policy));
        }
    }
    Ok(None)
}

fn lifetime(policy: &JwtKeyConfig, wanted: Option<NonZeroU64>) -> Result<u64> {
    let max = policy.max_lifetime_seconds;
    let wanted = wanted.map_or(max, NonZeroU64::get);
    if wanted <= max {
        return Ok(wanted);
    }
    let message = format!("`lifetime_seconds` is at most {max} for this key");
    Err(ApiError::new(ApiErrorCode::Forbidden, message))
}

/// The text of the claims, with those that the service sets.
///
/// # Errors
/// The claims say something that the policy does not permit, or that only the service says.
fn complete(
    mut claims: Map<String, Value>,
    policy: &JwtKeyConfig,
    issuer: &str,
    now: u64,
    lifetime: u64,
    id: &str,
) -> Result<String> {
    if let Some(own) = OWN_CLAIMS.iter().find(|name| claims.contains_key(**name)) {
        let message = format!("the service sets the claim `{own}`: leave it out, and see `lifetime_seconds`");
        return Err(ApiError::malformed(message));
    }
    if claims.get("iss").is_some_and(|named| named != issuer) {
        return Err(ApiError::malformed(format!("the claim `iss` is {issuer}: leave it out")));
    }
    if claims.get("sub").is_some_and(|subject| !subject.is_string()) {
        return Err(ApiError::malformed("the claim `sub` is a text"));
    }
    check_audiences(claims.get("aud"), policy)?;
    claims.insert("iss".to_owned(), issuer.into());
    claims.insert("iat".to_owned(), now.into());
    claims.insert("nbf".to_owned(), now.into());
    claims.insert("exp".to_owned(), now.saturating_add(lifetime).into());
    claims.insert("jti".to_owned(), id.into());
    let text = Value::Object(claims).to_string();
    if text.len() > MAX_CLAIMS_LEN {
        return Err(ApiError::malformed(format!("the claims have more than {MAX_CLAIMS_LEN} bytes of JSON")));
    }
    Ok(text)
}

fn check_audiences(named: Option<&Value>, policy: &JwtKeyConfig) -> Result<()> {
    let wrong = || ApiError::malformed("the claim `aud` is a text, or a list of at least one text");
    let audiences = match named {
        Some(Value::Array(all)) if !all.is_empty() => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => return Err(wrong()),
    };
    let patterns: Vec<_> = policy.audiences.iter().map(|text| Pattern::new(text)).collect();
    for audience in audiences {
        let audience = audience.as_str().ok_or_else(wrong)?;
        if !patterns.iter().any(|pattern| pattern.matches(audience)) {
            let message = format!("the settings do not permit the audience {audience:?} for this key");
            return Err(ApiError::new(ApiErrorCode::Forbidden, message));
        }
    }
    Ok(())
}

/// Anybody may keep it for a minute.
const CACHE_HEADERS: [(HeaderName, HeaderValue); 1] =
    [(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"))];

/// The metadata of the service as an issuer of JWTs.
#[derive(Serialize, ToSchema)]
struct IssuerMetadata {
    /// The claim `iss` of its JWTs.
    #[schema(example = "https://keys.example.org")]
    issuer: String,
    /// The URL of its public keys.
    #[schema(example = "https://keys.example.org/.well-known/jwks.json")]
    jwks_uri: String,
    /// Required, and without a meaning here: nobody logs in with a browser.
    response_types_supported: Vec<&'static str>,
    /// Always `public`.
    subject_types_supported: Vec<&'static str>,
    /// What its keys sign with.
    #[schema(example = json!(["ES256"]))]
    id_token_signing_alg_values_supported: Vec<&'static str>,
}

/// Read the metadata of the service as an issuer of JWTs (OpenID Connect Discovery).
///
/// There are none unless the settings have a table `[jwt]`.
#[utoipa::path(get, path = "/.well-known/openid-configuration", tag = "jwt", security(()),
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The metadata", body = IssuerMetadata), (status = "default", body = ErrorBody)))]
async fn metadata(
    State(worker): State<Worker>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<IssuerMetadata>)> {
    let settings = worker.service.jwt().ok_or_else(|| no_endpoint(DISCOVERY))?;
    let keys = issuer_keys(&worker, Arc::clone(&settings), "the metadata of the issuer").await?;
    let algorithms: BTreeSet<_> = keys.iter().filter_map(|key| key.key.algorithm().jose_name()).collect();
    let metadata = IssuerMetadata {
        issuer: settings.issuer.clone(),
        jwks_uri: format!("{}{JWKS}", settings.issuer),
        response_types_supported: vec!["id_token"],
        subject_types_supported: vec!["public"],
        id_token_signing_alg_values_supported: algorithms.into_iter().collect(),
    };
    Ok((CACHE_HEADERS, Json(metadata)))
}

/// Read the public keys that verify the service's JWTs, as a JSON Web Key Set.
///
/// It has every usable version of each key that the settings name. There are none unless the
/// settings have a table `[jwt]`.
#[utoipa::path(get, path = "/.well-known/jwks.json", tag = "jwt", security(()),
    extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The keys", body = Jwks), (status = "default", body = ErrorBody)))]
async fn keys(State(worker): State<Worker>) -> Result<([(HeaderName, HeaderValue); 1], Json<Jwks>)> {
    let settings = worker.service.jwt().ok_or_else(|| no_endpoint(JWKS))?;
    let unsealed = worker.service.unsealed()?;
    let keys = issuer_keys(&worker, settings, "the keys of the issuer").await?;
    let mut all = Vec::new();
    for key in &keys {
        // Each of these keys signs with one algorithm, also one of RSA. Clients take an RSA key
        // without a name for one of RS256.
        let alg = key.key.algorithm().jose_name().map(str::to_owned);
        for mut jwk in jwks_of(&unsealed.keystore, key)? {
            jwk.alg.clone_from(&alg);
            all.push(jwk);
        }
    }
    Ok((CACHE_HEADERS, Json(Jwks { keys: all })))
}

fn no_endpoint(path: &str) -> ApiError {
    let message = format!("there is no endpoint {path}: the settings have no table [jwt]");
    ApiError::new(ApiErrorCode::EndpointNotFound, message)
}

/// The keys of the settings that exist and sign JWTs.
async fn issuer_keys(worker: &Worker, settings: Arc<JwtConfig>, what: &str) -> Result<Vec<Attestation>> {
    let unsealed = worker.service.unsealed()?;
    let found = worker.run_anonymous(what, move || {
        let mut keys = Vec::new();
        for policy in &settings.key {
            let Some(key) = unsealed.keystore.find(&policy.tenant, &policy.label)? else { continue };
            if key.purpose().as_str() == JWT_PURPOSE && key.algorithm().jose_name().is_some() {
                keys.push(unsealed.keystore.attest(&key)?);
            }
        }
        Ok(keys)
    });
    found.await
}
