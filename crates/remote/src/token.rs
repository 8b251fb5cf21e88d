//! `bulla token`: capability tokens.

use crate::args::{TokenAttenuateArgs, TokenCommand, TokenInspectArgs, TokenLoginArgs, TokenNewArgs};
use crate::connection::{ServiceConnection, given_token, unexpected};
use bulla_cli::file::{atomic, secret};
use bulla_cli::keystore::{LocalKeystore, ServerArgs, service_address};
use bulla_cli::remote::{Deadline, parse_name};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::Out;
use bulla_files::escape_path;
use bulla_keystore::{find_key, tenant};
use bulla_kms::token::{Grant, GrantedKeys, MAX_TOKEN_LEN, TOKEN_ROOT_PURPOSE, Token, TokenLimits};
use bulla_kms::{Keystore, KmsError, Timestamp};
use std::path::Path;
use std::time::UNIX_EPOCH;
use zeroize::Zeroizing;

pub(crate) fn run(command: &TokenCommand) -> Result<Exit> {
    match command {
        TokenCommand::New(args) => new(args),
        TokenCommand::Login(args) => log_in(args),
        TokenCommand::Attenuate(args) => attenuate(args),
        TokenCommand::Inspect(args) => inspect(args),
    }?;
    Ok(Exit::Ok)
}

fn new(args: &TokenNewArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let token = match service_address(&args.keystore)? {
        Some(address) => mint_by_service(&ServiceConnection::new(address, &args.keystore.server)?, args)?,
        None => mint(&LocalKeystore::existing(&args.keystore)?.open()?, args)?,
    };
    write(&token, args.output.as_deref())
}

/// Mints a token of a keystore on this machine.
fn mint(keystore: &Keystore, args: &TokenNewArgs) -> Result<Token> {
    let tenant = tenant();
    let mut key_ids = Vec::new();
    for key in &args.keys {
        key_ids.push(find_key(keystore, key)?.key_id().clone());
    }
    if keystore.find(&tenant, &parse_name(TOKEN_ROOT_PURPOSE)?)?.is_none() {
        keystore.create_token_root(&tenant)?;
        note_line(&format!(
            "created the key `{TOKEN_ROOT_PURPOSE}`, which signs tokens; to stop all tokens, disable this key"
        ));
    }
    let keys = if key_ids.is_empty() { GrantedKeys::All } else { GrantedKeys::These(key_ids) };
    let mut grant = Grant::new(tenant, keys, args.operations.clone(), args.expires.time()?);
    grant.holder = args.holder.clone();
    Ok(keystore.mint_token(&grant)?)
}

/// Has a service mint a token.
fn mint_by_service(service: &ServiceConnection, args: &TokenNewArgs) -> Result<Token> {
    let grant = bulla_client::Grant {
        operations: args.operations.iter().map(ToString::to_string).collect(),
        keys: (!args.keys.is_empty()).then(|| args.keys.clone()),
        lifetime: args.expires.remaining()?,
        holder: args.holder.as_ref().map(ToString::to_string),
    };
    let minted = service.ask(|client| client.mint_token(&grant))?;
    // The error does not quote it.
    minted.token.parse().map_err(|_| unexpected("it has no token"))
}

/// The most bytes of a JWT. Platforms make them short enough for a header of HTTP.
const MAX_JWT_LEN: usize = 16 << 10;

/// Exchanges a JWT for a token.
fn log_in(args: &TokenLoginArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let address = args.server.server.as_deref().ok_or_else(|| {
        Error::new("usage", "only a service can be logged in at")
            .hint("name one with --server URL or in the variable BULLA_ADDR")
    })?;
    let service = ServiceConnection::without_token(address, &args.server)?;
    service.check_encrypted("the JWT", "use https, or a Unix socket")?;
    // Platforms write such files for whole machines or pods, and they end soon.
    let jwt = secret::read(&args.jwt, "the JWT", MAX_JWT_LEN, secret::Secrecy::NotSecret)?;
    let jwt = str::from_utf8(&jwt)
        .map_err(|_| Error::new("malformed", "is not a JWT").about(escape_path(&args.jwt)))?;
    let login = service.ask(|client| client.log_in(&args.role, jwt))?;
    // The error does not quote it.
    let token = login.token.parse().map_err(|_| unexpected("it has no token"))?;
    let end = login.expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let end = Timestamp::from_unix_millis(u64::try_from(end).unwrap_or(u64::MAX))?;
    let holder = escape_path(Path::new(&login.holder));
    note_line(&format!("logged in as {holder}; the token is valid until {end}"));
    write(&token, args.output.as_deref())
}

fn attenuate(args: &TokenAttenuateArgs) -> Result<()> {
    check_output(args.output.as_deref())?;
    let token = read(&args.token)?;
    let some = |empty: bool| (!empty).then_some(());
    let weaker = token.attenuate(
        &TokenLimits::default()
            .keys(some(args.keys.is_empty()).map(|()| args.keys.clone()))
            .operations(some(args.operations.is_empty()).map(|()| args.operations.clone()))
            .expires(args.expires.map(Deadline::time).transpose()?),
    )?;
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
fn read(path: &Path) -> Result<Token> {
    let bytes = secret::read(path, "the token", MAX_TOKEN_LEN + 1, secret::Secrecy::Secret)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    text.trim_end().parse().map_err(|error: KmsError| Error::from(error).about(escape_path(path)))
}

/// The token of --token-file, or that of the variable BULLA_TOKEN.
pub(crate) fn given(args: &ServerArgs) -> Result<Token> {
    let (text, subject) = given_token(args)?.ok_or_else(|| {
        Error::new("usage", "an export needs a token that permits it")
            .hint("name its file with --token-file FILE: `bulla token new --operation export` mints a token")
    })?;
    text.trim_end().parse().map_err(|error: KmsError| Error::from(error).about(subject))
}

/// Refuses to replace anything but a token.
fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    atomic::check_replaceable(output, "a token", |content| {
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
            let mut line = Zeroizing::new(Vec::with_capacity(token.expose().len() + 1));
            write(&mut *line).map_err(|error| Error::io("cannot write", &error))?;
            out.bytes(&line)?;
            out.flush()
        }
    }
}
