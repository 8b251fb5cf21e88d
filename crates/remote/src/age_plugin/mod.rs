//! `bulla age-plugin`, and the program `age-plugin-bulla`: age encrypts to keys of a keystore or a
//! service, which alone decrypt. `docs/age.md` is for its users, and decision 0328 has the reasons.

mod handler;
mod hybrid;

use crate::args::AgePluginCli;
use crate::connection::ServiceConnection;
use bulla_cli::keystore::{KeystoreArgs, LocalKeystore, service_address};
use bulla_cli::remote::Keys;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::Out;
use bulla_files::escape_path;
use bulla_kms::{Attestation, KeyState, KeyVersionId, VersionState};
use clap::Parser as _;
use handler::Handler;
use hybrid::{AgeRecipient, identity_text};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;

/// What age asks for, if it started the plugin: the name of a state machine.
pub(crate) fn machine(words: &[OsString]) -> Option<&str> {
    words.iter().find_map(|word| word.to_str()?.strip_prefix("--age-plugin="))
}

/// Answers age. It shows no standard error of a plugin: what is wrong with the variables is said
/// where they are needed.
pub(crate) fn converse(machine: &str, words: &[OsString]) -> Result<Exit> {
    let parsed = AgePluginCli::try_parse_from(words).map(|cli| cli.keystore).map_err(|error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Error::new("usage", line.trim_start_matches("error: ")).hint("check the variables BULLA_...")
    });
    age_plugin::run_state_machine(machine, Handler(&parsed))
        .map_err(|error| Error::io("the conversation with age failed", &error))?;
    Ok(Exit::Ok)
}

/// What the command prints as JSON.
#[derive(Serialize)]
struct Printed {
    key: String,
    recipient: String,
    native_recipient: String,
    identity: String,
}

/// Prints the recipient and the identity of a key.
pub(crate) fn print(cli: &AgePluginCli) -> Result<Exit> {
    let (version, recipient) = with_keys(&cli.keystore, |keys| latest_recipient(keys, cli.key()))?;
    let printed = Printed {
        key: version.to_string(),
        recipient: recipient.plugin_text(),
        native_recipient: recipient.native_text(),
        identity: identity_text(version.key_id()),
    };
    let mut out = Out::stdout();
    if cli.json {
        out.json(&printed)?;
        out.flush()?;
        return Ok(Exit::Ok);
    }
    out.line(format_args!("# key: {}", printed.key))?;
    out.line(format_args!("# recipient: {}", printed.recipient))?;
    out.line(format_args!("# recipient for age 1.3 and newer: {}", printed.native_recipient))?;
    out.line(printed.identity)?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// Does something with the keys of the service that the user names, or of the keystore.
fn with_keys<T>(args: &KeystoreArgs, act: impl FnOnce(&dyn Keys) -> Result<T>) -> Result<T> {
    match service_address(args)? {
        Some(address) => {
            let service = ServiceConnection::new(address, &args.server)?;
            service.check_encrypted("the key of the file", "use https or a Unix socket")?;
            act(&service)
        }
        None => act(&LocalKeystore::existing(args)?.open()?),
    }
}

/// The latest version of a key, as a recipient.
fn latest_recipient(keys: &dyn Keys, name: &str) -> Result<(KeyVersionId, AgeRecipient)> {
    let Attestation { key, state, latest_version, versions, .. } = keys.key(name)?;
    if state != KeyState::Enabled {
        let message = format!("the key {key} is disabled, destroyed, or waits for its destruction");
        return Err(Error::new("key_disabled", message).hint("`bulla keys show` says which"));
    }
    let latest = versions
        .into_iter()
        .find(|version| version.version == latest_version && version.state == VersionState::Usable);
    let Some(latest) = latest else {
        let message = format!("the latest version of {key} is revoked");
        return Err(Error::new("version_not_usable", message).hint("rotate the key with `bulla keys rotate`"));
    };
    let Some(public_key) = latest.public_key else {
        let message = format!("{key} is a symmetric key, and age encrypts to keys of x-wing");
        return Err(Error::new("key_usage_mismatch", message)
            .hint("create one with `bulla keys create NAME --algorithm x-wing`"));
    };
    Ok((latest.id, AgeRecipient::new(public_key)?))
}

/// As [`with_keys`], where age started this program: it does so in another folder, where relative
/// paths lead to something else or to nothing.
fn with_keys_for_age<T>(args: &Result<KeystoreArgs>, act: impl FnOnce(&dyn Keys) -> Result<T>) -> Result<T> {
    let args = args.as_ref().map_err(Error::clone)?;
    let server = &args.server;
    let socket = server.server.as_deref().and_then(|address| address.strip_prefix("unix:")).map(Path::new);
    let paths = [
        ("BULLA_ADDR", socket),
        ("BULLA_KEYSTORE", args.keystore.as_deref()),
        ("BULLA_PASSPHRASE_FILE", args.passphrase_file.as_deref()),
        ("BULLA_IDENTITY", args.identity.as_deref()),
        ("BULLA_CACERT", server.server_ca.as_deref()),
        ("BULLA_TOKEN_FILE", server.token_file.as_deref()),
        ("BULLA_CLIENT_CERTIFICATE", server.client_certificate.as_deref()),
        ("BULLA_CLIENT_KEY", server.client_key.as_deref()),
    ];
    for (variable, path) in paths {
        if let Some(path) = path.filter(|path| path.is_relative()) {
            let message = format!("{variable} has the relative path {}", escape_path(path));
            return Err(Error::new("usage", message)
                .hint("age starts plugins in another folder: set the variable to an absolute path"));
        }
    }
    with_keys(args, act)
}

/// An error in one line, as age shows it.
fn explain(error: &Error) -> String {
    match error.next_step() {
        Some(hint) => format!("{error}: {hint}"),
        None => error.to_string(),
    }
}
