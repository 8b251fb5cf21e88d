//! Printing results: text for people, JSON lines for programs.

use crate::error::{Error, Result};
use anstyle::Style;
use base64ct::{Base64, Encoding};
use bulla_files::{escape_path, escape_text, is_deceptive};
use clap::builder::StyledStr;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Standard output, or a file in its place, buffered.
pub struct Out {
    buffer: BufWriter<Sink>,
    /// Its name in errors.
    name: String,
    color: Color,
    flushed: Instant,
    /// The change that the command has already made: an error of printing must not read as if
    /// nothing had changed.
    done: Option<String>,
}

enum Sink {
    Stdout(Stdout),
    File(File),
}

/// Standard output as a file: unlike Rust's own, it fails if it is closed.
pub struct Stdout(io::Result<File>);

impl Stdout {
    /// Standard output of this process.
    #[must_use]
    pub fn open() -> Self {
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
        Self(handle.map(File::from))
    }

    /// The target of standard output, unless it is closed.
    #[must_use]
    pub fn file(&self) -> Option<&File> {
        self.0.as_ref().ok()
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Ok(file) => file.write(bytes),
            Err(error) => Err(error.kind().into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(_) => Ok(()),
        }
    }
}

/// Where names are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// To people, whom a name must not deceive.
    Terminal,
    /// To programs, which need its bytes.
    Program,
}

impl Display {
    /// For people if standard output is a terminal.
    #[must_use]
    pub fn of_stdout() -> Self {
        if io::stdout().is_terminal() { Self::Terminal } else { Self::Program }
    }

    /// A name of a list as it is shown.
    pub fn of(self, name: &[u8]) -> Cow<'_, [u8]> {
        match (self, std::str::from_utf8(name)) {
            (Self::Program, _) => name.into(),
            (Self::Terminal, Ok(text)) => match escape_text(text) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
            (Self::Terminal, Err(_)) => {
                escape_text(&String::from_utf8_lossy(name)).into_owned().into_bytes().into()
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Color {
    On,
    Off,
}

/// The longest time that a result waits for more results before it is printed.
const MAX_DELAY: Duration = Duration::from_millis(100);

impl Out {
    /// Standard output, with colors as the user and the terminal want them.
    #[must_use]
    pub fn stdout() -> Self {
        let color = match anstream::AutoStream::choice(&io::stdout()) {
            anstream::ColorChoice::Never => Color::Off,
            _ => Color::On,
        };
        Self::to(Sink::Stdout(Stdout::open()), "standard output".to_owned(), color)
    }

    /// Output to the end of a file.
    pub fn to_file(file: File, path: &Path) -> Self {
        Self::to(Sink::File(file), escape_path(path), Color::Off)
    }

    fn to(sink: Sink, name: String, color: Color) -> Self {
        let buffer = BufWriter::with_capacity(1 << 16, sink);
        Self { buffer, name, color, flushed: Instant::now(), done: None }
    }

    /// Output for a command that has changed something: `done` says what, as in `the key was
    /// rotated`. An error of printing then says it too, so that nobody runs the command again only
    /// for its output.
    pub fn after(done: impl Into<String>) -> Self {
        Self { done: Some(done.into()), ..Self::stdout() }
    }

    /// Notes a change as [`Out::after`] does, if it becomes known later.
    pub fn note_done(&mut self, done: impl Into<String>) {
        self.done = Some(done.into());
    }

    /// The style to use here: none if color is unwanted.
    ///
    /// Escapes are never stripped from the text afterwards: they might belong to a file's name.
    pub fn style(&self, style: Style) -> Style {
        if self.color == Color::On { style } else { Style::new() }
    }

    /// Prints one line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        writeln!(self.buffer, "{text}").map_err(|error| self.error(&error))
    }

    /// Prints text with styles.
    pub fn styled(&mut self, text: &StyledStr) -> Result<()> {
        let text = if self.color == Color::On { text.ansi().to_string() } else { text.to_string() };
        self.bytes(text.as_bytes())
    }

    /// Prints one JSON object on one line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        self.bytes(&json_line(value))
    }

    /// Writes raw bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.write_all(bytes).map_err(|error| self.error(&error))
    }

    /// Flushes the output if the last flush was some time ago.
    ///
    /// One write for each of many small files would cost more than hashing them.
    pub fn flush_sometimes(&mut self) -> Result<()> {
        if self.flushed.elapsed() < MAX_DELAY { Ok(()) } else { self.flush() }
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> Result<()> {
        self.flushed = Instant::now();
        self.buffer.flush().map_err(|error| self.error(&error))
    }

    /// Flushes the output, and waits until it is on the disk, if it goes to a file.
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        match self.buffer.get_ref() {
            Sink::Stdout(_) => Ok(()),
            Sink::File(file) => file.sync_all().map_err(|error| self.error(&error)),
        }
    }

    /// The error for a failed write.
    fn error(&self, error: &io::Error) -> Error {
        let cannot = Error::io("cannot write", error).about(self.name.clone());
        match &self.done {
            Some(done) => {
                cannot.hint(format!("{done}; only the report is lost: do not run the command again for it"))
            }
            None if error.kind() == io::ErrorKind::StorageFull => match self.buffer.get_ref() {
                Sink::Stdout(_) => cannot.hint("free some space where standard output goes"),
                Sink::File(_) => cannot.hint("free some space and run the same command again: it goes on"),
            },
            None => cannot,
        }
    }
}

/// One JSON object on one line.
pub fn json_line(value: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut line, Visible);
    value.serialize(&mut serializer).expect("plain structures serialize");
    line.push(b'\n');
    line
}

/// JSON without characters that could control a terminal or reorder other text: also those that
/// JSON itself does not escape.
struct Visible;

impl serde_json::ser::Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for part in fragment.split_inclusive(is_deceptive) {
            let last = part.chars().next_back().filter(|c| is_deceptive(*c));
            writer.write_all(&part.as_bytes()[..part.len() - last.map_or(0, char::len_utf8)])?;
            // All of them are in the basic plane.
            last.map_or(Ok(()), |c| write!(writer, "\\u{:04x}", u32::from(c)))?;
        }
        Ok(())
    }
}

/// A path in JSON: `path` as text and, only if the name is not UTF-8, its bytes as `path_base64`.
#[derive(Serialize)]
pub struct JsonPath {
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
pub struct JsonError {
    code: String,
    message: String,
}

impl From<&Error> for JsonError {
    fn from(error: &Error) -> Self {
        Self { code: error.code().to_owned(), message: error.message().to_owned() }
    }
}
