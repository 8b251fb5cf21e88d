//! The answers to requests with an idempotency key, as rows that all nodes read. A request runs on
//! one node only, and is never run again once it may have changed something.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode};
use base64_simd::STANDARD;
use bulla_kms::{Code, Keystore, KmsError, Result};
use serde::{Deserialize, Serialize};

use super::node::{Attached, ClusterNode, locked};
use super::unfinished::Unfinished;
use super::{InsertOutcome, Table, TableRow, presence};
use crate::service::{Answer, Before, Ended, Owner, RequestDigest};

/// The folder of the rows; each tenant has a folder in it.
const FOLDER: &str = "answers";
/// The most rows of a tenant.
const MOST_ROWS: u64 = 4096;
/// How many of the oldest rows are looked at to make room for a new one.
const OLDEST: u32 = 16;
/// The longest answer that is kept.
const MOST_BYTES: usize = 16 << 10;
/// The most rows that wait to be written.
const MOST_UNFINISHED: usize = 10_000;

/// What a row says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The digest of the request.
    request: RequestDigest,
    state: State,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
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
pub(crate) struct Ticket {
    name: String,
    request: RequestDigest,
    row: Vec<u8>,
}

/// What the nodes know of a request.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Nothing: this node runs it.
    Run(Ticket),
    /// It was begun before.
    Before(Before),
}

impl ClusterNode {
    /// Looks a request up. If nothing is known of it, this node runs it, and [`ClusterNode::end`] is
    /// told how it ended. It waits for etcd.
    ///
    /// # Errors
    /// Those of etcd. Then nothing was begun.
    pub(crate) fn begin(
        &self,
        keystore: &Keystore,
        owner: &Owner,
        key: &str,
        request: RequestDigest,
    ) -> Result<Begun> {
        let attached =
            self.attached().ok_or_else(|| KmsError::new(Code::ShuttingDown, "the service is sealed"))?;
        // The answer is kept for a day. So it must not be one by an old view, for example that a
        // new key does not exist.
        keystore.catch_up()?;
        let tenant = hex::encode(keystore.note_digest(owner.tenant.as_str().as_bytes()));
        // No actor has a line break in its name.
        let of_caller = hex::encode(keystore.note_digest(format!("{}\n{key}", owner.actor).as_bytes()));
        let folder = format!("{FOLDER}/{tenant}");
        let name = format!("{folder}/{of_caller}");
        let row = seal(keystore, &name, request, State::Running(attached.name.clone()))?;
        let lease = attached.answers_lease()?;
        match attached.table.insert(&name, &row, Some(lease)) {
            Ok(InsertOutcome::New { rows }) => {
                let ticket = Ticket { name, request, row };
                if rows > MOST_ROWS
                    && let Err(error) = make_room(keystore, &attached.table, &folder, &ticket.name)
                {
                    attached.finish_later(Unfinished { name: ticket.name, old: ticket.row, new: None });
                    return Err(error);
                }
                Ok(Begun::Run(ticket))
            }
            Ok(InsertOutcome::Exists(found)) => {
                before(keystore, &attached.table, &found, request).map(Begun::Before)
            }
            Err(error) => {
                attached.forget_lease();
                // It may be there nonetheless, and must not say for a day that the request runs.
                attached.finish_later(Unfinished { name, old: row, new: None });
                Err(error.into())
            }
        }
    }

    /// Takes note of what a request ended with. If etcd cannot be reached, the row is written
    /// later. It waits for etcd.
    pub(crate) fn end(&self, keystore: &Keystore, ticket: Ticket, ended: &Ended) {
        self.finish(keystore, ticket, ended, |attached, row| {
            if row.write(&attached.table).is_err() {
                attached.finish_later(row);
            }
        });
    }

    /// The same without waiting.
    pub(crate) fn end_later(&self, keystore: &Keystore, ticket: Ticket, ended: &Ended) {
        self.finish(keystore, ticket, ended, |attached, row| attached.finish_later(row));
    }

    fn finish(
        &self,
        keystore: &Keystore,
        ticket: Ticket,
        ended: &Ended,
        write: impl FnOnce(&Arc<Attached>, Unfinished),
    ) {
        let Some(attached) = self.attached() else { return };
        let Ticket { name, request, row: old } = ticket;
        let new = match ended {
            Ended::Again => None,
            Ended::Answered(answer) if answer.body.len() <= MOST_BYTES => Some(State::from(answer)),
            Ended::Answered(_) | Ended::Unkept => Some(State::Unkept),
        };
        // Without random bytes, the row goes on to say that the request runs, until this node ends.
        let new = new.map(|state| seal(keystore, &name, request, state)).transpose();
        if let Ok(new) = new {
            write(&attached, Unfinished { name, old, new });
        }
    }
}

impl Attached {
    fn finish_later(&self, row: Unfinished) {
        let mut unfinished = locked(&self.unfinished);
        if unfinished.len() < MOST_UNFINISHED {
            unfinished.push(row);
        }
    }
}

impl From<&Answer> for State {
    fn from(answer: &Answer) -> Self {
        let content_type = answer.content_type.as_ref().and_then(|value| value.to_str().ok());
        Self::Answered {
            status: answer.status.as_u16(),
            content_type: content_type.map(str::to_owned),
            body: STANDARD.encode_to_string(&answer.body),
        }
    }
}

fn seal(keystore: &Keystore, name: &str, request: RequestDigest, state: State) -> Result<Vec<u8>> {
    let kept = Kept { request, state };
    keystore.seal_note(name, &serde_json::to_vec(&kept).unwrap_or_default())
}

fn open(keystore: &Keystore, row: &TableRow) -> Result<Kept> {
    let note = keystore.open_note(&row.name, &row.value)?;
    serde_json::from_slice(&note).map_err(malformed)
}

fn malformed(error: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::KeystoreCorrupt, format!("a kept answer is malformed: {error}"))
}

/// What a row says about a request.
fn before(keystore: &Keystore, table: &Table, row: &TableRow, request: RequestDigest) -> Result<Before> {
    let kept = open(keystore, row)?;
    if kept.request != request {
        return Ok(Before::AnotherRequest);
    }
    Ok(match kept.state {
        State::Running(node) if presence::is_there(table, &node)? => Before::Running,
        State::Running(_) => {
            // That node is gone, or cut off for long. Nobody knows what it did, so the request must
            // never be run again.
            let unkept = seal(keystore, &row.name, request, State::Unkept)?;
            if table.replace(&row.name, &row.value, Some(&unkept))? {
                Before::Unkept
            } else {
                // It has come back meanwhile: a repetition gets its answer.
                Before::Running
            }
        }
        State::Unkept => Before::Unkept,
        State::Answered { status, content_type, body } => Before::Answered(Answer {
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
fn make_room(keystore: &Keystore, table: &Table, folder: &str, but: &str) -> Result<()> {
    for row in table.oldest(folder, OLDEST)? {
        if row.name != but
            && !matches!(open(keystore, &row)?.state, State::Running(_))
            && table.replace(&row.name, &row.value, None)?
        {
            return Ok(());
        }
    }
    Err(KmsError::new(Code::Busy, "too many requests with an Idempotency-Key are running"))
}
