//! The lists of checksums, and their lines in text and in JSON.

use super::armor::{Armor, Role};
use crate::error::{Error, Result};
use crate::files::STDIN;
use base64ct::{Base64, Encoding as _};
use bulla_files::escape_path;
use bulla_sums::{
    Algorithm, ChecksumLine, Dialect, Feed, LineEnding, LineParser, ParsedLine, Source, Stamp, Subject,
    TREE_TAG,
};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum length of a line: no path is longer, and a stream without newlines must not fill the
/// memory.
const MAX_LINE_LEN: u64 = 1 << 20;

/// The most lines of a group.
const MAX_GROUP_LINES: usize = 64;

/// The most bytes of a group: it may have many long lines.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// A line with its number, and without its ending.
pub(super) struct Numbered {
    pub(super) number: u64,
    text: Vec<u8>,
    role: Role,
}

impl Numbered {
    pub(super) fn parse(&self, reader: &LineParser) -> ParsedLine {
        match self.role {
            Role::Text => parse(reader, &self.text),
            Role::Armor => ParsedLine::Blank,
            Role::Outside => ParsedLine::Malformed("the line is outside the signed part of the list"),
        }
    }
}

/// Some lines of a list.
pub(super) struct Group {
    lines: Arc<Vec<Numbered>>,
    range: Range<usize>,
}

impl Group {
    pub(super) fn lines(&self) -> &[Numbered] {
        &self.lines[self.range.clone()]
    }

    /// The lines after the first `done`, in groups of as many lines.
    pub(super) fn rest(&self, done: usize) -> Option<Box<dyn Feed<Self>>> {
        let range = self.range.start + done..self.range.end;
        let is_empty = range.is_empty();
        let rest = Rest { lines: self.lines.clone(), range, each: done.max(1) };
        (!is_empty).then(|| Box::new(rest) as _)
    }
}

struct Rest {
    lines: Arc<Vec<Numbered>>,
    range: Range<usize>,
    each: usize,
}

impl Feed<Group> for Rest {
    fn next(&mut self) -> Option<Group> {
        let Range { start, end } = self.range;
        let middle = end.min(start + self.each);
        self.range.start = middle;
        (start < end).then(|| Group { lines: self.lines.clone(), range: start..middle })
    }

    fn has_more(&self) -> bool {
        !self.range.is_empty()
    }
}

/// A summary of a list, once it has been read.
#[derive(Clone, Default)]
pub(super) struct End(Arc<Mutex<ListSummary>>);

#[derive(Default)]
struct ListSummary {
    error: Option<io::Error>,
    armor: Armor,
    /// The number of comments after `;`.
    comments: u64,
}

impl End {
    fn known(&self) -> MutexGuard<'_, ListSummary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// The list could not be read to its end, or it has no lines.
    pub(super) fn result(&self, list: &Path, lines: u64) -> Result<()> {
        let mut known = self.known();
        if let Some(error) = known.error.take() {
            return Err(Error::io("cannot read", &error).about(escape_path(list)));
        }
        if known.armor.is_cut() {
            let message = "the list was cut: its OpenPGP signature is not complete";
            return Err(Error::new("list_cut", message).about(escape_path(list)));
        }
        if lines == 0 {
            let message = "contains no checksums: nothing was checked";
            return Err(Error::new("empty_list", message).about(escape_path(list)));
        }
        Ok(())
    }

    /// Whether an OpenPGP signature is around the checksums.
    pub(super) fn is_signed(&self) -> bool {
        self.known().armor.is_signed()
    }

    /// What was passed over, in words, if a user would not expect it.
    pub(super) fn ignored(&self) -> Option<String> {
        let ListSummary { armor, comments, .. } = &*self.known();
        let mut parts = Vec::new();
        if armor.is_signed() {
            parts.push("an OpenPGP signature, which bulla does not verify".to_owned());
        }
        if *comments > 0 {
            parts.push(format!("{comments} comment{} after `;`", if *comments == 1 { "" } else { "s" }));
        }
        (!parts.is_empty()).then(|| format!("ignored {}", parts.join(" and ")))
    }
}

/// A list that is being read.
pub(super) struct List {
    input: Box<dyn BufRead + Send>,
    reader: LineParser,
    next: u64,
    has_more: bool,
    end: End,
    /// The file with the list before it was read, if it is one.
    stamp: Option<Stamp>,
}

impl List {
    pub(super) fn open(path: &Path, reader: LineParser) -> Result<Self> {
        let cannot = |error: &io::Error| Error::io("cannot read", error).about(escape_path(path));
        let file = match path == Path::new(STDIN) {
            true => Source::stdin().map(Source::into_file),
            false => File::open(path),
        };
        let file = file.map_err(|error| cannot(&error))?;
        let stamp = Stamp::of(&file).ok();
        let mut input: Box<dyn BufRead + Send> = Box::new(BufReader::with_capacity(1 << 16, file));
        let has_more = input.fill_buf().map(|bytes| !bytes.is_empty()).map_err(|error| cannot(&error))?;
        Ok(Self { input, reader, next: 1, has_more, end: End::default(), stamp })
    }

    /// A list that was read already, from a file with this path.
    pub(super) fn of_content(path: &Path, content: &[u8], reader: LineParser) -> Self {
        Self {
            has_more: !content.is_empty(),
            input: Box::new(Cursor::new(content.to_vec())),
            reader,
            next: 1,
            end: End::default(),
            stamp: File::open(path).and_then(|file| Stamp::of(&file)).ok(),
        }
    }

    /// The identity of the list's file, if it is one: a comparison does not take it for one of its
    /// files.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        // Where the system tells no identities, all are zeros.
        self.stamp.map(|stamp| stamp.identity).filter(|found| *found != (0, 0))
    }

    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    pub(super) fn end(&self) -> End {
        self.end.clone()
    }

    pub(super) fn reader(&self) -> LineParser {
        self.reader
    }

    fn group(&mut self) -> io::Result<Vec<Numbered>> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < MAX_GROUP_LINES && bytes < MAX_GROUP_BYTES {
            let Some(text) = read_line(&mut self.input, self.reader.ending)? else { break };
            bytes += text.len();
            lines.push(self.numbered(text));
        }
        self.has_more = !self.input.fill_buf()?.is_empty();
        Ok(lines)
    }

    fn numbered(&mut self, mut text: Vec<u8>) -> Numbered {
        let number = self.next;
        self.next += 1;
        if self.reader.dialect != Dialect::Any || self.reader.ending != LineEnding::LineFeed {
            return Numbered { number, text, role: Role::Text };
        }
        let mut known = self.end.known();
        let role = known.armor.take(&mut text);
        known.comments += u64::from(text.trim_ascii_start().first() == Some(&b';'));
        Numbered { number, text, role }
    }
}

impl Feed<Group> for List {
    fn next(&mut self) -> Option<Group> {
        match self.group() {
            Ok(lines) => {
                let range = 0..lines.len();
                (!lines.is_empty()).then(|| Group { lines: Arc::new(lines), range })
            }
            Err(error) => {
                self.has_more = false;
                self.end.known().error = Some(error);
                None
            }
        }
    }

    fn has_more(&self) -> bool {
        self.has_more
    }
}

/// Reads a line without its ending; `None` at the end.
pub(super) fn read_line(reader: &mut dyn BufRead, ending: LineEnding) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let end = ending.byte();
    let len = reader.take(MAX_LINE_LEN).read_until(end, &mut line)?;
    if len as u64 == MAX_LINE_LEN && line.last() != Some(&end) {
        // The rest of the line must not count as a separate line.
        skip_line(reader, end)?;
    }
    match ending {
        LineEnding::Zero => {
            line.pop_if(|byte| *byte == 0);
        }
        LineEnding::LineFeed => while line.pop_if(|byte| matches!(byte, b'\n' | b'\r')).is_some() {},
    }
    Ok((len > 0).then_some(line))
}

fn skip_line(reader: &mut dyn BufRead, end: u8) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let found = buffer.iter().position(|byte| *byte == end);
        let len = found.map_or(buffer.len(), |position| position + 1);
        reader.consume(len);
        if found.is_some() || len == 0 {
            return Ok(());
        }
    }
}

/// Reads a line in any form that is accepted, also that of `bulla sum --json`.
pub(super) fn parse(reader: &LineParser, line: &[u8]) -> ParsedLine {
    match line.first() {
        Some(b'{') if reader.dialect == Dialect::Any => parse_json(line),
        _ => reader.parse(line),
    }
}

#[derive(Deserialize)]
struct JsonLine<'a> {
    path: String,
    path_base64: Option<String>,
    algorithm: Option<String>,
    /// A part of the line, which tells where the digits are.
    digest: Option<&'a str>,
}

pub(super) fn parse_json(line: &[u8]) -> ParsedLine {
    match read_json(line) {
        Ok(line) => ParsedLine::Checksum(line),
        Err(reason) => ParsedLine::Malformed(reason),
    }
}

fn read_json(text: &[u8]) -> Result<ChecksumLine, &'static str> {
    let line: JsonLine<'_> =
        serde_json::from_slice(text).map_err(|_| "the line is not one of `bulla sum --json`")?;
    let hex = line.digest.ok_or("the line has no digest: the file could not be read")?;
    let (algorithm, subject) = match line.algorithm.as_deref() {
        None => (Algorithm::Blake3, Subject::File),
        Some(TREE_TAG) => (Algorithm::Blake3, Subject::Folder),
        Some(name) => (Algorithm::by_tag(name).ok_or("the hash function is unknown")?, Subject::File),
    };
    let digest =
        hex::decode(hex).map_err(|_| "the checksum does not have an even number of hexadecimal digits")?;
    let is_whole = algorithm != Algorithm::Blake3 || digest.len() == algorithm.default_length();
    if !is_whole || !algorithm.has_length(digest.len() as u64) {
        return Err("the checksum is not as long as one of its hash function");
    }
    let name = match line.path_base64 {
        Some(bytes) => Base64::decode_vec(&bytes).map_err(|_| "the path is not in base64")?,
        None => line.path.clone().into_bytes(),
    };
    if name.is_empty() || name.contains(&0) {
        return Err("the name is empty, or contains a null character");
    }
    let shown = escape_path(&bulla_sums::path_from(&name));
    let start = hex.as_ptr() as usize - text.as_ptr() as usize;
    let digits = start..start + hex.len();
    Ok(ChecksumLine { algorithm, alternative: None, subject, digits, digest, shown, name })
}
