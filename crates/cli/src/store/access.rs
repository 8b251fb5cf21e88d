//! A keystore and the secret that opens it.

use super::guard::{Guarding, new_token_key, options_of, options_with, token, token_key};
use super::key_file_naming::{KEY_FILE, has_key_file, lost, name_key_file, new_key_file, settled_key_file};
use super::keys::{ReadKeys as _, ensure_default};
use super::passphrase::{Asked, passphrase};
use super::place::{LOG_FOLDER, STORE_FILE, exists, folder, parse_name, tenant};
use super::recording::{self, LOG_LABEL};
use crate::args::{DEFAULT_LABEL, GuardPlace, KeystoreArgs};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::files::private::check_keystore;
use crate::interrupt;
use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
use bulla_kms::encryption::{Identity, KeyProvider as _};
use bulla_kms::pkcs11;
use bulla_kms::{
    Code, Keystore, KeystoreOptions, KmsError, Name, RotationPolicy, Snapshot, Unlock, UnlockMethod,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A keystore and the secret that opens it. The keystore itself is open, and locked for other
/// processes, only while it is used.
#[derive(Clone)]
pub(crate) struct Access {
    pub(super) folder: PathBuf,
    pub(super) unlock: Unlock,
    pub(super) options: KeystoreOptions,
}

/// The kind of secret for a new keystore.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum NewSeal {
    /// A passphrase, if a file with one is given; otherwise a key file.
    AsGiven,
    /// A passphrase. bulla asks for it if no file is given.
    Passphrase,
    /// The key with this name on the token; bulla creates it if the token has none.
    TokenKey(Name),
}

impl Access {
    /// The existing keystore.
    ///
    /// # Errors
    /// The keystore does not exist, or bulla cannot get the passphrase.
    pub(crate) fn existing(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, Guarding::Asked)
    }

    /// The existing keystore, without asking its guard whether it is an older copy.
    pub(crate) fn existing_unguarded(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, Guarding::Accepting)
    }

    fn find(args: &KeystoreArgs, guarding: Guarding) -> Result<Self> {
        let folder = folder(args)?;
        let store = folder.join(STORE_FILE);
        check_keystore(&folder, &store)?;
        let had_key_file = has_key_file(&folder);
        let method = match Keystore::unlock_method(&store) {
            Err(error) if error.code == Code::NotFound && had_key_file => return Err(lost(&folder)),
            Err(error) if error.code == Code::NotFound => {
                return Err(Error::new("not_found", format!("there is no keystore in {}", shown(&folder)))
                    .hint("create one with `bulla keys init`; to verify, give the signer's public key with --public-key FILE"));
            }
            method => method?,
        };
        let token = token(args);
        let options = options_of(&store, token.as_ref(), guarding)?;
        let unlock = match method {
            UnlockMethod::KeyFile => Unlock::KeyFile(settled_key_file(&folder, &options)),
            UnlockMethod::Passphrase => Unlock::Passphrase(passphrase(args, &folder, Asked::Once)?),
            UnlockMethod::Provider { method, key_name } => Self::provided(args, &method, &key_name)?,
        };
        Ok(Self { folder, unlock, options })
    }

    /// A key on a token, or an identity, which opens a keystore.
    pub(super) fn provided(args: &KeystoreArgs, method: &str, key_name: &str) -> Result<Unlock> {
        if method == pkcs11::NAME {
            return token_key(token(args).as_ref(), key_name);
        }
        if args.identity.is_some() {
            return identity(args, key_name);
        }
        let message = format!("an identity opens the keystore: {method}");
        Err(Error::new("wrong_unlock_method", message)
            .hint("name the file with that identity: --identity FILE"))
    }

    /// The existing keystore, which `unlock` opens.
    pub(super) fn with(args: &KeystoreArgs, unlock: Unlock) -> Result<Self> {
        let folder = folder(args)?;
        let store = folder.join(STORE_FILE);
        check_keystore(&folder, &store)?;
        let options = options_of(&store, token(args).as_ref(), Guarding::Asked)?;
        Ok(Self { folder, unlock, options })
    }

    /// The existing keystore, or a new one with the key `default`. Only the keystore in the user's
    /// data folder is created this way. If the user names a keystore that does not exist, the name
    /// is probably a mistake.
    pub(crate) fn existing_or_new(args: &KeystoreArgs) -> Result<Self> {
        if args.keystore.is_some() || exists(args)? {
            return Self::existing(args);
        }
        match Self::create(args, NewSeal::AsGiven, None) {
            // Another process was first.
            Err(error) if error.code() == Code::AlreadyExists.as_str() && exists(args)? => {
                Self::existing(args)
            }
            made => made,
        }
    }

    /// A new keystore with the key `default`. A note on standard error says so.
    ///
    /// # Errors
    /// If there is a keystore already, or there was one.
    pub(crate) fn create(args: &KeystoreArgs, seal: NewSeal, guard: Option<&GuardPlace>) -> Result<Self> {
        let folder = folder(args)?;
        check_keystore(&folder, &folder.join(STORE_FILE))?;
        interrupt::watch_signals();
        let had_key_file = has_key_file(&folder);
        if exists(args)? {
            return Err(Error::new(
                "already_exists",
                format!("a keystore exists already in {}", shown(&folder)),
            ));
        }
        if had_key_file {
            return Err(lost(&folder));
        }
        let token = token(args);
        let unlock = match seal {
            NewSeal::TokenKey(name) => new_token_key(token.as_ref(), &name)?,
            NewSeal::AsGiven if args.passphrase_file.is_none() => Unlock::KeyFile(new_key_file(&folder)?),
            NewSeal::AsGiven | NewSeal::Passphrase => {
                Unlock::Passphrase(passphrase(args, &folder, Asked::Twice)?)
            }
        };
        let options = options_with(guard, &folder, token.as_ref())?;
        let mut access = Self { folder, unlock, options };
        let store = access.folder.join(STORE_FILE);
        let keystore = match access.options.create(&store, &access.unlock) {
            Ok(keystore) => {
                name_key_file(&access.folder, &mut access.unlock)?;
                keystore
            }
            // Another process was first, and the folder's key file opens its keystore.
            Err(KmsError { code: Code::AlreadyExists | Code::NotFound, .. })
                if store.symlink_metadata().is_ok() =>
            {
                if let Unlock::KeyFile(path) = &mut access.unlock {
                    *path = settled_key_file(&access.folder, &access.options);
                }
                access.open()?
            }
            Err(error) => return Err(error.into()),
        };
        ensure_default(&keystore)?;
        let opened_by = match access.unlock {
            Unlock::KeyFile(_) => {
                format!(
                    "the key file {KEY_FILE} in that folder opens it: anyone with both files can sign as you"
                )
            }
            Unlock::Passphrase(_) => "your passphrase opens it".to_owned(),
            Unlock::Provider(_) => "its key on the token opens it".to_owned(),
        };
        note_line(&format!(
            "created the keystore {} with the key `{DEFAULT_LABEL}`; {opened_by}",
            shown(&access.folder)
        ));
        Ok(access)
    }

    /// Opens the keystore. Drop it soon: other processes wait meanwhile.
    pub(crate) fn open(&self) -> Result<Keystore> {
        // The keystore is locked first, so that a process that waits for it need not wait for the
        // log.
        self.recorded(self.open_unrecorded()?)
    }

    /// The keystore, with its audit log if there is one.
    fn recorded(&self, keystore: Keystore) -> Result<Keystore> {
        Ok(match self.log(&keystore)? {
            Some(log) => keystore.audited(log),
            None => keystore,
        })
    }

    /// Opens the keystore to sign with the key that the user names. If a signature changes nothing
    /// in the keystore, it is not locked and may be on a read-only disk.
    pub(crate) fn open_to_sign(&self, name: &str) -> Result<Keystore> {
        interrupt::watch_signals();
        let (tenant, log_label) = (tenant()?, parse_name(LOG_LABEL)?);
        let writes = |keys: &Snapshot| {
            let is_recorded = keys.find(&tenant, &log_label).is_some();
            is_recorded
                || match keys.key(name) {
                    Ok(key) => key.rotation != RotationPolicy::default(),
                    // It may be made first.
                    Err(_) => name == DEFAULT_LABEL,
                }
        };
        let store = self.folder.join(STORE_FILE);
        self.recorded(self.options.open_as_needed(&store, &self.unlock, writes)?)
    }

    /// The current keys, for reading only. Nothing is written, and nothing stays locked.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        interrupt::watch_signals();
        Ok(self.options.snapshot(&self.folder.join(STORE_FILE), &self.unlock)?)
    }

    pub(super) fn open_unrecorded(&self) -> Result<Keystore> {
        interrupt::watch_signals();
        Ok(self.options.open(&self.folder.join(STORE_FILE), &self.unlock)?)
    }

    /// The audit log, if there is one.
    pub(super) fn log(&self, keystore: &Keystore) -> Result<Option<Arc<AuditLog>>> {
        self.log_with(keystore, recording::log_options()?)
    }

    /// The audit log, if there is one, written as `options` say.
    pub(super) fn log_with(
        &self,
        keystore: &Keystore,
        options: AuditLogOptions,
    ) -> Result<Option<Arc<AuditLog>>> {
        if keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)?.is_none() {
            return recording::refuse_without_key(&self.folder.join(LOG_FOLDER)).map(|()| None);
        }
        let folder = self.folder.join(LOG_FOLDER);
        let log = match AuditLog::open(&folder, options) {
            Ok(log) => log,
            Err(error) if error.code == Code::NotFound => {
                return Err(Error::new(
                    "audit_log_missing",
                    format!("the audit log {} is missing", shown(&folder)),
                )
                .hint("restore its folder from a copy, or start another log with `bulla audit-log init`"));
            }
            Err(error) => return Err(error.into()),
        };
        recording::note_recovered(&log);
        Ok(Some(Arc::new(log)))
    }

    /// The keystore's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kind of secret that opens it.
    pub(crate) fn method(&self) -> &'static str {
        match self.unlock {
            Unlock::KeyFile(_) => "key_file",
            Unlock::Passphrase(_) => "passphrase",
            Unlock::Provider(ref provider) if provider.method() == pkcs11::NAME => "token",
            Unlock::Provider(_) => "identity",
        }
    }
}

/// The identity that opens a keystore encrypted to a recipient, which `key_name` names. If the file
/// has several and none is that one, opening says so of the last.
fn identity(args: &KeystoreArgs, key_name: &str) -> Result<Unlock> {
    let path = args.identity.as_deref().unwrap_or(Path::new(""));
    let mut all = Identity::read_all(path)?;
    let place = all.iter().position(|one| one.key_name() == key_name).unwrap_or(all.len() - 1);
    Ok(Unlock::Provider(Arc::new(all.swap_remove(place))))
}
