//! Errors that end a command, or one of its items. They say what is wrong, and what to do next.

use crate::diagnostics::{error_line, hint_line};
use crate::exit::{BROKEN_PIPE, Exit};
use std::fmt;
use std::io;
use std::process::ExitCode;

/// An error as a person reads it, with a stable code for programs.
#[derive(Clone, Debug)]
pub struct Error {
    /// The subject, ready to print: most often a file name.
    subject: Option<String>,
    message: String,
    hint: Option<String>,
    code: String,
    broken_pipe: bool,
}

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this program. `code` is stable and in snake_case: it is what `--json` prints.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { subject: None, message: message.into(), hint: None, code: code.to_owned(), broken_pipe: false }
    }

    /// An error of the operating system while `doing`, such as `cannot read`.
    pub fn io(doing: &str, error: &io::Error) -> Self {
        let is_read_only = error.kind() == io::ErrorKind::ReadOnlyFilesystem;
        let hint = is_read_only.then_some("choose another place with --output");
        Self {
            subject: None,
            message: format!("{doing}: {error}"),
            hint: hint.map(str::to_owned),
            code: io_code(error).to_owned(),
            broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
        }
    }

    /// Sets the subject of the error, ready to print.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds a hint on what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The hint on what to do next.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The message without its subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints the error and its hint on standard error.
    pub fn print(&self) {
        error_line(&self.to_string());
        if let Some(hint) = &self.hint {
            hint_line(hint);
        }
    }

    /// Prints the error, and returns its exit status. A closed standard output is not reported.
    pub fn report(&self) -> ExitCode {
        if self.broken_pipe {
            return ExitCode::from(BROKEN_PIPE);
        }
        self.print();
        Exit::Error.into()
    }

    /// Whether the reader of standard output has closed it.
    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => write!(f, "{subject}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The stable code of an error of the operating system.
fn io_code(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "not_found",
        io::ErrorKind::PermissionDenied => "permission_denied",
        io::ErrorKind::IsADirectory => "is_a_folder",
        io::ErrorKind::NotADirectory => "not_a_folder",
        io::ErrorKind::StorageFull => "storage_full",
        io::ErrorKind::FileTooLarge => "file_too_large",
        io::ErrorKind::BrokenPipe => "broken_pipe",
        _ => "io",
    }
}
