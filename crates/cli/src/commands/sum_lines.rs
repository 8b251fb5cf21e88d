//! The lines that `bulla sum` prints.

use super::walking::report;
use crate::algorithm::Algorithm;
use crate::args::SumArgs;
use crate::error::{Error, Result};
use crate::output::{Display, JsonError, JsonPath, Out, json_line};
use bulla_blake3::OutputReader;
use bulla_files::escape_path;
use bulla_sums::{EscapedName, HashParams, HashedFile, LineEnding, Output, ReadError, WalkError, path_from};
use serde::Serialize;
use std::path::Path;

/// Output of more bytes than this is printed piece by piece.
const MAX_HELD_OUTPUT_LEN: u64 = 64 << 10;

/// How a line is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineStyle {
    /// `HASH  NAME`.
    Plain,
    /// `BLAKE3 (NAME) = HASH`.
    Tagged,
    /// `HASH`.
    Bare,
    /// The bytes of the digest.
    Raw,
    Json,
}

/// How results are printed: the style of the lines, and what ends them.
pub(super) struct Format {
    style: LineStyle,
    pub(super) ending: LineEnding,
    display: Display,
}

impl Format {
    pub(super) fn of(args: &SumArgs) -> Self {
        let style = match args {
            SumArgs { raw: true, .. } => LineStyle::Raw,
            SumArgs { json: true, .. } => LineStyle::Json,
            SumArgs { no_names: true, .. } => LineStyle::Bare,
            SumArgs { tag: true, .. } => LineStyle::Tagged,
            _ => LineStyle::Plain,
        };
        let ending = if args.zero { LineEnding::Zero } else { LineEnding::LineFeed };
        let display = if args.resume.is_some() { Display::Program } else { Display::of_stdout() };
        Self { style, ending, display }
    }
}

/// One thread's results, ready to be printed.
#[derive(Default)]
pub(super) struct SumResults {
    pieces: Vec<Piece>,
    /// What goes to standard error.
    pub(super) errors: Vec<Error>,
    /// Whether something could not be hashed.
    pub(super) has_failed: bool,
    /// The number of files that were hashed.
    pub(super) files: u64,
}

enum Piece {
    Text(Vec<u8>),
    /// Output that is too long to be held in memory.
    Long(Box<OutputReader>, u64, LineStyle),
}

impl SumResults {
    /// Adds something that a walk could not look at.
    pub(super) fn add_error(&mut self, error: &WalkError, format: &Format) {
        self.has_failed = true;
        let path = error.path.as_path().into();
        let error = report(error);
        if format.style == LineStyle::Json {
            self.json(&JsonLine { path, algorithm: None, digest: None, error: Some((&error).into()) });
        }
        self.errors.push(error);
    }

    /// The text that is last so far.
    fn text(&mut self) -> &mut Vec<u8> {
        if !matches!(self.pieces.last(), Some(Piece::Text(_))) {
            self.pieces.push(Piece::Text(Vec::new()));
        }
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text,
            _ => unreachable!("the last piece is text"),
        }
    }

    fn json(&mut self, line: &JsonLine) {
        self.text().extend(json_line(line));
    }

    pub(super) fn print(self, out: &mut Out) -> Result<()> {
        for piece in self.pieces {
            match piece {
                Piece::Text(text) => out.bytes(&text)?,
                Piece::Long(output, length, style) => print_long(out, *output, length, style)?,
            }
        }
        Ok(())
    }
}

fn print_long(out: &mut Out, mut output: OutputReader, length: u64, style: LineStyle) -> Result<()> {
    let mut buffer = [0; 4096];
    let mut left = length;
    while left > 0 {
        let piece = &mut buffer[..left.min(4096) as usize];
        output.fill(piece);
        left -= piece.len() as u64;
        if style == LineStyle::Raw {
            out.bytes(piece)?;
        } else {
            out.bytes(hex::encode(&*piece).as_bytes())?;
        }
    }
    Ok(())
}

/// The lines of some files.
pub(super) struct Lines<'a> {
    format: &'a Format,
    hashing: &'a HashParams,
    tag: String,
    results: SumResults,
}

impl<'a> Lines<'a> {
    pub(super) fn new(format: &'a Format, hashing: &'a HashParams) -> Self {
        let tag = if format.style == LineStyle::Tagged { hashing.tag() } else { String::new() };
        Self { format, hashing, tag, results: SumResults::default() }
    }

    pub(super) fn finish(self) -> SumResults {
        self.results
    }

    /// Adds the result of a file, whose path is `prefix` and `name`.
    pub(super) fn push(&mut self, prefix: &[u8], name: &[u8], result: Result<HashedFile, ReadError>) {
        match result {
            Ok(hashed) => {
                self.results.files += 1;
                self.line(prefix, name, hashed.output);
            }
            Err(error) => {
                self.results.has_failed = true;
                let path = path_from(&[prefix, name].concat());
                let error = Error::from(error).about(escape_path(&path));
                if self.format.style == LineStyle::Json {
                    let line = JsonLine { error: Some(JsonError::from(&error)), ..self.json(&path) };
                    self.results.json(&line);
                }
                self.results.errors.push(error);
            }
        }
    }

    fn line(&mut self, prefix: &[u8], name: &[u8], output: Output) {
        match self.format.style {
            LineStyle::Json => {
                let mut hex = Vec::new();
                self.digits(&mut hex, &output);
                let path = path_from(&[prefix, name].concat());
                let digest = Some(String::from_utf8(hex).expect("digits are text"));
                let line = JsonLine { digest, ..self.json(&path) };
                self.results.json(&line);
            }
            LineStyle::Raw => match output {
                Output::Digest(digest) => self.results.text().extend_from_slice(digest.as_bytes()),
                Output::Stream(reader) => self.long(reader),
            },
            LineStyle::Bare => {
                self.output(output);
                self.end();
            }
            LineStyle::Plain | LineStyle::Tagged => self.named(prefix, name, output),
        }
    }

    /// A line with a name.
    fn named(&mut self, prefix: &[u8], name: &[u8], output: Output) {
        let is_tagged = self.format.style == LineStyle::Tagged;
        let algorithm = self.hashing.algorithm();
        let plain = |part: &[u8]| part.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b'\\');
        let escaped;
        let (prefix, name) = if self.format.ending == LineEnding::Zero || (plain(prefix) && plain(name)) {
            (prefix, name)
        } else {
            let whole = EscapedName::new(&[prefix, name].concat(), algorithm);
            if whole.escaped {
                self.results.text().push(b'\\');
            }
            escaped = self.format.display.of(&whole.text).into_owned();
            (&[][..], &escaped[..])
        };
        if is_tagged {
            let tag = std::mem::take(&mut self.tag);
            let text = self.results.text();
            [tag.as_bytes(), b" (", prefix, name, b") = "]
                .into_iter()
                .for_each(|part| text.extend_from_slice(part));
            self.tag = tag;
        }
        self.output(output);
        if !is_tagged {
            let text = self.results.text();
            [b"  ", prefix, name].into_iter().for_each(|part| text.extend_from_slice(part));
        }
        self.end();
    }

    fn end(&mut self) {
        let ending = self.format.ending.byte();
        self.results.text().push(ending);
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Digest(digest) => {
                self.results.text().extend_from_slice(hex::encode(digest.as_bytes()).as_bytes())
            }
            Output::Stream(reader) if self.hashing.length() > MAX_HELD_OUTPUT_LEN => self.long(reader),
            output => {
                let mut hex = Vec::new();
                self.digits(&mut hex, &output);
                self.results.text().extend_from_slice(&hex);
            }
        }
    }

    fn long(&mut self, reader: Box<OutputReader>) {
        self.results.pieces.push(Piece::Long(reader, self.hashing.length(), self.format.style));
    }

    /// Adds the digits of all output.
    fn digits(&self, text: &mut Vec<u8>, output: &Output) {
        match output {
            Output::Digest(digest) => text.extend_from_slice(hex::encode(digest.as_bytes()).as_bytes()),
            Output::Stream(reader) => {
                let mut reader = reader.clone();
                let mut left = self.hashing.length();
                let mut buffer = [0; 4096];
                while left > 0 {
                    let piece = &mut buffer[..left.min(4096) as usize];
                    reader.fill(piece);
                    text.extend_from_slice(hex::encode(&*piece).as_bytes());
                    left -= piece.len() as u64;
                }
            }
        }
    }

    fn json(&self, path: &Path) -> JsonLine {
        let algorithm = self.hashing.algorithm();
        let algorithm = (algorithm != Algorithm::Blake3).then(|| algorithm.name());
        JsonLine { path: path.into(), algorithm, digest: None, error: None }
    }
}

/// The output of `--json` for a file.
#[derive(Serialize)]
struct JsonLine {
    #[serde(flatten)]
    path: JsonPath,
    /// The hash function, unless it is BLAKE3.
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}
