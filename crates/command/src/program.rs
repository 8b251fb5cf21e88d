//! The first and the last step of each program's `main`.

use crate::error::Result;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Out;
use crate::tree::{CommandTree, DESCRIBE};
use clap::Parser;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

/// The arguments of this process; or its end, for a wrong command line, and for one that asks for
/// help, for the version, or for the [description](crate::tree) of the command line.
///
/// # Errors
/// The exit status, when everything was printed.
pub fn parse<Arguments: Parser>() -> Result<Arguments, ExitCode> {
    parse_from(std::env::args_os().collect())
}

/// The arguments of another command line, as [`parse`] returns those of this process.
///
/// # Errors
/// The exit status, when everything was printed.
pub fn parse_from<Arguments: Parser>(words: Vec<OsString>) -> Result<Arguments, ExitCode> {
    if words.get(1).is_some_and(|word| word == DESCRIBE) {
        let mut out = Out::stdout();
        let tree = CommandTree::of(&Arguments::command());
        return Err(exit_code(out.json(&tree).and_then(|()| out.flush()).map(|()| Exit::Ok)));
    }
    accept(Arguments::try_parse_from(words))
}

/// The arguments that a parser found, as [`parse`] returns them.
///
/// # Errors
/// The exit status, when everything was printed.
pub fn accept<Arguments>(parsed: Result<Arguments, clap::Error>) -> Result<Arguments, ExitCode> {
    let asked = match parsed {
        Ok(arguments) => return Ok(arguments),
        Err(wrong) if wrong.use_stderr() => {
            print_usage_error(&wrong);
            return Err(Exit::Error.into());
        }
        Err(asked) => asked,
    };
    // The parser itself would ignore that it cannot print.
    let mut out = Out::stdout();
    Err(exit_code(out.styled(&asked.render()).and_then(|()| out.flush()).map(|()| Exit::Ok)))
}

/// Prints what is wrong with a command line, in the style of all other errors.
fn print_usage_error(wrong: &clap::Error) {
    let text = wrong.render().ansi().to_string();
    let text = text.replacen("error:", "bulla:", 1).replacen("tip:", "hint:", 1);
    let _ = write!(anstream::stderr(), "{text}");
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
