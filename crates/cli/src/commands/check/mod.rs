//! `bulla check`: checks files against lists of checksums.

mod audit;
mod json;
mod lists;
mod options;
mod update;
mod verdicts;

use self::audit::Audit;
use self::lists::{Group, List};
pub(crate) use self::options::Options;
use self::options::{Lists, Missing, Shown};
use self::update::Changes;
use self::verdicts::{Checked, Counts, Printer};
use super::hashing::threads;
use crate::diagnostics::{error_line, note_line};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::name::shown;
use crate::idle;
use crate::interrupt;
use crate::output::Out;
use crate::progress::{Progress, Total};
use bulla_sums::{Others, Plan, in_order};
use std::path::{Path, PathBuf};

pub(crate) fn run(options: &Options) -> Result<Exit> {
    idle::take(options.read.work.turn())?;
    if options.then == Lists::AreUpdated && options.lists.iter().any(|list| list == Path::new(STDIN)) {
        return Err(Error::new(
            "usage",
            "--update needs a list in a file: standard input cannot be rewritten",
        ));
    }
    if options.then == Lists::AreUpdated && options.lists.len() > 1 && !options.audit.is_empty() {
        return Err(Error::new(
            "usage",
            "--update with --audit needs one list, to which new files are added",
        ));
    }
    let mut run = Run {
        options,
        progress: Progress::of(Total::default(), options.read.work.progress),
        out: Out::new(),
        counts: Counts::default(),
        audit: Audit::new(options),
    };
    let mut exit = Exit::Ok;
    let mut changes = Vec::new();
    for list in &options.lists {
        match run.list(list) {
            Ok((found, change)) => {
                exit = exit.and(found);
                changes.push((list, change));
            }
            Err(error) if error.is_broken_pipe() => return Err(error),
            Err(error) => {
                run.progress.suspend(|| error.print());
                exit = exit.and(Exit::Trouble);
            }
        }
    }
    run.finish(exit, changes)
}

/// A run over lists of checksums.
struct Run<'a> {
    options: &'a Options,
    progress: Progress,
    out: Out,
    counts: Counts,
    audit: Audit,
}

impl Run<'_> {
    /// Checks every line of one list.
    fn list(&mut self, path: &Path) -> Result<(Exit, Changes)> {
        let Self { options, progress, out, counts, audit } = self;
        let threads = threads(options.read);
        let plan = Plan {
            threads: if threads.may_be_many() { threads.number() } else { 1 },
            meter: progress,
            at_length: &interrupt::stop_in_order,
        };
        let list = List::open(path, options.reader(path))?;
        let printer = Printer::new(options, path, out);
        let mut changes = Changes::new(&list);
        let before = counts.clone();
        let end = list.end();
        let work = |group: Group, others: &dyn Others| printer.check(&group, threads, progress, others);
        let each = |checked: Checked| {
            counts.add(&checked.counts);
            changes.take(&checked);
            audit.take(&checked);
            progress.suspend(|| {
                if !checked.errors.is_empty() {
                    // Keep the order if both streams go to one terminal.
                    out.flush()?;
                    checked.errors.iter().for_each(Error::print);
                }
                out.bytes(&checked.text)?;
                out.flush_sometimes()
            })
        };
        in_order(&plan, Box::new(list), work, each)?;
        let here = counts.since(&before);
        end.result(path, here.lines())?;
        let nothing = here.ok == 0 && here.lines() > 0 && options.missing == Missing::Skipped;
        if nothing && interrupt::stopped().is_none() {
            let error = Error::new("nothing_verified", "no file was verified").about(shown(path));
            progress.suspend(|| error.print());
            return Ok((Exit::Failed, changes));
        }
        Ok((Exit::Ok, changes))
    }

    /// The rest, when all lists are checked: files that no list names, new lists, and the sums.
    fn finish(mut self, mut exit: Exit, changes: Vec<(&PathBuf, Changes)>) -> Result<Exit> {
        let is_whole = interrupt::stopped().is_none();
        let mut new = Vec::new();
        if is_whole && !self.options.audit.is_empty() {
            let (found, trouble) = std::mem::take(&mut self.audit).find(
                self.options,
                &self.progress,
                &mut self.out,
                &mut self.counts,
            )?;
            new = found;
            exit = exit.and(trouble);
        }
        self.out.flush()?;
        let Counts { changed, missing, unreadable, malformed, new: added, moved, .. } = self.counts;
        let failed = changed + missing + unreadable + malformed;
        let is_updated = is_whole && self.options.then == Lists::AreUpdated;
        if is_updated && unreadable + malformed == 0 && exit == Exit::Ok {
            for (list, change) in changes {
                let added = std::mem::take(&mut new);
                if let Some(text) = change.write(list, added, self.options)? {
                    self.progress.suspend(|| note_line(&text));
                }
            }
            return Ok(Exit::Ok);
        }
        if is_updated {
            let text = "the list stays as it is: not everything could be read";
            self.progress.suspend(|| error_line(text));
        }
        if self.options.shown != Shown::Nothing {
            self.progress.suspend(|| self.summary(failed));
        }
        if failed + added + moved > 0 {
            exit = exit.and(Exit::Failed);
        }
        Ok(exit)
    }

    /// Says how many lines did not verify, and why.
    fn summary(&self, failed: u64) {
        if let Some(counts) = self.counts.sentence() {
            note_line(&counts);
        }
        if failed > 0 {
            let plural = if failed == 1 { "" } else { "s" };
            error_line(&format!("WARNING: {failed} computed checksum{plural} did NOT match"));
        }
        if interrupt::stopped().is_some() {
            note_line(&format!("interrupted: {} lines done", self.counts.lines()));
        }
    }
}
