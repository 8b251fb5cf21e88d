//! The path of the keystore, and the files in its folder.

use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use bulla_kms::Name;
use etcetera::{BaseStrategy, base_strategy};
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

/// The keystore's folder: as given, or the platform's place for data.
pub(super) fn folder(args: &KeystoreArgs) -> Result<PathBuf> {
    if let Some(folder) = &args.keystore {
        return Ok(folder.clone());
    }
    match base_strategy::choose_native_strategy() {
        Ok(base) => Ok(base.data_dir().join("bulla")),
        Err(_) => Err(Error::new("no_home", "cannot find the keystore: you have no home folder")
            .hint("name the keystore's folder with --keystore DIR or BULLA_KEYSTORE")),
    }
}

/// The folder of the audit log.
pub(crate) fn log_folder(args: &KeystoreArgs) -> Result<PathBuf> {
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
