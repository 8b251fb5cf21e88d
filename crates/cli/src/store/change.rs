//! Changes a keystore's secret or guard, and restores a keystore from a backup.

use super::access::{Access, NewSeal};
use super::guard::{new_token_key, options, options_with, token};
use super::key_file_naming::{KEY_FILE, has_key_file, name_key_file, new_key_file};
use super::passphrase::{Asked, passphrase_of};
use super::place::{STORE_FILE, folder};
use crate::args::{GuardPlace, KeystoreArgs};
use crate::error::Result;
use crate::file_name::shown;
use crate::files::private::check_keystore;
use crate::interrupt;
use bulla_kms::{Backup, Keystore, Name, Unlock};
use std::path::Path;

impl Access {
    /// Replaces the secret that opens the keystore.
    pub(crate) fn reseal(&self, keystore: &Keystore, new: &Unlock) -> Result<()> {
        Ok(keystore.rekey(&self.unlock, new)?)
    }

    /// Replaces the secret with a key on the token. If the token has no key with that name, it is
    /// created.
    pub(crate) fn reseal_by_token_key(
        &self,
        args: &KeystoreArgs,
        keystore: &Keystore,
        name: &Name,
    ) -> Result<()> {
        self.reseal(keystore, &new_token_key(token(args).as_ref(), name)?)
    }

    /// Replaces the secret with a new key file. The file gets its name after the keystore opens
    /// with it. If a command is interrupted in between, the next one completes this: see
    /// [`super::key_file_naming`].
    pub(crate) fn reseal_by_key_file(&mut self, keystore: &Keystore) -> Result<()> {
        interrupt::watch_signals();
        let unlock = Unlock::KeyFile(new_key_file(&self.folder)?);
        self.reseal(keystore, &unlock)?;
        self.unlock = unlock;
        name_key_file(&self.folder, &mut self.unlock)
    }

    /// Gives the keystore another guard, or none.
    pub(crate) fn set_guard(&self, args: &KeystoreArgs, place: Option<&GuardPlace>) -> Result<()> {
        let keystore = self.open()?;
        let new = options_with(place, &self.folder, token(args).as_ref())?.guard;
        Ok(keystore.set_guard(&*new)?)
    }

    /// A new keystore from a backup.
    pub(crate) fn restore(
        args: &KeystoreArgs,
        seal: NewSeal,
        passphrase_file: Option<&Path>,
        backup: &Backup,
    ) -> Result<Self> {
        let folder = folder(args)?;
        check_keystore(&folder, &folder.join(STORE_FILE))?;
        interrupt::watch_signals();
        let what = format!("the keystore {}", shown(&folder));
        let unlock = if seal == NewSeal::Passphrase || passphrase_file.is_some() {
            Unlock::Passphrase(passphrase_of(&what, passphrase_file, Asked::Twice)?)
        } else if has_key_file(&folder) {
            // This is the lost keystore's key file; copies of that keystore still open with it.
            Unlock::KeyFile(folder.join(KEY_FILE))
        } else {
            Unlock::KeyFile(new_key_file(&folder)?)
        };
        let options = options(token(args).as_ref());
        let keystore = backup.restore(&folder.join(STORE_FILE), &unlock, &options)?;
        let mut access = Self { folder, unlock, options };
        name_key_file(&access.folder, &mut access.unlock)?;
        access.begin_log_after_restoring(keystore)?;
        Ok(access)
    }
}
