//! What commands do with an audit log, wherever it is; and how they do it with a folder.

use crate::error::Result;
use bulla_kms::audit_log::{
    self, Checkpoint, ConsistencyProof, CosignedReport, Entry, FindKey, InclusionProof, LogId, Report,
    WitnessKey,
};
use std::path::{Path, PathBuf};

/// What reading a log shows of its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCondition {
    /// Nothing was wrong, as far as reading shows it.
    NoProblems,
    /// Something was wrong.
    Problems,
}

/// Which witnesses count, and how many of them must have cosigned a log.
#[derive(Clone, Debug, Default)]
pub struct WitnessPolicy {
    pub witnesses: Vec<WitnessKey>,
    pub quorum: usize,
}

/// An audit log.
pub trait Log {
    /// What names the log for people. The names of its files are in it.
    fn place(&self) -> &Path;

    /// The log's number.
    fn id(&self) -> Result<LogId>;

    /// Calls `each` for every entry with its line, and stops at the first error.
    fn read(&self, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<LogCondition>;

    fn prove_entry(&self, number: u64) -> Result<InclusionProof>;

    fn prove_growth(&self, older: &Checkpoint) -> Result<ConsistencyProof>;

    /// Verifies the log, which must have the known checkpoints.
    fn verify(&self, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report>;

    /// Verifies the newest checkpoint that witnesses cosigned, by the witnesses that count.
    /// `None` if there is none, or if it cannot be seen from here.
    fn verify_cosigned(&self, keys: &FindKey<'_>, policy: &WitnessPolicy) -> Result<Option<CosignedReport>>;
}

/// A log in a folder.
pub struct LogFolder(pub PathBuf);

impl Log for LogFolder {
    fn place(&self) -> &Path {
        &self.0
    }

    fn id(&self) -> Result<LogId> {
        Ok(audit_log::read_log_id(&self.0)?)
    }

    fn read(&self, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<LogCondition> {
        let mut failed = None;
        let report = audit_log::for_each_entry(&self.0, &mut |entry, line| {
            if failed.is_none() {
                failed = each(entry, line).err();
            }
            Ok(())
        })?;
        match failed {
            Some(error) => Err(error),
            None if report.problems.is_empty() => Ok(LogCondition::NoProblems),
            None => Ok(LogCondition::Problems),
        }
    }

    fn prove_entry(&self, number: u64) -> Result<InclusionProof> {
        Ok(audit_log::prove_inclusion(&self.0, number)?)
    }

    fn prove_growth(&self, older: &Checkpoint) -> Result<ConsistencyProof> {
        Ok(audit_log::prove_consistency(&self.0, older)?)
    }

    fn verify(&self, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report> {
        Ok(audit_log::verify(&self.0, keys, known)?)
    }

    fn verify_cosigned(&self, keys: &FindKey<'_>, policy: &WitnessPolicy) -> Result<Option<CosignedReport>> {
        Ok(audit_log::verify_cosigned(&self.0, keys, &policy.witnesses, policy.quorum)?)
    }
}
