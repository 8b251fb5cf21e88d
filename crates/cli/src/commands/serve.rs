//! `bulla serve`: the key management service.

use crate::args::ServeArgs;
use crate::diagnostics::{note_line, warning_line};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::name::shown;
use crate::interrupt;
use crate::output::Out;
use crate::store::{FolderSource, MemorySource};
use bulla_server::{Config, KeystoreSource, Listen, Server};
use std::net::{Ipv4Addr, SocketAddr};

/// Where the service listens in development, and where clients of Vault look for it.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8200);

pub(crate) fn run(args: &ServeArgs) -> Result<Exit> {
    if args.print_openapi {
        let mut out = Out::new();
        out.bytes(bulla_server::openapi().as_bytes())?;
        out.flush()?;
        return Ok(Exit::Ok);
    }
    let config = settings(args)?;
    if args.check_config {
        note_line("the settings are valid");
        return Ok(Exit::Ok);
    }
    let source: Box<dyn KeystoreSource> = if args.dev {
        warning_line(
            "development: every caller may do everything, and all keys are lost when the service ends; never use it with keys that matter",
        );
        Box::new(MemorySource)
    } else {
        Box::new(FolderSource::find(&args.keystore, &config)?)
    };
    let server = Server::bind(config, source)?;
    let handle = server.handle();
    interrupt::instead(move || handle.shut_down());
    if server.opens_by_itself() {
        server.unseal(None)?;
    } else {
        note_line("the keystore needs a passphrase: the service is sealed until an operator gives it");
    }
    for address in server.addresses() {
        note_line(&format!("listening on {address}"));
    }
    server.run()?;
    note_line("the service was shut down");
    Ok(Exit::Ok)
}

/// The settings, with the flags over them.
fn settings(args: &ServeArgs) -> Result<Config> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        // What is not text cannot be one of ours.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    });
    let mut config = Config::load(args.config.as_deref(), variables)?;
    let listen = |address: &SocketAddr| Listen { address: Some(*address), unix: None, tls: None };
    config.listen.extend(args.listen.iter().map(listen));
    if args.dev {
        if config.listen.is_empty() {
            config.listen.push(listen(&ADDRESS));
        }
        if let Some(open) = config
            .listen
            .iter()
            .filter_map(|listen| listen.address)
            .find(|address| !address.ip().is_loopback())
        {
            let message = format!(
                "{open} can be reached from other machines, and in development every caller may do everything"
            );
            return Err(
                Error::new("invalid_argument", message).hint("listen on 127.0.0.1, or leave --dev out")
            );
        }
        config.service.development = true;
    }
    if config.listen.is_empty() {
        let hint = match &args.config {
            Some(path) => format!(
                "add `[[listen]]` with an `address` to {}, or use --listen 127.0.0.1:8200",
                shown(path)
            ),
            None => "name one: --listen 127.0.0.1:8200".to_owned(),
        };
        return Err(Error::new("invalid_argument", "the service has no address to listen on").hint(hint));
    }
    Ok(config)
}
