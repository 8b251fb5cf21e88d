//! Who holds the keys: a keystore of this machine, or a service.

use super::access::Access;
use super::keys::{Keys, ReadKeys};
use super::log::no_log;
use super::logs::{Log, LogFolder};
use super::place::{log_folder, server};
use super::recording::LOG_LABEL;
use super::remote::Remote;
use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use bulla_kms::audit_log::{Checkpoint, WitnessReport, Witnesses};
use bulla_kms::{Attestation, Code};
use std::path::Path;

/// Who holds the keys.
pub(crate) enum Holder {
    /// A keystore of this machine.
    Here(Access),
    /// A service.
    There(Remote),
}

impl Holder {
    /// The service, or the existing keystore.
    ///
    /// # Errors
    /// The keystore does not exist, or bulla cannot get the passphrase or the token.
    pub(crate) fn existing(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, Access::existing)
    }

    /// The service, or the existing keystore, or a new one with the key `default` in the user's
    /// data folder.
    ///
    /// # Errors
    /// The user named a keystore that does not exist; the errors of [`Holder::existing`].
    pub(crate) fn existing_or_new(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, Access::existing_or_new)
    }

    fn find(args: &KeystoreArgs, here: impl FnOnce(&KeystoreArgs) -> Result<Access>) -> Result<Self> {
        match server(args)? {
            Some(address) => Remote::new(address, &args.server).map(Self::There),
            None => here(args).map(Self::Here),
        }
    }

    /// The keys, for use. Drop them soon: other processes wait meanwhile for a keystore of this
    /// machine.
    pub(crate) fn open(&self) -> Result<Box<dyn Keys + '_>> {
        match self {
            Self::Here(access) => Ok(Box::new(access.open()?)),
            Self::There(remote) => Ok(Box::new(remote.clone())),
        }
    }

    /// The keys, to sign with the one that the user names: as [`Holder::open`], but a keystore of
    /// this machine is locked only if the signature changes it.
    pub(crate) fn open_to_sign(&self, name: &str) -> Result<Box<dyn Keys + '_>> {
        match self {
            Self::Here(access) => Ok(Box::new(access.open_to_sign(name)?)),
            Self::There(remote) => Ok(Box::new(remote.clone())),
        }
    }

    /// The current keys, for reading only.
    pub(crate) fn read(&self) -> Result<Box<dyn ReadKeys + Send + Sync>> {
        match self {
            Self::Here(access) => Ok(Box::new(access.snapshot()?)),
            Self::There(remote) => Ok(Box::new(remote.clone())),
        }
    }

    /// The keystore's folder, if it is on this machine.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Here(access) => Some(access.folder()),
            Self::There(_) => None,
        }
    }

    /// Seals the audit log by a checkpoint.
    pub(crate) fn seal_log(&self) -> Result<Checkpoint> {
        match self {
            Self::Here(access) => access.seal_log(),
            Self::There(remote) => remote.make_checkpoint(),
        }
    }

    /// Has witnesses cosign the audit log.
    pub(crate) fn witness_log(&self, witnesses: &mut Witnesses) -> Result<WitnessReport> {
        match self {
            Self::Here(access) => access.witness_log(witnesses),
            Self::There(_) => {
                Err(Error::new("not_remote", "a service has witnesses cosign its log by itself")
                    .hint("name the witnesses in the settings of the service"))
            }
        }
    }

    /// The key that signs the audit log.
    pub(crate) fn log_key(&self) -> Result<Attestation> {
        match self {
            Self::Here(access) => access.log_key(),
            Self::There(remote) => match remote.key(LOG_LABEL) {
                Err(error) if error.code() == Code::KeyNotFound.as_str() => Err(no_log()),
                key => key,
            },
        }
    }
}

/// The audit log in a given folder, or that of the keystore or the service.
pub(crate) fn log(given: Option<&Path>, args: &KeystoreArgs) -> Result<Box<dyn Log>> {
    match (given, server(args)?) {
        (Some(folder), _) => Ok(Box::new(LogFolder(folder.to_owned()))),
        (None, Some(address)) => Ok(Box::new(Remote::new(address, &args.server)?)),
        (None, None) => Ok(Box::new(LogFolder(log_folder(args)?))),
    }
}
