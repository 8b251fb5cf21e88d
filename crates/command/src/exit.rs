//! The exit status of the process.

use std::process::ExitCode;

/// The exit status. Of two, the one that says more about the data wins: see [`Exit::and`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: everything was done, and everything is well.
    Ok,
    /// 1: something does not verify.
    Mismatch,
    /// 2: something could not be done or checked.
    Error,
}

impl Exit {
    /// The status of two pieces of work together: `Mismatch` wins over `Error`, and both over `Ok`.
    ///
    /// A proof that data changed must not hide behind another file that could not be read.
    #[must_use]
    pub fn and(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Mismatch, _) | (_, Exit::Mismatch) => Exit::Mismatch,
            (Exit::Error, _) | (_, Exit::Error) => Exit::Error,
            (Exit::Ok, Exit::Ok) => Exit::Ok,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Mismatch => 1,
            Exit::Error => 2,
        })
    }
}

/// What a shell reports for a process that SIGPIPE ended; the Rust runtime turns that signal into
/// an error.
pub const BROKEN_PIPE: u8 = 141;

#[cfg(test)]
mod tests {
    use super::Exit::{self, Error, Mismatch, Ok};

    #[test]
    fn a_mismatch_wins_over_an_error_and_an_error_over_success() {
        let order: [(Exit, Exit, Exit); 4] =
            [(Ok, Ok, Ok), (Ok, Error, Error), (Error, Mismatch, Mismatch), (Ok, Mismatch, Mismatch)];
        for (a, b, both) in order {
            assert_eq!(a.and(b), both);
            assert_eq!(b.and(a), both);
        }
    }
}
