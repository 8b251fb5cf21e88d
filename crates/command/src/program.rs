//! The first and the last step of each program's `main`.

use crate::error::Result;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Out;
use std::process::ExitCode;

/// The arguments of a command line that was parsed; or the end of the process, for a wrong command
/// line, and for one that asks for help or the version.
///
/// # Errors
/// The exit status, when everything was printed.
pub fn accept<Arguments>(parsed: Result<Arguments, clap::Error>) -> Result<Arguments, ExitCode> {
    let asked = match parsed {
        Ok(arguments) => return Ok(arguments),
        Err(wrong) if wrong.use_stderr() => wrong.exit(),
        Err(asked) => asked,
    };
    // The parser itself would ignore that it cannot print.
    let mut out = Out::new();
    Err(exit_code(out.styled(&asked.render()).and_then(|()| out.flush()).map(|()| Exit::Ok)))
}

/// The exit status of a program. An error is printed.
#[must_use]
pub fn exit_code(done: Result<Exit>) -> ExitCode {
    match done {
        // What a shell reports for a process that a signal ended.
        Ok(_) if let Some(signal) = interrupt::stop_signal() => ExitCode::from(128 + signal as u8),
        Ok(exit) => exit.into(),
        Err(error) => error.report(),
    }
}
