//! Changing what opens a keystore, and making one of a backup.

use super::{
    Access, Asked, KEY_FILE, NewSeal, STORE_FILE, folder, has_key_file, new_key_file, new_token_key, options,
    passphrase_of, token,
};
use crate::args::KeystoreArgs;
use crate::error::Result;
use crate::files::name::shown;
use crate::files::private::check_keystore;
use crate::interrupt;
use bulla_kms::seal::Identity;
use bulla_kms::{Backup, Keystore, Name, Unlock};
use std::path::Path;
use std::sync::Arc;

impl Access {
    /// Puts another secret in the place of the one that opens the keystore.
    pub(crate) fn reseal(&self, keystore: &Keystore, new: &Unlock) -> Result<()> {
        Ok(keystore.reseal(&self.unlock, new)?)
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
        } else if has_key_file(&folder) {
            // Of the keystore that was lost; copies of it go on to open with it.
            Unlock::KeyFile(folder.join(KEY_FILE))
        } else {
            Unlock::KeyFile(new_key_file(&folder)?)
        };
        let options = options(token(args).as_ref());
        let keystore = backup.restore(&folder.join(STORE_FILE), &unlock, &options)?;
        let mut access = Self { folder, unlock, options };
        access.name_key_file()?;
        access.begin_log_after_restoring(keystore)?;
        Ok(access)
    }
}

/// What opens a keystore that is sealed to a recipient.
pub(super) fn identity(args: &KeystoreArgs) -> Result<Unlock> {
    let path = args.identity.as_deref().unwrap_or(Path::new(""));
    Ok(Unlock::Provider(Arc::new(Identity::read(path)?)))
}
