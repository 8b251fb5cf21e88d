//! `bulla token`: capability tokens.

use crate::args::{TokenAttenuateArgs, TokenCommand, TokenInspectArgs, TokenNewArgs};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::name::shown;
use crate::files::{atomic, secret};
use crate::output::Out;
use crate::store::{self, Access, Named};
use bulla_kms::Timestamp;
use bulla_kms::token::{Grant, Keys, Limits, MAX_TOKEN, ROOT, Token};
use std::path::Path;
use std::time::Duration;

pub(crate) fn run(command: &TokenCommand) -> Result<Exit> {
    match command {
        TokenCommand::New(args) => new(args),
        TokenCommand::Attenuate(args) => attenuate(args),
        TokenCommand::Inspect(args) => inspect(args),
    }?;
    Ok(Exit::Ok)
}

fn new(args: &TokenNewArgs) -> Result<()> {
    let keystore = Access::existing(&args.keystore)?.open()?;
    let tenant = store::tenant()?;
    let mut families = Vec::new();
    for key in &args.keys {
        families.push(Named::find(&keystore, key)?.family().clone());
    }
    if keystore.find(&tenant, &store::parse_name(ROOT)?)?.is_none() {
        keystore.create_token_root(&tenant)?;
        note_line(&format!(
            "created the key `{ROOT}`, which signs tokens; to stop all tokens, disable this key"
        ));
    }
    let token = keystore.mint_token(&Grant {
        tenant,
        keys: if families.is_empty() { Keys::All } else { Keys::These(families) },
        operations: args.operations.clone(),
        expires: from_now(args.expires_in)?,
    })?;
    write(&token, args.output.as_deref())
}

fn attenuate(args: &TokenAttenuateArgs) -> Result<()> {
    let token = read(&args.token)?;
    let some = |empty: bool| (!empty).then_some(());
    let weaker = token.attenuate(&Limits {
        keys: some(args.keys.is_empty()).map(|()| args.keys.clone()),
        operations: some(args.operations.is_empty()).map(|()| args.operations.clone()),
        expires: args.expires_in.map(from_now).transpose()?,
    })?;
    write(&weaker, args.output.as_deref())
}

fn inspect(args: &TokenInspectArgs) -> Result<()> {
    let inspection = read(&args.token)?.inspect()?;
    let mut out = Out::new();
    if args.json {
        out.json(&inspection)?;
        return out.flush();
    }
    let version = inspection
        .root_version
        .map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
    out.line(format_args!("signed by   {version} of a key `{ROOT}`, as the token claims"))?;
    for (number, block) in inspection.blocks.iter().enumerate() {
        let what = if number == 0 { "grant" } else { "restriction" };
        out.line(format_args!("\nblock {number}     {what}"))?;
        out.line(format_args!("revoked by  {}", block.revocation_id))?;
        for line in block.source.lines() {
            // A token's holder can put any text into a block.
            out.line(format_args!("  {}", shown(Path::new(line))))?;
        }
    }
    out.flush()
}

/// Reads a token: the file, without the line feed at its end.
pub(crate) fn read(path: &Path) -> Result<Token> {
    let bytes = secret::read(path, "the token", MAX_TOKEN + 1, secret::Content::Secret)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    text.trim_end().parse().map_err(|error: bulla_kms::KmsError| Error::from(error).about(shown(path)))
}

fn write(token: &Token, output: Option<&Path>) -> Result<()> {
    let write = |file: &mut dyn std::io::Write| {
        file.write_all(token.expose().as_bytes())?;
        file.write_all(b"\n")
    };
    match output {
        Some(path) => atomic::write_private(path, write),
        None => {
            let mut out = Out::new();
            let mut line = zeroize::Zeroizing::new(Vec::with_capacity(token.expose().len() + 1));
            write(&mut *line).map_err(|error| Error::io("cannot write", &error))?;
            out.bytes(&line)?;
            out.flush()
        }
    }
}

/// The time that long from now.
pub(crate) fn from_now(duration: Duration) -> Result<Timestamp> {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Ok(Timestamp::from_unix_millis(Timestamp::now()?.unix_millis().saturating_add(millis))?)
}
