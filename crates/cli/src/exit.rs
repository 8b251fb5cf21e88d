//! The exit status of the process.

use std::process::ExitCode;

/// The exit status. Of two, the one that says more about the data wins: see [`Exit::and`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: everything was done, and everything is well.
    Ok,
    /// 1: something does not verify.
    Failed,
    /// 2: something could not be done or checked.
    Trouble,
}

impl Exit {
    /// The status of two pieces of work together: `Failed` wins over `Trouble`, and both over `Ok`.
    ///
    /// A proof that data changed must not hide behind another file that could not be read.
    #[must_use]
    pub(crate) fn and(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Failed, _) | (_, Exit::Failed) => Exit::Failed,
            (Exit::Trouble, _) | (_, Exit::Trouble) => Exit::Trouble,
            (Exit::Ok, Exit::Ok) => Exit::Ok,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Trouble => 2,
        })
    }
}

/// What a shell reports for a process that SIGPIPE ended; the Rust runtime turns that signal into
/// an error.
pub(crate) const BROKEN_PIPE: u8 = 141;

#[cfg(test)]
mod tests {
    use super::Exit::{self, Failed, Ok, Trouble};

    #[test]
    fn a_failure_wins_over_trouble_and_trouble_over_success() {
        let order: [(Exit, Exit, Exit); 4] =
            [(Ok, Ok, Ok), (Ok, Trouble, Trouble), (Trouble, Failed, Failed), (Ok, Failed, Failed)];
        for (a, b, both) in order {
            assert_eq!(a.and(b), both);
            assert_eq!(b.and(a), both);
        }
    }
}
