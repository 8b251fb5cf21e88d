//! The program `bulla-serve`, which `bulla serve` starts: the key management service.
#![forbid(unsafe_code)]

mod args;
#[cfg(feature = "etcd")]
mod cluster_logs;
#[cfg(feature = "etcd")]
mod etcd;
mod policy;
mod service_log;
mod service_manager;
mod source;

use crate::args::{Cli, InitArgs, LogArgs, LogCommand, ServeArgs, ServeCommand};
#[cfg(feature = "etcd")]
use crate::etcd::EtcdSource;
use crate::policy::PolicyCli;
use crate::service_manager::{ServiceState, notify, raise_file_limit};
use crate::source::{FolderSource, MemorySource, print_variable};
use bulla_cli::audit_log::{LogVerifyArgs, WitnessPolicy};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::Out;
use bulla_command::{interrupt, program};
use bulla_files::escape_path;
use bulla_server::{Config, KeystoreSource, ListenConfig, Server, ServerHandle, StoreKind};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(words) = bulla_cli::remote::strip_command(&words, "policy") {
        return policy_main(words);
    }
    let cli: Cli = match program::parse() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    cli.color.apply();
    bulla_remote::register();
    program::exit_code(run(cli))
}

fn policy_main(words: Vec<OsString>) -> ExitCode {
    let cli: PolicyCli = match program::parse_from(words) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    cli.color.apply();
    program::exit_code(policy::run(cli))
}

fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        None => serve(&cli.serve)?,
        Some(ServeCommand::CheckConfig(args)) => {
            Server::check(&settings(&args)?)?;
            note_line("the settings are valid");
        }
        Some(ServeCommand::PrintConfig(args)) => print(&settings(&args)?.to_toml()?)?,
        Some(ServeCommand::PrintOpenapi) => print(&bulla_server::openapi())?,
        Some(ServeCommand::Init(args)) => init(&args)?,
        Some(ServeCommand::Log(args)) => return audit_log(args),
    }
    Ok(Exit::Ok)
}

fn print(text: &str) -> Result<()> {
    let mut out = Out::stdout();
    out.bytes(text.as_bytes())?;
    out.flush()
}

/// Where the service listens in development, and where clients of Vault look for it.
const DEVELOPMENT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8200);

fn serve(args: &ServeArgs) -> Result<()> {
    let config = settings(args)?;
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
            notify(ServiceState::Stopping);
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
    notify(ServiceState::Ready);
    server.run()?;
    tracing::info!("the service was shut down");
    Ok(())
}

/// The keystore that the settings name.
fn source(args: &ServeArgs, config: &Config) -> Result<Box<dyn KeystoreSource>> {
    Ok(match config.keystore.store {
        StoreKind::File => Box::new(FolderSource::find(&args.keystore.to_command(), config)?),
        #[cfg(feature = "etcd")]
        StoreKind::Etcd => {
            let group = config.group.as_ref().map(bulla_server::GroupNode::start).transpose()?;
            Box::new(EtcdSource::find(&args.keystore.to_command(), config)?.with_group(group))
        }
        #[cfg(not(feature = "etcd"))]
        StoreKind::Etcd => return Err(without_etcd()),
    })
}

#[cfg(feature = "etcd")]
fn init(args: &InitArgs) -> Result<()> {
    let config = load(args.config.as_deref())?;
    match config.keystore.store {
        StoreKind::Etcd => EtcdSource::create(&args.keystore.to_command(), &config, args.what),
        StoreKind::File => {
            let message = "`bulla serve init` is for a keystore in etcd, and the settings name a file";
            Err(Error::new("invalid_argument", message)
                .hint("create a keystore in a file with `bulla keystore init`"))
        }
    }
}

#[cfg(not(feature = "etcd"))]
fn init(args: &InitArgs) -> Result<()> {
    let InitArgs { what: _, config: _, keystore: _ } = args;
    Err(without_etcd())
}

#[cfg(not(feature = "etcd"))]
fn without_etcd() -> Error {
    Error::new("invalid_argument", "this program was built without etcd (the feature `etcd`)")
}

fn audit_log(args: LogArgs) -> Result<Exit> {
    match args.command {
        LogCommand::Verify(args) if args.cluster => verify_cluster(&args),
        LogCommand::Verify(args) => {
            let config = load(args.config.as_deref())?;
            bulla_cli::audit_log::verify(&args, &witness_policy(&config))
        }
        LogCommand::Witness(args) => {
            let none = || {
                Error::new("invalid_argument", "the settings name no witnesses")
                    .hint("add tables [[witness]]")
            };
            let config = load(args.config.as_deref())?;
            let witnesses = bulla_server::configured_witnesses(&config)?.ok_or_else(none)?;
            bulla_cli::audit_log::witness(&args, witnesses)
        }
    }
}

#[cfg(feature = "etcd")]
fn verify_cluster(args: &LogVerifyArgs) -> Result<Exit> {
    cluster_logs::verify(args, &load(args.config.as_deref())?)
}

#[cfg(not(feature = "etcd"))]
fn verify_cluster(args: &LogVerifyArgs) -> Result<Exit> {
    let error = without_etcd();
    Err(match &args.config {
        Some(config) => error.about(escape_path(config)),
        None => error,
    })
}

/// The witnesses that the settings name.
fn witness_policy(config: &Config) -> WitnessPolicy {
    let witnesses = config.witness.iter().map(|witness| witness.key.clone()).collect();
    WitnessPolicy { witnesses, quorum: config.cosignature_quorum() }
}

/// Reads the settings again, as they were read first.
fn reload(args: &ServeArgs, service: &ServerHandle) {
    notify(ServiceState::Reloading);
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
    notify(ServiceState::Ready);
}

/// The settings in a file, with the variables over them.
fn load(path: Option<&Path>) -> Result<Config> {
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
    if args.dev {
        in_development(&mut config, listen(&DEVELOPMENT_ADDRESS))?;
    }
    if config.listen.is_empty() {
        let hint = match &args.config {
            Some(path) => format!(
                "add `[[listen]]` with an `address` to {}, or use --listen 127.0.0.1:8200",
                escape_path(path)
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
