//! The answers to requests with an idempotency key, as rows that all nodes read. A request runs on
//! one node only, and is never run again once it may have changed something.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode};
use base64_simd::STANDARD;
use bulla_kms::{Code, Keystore, KmsError, Result};
use serde::{Deserialize, Serialize};

use super::node::{AttachedKeystore, ClusterNode, locked};
use super::presence;
use super::table::{InsertOutcome, Table, TableRow};
use crate::service::{AnswerOwner, PriorRequest, RequestDigest, RequestOutcome, StoredAnswer};

/// The folder of the rows; each tenant has a folder in it.
const ANSWER_FOLDER: &str = "answers";
/// The most rows of a tenant.
const MAX_ROWS_PER_TENANT: u64 = 4096;
/// How many of the oldest rows are looked at to make room for a new one.
const MAX_EVICTION_CANDIDATES: u32 = 16;
/// The longest answer that is kept.
const MAX_ANSWER_BYTES: usize = 16 << 10;
/// The most rows that wait to be written.
const MAX_PENDING_ROWS: usize = 10_000;

/// The content of a row.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerRow {
    /// The digest of the request.
    request: RequestDigest,
    state: AnswerRowState,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerRowState {
    /// This node runs it.
    Running(String),
    Answered {
        status: u16,
        content_type: Option<String>,
        body: String,
    },
    /// It ended, and nobody keeps its answer.
    Unkept,
}

/// The right to run a request, and the row that says so.
#[derive(Debug)]
pub(crate) struct RequestClaim {
    name: String,
    request: RequestDigest,
    row: Vec<u8>,
}

/// The result of claiming a request for this node.
#[derive(Debug)]
pub(crate) enum ClaimOutcome {
    /// Nothing: this node runs it.
    Run(RequestClaim),
    /// The request was begun before.
    Prior(PriorRequest),
}

impl ClusterNode {
    /// Looks a request up. If nothing is known of it, this node runs it, and [`ClusterNode::end`]
    /// is told how it ended. It waits for etcd.
    ///
    /// # Errors
    /// Those of etcd. Then nothing was begun.
    pub(crate) fn begin(
        &self,
        keystore: &Keystore,
        owner: &AnswerOwner,
        key: &str,
        request: RequestDigest,
    ) -> Result<ClaimOutcome> {
        let attached =
            self.attached().ok_or_else(|| KmsError::new(Code::ShuttingDown, "the service is sealed"))?;
        // The answer is kept for a day. So it must not be one by an old view, for example that a
        // new key does not exist.
        keystore.catch_up()?;
        let tenant = hex::encode(keystore.data_cipher().keyed_digest(owner.tenant.as_str().as_bytes()));
        // No actor has a line break in its name.
        let of_caller =
            hex::encode(keystore.data_cipher().keyed_digest(format!("{}\n{key}", owner.actor).as_bytes()));
        let folder = format!("{ANSWER_FOLDER}/{tenant}");
        let name = format!("{folder}/{of_caller}");
        let row = seal(keystore, &name, request, AnswerRowState::Running(attached.name.clone()))?;
        let lease = attached.answers_lease()?;
        match attached.table.insert(&name, &row, Some(lease)) {
            Ok(InsertOutcome::New { rows }) => {
                let claim = RequestClaim { name, request, row };
                if rows > MAX_ROWS_PER_TENANT
                    && let Err(error) = evict_oldest(keystore, &attached.table, &folder, &claim.name)
                {
                    attached.queue_row(PendingRow { name: claim.name, old: claim.row, new: None });
                    return Err(error);
                }
                Ok(ClaimOutcome::Run(claim))
            }
            Ok(InsertOutcome::Exists(found)) => {
                prior_request(keystore, &attached.table, &found, request).map(ClaimOutcome::Prior)
            }
            Err(error) => {
                attached.forget_lease();
                // It may be there nonetheless, and must not say for a day that the request runs.
                attached.queue_row(PendingRow { name, old: row, new: None });
                Err(error.into())
            }
        }
    }

    /// Records how a request ended. If etcd cannot be reached, the row is written
    /// later. It waits for etcd.
    pub(crate) fn end(&self, keystore: &Keystore, claim: RequestClaim, ended: &RequestOutcome) {
        self.finish(keystore, claim, ended, |attached, row| {
            if row.write(&attached.table).is_err() {
                attached.queue_row(row);
            }
        });
    }

    /// As [`ClusterNode::end`], without waiting for etcd.
    pub(crate) fn end_later(&self, keystore: &Keystore, claim: RequestClaim, ended: &RequestOutcome) {
        self.finish(keystore, claim, ended, |attached, row| attached.queue_row(row));
    }

    fn finish(
        &self,
        keystore: &Keystore,
        claim: RequestClaim,
        ended: &RequestOutcome,
        write: impl FnOnce(&Arc<AttachedKeystore>, PendingRow),
    ) {
        let Some(attached) = self.attached() else { return };
        let RequestClaim { name, request, row: old } = claim;
        let new = match ended {
            RequestOutcome::Retryable => None,
            RequestOutcome::Answered(answer) if answer.body.len() <= MAX_ANSWER_BYTES => {
                Some(AnswerRowState::from(answer))
            }
            RequestOutcome::Answered(_) | RequestOutcome::Unkept => Some(AnswerRowState::Unkept),
        };
        // Without random bytes, the row goes on to say that the request runs, until this node ends.
        let new = new.map(|state| seal(keystore, &name, request, state)).transpose();
        if let Ok(new) = new {
            write(&attached, PendingRow { name, old, new });
        }
    }
}

impl AttachedKeystore {
    fn queue_row(&self, row: PendingRow) {
        let mut pending = locked(&self.pending);
        if pending.len() < MAX_PENDING_ROWS {
            pending.push(row);
        }
    }
}

impl From<&StoredAnswer> for AnswerRowState {
    fn from(answer: &StoredAnswer) -> Self {
        let content_type = answer.content_type.as_ref().and_then(|value| value.to_str().ok());
        Self::Answered {
            status: answer.status.as_u16(),
            content_type: content_type.map(str::to_owned),
            body: STANDARD.encode_to_string(&answer.body),
        }
    }
}

fn seal(keystore: &Keystore, name: &str, request: RequestDigest, state: AnswerRowState) -> Result<Vec<u8>> {
    let kept = AnswerRow { request, state };
    keystore.data_cipher().encrypt(name, &serde_json::to_vec(&kept).unwrap_or_default())
}

fn open(keystore: &Keystore, row: &TableRow) -> Result<AnswerRow> {
    let note = keystore.data_cipher().decrypt(&row.name, &row.value)?;
    serde_json::from_slice(&note).map_err(malformed)
}

fn malformed(error: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::KeystoreCorrupt, format!("a kept answer is malformed: {error}"))
}

/// The state of a request by its row.
fn prior_request(
    keystore: &Keystore,
    table: &Table,
    row: &TableRow,
    request: RequestDigest,
) -> Result<PriorRequest> {
    let kept = open(keystore, row)?;
    if kept.request != request {
        return Ok(PriorRequest::AnotherRequest);
    }
    Ok(match kept.state {
        AnswerRowState::Running(node) if presence::is_present(table, &node)? => PriorRequest::Running,
        AnswerRowState::Running(_) => {
            // That node is gone, or cut off for long. Nobody knows what it did, so the request must
            // never be run again.
            let unkept = seal(keystore, &row.name, request, AnswerRowState::Unkept)?;
            if table.replace(&row.name, &row.value, Some(&unkept))? {
                PriorRequest::Unkept
            } else {
                // It has come back meanwhile: a repetition gets its answer.
                PriorRequest::Running
            }
        }
        AnswerRowState::Unkept => PriorRequest::Unkept,
        AnswerRowState::Answered { status, content_type, body } => PriorRequest::Answered(StoredAnswer {
            status: StatusCode::from_u16(status).map_err(malformed)?,
            content_type: content_type
                .map(|value| HeaderValue::from_str(&value))
                .transpose()
                .map_err(malformed)?,
            body: STANDARD.decode_to_vec(body).map_err(malformed)?.into(),
        }),
    })
}

/// Forgets the oldest request of a tenant that does not run.
fn evict_oldest(keystore: &Keystore, table: &Table, folder: &str, but: &str) -> Result<()> {
    for row in table.oldest(folder, MAX_EVICTION_CANDIDATES)? {
        if row.name != but
            && !matches!(open(keystore, &row)?.state, AnswerRowState::Running(_))
            && table.replace(&row.name, &row.value, None)?
        {
            return Ok(());
        }
    }
    Err(KmsError::new(Code::Busy, "too many requests with an Idempotency-Key are running"))
}

/// A row that has to be written as soon as etcd takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingRow {
    pub(super) name: String,
    pub(super) old: Vec<u8>,
    /// None removes the row.
    pub(super) new: Option<Vec<u8>>,
}

impl PendingRow {
    /// Writes the row.
    ///
    /// # Errors
    /// Those of etcd.
    pub(super) fn write(&self, table: &Table) -> Result<()> {
        // If the row has another value, another node has found out that nobody knows the answer.
        table.replace(&self.name, &self.old, self.new.as_deref())?;
        Ok(())
    }
}
