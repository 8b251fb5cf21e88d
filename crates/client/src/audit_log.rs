//! The audit log: its entries, its checkpoints, and proofs about both.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::encoding::time;
use crate::error::Result;
use crate::operation::Operation;
use crate::pages::Pages;
use crate::request::Call;

/// One entry of the audit log.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditEntry {
    /// Its number, from 0 without gaps.
    pub number: u64,
    /// When it was recorded.
    #[serde(deserialize_with = "time")]
    pub time: SystemTime,
    /// The caller on whose behalf it was done.
    #[serde(rename = "who")]
    pub actor: String,
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
pub struct AuditEntryPage {
    /// The entries, the oldest first.
    pub entries: Vec<AuditEntry>,
    /// The argument of [`Client::audit_entry_page`] for the next page; none on the last.
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
    /// The root hash of their tree, in hexadecimal.
    #[serde(rename = "root")]
    pub root_hash: String,
    /// When it was signed.
    #[serde(deserialize_with = "time")]
    pub time: SystemTime,
    /// The key version id of the version that signed.
    pub key: String,
    /// The text of the checkpoint: a signed note (C2SP).
    #[serde(rename = "checkpoint")]
    pub text: String,
}

/// The result of the service's verification of its log.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct AuditLogReport {
    /// Whether nothing is wrong.
    pub valid: bool,
    /// How many entries were read.
    pub entries: u64,
    /// How many valid checkpoints were read.
    pub checkpoints: u64,
    /// How many entries the last of those covers.
    pub signed_entries: u64,
    /// What is wrong; at most a thousand are listed.
    pub problems: Vec<AuditLogProblem>,
    /// The newest valid checkpoint.
    pub checkpoint: Option<Checkpoint>,
}

/// One thing that is wrong with a log.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditLogProblem {
    /// The kind of the problem: `truncated`, for example.
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
    /// Lists the entries of the audit log, the oldest first: all of them, or those after a number.
    /// It reads the next page when the entries of the page before have been taken.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let mut entries = client.audit_entries(None);
    /// while let Some(entry) = entries.try_next().await? {
    ///     println!("{} {} {}", entry.number, entry.actor, entry.operation);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn audit_entries(&self, after: Option<u64>) -> Pages<AuditEntry> {
        let client = self.clone();
        Pages::new(move |next: Option<String>| {
            let client = client.clone();
            Box::pin(async move {
                let next = next.and_then(|next| next.parse().ok()).or(after);
                let page = client.audit_entry_page(next).await?;
                Ok((page.entries, page.next.map(|next| next.to_string())))
            })
        })
    }

    /// Reads up to 1,000 entries: the oldest ones, or those after the `next` of the page before.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let first = client.audit_entry_page(None).await?;
    /// let second = client.audit_entry_page(first.next).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn audit_entry_page(&self, after: Option<u64>) -> Result<AuditEntryPage> {
        let call = Call::new(Operation::AuditEntries).query("limit", "1000");
        self.call(match after {
            Some(after) => call.query("after", &after.to_string()),
            None => call,
        })
        .await
    }

    /// Reads the newest checkpoint.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let checkpoint = client.checkpoint().await?;
    /// println!("{} entries", checkpoint.size);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn checkpoint(&self) -> Result<Checkpoint> {
        self.call(Call::new(Operation::Checkpoint)).await
    }

    /// Makes a checkpoint if there are entries after the last one, and returns the newest.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let checkpoint = client.make_checkpoint().await?;
    /// std::fs::write("checkpoint", checkpoint.text).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn make_checkpoint(&self) -> Result<Checkpoint> {
        self.call(Call::new(Operation::MakeCheckpoint)).await
    }

    /// Proves that an entry is in the log that the newest checkpoint covers: JSON, which `bulla log
    /// verify --proof` checks.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let proof = client.inclusion_proof(17).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inclusion_proof(&self, number: u64) -> Result<String> {
        let call = Call::new(Operation::InclusionProof);
        self.text(call.path_param("{number}", &number.to_string())).await
    }

    /// Proves that the log still begins with the entries that an older checkpoint covers: JSON.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let older = std::fs::read_to_string("checkpoint").unwrap();
    /// let proof = client.consistency_proof(&older).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn consistency_proof(&self, older: &str) -> Result<String> {
        #[derive(Serialize)]
        struct Body<'a> {
            checkpoint: &'a str,
        }
        self.text(Call::new(Operation::ConsistencyProof).body(&Body { checkpoint: older })).await
    }

    /// Asks the service to verify its whole log. The log must still have the given checkpoints.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let older = std::fs::read_to_string("checkpoint").unwrap();
    /// let report = client.verify_audit_log(&[&older]).await?;
    /// assert!(report.valid, "{:?}", report.problems);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify_audit_log(&self, checkpoints: &[&str]) -> Result<AuditLogReport> {
        #[derive(Serialize)]
        struct Body<'a> {
            checkpoints: &'a [&'a str],
        }
        self.call(Call::new(Operation::VerifyAuditLog).body(&Body { checkpoints })).await
    }
}
