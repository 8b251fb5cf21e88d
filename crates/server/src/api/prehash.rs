//! Signatures of digests, for messages that are too long to send.

use std::borrow::Cow;
use std::num::NonZeroU32;

use crate::request::handler::routes;
use axum::extract::State;
use axum::response::Response;
use bulla_kms::Algorithm;
use bulla_kms::prehash::{Digest, HashFunction, Prehashed, PssSaltLength, RsaPadding};
use bulla_kms::token::TokenOperation;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::keys::KEY_DOC;
use super::signatures::{Signed, json, write_one};
use super::signatures::{Verified, verdict_text};
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, Path, decode, parse, resolve_key, resolve_version};
use crate::service::{BatchCost, Worker};

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(sign_digest)).routes(routes!(verify_digest))
}

/// How a message was hashed.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DigestKind {
    /// BLAKE3, 32 bytes. The signature is one of Ed25519 of a frame around the digest.
    Blake3,
    /// SHA-512, 64 bytes. The signature is one of Ed25519ph (RFC 8032, section 5.1).
    Ed25519ph,
    /// SHA-256, 32 bytes, for ECDSA and RSA.
    Sha256,
    /// SHA-384, 48 bytes, for ECDSA and RSA.
    Sha384,
    /// SHA-512, 64 bytes, for ECDSA and RSA.
    Sha512,
}

/// A hash function of ECDSA and RSA.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HashName {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// How an RSA key pads digests.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PaddingName {
    /// RSASSA-PSS, with a salt as long as the digest.
    Pss,
    /// RSASSA-PKCS1-v1_5.
    Pkcs1v15,
}

impl From<PaddingName> for RsaPadding {
    fn from(padding: PaddingName) -> Self {
        match padding {
            PaddingName::Pss => Self::Pss(PssSaltLength::Hash),
            PaddingName::Pkcs1v15 => Self::Pkcs1v15,
        }
    }
}

/// The hash function and the padding of a request that names one of them.
pub(crate) fn scheme(
    algorithm: Algorithm,
    hash: Option<HashName>,
    padding: Option<PaddingName>,
) -> Option<(HashFunction, RsaPadding)> {
    if hash.is_none() && padding.is_none() {
        return None;
    }
    let hash = match (hash, algorithm) {
        (Some(HashName::Sha256), _) => HashFunction::Sha256,
        (Some(HashName::Sha384), _) | (None, Algorithm::EcdsaP384) => HashFunction::Sha384,
        (Some(HashName::Sha512), _) | (None, Algorithm::EcdsaP521) => HashFunction::Sha512,
        (None, _) => HashFunction::Sha256,
    };
    Some((hash, padding.map(Into::into).unwrap_or_default()))
}

/// A digest to sign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignDigest<'a> {
    /// How the message was hashed.
    prehash: DigestKind,
    /// The digest, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    digest: Cow<'a, str>,
    /// How an RSA key pads the digest; `pss` when absent. Keys of other algorithms ignore it.
    #[serde(default)]
    padding: Option<PaddingName>,
    /// What the signature is for, base64, at most 255 bytes: it verifies under this context only.
    /// Empty when absent.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: Cow<'a, str>,
}

fn prehashed(
    kind: DigestKind,
    padding: Option<PaddingName>,
    digest: &str,
    context: &str,
) -> Result<Prehashed> {
    let digest = decode(digest, "digest")?;
    let length = |length: usize, name: &str| {
        ApiError::malformed(format!("`digest` has {} bytes, but one of {name} has {length}", digest.len()))
    };
    let digest = match kind {
        DigestKind::Blake3 => {
            let bytes: [u8; 32] = digest.as_slice().try_into().map_err(|_| length(32, "BLAKE3"))?;
            Digest::Blake3(bytes.into())
        }
        DigestKind::Ed25519ph => {
            Digest::Sha512(digest.as_slice().try_into().map_err(|_| length(64, "SHA-512"))?)
        }
        DigestKind::Sha256 => HashFunction::Sha256.digest(&digest).ok_or_else(|| length(32, "SHA-256"))?,
        DigestKind::Sha384 => HashFunction::Sha384.digest(&digest).ok_or_else(|| length(48, "SHA-384"))?,
        DigestKind::Sha512 => HashFunction::Sha512.digest(&digest).ok_or_else(|| length(64, "SHA-512"))?,
    };
    let padding = padding.map(Into::into).unwrap_or_default();
    Ok(Prehashed::new(digest, &decode(context, "context")?)?.rsa_padding(padding))
}

/// Sign a digest with a key's latest version.
///
/// Keys of ECDSA and RSA sign digests only if they were made with `signs_digests`.
#[utoipa::path(post, path = "/api/v1/keys/{key}/sign-digest", tag = "signatures", request_body = SignDigest,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signature", body = Signed), (status = "default", body = ErrorBody)))]
async fn sign_digest(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Sign)?;
    let SignDigest { prehash, digest, padding, context } = parse(&body)?;
    let message = prehashed(prehash, padding, &digest, &context)?;
    let cost = BatchCost::of_signature(&caller.unsealed.keystore, key.as_ref(), 0);
    let sign = move |keystore: &bulla_kms::Keystore| keystore.sign_prehashed(key.as_ref(), &message);
    Ok(json(write_one(&worker.run_at_cost(&caller.unsealed, &caller.session, cost, sign).await?)))
}

/// The signature of a digest to verify.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VerifyDigest<'a> {
    /// How the message was hashed.
    prehash: DigestKind,
    /// The digest, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    digest: Cow<'a, str>,
    /// How an RSA key pads the digest; `pss` when absent. Keys of other algorithms ignore it.
    #[serde(default)]
    padding: Option<PaddingName>,
    /// The context under which it was signed, base64. Empty when absent.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    context: Cow<'a, str>,
    /// The signature, base64.
    #[serde(borrow)]
    #[schema(value_type = String)]
    signature: Cow<'a, str>,
    /// The version that signed, as the caller says; the newest when absent.
    #[schema(value_type = Option<u32>)]
    version: Option<NonZeroU32>,
}

/// Verify the signature of a digest.
#[utoipa::path(post, path = "/api/v1/keys/{key}/verify-digest", tag = "signatures", request_body = VerifyDigest,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("verify"))),
    responses((status = 200, description = "The verdict", body = Verified), (status = "default", body = ErrorBody)))]
async fn verify_digest(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    let key = resolve_key(&caller, &key, TokenOperation::Verify)?;
    let VerifyDigest { prehash, digest, padding, context, signature, version } = parse(&body)?;
    let key = resolve_version(&caller, key, version)?;
    let message = prehashed(prehash, padding, &digest, &context)?;
    let signature = decode(&signature, "signature")?;
    let verify = move |keystore: &bulla_kms::Keystore| keystore.verify_prehashed(&key, &message, &signature);
    let verdict = worker.run_blocking(&caller.unsealed, &caller.session, verify).await?;
    Ok(json(verdict_text(verdict).as_bytes().to_vec()))
}
