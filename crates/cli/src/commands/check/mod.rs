//! `bulla check`: checks files against lists of checksums.

mod armor;
mod compare;
mod functions;
mod lists;
mod options;
mod signed;
mod update;
mod verdicts;

use self::compare::{Compared, Comparison};
use self::lists::{Group, List};
pub(crate) use self::options::Options;
use self::options::{Lists, Missing, Shown, named};
use self::signed::SignedList;
use self::update::Changes;
use self::verdicts::{Checked, Counts, Printer};
use super::hashing::threads;
use crate::args::ReportArgs;
use crate::diagnostics::{error_line, hint_line, note_line};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::findings::Finding;
use crate::idle;
use crate::interrupt;
use crate::output::Out;
use crate::progress::{Progress, Total};
use bulla_files::escape_path;
use bulla_sums::{Dialect, Helpers, PoolOptions, run_in_order};
use std::path::{Path, PathBuf};

pub(crate) fn run(options: &Options) -> Result<Exit> {
    idle::set_priority(options.read.work.priority())?;
    if options.then != Lists::Stay && options.lists.iter().any(|list| list == Path::new(STDIN)) {
        return Err(Error::new(
            "usage",
            "--update needs a list in a file: standard input cannot be rewritten",
        ));
    }
    if options.then != Lists::Stay && options.lists.len() > 1 && !options.compare.is_empty() {
        return Err(Error::new(
            "usage",
            "--update with --compare needs one list, to which new files are added",
        ));
    }
    compare::check_folders(options)?;
    let mut run = Run {
        options,
        progress: Progress::of(Total::default(), options.read.work.progress),
        out: Out::stdout(),
        counts: Counts::default(),
        compare: Comparison::new(options),
    };
    let signed = options.signature.as_ref().map(|signature| signature.verify(&options.named)).transpose()?;
    if let Some(signed) = &signed {
        let exit = run.report_signature(signed)?;
        if exit != Exit::Ok {
            return Ok(exit);
        }
    }
    let lists: Vec<_> = match &signed {
        Some(signed) => vec![(&signed.path, Some(&signed.content[..]))],
        None => options.lists.iter().map(|list| (list, None)).collect(),
    };
    let mut exit = Exit::Ok;
    let mut changes = Vec::new();
    for (list, content) in lists {
        match run.list(list, content) {
            Ok((found, change)) => {
                exit = exit.and(found);
                changes.push((list, change));
            }
            Err(error) if error.is_broken_pipe() => return Err(error),
            Err(error) => {
                run.progress.suspend(|| error.print());
                exit = exit.and(Exit::Error);
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
    compare: Comparison,
}

impl Run<'_> {
    /// Says whether the list is signed by somebody who is trusted.
    fn report_signature(&mut self, signed: &SignedList) -> Result<Exit> {
        let exit = signed.report.finding.exit();
        let quiet = self.options.shown != Shown::All;
        if self.options.shown != Shown::Nothing || matches!(signed.report.finding, Finding::Unchecked(_)) {
            let args = ReportArgs { json: self.options.json, quiet };
            signed.report.print(&mut self.out, &signed.path, args)?;
            self.out.flush()?;
        }
        Ok(exit)
    }

    /// Checks every line of one list, whose content may have been read already.
    fn list(&mut self, path: &Path, content: Option<&[u8]>) -> Result<(Exit, Changes)> {
        let Self { options, progress, out, counts, compare } = self;
        let threads = threads(options.read);
        let plan = PoolOptions { threads, meter: progress, on_large: &interrupt::stop_gracefully };
        let list = match content {
            Some(content) => List::of_content(path, content, options.reader(path)),
            None => List::open(path, options.reader(path))?,
        };
        compare.begin(list.identity(), named(path));
        let printer = Printer::new(options, path, out);
        let mut changes = Changes::new(&list);
        let before = counts.clone();
        let end = list.end();
        let work = |group: Group, helpers: &dyn Helpers| printer.check(&group, threads, progress, helpers);
        let each = |checked: Checked| {
            counts.add(&checked.counts);
            compare.take(&checked);
            let printed = progress.suspend(|| {
                if !checked.errors.is_empty() {
                    // Keep the order if both streams go to one terminal.
                    out.flush()?;
                    checked.errors.iter().for_each(Error::print);
                }
                out.bytes(&checked.text)?;
                out.flush_sometimes()
            });
            changes.take(checked);
            printed
        };
        run_in_order(&plan, Box::new(list), work, each)?;
        let here = counts.since(&before);
        changes.end(&here, end.is_signed());
        if let (Some(text), true) = (end.ignored(), options.shown != Shown::Nothing) {
            progress.suspend(|| note_line(&format!("{}: {text}", escape_path(path))));
        }
        if interrupt::stop_signal().is_none() {
            end.result(path, here.lines())?;
        }
        let nothing = here.ok == 0 && here.lines() > 0 && options.missing == Missing::Skipped;
        if nothing && interrupt::stop_signal().is_none() {
            let error = Error::new("nothing_verified", "no file was verified").about(escape_path(path));
            progress.suspend(|| error.print());
            return Ok((Exit::Mismatch, changes));
        }
        Ok((Exit::Ok, changes))
    }

    /// The rest, when all lists are checked: files that no list names, new lists, and the sums.
    fn finish(mut self, mut exit: Exit, mut changes: Vec<(&PathBuf, Changes)>) -> Result<Exit> {
        let is_whole = interrupt::stop_signal().is_none();
        let mut audited = Compared::default();
        if is_whole && !self.options.compare.is_empty() {
            let (found, trouble) = std::mem::take(&mut self.compare).find(
                self.options,
                &self.progress,
                &mut self.out,
                &mut self.counts,
            )?;
            audited = found;
            exit = exit.and(trouble);
        }
        self.out.flush()?;
        changes.iter_mut().for_each(|(_, change)| change.learn(&audited));
        let Counts { changed, missing, unreadable, malformed, new: added, moved, .. } = self.counts;
        let failed = changed + missing + unreadable + malformed;
        let is_updated =
            self.options.then != Lists::Stay && is_whole && self.may_update(exit, &changes, &audited);
        if is_updated {
            let kept = self.update(changes, &audited)?;
            return Ok(if kept == 0 { Exit::Ok } else { Exit::Mismatch });
        }
        if self.options.shown != Shown::Nothing {
            self.progress.suspend(|| self.summary());
        }
        if failed + added + moved > 0 {
            exit = exit.and(Exit::Mismatch);
        }
        Ok(exit)
    }

    /// Whether all lists may be written. If not, it says why.
    fn may_update(&self, exit: Exit, changes: &[(&PathBuf, Changes)], audited: &Compared) -> bool {
        if self.counts.unreadable + self.counts.malformed > 0 || exit != Exit::Ok {
            let text = "the list stays as it is: not everything could be read";
            self.progress.suspend(|| error_line(text));
            return false;
        }
        let errors: Vec<_> =
            changes.iter().filter_map(|(list, change)| change.refusal(list, audited)).collect();
        self.progress.suspend(|| errors.iter().for_each(Error::print));
        errors.is_empty()
    }

    /// Writes all lists, and returns how many missing files keep their lines.
    fn update(&self, changes: Vec<(&PathBuf, Changes)>, audited: &Compared) -> Result<u64> {
        let mut kept = 0;
        for (list, change) in changes {
            kept += change.kept(audited, self.options.then);
            if let Some(text) = change.write(list, audited, self.options)? {
                self.progress.suspend(|| note_line(&text));
            }
        }
        if kept > 0 {
            let files = if kept == 1 { "file keeps its line" } else { "files keep their lines" };
            self.progress.suspend(|| {
                error_line(&format!("{kept} missing {files}"));
                hint_line("if they are to be gone, add --remove-missing");
            });
        }
        Ok(kept)
    }

    /// Says how many lines did not verify, and why.
    fn summary(&self) {
        if let Some(counts) = self.counts.sentence() {
            note_line(&counts);
        }
        self.counts.warnings().iter().for_each(|text| error_line(text));
        if self.counts.ok == 0 && self.counts.unnamed > 0 {
            hint_line(match self.options.dialect {
                Dialect::B3sum => "for SHA-256 add `--algorithm sha256`, or use `bulla check`",
                Dialect::Any => {
                    "nothing matches as BLAKE3, BLAKE2b or SHA-2; `--algorithm` names another function"
                }
            });
        }
        if interrupt::stop_signal().is_some() {
            note_line(&format!("interrupted: {} lines done", self.counts.lines()));
        }
    }
}
