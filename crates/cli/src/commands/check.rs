//! `bulla check`: files against the checksums that `bulla sum` or b3sum printed.

use crate::args::{ReadArgs, ReportArgs};
use crate::commands::sum::{Hashing, or_stdin, threads};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::name::shown;
use crate::files::order::{Threads, in_order};
use crate::files::read::ReadError;
use crate::files::size::is_large;
use crate::output::{JsonError, JsonPath, Out, error_line, style};
use crate::progress::Progress;
use bulla_blake3::Hash;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read: no path is as long, and a stream without newlines must not fill the memory.
const MAX_LINE: u64 = 1 << 20;

/// Lines are checked in groups of this many, so that a long list needs little memory and shows results early.
const GROUP: usize = 1024;

pub(crate) fn run(files: &[PathBuf], read: ReadArgs, seek: u64, report: ReportArgs) -> Result<Exit> {
    let mut check = Check {
        hashing: Hashing::plain(seek),
        threads: threads(read),
        report,
        progress: Progress::new(None),
        out: Out::new(),
        failed: 0,
    };
    let mut exit = Exit::Ok;
    for list in or_stdin(files) {
        if let Err(error) = check.list(&list) {
            if error.is_broken_pipe() {
                return Err(error);
            }
            check.progress.suspend(|| error.print());
            exit = exit.and(Exit::Trouble);
        }
    }
    check.out.flush()?;
    if check.failed > 0 {
        let plural = if check.failed == 1 { "" } else { "s" };
        error_line(&format!("WARNING: {} computed checksum{plural} did NOT match", check.failed));
        exit = exit.and(Exit::Failed);
    }
    Ok(exit)
}

/// A run over lists of checksums.
struct Check {
    hashing: Hashing,
    threads: Threads,
    report: ReportArgs,
    progress: Progress,
    out: Out,
    /// How many lines did not check, for whatever reason.
    failed: u64,
}

/// What one line came to.
enum Verdict {
    Ok,
    Mismatch,
    Unreadable(ReadError),
}

impl Check {
    /// Checks every line of one list.
    fn list(&mut self, list: &Path) -> Result<()> {
        let cannot_read = |error: &io::Error| Error::io("cannot read", error).about(shown(list));
        let mut reader: Box<dyn BufRead> = if list == Path::new(STDIN) {
            Box::new(BufReader::new(io::stdin()))
        } else {
            Box::new(BufReader::new(File::open(list).map_err(|error| cannot_read(&error))?))
        };
        let mut number = 0;
        loop {
            let mut group = Vec::new();
            while group.len() < GROUP
                && let Some(line) = read_line(&mut reader).map_err(|error| cannot_read(&error))?
            {
                number += 1;
                group.push((number, parse(&line)));
            }
            if group.is_empty() {
                break;
            }
            self.group(list, &group)?;
        }
        if number == 0 {
            return Err(
                Error::new("empty_list", "holds no checksums: nothing was checked").about(shown(list))
            );
        }
        Ok(())
    }

    fn group(&mut self, list: &Path, group: &[(u64, Result<Line, &'static str>)]) -> Result<()> {
        let Self { hashing, threads, report, progress, out, failed } = self;
        let work = |item: &(u64, Result<Line, &'static str>), pace| {
            let line = item.1.as_ref().ok()?;
            Some(match hashing.digest(&line.path, pace, progress) {
                // The comparison of `Hash` takes the same time wherever the difference is.
                Ok(digested) if digested.hash() == line.expected => Verdict::Ok,
                Ok(_) => Verdict::Mismatch,
                Err(error) => Verdict::Unreadable(error),
            })
        };
        let is_large = |item: &(u64, Result<Line, _>)| item.1.as_ref().is_ok_and(|line| is_large(&line.path));
        in_order(group, *threads, is_large, work, |(number, line), verdict| {
            *failed += u64::from(!matches!(verdict, Some(Verdict::Ok)));
            match (line, verdict) {
                (Ok(line), Some(verdict)) => progress.suspend(|| print(out, *report, line, verdict)),
                (Err(reason), _) => progress.suspend(|| print_malformed(out, *report, list, *number, reason)),
                (Ok(_), None) => Ok(()),
            }
        })
    }
}

/// Reads a line without its newline; `None` at the end.
fn read_line(reader: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let len = reader.take(MAX_LINE).read_until(b'\n', &mut line)?;
    if len as u64 == MAX_LINE && line.last() != Some(&b'\n') {
        // What is left of the line is no line of its own.
        skip_line(reader)?;
    }
    while let Some(b'\n' | b'\r') = line.last() {
        line.pop();
    }
    Ok((len > 0).then_some(line))
}

fn skip_line(reader: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let len = end.map_or(buffer.len(), |position| position + 1);
        reader.consume(len);
        if end.is_some() || len == 0 {
            return Ok(());
        }
    }
}

/// A line of a list.
struct Line {
    /// The name as it stands in the list, with the backslash that says it is escaped.
    name: String,
    path: PathBuf,
    expected: Hash,
}

/// Reads a line in one of the two forms of b3sum; the reason is given when it is neither.
fn parse(line: &[u8]) -> Result<Line, &'static str> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8")?;
    let (escaped, rest) = match line.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    // A name may hold either separator: the digest stands on the far side of it.
    let parts = match rest.strip_prefix("BLAKE3 (") {
        Some(tagged) => tagged.rsplit_once(") = ").map(|(name, hash)| (hash, name)),
        None => rest.split_once("  "),
    };
    let (hash, name) = parts.ok_or("the line is neither `HASH  NAME` nor `BLAKE3 (NAME) = HASH`")?;
    let lower_hex = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hash.len() != 64 || !lower_hex {
        return Err("the checksum is not 64 lower-case hexadecimal digits");
    }
    let expected = Hash::from_hex(hash).map_err(|_| "the checksum is not hexadecimal")?;
    let path = if escaped { unescape(name).ok_or("a backslash escape is unknown")? } else { name.to_owned() };
    check_name(&path)?;
    Ok(Line { name: line_name(escaped, name), path: path.into(), expected })
}

fn line_name(escaped: bool, name: &str) -> String {
    if escaped { format!("\\{name}") } else { name.to_owned() }
}

/// Refuses names that may stand for more than one file: a check must rather fail than pass for the wrong file.
fn check_name(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("the name is empty");
    }
    if path.contains('\0') {
        return Err("there is a null character in the name");
    }
    if path.contains('\u{fffd}') {
        return Err(
            "there is a Unicode replacement character in the name: the file's real name is not UTF-8",
        );
    }
    if cfg!(windows) && path.contains('\\') {
        return Err("there is a backslash in the name");
    }
    Ok(())
}

/// Undoes the escapes of [`SumName`](crate::files::name::SumName).
fn unescape(name: &str) -> Option<String> {
    let mut path = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        path.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(path)
}

/// What `--json` prints for a line.
#[derive(Serialize)]
struct JsonLine {
    #[serde(flatten)]
    path: JsonPath,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}

fn print(out: &mut Out, report: ReportArgs, line: &Line, verdict: Verdict) -> Result<()> {
    let (status, style, text) = match &verdict {
        Verdict::Ok if report.quiet => return Ok(()),
        Verdict::Ok => ("ok", style::GOOD, "OK".to_owned()),
        Verdict::Mismatch => ("failed", style::BAD, "FAILED".to_owned()),
        Verdict::Unreadable(ReadError::Io(error)) => ("unreadable", style::BAD, format!("FAILED ({error})")),
        Verdict::Unreadable(ReadError::Changed | ReadError::Replaced | ReadError::NotAFile(_)) => {
            ("unreadable", style::BAD, "FAILED (changed while it was read)".to_owned())
        }
    };
    if report.json {
        let error = match verdict {
            Verdict::Unreadable(error) => Some(JsonError::from(&Error::from(error))),
            Verdict::Ok | Verdict::Mismatch => None,
        };
        return out.json(&JsonLine { path: line.path.as_path().into(), status, line: None, error });
    }
    let style = out.style(style);
    out.line(format_args!("{}: {style}{text}{style:#}", line.name))?;
    out.flush_sometimes()
}

fn print_malformed(out: &mut Out, report: ReportArgs, list: &Path, number: u64, reason: &str) -> Result<()> {
    // In order with the lines before it, where both go to one terminal.
    out.flush()?;
    let error = Error::new("malformed_line", reason).about(format!("{}: line {number}", shown(list)));
    error.print();
    if report.json {
        let error = Some(JsonError::from(&error));
        return out.json(&JsonLine { path: list.into(), status: "malformed", line: Some(number), error });
    }
    Ok(())
}
