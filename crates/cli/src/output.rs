//! Printing results: text for people, JSON lines for programs.

use crate::error::{Error, Result};
use anstyle::Style;
use base64ct::{Base64, Encoding};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Standard output, buffered.
pub(crate) struct Out {
    buffer: BufWriter<io::Stdout>,
    colour: Colour,
    flushed: Instant,
    /// The change that the command has already made: an error of printing must not read as if nothing had changed.
    done: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Used,
    Left,
}

/// The longest time that a result waits for more results before it is printed.
const LATEST: Duration = Duration::from_millis(100);

impl Out {
    pub(crate) fn new() -> Self {
        let colour = match anstream::AutoStream::choice(&io::stdout()) {
            anstream::ColorChoice::Never => Colour::Left,
            _ => Colour::Used,
        };
        let buffer = BufWriter::with_capacity(1 << 16, io::stdout());
        Self { buffer, colour, flushed: Instant::now(), done: None }
    }

    /// Output for a command that has changed something: `done` says what, as in `the key was rotated`. An error of printing then
    /// says it too, so that nobody runs the command again only for its output.
    pub(crate) fn after(done: impl Into<String>) -> Self {
        Self { done: Some(done.into()), ..Self::new() }
    }

    /// Notes a change as [`Out::after`] does, if it becomes known later.
    pub(crate) fn note_done(&mut self, done: impl Into<String>) {
        self.done = Some(done.into());
    }

    /// The style to use here: none if colour is unwanted.
    ///
    /// Escapes are never stripped from the text afterwards: they might belong to a file's name.
    pub(crate) fn style(&self, style: Style) -> Style {
        if self.colour == Colour::Used { style } else { Style::new() }
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: impl Display) -> Result<()> {
        writeln!(self.buffer, "{text}").map_err(|error| self.error(&error))
    }

    /// Prints one JSON object on one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value).expect("plain structures serialise");
        line.push(b'\n');
        self.bytes(&line)
    }

    /// Writes raw bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.write_all(bytes).map_err(|error| self.error(&error))
    }

    /// Flushes the output if the last flush was some time ago.
    ///
    /// One write for each of many small files would cost more than hashing them.
    pub(crate) fn flush_sometimes(&mut self) -> Result<()> {
        if self.flushed.elapsed() < LATEST { Ok(()) } else { self.flush() }
    }

    /// Flushes the output.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.flushed = Instant::now();
        self.buffer.flush().map_err(|error| self.error(&error))
    }

    /// The error for a failed write to standard output.
    fn error(&self, error: &io::Error) -> Error {
        let cannot = Error::io("cannot write", error).about("standard output");
        match &self.done {
            Some(done) => {
                cannot.hint(format!("{done}; only the report is lost: do not run the command again for it"))
            }
            None if error.kind() == io::ErrorKind::StorageFull => {
                cannot.hint("free some space where standard output goes")
            }
            None => cannot,
        }
    }
}

/// A path in JSON: `path` as text and, only if the name is not UTF-8, its bytes as `path_base64`.
#[derive(Serialize)]
pub(crate) struct JsonPath {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
}

impl From<&Path> for JsonPath {
    fn from(path: &Path) -> Self {
        let path_base64 = match path.to_str() {
            Some(_) => None,
            None => Some(Base64::encode_string(path.as_os_str().as_encoded_bytes())),
        };
        Self { path: path.to_string_lossy().into_owned(), path_base64 }
    }
}

/// An error in JSON: `{"code": "...", "message": "..."}`.
#[derive(Serialize)]
pub(crate) struct JsonError {
    code: String,
    message: String,
}

impl From<&Error> for JsonError {
    fn from(error: &Error) -> Self {
        Self { code: error.code().to_owned(), message: error.message().to_owned() }
    }
}
