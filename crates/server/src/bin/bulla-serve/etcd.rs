//! What opens a keystore that nodes of the service share in etcd, and what makes one.

use crate::args::NewPart;
use crate::source::{no_passphrase_given, passphrase_secrets, service_log_options, with_settings};
use bulla_cli::keystore::{KeystoreArgs, keystore_folder, note_recovered, secrets};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_files::escape_path;
use bulla_keystore::audit_log::{checkpoint_key, ensure_log_key, find_log_key, find_untrusted};
use bulla_keystore::{
    AuditLogFolder, KeystoreFolder, PassphrasePrompt, Secrets, ensure_default_key, find_provider,
};
use bulla_kms::audit_log::{AuditLogOptions, Checkpoint};
use bulla_kms::metrics::Metrics;
use bulla_kms::rollback::FileGuard;
use bulla_kms::{
    Attestation, Code, EtcdOptions, Keystore, KeystoreOptions, KmsError, SecretString, Unlock, UnlockMethod,
};
use bulla_server::{
    Config, EtcdConfig, GroupNode, KeystoreSource, OpenKeystore, PublishedCheckpoint, StoreKind,
};
use std::sync::Arc;

/// The keystore in etcd, and this node's own folder: with its key file and its audit log.
#[derive(Clone)]
pub(crate) struct EtcdSource {
    settings: EtcdConfig,
    etcd: EtcdOptions,
    folder: KeystoreFolder,
    secrets: Secrets,
    options: KeystoreOptions,
    /// What opens it; none until somebody gives the passphrase.
    unlock: Option<Unlock>,
    log: AuditLogOptions,
    /// This node of a group, if the settings have one.
    group: Option<GroupNode>,
}

impl EtcdSource {
    /// Finds the keystore, and asks for its passphrase where there is a terminal.
    ///
    /// # Errors
    /// The keystore does not exist; the cluster cannot be reached.
    pub(crate) fn find(args: &KeystoreArgs, config: &Config) -> Result<Self> {
        let mut source = Self::unopened(args, config)?;
        let no_keystore = |error: KmsError| {
            let is_missing = error.code == Code::NotFound;
            let error = Error::from(error);
            if is_missing { error.hint("create one with `bulla serve init keystore`") } else { error }
        };
        source.unlock = match Keystore::unlock_method_etcd(&source.etcd).map_err(no_keystore)? {
            UnlockMethod::KeyFile => Some(Unlock::KeyFile(source.folder.key_file())),
            UnlockMethod::Passphrase => {
                let secrets = passphrase_secrets(&with_settings(args, config), config);
                let prompt = PassphrasePrompt::existing(source.folder.path());
                let given = secrets.map(|secrets| secrets.ask_passphrase(&prompt)).transpose()?;
                given.map(Unlock::Passphrase)
            }
            UnlockMethod::Provider { method, key_name } => {
                Some(find_provider(&source.secrets, &method, &key_name)?)
            }
        };
        Ok(source)
    }

    /// Adds the keys of a group, of which this is a node.
    pub(crate) fn with_group(mut self, group: Option<GroupNode>) -> Self {
        if let Some(group) = &group {
            self.options.backends = self.options.backends.with(group.backend());
        }
        Self { group, ..self }
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
        let args = with_settings(args, config);
        let (folder, secrets) = (keystore_folder(&args)?, secrets(&args));
        folder.check_node_permissions()?;
        let mut options = secrets.keystore_options().actor(folder.actor().cloned());
        // The store does not remember the guard: each node has its own.
        if let Some(path) = &config.keystore.guard {
            options.guard = Arc::new(FileGuard::new(path));
        }
        let (settings, log) = (config.etcd.clone(), service_log_options(config));
        Ok(Self {
            etcd: settings.options()?,
            settings,
            folder,
            secrets,
            options,
            unlock: None,
            log,
            group: None,
        })
    }

    /// Makes a keystore with the key `default`, this node's guard, or the key that signs the audit
    /// logs of all nodes.
    ///
    /// # Errors
    /// There is one already; the cluster cannot be reached.
    pub(crate) fn create(args: &KeystoreArgs, config: &Config, what: NewPart) -> Result<()> {
        match what {
            NewPart::Guard => {
                let none = || Error::new("invalid_argument", "the settings name no `guard` in [keystore]");
                let path = config.keystore.guard.as_ref().ok_or_else(none)?;
                FileGuard::create(path)?;
                note_line(&format!("created the rollback guard {}", escape_path(path)));
            }
            NewPart::Keystore => Self::create_keystore(args, config)?,
            NewPart::AuditLog => {
                let source = Self::find(args, config)?;
                let keystore = source.opened(None)?;
                ensure_log_key(&keystore)?;
                note_line("each node that starts from now on keeps an audit log in its folder");
            }
        }
        Ok(())
    }

    fn create_keystore(args: &KeystoreArgs, config: &Config) -> Result<()> {
        let source = Self::unopened(args, config)?;
        let folder = &source.folder;
        let mut unlock = if with_settings(args, config).passphrase_file.is_some() {
            Unlock::Passphrase(source.secrets.ask_passphrase(&PassphrasePrompt::new(folder.path()))?)
        } else if folder.has_key_file() {
            let message =
                format!("there is a key file keystore.key in {} already", escape_path(folder.path()));
            return Err(Error::new("already_exists", message)
                .hint("it opens a keystore that exists; name another folder"));
        } else {
            Unlock::KeyFile(folder.create_key_file()?)
        };
        let keystore = source.options.create_etcd(&source.etcd, &unlock)?;
        folder.name_key_file(&mut unlock)?;
        ensure_default_key(&keystore)?;
        let opened_by = match unlock {
            Unlock::KeyFile(path) => {
                format!("the key file {} opens it, and every node needs a copy", escape_path(&path))
            }
            _ => "your passphrase opens it".to_owned(),
        };
        note_line(&format!("created the keystore {} in etcd; {opened_by}", source.etcd.prefix));
        Ok(())
    }

    fn opened(&self, passphrase: Option<SecretString>) -> bulla_kms::Result<Keystore> {
        let unlock = match (&self.unlock, passphrase) {
            (Some(unlock), None) => unlock.clone(),
            (_, Some(passphrase)) => Unlock::Passphrase(passphrase),
            (None, None) => return Err(no_passphrase_given()),
        };
        self.options.open_etcd(&self.etcd, &unlock)
    }

    /// This node's audit log, if the nodes keep one. A new node begins its own.
    fn audited(&self, keystore: Keystore) -> bulla_keystore::Result<OpenKeystore> {
        let folder = self.log_folder();
        let Some(key) = find_log_key(&keystore)? else {
            folder.refuse_without_key()?;
            return Ok(OpenKeystore { keystore, audit: None });
        };
        if !folder.is_complete()? {
            let options = bulla_keystore::audit_log::options().actor(self.options.actor.clone());
            let log = folder.create_or_complete(options)?;
            note_recovered(&log);
            log.checkpoint(&keystore, &key)?;
        }
        let options =
            self.log.clone().known(self.known(&keystore.attest(&key)?)?).actor(self.options.actor.clone());
        let log = Arc::new(folder.open(options)?);
        note_recovered(&log);
        let audit = Some((log.clone(), self.log.durability));
        Ok(OpenKeystore { keystore: keystore.audited(log), audit })
    }
}

impl EtcdSource {
    /// The folder of the node's own audit log.
    pub(crate) fn log_folder(&self) -> AuditLogFolder {
        self.folder.audit_log()
    }

    /// The checkpoints that all nodes gather in etcd.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub(crate) fn gathered(&self) -> bulla_kms::Result<Vec<PublishedCheckpoint>> {
        PublishedCheckpoint::read_all(&self.settings)
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
                .hint("have them begin with `bulla serve init audit-log`")
        };
        let key = find_log_key(&keystore)?.ok_or_else(none)?;
        Ok(keystore.attest(&key)?)
    }

    /// The nodes' checkpoints in etcd that the key signed.
    fn known(&self, key: &Attestation) -> bulla_kms::Result<Vec<Checkpoint>> {
        let gathered = self.gathered()?.into_iter();
        let checkpoints = gathered.filter_map(|gathered| Some(gathered.content?.checkpoint));
        Ok(checkpoints
            .filter(|known| find_untrusted(known, &|id| checkpoint_key(key, id)).is_none())
            .collect())
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
        Ok(source.audited(source.opened(passphrase)?)?)
    }

    fn group(&self) -> Option<GroupNode> {
        self.group.clone()
    }
}
