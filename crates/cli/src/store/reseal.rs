//! Changing what opens a keystore, and making one of a backup.

use super::{
    Access, Asked, KEY_FILE, NewSeal, STORE_FILE, folder, key_file, new_token_key, options, passphrase_of,
    token,
};
use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use crate::files::name::shown;
use crate::files::private::check_keystore;
use crate::interrupt;
use bulla_kms::seal::Identity;
use bulla_kms::{Backup, KeyFile, Keystore, KeystoreOptions, Name, Unlock};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A key file that is to take the place of the one beside the keystore.
const NEXT_KEY_FILE: &str = "keystore.key.new";

impl Access {
    /// Puts another secret in the place of the one that opens the keystore.
    pub(crate) fn reseal(&self, keystore: &Keystore, new: &Unlock) -> Result<()> {
        Ok(keystore.reseal(&self.unlock, new)?)
    }

    /// Puts a new key file in its place. It gets its name after the keystore opens with it, and a command that is
    /// interrupted in between is completed by the next one: see [`settled_key_file`].
    pub(crate) fn reseal_by_key_file(&self, keystore: &Keystore) -> Result<()> {
        interrupt::guard();
        let next = self.folder.join(NEXT_KEY_FILE);
        // One that is there already belongs to an attempt that came to nothing.
        if next.symlink_metadata().is_err() {
            KeyFile::create(&next)?;
        }
        self.reseal(keystore, &Unlock::KeyFile(next.clone()))?;
        let cannot = |error| Error::io("cannot rename the new key file", &error).about(shown(&next));
        std::fs::rename(&next, self.folder.join(KEY_FILE)).map_err(cannot)
    }

    /// Puts a key on the token in its place, which is made if there is none of that name.
    pub(crate) fn reseal_by_token_key(
        &self,
        args: &KeystoreArgs,
        keystore: &Keystore,
        name: &Name,
    ) -> Result<()> {
        self.reseal(keystore, &new_token_key(token(args).as_ref(), name)?)
    }

    /// A new keystore made of a backup.
    pub(crate) fn restore(
        args: &KeystoreArgs,
        seal: NewSeal,
        passphrase_file: Option<&Path>,
        backup: &Backup,
    ) -> Result<Self> {
        let folder = folder(args)?;
        check_keystore(&folder, &folder.join(STORE_FILE))?;
        interrupt::guard();
        let what = format!("the keystore {}", shown(&folder));
        let unlock = if seal == NewSeal::Passphrase || passphrase_file.is_some() {
            Unlock::Passphrase(passphrase_of(&what, passphrase_file, Asked::Twice)?)
        } else {
            Unlock::KeyFile(key_file(&folder)?)
        };
        let options = options(token(args).as_ref());
        let keystore = backup.restore(&folder.join(STORE_FILE), &unlock, &options)?;
        let access = Self { folder, unlock, options };
        access.begin_log_after_restoring(keystore)?;
        Ok(access)
    }
}

/// What opens a keystore that is sealed to a recipient.
pub(super) fn identity(args: &KeystoreArgs) -> Result<Unlock> {
    let path = args.identity.as_deref().unwrap_or(Path::new(""));
    Ok(Unlock::Provider(Arc::new(Identity::read(path)?)))
}

/// The key file of a keystore. When a change of it was interrupted after the keystore had taken the new one, the new one
/// gets its name now. One that does not open the keystore stays where it is: another process may be about to use it.
pub(super) fn settled_key_file(folder: &Path, options: &KeystoreOptions) -> PathBuf {
    let (now, next) = (folder.join(KEY_FILE), folder.join(NEXT_KEY_FILE));
    let is_taken = || options.snapshot(&folder.join(STORE_FILE), &Unlock::KeyFile(next.clone())).is_ok();
    // Should the renaming fail, the file is found again under its first name.
    if next.symlink_metadata().is_ok() && is_taken() && std::fs::rename(&next, &now).is_err() {
        return next;
    }
    now
}
