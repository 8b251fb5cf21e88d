//! `bulla token`: capability tokens.

use crate::args::{Deadline, ServerArgs, TokenAttenuateArgs, TokenCommand, TokenInspectArgs, TokenNewArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic::check_replaceable;
use crate::files::{atomic, secret};
use crate::output::Out;
use crate::store::{KeySource, given_token};
use bulla_files::escape_path;
use bulla_kms::token::{MAX_TOKEN_LEN, TOKEN_ROOT_PURPOSE, Token, TokenLimits};
use std::path::Path;

pub(crate) fn run(command: &TokenCommand) -> Result<Exit> {
    match command {
        TokenCommand::New(args) => new(args),
        TokenCommand::Attenuate(args) => attenuate(args),
        TokenCommand::Inspect(args) => inspect(args),
    }?;
    Ok(Exit::Ok)
}

fn new(args: &TokenNewArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let source = KeySource::existing(&args.keystore)?;
    let token = source.open()?.mint(&args.keys, &args.operations, args.expires)?;
    write(&token, args.output.as_deref())
}

fn attenuate(args: &TokenAttenuateArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let token = read(&args.token)?;
    let some = |empty: bool| (!empty).then_some(());
    let weaker = token.attenuate(&TokenLimits {
        keys: some(args.keys.is_empty()).map(|()| args.keys.clone()),
        operations: some(args.operations.is_empty()).map(|()| args.operations.clone()),
        expires: args.expires.map(Deadline::time).transpose()?,
    })?;
    write(&weaker, args.output.as_deref())
}

fn inspect(args: &TokenInspectArgs) -> Result<()> {
    let inspection = read(&args.token)?.inspect()?;
    let mut out = Out::stdout();
    if args.json {
        out.json(&inspection)?;
        return out.flush();
    }
    let version = inspection
        .root_version
        .map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
    out.line(format_args!("signed by   {version} of a key `{TOKEN_ROOT_PURPOSE}`, as the token claims"))?;
    for (number, block) in inspection.blocks.iter().enumerate() {
        let what = if number == 0 { "grant" } else { "restriction" };
        out.line(format_args!("\nblock {number}     {what}"))?;
        out.line(format_args!("revoked by  {}", block.revocation_id))?;
        for line in block.source.lines() {
            // A token's source can put any text into a block.
            out.line(format_args!("  {}", escape_path(Path::new(line))))?;
        }
    }
    out.flush()
}

/// Reads a token: the file, without the line feed at its end.
pub(crate) fn read(path: &Path) -> Result<Token> {
    let bytes = secret::read(path, "the token", MAX_TOKEN_LEN + 1, secret::Secrecy::Secret)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    text.trim_end().parse().map_err(|error: bulla_kms::KmsError| Error::from(error).about(escape_path(path)))
}

/// The token of --token-file, or that of the variable BULLA_TOKEN.
pub(super) fn given(args: &ServerArgs) -> Result<Token> {
    let (text, subject) = given_token(args)?.ok_or_else(|| {
        Error::new("usage", "an export needs a token that permits it")
            .hint("name its file with --token-file FILE: `bulla token new --operation export` mints a token")
    })?;
    text.trim_end().parse().map_err(|error: bulla_kms::KmsError| Error::from(error).about(subject))
}

/// Refuses to replace anything but a token.
fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    check_replaceable(output, "a token", |content| {
        str::from_utf8(content).is_ok_and(|text| text.trim_end().parse::<Token>().is_ok())
    })
}

fn write(token: &Token, output: Option<&Path>) -> Result<()> {
    let write = |file: &mut dyn std::io::Write| {
        file.write_all(token.expose().as_bytes())?;
        file.write_all(b"\n")
    };
    match output {
        Some(path) => atomic::write_private(path, write),
        None => {
            let mut out = Out::stdout();
            let mut line = zeroize::Zeroizing::new(Vec::with_capacity(token.expose().len() + 1));
            write(&mut *line).map_err(|error| Error::io("cannot write", &error))?;
            out.bytes(&line)?;
            out.flush()
        }
    }
}
