//! Signature files: statements about files and folders, whose content is not sent.

use std::borrow::Cow;
use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use bulla_kms::SignatureFile;
use bulla_kms::approval::KeyUse;
use bulla_kms::prehash::Prehash;
use bulla_kms::token::TokenOperation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::approvals::GivenApproval;
use super::keys::KEY_DOC;
use crate::error::{ApiError, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, Path, decode, parse, resolve_key};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(sign_statement))
}

/// How a statement is hashed before it is signed, by Ed25519.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum StatementPrehash {
    /// BLAKE3. The signature is one of Ed25519 of a frame around the digest.
    Blake3,
    /// SHA-512. The signature is one of Ed25519ph (RFC 8032, section 5.1).
    Ed25519ph,
}

/// What a statement is about.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum StatementKind {
    /// The bytes of a file.
    File,
    /// The list of a folder's content.
    Manifest,
    /// A message from a program.
    Message,
}

/// A statement to sign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignStatement<'a> {
    /// What it is about.
    kind: StatementKind,
    /// The BLAKE3 digest of the content, base64.
    #[serde(borrow)]
    #[schema(value_type = String, example = "rxNJufX5oaagQE3qNtzJSZvLJcmtwRK3zJqTyuQfMmI=")]
    digest: Cow<'a, str>,
    /// The length of the content in bytes.
    size: u64,
    /// One line of text, which the signature covers; empty when absent.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    comment: Cow<'a, str>,
    /// The name of the file, if the signature covers it, in the form of the signature file. Only
    /// statements of the kind `file` have one.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "app-1.0.tar.gz")]
    name: Option<Cow<'a, str>>,
    /// How the statement is hashed before it is signed, for verifiers that need that: Ed25519 keys
    /// only. It is not hashed when absent.
    prehash: Option<StatementPrehash>,
    /// The request for approval that permits this, for a key that is used only with approvals.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    approval: Option<Cow<'a, str>>,
    /// Why this is done without the approvals, in an emergency.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    override_reason: Option<Cow<'a, str>>,
}

/// A signed statement.
#[derive(Serialize, ToSchema)]
struct SignedStatement {
    /// The key version that signed.
    key: String,
    /// The number of that version.
    version: u32,
    /// The text of the signature file. For a manifest, its body follows.
    signature_file: String,
}

/// Sign a statement about a file or a folder with a key's latest version: the answer is a signature
/// file.
///
/// Only the digest travels. `bulla verify` reads the file.
#[utoipa::path(post, path = "/api/v1/keys/{key}/sign-statement", tag = "signatures", request_body = SignStatement,
    params(("key" = String, Path, description = KEY_DOC)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The signature file", body = SignedStatement), (status = "default", body = ErrorBody)))]
async fn sign_statement(
    State(worker): State<Worker>,
    caller: Caller,
    Path(key): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Json<SignedStatement>> {
    let key = resolve_key(&caller, &key, TokenOperation::Sign)?;
    let SignStatement { kind, digest, size, comment, name, prehash, approval, override_reason } =
        parse(&body)?;
    let (approval, reason) = (approval.as_deref(), override_reason.as_deref());
    let approval = GivenApproval::read(&worker, &caller, key.key_id(), approval, reason)?;
    let digest: [u8; 32] = decode(&digest, "digest")?
        .try_into()
        .map_err(|_| ApiError::malformed("`digest` is one of BLAKE3, and has 32 bytes"))?;
    let kind = match kind {
        StatementKind::File => bulla_kms::StatementKind::File,
        StatementKind::Manifest => bulla_kms::StatementKind::Manifest,
        StatementKind::Message => bulla_kms::StatementKind::Message,
    };
    let prehash = prehash.map(|kind| match kind {
        StatementPrehash::Blake3 => Prehash::Blake3,
        StatementPrehash::Ed25519ph => Prehash::Ed25519ph,
    });
    let statement = bulla_kms::Statement::new(kind, digest.into(), size).comment(comment.parse()?);
    let statement = statement.name(name.map(|name| name.parse()).transpose()?);
    let service = Arc::clone(&worker.service);
    let signed = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let used = KeyUse::Statement(&statement, prehash);
        let approved = match approval {
            Some(approval) => Some(approval.use_once(&service, keystore, key.as_ref(), used)?),
            None => None,
        };
        SignatureFile::sign_with(approved.as_ref().unwrap_or(keystore), key.as_ref(), statement, prehash)
    });
    let file = signed.await?;
    let (key, version) = (file.key.to_string(), file.key.version());
    Ok(Json(SignedStatement { key, version, signature_file: file.to_string() }))
}
