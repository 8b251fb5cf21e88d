//! `bulla check --update`: writes the changes into a list, and nothing else.

use super::audit::New;
use super::lists::{List, parse, read_line};
use super::options::Options;
use super::verdicts::{Change, Checked};
use crate::error::{Error, Result};
use crate::files::atomic;
use crate::files::name::shown;
use bulla_sums::{Algorithm, Ending, LineReader, Parsed, SumName};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The changes of one list.
pub(super) struct Changes {
    reader: LineReader,
    /// By the number of the line: its new digits, or nothing if the line goes.
    lines: BTreeMap<u64, Option<Vec<u8>>>,
}

/// The form of a list's last line, in which new lines are added.
#[derive(Clone)]
struct Form {
    algorithm: Algorithm,
    is_tagged: bool,
    /// What ends a line: also a carriage return, if the list has some.
    ending: Vec<u8>,
}

impl Changes {
    pub(super) fn new(list: &List) -> Self {
        Self { reader: list.reader(), lines: BTreeMap::new() }
    }

    pub(super) fn take(&mut self, checked: &Checked) {
        for (number, change) in &checked.changes {
            let digits = match change {
                Change::Gone { .. } => None,
                Change::Digest(digest) => Some(hex::encode(digest).into_bytes()),
            };
            self.lines.insert(*number, digits);
        }
    }

    /// Writes the list again, with the changes and the new files. It returns what was done, and nothing if nothing was to do.
    pub(super) fn write(self, list: &Path, new: Vec<New>, options: &Options) -> Result<Option<String>> {
        if self.lines.is_empty() && new.is_empty() {
            return Ok(None);
        }
        let cannot_read = |error: &std::io::Error| Error::io("cannot read", error).about(shown(list));
        let metadata = list.metadata().map_err(|error| cannot_read(&error))?;
        // A link to a list stays one.
        let target = list.canonicalize().map_err(|error| cannot_read(&error))?;
        let file = File::open(&target).map_err(|error| cannot_read(&error))?;
        let mut input = BufReader::with_capacity(1 << 16, file);
        let (mut changed, mut gone) = (0, 0);
        let mut failure = None;
        atomic::write(&target, |output| {
            let done = self.copy(&mut input, output, &new, options);
            match done {
                Ok(counts) => (changed, gone) = counts,
                Err(Rewrite::Io(error)) => return Err(error),
                Err(Rewrite::Changed(error)) => {
                    failure = Some(error);
                    return Err(std::io::Error::other("the list changed"));
                }
            }
            Ok(())
        })
        .map_err(|error| failure.take().map_or(error, |failure| failure.about(shown(list))))?;
        let kept = std::fs::set_permissions(&target, metadata.permissions());
        kept.map_err(|error| Error::io("was written, but its mode was not kept", &error).about(shown(list)))?;
        Ok(Some(format!("{}: wrote {changed} changed, {gone} missing and {} new", shown(list), new.len())))
    }

    /// Copies the list, and returns how many lines changed and how many went.
    fn copy(
        &self,
        input: &mut dyn BufRead,
        output: &mut dyn Write,
        new: &[New],
        options: &Options,
    ) -> Result<(u64, u64), Rewrite> {
        let mut form = Form {
            algorithm: options.algorithm.or(self.reader.algorithm).unwrap_or(Algorithm::Blake3),
            is_tagged: false,
            ending: vec![self.reader.ending.byte()],
        };
        let (mut changed, mut gone, mut number) = (0, 0, 0);
        while let Some((line, ending)) = raw_line(input, self.reader.ending)? {
            number += 1;
            let parsed = parse(&self.reader, &line);
            if let Parsed::Line(parsed) = &parsed {
                if line.first() == Some(&b'{') && !new.is_empty() {
                    return Err(Rewrite::Changed(Error::new(
                        "usage",
                        "new files cannot be added to a list of JSON Lines",
                    )));
                }
                let is_tagged = parsed.digits.start > line.iter().take_while(|byte| **byte == b'\\').count();
                form = Form { algorithm: parsed.algorithm, is_tagged, ending: ending.clone() };
            }
            match (self.lines.get(&number), &parsed) {
                (None, _) => {
                    output.write_all(&line)?;
                    output.write_all(&ending)?;
                }
                (Some(None), Parsed::Line(_)) => gone += 1,
                (Some(Some(digits)), Parsed::Line(parsed)) => {
                    output.write_all(&line[..parsed.digits.start])?;
                    output.write_all(digits)?;
                    output.write_all(&line[parsed.digits.end..])?;
                    output.write_all(&ending)?;
                    changed += 1;
                }
                _ => return Err(Rewrite::Changed(changed_meanwhile())),
            }
        }
        if changed + gone != self.lines.len() as u64 {
            return Err(Rewrite::Changed(changed_meanwhile()));
        }
        if form.ending.is_empty() {
            // The last line had no ending, and gets one.
            form.ending = vec![self.reader.ending.byte()];
            if !new.is_empty() && number > 0 {
                output.write_all(&form.ending)?;
            }
        }
        new.iter().try_for_each(|new| form.line(output, self.reader.ending, new))?;
        Ok((changed, gone))
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

/// A line and what ends it.
fn raw_line(input: &mut dyn BufRead, ending: Ending) -> std::io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut line = Vec::new();
    let limit = 1 << 21;
    std::io::Read::take(&mut *input, limit).read_until(ending.byte(), &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let text = read_line(&mut &line[..], ending)?.unwrap_or_default();
    let end = line.split_off(text.len());
    Ok(Some((line, end)))
}

impl Form {
    fn line(&self, output: &mut dyn Write, ending: Ending, new: &New) -> Result<(), Rewrite> {
        let Some(digest) = &new.digest else { return Ok(()) };
        let name = match ending {
            Ending::Zero => SumName { text: new.path.clone(), escaped: false },
            Ending::LineFeed => SumName::new(&new.path, self.algorithm),
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
