//! What clients were answered while something befell the nodes or etcd, as a table.

use crate::client::Answer;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Result};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Signature,
    Change,
    Read,
}

/// Answers by what was the matter when their requests were sent.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    now: &'static str,
    rows: BTreeMap<&'static str, Row>,
}

/// The answers to the requests of some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    /// How often this was the matter.
    times: u64,
    signatures: u64,
    changes: u64,
    reads: u64,
    /// Nothing was changed, and the request may be sent again.
    refused: u64,
    /// The connection broke, or the node does not know what became of the request.
    in_doubt: u64,
    /// Nobody was there.
    unreached: u64,
}

impl Tally {
    /// No answers. Nothing is the matter.
    pub(crate) fn new() -> Self {
        let mut tally = Self { now: "", rows: BTreeMap::new() };
        tally.begin(NOTHING);
        tally
    }

    /// From now on, this is the matter.
    pub(crate) fn begin(&mut self, matter: &'static str) {
        self.now = matter;
        self.rows.entry(matter).or_default().times += 1;
    }

    /// What is the matter now.
    pub(crate) fn now(&self) -> &'static str {
        self.now
    }

    /// Counts the answer to a request that was sent when `matter` was the matter.
    pub(crate) fn count(&mut self, matter: &'static str, asked: Asked, answer: &Result<Answer>) {
        let row = self.rows.entry(matter).or_default();
        let counter = match answer {
            Ok(answer) if answer.is_ok() => match asked {
                Asked::Signature => &mut row.signatures,
                Asked::Change => &mut row.changes,
                Asked::Read => &mut row.reads,
            },
            Ok(answer) if answer.code() == "outcome_unknown" => &mut row.in_doubt,
            Ok(answer) if answer.body["retryable"] == true => &mut row.refused,
            // The key is disabled, or somebody has already asked: that is no fault.
            Ok(_) => return,
            Err(error) if nobody_was_there(error.kind()) => &mut row.unreached,
            Err(_) => &mut row.in_doubt,
        };
        *counter += 1;
    }
}

/// What is the matter while all is well.
pub(crate) const NOTHING: &str = "nothing";

/// Whether a request with this error was not even sent.
pub(crate) fn nobody_was_there(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = "times | signatures | changes | reads | refused | in doubt | not reached";
        writeln!(f, "| fault | {heads} |\n|---|{}", "--:|".repeat(7))?;
        for (matter, row) in &self.rows {
            let Row { times, signatures, changes, reads, refused, in_doubt, unreached } = row;
            let cells = [times, signatures, changes, reads, refused, in_doubt, unreached];
            writeln!(f, "| {matter} | {} |", cells.map(u64::to_string).join(" | "))?;
        }
        Ok(())
    }
}
