//! `bulla check`: checks files against the checksums that `bulla sum`, b3sum or b2sum printed.

use super::hashing::{Hashing, or_stdin, threads};
use crate::algorithm::Algorithm;
use crate::args::{ReadArgs, ReportArgs};
use crate::diagnostics::error_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::name::shown;
use crate::files::order::{Threads, in_order};
use crate::files::read::ReadError;
use crate::files::size::is_large;
use crate::output::{JsonError, JsonPath, Out};
use crate::progress::Progress;
use crate::style;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The maximum length of a line: no path is longer, and a stream without newlines must not fill the memory.
const MAX_LINE: u64 = 1 << 20;

/// Lines are checked in groups of this many, so that a long list needs little memory and shows results early.
const GROUP: usize = 1024;

/// The options that lines of checksums do not state themselves.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    /// The function for lines without a tag; `None` decides by the number of digits.
    pub(crate) algorithm: Option<Algorithm>,
    /// The first byte of BLAKE3's output.
    pub(crate) seek: u64,
}

pub(crate) fn run(files: &[PathBuf], read: ReadArgs, lines: Lines, report: ReportArgs) -> Result<Exit> {
    let mut check = Check {
        lines,
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
    lines: Lines,
    threads: Threads,
    report: ReportArgs,
    progress: Progress,
    out: Out,
    /// The number of lines that did not verify, for any reason.
    failed: u64,
}

/// The result of one line.
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
                group.push((number, parse(&line, self.lines)));
            }
            if group.is_empty() {
                break;
            }
            self.group(list, &group)?;
        }
        if number == 0 {
            let message = "contains no checksums: nothing was checked";
            return Err(Error::new("empty_list", message).about(shown(list)));
        }
        Ok(())
    }

    fn group(&mut self, list: &Path, group: &[(u64, Result<Line, &'static str>)]) -> Result<()> {
        let Self { threads, report, progress, out, failed, .. } = self;
        let work = |item: &(u64, Result<Line, &'static str>), pace| {
            let line = item.1.as_ref().ok()?;
            Some(match line.hashing.digest(&line.path, pace, progress) {
                Ok(output) if output.is(&line.expected) => Verdict::Ok,
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
        // The rest of the line must not count as a separate line.
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
    /// The name as it is in the list, with the backslash that marks it as escaped.
    name: String,
    path: PathBuf,
    hashing: Hashing,
    expected: Vec<u8>,
}

/// Parses a line in one of the forms of b3sum and b2sum; otherwise returns the reason.
fn parse(line: &[u8], lines: Lines) -> Result<Line, &'static str> {
    let (escaped, rest) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let is_utf8 = std::str::from_utf8(line).is_ok();
    let no_form = "the line is neither `HASH  NAME` nor `BLAKE3 (NAME) = HASH`";
    let parts = tagged(rest).or_else(|| untagged(rest, lines.algorithm));
    let (algorithm, hash, name) = match parts {
        Some(parts) if is_utf8 || parts.0 != Algorithm::Blake3 => parts,
        None if is_utf8 => return Err(no_form),
        _ => return Err("the line is not UTF-8"),
    };
    let expected = digits(hash, algorithm)?;
    let hashing =
        Hashing::plain(algorithm, expected.len() as u64, lines.seek).ok_or("the checksum is too long")?;
    let path = if escaped {
        unescape(name).ok_or("the name contains an unknown backslash escape")?
    } else {
        name.to_vec()
    };
    let path = checked_path(path, algorithm)?;
    Ok(Line { name: line_name(escaped, &String::from_utf8_lossy(name)), path, hashing, expected })
}

/// A line `NAME (FILE) = HASH`; b2sum writes `BLAKE2b-256` for a digest of 256 bits.
fn tagged(line: &[u8]) -> Option<(Algorithm, &[u8], &[u8])> {
    let open = line.windows(2).position(|pair| pair == b" (")?;
    let tag = std::str::from_utf8(&line[..open]).ok()?;
    let algorithm = Algorithm::by_tag(tag.split_once('-').map_or(tag, |(tag, _)| tag))?;
    let rest = &line[open + 2..];
    // A name may contain the separator, so take the last one.
    let close = rest.windows(4).rposition(|end| end == b") = ")?;
    Some((algorithm, &rest[close + 4..], &rest[..close]))
}

/// A line `HASH  FILE`, or `HASH *FILE` as b2sum writes it for binary files.
fn untagged(line: &[u8], algorithm: Option<Algorithm>) -> Option<(Algorithm, &[u8], &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (hash, rest) = line.split_at(space);
    let algorithm = algorithm.unwrap_or(match hash.len() {
        128 => Algorithm::Blake2b,
        _ => Algorithm::Blake3,
    });
    let name = match (rest, algorithm) {
        ([b' ', b' ', name @ ..], _) => name,
        ([b' ', b'*', _, ..], Algorithm::Blake3) => return None,
        ([b' ', b'*', name @ ..], _) => name,
        _ => return None,
    };
    Some((algorithm, hash, name))
}

/// The bytes of a checksum. For BLAKE3 it must have 32 bytes and lower-case digits, as in b3sum.
fn digits(hash: &[u8], algorithm: Algorithm) -> Result<Vec<u8>, &'static str> {
    let is_blake3 = algorithm == Algorithm::Blake3;
    let reason = match is_blake3 {
        true => "the checksum does not have 64 lower-case hexadecimal digits",
        false => "the checksum does not have an even number of hexadecimal digits",
    };
    if is_blake3 && (hash.len() != 64 || hash.iter().any(u8::is_ascii_uppercase)) {
        return Err(reason);
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pairs = hash.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty()).ok_or(reason)
}

fn line_name(escaped: bool, name: &str) -> String {
    if escaped { format!("\\{name}") } else { name.to_owned() }
}

/// Refuses names that may mean more than one file: a check should fail rather than pass for the wrong file.
fn checked_path(name: Vec<u8>, algorithm: Algorithm) -> Result<PathBuf, &'static str> {
    if name.is_empty() {
        return Err("the name is empty");
    }
    if name.contains(&b'\0') {
        return Err("the name contains a null character");
    }
    let name = match String::from_utf8(name) {
        Ok(name) => name,
        Err(error) => return raw_path(error.into_bytes()),
    };
    if algorithm == Algorithm::Blake3 && name.contains('\u{fffd}') {
        return Err("the name contains a Unicode replacement character: the file's real name is not UTF-8");
    }
    if cfg!(windows) && name.contains('\\') {
        return Err("the name contains a backslash");
    }
    Ok(name.into())
}

/// The path of bytes that are not UTF-8, on systems that have such paths.
fn raw_path(name: Vec<u8>) -> Result<PathBuf, &'static str> {
    #[cfg(unix)]
    return Ok(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(name)));
    #[cfg(not(unix))]
    {
        let _ = name;
        Err("the line is not UTF-8")
    }
}

/// Undoes the escapes of [`SumName`](crate::files::name::SumName).
fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(path)
}

/// The output of `--json` for a line.
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
    // Keep the order if both streams go to one terminal.
    out.flush()?;
    let error = Error::new("malformed_line", reason).about(format!("{}: line {number}", shown(list)));
    error.print();
    if report.json {
        let error = Some(JsonError::from(&error));
        return out.json(&JsonLine { path: list.into(), status: "malformed", line: Some(number), error });
    }
    Ok(())
}
