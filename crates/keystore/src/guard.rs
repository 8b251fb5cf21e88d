//! The rollback guard of a keystore, which detects an older copy of it.

use crate::device;
use crate::error::{Error, ErrorCode, Result};
use crate::secrets::Secrets;
use bulla_files::escape_path;
use bulla_kms::rollback::{FileGuard, NamedGuard, RollbackGuard, StoreGuard};
use bulla_kms::{Code, Keystore, KeystoreOptions, KmsError, Name};
use std::fmt;
use std::path::{Path, PathBuf, absolute};
use std::str::FromStr;
use std::sync::Arc;

/// The location of a rollback guard, as a user gives it and the keystore remembers it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardLocation {
    /// A file, by its absolute path: `file:PATH`.
    File(PathBuf),
    /// A counter on the device, by its name: `pkcs11:NAME`.
    Device(Name),
}

impl FromStr for GuardLocation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |message: String| Error::new(ErrorCode::InvalidGuardLocation, message);
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => {
                absolute(path).map(Self::File).map_err(|error| invalid(error.to_string()))
            }
            Some(("pkcs11", name)) => {
                name.parse().map(Self::Device).map_err(|error: KmsError| invalid(error.to_string()))
            }
            _ => Err(invalid(
                "a guard is file:PATH, or pkcs11:NAME for a guard on the PKCS #11 device".to_owned(),
            )),
        }
    }
}

impl fmt::Display for GuardLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Device(name) => write!(f, "pkcs11:{name}"),
        }
    }
}

impl GuardLocation {
    /// Creates the guard, for a keystore in `folder`. It must not be inside of that folder, where
    /// both could be replaced by older copies together.
    fn create(&self, folder: &Path, secrets: &Secrets) -> Result<Arc<dyn RollbackGuard>> {
        match self {
            Self::File(path) => {
                let invalid =
                    |message: &str| Error::new(ErrorCode::InvalidGuardLocation, message).about_path(path);
                if path.to_str().is_none() {
                    return Err(invalid("the path of a guard must be UTF-8"));
                }
                let cannot_find = |error| Error::io("cannot find the folder", error).about_path(folder);
                if path.starts_with(absolute(folder).map_err(cannot_find)?) {
                    return Err(invalid(
                        "an older copy of the keystore's folder would include an older copy of this guard",
                    )
                    .hint("name a file in another folder, best on another disk"));
                }
                let guard = FileGuard::create(path);
                Ok(Arc::new(guard.map_err(|error| creation_error(error, &escape_path(path)))?))
            }
            Self::Device(name) => {
                device::create_guard(secrets, name, |error| creation_error(error, name.as_str()))
            }
        }
    }

    /// Finds the existing guard.
    fn find(&self, secrets: &Secrets) -> Result<Arc<dyn RollbackGuard>> {
        match self {
            Self::File(path) => Ok(Arc::new(FileGuard::new(path))),
            Self::Device(name) => device::find_guard(secrets, name),
        }
    }
}

fn creation_error(error: KmsError, subject: &str) -> Error {
    let exists = error.code == Code::AlreadyExists;
    let error = Error::from(error).about(subject);
    if !exists {
        return error;
    }
    error
        .with_code(ErrorCode::GuardExists)
        .hint("if an interrupted command left it there, delete it; otherwise choose another guard")
}

/// Whether the guard that a keystore remembers is asked about an older copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardPolicy {
    Ask,
    /// The user accepts the keystore as it is.
    Ignore,
}

/// The options of an existing keystore, with the guard that it remembers.
pub(crate) fn options_of_existing(
    store: &Path,
    secrets: &Secrets,
    policy: GuardPolicy,
) -> Result<KeystoreOptions> {
    let options = secrets.keystore_options();
    let Some(name) = Keystore::guard_name(store)? else { return Ok(options) };
    let guard = match policy {
        GuardPolicy::Ignore => Arc::new(StoreGuard::default()),
        GuardPolicy::Ask => {
            let location: GuardLocation = name.parse().map_err(|_| {
                Error::new(
                    ErrorCode::UnknownGuard,
                    format!(
                        "the keystore's rollback guard is {}, a kind that this program does not know",
                        escape_path(Path::new(&name))
                    ),
                )
            })?;
            location.find(secrets)?
        }
    };
    Ok(options.guard(Arc::new(NamedGuard::new(&name, guard)?)))
}

/// The options of a new keystore, with a new guard if there is to be one.
pub(crate) fn options_of_new(
    guard: Option<&GuardLocation>,
    folder: &Path,
    secrets: &Secrets,
) -> Result<KeystoreOptions> {
    let options = secrets.keystore_options();
    let Some(location) = guard else { return Ok(options) };
    let guard = NamedGuard::new(&location.to_string(), location.create(folder, secrets)?)?;
    Ok(options.guard(Arc::new(guard)))
}
