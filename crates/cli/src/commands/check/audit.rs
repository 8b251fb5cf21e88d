//! `bulla check --audit`: finds files that no list names, and where missing files are now.

use super::options::{Lists, Options, Shown};
use super::verdicts::{Change, Checked, Counts};
use crate::commands::hashing::threads;
use crate::commands::walking::report;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::name::shown;
use crate::interrupt;
use crate::output::{JsonPath, Out};
use crate::progress::Progress;
use crate::style;
use bulla_sums::{
    Algorithm, Batch, Dash, Folders, Hashing, Job, Links, Naming, Opening, Others, Outcome, Output, Paths,
    Plan, ReadError, Reading, Rules, SumName, hash_files, in_order, path_from,
};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// What the lists say, as far as an audit needs it.
#[derive(Default)]
pub(super) struct Audit {
    /// The names in the lists.
    known: HashSet<Vec<u8>>,
    /// The missing files, by function and digest.
    gone: HashMap<(Algorithm, Vec<u8>), Vec<Vec<u8>>>,
    is_wanted: bool,
    /// The function and the length of the last digest: new lines are added after it.
    function: Option<(Algorithm, usize)>,
}

/// A file that no list names.
pub(super) struct New {
    pub(super) path: Vec<u8>,
    /// Its digest, if somebody wants to know it.
    pub(super) digest: Option<Vec<u8>>,
    /// Whether it has no bytes: then its content does not show where it came from.
    is_empty: bool,
}

/// What a thread found in a folder.
#[derive(Default)]
struct Found {
    new: Vec<New>,
    errors: Vec<Error>,
}

impl Audit {
    pub(super) fn new(options: &Options) -> Self {
        let mut audit = Self { is_wanted: !options.audit.is_empty(), ..Self::default() };
        if audit.is_wanted {
            // A list is not one of the files that it lists.
            for list in &options.lists {
                audit.known.insert(plain(list.as_os_str().as_encoded_bytes()));
            }
        }
        audit
    }

    /// Remembers the names of lines, and the digests of missing files.
    pub(super) fn take(&mut self, checked: &Checked) {
        if !self.is_wanted {
            return;
        }
        self.function = checked.function.or(self.function);
        self.known.extend(checked.names.iter().map(|name| plain(name)));
        for (_, change) in &checked.changes {
            if let Change::Gone { algorithm, digest, name } = change {
                self.gone.entry((*algorithm, digest.clone())).or_default().push(name.clone());
            }
        }
    }

    /// Walks the folders, prints every file that no list names, and returns these files.
    pub(super) fn find(
        mut self,
        options: &Options,
        progress: &Progress,
        out: &mut Out,
        counts: &mut Counts,
    ) -> Result<(Vec<New>, Exit)> {
        let threads = threads(options.read);
        let plan = Plan {
            threads: if threads.may_be_many() { threads.number() } else { 1 },
            meter: progress,
            at_length: &interrupt::stop_in_order,
        };
        // All files of a list were hashed by one function, as a rule.
        let (algorithm, length) = self.function.unwrap_or_else(|| {
            let algorithm = options.algorithm.unwrap_or(Algorithm::Blake3);
            (algorithm, algorithm.default_length())
        });
        let hashing = Hashing::plain(algorithm, length as u64, options.seek)
            .ok_or_else(|| Error::new("usage", "--seek works only with BLAKE3"))?;
        let is_hashed = !self.gone.is_empty() || options.then == Lists::AreUpdated;
        let reading = Reading {
            hashing: Arc::new(hashing),
            opening: Opening::File(Links::Refuse),
            naming: Naming::Free,
            dash: Dash::Name,
            meter: progress,
        };
        let rules = Rules::default();
        let known = std::mem::take(&mut self.known);
        let work = |job: Job, others: &dyn Others| match job {
            Job::Folder(pending) => match pending.enter(&rules) {
                Err(trouble) => Found { errors: vec![report(&trouble)], ..Found::default() }.into(),
                Ok(entered) => {
                    let errors = entered.troubles.iter().map(report).collect();
                    Outcome { result: Found { errors, ..Found::default() }, then: Some(entered.content) }
                }
            },
            Job::Batch(batch) => unknown(&batch, &known, is_hashed.then_some(&reading), others),
        };
        let (mut all, mut exit) = (Vec::new(), Exit::Ok);
        let each = |found: Found| {
            for error in &found.errors {
                exit = Exit::Trouble;
                progress.suspend(|| error.print());
            }
            for new in found.new {
                let from = self.take_gone(algorithm, &new);
                *(if from.is_some() { &mut counts.moved } else { &mut counts.new }) += 1;
                if options.shown != Shown::Nothing {
                    progress.suspend(|| print(out, options, &new, from.as_deref()))?;
                }
                all.push(new);
            }
            out.flush_sometimes()
        };
        let folders = options.audit.clone().into_iter();
        in_order(&plan, Box::new(Paths::new(folders, Folders::Walk)), work, each)?;
        Ok((all, exit))
    }

    /// The missing file whose content a new one has.
    fn take_gone(&mut self, algorithm: Algorithm, new: &New) -> Option<Vec<u8>> {
        let digest = new.digest.clone().filter(|_| !new.is_empty)?;
        self.gone.get_mut(&(algorithm, digest))?.pop()
    }
}

/// The files of a batch that no list names.
fn unknown(
    batch: &Batch,
    known: &HashSet<Vec<u8>>,
    reading: Option<&Reading<'_>>,
    others: &dyn Others,
) -> Outcome<Job, Found> {
    let path = |index| batch.folder().path_of(batch.name(index));
    let new: Vec<usize> = (0..batch.len()).filter(|index| !known.contains(&plain(&path(*index)))).collect();
    let Some(reading) = reading else {
        let new =
            new.into_iter().map(|index| New { path: path(index), digest: None, is_empty: true }).collect();
        return Found { new, errors: Vec::new() }.into();
    };
    let results = hash_files(reading, batch.folder(), new.iter().map(|index| batch.name(*index)), others);
    let then = new.get(results.len()).and_then(|index| batch.rest(*index));
    let mut found = Found::default();
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
            Err(ReadError::Stopped) => {}
            Err(error) => {
                found.errors.push(Error::from(error).about(shown(&path_from(&path))));
                found.new.push(New { path, digest: None, is_empty: true });
            }
        }
    }
    Outcome { result: found, then }
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
    let name = SumName::new(&new.path, Algorithm::Blake3);
    let (mark, text) =
        (if name.escaped { "\\" } else { "" }, String::from_utf8_lossy(&name.text).into_owned());
    let bad = out.style(style::BAD);
    let from =
        from.map_or_else(String::new, |from| format!(" (from {})", shown(Path::new(&path_from(from)))));
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
