//! `bulla log verify --cluster`: the logs of all nodes, against the checkpoints that the
//! nodes gather in etcd.

use crate::etcd::EtcdSource;
use crate::witness_policy;
use bulla_cli::audit_log::{
    GivenKey, Log, LogFolder, LogVerifyArgs, Trust, WitnessPolicy, print_problems, read_checkpoints,
};
use bulla_command::color;
use bulla_command::diagnostics::error_line;
use bulla_command::error::Result;
use bulla_command::exit::Exit;
use bulla_command::output::{JsonPath, Out};
use bulla_files::escape_path;
use bulla_keystore::audit_log::{checkpoint_problem, find_untrusted};
use bulla_kms::audit_log::{Checkpoint, LogId, Problem, ProblemKind, Report};
use bulla_kms::{Code, KeyVersionId};
use bulla_remote::ServiceConnection;
use bulla_server::{Config, NodeCheckpoint, PublishedCheckpoint};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is known of one log.
#[derive(Default)]
struct KnownLog {
    /// Where it is, as the newest checkpoint's row says.
    place: String,
    /// Its checkpoints that trusted keys signed.
    checkpoints: Vec<Checkpoint>,
    /// How many entries those in etcd seal at most.
    in_etcd: Option<u64>,
    /// The same of those that nodes remember.
    remembered: Option<u64>,
    /// Whether a node writes it.
    running: bool,
    problems: Vec<Problem>,
    sources: Vec<Box<dyn Log>>,
}

/// A log that was read.
#[derive(Serialize)]
struct Read {
    #[serde(flatten)]
    path: JsonPath,
    #[serde(skip)]
    place: PathBuf,
    #[serde(flatten)]
    report: Report,
}

/// How well a log verified.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Failed,
    /// Nobody has shown it.
    NotRead,
}

/// One log, in JSON.
#[derive(Serialize)]
struct Verified<'a> {
    log: String,
    place: &'a str,
    running: bool,
    status: Status,
    /// The newest checkpoint that is known from elsewhere.
    checkpoint: Option<&'a Checkpoint>,
    problems: &'a [Problem],
    read: &'a [Read],
}

pub(crate) fn verify(args: &LogVerifyArgs, config: &Config) -> Result<Exit> {
    let policy = witness_policy(config);
    let cluster = EtcdSource::unopened(&args.keystore, config)?;
    // A node that has not started yet has no log. A lost one is found by its checkpoints.
    let own = Some(cluster.log_folder().path().to_owned()).filter(|own| own.exists());
    let folders: Vec<_> = own.into_iter().chain(args.log.iter().cloned()).collect();
    // What nodes remember comes first: etcd has it, or something newer.
    let remembered = folders
        .iter()
        .map(|folder| bulla_server::read_peer_checkpoints(folder))
        .collect::<Result<Vec<_>, _>>()?;
    let gathered = cluster.gathered()?;
    let trust = match &args.public_key {
        Some(text) => Trust::Given(Box::new(GivenKey::read(text)?)),
        None => Trust::Keystore(Box::new(EtcdSource::log_key(&args.keystore, config)?)),
    };
    let (mut known, mut exit) = (BTreeMap::new(), Exit::Ok);
    let mut out = Out::stdout();
    for row in &gathered {
        if let Some(problem) = gather(&mut known, row, &trust) {
            exit = Exit::Mismatch;
            print_stray(&mut out, args, &problem)?;
        }
    }
    for NodeCheckpoint { place, checkpoint } in remembered.into_iter().flatten() {
        let size = checkpoint.size;
        if let Some(known) = remember(&mut known, checkpoint, &trust) {
            known.remembered = known.remembered.max(Some(size));
            if known.place.is_empty() {
                known.place = place;
            }
        }
    }
    for checkpoint in read_checkpoints(&args.checkpoint)? {
        remember(&mut known, checkpoint, &trust);
    }
    for log in sources(args, folders)? {
        match log.id() {
            Ok(id) => known.entry(id).or_default().sources.push(log),
            Err(error) => {
                error_line(&format!("{}: {error}", escape_path(log.place())));
                exit = exit.and(if is_gone(error.code()) { Exit::Mismatch } else { Exit::Error });
            }
        }
    }
    for (id, known) in &mut known {
        exit = exit.and(verify_one(args, &policy, &trust, *id, known, &mut out)?);
    }
    out.flush()?;
    Ok(exit)
}

/// Whether an error says that a log is not what it was.
fn is_gone(code: &str) -> bool {
    [Code::NotFound.as_str(), Code::AuditLogCorrupt.as_str()].contains(&code)
}

/// Takes note of a row of etcd. Returns the problem with a row that is about no log.
fn gather(
    known: &mut BTreeMap<LogId, KnownLog>,
    row: &PublishedCheckpoint,
    trust: &Trust,
) -> Option<Problem> {
    let malformed = || {
        let message = "etcd has a row that is no checkpoint of a log".to_owned();
        let mut problem = checkpoint_problem(ProblemKind::Malformed, message);
        problem.file.clone_from(&row.row);
        problem
    };
    let Some((id, told)) = row.log.zip(row.content.as_ref()) else { return Some(malformed()) };
    if let Some(mut problem) = find_untrusted(&told.checkpoint, &|id| trust.find(id)) {
        problem.file.clone_from(&row.row);
        return Some(problem);
    }
    let known = known.entry(id).or_default();
    let size = told.checkpoint.size;
    if known.in_etcd.is_none_or(|newest| newest < size) {
        known.in_etcd = Some(size);
        known.place.clone_from(&told.place);
    }
    known.running |= row.running;
    known.checkpoints.push(told.checkpoint.clone());
    None
}

/// Takes note of a checkpoint that was kept outside of etcd, if a trusted key signed it.
fn remember<'a>(
    known: &'a mut BTreeMap<LogId, KnownLog>,
    checkpoint: Checkpoint,
    trust: &Trust,
) -> Option<&'a mut KnownLog> {
    if find_untrusted(&checkpoint, &|id| trust.find(id)).is_some() {
        return None;
    }
    let known = known.entry(checkpoint.log).or_default();
    if !known.checkpoints.contains(&checkpoint) {
        known.checkpoints.push(checkpoint);
    }
    Some(known)
}

/// The logs that can be read: those in folders, and those of running nodes.
fn sources(args: &LogVerifyArgs, folders: Vec<PathBuf>) -> Result<Vec<Box<dyn Log>>> {
    let mut sources: Vec<Box<dyn Log>> = Vec::new();
    for folder in folders {
        sources.push(Box::new(LogFolder(folder)));
    }
    for node in &args.node {
        sources.push(Box::new(ServiceConnection::new(node, &args.keystore.server)?));
    }
    Ok(sources)
}

fn verify_one(
    args: &LogVerifyArgs,
    policy: &WitnessPolicy,
    trust: &Trust,
    id: LogId,
    known: &mut KnownLog,
    out: &mut Out,
) -> Result<Exit> {
    let (mut read, mut exit) = (Vec::new(), Exit::Ok);
    for log in &known.sources {
        match verify_log(&**log, policy, trust, &known.checkpoints) {
            Ok(report) => read.push(Read { path: log.place().into(), place: log.place().to_owned(), report }),
            Err(error) => {
                error_line(&format!("{}: {error}", escape_path(log.place())));
                exit = exit.and(if is_gone(error.code()) { Exit::Mismatch } else { Exit::Error });
            }
        }
    }
    known.look();
    known.checkpoints.sort_by_key(|checkpoint| checkpoint.size);
    let failed = !known.problems.is_empty() || read.iter().any(|read| !read.report.problems.is_empty());
    let status = match (failed, read.is_empty()) {
        (true, _) => Status::Failed,
        (false, true) => Status::NotRead,
        (false, false) => Status::Ok,
    };
    if args.report.json {
        out.json(&Verified {
            log: id.to_string(),
            place: &known.place,
            running: known.running,
            status,
            checkpoint: known.checkpoints.last(),
            problems: &known.problems,
            read: &read,
        })?;
    } else {
        print(out, args, id, known, &read, status)?;
    }
    Ok(exit.and(match status {
        Status::Ok => Exit::Ok,
        Status::Failed => Exit::Mismatch,
        Status::NotRead => Exit::Error,
    }))
}

/// Verifies a log, and its cosignatures if they are beside it.
fn verify_log(log: &dyn Log, policy: &WitnessPolicy, trust: &Trust, known: &[Checkpoint]) -> Result<Report> {
    let keys = |id: &KeyVersionId| trust.find(id);
    let mut report = log.verify(&keys, known)?;
    if let Some(cosigned) = log.verify_cosigned(&keys, policy)? {
        report.problems.extend(cosigned.problems);
    }
    Ok(report)
}

impl KnownLog {
    /// Finds what the checkpoints alone show.
    fn look(&mut self) {
        let newest = self.checkpoints.iter().map(|checkpoint| checkpoint.size).max();
        if let (true, false, Some(size)) = (self.sources.is_empty(), self.running, newest) {
            let message = format!(
                "no node writes this log, and nobody has shown it: its {size} signed entries are lost, unless its node is stopped or \
                 there is a copy; name a copy with --log"
            );
            self.problems.push(checkpoint_problem(ProblemKind::Lost, message));
        }
        if self.in_etcd < self.remembered || self.in_etcd.is_none() {
            let message = match self.remembered {
                Some(size) => format!(
                    "somebody removed this log's newest checkpoint from etcd: a node remembers one of {size} entries"
                ),
                None => "etcd has no checkpoint of this log: somebody removed it, or no node has written to the log since nodes gather \
                         checkpoints"
                    .to_owned(),
            };
            self.problems.push(checkpoint_problem(ProblemKind::Removed, message));
        }
        for (index, one) in self.checkpoints.iter().enumerate() {
            let other = self.checkpoints[..index].iter();
            if other.clone().any(|other| other.size == one.size && other.root != one.root) {
                let message = format!(
                    "there are two logs with this number, which differ in their first {} entries",
                    one.size
                );
                self.problems.push(checkpoint_problem(ProblemKind::Forked, message));
            }
        }
    }
}

fn print_stray(out: &mut Out, args: &LogVerifyArgs, problem: &Problem) -> Result<()> {
    if args.report.json {
        #[derive(Serialize)]
        struct Stray<'a> {
            status: Status,
            problems: [&'a Problem; 1],
        }
        return out.json(&Stray { status: Status::Failed, problems: [problem] });
    }
    let (bad, row) = (out.style(color::BAD), escape_path(Path::new(&problem.file)));
    out.line(format_args!("etcd, {row}: {bad}{}{bad:#} ({})", problem.kind.as_str(), problem.message))
}

fn print(
    out: &mut Out,
    args: &LogVerifyArgs,
    id: LogId,
    known: &KnownLog,
    read: &[Read],
    status: Status,
) -> Result<()> {
    let (good, bad) = (out.style(color::GOOD), out.style(color::BAD));
    let place = if known.place.is_empty() {
        String::new()
    } else {
        format!(" ({})", escape_path(Path::new(&known.place)))
    };
    for problem in &known.problems {
        out.line(format_args!("{id}{place}: {bad}{}{bad:#} ({})", problem.kind.as_str(), problem.message))?;
    }
    for read in read {
        print_problems(out, &read.place, &read.report.problems)?;
    }
    match (status, read.first()) {
        (Status::Ok, Some(Read { report, .. })) if !args.report.quiet => {
            let Report { entries, signed_entries, .. } = report;
            out.line(format_args!(
                "{id}{place}: {good}OK{good:#} ({entries} entries, {signed_entries} signed)"
            ))
        }
        (Status::NotRead, _) => out.line(format_args!(
            "{id}{place}: {bad}not read{bad:#} (name its node with --node, or its folder with --log)"
        )),
        _ => Ok(()),
    }
}
