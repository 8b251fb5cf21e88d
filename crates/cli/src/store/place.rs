//! The path of the keystore, and the files in its folder.

use crate::args::{KeystoreArgs, NamedServer};
use crate::error::{Error, Result};
use bulla_client::Address;
use bulla_kms::Name;
use etcetera::{BaseStrategy, base_strategy};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The name of the tenant of all keys that the command line creates.
pub(super) const TENANT: &str = "local";

/// The folder of the audit log, in the keystore's folder.
pub(super) const LOG_FOLDER: &str = "audit-log";
/// The store's file, in the keystore's folder.
pub(super) const STORE_FILE: &str = "keystore.redb";

/// The list of tokens that `bulla serve` refuses, in that folder.
pub(super) const REVOKED_FILE: &str = "revoked";

/// Whether there is a keystore.
pub(crate) fn exists(args: &KeystoreArgs) -> Result<bool> {
    Ok(folder(args)?.join(STORE_FILE).symlink_metadata().is_ok())
}

/// The service that has the keys, if the user names one. Of a flag and a variable, the flag counts.
///
/// # Errors
/// One flag names a keystore, and another a service.
pub(super) fn server(args: &KeystoreArgs) -> Result<Option<&Address>> {
    let Some(NamedServer { text, address: Some(address) }) = &args.server.server else { return Ok(None) };
    let Some(keystore) = &args.keystore else { return Ok(Some(address)) };
    let is_variable =
        |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|variable| variable == *value);
    let keystore_by_flag = !is_variable("BULLA_KEYSTORE", keystore.as_os_str());
    match (keystore_by_flag, is_variable("BULLA_ADDR", OsStr::new(text))) {
        (false, _) => Ok(Some(address)),
        (true, true) => Ok(None),
        (true, false) => Err(Error::new(
            "usage",
            "--keystore names a keystore and --server a service: give only one of them",
        )),
    }
}

/// The keystore's folder: as given, or the platform's place for data.
///
/// # Errors
/// The user names a service, and the command needs a keystore on this machine.
pub(super) fn folder(args: &KeystoreArgs) -> Result<PathBuf> {
    if let Some(address) = server(args)? {
        let message = format!(
            "this command needs a keystore on this machine, and the keys are those of the service {address}"
        );
        return Err(Error::new("not_remote", message).hint(
            "leave out --server and unset BULLA_ADDR; or run the command on the service's machine while the service is stopped",
        ));
    }
    if let Some(folder) = &args.keystore {
        return Ok(folder.clone());
    }
    let no_home = |why: &str| {
        Error::new("no_home", format!("cannot find the keystore: {why}"))
            .hint("name the keystore's folder with --keystore DIR or BULLA_KEYSTORE")
    };
    let base = base_strategy::choose_native_strategy().map_err(|_| no_home("you have no home folder"))?;
    // Otherwise each folder that a command runs in would get a keystore of its own.
    match base.data_dir() {
        data if data.is_absolute() => Ok(data.join("bulla")),
        _ => Err(no_home("the path of your home folder (the variable HOME) does not begin with /")),
    }
}

/// The folder of the audit log.
pub(super) fn log_folder(args: &KeystoreArgs) -> Result<PathBuf> {
    Ok(folder(args)?.join(LOG_FOLDER))
}

/// The tenant of all keys that the command line creates.
pub(crate) fn tenant() -> Result<Name> {
    parse_name(TENANT)
}

/// A label or a purpose from the command line.
pub(crate) fn parse_name(text: &str) -> Result<Name> {
    Ok(text.parse()?)
}
