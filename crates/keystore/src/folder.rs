//! The folder of a keystore: which files it has, and how it is opened, created and restored.

use crate::audit_log::{AuditLogFolder, StartedAuditLog};
#[cfg(feature = "pkcs11")]
use crate::device;
use crate::error::{Error, ErrorCode, Result};
use crate::guard::{GuardLocation, GuardPolicy, options_of_existing, options_of_new};
use crate::keys::ensure_default_key;
use crate::permissions::check_keystore;
use crate::secrets::{NewSecret, PassphrasePrompt, Secrets};
use crate::unlocked::{OpenFolder, UnlockedFolder};
use bulla_files::escape_path;
use bulla_kms::audit_log::Actor;
use bulla_kms::encryption::{Identity, KeyProvider as _};
use bulla_kms::{Backup, Code, Keystore, KmsError, Unlock, UnlockMethod};
use etcetera::{BaseStrategy as _, base_strategy};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The store's file, in the keystore's folder.
pub(crate) const STORE_FILE: &str = "keystore.redb";
/// The folder of the audit log, in the keystore's folder.
const AUDIT_LOG_FOLDER: &str = "audit-log";
/// The list of revoked tokens, in the keystore's folder.
const REVOKED_TOKENS_FILE: &str = "revoked";
/// What a service keeps beside the keys, in the keystore's folder.
const SERVICE_FOLDER: &str = "service";

/// The folder of a keystore, which may not exist yet.
///
/// ```
/// use bulla_keystore::{KeystoreFolder, NewKeystore, Secrets};
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("keystore");
/// let folder = KeystoreFolder::at(&path).on_behalf_of("backup job".parse().ok());
/// assert_eq!(folder.actor().unwrap().to_string(), "backup job");
/// folder.check_permissions()?;
/// folder.create(&NewKeystore::default(), &Secrets::new())?;
///
/// assert!(folder.store_file().is_file());
/// assert_eq!(folder.guard()?, None);
/// println!("opens with {:?}", folder.unlock_method()?);
/// println!("revoked tokens: {}", folder.revoked_tokens_file().display());
/// assert_eq!(folder.service_folder(), path.join("service"));
///
/// // A program that leaves the keystore to others meanwhile:
/// let unlocked = folder.unlock(&Secrets::new())?;
/// drop(unlocked.open()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeystoreFolder {
    path: PathBuf,
    actor: Option<Actor>,
}

/// A keystore to create, as [`KeystoreFolder::create`] takes it: with a key file and without a
/// rollback guard, unless it says otherwise.
#[derive(Clone, Debug, Default)]
pub struct NewKeystore {
    secret: NewSecret,
    guard: Option<GuardLocation>,
}

impl NewKeystore {
    /// A keystore that this secret opens.
    pub fn with(secret: NewSecret) -> Self {
        Self { secret, guard: None }
    }

    /// Adds a rollback guard, which is created too.
    #[must_use]
    pub fn guard(mut self, location: GuardLocation) -> Self {
        self.guard = Some(location);
        self
    }
}

/// A keystore that was restored from a backup.
#[non_exhaustive]
#[derive(Debug)]
pub struct RestoredFolder {
    /// The new keystore's folder.
    pub folder: UnlockedFolder,
    /// The new audit log, if the original keystore had one: a backup contains the log's key, but
    /// not the log.
    pub audit_log: Option<StartedAuditLog>,
}

impl KeystoreFolder {
    /// Names a folder. Nothing is read.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), actor: None }
    }

    /// Returns the default folder: `bulla` in the user's data folder.
    ///
    /// # Errors
    /// [`ErrorCode::NoHome`].
    pub fn of_user() -> Result<Self> {
        let no_home = |why: &str| Error::new(ErrorCode::NoHome, format!("cannot find the keystore: {why}"));
        let base = base_strategy::choose_native_strategy().map_err(|_| no_home("you have no home folder"))?;
        // Otherwise each folder that a program runs in would get a keystore of its own.
        match base.data_dir() {
            data if data.is_absolute() => Ok(Self::at(data.join("bulla"))),
            _ => Err(no_home("the path of your home folder (the variable HOME) does not begin with /")),
        }
    }

    /// Sets the actor that the audit log names in the entries of this program's operations:
    /// [`Keystore::on_behalf_of`] names another one for some of them.
    #[must_use]
    pub fn on_behalf_of(mut self, actor: impl Into<Option<Actor>>) -> Self {
        self.actor = actor.into();
        self
    }

    /// Returns the actor that the audit log names, if there is one.
    pub fn actor(&self) -> Option<&Actor> {
        self.actor.as_ref()
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file with the encrypted keys.
    pub fn store_file(&self) -> PathBuf {
        self.path.join(STORE_FILE)
    }

    /// Returns the folder of the audit log.
    pub fn audit_log(&self) -> AuditLogFolder {
        AuditLogFolder::at(self.path.join(AUDIT_LOG_FOLDER))
    }

    /// Returns the path of the list of revoked tokens, which a service writes.
    pub fn revoked_tokens_file(&self) -> PathBuf {
        self.path.join(REVOKED_TOKENS_FILE)
    }

    /// Returns the folder of what a service keeps beside the keys: secret ids, wrapped answers.
    pub fn service_folder(&self) -> PathBuf {
        self.path.join(SERVICE_FOLDER)
    }

    /// Returns whether there is a keystore.
    pub fn exists(&self) -> bool {
        self.store_file().symlink_metadata().is_ok()
    }

    /// Refuses a folder in which other users may replace the keystore, or a keystore that they may
    /// change. A folder or keystore that does not exist is accepted.
    ///
    /// # Errors
    /// [`ErrorCode::KeystoreMode`].
    pub fn check_permissions(&self) -> Result<()> {
        check_keystore(&self.path, &self.store_file())
    }

    /// Refuses a folder in which other users may replace files, or a key file that they may change:
    /// for a node of a service, whose keystore is elsewhere.
    ///
    /// ```
    /// # #[cfg(unix)]
    /// # (|| {
    /// use bulla_keystore::{ErrorCode, KeystoreFolder};
    /// use std::os::unix::fs::PermissionsExt as _;
    ///
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let path = temporary.path();
    /// let folder = KeystoreFolder::at(path);
    /// folder.check_node_permissions()?;
    /// std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    /// assert_eq!(folder.check_node_permissions().unwrap_err().code, ErrorCode::KeystoreMode);
    /// # Ok::<(), bulla_keystore::Error>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ErrorCode::KeystoreMode`].
    pub fn check_node_permissions(&self) -> Result<()> {
        check_keystore(&self.path, &self.key_file())
    }

    /// Returns what kind of secret opens the keystore.
    ///
    /// # Errors
    /// [`ErrorCode::NoKeystore`], [`ErrorCode::KeystoreLost`]; those of reading it.
    pub fn unlock_method(&self) -> Result<UnlockMethod> {
        let had_key_file = self.has_key_file();
        match Keystore::unlock_method(&self.store_file()) {
            Err(error) if error.code == Code::NotFound && had_key_file => Err(self.lost_error()),
            Err(error) if error.code == Code::NotFound => {
                let message = format!("there is no keystore in {}", escape_path(&self.path));
                Err(Error::new(ErrorCode::NoKeystore, message))
            }
            method => Ok(method?),
        }
    }

    /// Returns the location of the rollback guard that the keystore remembers, as text.
    ///
    /// # Errors
    /// Those of reading the keystore.
    pub fn guard(&self) -> Result<Option<String>> {
        Ok(Keystore::guard_name(&self.store_file())?)
    }

    /// Opens the keystore, with its audit log if it has one. While it is open, it is locked for
    /// other processes: see [`KeystoreFolder::unlock`] for short use.
    ///
    /// # Errors
    /// Those of [`KeystoreFolder::unlock`] and [`UnlockedFolder::open`].
    pub fn open(&self, secrets: &Secrets) -> Result<OpenFolder> {
        self.unlock(secrets)?.open()
    }

    /// Finds the secret that opens the keystore, and asks for a passphrase if it is one. The
    /// keystore is not open or locked yet.
    ///
    /// # Errors
    /// [`ErrorCode::NoKeystore`], [`ErrorCode::KeystoreLost`], [`ErrorCode::KeystoreMode`]; a
    /// missing secret, device or guard.
    pub fn unlock(&self, secrets: &Secrets) -> Result<UnlockedFolder> {
        self.unlock_by(secrets, GuardPolicy::Ask)
    }

    /// Like [`KeystoreFolder::unlock`], without asking the rollback guard: the caller accepts the
    /// keystore in its present state, even if it is an older copy.
    ///
    /// ```
    /// use bulla_keystore::{KeystoreFolder, NewKeystore, Secrets};
    ///
    /// # let temporary = tempfile::tempdir()?;
    /// # let path = temporary.path().join("keystore");
    /// # let counter = temporary.path().join("counter");
    /// let folder = KeystoreFolder::at(path);
    /// let guard = format!("file:{}", counter.display()).parse()?;
    /// folder.create(&NewKeystore::default().guard(guard), &Secrets::new())?;
    ///
    /// // The disk with the guard is lost. The keystore opens once without it, to get another one.
    /// std::fs::remove_file(counter)?;
    /// assert!(folder.open(&Secrets::new()).is_err());
    /// let unlocked = folder.unlock_unguarded(&Secrets::new())?;
    /// unlocked.set_guard(unlocked.open()?.keystore, None, &Secrets::new())?;
    /// folder.open(&Secrets::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`KeystoreFolder::unlock`].
    pub fn unlock_unguarded(&self, secrets: &Secrets) -> Result<UnlockedFolder> {
        self.unlock_by(secrets, GuardPolicy::Ignore)
    }

    fn unlock_by(&self, secrets: &Secrets, policy: GuardPolicy) -> Result<UnlockedFolder> {
        self.check_permissions()?;
        let method = self.unlock_method()?;
        let options = options_of_existing(&self.store_file(), secrets, policy)?;
        let unlock = match method {
            UnlockMethod::KeyFile => Unlock::KeyFile(self.settle_key_file(&options)),
            UnlockMethod::Passphrase => {
                Unlock::Passphrase(secrets.ask_passphrase(&PassphrasePrompt::existing(&self.path))?)
            }
            UnlockMethod::Provider { method, key_name } => find_provider(secrets, &method, &key_name)?,
        };
        Ok(UnlockedFolder::new(self.clone(), unlock, options))
    }

    /// Takes a secret that the caller has, whatever kind of secret opens the keystore. Opening
    /// fails if it is another one.
    ///
    /// ```
    /// use bulla_keystore::{KeystoreFolder, NewKeystore, Secrets};
    /// use bulla_kms::Unlock;
    ///
    /// # let temporary = tempfile::tempdir()?;
    /// # let path = temporary.path().join("keystore");
    /// let folder = KeystoreFolder::at(path);
    /// folder.create(&NewKeystore::default(), &Secrets::new())?;
    /// let unlocked = folder.unlock_with(Unlock::KeyFile(folder.key_file()), &Secrets::new())?;
    /// assert!(unlocked.open()?.audit_log.is_none() && !folder.audit_log().is_complete()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorCode::KeystoreMode`]; a missing device or guard.
    pub fn unlock_with(&self, unlock: Unlock, secrets: &Secrets) -> Result<UnlockedFolder> {
        self.check_permissions()?;
        let options = options_of_existing(&self.store_file(), secrets, GuardPolicy::Ask)?;
        Ok(UnlockedFolder::new(self.clone(), unlock, options))
    }

    /// Creates a keystore with the key `default`. If the process is killed meanwhile, the next call
    /// completes the creation.
    ///
    /// If another process is creating a keystore in the folder at the same time, both get the same
    /// one.
    ///
    /// # Errors
    /// [`ErrorCode::KeystoreExists`], [`ErrorCode::KeystoreLost`], [`ErrorCode::KeystoreMode`]; a
    /// missing secret or device; those of creating the guard and of writing.
    pub fn create(&self, new: &NewKeystore, secrets: &Secrets) -> Result<UnlockedFolder> {
        self.check_permissions()?;
        let had_key_file = self.has_key_file();
        if self.exists() {
            let message = format!("a keystore exists already in {}", escape_path(&self.path));
            return Err(Error::new(ErrorCode::KeystoreExists, message));
        }
        if had_key_file {
            return Err(self.lost_error());
        }
        let mut unlock = match &new.secret {
            NewSecret::KeyFile => Unlock::KeyFile(self.create_key_file()?),
            NewSecret::Passphrase => {
                Unlock::Passphrase(secrets.ask_passphrase(&PassphrasePrompt::new(&self.path))?)
            }
            #[cfg(feature = "pkcs11")]
            NewSecret::DeviceKey(name) => device::find_or_create_key(secrets, name)?,
        };
        let options = options_of_new(new.guard.as_ref(), &self.path, secrets)?;
        let keystore = match options.create(&self.store_file(), &unlock) {
            Ok(keystore) => {
                self.name_key_file(&mut unlock)?;
                keystore
            }
            // Another process was first, and the folder's key file opens its keystore.
            Err(KmsError { code: Code::AlreadyExists | Code::NotFound, .. }) if self.exists() => {
                if let Unlock::KeyFile(path) = &mut unlock {
                    *path = self.settle_key_file(&options);
                }
                UnlockedFolder::new(self.clone(), unlock.clone(), options.clone()).open()?.keystore
            }
            Err(error) => return Err(error.into()),
        };
        ensure_default_key(&keystore)?;
        Ok(UnlockedFolder::new(self.clone(), unlock, options))
    }

    /// Creates a keystore from a backup. A key file that a lost keystore left in the folder opens
    /// the new keystore too. If the original keystore had an audit log, a new one is started.
    ///
    /// ```
    /// use bulla_keystore::{KeystoreFolder, NewKeystore, NewSecret, Secrets, find_key};
    /// use bulla_kms::Backup;
    /// use bulla_kms::backend::Backends;
    /// use bulla_kms::encryption::{Identity, IdentityKind};
    ///
    /// # let temporary = tempfile::tempdir()?;
    /// # let [lost, new] = ["lost", "new"].map(|name| temporary.path().join(name));
    /// let keystore = KeystoreFolder::at(lost).create(&NewKeystore::default(), &Secrets::new())?.open()?;
    /// let identity = Identity::generate(IdentityKind::Age)?;
    /// let mut file = Vec::new();
    /// keystore.keystore.backup(&mut file, &[&identity.recipient()])?;
    ///
    /// let backup = Backup::read(&file[..], &[&identity], Backends::software())?;
    /// let restored = KeystoreFolder::at(new).restore(&backup, &NewSecret::KeyFile, &Secrets::new())?;
    /// find_key(&restored.folder.open()?.keystore, "default")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorCode::KeystoreMode`]; a missing secret or device; those of [`Backup::restore`].
    pub fn restore(&self, backup: &Backup, secret: &NewSecret, secrets: &Secrets) -> Result<RestoredFolder> {
        self.check_permissions()?;
        let mut unlock = match secret {
            // Copies of the lost keystore still open with its key file.
            NewSecret::KeyFile if self.has_key_file() => Unlock::KeyFile(self.key_file()),
            NewSecret::KeyFile => Unlock::KeyFile(self.create_key_file()?),
            NewSecret::Passphrase => {
                Unlock::Passphrase(secrets.ask_passphrase(&PassphrasePrompt::new(&self.path))?)
            }
            #[cfg(feature = "pkcs11")]
            NewSecret::DeviceKey(name) => device::find_or_create_key(secrets, name)?,
        };
        let options = secrets.keystore_options();
        let keystore = backup.restore(&self.store_file(), &unlock, &options)?;
        self.name_key_file(&mut unlock)?;
        let folder = UnlockedFolder::new(self.clone(), unlock, options);
        let audit_log = folder.begin_audit_log_after_restoring(keystore)?;
        Ok(RestoredFolder { folder, audit_log })
    }
}

/// Finds the key provider that the keystore names: a key on a device, or an identity.
///
/// ```
/// use bulla_keystore::{ErrorCode, Secrets, find_provider};
/// use bulla_kms::encryption::{Identity, IdentityKind};
/// use bulla_kms::{Keystore, Unlock, UnlockMethod};
///
/// # let temporary = tempfile::tempdir()?;
/// # let [store, path] = ["store", "identity"].map(|name| temporary.path().join(name));
/// let identity = Identity::generate(IdentityKind::Age)?;
/// identity.write(&path)?;
/// Keystore::create(&store, &Unlock::Provider(std::sync::Arc::new(identity)))?;
///
/// // The keystore says what opens it.
/// let UnlockMethod::Provider { method, key_name } = Keystore::unlock_method(&store)? else {
///     panic!("an identity opens it")
/// };
/// let error = find_provider(&Secrets::new(), &method, &key_name).unwrap_err();
/// assert_eq!(error.code, ErrorCode::IdentityRequired);
/// let secrets = Secrets::new().identity_file(path);
/// Keystore::open(&store, &find_provider(&secrets, &method, &key_name)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ErrorCode::DeviceRequired`], [`ErrorCode::IdentityRequired`]; those of the device, and of
/// reading the identity file.
pub fn find_provider(secrets: &Secrets, method: &str, key_name: &str) -> Result<Unlock> {
    #[cfg(feature = "pkcs11")]
    if device::is_method(method) {
        return device::find_key(secrets, key_name);
    }
    let Some(path) = &secrets.identity_file else {
        let message = format!("an identity opens the keystore: {method}");
        return Err(Error::new(ErrorCode::IdentityRequired, message));
    };
    let mut all = Identity::read_all(path)?;
    // If none of them is the right one, opening the keystore says so of the last.
    let index = all.iter().position(|one| one.key_name() == key_name).unwrap_or(all.len() - 1);
    Ok(Unlock::Provider(Arc::new(all.swap_remove(index))))
}
