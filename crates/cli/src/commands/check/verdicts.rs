//! The verdict on each line, and how it is printed.

use super::functions::{Functions, Matched};
use super::lists::{Group, Numbered};
use super::options::{Lists, Missing, Options, Shown};
use crate::color;
use crate::error::Error;
use crate::files::STDIN;
use crate::output::{JsonError, JsonPath, Out, json_line};
use crate::progress::Progress;
use anstyle::Style;
use bulla_files::{escape_path, escape_text};
use bulla_sums::{
    Algorithm, ChecksumLine, Dash, Dialect, Folder, HashParams, Helpers, JobOutcome, LineParser, Links,
    Meter, NamePolicy, OpenPolicy, Output, ParsedLine, ReadError, ReadOptions, Subject, Threads, hash_files,
    path_from,
};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Those of the changed ones whose lines do not name their function.
    pub(super) unnamed: u64,
    /// With --compare: files that no list names.
    pub(super) new: u64,
    /// With --compare: files that have the content of a missing one.
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
        self.unnamed += other.unnamed;
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

    /// What is wrong, in the words of the coreutils: scripts may read them.
    pub(super) fn warnings(&self) -> Vec<String> {
        let warning = |count: u64, one: &str, many: &str| {
            (count > 0).then(|| format!("WARNING: {count} {}", if count == 1 { one } else { many }))
        };
        let unread = self.missing + self.unreadable;
        let warnings = [
            warning(self.malformed, "line is improperly formatted", "lines are improperly formatted"),
            warning(unread, "listed file could not be read", "listed files could not be read"),
            warning(self.changed, "computed checksum did NOT match", "computed checksums did NOT match"),
        ];
        warnings.into_iter().flatten().collect()
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
    /// The line gets one of these digests: that of its function.
    Digest(Vec<(Algorithm, Vec<u8>)>),
    /// The file is missing. Its digest shows where it went.
    Gone(Gone),
    /// Everything that was in this folder is missing.
    Emptied(PathBuf),
}

/// A missing file.
#[derive(Clone)]
pub(super) struct Gone {
    /// The number of its line.
    pub(super) line: u64,
    pub(super) functions: Functions,
    pub(super) digest: Vec<u8>,
    pub(super) name: Vec<u8>,
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
    pub(super) function: Option<(Functions, usize)>,
    /// The functions that lines without one have matched by.
    pub(super) matched: Matched,
}

enum Verdict {
    /// The content has this digest by the line's function, or by this one of two.
    Ok(Algorithm),
    /// The content has these digests.
    Mismatch(Vec<(Algorithm, Vec<u8>)>),
    /// A folder is empty, and was not.
    Emptied,
    Missing(io::Error),
    Unreadable(ReadError),
    /// A folder's digest cannot be computed; the errors say why.
    NoTree(Vec<Error>),
}

/// Checks the lines of a list, and writes down the results.
pub(super) struct Printer<'a> {
    options: &'a Options,
    list: PathBuf,
    reader: LineParser,
    good: Style,
    bad: Style,
    folder: Folder,
    dash: Dash,
    /// One folder's digest at a time has all threads.
    tree: Mutex<()>,
    /// Whether the last line of two possible functions matched by the less likely one, which is
    /// then tried first.
    was_unlikely: AtomicBool,
}

/// Lines that one call can hash: they have the same functions and length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Like {
    functions: Functions,
    length: usize,
}

/// Reads files that were counted already.
struct Uncounted<'a>(&'a Progress);

impl Meter for Uncounted<'_> {
    fn add_bytes(&self, bytes: u64) {
        Meter::add_bytes(self.0, bytes);
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

impl<'a> Printer<'a> {
    pub(super) fn new(options: &'a Options, list: &Path, out: &Out) -> Self {
        Self {
            options,
            list: list.to_owned(),
            reader: options.reader(list),
            good: out.style(color::GOOD),
            bad: out.style(color::BAD),
            folder: Folder::here(),
            // All programs write this name for standard input. It cannot be the list, too, and its
            // line is not written anew.
            dash: match list == Path::new(STDIN) || options.then != Lists::Stay {
                true => Dash::FileName,
                false => Dash::Stdin,
            },
            tree: Mutex::new(()),
            was_unlikely: AtomicBool::new(false),
        }
    }

    /// Checks the lines of a group, and leaves the last ones out if the first files were large.
    pub(super) fn check(
        &self,
        group: &Group,
        threads: Threads,
        progress: &Progress,
        helpers: &dyn Helpers,
    ) -> JobOutcome<Group, Checked> {
        let lines: Vec<_> = group.lines().iter().map(|line| line.parse(&self.reader)).collect();
        let mut checked = Checked::default();
        let mut at = 0;
        while at < lines.len() {
            let Numbered { number, .. } = &group.lines()[at];
            match &lines[at] {
                ParsedLine::Blank => at += 1,
                ParsedLine::Malformed(reason) => {
                    self.malformed(&mut checked, *number, reason);
                    at += 1;
                }
                ParsedLine::Checksum(line) if line.subject == Subject::Folder => {
                    let Some(verdict) = self.tree(line, threads, progress) else { break };
                    self.verdict(&mut checked, *number, line, verdict);
                    at += 1;
                }
                ParsedLine::Checksum(line) => {
                    let like = Like::of(line);
                    let run: Vec<&ChecksumLine> =
                        lines[at..].iter().map_while(|line| like.fits(line)).collect();
                    let verdicts = self.files(&like, &run, progress, helpers);
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
        JobOutcome { result: checked, then: group.rest(at) }
    }

    /// The verdicts on files, without the last ones if the first ones were large.
    fn files(
        &self,
        like: &Like,
        run: &[&ChecksumLine],
        progress: &Progress,
        helpers: &dyn Helpers,
    ) -> Vec<Verdict> {
        let Functions { likely, other } = like.functions;
        let (first, second) = match other {
            Some(other) if self.was_unlikely.load(Ordering::Relaxed) => (other, Some(likely)),
            other => (likely, other),
        };
        let mut verdicts = self.verdicts(first, run, progress, helpers);
        if let Some(second) = second {
            self.try_again(second, run, &mut verdicts, &Uncounted(progress), helpers);
        }
        for verdict in &verdicts {
            if let (Verdict::Ok(algorithm), Some(other)) = (verdict, other) {
                self.was_unlikely.store(*algorithm == other, Ordering::Relaxed);
            }
        }
        verdicts
    }

    /// Hashes files that do not match by a second function: their lines name none.
    fn try_again(
        &self,
        second: Algorithm,
        run: &[&ChecksumLine],
        verdicts: &mut Vec<Verdict>,
        meter: &dyn Meter,
        helpers: &dyn Helpers,
    ) {
        // Standard input can be read once.
        let is_stdin = |index: usize| self.dash == Dash::Stdin && run[index].name == STDIN.as_bytes();
        let is_mismatch =
            |index: &usize| matches!(verdicts[*index], Verdict::Mismatch(_)) && !is_stdin(*index);
        let mut left: Vec<usize> = (0..verdicts.len()).filter(is_mismatch).collect();
        while let Some(next) = left.first().copied() {
            let lines: Vec<&ChecksumLine> = left.iter().map(|index| run[*index]).collect();
            let again = self.verdicts(second, &lines, meter, helpers);
            if again.is_empty() {
                // The work is to stop, and this file is not done.
                verdicts.truncate(next);
                return;
            }
            for (index, verdict) in left.drain(..again.len()).zip(again) {
                verdicts[index] = match (std::mem::replace(&mut verdicts[index], Verdict::Emptied), verdict) {
                    (Verdict::Mismatch(mut digests), Verdict::Mismatch(more)) => {
                        digests.extend(more);
                        Verdict::Mismatch(digests)
                    }
                    (_, verdict) => verdict,
                };
            }
        }
    }

    /// The verdicts on files by one function, without the last ones if the first ones were large.
    fn verdicts(
        &self,
        algorithm: Algorithm,
        run: &[&ChecksumLine],
        meter: &dyn Meter,
        helpers: &dyn Helpers,
    ) -> Vec<Verdict> {
        let length = run.first().map_or(0, |line| line.digest.len()) as u64;
        let Some(hashing) = HashParams::plain(algorithm, length, self.options.seek) else {
            let error = || io::Error::other("--seek works only with BLAKE3");
            return run.iter().map(|_| Verdict::Unreadable(error().into())).collect();
        };
        let reading = ReadOptions {
            hashing: Arc::new(hashing),
            open_policy: OpenPolicy::RegularFile(Links::Follow),
            name_policy: NamePolicy::MayChange,
            dash: self.dash,
            by_blocks: !self.options.read.no_mmap,
            meter,
        };
        let names = run.iter().map(|line| &line.name[..]);
        let results = hash_files(&reading, &self.folder, names, helpers);
        results
            .into_iter()
            .zip(run)
            .map(|(result, line)| match result {
                Ok(hashed) if hashed.output.is(&line.digest) => Verdict::Ok(algorithm),
                Ok(hashed) => Verdict::Mismatch(vec![(algorithm, bytes_of(&hashed.output))]),
                Err(ReadError::Io(error)) if is_missing(&error) => Verdict::Missing(error),
                Err(error) => Verdict::Unreadable(error),
            })
            .collect()
    }

    /// The verdict on a folder; `None` if the work is to stop.
    fn tree(&self, line: &ChecksumLine, threads: Threads, progress: &Progress) -> Option<Verdict> {
        let _alone = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path_from(&line.name);
        if let Err(error) = path.symlink_metadata()
            && is_missing(&error)
        {
            return Some(Verdict::Missing(error));
        }
        let verdict = match crate::commands::trees::digest(&path, None, threads, progress) {
            Ok(digest) if digest.hash.as_bytes()[..] == line.digest => Verdict::Ok(Algorithm::Blake3),
            Ok(digest) if digest.entries == 0 => Verdict::Emptied,
            Ok(digest) => Verdict::Mismatch(vec![(Algorithm::Blake3, digest.hash.as_bytes().to_vec())]),
            Err(_) if progress.is_stopped() => return None,
            Err(errors) => Verdict::NoTree(errors),
        };
        Some(verdict)
    }

    fn verdict(&self, checked: &mut Checked, number: u64, line: &ChecksumLine, verdict: Verdict) {
        if !self.options.compare.is_empty() {
            checked.names.push(line.name.clone());
            if line.subject == Subject::File {
                checked.function = Some((Functions::of(line), line.digest.len()));
            }
        }
        let counts = &mut checked.counts;
        let (count, status, reason) = match &verdict {
            Verdict::Ok(_) => (&mut counts.ok, "ok", String::new()),
            Verdict::Mismatch(_) => (&mut counts.changed, "failed", String::new()),
            Verdict::Emptied => (&mut counts.changed, "failed", " (no file is in the folder)".into()),
            Verdict::Missing(_) if self.options.missing == Missing::Skipped => {
                counts.skipped += 1;
                return;
            }
            Verdict::Missing(error) => (&mut counts.missing, "unreadable", format!(" ({error})")),
            Verdict::Unreadable(error) => {
                (&mut counts.unreadable, "unreadable", format!(" ({})", why(error)))
            }
            Verdict::NoTree(_) => (&mut counts.unreadable, "unreadable", " (cannot read the folder)".into()),
        };
        *count += 1;
        self.print(&mut checked.text, line, status, &reason, &verdict);
        match verdict {
            Verdict::Ok(algorithm) if line.alternative.is_some() => checked.matched.add(algorithm),
            Verdict::Mismatch(digests) => {
                checked.counts.unnamed += u64::from(self.is_unnamed(line));
                checked.changes.push((number, Change::Digest(digests)));
            }
            Verdict::Emptied => checked.changes.push((number, Change::Emptied(path_from(&line.name)))),
            Verdict::Missing(_) => {
                let gone = Gone {
                    line: number,
                    functions: Functions::of(line),
                    digest: line.digest.clone(),
                    name: line.name.clone(),
                };
                checked.changes.push((number, Change::Gone(gone)));
            }
            Verdict::NoTree(errors) => checked.errors.extend(errors),
            Verdict::Ok(_) | Verdict::Unreadable(_) => {}
        }
    }

    /// Whether the function of a line that does not match may be another one than those that were
    /// tried.
    fn is_unnamed(&self, line: &ChecksumLine) -> bool {
        let is_b3sum = self.options.dialect == Dialect::B3sum && self.options.algorithm.is_none();
        line.alternative.is_some() || (is_b3sum && self.options.seek == 0)
    }

    fn print(
        &self,
        text: &mut Vec<u8>,
        line: &ChecksumLine,
        status: &'static str,
        reason: &str,
        verdict: &Verdict,
    ) {
        let is_ok = matches!(verdict, Verdict::Ok(_));
        match self.options.shown {
            Shown::Nothing => return,
            Shown::Problems if is_ok => return,
            Shown::Problems | Shown::All => {}
        }
        if self.options.json {
            let error = match verdict {
                Verdict::Ok(_) | Verdict::Mismatch(_) | Verdict::Emptied => None,
                Verdict::Missing(error) => Some(JsonError::from(&Error::io("cannot read", error))),
                Verdict::Unreadable(error) => Some(JsonError::from(&Error::from(error))),
                Verdict::NoTree(errors) => errors.first().map(JsonError::from),
            };
            let path = path_from(&line.name).as_path().into();
            return text.extend(json_line(&JsonLine { path, status, line: None, error }));
        }
        let (style, word) = if is_ok { (self.good, "OK") } else { (self.bad, "FAILED") };
        let name = escape_text(&line.shown);
        writeln!(text, "{name}: {style}{word}{reason}{style:#}").expect("a vector takes any text");
    }

    fn malformed(&self, checked: &mut Checked, number: u64, reason: &str) {
        checked.counts.malformed += 1;
        if self.options.shown == Shown::Nothing {
            return;
        }
        let error =
            Error::new("malformed_line", reason).about(format!("{}: line {number}", escape_path(&self.list)));
        if self.options.json {
            let path = self.list.as_path().into();
            let line =
                JsonLine { path, status: "malformed", line: Some(number), error: Some((&error).into()) };
            checked.text.extend(json_line(&line));
        }
        checked.errors.push(error);
    }
}

impl Like {
    fn of(line: &ChecksumLine) -> Self {
        Self { functions: Functions::of(line), length: line.digest.len() }
    }

    fn fits<'l>(&self, line: &'l ParsedLine) -> Option<&'l ChecksumLine> {
        match line {
            ParsedLine::Checksum(line) => {
                (line.subject == Subject::File && Self::of(line) == *self).then_some(line)
            }
            ParsedLine::Blank | ParsedLine::Malformed(_) => None,
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
