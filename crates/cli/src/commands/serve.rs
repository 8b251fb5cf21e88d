//! `bulla serve`: the key management service.

use super::service_manager::{State, raise_file_limit, tell};
use crate::args::{Create, ServeArgs};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::file_name::shown;
use crate::interrupt;
use crate::output::Out;
use crate::service_log;
#[cfg(feature = "etcd")]
use crate::store::EtcdSource;
use crate::store::{FolderSource, MemorySource, print_variable};
use bulla_server::{Config, KeystoreSource, ListenConfig, Server, ServerHandle, StoreKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

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
    if args.print_config {
        let mut out = Out::new();
        out.bytes(config.to_toml()?.as_bytes())?;
        out.flush()?;
        return Ok(Exit::Ok);
    }
    if args.check_config {
        Server::check(&config)?;
        note_line("the settings are valid");
        return Ok(Exit::Ok);
    }
    if let Some(what) = args.create {
        return create(args, &config, what).map(|()| Exit::Ok);
    }
    let _observing = service_log::start(&config)?;
    raise_file_limit(config.limits.max_connections_per_listener.saturating_mul(config.listen.len()));
    let source: Box<dyn KeystoreSource> = if args.dev {
        tracing::warn!(
            "development: every caller may do everything, and all keys are lost when the service ends; never use it with keys that matter"
        );
        Box::new(MemorySource { tenant: config.service.operator_tenant.clone() })
    } else {
        source(args, &config)?
    };
    let server = Server::bind(config, source)?;
    let (stopped, reloaded, again) = (server.handle(), server.handle(), args.clone());
    interrupt::handle_signals_with(
        move || {
            tracing::info!("the service stops");
            tell(State::Stopping);
            stopped.shut_down();
        },
        move || reload(&again, &reloaded),
    );
    if let Some(address) = server.addresses().iter().find(|address| args.dev && address.starts_with("http")) {
        print_variable("VAULT_ADDR", address);
    }
    if server.auto_unseals() {
        server.unseal(None)?;
    } else {
        tracing::warn!("the keystore needs a passphrase: the service is sealed until an operator gives it");
    }
    for address in server.addresses() {
        tracing::info!("listening on {address}");
    }
    tell(State::Ready);
    server.run()?;
    tracing::info!("the service was shut down");
    Ok(Exit::Ok)
}

/// The keystore that the settings name.
fn source(args: &ServeArgs, config: &Config) -> Result<Box<dyn KeystoreSource>> {
    Ok(match config.keystore.store {
        StoreKind::File => Box::new(FolderSource::find(&args.keystore, config)?),
        #[cfg(feature = "etcd")]
        StoreKind::Etcd => Box::new(EtcdSource::find(&args.keystore, config)?),
        #[cfg(not(feature = "etcd"))]
        StoreKind::Etcd => return Err(without_etcd()),
    })
}

#[cfg(feature = "etcd")]
fn create(args: &ServeArgs, config: &Config, what: Create) -> Result<()> {
    match config.keystore.store {
        StoreKind::Etcd => EtcdSource::create(&args.keystore, config, what),
        StoreKind::File => {
            let message = "--create is for a keystore in etcd, and the settings name a file";
            Err(Error::new("invalid_argument", message)
                .hint("create a keystore in a file with `bulla keys init`"))
        }
    }
}

#[cfg(not(feature = "etcd"))]
fn create(_args: &ServeArgs, _config: &Config, _what: Create) -> Result<()> {
    Err(without_etcd())
}

#[cfg(not(feature = "etcd"))]
pub(super) fn without_etcd() -> Error {
    Error::new("invalid_argument", "this program was built without etcd (the feature `etcd`)")
}

/// Reads the settings again, as they were read first.
fn reload(args: &ServeArgs, service: &ServerHandle) {
    tell(State::Reloading);
    match settings(args) {
        // The log has the outcome.
        Ok(config) => drop(service.reload(config)),
        Err(error) => {
            tracing::error!(
                code = error.code(),
                "the new settings are refused, and the old ones stay: {error}"
            );
        }
    }
    tell(State::Ready);
}

/// The settings in a file, with the variables over them.
pub(super) fn load(path: Option<&Path>) -> Result<Config> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        // What is not text cannot be one of ours.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    });
    Ok(Config::load(path, variables)?)
}

/// The settings, with the flags over them.
fn settings(args: &ServeArgs) -> Result<Config> {
    let mut config = load(args.config.as_deref())?;
    let listen = |address: &SocketAddr| ListenConfig { address: Some(*address), ..ListenConfig::default() };
    config.listen.extend(args.listen.iter().map(listen));
    config.log.level = args.log_level.unwrap_or(config.log.level);
    let given = &args.keystore;
    if given.keystore.is_some() {
        config.keystore.folder.clone_from(&given.keystore);
    }
    if given.passphrase_file.is_some() {
        config.keystore.passphrase_file.clone_from(&given.passphrase_file);
        (config.keystore.passphrase_fd, config.keystore.credential) = (None, None);
    }
    if args.create.is_some() {
        return Ok(config);
    }
    if args.dev {
        in_development(&mut config, listen(&ADDRESS))?;
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

/// Only for this machine.
fn in_development(config: &mut Config, default: ListenConfig) -> Result<()> {
    if config.listen.is_empty() {
        config.listen.push(default);
    }
    let addresses = config.listen.iter().filter_map(|listen| listen.address);
    if let Some(open) = addresses.into_iter().find(|address| !address.ip().is_loopback()) {
        let message = format!(
            "{open} can be reached from other machines, and in development every caller may do everything"
        );
        return Err(Error::new("invalid_argument", message).hint("listen on 127.0.0.1, or leave --dev out"));
    }
    config.service.development = true;
    Ok(())
}
