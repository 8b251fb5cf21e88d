//! What opens a keystore that nodes of the service share in etcd, and what makes one.

use super::access::Access;
use super::guard::options_of_etcd;
use super::key_file_naming::{KEY_FILE, has_key_file, name_key_file, new_key_file};
use super::keys::{create_key, ensure_default};
use super::log::{distrusted, log_key_version};
use super::passphrase::{Asked, passphrase, passphrase_from_credential, passphrase_from_descriptor};
use super::place::{LOG_FOLDER, folder, parse_name, tenant};
use super::recording::{self, Begun, LOG_LABEL, begun};
use super::serving::{as_kms_error, service_log_options};
use crate::args::{Create, KeystoreArgs};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::files::private::check_keystore;
use bulla_kms::audit_log::{AuditLog, AuditLogOptions, Checkpoint, Durability};
use bulla_kms::metrics::Metrics;
use bulla_kms::rollback::FileGuard;
use bulla_kms::{
    Attestation, Code, EtcdOptions, Keystore, KeystoreOptions, SecretString, Unlock, UnlockMethod,
};
use bulla_server::{Config, EtcdConfig, KeystoreSource, OpenKeystore, PublishedCheckpoint, StoreKind};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

/// The purpose of the key that signs the audit logs.
const LOG_PURPOSE: &str = "audit";

/// The keystore in etcd, and this node's own folder: with its key file and its audit log.
#[derive(Clone)]
pub(crate) struct EtcdSource {
    settings: EtcdConfig,
    etcd: EtcdOptions,
    args: KeystoreArgs,
    folder: PathBuf,
    options: KeystoreOptions,
    /// What opens it; none until somebody gives the passphrase.
    unlock: Option<Unlock>,
    log: AuditLogOptions,
}

impl EtcdSource {
    /// Finds the keystore, and asks for its passphrase where there is a terminal.
    ///
    /// # Errors
    /// The keystore does not exist; the cluster cannot be reached.
    pub(crate) fn find(args: &KeystoreArgs, config: &Config) -> Result<Self> {
        let mut source = Self::unopened(args, config)?;
        let no_keystore = |error: bulla_kms::KmsError| {
            let is_missing = error.code == Code::NotFound;
            let error = Error::from(error);
            if is_missing { error.hint("create one with `bulla serve --create keystore`") } else { error }
        };
        source.unlock = match Keystore::unlock_method_etcd(&source.etcd).map_err(no_keystore)? {
            UnlockMethod::KeyFile => Some(Unlock::KeyFile(source.folder.join(KEY_FILE))),
            UnlockMethod::Passphrase => source.passphrase(config)?,
            UnlockMethod::Provider { method, key_name } => {
                Some(Access::provided(&source.args, &method, &key_name)?)
            }
        };
        Ok(source)
    }

    /// The place of the keystore and of the node's own files. Nothing is asked for yet.
    ///
    /// # Errors
    /// The settings name no cluster; certificates or the password cannot be read.
    pub(crate) fn unopened(args: &KeystoreArgs, config: &Config) -> Result<Self> {
        if config.keystore.store != StoreKind::Etcd {
            let message = "only nodes that share a keystore in etcd have logs to compare";
            return Err(Error::new("invalid_argument", message)
                .hint("leave --cluster out: the settings name a keystore in a file"));
        }
        let mut args = args.clone();
        args.keystore = args.keystore.or_else(|| config.keystore.folder.clone());
        args.passphrase_file = args.passphrase_file.or_else(|| config.keystore.passphrase_file.clone());
        let folder = folder(&args)?;
        check_keystore(&folder, &folder.join(KEY_FILE))?;
        let options = options_of_etcd(&args, config.keystore.guard.as_deref())?;
        let (settings, log) = (config.etcd.clone(), service_log_options(config)?);
        Ok(Self { etcd: settings.options()?, settings, args, folder, options, unlock: None, log })
    }

    fn passphrase(&self, config: &Config) -> Result<Option<Unlock>> {
        let given = if self.args.passphrase_file.is_some() || std::io::stderr().is_terminal() {
            passphrase(&self.args, &self.folder, Asked::Once)?
        } else if let Some(descriptor) = config.keystore.passphrase_fd {
            passphrase_from_descriptor(descriptor)?
        } else if let Some(name) = &config.keystore.credential {
            passphrase_from_credential(name)?
        } else {
            return Ok(None);
        };
        Ok(Some(Unlock::Passphrase(given)))
    }

    /// Makes a keystore with the key `default`, this node's guard, or the key that signs the audit
    /// logs of all nodes.
    ///
    /// # Errors
    /// There is one already; the cluster cannot be reached.
    pub(crate) fn create(args: &KeystoreArgs, config: &Config, what: Create) -> Result<()> {
        match what {
            Create::Guard => {
                let none = || Error::new("invalid_argument", "the settings name no `guard` in [keystore]");
                let path = config.keystore.guard.as_ref().ok_or_else(none)?;
                FileGuard::create(path)?;
                note_line(&format!("created the rollback guard {}", shown(path)));
            }
            Create::Keystore => Self::create_keystore(args, config)?,
            Create::AuditLog => {
                let source = Self::find(args, config)?;
                let keystore = source.opened(None)?;
                let label = parse_name(LOG_LABEL)?;
                if keystore.find(&tenant()?, &label)?.is_none() {
                    create_key(&keystore, label, parse_name(LOG_PURPOSE)?)?;
                }
                note_line("each node that starts from now on keeps an audit log in its folder");
            }
        }
        Ok(())
    }

    fn create_keystore(args: &KeystoreArgs, config: &Config) -> Result<()> {
        let source = Self::unopened(args, config)?;
        let mut unlock = match &source.args.passphrase_file {
            Some(_) => Unlock::Passphrase(passphrase(&source.args, &source.folder, Asked::Twice)?),
            None if has_key_file(&source.folder) => {
                let message = format!("there is a key file {KEY_FILE} in {} already", shown(&source.folder));
                return Err(Error::new("already_exists", message)
                    .hint("it opens a keystore that exists; name another folder"));
            }
            None => Unlock::KeyFile(new_key_file(&source.folder)?),
        };
        let keystore = source.options.create_etcd(&source.etcd, &unlock)?;
        name_key_file(&source.folder, &mut unlock)?;
        ensure_default(&keystore)?;
        let opened_by = match unlock {
            Unlock::KeyFile(path) => {
                format!("the key file {} opens it, and every node needs a copy", shown(&path))
            }
            _ => "your passphrase opens it".to_owned(),
        };
        note_line(&format!("created the keystore {} in etcd; {opened_by}", source.etcd.prefix));
        Ok(())
    }

    fn opened(&self, passphrase: Option<SecretString>) -> Result<Keystore> {
        let unlock = match (&self.unlock, passphrase) {
            (Some(unlock), None) => unlock.clone(),
            (_, Some(passphrase)) => Unlock::Passphrase(passphrase),
            (None, None) => {
                let message = "the keystore opens with a passphrase, which nobody gave";
                return Err(Error::new("wrong_passphrase", message));
            }
        };
        Ok(self.options.open_etcd(&self.etcd, &unlock)?)
    }

    /// This node's audit log, if the nodes keep one. A new node begins its own.
    fn audited(&self, keystore: Keystore) -> Result<OpenKeystore> {
        let log = self.log_folder();
        let Some(key) = keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)? else {
            recording::refuse_without_key(&log)?;
            return Ok(OpenKeystore { keystore, audit: None });
        };
        if begun(&log)? != Begun::Whole {
            recording::create_or_complete(&log)?.checkpoint(&keystore, &key)?;
        }
        let options = AuditLogOptions { known: self.known(&keystore.attest(&key)?)?, ..self.log.clone() };
        let log = Arc::new(AuditLog::open(&log, options)?);
        recording::note_recovered(&log);
        let audit: Option<(_, Durability)> = Some((log.clone(), self.log.durability));
        Ok(OpenKeystore { keystore: keystore.audited(log), audit })
    }
}

impl EtcdSource {
    /// The folder of the node's own audit log.
    pub(crate) fn log_folder(&self) -> PathBuf {
        self.folder.join(LOG_FOLDER)
    }

    /// The checkpoints that all nodes gather in etcd.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub(crate) fn gathered(&self) -> Result<Vec<PublishedCheckpoint>> {
        Ok(PublishedCheckpoint::read_all(&self.settings)?)
    }

    /// The key that signs the audit logs.
    ///
    /// # Errors
    /// The keystore does not open, or has no such key.
    pub(crate) fn log_key(args: &KeystoreArgs, config: &Config) -> Result<Attestation> {
        let mut config = config.clone();
        // The node has its guard, and may be using it.
        config.keystore.guard = None;
        let keystore = Self::find(args, &config)?.opened(None)?;
        let none = || {
            Error::new("not_found", "the nodes keep no audit logs")
                .hint("have them begin with `bulla serve --create audit-log`")
        };
        let key = keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)?.ok_or_else(none)?;
        Ok(keystore.attest(&key)?)
    }

    /// The nodes' checkpoints in etcd that the key signed.
    fn known(&self, key: &Attestation) -> Result<Vec<Checkpoint>> {
        let gathered = self.gathered()?.into_iter();
        let checkpoints = gathered.filter_map(|gathered| Some(gathered.content?.checkpoint));
        Ok(checkpoints.filter(|known| distrusted(known, &|id| log_key_version(key, id)).is_none()).collect())
    }
}

impl KeystoreSource for EtcdSource {
    fn needs_passphrase(&self) -> bool {
        self.unlock.is_none()
    }

    fn open(
        &self,
        passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        let mut source = self.clone();
        source.options.metrics = Some(Arc::clone(metrics));
        source.opened(passphrase).and_then(|keystore| source.audited(keystore)).map_err(as_kms_error)
    }
}
