//! `bulla sum`: prints checksums like b3sum and the programs of the coreutils.

use super::check;
use super::hashing::{hashing, or_stdin, threads};
use super::sum_lines::{Format, Found, Lines};
use super::walking::{Until, count, rules};
use crate::args::SumArgs;
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::name::shown;
use crate::files::size::total_of;
use crate::interrupt;
use crate::output::Out;
use crate::progress::Progress;
use bulla_sums::{
    Folders, Job, Naming, Opening, Others, Outcome, Paths, Plan, Reading, Rules, hash_files, in_order,
    path_from,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest name in a list of files: longer than any system's paths.
const LONGEST_NAME: u64 = 1 << 20;

pub(crate) fn run(args: &SumArgs) -> Result<Exit> {
    if args.check {
        return as_b3sum(check::run(&check::Options::of_sum(args)));
    }
    as_b3sum(print_sums(args))
}

/// Turns errors into status 1, like b3sum, except errors about flags that exclude each other.
fn as_b3sum(done: Result<Exit>) -> Result<Exit> {
    match done {
        Ok(Exit::Trouble) => Ok(Exit::Failed),
        Err(error) if !error.is_broken_pipe() && error.code() != "usage" => {
            error.print();
            Ok(Exit::Failed)
        }
        done => done,
    }
}

fn print_sums(args: &SumArgs) -> Result<Exit> {
    let files = if args.files0_from.is_some() { args.files.clone() } else { or_stdin(&args.files) };
    if args.raw && files.len() > 1 {
        return Err(Error::new("many_files", "only one FILE can be given with --raw"));
    }
    if args.tree {
        return super::trees::print(args, &files);
    }
    let (hashing, dash) = hashing(args)?;
    let rules = rules(&args.walk)?;
    let progress = Progress::of(total_of(&files, args.read.progress), args.read.progress);
    let hashing = Arc::new(hashing);
    let reading =
        Reading { hashing, opening: Opening::Anything, naming: Naming::Free, dash, meter: &progress };
    let mut out = Out::new();
    let sum = Sum { format: Format::of(args), reading, rules, progress: &progress };
    let mut exit = Exit::Ok;
    let mut done = 0_u64;
    let each = |found: Found| {
        done += found.files;
        if found.has_failed {
            exit = Exit::Failed;
        }
        sum_print(&mut out, &sum, found)
    };
    if args.walk.recursive && progress.is_shown() {
        sum.run_counted(args, files, each)?;
    } else {
        sum.run(args, files, each)?;
    }
    out.flush()?;
    if interrupt::stopped().is_some() {
        progress.suspend(|| note_line(&format!("interrupted: {done} files done")));
    }
    Ok(exit)
}

/// The work of a run.
struct Sum<'a> {
    format: Format,
    reading: Reading<'a>,
    rules: Rules,
    progress: &'a Progress,
}

impl Sum<'_> {
    /// Counts the files meanwhile, so that the remaining time can be shown.
    fn run_counted(
        &self,
        args: &SumArgs,
        files: Vec<PathBuf>,
        each: impl FnMut(Found) -> Result<()> + Send,
    ) -> Result<()> {
        let is_done = AtomicBool::new(false);
        let paths = files.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Some(total) = count(paths, &self.rules, &Until(&is_done)) {
                    self.progress.set_total(total);
                }
            });
            let done = self.run(args, files, each);
            is_done.store(true, Ordering::Relaxed);
            done
        })
    }

    fn run(
        &self,
        args: &SumArgs,
        files: Vec<PathBuf>,
        each: impl FnMut(Found) -> Result<()> + Send,
    ) -> Result<()> {
        let folders = if args.walk.recursive { Folders::Walk } else { Folders::Open };
        let threads = threads(args.read);
        let plan = Plan {
            threads: if threads.may_be_many() { threads.number() } else { 1 },
            meter: self.progress,
            at_length: &interrupt::stop_in_order,
        };
        let work = |job: Job, others: &dyn Others| self.work(job, others);
        let Some(list) = &args.files0_from else {
            return in_order(&plan, Box::new(Paths::new(files.into_iter(), folders)), work, each);
        };
        let trouble = Arc::new(Mutex::new(None));
        let named = Named { list: open_list(list)?, path: list.clone(), trouble: trouble.clone(), number: 0 };
        let paths = files.into_iter().chain(named);
        in_order(&plan, Box::new(Paths::new(paths, folders)), work, each)?;
        let trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        trouble.map_or(Ok(()), Err)
    }

    fn work(&self, job: Job, others: &dyn Others) -> Outcome<Job, Found> {
        match job {
            Job::Folder(pending) => match pending.enter(&self.rules) {
                Err(trouble) => {
                    let mut found = Found::default();
                    found.add_trouble(&trouble, &self.format);
                    found.into()
                }
                Ok(entered) => {
                    let mut found = Found::default();
                    entered.troubles.iter().for_each(|trouble| found.add_trouble(trouble, &self.format));
                    Outcome { result: found, then: Some(entered.content) }
                }
            },
            Job::Batch(batch) => {
                let results = hash_files(&self.reading, batch.folder(), batch.names(), others);
                let mut lines = Lines::new(&self.format, &self.reading.hashing);
                let done = results.len();
                for (index, result) in results.into_iter().enumerate() {
                    lines.push(batch.folder().prefix(), batch.name(index), result);
                }
                Outcome { result: lines.finish(), then: batch.rest(done) }
            }
        }
    }
}

/// Prints what a thread found.
fn sum_print(out: &mut Out, sum: &Sum<'_>, found: Found) -> Result<()> {
    for error in &found.errors {
        sum.progress.suspend(|| error.print());
    }
    found.print(out)?;
    out.flush_sometimes()
}

fn open_list(list: &Path) -> Result<Box<dyn BufRead + Send>> {
    if list == Path::new(STDIN) {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(list).map_err(|error| Error::io("cannot read", &error).about(shown(list)))?;
    Ok(Box::new(BufReader::new(file)))
}

/// The files that a list names.
struct Named {
    list: Box<dyn BufRead + Send>,
    path: PathBuf,
    /// The number of the last name.
    number: u64,
    /// The reason why there are no more names, if it is not the end of the list.
    trouble: Arc<Mutex<Option<Error>>>,
}

impl Named {
    fn read(&mut self) -> Result<Option<PathBuf>> {
        let about = |error: Error| error.about(shown(&self.path));
        let mut name = Vec::new();
        let len = (&mut self.list)
            .take(LONGEST_NAME)
            .read_until(0, &mut name)
            .map_err(|error| about(Error::io("cannot read", &error)))?;
        self.number += 1;
        if name.last() == Some(&0) {
            name.pop();
        } else if len as u64 == LONGEST_NAME {
            let message = format!("name {} is longer than a path can be", self.number);
            return Err(about(Error::new("malformed_list", message))
                .hint("each name must have a zero byte at its end, as `find -print0` writes them"));
        }
        if len > 0 && name.is_empty() {
            return Err(about(Error::new("malformed_list", format!("name {} is empty", self.number))));
        }
        let is_dash = name == STDIN.as_bytes() && self.path.as_os_str() == OsStr::new(STDIN);
        if is_dash {
            return Err(about(Error::new(
                "malformed_list",
                "standard input has the names, and cannot be a file",
            )));
        }
        Ok((len > 0).then(|| path_from(&name)))
    }
}

impl Iterator for Named {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        match self.read() {
            Ok(path) => path,
            Err(error) => {
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                None
            }
        }
    }
}
