//! `bulla sum`: prints checksums like b3sum and the programs of the coreutils.

use super::check;
use super::hashing::{hashing, or_stdin, threads};
use super::sum_lines::{Format, Lines, SumResults};
use super::sum_resume::Listed;
use super::walking::{Until, count, rules, stdout_file};
use crate::args::SumArgs;
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::outboard;
use crate::files::read::total_of;
use crate::idle;
use crate::interrupt;
use crate::output::Out;
use crate::progress::{Progress, Total};
use bulla_files::escape_path;
use bulla_sums::{
    Dash, Digest, FileBatch, FolderPolicy, HashParams, HashedFile, Helpers, Job, JobOutcome, Links,
    NamePolicy, OpenPolicy, Output, PathFeed, PoolOptions, ReadError, ReadOptions, Rules, Source, hash_files,
    path_from, run_in_order,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

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
        Ok(Exit::Error) => Ok(Exit::Mismatch),
        Err(error) if !error.is_broken_pipe() && error.code() != "usage" => {
            error.print();
            Ok(Exit::Mismatch)
        }
        done => done,
    }
}

fn print_sums(args: &SumArgs) -> Result<Exit> {
    idle::set_priority(args.read.work.priority())?;
    let files = if args.files0_from.is_some() { args.files.clone() } else { or_stdin(&args.files) };
    if args.raw && files.len() > 1 {
        return Err(Error::new("many_files", "only one FILE can be given with --raw"));
    }
    if args.tree {
        return super::trees::print(args, &files);
    }
    if let Some(outboard) = &args.outboard {
        return print_with_outboard(args, &files, outboard);
    }
    let (hashing, dash) = hashing(args)?;
    if let (Some(flag), false) = (args.walk.filters.first(), args.walk.recursive) {
        return Err(Error::new("usage", format!("{flag} chooses files of a folder: it needs --recursive")));
    }
    let rules = rules(&args.walk.filters)?;
    let (listed, mut out) = match &args.resume {
        Some(list) => {
            let (listed, file) = Listed::open(list, args, &hashing)?;
            (Some(listed), Out::to_file(file, list))
        }
        None => (None, Out::stdout()),
    };
    let total = if listed.is_some() { Total::default() } else { total_of(&files, args.read.work.progress) };
    let progress = Progress::of(total, args.read.work.progress);
    let hashing = Arc::new(hashing);
    let reading = ReadOptions {
        hashing,
        open_policy: OpenPolicy::AnyKind,
        name_policy: NamePolicy::MayChange,
        dash,
        by_blocks: !args.read.no_mmap,
        meter: &progress,
    };
    let sum = Sum {
        format: Format::of(args),
        walked: walked(&reading, &rules),
        reading,
        rules,
        listed,
        output: stdout_file().filter(|_| args.resume.is_none() && args.walk.recursive),
        progress: &progress,
    };
    let mut exit = Exit::Ok;
    let mut done = 0_u64;
    let each = |results: SumResults| {
        done += results.files;
        if results.has_failed {
            exit = Exit::Mismatch;
        }
        sum_print(&mut out, &sum, results)
    };
    if args.walk.recursive && progress.is_shown() {
        sum.run_counted(args, files, each)?;
    } else {
        sum.run(args, files, each)?;
    }
    out.sync()?;
    if let Some(text) = sum.listed.as_ref().and_then(|listed| listed.summary(done)) {
        progress.suspend(|| note_line(&text));
    }
    if interrupt::stop_signal().is_some() {
        let how = if sum.listed.is_some() { "; the same command goes on" } else { "" };
        progress.suspend(|| note_line(&format!("interrupted: {done} files done{how}")));
    }
    Ok(exit)
}

/// How the files in folders are read, if those that the user named are read like this.
fn walked<'a>(named: &ReadOptions<'a>, rules: &Rules) -> ReadOptions<'a> {
    ReadOptions { open_policy: OpenPolicy::RegularFile(rules.links), dash: Dash::FileName, ..named.clone() }
}

/// Prints the sum of one file, and writes its tree of hashes.
fn print_with_outboard(args: &SumArgs, files: &[PathBuf], path: &Path) -> Result<Exit> {
    let [file] = files else {
        return Err(Error::new(
            "usage",
            "--outboard has the tree of one file, so only one FILE can be given",
        ));
    };
    let cannot_read = |error: ReadError| Error::from(error).about(escape_path(file));
    let source = if file == Path::new(STDIN) {
        Source::stdin().map_err(ReadError::Io)
    } else {
        Source::open_any(file)
    };
    let source = source.map_err(cannot_read)?;
    let progress = Progress::of(total_of(files, args.read.work.progress), args.read.work.progress);
    let (digest, size) = outboard::write(&source, file, path, &progress)?;
    let output = Output::Digest(Digest::new(digest.as_bytes()));
    let (format, hashing) = (Format::of(args), HashParams::plain_blake3());
    let mut lines = Lines::new(&format, &hashing);
    lines.push(b"", file.as_os_str().as_encoded_bytes(), Ok(HashedFile { output, size, stamp: None }));
    let mut out = Out::after(format!("the tree was written to {}", escape_path(path)));
    lines.finish().print(&mut out)?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// The work of a run.
struct Sum<'a> {
    format: Format,
    /// How the files are read that the user named.
    reading: ReadOptions<'a>,
    /// How the files in folders are read. Whatever has replaced one meanwhile is neither followed
    /// nor waited for, and one that is called `-` is a file.
    walked: ReadOptions<'a>,
    rules: Rules,
    /// What a list names already.
    listed: Option<Listed>,
    /// The file that takes the output: a walk leaves it out.
    output: Option<(u64, u64)>,
    progress: &'a Progress,
}

impl Sum<'_> {
    /// Counts the files meanwhile, so that the remaining time can be shown.
    fn run_counted(
        &self,
        args: &SumArgs,
        files: Vec<PathBuf>,
        each: impl FnMut(SumResults) -> Result<()> + Send,
    ) -> Result<()> {
        let is_done = AtomicBool::new(false);
        let paths = files.clone();
        std::thread::scope(|scope| {
            let count_all = || {
                let is_counted = |batch: &FileBatch, index| {
                    !self.listed.as_ref().is_some_and(|listed| listed.has(batch, index))
                };
                if let Some(total) = count(paths, &self.rules, &is_counted, &Until(&is_done)) {
                    self.progress.set_total(total);
                }
            };
            // Without a thread for this, the remaining time is not shown.
            let _ = Builder::new().spawn_scoped(scope, count_all);
            let done = self.run(args, files, each);
            is_done.store(true, Ordering::Relaxed);
            done
        })
    }

    fn run(
        &self,
        args: &SumArgs,
        files: Vec<PathBuf>,
        each: impl FnMut(SumResults) -> Result<()> + Send,
    ) -> Result<()> {
        let folders = if args.walk.recursive { FolderPolicy::Walk } else { FolderPolicy::Open };
        let threads = threads(args.read);
        let plan = PoolOptions { threads, meter: self.progress, on_large: &interrupt::stop_gracefully };
        let work = |job: Job, helpers: &dyn Helpers| self.work(job, helpers);
        let Some(list) = &args.files0_from else {
            return run_in_order(&plan, Box::new(PathFeed::new(files.into_iter(), folders)), work, each);
        };
        let trouble = Arc::new(Mutex::new(None));
        let named = Named { list: open_list(list)?, path: list.clone(), trouble: trouble.clone(), number: 0 };
        let paths = files.into_iter().chain(named);
        run_in_order(&plan, Box::new(PathFeed::new(paths, folders)), work, each)?;
        let trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        trouble.map_or(Ok(()), Err)
    }

    /// Whether a walk found the file that takes the output. It may have grown while it was read.
    fn is_output(&self, batch: &FileBatch, index: usize, result: &Result<HashedFile, ReadError>) -> bool {
        let Some(output) = self.output else { return false };
        let stamp = match result {
            _ if batch.kind(index).is_none() => None,
            Ok(hashed) => hashed.stamp,
            Err(_) => batch.folder().stamp(batch.name(index), Links::Follow).ok(),
        };
        stamp.is_some_and(|stamp| stamp.identity == output)
    }

    fn work(&self, job: Job, helpers: &dyn Helpers) -> JobOutcome<Job, SumResults> {
        match job {
            Job::Folder(pending) => match pending.list(&self.rules) {
                Err(error) => {
                    let mut results = SumResults::default();
                    results.add_error(&error, &self.format);
                    results.into()
                }
                Ok(listed) => {
                    let mut results = SumResults::default();
                    listed.errors.iter().for_each(|error| results.add_error(error, &self.format));
                    JobOutcome { result: results, then: Some(listed.jobs) }
                }
            },
            Job::Batch(batch) => {
                let left: Vec<usize> = match &self.listed {
                    Some(listed) => listed.others(&batch),
                    None => (0..batch.len()).collect(),
                };
                let names = left.iter().map(|index| batch.name(*index));
                let is_walked = !batch.is_empty() && batch.kind(0).is_some();
                let reading = if is_walked { &self.walked } else { &self.reading };
                let results = hash_files(reading, batch.folder(), names, helpers);
                let end = left.get(results.len()).copied().unwrap_or(batch.len());
                if let Some(listed) = &self.listed {
                    listed.skip(end - results.len());
                }
                let then = batch.rest(end);
                let mut lines = Lines::new(&self.format, &self.reading.hashing);
                for (index, result) in left.into_iter().zip(results) {
                    if !self.is_output(&batch, index, &result) {
                        lines.push(batch.folder().prefix(), batch.name(index), result);
                    }
                }
                JobOutcome { result: lines.finish(), then }
            }
        }
    }
}

/// Prints one thread's results.
fn sum_print(out: &mut Out, sum: &Sum<'_>, results: SumResults) -> Result<()> {
    for error in &results.errors {
        sum.progress.suspend(|| error.print());
    }
    results.print(out)?;
    out.flush_sometimes()
}

fn open_list(list: &Path) -> Result<Box<dyn BufRead + Send>> {
    if list == Path::new(STDIN) {
        let stdin =
            Source::stdin().map_err(|error| Error::io("cannot read", &error).about(escape_path(list)))?;
        return Ok(Box::new(BufReader::new(stdin.into_file())));
    }
    let file = File::open(list).map_err(|error| Error::io("cannot read", &error).about(escape_path(list)))?;
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
        let about = |error: Error| error.about(escape_path(&self.path));
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
