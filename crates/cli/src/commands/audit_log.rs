//! `bulla audit-log`: the tamper-evident log of every key use.

use crate::args::{
    AuditLogCheckpointArgs, AuditLogCommand, AuditLogInitArgs, AuditLogProveArgs, AuditLogShowArgs,
    AuditLogVerifyArgs, KeystoreArgs,
};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic;
use crate::files::name::shown;
use crate::output::{JsonPath, Out};
use crate::store::{self, Access};
use crate::style;
use crate::trust::GivenKey;
use bulla_kms::audit_log::{self, Checkpoint, ConsistencyProof, InclusionProof, Problem, Report};
use bulla_kms::{Attestation, KeyId, PublicKey, Verdict, VersionState};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Longer than any file that is read completely here.
const MAX_FILE: u64 = 1 << 20;

pub(crate) fn run(command: &AuditLogCommand) -> Result<Exit> {
    match command {
        AuditLogCommand::Init(args) => init(args),
        AuditLogCommand::Verify(args) => return verify(args),
        AuditLogCommand::Show(args) => return show(args),
        AuditLogCommand::Prove(args) => prove(args),
        AuditLogCommand::Checkpoint(args) => checkpoint(args),
    }?;
    Ok(Exit::Ok)
}

fn init(args: &AuditLogInitArgs) -> Result<()> {
    let access = Access::existing(&args.keystore)?;
    let (folder, key) = access.begin_log()?;
    let mut out = Out::after("the audit log was started");
    if args.report.json {
        #[derive(Serialize)]
        struct Begun {
            #[serde(flatten)]
            log: JsonPath,
            key: String,
        }
        out.json(&Begun { log: folder.as_path().into(), key: key.to_string() })?;
    } else if !args.report.quiet {
        out.line(format_args!(
            "started the audit log {}: it records every use of a private key from now on",
            shown(&folder)
        ))?;
    }
    out.flush()
}

/// The keys whose checkpoints count.
enum Trust {
    Keystore(Attestation),
    Given(Box<GivenKey>),
}

impl Trust {
    fn new(public_key: Option<&str>, keystore: &KeystoreArgs) -> Result<Self> {
        match public_key {
            Some(text) => Ok(Self::Given(Box::new(GivenKey::read(text)?))),
            None => Ok(Self::Keystore(Access::existing(keystore)?.log_key()?)),
        }
    }

    fn find(&self, id: &KeyId) -> Option<PublicKey> {
        match self {
            Self::Keystore(key) => {
                let version = key.versions.iter().find(|version| version.id == *id)?;
                (version.state != VersionState::Revoked).then(|| version.public_key.clone())
            }
            Self::Given(given) => given.for_id(id),
        }
    }
}

fn verify(args: &AuditLogVerifyArgs) -> Result<Exit> {
    let trust = Trust::new(args.public_key.as_deref(), &args.keystore)?;
    if let Some(path) = &args.proof {
        return verify_proof(args, &trust, path);
    }
    let folder = folder(args.log.as_ref(), &args.keystore)?;
    let known = args.checkpoint.iter().map(|path| read_checkpoint(path)).collect::<Result<Vec<_>>>()?;
    let report = audit_log::verify(&folder, &|id| trust.find(id), &known)?;
    let mut out = Out::new();
    if args.report.json {
        #[derive(Serialize)]
        struct Verified<'a> {
            #[serde(flatten)]
            log: JsonPath,
            status: &'static str,
            #[serde(flatten)]
            report: &'a Report,
        }
        let status = if report.problems.is_empty() { "ok" } else { "failed" };
        out.json(&Verified { log: folder.as_path().into(), status, report: &report })?;
    } else {
        print_problems(&mut out, &folder, &report.problems)?;
        if report.problems.is_empty() && !args.report.quiet {
            print_good(&mut out, &folder, &report)?;
        }
    }
    out.flush()?;
    Ok(if report.problems.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn print_problems(out: &mut Out, folder: &Path, problems: &[Problem]) -> Result<()> {
    let bad = out.style(style::BAD);
    problems.iter().try_for_each(|problem| {
        let (file, word) = (shown(&folder.join(&problem.file)), problem.kind.as_str());
        out.line(format_args!("{file}, line {}: {bad}{word}{bad:#} ({})", problem.line, problem.message))
    })
}

fn print_good(out: &mut Out, folder: &Path, report: &Report) -> Result<()> {
    let good = out.style(style::GOOD);
    let open = match report.entries - report.sealed {
        0 => String::new(),
        open => format!(", {open} newer than the last checkpoint and not sealed yet"),
    };
    let Report { entries, sealed, .. } = report;
    out.line(format_args!("{}: {good}OK{good:#} ({entries} entries, {sealed} sealed{open})", shown(folder)))
}

/// A proof of either kind.
enum Proof {
    Inclusion(Box<InclusionProof>),
    Consistency(Box<ConsistencyProof>),
}

fn verify_proof(args: &AuditLogVerifyArgs, trust: &Trust, path: &Path) -> Result<Exit> {
    let text = read_text(path)?;
    let malformed = |_| Error::new("malformed_proof", "is not a proof about an audit log").about(shown(path));
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
    let mut out = Out::new();
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
        let bad = out.style(style::BAD);
        out.line(format_args!(
            "{}: {bad}proves nothing{bad:#} (somebody altered it, or its key is not trusted)",
            shown(path)
        ))?;
    } else if !args.report.quiet {
        let good = out.style(style::GOOD);
        out.line(format_args!("{}: {good}OK{good:#} ({what})", shown(path)))?;
    }
    out.flush()?;
    Ok(if verdict.is_valid() { Exit::Ok } else { Exit::Failed })
}

fn show(args: &AuditLogShowArgs) -> Result<Exit> {
    let folder = folder(args.log.as_ref(), &args.keystore)?;
    let mut out = Out::new();
    let mut failed = None;
    let report = audit_log::read(&folder, &mut |entry, line| {
        if failed.is_none() {
            let printed = if args.json {
                out.line(line)
            } else {
                let key = entry.key.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
                let (number, time, who) = (entry.number, entry.time, &entry.who);
                out.line(format_args!("{number}  {time}  {who}  {} {key}  {}", entry.operation, entry.result))
            };
            failed = printed.err();
        }
        Ok(())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    out.flush()?;
    if report.problems.is_empty() {
        return Ok(Exit::Ok);
    }
    note_line("the log was altered or damaged; `bulla audit-log verify` lists the problems");
    Ok(Exit::Failed)
}

fn prove(args: &AuditLogProveArgs) -> Result<()> {
    let folder = folder(args.log.as_ref(), &args.keystore)?;
    let text = match (&args.since, args.entry) {
        (Some(path), _) => {
            serde_json::to_string(&audit_log::prove_consistency(&folder, &read_checkpoint(path)?)?)
        }
        (None, Some(entry)) => serde_json::to_string(&audit_log::prove_inclusion(&folder, entry)?),
        (None, None) => {
            return Err(Error::new("usage", "give the number of an entry, or a checkpoint with --since"));
        }
    };
    write(args.output.as_deref(), Out::new, &(text.expect("plain structures serialise") + "\n"))
}

fn checkpoint(args: &AuditLogCheckpointArgs) -> Result<()> {
    let checkpoint = Access::existing(&args.keystore)?.seal_log()?;
    let out = || Out::after("the checkpoint was made");
    if !args.json {
        return write(args.output.as_deref(), out, &checkpoint.to_string());
    }
    #[derive(Serialize)]
    struct Sealed {
        log: String,
        size: u64,
        root: String,
        time: String,
        key: String,
        checkpoint: String,
    }
    let mut out = out();
    out.json(&Sealed {
        log: checkpoint.log.to_string(),
        size: checkpoint.size,
        root: checkpoint.root.to_string(),
        time: checkpoint.time.to_string(),
        key: checkpoint.key.to_string(),
        checkpoint: checkpoint.to_string(),
    })?;
    out.flush()
}

/// The folder of the log.
fn folder(given: Option<&PathBuf>, keystore: &KeystoreArgs) -> Result<PathBuf> {
    match given {
        Some(folder) => Ok(folder.clone()),
        None => store::log_folder(keystore),
    }
}

fn read_checkpoint(path: &Path) -> Result<Checkpoint> {
    let text = read_text(path)?;
    text.parse().map_err(|error: bulla_kms::KmsError| Error::from(error).about(shown(path)))
}

fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let cannot = |error| Error::io("cannot read", &error).about(shown(path));
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
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
