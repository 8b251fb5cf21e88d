//! `bulla check --compare`: finds files that no list names, and where missing files are now.

use super::functions::{Functions, Matched};
use super::options::{Lists, Options, Shown};
use super::verdicts::{Change, Checked, Counts, Gone};
use crate::color;
use crate::commands::hashing::threads;
use crate::commands::walking::report;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{JsonPath, Out};
use crate::progress::Progress;
use bulla_files::{escape_path, escape_text};
use bulla_sums::{
    Algorithm, Dash, EscapedName, FileBatch, FileKind, FolderPolicy, HashParams, Helpers, Job, JobOutcome,
    Links, NamePolicy, OpenPolicy, Output, PathFeed, PoolOptions, ReadOptions, Stamp, hash_files, path_from,
    run_in_order,
};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The content of the lists, as far as a comparison needs it.
#[derive(Default)]
pub(super) struct Comparison {
    listed: ListedFiles,
    /// The missing files, by digest.
    gone: HashMap<Vec<u8>, Vec<Gone>>,
    is_wanted: bool,
    /// The functions and the length of the last digest: new lines are added after it.
    function: Option<(Functions, usize)>,
    /// The functions that lines without one have matched by.
    matched: Matched,
    /// The function that the name of the last list tells.
    named: Option<Algorithm>,
}

/// The files that are not new.
#[derive(Default)]
struct ListedFiles {
    /// The names in the lists.
    names: HashSet<Vec<u8>>,
    /// The lists, as files.
    lists: HashSet<(u64, u64)>,
}

impl ListedFiles {
    /// The places of the other files of a batch.
    fn others(&self, batch: &FileBatch) -> Vec<usize> {
        let folder = batch.folder();
        let is_list = |stamp: Stamp| stamp.kind() == FileKind::File && self.lists.contains(&stamp.identity);
        let is_new = |index: &usize| {
            let name = batch.name(*index);
            !self.names.contains(&plain(&folder.path_of(name)))
                && !folder.stamp(name, Links::Follow).is_ok_and(is_list)
        };
        (0..batch.len()).filter(is_new).collect()
    }
}

/// What a comparison found.
#[derive(Default)]
pub(super) struct Compared {
    /// The files that no list names.
    pub(super) new: Vec<New>,
    /// The lines of missing files whose content is in one of them.
    pub(super) moved: HashSet<u64>,
    /// The function of the new files' digests, unless it is a guess.
    pub(super) function: Option<Algorithm>,
}

/// A file that no list names.
pub(super) struct New {
    pub(super) path: Vec<u8>,
    /// Its digest, if somebody wants to know it.
    pub(super) digest: Option<Vec<u8>>,
    /// Whether it has no bytes: then its content does not show where it came from.
    is_empty: bool,
}

/// The new files that one thread found in a folder.
#[derive(Default)]
struct NewFiles {
    new: Vec<New>,
    errors: Vec<Error>,
}

/// Looks at the folders of a comparison before anything is read.
///
/// # Errors
/// One of them is not a folder. Or it is empty and lists will be updated: its disk may not be
/// mounted.
pub(super) fn check_folders(options: &Options) -> Result<()> {
    for folder in &options.compare {
        let about = |error: Error| error.about(escape_path(folder));
        let mut entries =
            folder.read_dir().map_err(|error| about(Error::io("cannot read the folder", &error)))?;
        if options.then != Lists::Stay && entries.next().is_none() {
            let error = Error::new("empty_folder", "is empty: the list stays as it is");
            return Err(about(error).hint("is its disk mounted?"));
        }
    }
    Ok(())
}

impl Comparison {
    pub(super) fn new(options: &Options) -> Self {
        Self { is_wanted: !options.compare.is_empty(), ..Self::default() }
    }

    /// Remembers a list, which is not one of the files that it lists.
    pub(super) fn begin(&mut self, identity: Option<(u64, u64)>, named: Option<Algorithm>) {
        self.listed.lists.extend(identity);
        self.named = named;
    }

    /// Remembers the names of lines, and the digests of missing files.
    pub(super) fn take(&mut self, checked: &Checked) {
        if !self.is_wanted {
            return;
        }
        self.function = checked.function.or(self.function);
        self.matched.extend(&checked.matched);
        self.listed.names.extend(checked.names.iter().map(|name| plain(name)));
        for (_, change) in &checked.changes {
            if let Change::Gone(gone) = change {
                self.gone.entry(gone.digest.clone()).or_default().push(gone.clone());
            }
        }
    }

    /// The function and the length of digests of new files.
    fn hashing(&self, options: &Options) -> Result<(Algorithm, HashParams)> {
        // All files of a list were hashed by one function, as a rule.
        let (algorithm, length) = match self.function {
            Some((functions, length)) => {
                (self.matched.function_of(functions, self.named).unwrap_or(functions.likely), length)
            }
            None => {
                let algorithm = options.algorithm.unwrap_or(Algorithm::Blake3);
                (algorithm, algorithm.default_length())
            }
        };
        let hashing = HashParams::plain(algorithm, length as u64, options.seek)
            .ok_or_else(|| Error::new("usage", "--seek works only with BLAKE3"))?;
        Ok((algorithm, hashing))
    }

    /// Walks the folders, prints every file that no list names, and returns these files.
    pub(super) fn find(
        mut self,
        options: &Options,
        progress: &Progress,
        out: &mut Out,
        counts: &mut Counts,
    ) -> Result<(Compared, Exit)> {
        let threads = threads(options.read);
        let plan = PoolOptions { threads, meter: progress, on_large: &interrupt::stop_gracefully };
        let (algorithm, hashing) = self.hashing(options)?;
        let is_hashed = !self.gone.is_empty() || options.then != Lists::Stay;
        let reading = ReadOptions {
            hashing: Arc::new(hashing),
            open_policy: OpenPolicy::RegularFile(Links::Refuse),
            name_policy: NamePolicy::MayChange,
            dash: Dash::FileName,
            by_blocks: !options.read.no_mmap,
            meter: progress,
        };
        let rules = &options.rules;
        let listed = std::mem::take(&mut self.listed);
        let work = |job: Job, helpers: &dyn Helpers| match job {
            Job::Folder(pending) => match pending.list(rules) {
                Err(error) => NewFiles { errors: vec![report(&error)], ..NewFiles::default() }.into(),
                Ok(listed) => {
                    let errors = listed.errors.iter().map(report).collect();
                    JobOutcome { result: NewFiles { errors, ..NewFiles::default() }, then: Some(listed.jobs) }
                }
            },
            Job::Batch(batch) => {
                unknown(&batch, listed.others(&batch), is_hashed.then_some(&reading), helpers)
            }
        };
        let (mut audited, mut exit) = (Compared::default(), Exit::Ok);
        let each = |found: NewFiles| {
            for error in &found.errors {
                exit = Exit::Error;
                progress.suspend(|| error.print());
            }
            for new in found.new {
                let from = self.take_gone(algorithm, &new);
                *(if from.is_some() { &mut counts.moved } else { &mut counts.new }) += 1;
                if options.shown != Shown::Nothing {
                    let from = from.as_ref().map(|gone| &gone.name[..]);
                    progress.suspend(|| print(out, options, &new, from))?;
                }
                audited.moved.extend(from.map(|gone| gone.line));
                audited.new.push(new);
            }
            out.flush_sometimes()
        };
        let folders = options.compare.clone().into_iter();
        run_in_order(&plan, Box::new(PathFeed::new(folders, FolderPolicy::Walk)), work, each)?;
        if !audited.moved.is_empty() {
            self.matched.add(algorithm);
        }
        audited.function = match self.function {
            Some((functions, _)) => self.matched.function_of(functions, self.named),
            None => Some(algorithm),
        };
        Ok((audited, exit))
    }

    /// The missing file whose content a new one has.
    fn take_gone(&mut self, algorithm: Algorithm, new: &New) -> Option<Gone> {
        let digest = new.digest.as_ref().filter(|_| !new.is_empty)?;
        let gone = self.gone.get_mut(digest)?;
        let at = gone.iter().rposition(|gone| gone.functions.has(algorithm))?;
        Some(gone.remove(at))
    }
}

/// The new files of a batch, at these places in it.
fn unknown(
    batch: &FileBatch,
    new: Vec<usize>,
    reading: Option<&ReadOptions<'_>>,
    helpers: &dyn Helpers,
) -> JobOutcome<Job, NewFiles> {
    let path = |index| batch.folder().path_of(batch.name(index));
    let Some(reading) = reading else {
        let new =
            new.into_iter().map(|index| New { path: path(index), digest: None, is_empty: true }).collect();
        return NewFiles { new, errors: Vec::new() }.into();
    };
    let results = hash_files(reading, batch.folder(), new.iter().map(|index| batch.name(*index)), helpers);
    let then = new.get(results.len()).and_then(|index| batch.rest(*index));
    let mut found = NewFiles::default();
    for (index, result) in new.into_iter().zip(results) {
        let path = path(index);
        match result {
            Ok(hashed) => {
                let digest = match &hashed.output {
                    Output::Digest(digest) => digest.as_bytes().to_vec(),
                    Output::Stream(_) => hashed.output.hash().as_bytes().to_vec(),
                };
                found.new.push(New { path, digest: Some(digest), is_empty: hashed.size == 0 });
            }
            Err(error) => {
                found.errors.push(Error::from(error).about(escape_path(&path_from(&path))));
                found.new.push(New { path, digest: None, is_empty: true });
            }
        }
    }
    JobOutcome { result: found, then }
}

/// A path without `.` components and repeated separators, so that `./a` and `a` are one name.
fn plain(path: &[u8]) -> Vec<u8> {
    let is_absolute = path.first() == Some(&b'/');
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    let joined = parts.join(&b'/');
    if is_absolute { [b"/", &joined[..]].concat() } else { joined }
}

/// The output of `--json` for a file that no list names.
#[derive(Serialize)]
struct JsonNew {
    #[serde(flatten)]
    path: JsonPath,
    status: &'static str,
    /// Where the list has the same content.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

fn print(out: &mut Out, options: &Options, new: &New, from: Option<&[u8]>) -> Result<()> {
    let status = if from.is_some() { "moved" } else { "new" };
    if options.json {
        let from = from.map(|from| String::from_utf8_lossy(from).into_owned());
        return out.json(&JsonNew { path: path_from(&new.path).as_path().into(), status, from });
    }
    let name = EscapedName::new(&new.path, Algorithm::Blake3);
    let (mark, text) = (
        if name.escaped { "\\" } else { "" },
        escape_text(&String::from_utf8_lossy(&name.text)).into_owned(),
    );
    let bad = out.style(color::BAD);
    let from =
        from.map_or_else(String::new, |from| format!(" (from {})", escape_path(Path::new(&path_from(from)))));
    out.line(format_args!("{mark}{text}: {bad}{}{bad:#}{from}", status.to_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_of_one_file_are_one() {
        for (path, name) in
            [("./a//b/", "a/b"), ("a/./b", "a/b"), ("/a", "/a"), ("//a/.", "/a"), (".", ""), ("../a", "../a")]
        {
            assert_eq!(plain(path.as_bytes()), name.as_bytes());
        }
    }
}
