//! Other things that opening a keystore may need: a guard that detects older copies of it, and a
//! token.

use super::place::{STORE_FILE, folder};
use crate::args::{GuardPlace, KeystoreArgs};
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::interrupt;
use bulla_kms::pkcs11::{DeviceConfig, DeviceGuard, DeviceKeyProvider, PinSource, Pkcs11};
use bulla_kms::rollback::{FileGuard, NamedGuard, RollbackGuard, StoreGuard};
use bulla_kms::{Code, Keystore, KeystoreOptions, Name, SecretString, Unlock};
use std::io::{self, IsTerminal};
use std::path::{Path, absolute};
use std::sync::Arc;

/// Makes the guard, for a keystore in `folder`.
///
/// # Errors
/// If there is one already, or it would be beside the keystore, where both could be put back
/// together.
fn make(place: &GuardPlace, folder: &Path, token: Option<&Pkcs11>) -> Result<Arc<dyn RollbackGuard>> {
    match place {
        GuardPlace::File(path) => {
            let cannot = |error| Error::io("cannot find the folder", &error).about(shown(folder));
            if path.to_str().is_none() {
                return Err(
                    Error::new("invalid_argument", "the path of a guard must be UTF-8").about(shown(path))
                );
            }
            if path.starts_with(absolute(folder).map_err(cannot)?) {
                let message =
                    "an older copy of the keystore's folder would include an older copy of this guard";
                return Err(Error::new("invalid_argument", message)
                    .about(shown(path))
                    .hint("name a file in another folder, best on another disk"));
            }
            Ok(Arc::new(FileGuard::create(path).map_err(|error| already_there(error, &shown(path)))?))
        }
        GuardPlace::Token(name) => {
            let guard = DeviceGuard::create(needed(token)?, name.clone());
            Ok(Arc::new(guard.map_err(|error| already_there(error, name.as_str()))?))
        }
    }
}

/// The existing guard.
fn find(place: &GuardPlace, token: Option<&Pkcs11>) -> Result<Arc<dyn RollbackGuard>> {
    Ok(match place {
        GuardPlace::File(path) => Arc::new(FileGuard::new(path)),
        GuardPlace::Token(name) => Arc::new(DeviceGuard::new(needed(token)?, name.clone())?),
    })
}

fn already_there(error: bulla_kms::KmsError, name: &str) -> Error {
    let there = error.code == Code::AlreadyExists;
    let error = Error::from(error).about(name);
    if there {
        error.hint("if an interrupted command left it there, delete it; otherwise choose another guard")
    } else {
        error
    }
}

/// The token of the command line, opened when it is needed.
pub(super) fn token(args: &KeystoreArgs) -> Option<Pkcs11> {
    let config = args.pkcs11.as_ref()?;
    let pin = config.pin.clone().unwrap_or(PinSource::Asked(ask_for_pin));
    Some(Pkcs11::when_needed(&DeviceConfig { pin: Some(pin), ..config.clone() }))
}

fn ask_for_pin() -> io::Result<SecretString> {
    if !io::stderr().is_terminal() {
        return Err(io::Error::other(
            "there is no terminal; name a file with the PIN: pin-source=file:PATH in the URI of --pkcs11",
        ));
    }
    interrupt::watch_signals();
    rpassword::prompt_password("PIN of the token: ").map(SecretString::from)
}

/// The token, or an error. The keystore does not remember its token's library: otherwise anyone who
/// can write to the keystore could choose the library that bulla loads.
fn needed(token: Option<&Pkcs11>) -> Result<&Pkcs11> {
    token.ok_or_else(|| {
        Error::new("wrong_unlock_method", "the keystore needs its token")
            .hint("name the token with --pkcs11 URI or BULLA_PKCS11")
    })
}

/// The secret of a keystore that opens with the key of this name on the token.
pub(super) fn token_key(token: Option<&Pkcs11>, name: &str) -> Result<Unlock> {
    Ok(Unlock::Provider(Arc::new(DeviceKeyProvider::new(needed(token)?, name.parse()?)?)))
}

/// The same, but creates the key if the token has none of that name.
pub(super) fn new_token_key(token: Option<&Pkcs11>, name: &Name) -> Result<Unlock> {
    let token = needed(token)?;
    let provider = match DeviceKeyProvider::new(token, name.clone()) {
        Err(error) if error.code == Code::KeyNotFound => DeviceKeyProvider::create(token, name.clone())?,
        found => found?,
    };
    Ok(Unlock::Provider(Arc::new(provider)))
}

/// A keystore's options: with the given token, and without a guard.
pub(super) fn options(token: Option<&Pkcs11>) -> KeystoreOptions {
    let mut options = KeystoreOptions::default();
    if let Some(token) = token {
        options.backends = options.backends.with(Arc::new(token.clone()));
    }
    options
}

/// The question to the guard that a keystore remembers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guarding {
    /// Whether the keystore may be used.
    Asked,
    /// No question: the user accepts the keystore as it is.
    Accepting,
}

/// An existing keystore's options, with the guard that it remembers.
pub(super) fn options_of(
    store: &Path,
    token: Option<&Pkcs11>,
    guarding: Guarding,
) -> Result<KeystoreOptions> {
    let options = options(token);
    let Some(name) = Keystore::guard_name(store)? else { return Ok(options) };
    if guarding == Guarding::Accepting {
        let guard = NamedGuard::new(&name, Arc::new(StoreGuard::default()))?;
        return Ok(KeystoreOptions { guard: Arc::new(guard), ..options });
    }
    let place: GuardPlace = name.parse().map_err(|_| {
        Error::new(
            "guard_mismatch",
            format!(
                "the keystore's rollback guard is {}, a kind that this program does not know",
                shown(Path::new(&name))
            ),
        )
    })?;
    Ok(KeystoreOptions { guard: Arc::new(NamedGuard::new(&name, find(&place, token)?)?), ..options })
}

/// A new keystore's options.
pub(super) fn options_with(
    guard: Option<&GuardPlace>,
    folder: &Path,
    token: Option<&Pkcs11>,
) -> Result<KeystoreOptions> {
    let options = options(token);
    let Some(place) = guard else { return Ok(options) };
    let guard = NamedGuard::new(&place.to_string(), make(place, folder, token)?)?;
    Ok(KeystoreOptions { guard: Arc::new(guard), ..options })
}

/// The guard that the keystore remembers, if any.
pub(crate) fn guard(args: &KeystoreArgs) -> Result<Option<String>> {
    Ok(Keystore::guard_name(&folder(args)?.join(STORE_FILE))?)
}

/// The options of a keystore in etcd, with the guard of this node. The store does not remember it:
/// each node has its own.
#[cfg(feature = "etcd")]
pub(super) fn options_of_etcd(args: &KeystoreArgs, guard: Option<&Path>) -> Result<KeystoreOptions> {
    let options = options(token(args).as_ref());
    Ok(match guard {
        Some(path) => KeystoreOptions { guard: Arc::new(FileGuard::new(path)), ..options },
        None => options,
    })
}
