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
    // Flags also take their values from our variables.
    let is_ours = |name: &OsString| name.as_encoded_bytes().starts_with(b"BULLA_");
    let values = std::env::vars_os().filter(|(name, _)| is_ours(name)).map(|(_, value)| value);
    let text = without_secrets(&text, std::env::args_os().skip(1).chain(values));
    let text = text.replacen("error:", "bulla:", 1).replacen("tip:", "hint:", 1);
    let _ = write!(anstream::stderr(), "{text}");
}

/// An argument of this many bytes may be a secret: a token, a private key.
const MIN_SECRET_LEN: usize = 32;

/// The lines of such an argument are looked for from this length on: shorter ones are in any text.
const MIN_LINE_LEN: usize = 8;

/// The text without the arguments that may be secrets. Whoever pastes a private key into the wrong
/// place must not find it in a log.
fn without_secrets(text: &str, arguments: impl Iterator<Item = OsString>) -> String {
    let mut text = text.to_owned();
    for argument in arguments {
        let argument = argument.to_string_lossy();
        // The URI of a device may have a PIN.
        let is_long = |part: &str| part.len() >= MIN_SECRET_LEN || part.contains("pin-value=");
        if !is_long(&argument) || is_flag(&argument) {
            continue;
        }
        let value = argument.split_once('=').map(|(_, value)| value);
        let value_of_short = argument.strip_prefix('-').and_then(|flag| flag.get(1..));
        let whole = [Some(argument.as_ref()), value, value_of_short].into_iter().flatten();
        let whole = whole.filter(|part| is_long(part));
        // An error may have written the line breaks in another way.
        let lines = argument.lines().filter(|line| line.len() >= MIN_LINE_LEN);
        for part in whole.chain(lines) {
            text = text.replace(part, "[argument not shown]");
        }
    }
    text
}

/// Whether an argument is the name of a flag, maybe a misspelled one, and nothing else.
fn is_flag(argument: &str) -> bool {
    let name = argument.strip_prefix("--");
    name.is_some_and(|name| name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed for the arguments, of which all are wrong.
    fn printed(arguments: &[&str]) -> String {
        let text = format!("unexpected argument '{}' found", arguments.join("' and '"));
        without_secrets(&text, arguments.iter().map(OsString::from))
    }

    #[test]
    fn an_error_repeats_what_is_short_and_names_of_flags() {
        for arguments in [
            &["--algoritm", "sha256"][..],
            &["--certificate-oidc-issuer-regexpression", "x"],
            &["report-2026-11-30.tar.gz"],
        ] {
            let text = printed(arguments);
            assert!(arguments.iter().all(|argument| text.contains(argument)), "{text}");
        }
    }

    #[test]
    fn an_error_repeats_no_part_of_what_may_be_a_secret() {
        let line = "MC4CAQAwBQYDK2VwBCIEIHcHbQpzGKV9PBbBclGyZkXf";
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{line}\nTC06x6sxkGal\n-----END PRIVATE KEY-----");
        for (argument, shown) in [
            (pem.clone(), pem.clone()),
            (pem.clone(), pem.replace('\n', "\\n")),
            (format!("--token={line}"), line.to_owned()),
            (format!("-k{line}"), line.to_owned()),
            ("--pkcs11=pkcs11:pin-value=1234".to_owned(), "pkcs11:pin-value=1234".to_owned()),
            (line.to_owned(), line.to_owned()),
        ] {
            let text = format!("invalid value '{shown}': use '-- {shown}'");
            let text = without_secrets(&text, [OsString::from(argument)].into_iter());
            let secrets = [line, "TC06x6sxkGal", "1234"];
            assert!(!secrets.iter().any(|secret| text.contains(secret)), "{text}");
            assert!(text.contains("[argument not shown]"), "{text}");
        }
    }
}
