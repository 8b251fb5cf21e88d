//! `bulla check --update`: writes the changes into a list, and nothing else.

use super::compare::{Compared, New};
use super::functions::{Functions, Matched};
use super::lists::{List, parse, read_line};
use super::options::{Lists, Options, named};
use super::verdicts::{Change, Checked, Counts, Gone};
use crate::error::{Error, Result};
use crate::files::atomic;
use bulla_files::escape_path;
use bulla_sums::{Algorithm, ChecksumLine, EscapedName, LineEnding, LineParser, ParsedLine, Stamp, Subject};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The changes of one list.
pub(super) struct Changes {
    reader: LineParser,
    /// The list's file before it was read.
    stamp: Option<Stamp>,
    /// By the number of the line.
    lines: BTreeMap<u64, Change>,
    /// The functions that lines without one have matched by.
    matched: Matched,
    /// How many of the listed files exist.
    existing: u64,
    /// An OpenPGP signature is around the list.
    is_signed: bool,
}

/// What is done with a line.
enum Edit {
    /// It gets these digits.
    Digits(Vec<u8>),
    /// It goes: another line is added for its file.
    Move,
    /// It goes.
    Remove,
}

/// How many lines were written, and how.
#[derive(Default)]
struct Written {
    changed: u64,
    moved: u64,
    removed: u64,
}

/// The format of a list's last line, in which new lines are added.
#[derive(Clone)]
struct LineFormat {
    algorithm: Algorithm,
    is_tagged: bool,
    /// What ends a line: also a carriage return, if the list has some.
    ending: Vec<u8>,
}

impl Changes {
    pub(super) fn new(list: &List) -> Self {
        Self {
            reader: list.reader(),
            stamp: list.stamp(),
            lines: BTreeMap::new(),
            matched: Matched::default(),
            existing: 0,
            is_signed: false,
        }
    }

    pub(super) fn take(&mut self, checked: Checked) {
        self.lines.extend(checked.changes);
        self.matched.extend(&checked.matched);
    }

    /// Learns the function of lines from files that moved.
    pub(super) fn learn(&mut self, audited: &Compared) {
        if let (Some(function), false) = (audited.function, audited.moved.is_empty()) {
            self.matched.add(function);
        }
    }

    /// Notes what is known when all lines were checked.
    pub(super) fn end(&mut self, counts: &Counts, is_signed: bool) {
        self.existing = counts.ok + counts.changed + counts.unreadable;
        self.is_signed = is_signed;
    }

    /// How many missing files keep their lines.
    pub(super) fn kept(&self, audited: &Compared, then: Lists) -> u64 {
        if then == Lists::LoseMissing { 0 } else { self.lost(audited).count() as u64 }
    }

    /// The missing files whose content was not found elsewhere.
    fn lost(&self, audited: &Compared) -> impl Iterator<Item = &Gone> {
        let gone = self.lines.values().filter_map(|change| match change {
            Change::Gone(gone) => Some(gone),
            Change::Digest(_) | Change::Emptied(_) => None,
        });
        gone.filter(|gone| !audited.moved.contains(&gone.line))
    }

    /// The reason why the list must stay as it is.
    pub(super) fn refusal(&self, list: &Path, audited: &Compared) -> Option<Error> {
        if self.lines.is_empty() && audited.new.is_empty() {
            return None;
        }
        let error = if self.is_signed {
            Error::new(
                "signed_list",
                "has an OpenPGP signature, which a change would break; it stays as it is",
            )
            .hint("make a new list with `bulla sum`, and sign it")
        } else if self.existing == 0 && self.lost(audited).next().is_some() {
            Error::new("nothing_found", "none of its files exists; it stays as it is")
                .hint("is this the folder that the names begin in, and is its disk mounted?")
        } else if let Some(folder) = self.emptied() {
            let message = format!("{} has no files any more; the list stays as it is", escape_path(folder));
            Error::new("empty_folder", message)
                .hint("is its disk mounted? if so, remove its line from the list")
        } else if self.is_guess(list, audited) {
            let message = "nothing tells the hash function of its changed checksums; it stays as it is";
            Error::new("unknown_function", message)
                .hint("name the function, for example with --algorithm blake3 or --algorithm sha256")
        } else {
            return None;
        };
        Some(error.about(escape_path(list)))
    }

    fn emptied(&self) -> Option<&Path> {
        self.lines.values().find_map(|change| match change {
            Change::Emptied(folder) => Some(folder.as_path()),
            Change::Digest(_) | Change::Gone(_) => None,
        })
    }

    /// Whether the function of a line to write would be a guess.
    fn is_guess(&self, list: &Path, audited: &Compared) -> bool {
        let is_guess = |change: &Change| match change {
            Change::Digest(digests) => self.digest(list, digests).is_none(),
            Change::Gone(_) | Change::Emptied(_) => false,
        };
        (!audited.new.is_empty() && audited.function.is_none()) || self.lines.values().any(is_guess)
    }

    /// Of the digests that a line may get, that of its function; `None` if nothing tells the
    /// function.
    fn digest<'d>(&self, list: &Path, digests: &'d [(Algorithm, Vec<u8>)]) -> Option<&'d [u8]> {
        let (likely, _) = digests.first()?;
        let functions = Functions { likely: *likely, other: digests.get(1).map(|(other, _)| *other) };
        let function = self.matched.function_of(functions, named(list))?;
        digests.iter().find(|(algorithm, _)| *algorithm == function).map(|(_, digest)| &digest[..])
    }

    /// What is done with which line.
    fn edits(&self, list: &Path, audited: &Compared, then: Lists) -> BTreeMap<u64, Edit> {
        let edit = |(number, change): (&u64, &Change)| {
            let edit = match change {
                Change::Digest(digests) => {
                    Edit::Digits(hex::encode(self.digest(list, digests)?).into_bytes())
                }
                Change::Gone(_) if audited.moved.contains(number) => Edit::Move,
                Change::Gone(_) if then == Lists::LoseMissing => Edit::Remove,
                Change::Gone(_) | Change::Emptied(_) => return None,
            };
            Some((*number, edit))
        };
        self.lines.iter().filter_map(edit).collect()
    }

    /// Writes the list again, with the changes and the new files. It returns what was done, and
    /// nothing if nothing was to do.
    pub(super) fn write(self, list: &Path, audited: &Compared, options: &Options) -> Result<Option<String>> {
        let edits = self.edits(list, audited, options.then);
        if edits.is_empty() && audited.new.is_empty() {
            return Ok(None);
        }
        let cannot_read = |error: &std::io::Error| Error::io("cannot read", error).about(escape_path(list));
        let metadata = list.metadata().map_err(|error| cannot_read(&error))?;
        // A link to a list stays one.
        let target = list.canonicalize().map_err(|error| cannot_read(&error))?;
        let file = File::open(&target).map_err(|error| cannot_read(&error))?;
        // The changes are those of numbered lines, and somebody may have moved these.
        if Stamp::of(&file).ok() != self.stamp {
            return Err(changed_meanwhile().about(escape_path(list)));
        }
        let mut input = BufReader::with_capacity(1 << 16, file);
        let mut written = Written::default();
        let mut failure = None;
        atomic::write(&target, |output| {
            let done = self.copy(&mut input, output, &edits, audited);
            match done {
                Ok(counts) => written = counts,
                Err(Rewrite::Io(error)) => return Err(error),
                Err(Rewrite::Changed(error)) => {
                    failure = Some(error);
                    return Err(std::io::Error::other("the list changed"));
                }
            }
            Ok(())
        })
        .map_err(|error| failure.take().map_or(error, |failure| failure.about(escape_path(list))))?;
        let kept = std::fs::set_permissions(&target, metadata.permissions());
        kept.map_err(|error| {
            Error::io("was written, but its mode was not kept", &error).about(escape_path(list))
        })?;
        let Written { changed, moved, removed } = written;
        let new = audited.new.len() as u64 - moved;
        let list = escape_path(list);
        Ok(Some(format!("{list}: wrote {changed} changed, {moved} moved, {new} new, {removed} removed")))
    }

    /// Copies the list with its changes.
    fn copy(
        &self,
        input: &mut dyn BufRead,
        output: &mut dyn Write,
        edits: &BTreeMap<u64, Edit>,
        audited: &Compared,
    ) -> Result<Written, Rewrite> {
        let mut format = LineFormat {
            algorithm: audited.function.unwrap_or(Algorithm::Blake3),
            is_tagged: false,
            ending: vec![self.reader.ending.byte()],
        };
        let (mut written, mut number) = (Written::default(), 0);
        while let Some((line, ending)) = raw_line(input, self.reader.ending)? {
            number += 1;
            let parsed = parse(&self.reader, &line);
            if let ParsedLine::Checksum(parsed) = &parsed {
                format.follow(parsed, &line, &ending, audited)?;
            }
            match (edits.get(&number), &parsed) {
                (None, _) => output.write_all(&[&line[..], &ending].concat())?,
                (Some(Edit::Remove), ParsedLine::Checksum(_)) => written.removed += 1,
                (Some(Edit::Move), ParsedLine::Checksum(_)) => written.moved += 1,
                (Some(Edit::Digits(digits)), ParsedLine::Checksum(parsed)) => {
                    output.write_all(&line[..parsed.digits.start])?;
                    output.write_all(digits)?;
                    output.write_all(&line[parsed.digits.end..])?;
                    output.write_all(&ending)?;
                    written.changed += 1;
                }
                _ => return Err(Rewrite::Changed(changed_meanwhile())),
            }
        }
        if written.changed + written.moved + written.removed != edits.len() as u64 {
            return Err(Rewrite::Changed(changed_meanwhile()));
        }
        if format.ending.is_empty() {
            // The last line had no ending, and gets one.
            format.ending = vec![self.reader.ending.byte()];
            if !audited.new.is_empty() && number > 0 {
                output.write_all(&format.ending)?;
            }
        }
        audited.new.iter().try_for_each(|new| format.line(output, self.reader.ending, new))?;
        Ok(written)
    }
}

fn changed_meanwhile() -> Error {
    Error::new("changed_while_read", "changed while its files were checked; it stays as it is")
        .hint("run the command again when no program writes to it")
}

/// The reason why a list was not rewritten.
enum Rewrite {
    Io(std::io::Error),
    Changed(Error),
}

impl From<std::io::Error> for Rewrite {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// The longest line of a list that is rewritten. Only a comment can be as long.
const MAX_RAW_LINE_LEN: u64 = 1 << 21;

/// A line and what ends it.
type RawLine = (Vec<u8>, Vec<u8>);

/// The next line.
fn raw_line(input: &mut dyn BufRead, ending: LineEnding) -> Result<Option<RawLine>, Rewrite> {
    let mut line = Vec::new();
    std::io::Read::take(&mut *input, MAX_RAW_LINE_LEN).read_until(ending.byte(), &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() as u64 == MAX_RAW_LINE_LEN && line.last() != Some(&ending.byte()) {
        // What follows would count as another line.
        let message = format!("has a line of more than {MAX_RAW_LINE_LEN} bytes; it stays as it is");
        return Err(Rewrite::Changed(Error::new("malformed_list", message)));
    }
    let text = read_line(&mut &line[..], ending)?.unwrap_or_default();
    let end = line.split_off(text.len());
    Ok(Some((line, end)))
}

impl LineFormat {
    /// Takes the format of a line. New files cannot be added in every format.
    fn follow(
        &mut self,
        parsed: &ChecksumLine,
        line: &[u8],
        ending: &[u8],
        audited: &Compared,
    ) -> Result<(), Rewrite> {
        if line.first() == Some(&b'{') && !audited.new.is_empty() {
            let message = "new files cannot be added to a list of JSON Lines";
            return Err(Rewrite::Changed(Error::new("usage", message)));
        }
        if parsed.subject == Subject::File {
            self.is_tagged = line[..parsed.digits.start].contains(&b'(');
        }
        self.ending = ending.to_vec();
        Ok(())
    }

    fn line(&self, output: &mut dyn Write, ending: LineEnding, new: &New) -> Result<(), Rewrite> {
        let Some(digest) = &new.digest else { return Ok(()) };
        let name = match ending {
            LineEnding::Zero => EscapedName { text: new.path.clone(), escaped: false },
            LineEnding::LineFeed => EscapedName::new(&new.path, self.algorithm),
        };
        let digits = hex::encode(digest).into_bytes();
        let mark: &[u8] = if name.escaped { b"\\" } else { b"" };
        let tag = self.algorithm.tag().as_bytes();
        let parts: [&[u8]; 6] = match self.is_tagged {
            true => [mark, tag, b" (", &name.text, b") = ", &digits],
            false => [mark, &digits, b"  ", &name.text, b"", b""],
        };
        output.write_all(&parts.concat())?;
        Ok(output.write_all(&self.ending)?)
    }
}
