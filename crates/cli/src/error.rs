//! Errors that end a command, or one of its items. They say what is wrong, and what to do next.

use crate::diagnostics::{error_line, hint_line};
use crate::exit::{BROKEN_PIPE, Exit};
use bulla_kms::{Code, KmsError};
use std::fmt;
use std::io;
use std::process::ExitCode;

/// An error as a person reads it, with a stable code for programs.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    /// The subject, ready to print: most often a file name.
    subject: Option<String>,
    message: String,
    hint: Option<String>,
    code: String,
    broken_pipe: bool,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this program. `code` is stable and in snake_case: it is what `--json` prints.
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { subject: None, message: message.into(), hint: None, code: code.to_owned(), broken_pipe: false }
    }

    /// An error of the operating system while `doing`, such as `cannot read`.
    pub(crate) fn io(doing: &str, error: &io::Error) -> Self {
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
    pub(crate) fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds a hint on what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The message without its subject.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the error and its hint on standard error.
    pub(crate) fn print(&self) {
        error_line(&self.to_string());
        if let Some(hint) = &self.hint {
            hint_line(hint);
        }
    }

    /// Prints the error, and returns its exit status. A closed standard output is not reported.
    pub(crate) fn report(&self) -> ExitCode {
        if self.broken_pipe {
            return ExitCode::from(BROKEN_PIPE);
        }
        self.print();
        Exit::Trouble.into()
    }

    /// Whether the reader of standard output has closed it.
    pub(crate) fn is_broken_pipe(&self) -> bool {
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

impl From<KmsError> for Error {
    fn from(error: KmsError) -> Self {
        let hint = match error.code {
            Code::Locked => {
                Some("another process is using the keystore; run the command again when it is done")
            }
            Code::KeystoreTooNew | Code::SignatureTooNew | Code::EncryptedFileTooNew => {
                Some("install a newer version of bulla; nothing was changed")
            }
            Code::KeystoreCorrupt => Some("restore the keystore's folder from a copy; nothing was changed"),
            Code::KeyNotFound | Code::UnknownVersion => Some("`bulla keys list` lists the keys"),
            Code::KeyDisabled => Some("enable it with `bulla keys enable`"),
            Code::KeyPendingDestruction => {
                Some("to keep it, run `bulla keys restore` and then `bulla keys enable`")
            }
            Code::WrongPassphrase => Some("check the passphrase; without it nobody can decrypt this data"),
            Code::AuditLogCorrupt => Some(
                "`bulla audit-log verify` lists the problems; keep the folder as it is, and start another log elsewhere",
            ),
            Code::UnsupportedAlgorithm => Some("if the key is on a token, name the token with --pkcs11 URI"),
            Code::RolledBack | Code::GuardMismatch => Some(
                "restore the newest keystore and its guard; to accept the present keystore, run `bulla keys guard` with a new guard",
            ),
            Code::OutcomeUnknown => Some("`bulla keys list` shows whether the change was made"),
            Code::StorageFull => Some("free some space and run the command again; this change was not made"),
            _ => None,
        };
        let converted = Error::new(error.code.as_str(), error.message);
        match hint {
            Some(hint) => converted.hint(hint),
            None => converted,
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
