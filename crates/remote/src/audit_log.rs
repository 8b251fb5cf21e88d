//! The audit log of a service.

use crate::connection::{ServiceConnection, error_of, unexpected};
use crate::keys::read;
use bulla_cli::audit_log::{Log, LogCondition, WitnessPolicy};
use bulla_client::AuditLogProblem;
use bulla_command::error::{Error, Result};
use bulla_keystore::audit_log::{checkpoint_problem, find_untrusted};
use bulla_kms::audit_log::{
    Checkpoint, ConsistencyProof, CosignedReport, Entry, FindKey, InclusionProof, LogId, Problem,
    ProblemKind, Report,
};
use bulla_kms::{Code, Verdict};
use serde::de::DeserializeOwned;
use std::path::Path;

/// All kinds of problems, to find one by its word.
const KINDS: [ProblemKind; 10] = [
    ProblemKind::Altered,
    ProblemKind::Removed,
    ProblemKind::OutOfPlace,
    ProblemKind::Malformed,
    ProblemKind::Torn,
    ProblemKind::Truncated,
    ProblemKind::BadSignature,
    ProblemKind::UnknownKey,
    ProblemKind::Lost,
    ProblemKind::Forked,
];

/// What stands between an entry and its link in the chain, on a line of the log.
const LINK: &str = ",\"chain\":\"";

impl Log for ServiceConnection {
    fn place(&self) -> &Path {
        self.log_place()
    }

    fn id(&self) -> Result<LogId> {
        let newest = self.ask(|client| client.checkpoint())?;
        let newest: Checkpoint = read(&newest.text, "the checkpoint")?;
        Ok(newest.log)
    }

    fn read(&self, each: &mut dyn FnMut(&Entry, &str) -> Result<()>) -> Result<LogCondition> {
        for entry in self.client().audit_entries(None) {
            let line = entry.map_err(error_of)?.line;
            each(&entry_of(&line)?, &line)?;
        }
        Ok(LogCondition::NoProblems)
    }

    fn prove_entry(&self, number: u64) -> Result<InclusionProof> {
        proof(&self.ask(|client| client.inclusion_proof(number))?)
    }

    fn prove_growth(&self, older: &Checkpoint) -> Result<ConsistencyProof> {
        let older = older.to_string();
        proof(&self.ask(|client| client.consistency_proof(&older))?)
    }

    /// The service verifies its log. What it says of itself is checked here by proofs: that the
    /// newest checkpoint is one of a trusted key, and that the log which it seals begins with those
    /// of the known checkpoints.
    fn verify(&self, keys: &FindKey<'_>, known: &[Checkpoint]) -> Result<Report> {
        let texts: Vec<_> = known.iter().map(ToString::to_string).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let said = self.ask(|client| client.verify_audit_log(&texts))?;
        let newest = said.checkpoint.map(|newest| read(&newest.text, "the checkpoint"));
        let checkpoint: Option<Checkpoint> = newest.transpose()?;
        let mut problems: Vec<_> = said.problems.into_iter().map(problem).collect();
        // A log with problems has no good proofs either.
        if problems.is_empty() {
            problems.extend(checkpoint.iter().filter_map(|newest| find_untrusted(newest, keys)));
            for older in known {
                problems.extend(self.not_grown(older, checkpoint.as_ref(), keys)?);
            }
        }
        let mut report = Report::default();
        (report.entries, report.checkpoints, report.signed_entries) =
            (said.entries, said.checkpoints, said.signed_entries);
        (report.problems, report.checkpoint) = (problems, checkpoint);
        Ok(report)
    }

    /// Cosignatures are beside the log, and the service does not send them.
    fn verify_cosigned(
        &self,
        _keys: &FindKey<'_>,
        _policy: &WitnessPolicy,
    ) -> Result<Option<CosignedReport>> {
        Ok(None)
    }
}

impl ServiceConnection {
    /// The problem if the log does not begin with that of an older checkpoint.
    fn not_grown(
        &self,
        older: &Checkpoint,
        newest: Option<&Checkpoint>,
        keys: &FindKey<'_>,
    ) -> Result<Option<Problem>> {
        let proof = match self.prove_growth(older) {
            Err(error)
                if [Code::AuditLogCorrupt.as_str(), Code::InvalidArgument.as_str()]
                    .contains(&error.code()) =>
            {
                return Ok(Some(checkpoint_problem(ProblemKind::Altered, error.to_string())));
            }
            proof => proof?,
        };
        let is_about = proof.old == *older && newest.is_some_and(|newest| newest.size <= proof.new.size);
        let verdict = match (keys(&proof.old.key), keys(&proof.new.key)) {
            (Some(old), Some(new)) if is_about => proof.verify(&old, &new),
            _ => Verdict::Invalid,
        };
        Ok((!verdict.is_valid()).then(|| {
            let message = format!(
                "the service cannot prove that the log begins with the {} entries of a known checkpoint",
                older.size
            );
            checkpoint_problem(ProblemKind::Truncated, message)
        }))
    }
}

/// A problem that the service found.
fn problem(said: AuditLogProblem) -> Problem {
    let AuditLogProblem { kind, file, line, entry, message, .. } = said;
    let known = KINDS.into_iter().find(|known| known.as_str() == kind);
    let mut problem = Problem::new(known.unwrap_or(ProblemKind::Malformed), file, line, message);
    problem.entry = entry;
    problem
}

/// The entry on a line of the log.
fn entry_of(line: &str) -> Result<Entry> {
    let entry =
        line.rsplit_once(LINK).and_then(|(entry, _)| serde_json::from_str(&format!("{entry}}}")).ok());
    entry.ok_or_else(|| unexpected("it has a line that is no entry of an audit log"))
}

fn proof<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|_| Error::new("unexpected_answer", "the service sent no proof about its audit log"))
}
