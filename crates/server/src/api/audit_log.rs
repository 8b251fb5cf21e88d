//! The audit log: its entries, its checkpoints, and proofs about both.
#![allow(unused_qualifications, reason = "what utoipa makes of the parameters of a query has them")]

use std::path::PathBuf;
use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use bulla_kms::audit_log::{self, AuditLog, Checkpoint, ConsistencyProof, Entry, InclusionProof, Report};
use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KeyVersionId, Keystore, KmsError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::operator::check_operator;
use crate::cosigning::{log_key, trusted_log_keys};
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, List, Path, Query, parse};
use crate::service::Worker;

/// Endpoints that only read the log, although some take a body.
pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(entries))
        .routes(routes!(inclusion))
        .routes(routes!(checkpoint, make_checkpoint))
        .routes(routes!(consistency))
        .routes(routes!(verify))
}

/// The log of a caller who may read it.
///
/// # Errors
/// The caller may not; there is no log.
fn log(worker: &Worker, caller: &Caller) -> Result<Arc<AuditLog>> {
    check_operator(worker, caller, TokenOperation::Audit)?;
    let none = || ApiError::new(ApiErrorCode::NoAuditLog, "the keystore has no audit log");
    caller.unsealed.audit.clone().ok_or_else(none)
}

fn folder(log: &AuditLog) -> Result<PathBuf> {
    let none = || ApiError::new(ApiErrorCode::NoAuditLog, "the audit log is in memory, and is not kept");
    log.folder().ok_or_else(none)
}

/// Which entries to read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadEntries {
    /// Only entries after this one: the `next` of the page before.
    after: Option<u64>,
    /// The most entries to return.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// One entry of the audit log.
#[derive(Serialize, ToSchema)]
struct EntryView {
    /// Its number, from 0 without gaps.
    number: u64,
    /// When it was recorded.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    time: String,
    /// On whose behalf.
    who: String,
    /// What was done.
    #[schema(example = "sign")]
    operation: String,
    /// The key, or the version of a key, that was used.
    key: Option<String>,
    /// `ok`, a verdict, or the code of an error.
    #[schema(example = "ok")]
    result: String,
    /// The BLAKE3 digest of the message, in hexadecimal.
    digest: Option<String>,
    /// The entry's line in the log.
    line: String,
}

impl From<(Entry, String)> for EntryView {
    fn from((entry, line): (Entry, String)) -> Self {
        Self {
            number: entry.number,
            time: entry.time.to_string(),
            who: entry.actor.to_string(),
            operation: entry.operation.to_string(),
            key: entry.key.as_ref().map(ToString::to_string),
            result: entry.result.to_string(),
            digest: entry.digest().map(|digest| digest.to_hex().to_string()),
            line,
        }
    }
}

/// A page of entries.
#[derive(Serialize, ToSchema)]
struct EntryPage {
    /// The entries, the oldest first.
    entries: Vec<EntryView>,
    /// The value of `after` for the next page; none on the last.
    next: Option<u64>,
}

/// Read entries of the audit log.
///
/// A page proves nothing. Use the proofs and `verify` for that.
#[utoipa::path(get, path = "/api/v1/audit-log/entries", tag = "audit-log", params(ReadEntries),
    extensions(("x-permission" = json!("operator:audit"))),
    responses((status = 200, description = "A page of entries", body = EntryPage), (status = "default", body = ErrorBody)))]
async fn entries(
    State(worker): State<Worker>,
    caller: Caller,
    Query(ReadEntries { after, limit }): Query<ReadEntries>,
) -> Result<Json<EntryPage>> {
    let folder = folder(&*log(&worker, &caller)?)?;
    let limit = limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(ApiError::malformed("`limit` is from 1 to 1000"));
    }
    let from = after.map_or(0, |after| after.saturating_add(1));
    let page = worker.run_blocking(&caller.unsealed, &caller.session, move |_| {
        audit_log::read_entry_page(&folder, from, limit + 1)
    });
    let mut found = page.await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|(entry, _)| entry.number);
    Ok(Json(EntryPage { entries: found.into_iter().map(Into::into).collect(), next }))
}

/// A checkpoint: a signed statement of the log's length and content.
#[derive(Serialize, ToSchema)]
struct CheckpointView {
    /// The log's number.
    log: String,
    /// How many entries it covers.
    size: u64,
    /// The root of their tree, in hexadecimal.
    root: String,
    /// When it was signed.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    time: String,
    /// The key version that signed.
    key: String,
    /// The checkpoint itself: a signed note (C2SP). Keep it elsewhere, and later ask whether the
    /// log still begins with it.
    checkpoint: String,
}

impl From<&Checkpoint> for CheckpointView {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            log: checkpoint.log.to_string(),
            size: checkpoint.size,
            root: checkpoint.root.to_string(),
            time: checkpoint.time.to_string(),
            key: checkpoint.key.to_string(),
            checkpoint: checkpoint.to_string(),
        }
    }
}

/// Read the newest checkpoint.
#[utoipa::path(get, path = "/api/v1/audit-log/checkpoint", tag = "audit-log",
    extensions(("x-permission" = json!("operator:audit"))),
    responses((status = 200, description = "The newest checkpoint", body = CheckpointView), (status = "default", body = ErrorBody)))]
async fn checkpoint(State(worker): State<Worker>, caller: Caller) -> Result<Json<CheckpointView>> {
    let log = log(&worker, &caller)?;
    // The log may hold its lock while it writes.
    let newest =
        worker.run_blocking(&caller.unsealed, &caller.session, move |_| Ok(log.newest_checkpoint())).await?;
    let none = || KmsError::new(Code::NotFound, "the audit log has no checkpoint yet; make one by POST");
    Ok(Json((&newest.ok_or_else(none)?).into()))
}

/// Make a checkpoint now, if there are entries after the last one, and return the newest.
#[utoipa::path(post, path = "/api/v1/audit-log/checkpoint", tag = "audit-log",
    extensions(("x-permission" = json!("operator:audit"))),
    responses((status = 200, description = "The newest checkpoint", body = CheckpointView), (status = "default", body = ErrorBody)))]
async fn make_checkpoint(State(worker): State<Worker>, caller: Caller) -> Result<Json<CheckpointView>> {
    let log = log(&worker, &caller)?;
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let key = log_key(keystore, &log)?;
        log.checkpoint(keystore, &key)
    });
    Ok(Json((&made.await?).into()))
}

/// That an entry is in the log that a checkpoint covers. `bulla log verify --proof` checks
/// it.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what bulla-kms serializes")]
struct Inclusion {
    /// The entry's line.
    entry: String,
    /// The siblings of its way to the tree's root, in hexadecimal.
    path: Vec<String>,
    /// The checkpoint, a signed note.
    checkpoint: String,
}

/// Prove that an entry is in the log that the newest checkpoint covers.
#[utoipa::path(get, path = "/api/v1/audit-log/entries/{number}/proof", tag = "audit-log",
    params(("number" = u64, Path, description = "The entry's number, from 0")),
    extensions(("x-permission" = json!("operator:audit"))),
    responses((status = 200, description = "The proof", body = Inclusion), (status = "default", body = ErrorBody)))]
async fn inclusion(
    State(worker): State<Worker>,
    caller: Caller,
    Path(number): Path<u64>,
) -> Result<Json<InclusionProof>> {
    let folder = folder(&*log(&worker, &caller)?)?;
    let prove = move |_: &Keystore| audit_log::prove_inclusion(&folder, number);
    Ok(Json(worker.run_blocking(&caller.unsealed, &caller.session, prove).await?))
}

/// An older checkpoint.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Older {
    /// The checkpoint, a signed note as this service returned it.
    #[schema(value_type = String)]
    checkpoint: String,
}

/// That the log that one checkpoint covers begins with the log that an older one covers.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what bulla-kms serializes")]
struct Consistency {
    /// The older checkpoint, a signed note.
    old: String,
    /// The newest one.
    new: String,
    /// The hashes of the proof, in hexadecimal.
    path: Vec<String>,
}

/// Prove that the log still begins with the entries that an older checkpoint covers.
#[utoipa::path(post, path = "/api/v1/audit-log/consistency", tag = "audit-log", request_body = Older,
    extensions(("x-permission" = json!("operator:audit"))),
    responses((status = 200, description = "The proof", body = Consistency), (status = "default", body = ErrorBody)))]
async fn consistency(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<Json<ConsistencyProof>> {
    let folder = folder(&*log(&worker, &caller)?)?;
    let Older { checkpoint } = parse(&body)?;
    let old: Checkpoint = checkpoint.parse()?;
    let prove = move |_: &Keystore| audit_log::prove_consistency(&folder, &old);
    Ok(Json(worker.run_blocking(&caller.unsealed, &caller.session, prove).await?))
}

/// What a verification takes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VerifyLog {
    /// Checkpoints that were kept elsewhere, signed notes: the log must still have them.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 1000)]
    checkpoints: List<String, 1000>,
}

/// What a verification found.
#[derive(Serialize, ToSchema)]
struct VerifiedLog {
    /// Whether nothing is wrong.
    valid: bool,
    /// How many entries were read.
    entries: u64,
    /// How many valid checkpoints were read.
    checkpoints: u64,
    /// How many entries the last of those covers. Later entries are chained, but not signed yet.
    signed_entries: u64,
    /// What is wrong; at most a thousand are listed.
    problems: Vec<ProblemView>,
    /// The newest valid checkpoint.
    checkpoint: Option<CheckpointView>,
}

/// One thing that is wrong with a log.
#[derive(Serialize, ToSchema)]
struct ProblemView {
    /// What it is.
    #[schema(example = "altered")]
    kind: &'static str,
    /// The file, by its name in the log's folder.
    file: String,
    /// The line in the file, from 1.
    line: u64,
    /// The first entry that is concerned, where that is known.
    entry: Option<u64>,
    /// For a person.
    message: String,
}

impl From<Report> for VerifiedLog {
    fn from(report: Report) -> Self {
        let Report { entries, checkpoints, signed_entries, problems, checkpoint, .. } = report;
        let problems: Vec<_> = problems
            .into_iter()
            .map(|problem| ProblemView {
                kind: problem.kind.as_str(),
                file: problem.file,
                line: problem.line,
                entry: problem.entry,
                message: problem.message,
            })
            .collect();
        let checkpoint = checkpoint.as_ref().map(Into::into);
        Self { valid: problems.is_empty(), entries, checkpoints, signed_entries, problems, checkpoint }
    }
}

/// Verify the whole log: that nobody altered, removed or moved an entry, as far as checkpoints
/// cover it.
#[utoipa::path(post, path = "/api/v1/audit-log/verify", tag = "audit-log", request_body = VerifyLog,
    extensions(("x-permission" = json!("operator:audit"))),
    responses((status = 200, description = "What was found", body = VerifiedLog), (status = "default", body = ErrorBody)))]
async fn verify(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<Json<VerifiedLog>> {
    let log = log(&worker, &caller)?;
    let VerifyLog { checkpoints } = parse(&body)?;
    let known =
        checkpoints.iter().map(|text| text.parse()).collect::<bulla_kms::Result<Vec<Checkpoint>>>()?;
    let report = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let trusted = trusted_log_keys(keystore, &log)?;
        let find = |id: &KeyVersionId| Some(trusted.iter().find(|(trusted, _)| trusted == id)?.1.clone());
        log.verify(&find, &known)
    });
    Ok(Json(report.await?.into()))
}
