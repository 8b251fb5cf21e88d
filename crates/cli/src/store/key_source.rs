//! Where the keys are: in a keystore on this machine, or in a service.

use super::audit_logs::{Log, LogFolder};
use super::keys::{Keys, ReadKeys};
use super::local::LocalKeystore;
use super::service::{Service, remote_functions};
use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use bulla_keystore::{AUDIT_LOG_LABEL, Error as KeystoreError, KeystoreFolder};
use bulla_kms::audit_log::{Actor, Checkpoint, WitnessReport, Witnesses};
use bulla_kms::{Attestation, Code};
use std::ffi::OsStr;
use std::path::Path;

/// Where the keys are.
pub enum KeySource {
    /// In a keystore on this machine.
    Local(LocalKeystore),
    /// In a service.
    Remote(Box<dyn Service>),
}

impl KeySource {
    /// The service, or the existing keystore.
    ///
    /// # Errors
    /// The keystore does not exist, or bulla cannot get the passphrase or the device.
    pub fn existing(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, LocalKeystore::existing)
    }

    /// The service, or the existing keystore, or a new one with the key `default` in the user's
    /// data folder.
    ///
    /// # Errors
    /// The user named a keystore that does not exist; the errors of [`KeySource::existing`].
    pub(crate) fn existing_or_new(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, LocalKeystore::existing_or_new)
    }

    fn find(args: &KeystoreArgs, local: impl FnOnce(&KeystoreArgs) -> Result<LocalKeystore>) -> Result<Self> {
        match service_address(args)? {
            Some(address) => remote_functions()?.service(address, &args.server).map(Self::Remote),
            None => local(args).map(Self::Local),
        }
    }

    /// The keys, for use. Drop them soon: other processes wait meanwhile for a keystore of this
    /// machine.
    pub(crate) fn open(&self) -> Result<Box<dyn Keys + '_>> {
        match self {
            Self::Local(keystore) => Ok(Box::new(keystore.open()?)),
            Self::Remote(service) => Ok(service.keys()),
        }
    }

    /// The keys, to sign with the one that the user names: a keystore on this machine is locked
    /// only if the signature changes it.
    pub fn open_to_sign(&self, name: &str) -> Result<Box<dyn Keys + '_>> {
        match self {
            Self::Local(keystore) => Ok(Box::new(keystore.open_to_sign(name)?)),
            Self::Remote(service) => Ok(service.keys()),
        }
    }

    /// The current keys, for reading only.
    pub fn read(&self) -> Result<Box<dyn ReadKeys + Send + Sync>> {
        match self {
            Self::Local(keystore) => Ok(Box::new(keystore.snapshot()?)),
            Self::Remote(service) => Ok(service.keys()),
        }
    }

    /// The keystore's folder, if it is on this machine.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Local(keystore) => Some(keystore.folder()),
            Self::Remote(_) => None,
        }
    }

    /// Makes a checkpoint of the audit log.
    pub(crate) fn make_checkpoint(&self) -> Result<Checkpoint> {
        match self {
            Self::Local(keystore) => keystore.make_checkpoint(),
            Self::Remote(service) => service.make_checkpoint(),
        }
    }

    /// Has witnesses cosign the audit log.
    pub(crate) fn witness_log(&self, witnesses: &mut Witnesses) -> Result<WitnessReport> {
        match self {
            Self::Local(keystore) => keystore.witness_log(witnesses),
            Self::Remote(_) => {
                Err(Error::new("not_remote", "a service has witnesses cosign its log by itself")
                    .hint("name the witnesses in the settings of the service"))
            }
        }
    }

    /// The key that signs the audit log.
    pub(crate) fn log_key(&self) -> Result<Attestation> {
        match self {
            Self::Local(keystore) => keystore.log_key(),
            Self::Remote(service) => match service.keys().key(AUDIT_LOG_LABEL) {
                Err(error) if error.code() == Code::KeyNotFound.as_str() => {
                    Err(KeystoreError::no_audit_log().into())
                }
                key => key,
            },
        }
    }
}

/// Starts `bulla-remote` if the keys are those of a service and this program cannot reach it.
///
/// # Errors
/// One flag names a keystore, and another a service; `bulla-remote` is missing.
pub(crate) fn ensure_reachable(args: &KeystoreArgs) -> Result<()> {
    match service_address(args)? {
        Some(_) => remote_functions().map(drop),
        None => Ok(()),
    }
}

/// Opens the audit log in a given folder, or that of the keystore or the service.
pub(crate) fn open_log(folder: Option<&Path>, args: &KeystoreArgs) -> Result<Box<dyn Log>> {
    match (folder, service_address(args)?) {
        (Some(folder), _) => Ok(Box::new(LogFolder(folder.to_owned()))),
        (None, Some(address)) => Ok(remote_functions()?.service(address, &args.server)?.log()),
        (None, None) => Ok(Box::new(LogFolder(keystore_folder(args)?.audit_log().path().to_owned()))),
    }
}

/// The service that has the keys, if the user names one. Of a flag and a variable, the flag counts.
///
/// # Errors
/// One flag names a keystore, and another a service.
pub fn service_address(args: &KeystoreArgs) -> Result<Option<&str>> {
    // An empty variable is as good as an unset one.
    let Some(address) = args.server.server.as_deref().filter(|address| !address.is_empty()) else {
        return Ok(None);
    };
    let Some(keystore) = &args.keystore else { return Ok(Some(address)) };
    let is_variable =
        |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|variable| variable == *value);
    let keystore_by_flag = !is_variable("BULLA_KEYSTORE", keystore.as_os_str());
    match (keystore_by_flag, is_variable("BULLA_ADDR", OsStr::new(address))) {
        (false, _) => Ok(Some(address)),
        (true, true) => Ok(None),
        (true, false) => Err(Error::new(
            "usage",
            "--keystore names a keystore and --server a service: give only one of them",
        )),
    }
}

/// The keystore's folder: as given, or the default one.
///
/// # Errors
/// The user names a service, and the command needs a keystore on this machine.
pub fn keystore_folder(args: &KeystoreArgs) -> Result<KeystoreFolder> {
    if let Some(address) = service_address(args)? {
        let message = format!(
            "this command needs a keystore on this machine, and the keys are those of the service {address}"
        );
        return Err(Error::new("not_remote", message).hint(
            "leave out --server and unset BULLA_ADDR; or run the command on the service's machine while the service is stopped",
        ));
    }
    let folder = match &args.keystore {
        Some(folder) => KeystoreFolder::at(folder),
        None => KeystoreFolder::of_user()?,
    };
    Ok(folder.on_behalf_of(actor()))
}

/// The actor on whose behalf the command runs: the user, by number.
fn actor() -> Option<Actor> {
    #[cfg(unix)]
    return format!("uid:{}", rustix::process::getuid().as_raw()).parse().ok();
    #[cfg(not(unix))]
    return None;
}
