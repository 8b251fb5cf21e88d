//! `bulla log`: the tamper-evident log of every key use.

use crate::args::{
    KeystoreArgs, LogCheckpointArgs, LogCommand, LogInitArgs, LogProveArgs, LogShowArgs, LogVerifyArgs,
    LogWitnessArgs,
};
use crate::color;
use crate::diagnostics::{error_line, note_line};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic;
use crate::files::atomic::check_replaceable;
use crate::output::{JsonPath, Out};
use crate::programs::SERVE;
use crate::store::{self, KeySource, LocalKeystore, LogCondition, WitnessPolicy};
use crate::trust::GivenKey;
use bulla_files::escape_path;
use bulla_keystore::audit_log::checkpoint_key;
use bulla_kms::audit_log::{
    Checkpoint, ConsistencyProof, CosignedReport, InclusionProof, Problem, Report, WitnessReport, Witnesses,
    verifier_key,
};
use bulla_kms::{Attestation, Code, KeyVersionId, PublicKey, Verdict, VersionState};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub(crate) fn run(command: &LogCommand) -> Result<Exit> {
    match command {
        LogCommand::Init(args) => init(args),
        LogCommand::Verify(args) if args.config.is_some() => return Err(SERVE.start_same()),
        LogCommand::Verify(args) => return verify(args, &WitnessPolicy::default()),
        LogCommand::Show(args) => return show(args),
        LogCommand::Prove(args) => prove(args),
        LogCommand::Checkpoint(args) => checkpoint(args),
        LogCommand::Witness(args) if args.print_key => return print_witness_keys(args),
        // The settings of the service name the witnesses.
        LogCommand::Witness(_) => return Err(SERVE.start_same()),
    }?;
    Ok(Exit::Ok)
}

fn init(args: &LogInitArgs) -> Result<()> {
    let started = LocalKeystore::existing(&args.keystore)?.begin_log()?;
    let (folder, key) = (started.folder.path(), &started.key);
    let mut out = Out::after("the audit log was started");
    if args.report.json {
        #[derive(Serialize)]
        struct Begun {
            #[serde(flatten)]
            log: JsonPath,
            key: String,
        }
        out.json(&Begun { log: folder.into(), key: key.to_string() })?;
    } else if !args.report.quiet {
        out.line(format_args!(
            "started the audit log {}: it records every use of a private key from now on",
            escape_path(folder)
        ))?;
    }
    out.flush()
}

/// Verifies a log, and that the witnesses of the policy have cosigned it.
///
/// # Errors
/// Something could not be checked.
pub fn verify(args: &LogVerifyArgs, policy: &WitnessPolicy) -> Result<Exit> {
    let trust = Trust::new(args.public_key.as_deref(), &args.keystore)?;
    if let Some(path) = &args.proof {
        return verify_proof(args, &trust, path);
    }
    let folder = match &*args.log {
        [] => None,
        [folder] => Some(folder.as_path()),
        _ => return Err(Error::new("usage", "only --cluster takes more than one --log")),
    };
    let log = store::open_log(folder, &args.keystore)?;
    let known = read_checkpoints(&args.checkpoint)?;
    let mut report = log.verify(&|id| trust.find(id), &known)?;
    let mut cosigned = log.verify_cosigned(&|id| trust.find(id), policy)?;
    if cosigned.is_none() && policy.quorum > 0 {
        return Err(Error::new("invalid_argument", "a service does not send its log's cosignatures")
            .hint("verify the log's folder, with --log"));
    }
    report.problems.extend(cosigned.iter_mut().flat_map(|cosigned| std::mem::take(&mut cosigned.problems)));
    let place = log.place();
    let mut out = Out::stdout();
    if args.report.json {
        #[derive(Serialize)]
        struct Verified<'a> {
            #[serde(flatten)]
            log: JsonPath,
            status: &'static str,
            #[serde(flatten)]
            report: &'a Report,
            #[serde(skip_serializing_if = "Option::is_none")]
            cosigned: Option<&'a CosignedReport>,
        }
        let status = if report.problems.is_empty() { "ok" } else { "failed" };
        out.json(&Verified { log: place.into(), status, report: &report, cosigned: cosigned.as_ref() })?;
    } else {
        print_problems(&mut out, place, &report.problems)?;
        if report.problems.is_empty() && !args.report.quiet {
            print_good(&mut out, place, &report, cosigned.as_ref())?;
        }
    }
    out.flush()?;
    Ok(if report.problems.is_empty() { Exit::Ok } else { Exit::Mismatch })
}

fn print_good(
    out: &mut Out,
    folder: &Path,
    report: &Report,
    cosigned: Option<&CosignedReport>,
) -> Result<()> {
    let good = out.style(color::GOOD);
    let open = match report.entries.saturating_sub(report.signed_entries) {
        0 => String::new(),
        open => format!(", {open} newer than the last checkpoint and not signed yet"),
    };
    let seen = match cosigned {
        None => String::new(),
        // Without settings, nobody knows which witnesses count.
        Some(CosignedReport { size, witnesses, .. }) if witnesses.is_empty() => {
            format!(", {size} shown to witnesses that --config does not name")
        }
        Some(CosignedReport { size, witnesses, .. }) => {
            let witnesses: Vec<_> = witnesses
                .iter()
                .map(|(name, time)| format!("{} at {time}", escape_path(Path::new(name))))
                .collect();
            format!(", {size} cosigned by {}", witnesses.join(" and "))
        }
    };
    let Report { entries, signed_entries, .. } = report;
    out.line(format_args!(
        "{}: {good}OK{good:#} ({entries} entries, {signed_entries} signed{open}{seen})",
        escape_path(folder)
    ))
}

/// A proof of either kind.
enum Proof {
    Inclusion(Box<InclusionProof>),
    Consistency(Box<ConsistencyProof>),
}

fn verify_proof(args: &LogVerifyArgs, trust: &Trust, path: &Path) -> Result<Exit> {
    let text = read_text(path)?;
    let malformed =
        |_| Error::new("malformed_proof", "is not a proof about an audit log").about(escape_path(path));
    let proof = match serde_json::from_str(&text) {
        Ok(proof) => Proof::Inclusion(Box::new(proof)),
        Err(_) => Proof::Consistency(Box::new(serde_json::from_str(&text).map_err(malformed)?)),
    };
    let (verdict, what) = match &proof {
        Proof::Inclusion(proof) => {
            let entry = proof.entry()?;
            let verdict = match trust.find(&proof.checkpoint.key) {
                Some(key) => proof.verify(&key)?,
                None => Verdict::Invalid,
            };
            let size = proof.checkpoint.size;
            (
                verdict,
                format!(
                    "entry {} is one of the first {size} of the log {}",
                    entry.number, proof.checkpoint.log
                ),
            )
        }
        Proof::Consistency(proof) => {
            let ConsistencyProof { old, new, .. } = &**proof;
            let verdict = match (trust.find(&old.key), trust.find(&new.key)) {
                (Some(old), Some(new)) => proof.verify(&old, &new),
                _ => Verdict::Invalid,
            };
            (
                verdict,
                format!(
                    "the log {} has {} entries and begins with the {} entries of the older checkpoint",
                    new.log, new.size, old.size
                ),
            )
        }
    };
    let mut out = Out::stdout();
    if args.report.json {
        #[derive(Serialize)]
        struct Checked {
            #[serde(flatten)]
            path: JsonPath,
            status: &'static str,
        }
        let status = if verdict.is_valid() { "ok" } else { "failed" };
        out.json(&Checked { path: path.into(), status })?;
    } else if !verdict.is_valid() {
        let bad = out.style(color::BAD);
        out.line(format_args!(
            "{}: {bad}proves nothing{bad:#} (somebody altered it, or its key is not trusted)",
            escape_path(path)
        ))?;
    } else if !args.report.quiet {
        let good = out.style(color::GOOD);
        out.line(format_args!("{}: {good}OK{good:#} ({what})", escape_path(path)))?;
    }
    out.flush()?;
    Ok(if verdict.is_valid() { Exit::Ok } else { Exit::Mismatch })
}

fn show(args: &LogShowArgs) -> Result<Exit> {
    let log = store::open_log(args.log.as_deref(), &args.keystore)?;
    let mut out = Out::stdout();
    let seen = log.read(&mut |entry, line| {
        if args.json {
            return out.line(line);
        }
        let key = entry.key.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let (number, time, who) = (entry.number, entry.time, &entry.actor);
        out.line(format_args!("{number}  {time}  {who}  {} {key}  {}", entry.operation, entry.result))
    })?;
    out.flush()?;
    if seen == LogCondition::NoProblems {
        return Ok(Exit::Ok);
    }
    note_line("the log was altered or damaged; `bulla log verify` lists the problems");
    Ok(Exit::Mismatch)
}

fn prove(args: &LogProveArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let log = store::open_log(args.log.as_deref(), &args.keystore)?;
    let text = match (&args.since, args.entry) {
        (Some(path), _) => serde_json::to_string(&log.prove_growth(&read_checkpoint(path)?)?),
        (None, Some(entry)) => serde_json::to_string(&log.prove_entry(entry)?),
        (None, None) => {
            return Err(Error::new("usage", "give the number of an entry, or a checkpoint with --since"));
        }
    };
    write(args.output.as_deref(), Out::stdout, &(text.expect("plain structures serialize") + "\n"))
}

fn checkpoint(args: &LogCheckpointArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let checkpoint = KeySource::existing(&args.keystore)?.make_checkpoint()?;
    let out = || Out::after("the checkpoint was made");
    if !args.json {
        return write(args.output.as_deref(), out, &checkpoint.to_string());
    }
    #[derive(Serialize)]
    struct SignedCheckpoint {
        log: String,
        size: u64,
        root: String,
        time: String,
        key: String,
        checkpoint: String,
    }
    let mut out = out();
    out.json(&SignedCheckpoint {
        log: checkpoint.log.to_string(),
        size: checkpoint.size,
        root: checkpoint.root.to_string(),
        time: checkpoint.time.to_string(),
        key: checkpoint.key.to_string(),
        checkpoint: checkpoint.to_string(),
    })?;
    out.flush()
}

/// Prints the log's keys in the form that witnesses take.
fn print_witness_keys(args: &LogWitnessArgs) -> Result<Exit> {
    let source = KeySource::existing(&args.keystore)?;
    let mut out = Out::stdout();
    let log = store::open_log(None, &args.keystore)?.id()?;
    for version in source.log_key()?.versions {
        if let Some(public_key) = version.public_key.filter(|_| version.state != VersionState::Revoked) {
            out.line(verifier_key(log, &public_key))?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Has witnesses cosign the log, and prints the cosigned checkpoint.
///
/// # Errors
/// The keystore cannot be opened, or has no log.
pub fn witness(args: &LogWitnessArgs, mut witnesses: Witnesses) -> Result<Exit> {
    let source = KeySource::existing(&args.keystore)?;
    let mut out = Out::stdout();
    let WitnessReport { checkpoint, failed, stored, .. } = source.witness_log(&mut witnesses)?;
    for (_, error) in &failed {
        error_line(&error.to_string());
    }
    if stored {
        out.bytes(checkpoint.to_string().as_bytes())?;
        out.flush()?;
    }
    let contradicts = failed.iter().any(|(_, error)| error.code == Code::AuditLogCorrupt);
    Ok(match (contradicts, stored) {
        (true, _) => Exit::Mismatch,
        (false, true) => Exit::Ok,
        (false, false) => Exit::Error,
    })
}

/// Refuses to replace anything but a checkpoint, or a proof about a log.
fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    check_replaceable(output, "a checkpoint or a proof", |content| {
        let is_proof = serde_json::from_slice::<InclusionProof>(content).is_ok()
            || serde_json::from_slice::<ConsistencyProof>(content).is_ok();
        is_proof || str::from_utf8(content).is_ok_and(|text| text.parse::<Checkpoint>().is_ok())
    })
}

fn write(path: Option<&Path>, out: impl FnOnce() -> Out, text: &str) -> Result<()> {
    match path {
        Some(path) => atomic::write(path, |file| file.write_all(text.as_bytes())),
        None => {
            let mut out = out();
            out.bytes(text.as_bytes())?;
            out.flush()
        }
    }
}

/// Longer than any file that is read completely here.
const MAX_FILE: u64 = 1 << 20;

/// The keys whose checkpoints count.
pub enum Trust {
    Keystore(Box<Attestation>),
    Given(Box<GivenKey>),
}

impl Trust {
    pub(super) fn new(public_key: Option<&str>, keystore: &KeystoreArgs) -> Result<Self> {
        match public_key {
            Some(text) => Ok(Self::Given(Box::new(GivenKey::read(text)?))),
            None => Ok(Self::Keystore(Box::new(KeySource::existing(keystore)?.log_key()?))),
        }
    }

    pub fn find(&self, id: &KeyVersionId) -> Option<PublicKey> {
        match self {
            Self::Keystore(key) => checkpoint_key(key, id),
            Self::Given(given) => given.for_id(id),
        }
    }
}

pub fn print_problems(out: &mut Out, folder: &Path, problems: &[Problem]) -> Result<()> {
    let bad = out.style(color::BAD);
    problems.iter().try_for_each(|problem| {
        let (file, word) = (escape_path(&folder.join(&problem.file)), problem.kind.as_str());
        out.line(format_args!("{file}, line {}: {bad}{word}{bad:#} ({})", problem.line, problem.message))
    })
}

pub fn read_checkpoints(paths: &[PathBuf]) -> Result<Vec<Checkpoint>> {
    paths.iter().map(|path| read_checkpoint(path)).collect()
}

pub(super) fn read_checkpoint(path: &Path) -> Result<Checkpoint> {
    let text = read_text(path)?;
    text.parse().map_err(|error: bulla_kms::KmsError| Error::from(error).about(escape_path(path)))
}

pub(super) fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let cannot = |error| Error::io("cannot read", &error).about(escape_path(path));
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}
