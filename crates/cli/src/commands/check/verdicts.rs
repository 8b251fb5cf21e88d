//! The verdict on each line, and how it is printed.

use super::lists::{Group, Numbered, parse};
use super::options::{Missing, Options, Shown};
use crate::error::Error;
use crate::files::name::shown;
use crate::output::{JsonError, JsonPath, Out};
use crate::progress::Progress;
use crate::style;
use anstyle::Style;
use bulla_sums::{
    Algorithm, Dash, Folder, Hashing, Line, LineReader, Links, Naming, Opening, Others, Outcome, Output,
    Parsed, ReadError, Reading, Subject, Threads, hash_files, path_from,
};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many lines had which end.
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub(super) ok: u64,
    pub(super) changed: u64,
    pub(super) missing: u64,
    pub(super) unreadable: u64,
    pub(super) malformed: u64,
    /// Missing, and that does not matter.
    pub(super) skipped: u64,
    /// In an audit: files that no list names.
    pub(super) new: u64,
    /// In an audit: files that have the content of a missing one.
    pub(super) moved: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.changed += other.changed;
        self.missing += other.missing;
        self.unreadable += other.unreadable;
        self.malformed += other.malformed;
        self.skipped += other.skipped;
    }

    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            ok: self.ok - before.ok,
            changed: self.changed - before.changed,
            missing: self.missing - before.missing,
            unreadable: self.unreadable - before.unreadable,
            malformed: self.malformed - before.malformed,
            skipped: self.skipped - before.skipped,
            ..Self::default()
        }
    }

    /// The number of lines that are not comments.
    pub(super) fn lines(&self) -> u64 {
        self.ok + self.changed + self.missing + self.unreadable + self.malformed + self.skipped
    }

    /// All counts in a sentence, if something is not as it should be.
    pub(super) fn sentence(&self) -> Option<String> {
        let counts = [
            (self.changed, "changed"),
            (self.missing, "missing"),
            (self.moved, "moved"),
            (self.new, "new"),
            (self.unreadable, "not readable"),
            (self.malformed, "malformed"),
            (self.skipped, "skipped"),
        ];
        let parts: Vec<_> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        (!parts.is_empty()).then(|| format!("{} OK, {}", self.ok, parts.join(", ")))
    }
}

/// What a changed or missing file means for its line.
pub(super) enum Change {
    /// The line gets these digits.
    Digest(Vec<u8>),
    /// The line goes: its digest is kept, to find where the file went.
    Gone { algorithm: Algorithm, digest: Vec<u8>, name: Vec<u8> },
}

/// What a thread found.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) text: Vec<u8>,
    pub(super) errors: Vec<Error>,
    pub(super) counts: Counts,
    /// The changes, by the number of their lines.
    pub(super) changes: Vec<(u64, Change)>,
    /// The names in the list, if somebody wants to know them.
    pub(super) names: Vec<Vec<u8>>,
    /// The function and the length of the last digest of a file.
    pub(super) function: Option<(Algorithm, usize)>,
}

enum Verdict {
    Ok,
    Mismatch(Vec<u8>),
    Missing(io::Error),
    Unreadable(ReadError),
    /// A folder's digest cannot be computed; the errors say why.
    NoTree(Vec<Error>),
}

/// Checks the lines of a list, and writes down the results.
pub(super) struct Printer<'a> {
    options: &'a Options,
    list: PathBuf,
    reader: LineReader,
    good: Style,
    bad: Style,
    folder: Folder,
    /// One folder's digest at a time has all threads.
    tree: Mutex<()>,
}

/// Lines that one call can hash: they have one function and length.
struct Like {
    algorithm: Algorithm,
    length: usize,
}

impl<'a> Printer<'a> {
    pub(super) fn new(options: &'a Options, list: &Path, out: &Out) -> Self {
        Self {
            options,
            list: list.to_owned(),
            reader: options.reader(list),
            good: out.style(style::GOOD),
            bad: out.style(style::BAD),
            folder: Folder::here(),
            tree: Mutex::new(()),
        }
    }

    /// Checks the lines of a group, and leaves the last ones out if the first files were large.
    pub(super) fn check(
        &self,
        group: &Group,
        threads: Threads,
        progress: &Progress,
        others: &dyn Others,
    ) -> Outcome<Group, Checked> {
        let lines: Vec<_> = group.lines().iter().map(|line| parse(&self.reader, &line.text)).collect();
        let mut checked = Checked::default();
        let mut at = 0;
        while at < lines.len() {
            let Numbered { number, .. } = &group.lines()[at];
            match &lines[at] {
                Parsed::Nothing => at += 1,
                Parsed::Malformed(reason) => {
                    self.malformed(&mut checked, *number, reason);
                    at += 1;
                }
                Parsed::Line(line) if line.subject == Subject::Folder => {
                    let verdict = self.tree(line, threads, progress);
                    self.verdict(&mut checked, *number, line, verdict);
                    at += 1;
                }
                Parsed::Line(line) => {
                    let like = Like { algorithm: line.algorithm, length: line.digest.len() };
                    let run: Vec<&Line> = lines[at..].iter().map_while(|line| like.fits(line)).collect();
                    let verdicts = self.files(&like, &run, progress, others);
                    let done = verdicts.len();
                    for (offset, verdict) in verdicts.into_iter().enumerate() {
                        self.verdict(&mut checked, group.lines()[at + offset].number, run[offset], verdict);
                    }
                    at += done;
                    if done < run.len() {
                        break;
                    }
                }
            }
        }
        Outcome { result: checked, then: group.rest(at) }
    }

    /// The verdicts on files, without the last ones if the first ones were large.
    fn files(&self, like: &Like, run: &[&Line], progress: &Progress, others: &dyn Others) -> Vec<Verdict> {
        let length = like.length as u64;
        let Some(hashing) = Hashing::plain(like.algorithm, length, self.options.seek) else {
            let error = || io::Error::other("--seek works only with BLAKE3");
            return run.iter().map(|_| Verdict::Unreadable(error().into())).collect();
        };
        let reading = Reading {
            hashing: Arc::new(hashing),
            opening: Opening::File(Links::Follow),
            naming: Naming::Free,
            dash: Dash::Name,
            meter: progress,
        };
        let names = run.iter().map(|line| &line.name[..]);
        let results = hash_files(&reading, &self.folder, names, others);
        results
            .into_iter()
            .zip(run)
            .map(|(result, line)| match result {
                Ok(hashed) if hashed.output.is(&line.digest) => Verdict::Ok,
                Ok(hashed) => Verdict::Mismatch(bytes_of(&hashed.output)),
                Err(ReadError::Io(error)) if is_missing(&error) => Verdict::Missing(error),
                Err(error) => Verdict::Unreadable(error),
            })
            .collect()
    }

    fn tree(&self, line: &Line, threads: Threads, progress: &Progress) -> Verdict {
        let _alone = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path_from(&line.name);
        if let Err(error) = path.symlink_metadata()
            && is_missing(&error)
        {
            return Verdict::Missing(error);
        }
        match crate::commands::trees::digest(&path, threads, progress) {
            Ok(digest) if digest.hash.as_bytes()[..] == line.digest => Verdict::Ok,
            Ok(digest) => Verdict::Mismatch(digest.hash.as_bytes().to_vec()),
            Err(errors) => Verdict::NoTree(errors),
        }
    }

    fn verdict(&self, checked: &mut Checked, number: u64, line: &Line, verdict: Verdict) {
        if !self.options.audit.is_empty() {
            checked.names.push(line.name.clone());
            if line.subject == Subject::File {
                checked.function = Some((line.algorithm, line.digest.len()));
            }
        }
        let counts = &mut checked.counts;
        let (count, status, reason) = match &verdict {
            Verdict::Ok => (&mut counts.ok, "ok", String::new()),
            Verdict::Mismatch(_) => (&mut counts.changed, "failed", String::new()),
            Verdict::Missing(_) if self.options.missing == Missing::Skipped => {
                counts.skipped += 1;
                return;
            }
            Verdict::Missing(error) => (&mut counts.missing, "unreadable", format!(" ({error})")),
            // The command says that it was interrupted.
            Verdict::Unreadable(ReadError::Stopped) => return,
            Verdict::Unreadable(error) => {
                (&mut counts.unreadable, "unreadable", format!(" ({})", why(error)))
            }
            Verdict::NoTree(_) => (&mut counts.unreadable, "unreadable", " (cannot read the folder)".into()),
        };
        *count += 1;
        self.print(&mut checked.text, line, status, &reason, &verdict);
        match verdict {
            Verdict::Mismatch(digest) => checked.changes.push((number, Change::Digest(digest))),
            Verdict::Missing(_) => {
                let gone = Change::Gone {
                    algorithm: line.algorithm,
                    digest: line.digest.clone(),
                    name: line.name.clone(),
                };
                checked.changes.push((number, gone));
            }
            Verdict::NoTree(errors) => checked.errors.extend(errors),
            Verdict::Ok | Verdict::Unreadable(_) => {}
        }
    }

    fn print(&self, text: &mut Vec<u8>, line: &Line, status: &'static str, reason: &str, verdict: &Verdict) {
        let is_ok = matches!(verdict, Verdict::Ok);
        match self.options.shown {
            Shown::Nothing => return,
            Shown::Problems if is_ok => return,
            Shown::Problems | Shown::All => {}
        }
        if self.options.json {
            let error = match verdict {
                Verdict::Ok | Verdict::Mismatch(_) => None,
                Verdict::Missing(error) => Some(JsonError::from(&Error::io("cannot read", error))),
                Verdict::Unreadable(error) => Some(JsonError::from(&Error::of_reading(error))),
                Verdict::NoTree(errors) => errors.first().map(JsonError::from),
            };
            let path = path_from(&line.name).as_path().into();
            return json(text, &JsonLine { path, status, line: None, error });
        }
        let (style, word) = if is_ok { (self.good, "OK") } else { (self.bad, "FAILED") };
        writeln!(text, "{}: {style}{word}{reason}{style:#}", line.shown).expect("a vector takes any text");
    }

    fn malformed(&self, checked: &mut Checked, number: u64, reason: &str) {
        checked.counts.malformed += 1;
        if self.options.shown == Shown::Nothing {
            return;
        }
        let error =
            Error::new("malformed_line", reason).about(format!("{}: line {number}", shown(&self.list)));
        if self.options.json {
            let path = self.list.as_path().into();
            let line =
                JsonLine { path, status: "malformed", line: Some(number), error: Some((&error).into()) };
            json(&mut checked.text, &line);
        }
        checked.errors.push(error);
    }
}

impl Like {
    fn fits<'l>(&self, line: &'l Parsed) -> Option<&'l Line> {
        match line {
            Parsed::Line(line) => {
                let is_like = line.subject == Subject::File
                    && (line.algorithm, line.digest.len()) == (self.algorithm, self.length);
                is_like.then_some(line)
            }
            Parsed::Nothing | Parsed::Malformed(_) => None,
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn bytes_of(output: &Output) -> Vec<u8> {
    match output {
        Output::Digest(digest) => digest.as_bytes().to_vec(),
        Output::Stream(_) => output.hash().as_bytes().to_vec(),
    }
}

/// The reason in the words of b3sum, where it has some.
fn why(error: &ReadError) -> String {
    match error {
        ReadError::Io(error) => error.to_string(),
        ReadError::NotAFile("a folder") => "Is a directory (os error 21)".to_owned(),
        ReadError::NotAFile(kind) => format!("is {kind}, not a file"),
        _ => "changed while it was read".to_owned(),
    }
}

/// The output of `--json` for a line.
#[derive(Serialize)]
pub(super) struct JsonLine {
    #[serde(flatten)]
    pub(super) path: JsonPath,
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<JsonError>,
}

fn json(text: &mut Vec<u8>, line: &JsonLine) {
    serde_json::to_writer(&mut *text, line).expect("plain structures serialise");
    text.push(b'\n');
}
