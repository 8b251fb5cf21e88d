//! A keystore's folder together with the secret that opens the keystore.

use crate::audit_log::{self, AUDIT_LOG_LABEL, StartedAuditLog};
use crate::error::{Error, Result};
use crate::folder::KeystoreFolder;
use crate::guard::{GuardLocation, options_of_new};
use crate::keys::{DEFAULT_LABEL, find_key, parse_constant, tenant};
use crate::secrets::Secrets;
use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
use bulla_kms::encryption::Passphrase;
use bulla_kms::{Attestation, KeyId, Keystore, KeystoreOptions, KmsError, RotationPolicy, Snapshot, Unlock};
use std::sync::Arc;

/// A keystore's folder, and the secret that opens the keystore.
///
/// The keystore itself is open, and locked for other processes, only while it is used: a program
/// opens it for one operation and drops it, and does not ask for the passphrase again.
///
/// ```
/// use bulla_keystore::{KeystoreFolder, NewKeystore, Secrets, audit_log};
/// use bulla_kms::{KeyFile, Unlock};
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("keystore");
/// let folder = KeystoreFolder::at(path);
/// let mut unlocked = folder.create(&NewKeystore::default(), &Secrets::new())?;
/// assert_eq!(unlocked.folder(), &folder);
/// assert!(matches!(unlocked.unlock(), Unlock::KeyFile(_)));
///
/// // Signing with a key that nothing limits leaves the keystore unlocked for others.
/// let keystore = unlocked.open_to_sign("default")?.keystore;
/// let key = bulla_keystore::find_key(&unlocked.snapshot()?, "default")?;
/// keystore.sign(key.as_ref(), b"a message")?;
///
/// // From now on, an audit log has every operation, and who did it.
/// unlocked.begin_audit_log()?;
/// unlocked.options_mut().actor = Some("nightly job".parse()?);
/// let opened = unlocked.open_with(audit_log::options().max_file_bytes(1 << 20))?;
/// opened.keystore.sign(key.as_ref(), b"a message")?;
/// drop(opened);
/// let checkpoint = unlocked.with_audit_log(|log, keystore, key| log.checkpoint(keystore, key))?;
/// assert_eq!(checkpoint.key.key_id(), &unlocked.audit_log_key()?.key);
///
/// // Another key file, first a named one and then the folder's own.
/// # let elsewhere = temporary.path().join("elsewhere.key");
/// KeyFile::create(&elsewhere)?;
/// let keystore = unlocked.open()?.keystore;
/// unlocked.rekey(&keystore, Unlock::KeyFile(elsewhere))?;
/// unlocked.rekey_to_key_file(&keystore)?;
/// // A rollback guard, as its location names it.
/// # let counter = temporary.path().join("counter");
/// let guard = format!("file:{}", counter.display()).parse()?;
/// unlocked.set_guard(keystore, Some(&guard), &Secrets::new())?;
/// assert_eq!(folder.guard()?, Some(guard.to_string()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnlockedFolder {
    folder: KeystoreFolder,
    unlock: Unlock,
    /// The same secret as it is used: see [`used_often`].
    used: Unlock,
    options: KeystoreOptions,
}

/// An open keystore, and the audit log in which it records its operations.
#[non_exhaustive]
#[derive(Debug)]
pub struct OpenFolder {
    /// The keystore. Drop it soon: other processes wait meanwhile.
    pub keystore: Keystore,
    /// The audit log, if there is one. [`AuditLog::recovered`] tells whether a crash had left an
    /// incomplete line in it.
    pub audit_log: Option<Arc<AuditLog>>,
}

/// A secret that opens the keystore again and again: Argon2id of a passphrase is computed once.
fn used_often(unlock: &Unlock) -> Unlock {
    match unlock {
        // An empty one is refused where it is used.
        Unlock::Passphrase(secret) => match Passphrase::new(secret.clone()) {
            Ok(passphrase) => Unlock::Provider(Arc::new(passphrase)),
            Err(_) => unlock.clone(),
        },
        Unlock::KeyFile(_) | Unlock::Provider(_) => unlock.clone(),
    }
}

impl UnlockedFolder {
    pub(crate) fn new(folder: KeystoreFolder, unlock: Unlock, options: KeystoreOptions) -> Self {
        let options = options.actor(folder.actor().cloned());
        let used = used_often(&unlock);
        Self { folder, unlock, used, options }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &KeystoreFolder {
        &self.folder
    }

    /// Returns the secret that opens the keystore.
    pub fn unlock(&self) -> &Unlock {
        &self.unlock
    }

    /// Returns the options with which the keystore is opened, to change them.
    pub fn options_mut(&mut self) -> &mut KeystoreOptions {
        &mut self.options
    }

    /// Opens the keystore, with its audit log if it has one.
    ///
    /// # Errors
    /// Those of [`Keystore::open`];
    /// [`ErrorCode::AuditLogMissing`](crate::ErrorCode::AuditLogMissing),
    /// [`ErrorCode::AuditLogUnfinished`](crate::ErrorCode::AuditLogUnfinished),
    /// [`ErrorCode::AuditLogWithoutKey`](crate::ErrorCode::AuditLogWithoutKey).
    pub fn open(&self) -> Result<OpenFolder> {
        self.open_with(audit_log::options())
    }

    /// Opens the keystore like [`UnlockedFolder::open`], with other options for the audit log.
    /// Their signer should be that of [`audit_log::options`].
    ///
    /// # Errors
    /// Those of [`UnlockedFolder::open`].
    pub fn open_with(&self, log: AuditLogOptions) -> Result<OpenFolder> {
        // The keystore is locked first, so that a process that waits for it need not wait for the
        // log.
        self.with_audit_log_of(self.open_unrecorded()?, log)
    }

    /// Opens the keystore to sign with the key that a user names. If a signature changes nothing in
    /// the keystore, it is not locked and may be on a read-only disk.
    ///
    /// # Errors
    /// Those of [`UnlockedFolder::open`].
    pub fn open_to_sign(&self, key: &str) -> Result<OpenFolder> {
        let (tenant, log_label) = (tenant(), parse_constant(AUDIT_LOG_LABEL));
        let writes = |keys: &Snapshot| {
            let is_recorded = keys.find(&tenant, &log_label).is_some();
            let found = find_key(keys, key).and_then(|found| Ok(keys.attest(found.key_id())?));
            is_recorded
                || match found {
                    Ok(key) => key.rotation != RotationPolicy::default(),
                    // It may be made first.
                    Err(_) => key == DEFAULT_LABEL,
                }
        };
        let keystore = self.options.open_as_needed(&self.folder.store_file(), &self.used, writes)?;
        self.with_audit_log_of(keystore, audit_log::options())
    }

    /// Reads the keys as they are now. Nothing is written, and nothing stays locked.
    ///
    /// # Errors
    /// Those of [`Keystore::snapshot`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.options.snapshot(&self.folder.store_file(), &self.used)?)
    }

    fn open_unrecorded(&self) -> Result<Keystore> {
        Ok(self.options.open(&self.folder.store_file(), &self.used)?)
    }

    fn with_audit_log_of(&self, keystore: Keystore, options: AuditLogOptions) -> Result<OpenFolder> {
        let log = self.folder.audit_log();
        if audit_log::find_log_key(&keystore)?.is_none() {
            log.refuse_without_key()?;
            return Ok(OpenFolder { keystore, audit_log: None });
        }
        let actor = options.actor.clone().or_else(|| self.options.actor.clone());
        let log = Arc::new(log.open(options.actor(actor))?);
        Ok(OpenFolder { keystore: keystore.audited(log.clone()), audit_log: Some(log) })
    }

    /// Starts an audit log, or completes one whose start was interrupted. That may happen at any
    /// moment: first the log is created, then the key that signs it, which the log records, and
    /// then the first checkpoint.
    ///
    /// # Errors
    /// Those of opening the keystore and of writing the log;
    /// [`Code::AlreadyExists`](bulla_kms::Code::AlreadyExists) if the keystore has a log.
    pub fn begin_audit_log(&self) -> Result<StartedAuditLog> {
        let keystore = self.open_unrecorded()?;
        let options = audit_log::options().actor(self.options.actor.clone());
        let log = Arc::new(self.folder.audit_log().create_or_complete(options)?);
        let keystore = keystore.audited(log.clone());
        let key = audit_log::ensure_log_key(&keystore)?;
        log.checkpoint(&keystore, &key)?;
        Ok(StartedAuditLog { folder: self.folder.audit_log(), log, key })
    }

    pub(crate) fn begin_audit_log_after_restoring(
        &self,
        keystore: Keystore,
    ) -> Result<Option<StartedAuditLog>> {
        let has_key = audit_log::find_log_key(&keystore)?.is_some();
        // The keystore is locked as long as it is open.
        drop(keystore);
        // A complete log in this folder belongs to the lost keystore, and continues.
        if !has_key || self.folder.audit_log().is_complete()? {
            return Ok(None);
        }
        self.begin_audit_log().map(Some)
    }

    /// Opens the keystore and calls `run` with its audit log, the keystore and the log's key: to
    /// make a checkpoint, or to have witnesses cosign one.
    ///
    /// # Errors
    /// [`ErrorCode::NoAuditLog`](crate::ErrorCode::NoAuditLog); those of [`UnlockedFolder::open`]
    /// and of `run`.
    pub fn with_audit_log<T>(
        &self,
        run: impl FnOnce(&AuditLog, &Keystore, &KeyId) -> Result<T, KmsError>,
    ) -> Result<T> {
        let OpenFolder { keystore, audit_log: Some(log) } = self.open()? else {
            return Err(Error::no_audit_log());
        };
        let key = audit_log::find_log_key(&keystore)?.ok_or_else(Error::no_audit_log)?;
        Ok(run(&log, &keystore, &key)?)
    }

    /// Returns the key that signs the audit log.
    ///
    /// # Errors
    /// [`ErrorCode::NoAuditLog`](crate::ErrorCode::NoAuditLog); those of
    /// [`UnlockedFolder::snapshot`].
    pub fn audit_log_key(&self) -> Result<Attestation> {
        let keys = self.snapshot()?;
        let key = keys.find(&tenant(), &parse_constant(AUDIT_LOG_LABEL)).ok_or_else(Error::no_audit_log)?;
        Ok(keys.attest(&key)?)
    }

    /// Replaces the secret that opens the open keystore. Older copies of the keystore still open
    /// with the old one.
    ///
    /// # Errors
    /// Those of [`Keystore::rekey`].
    pub fn rekey(&mut self, keystore: &Keystore, new: Unlock) -> Result<()> {
        keystore.rekey(&self.used, &new)?;
        self.used = used_often(&new);
        self.unlock = new;
        Ok(())
    }

    /// Replaces the secret with a new key file. The file gets its name after the keystore opens
    /// with it. If the process is killed in between, the next one that opens the keystore completes
    /// this.
    ///
    /// # Errors
    /// Those of [`UnlockedFolder::rekey`], and of creating the file.
    pub fn rekey_to_key_file(&mut self, keystore: &Keystore) -> Result<()> {
        self.rekey(keystore, Unlock::KeyFile(self.folder.create_key_file()?))?;
        let named = self.folder.name_key_file(&mut self.unlock);
        self.used = used_often(&self.unlock);
        named
    }

    /// Replaces the secret with a key on the device. If the device has no key with that name, it is
    /// created.
    ///
    /// ```no_run
    /// use bulla_keystore::{KeystoreFolder, Secrets};
    /// use bulla_kms::pkcs11::Pkcs11;
    ///
    /// let config = "pkcs11:token=keys?module-path=/usr/lib/softhsm/libsofthsm2.so".parse()?;
    /// let secrets = Secrets::new().device(Pkcs11::when_needed(&config));
    /// let mut unlocked = KeystoreFolder::of_user()?.unlock(&secrets)?;
    /// let keystore = unlocked.open()?.keystore;
    /// unlocked.rekey_to_device_key(&keystore, &"root-key".parse()?, &secrets)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorCode::DeviceRequired`](crate::ErrorCode::DeviceRequired); those of the device and of
    /// [`UnlockedFolder::rekey`].
    #[cfg(feature = "pkcs11")]
    pub fn rekey_to_device_key(
        &mut self,
        keystore: &Keystore,
        name: &bulla_kms::Name,
        secrets: &Secrets,
    ) -> Result<()> {
        self.rekey(keystore, crate::device::find_or_create_key(secrets, name)?)
    }

    /// Gives the open keystore another rollback guard, or none. This accepts the keystore in its
    /// present state.
    ///
    /// # Errors
    /// Those of creating the guard and of [`Keystore::set_guard`].
    pub fn set_guard(
        &self,
        keystore: Keystore,
        guard: Option<&GuardLocation>,
        secrets: &Secrets,
    ) -> Result<()> {
        let new = options_of_new(guard, self.folder.path(), secrets)?.guard;
        Ok(keystore.set_guard(&*new)?)
    }
}
