//! A keystore in a folder, with an audit log and a list of revoked tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulla_kms::audit_log::{AuditLog, AuditLogOptions, Durability};
use bulla_kms::metrics::Metrics;
use bulla_kms::{Algorithm, KeyFile, Keystore, KeystoreOptions, NewKey, SecretString, Unlock};
use bulla_server::{Config, KeystoreSource, OpenKeystore, Server};

use super::{Service, name};

pub(crate) const PASSPHRASE: &str = "correct horse battery staple";

/// The keystore in a folder, which opens with a passphrase or a key file.
pub(crate) struct OnDisk(PathBuf, Opens);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opens {
    WithPassphrase,
    WithKeyFile,
}

fn secret(text: &str) -> SecretString {
    text.to_owned().into()
}

impl OnDisk {
    /// Makes a keystore with a root key for the tenant `local`, and its log. It opens with a
    /// passphrase.
    pub(crate) fn create(folder: &Path) -> Self {
        Self(folder.to_owned(), Opens::WithPassphrase).created()
    }

    /// The same, which opens with the key file `key`.
    pub(crate) fn create_with_key_file(folder: &Path) -> Self {
        KeyFile::create(&folder.join("key")).unwrap();
        Self(folder.to_owned(), Opens::WithKeyFile).created()
    }

    fn created(self) -> Self {
        let source = self;
        let unlock = source.unlock(Some(secret(PASSPHRASE)));
        let keystore = KeystoreOptions::default().create(&source.store(), &unlock).unwrap();
        let log = Arc::new(AuditLog::create(&source.log(), options()).unwrap());
        let keystore = keystore.audited(log.clone());
        let label = name("audit-log");
        let key = NewKey::new(name("local"), name("audit"), Algorithm::Ed25519).label(label);
        let key = keystore.create_key(key).unwrap();
        keystore.create_token_root(&name("local")).unwrap();
        log.checkpoint(&keystore, &key).unwrap();
        source
    }

    /// The keystore of [`OnDisk::create`], which is there already.
    pub(crate) fn existing(folder: &Path) -> Self {
        Self(folder.to_owned(), Opens::WithPassphrase)
    }

    fn unlock(&self, passphrase: Option<SecretString>) -> Unlock {
        match self.1 {
            Opens::WithPassphrase => Unlock::Passphrase(passphrase.unwrap()),
            Opens::WithKeyFile => Unlock::KeyFile(self.0.join("key")),
        }
    }

    /// The keystore, for what a test prepares. It must be dropped before the service opens it.
    pub(crate) fn keystore(&self) -> Keystore {
        self.open(Some(secret(PASSPHRASE)), &Arc::default()).unwrap().keystore
    }

    /// Starts the service.
    pub(crate) fn start(self, config: Config) -> Service {
        let server = Server::bind(config, Box::new(self)).unwrap();
        server.unseal(Some(secret(PASSPHRASE))).unwrap();
        Service::run(server)
    }

    fn store(&self) -> PathBuf {
        self.0.join("keystore.redb")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("audit-log")
    }
}

fn options() -> AuditLogOptions {
    // Small files, so that a log has several.
    AuditLogOptions::default().signer(name("local"), name("audit-log")).max_file_bytes(4 << 10)
}

impl KeystoreSource for OnDisk {
    fn needs_passphrase(&self) -> bool {
        self.1 == Opens::WithPassphrase
    }

    fn open(
        &self,
        passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        let unlock = self.unlock(passphrase);
        let metrics = Some(Arc::clone(metrics));
        let keystore = KeystoreOptions::default().metrics(metrics).open(&self.store(), &unlock)?;
        let log = Arc::new(AuditLog::open(&self.log(), options())?);
        Ok(OpenKeystore { keystore: keystore.audited(log.clone()), audit: Some((log, Durability::Grouped)) })
    }

    fn revocations(&self) -> Option<PathBuf> {
        Some(self.0.join("revoked"))
    }

    fn rows(&self) -> Option<PathBuf> {
        Some(self.0.join("service"))
    }
}
