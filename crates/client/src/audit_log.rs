//! The audit log: its entries, its checkpoints, and proofs about both.

use serde::{Deserialize, Serialize};

use crate::call::{Call, Effect};
use crate::client::Client;
use crate::error::Result;

/// One entry of the audit log.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// Its number, from 0 without gaps.
    pub number: u64,
    /// When it was recorded: RFC 3339 in UTC.
    pub time: String,
    /// On whose behalf.
    pub who: String,
    /// What was done.
    pub operation: String,
    /// The key, or the version of a key, that was used.
    pub key: Option<String>,
    /// `ok`, a verdict, or the code of an error.
    pub result: String,
    /// The BLAKE3 digest of the message, in hexadecimal.
    pub digest: Option<String>,
    /// The entry's line in the log; empty if the service is too old to tell.
    #[serde(default)]
    pub line: String,
}

/// A page of entries. It proves nothing.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct EntryPage {
    /// The entries, the oldest first.
    pub entries: Vec<Entry>,
    /// The argument of [`Client::audit_entries`] for the next page; none on the last.
    pub next: Option<u64>,
}

/// A checkpoint: a signed statement of the log's length and content.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Checkpoint {
    /// The log's number.
    pub log: String,
    /// How many entries it covers.
    pub size: u64,
    /// The root of their tree, in hexadecimal.
    pub root: String,
    /// When it was signed: RFC 3339 in UTC.
    pub time: String,
    /// The key version that signed.
    pub key: String,
    /// The checkpoint itself: a signed note (C2SP).
    pub checkpoint: String,
}

/// The result of the service's verification of its log.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct LogReport {
    /// Whether nothing is wrong.
    pub valid: bool,
    /// How many entries were read.
    pub entries: u64,
    /// How many valid checkpoints were read.
    pub checkpoints: u64,
    /// How many entries the last of those covers.
    pub sealed: u64,
    /// What is wrong; at most a thousand are listed.
    pub problems: Vec<LogProblem>,
    /// The newest valid checkpoint.
    pub checkpoint: Option<Checkpoint>,
}

/// One thing that is wrong with a log.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LogProblem {
    /// What it is, as words.
    pub kind: String,
    /// The file, by its name in the log's folder.
    pub file: String,
    /// The line in the file, from 1.
    pub line: u64,
    /// The first entry that is concerned, where that is known.
    pub entry: Option<u64>,
    /// For a person.
    pub message: String,
}

impl Client {
    /// Reads up to 1,000 entries: the oldest ones, or those after the `next` of the page before.
    pub async fn audit_entries(&self, after: Option<u64>) -> Result<EntryPage> {
        let after = after.map_or_else(String::new, |after| format!("&after={after}"));
        self.call(Call::get(format!("/api/v1/audit-log/entries?limit=1000{after}"))).await
    }

    /// Reads the newest checkpoint.
    pub async fn checkpoint(&self) -> Result<Checkpoint> {
        self.call(Call::get("/api/v1/audit-log/checkpoint")).await
    }

    /// Makes a checkpoint if there are entries after the last one, and returns the newest.
    pub async fn make_checkpoint(&self) -> Result<Checkpoint> {
        self.call(Call::post("/api/v1/audit-log/checkpoint", Effect::None)).await
    }

    /// The proof that an entry is in the log that the newest checkpoint covers, as JSON. `bulla
    /// log verify --proof` checks it.
    pub async fn prove_entry(&self, number: u64) -> Result<String> {
        self.text(Call::get(format!("/api/v1/audit-log/entries/{number}/proof"))).await
    }

    /// The proof that the log still begins with the entries that an older checkpoint covers, as
    /// JSON.
    pub async fn prove_growth(&self, checkpoint: &str) -> Result<String> {
        #[derive(Serialize)]
        struct Older<'a> {
            checkpoint: &'a str,
        }
        let call = Call::post("/api/v1/audit-log/consistency", Effect::None);
        self.text(call.body(&Older { checkpoint })).await
    }

    /// Has the service verify its whole log. The log must still have the checkpoints that are
    /// given.
    pub async fn verify_log(&self, checkpoints: &[&str]) -> Result<LogReport> {
        #[derive(Serialize)]
        struct Verify<'a> {
            checkpoints: &'a [&'a str],
        }
        let call = Call::post("/api/v1/audit-log/verify", Effect::None);
        self.call(call.body(&Verify { checkpoints })).await
    }
}
