//! Nodes of the service that share a keystore in etcd, all in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bulla_kms::metrics::Metrics;
use bulla_kms::token::Token;
use bulla_kms::{EtcdOptions, KeyFile, Keystore, KeystoreOptions, SecretString, Unlock};
use bulla_server::{Config, EtcdConfig, KeystoreSource, OpenKeystore, Server, StoreKind};
use serde_json::json;

use super::{Service, base64, config};
use bulla_testing::etcd::{Cluster, Setup};

/// How long anything may take that has to happen by itself.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An etcd cluster with a keystore that a key file opens.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    folder: tempfile::TempDir,
}

/// A keystore in etcd.
struct Source {
    etcd: EtcdOptions,
    unlock: Unlock,
}

impl KeystoreSource for Source {
    fn needs_passphrase(&self) -> bool {
        false
    }

    fn open(
        &self,
        _passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        let options = KeystoreOptions::default().metrics(Arc::clone(metrics));
        Ok(OpenKeystore { keystore: options.open_etcd(&self.etcd, &self.unlock)?, audit: None })
    }
}

impl Shared {
    pub(crate) fn start(members: usize) -> Self {
        Self::with(members, Setup::default())
    }

    pub(crate) fn with(members: usize, setup: Setup) -> Self {
        let (cluster, folder) = (Cluster::with(members, setup), tempfile::tempdir().unwrap());
        KeyFile::create(&folder.path().join("key")).unwrap();
        Self { cluster, folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn unlock(&self) -> Unlock {
        Unlock::KeyFile(self.folder.path().join("key"))
    }

    /// Makes the keystore.
    pub(crate) fn create(&self, config: &Config) -> Keystore {
        Keystore::create_etcd(&config.etcd.options().unwrap(), &self.unlock()).unwrap()
    }

    /// The settings of a node where every caller may do everything.
    pub(crate) fn open(&self) -> Config {
        let mut config = self.closed();
        config.service.development = true;
        config
    }

    /// The settings of a node whose callers need tokens.
    pub(crate) fn closed(&self) -> Config {
        let mut config = config();
        config.keystore.store = StoreKind::Etcd;
        config.etcd = EtcdConfig { endpoints: self.cluster.endpoints(), ..EtcdConfig::default() };
        config
    }

    /// Starts a node.
    pub(crate) fn node(&self, config: Config) -> Service {
        let source = Source { etcd: config.etcd.options().unwrap(), unlock: self.unlock() };
        let server = Server::bind(config, Box::new(source)).unwrap();
        server.unseal(None).unwrap();
        Service::run(server)
    }
}

impl Service {
    /// A request that wants to see a revision.
    pub(crate) fn get_at(&self, token: Option<&Token>, path: &str, revision: u64) -> super::Answer {
        self.send_with("GET", token, path, &[], &[("bulla-min-revision", &revision.to_string())])
    }

    pub(crate) fn sign(&self, token: Option<&Token>, key: &str) -> super::Answer {
        self.post(token, &format!("/api/v1/keys/{key}/sign"), &json!({ "message": base64(b"x") }))
    }

    pub(crate) fn rotate(&self, key: &str) -> super::Answer {
        self.post(None, &format!("/api/v1/keys/{key}/rotate"), &json!({}))
    }
}

impl super::Answer {
    /// The revision in the answer.
    #[track_caller]
    pub(crate) fn revision(&self) -> u64 {
        let value = self.headers.get("bulla-revision").unwrap_or_else(|| panic!("{}", self.text()));
        value.to_str().unwrap().parse().unwrap()
    }
}
