//! Nodes in one process: three, of which two sign, if a test does not say otherwise.

mod callers;
mod changes;
mod signers;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bulla_kms::approval::Overrides;
use bulla_kms::backend::{
    Backend, Backends, Capabilities, GROUP, KeyMaterial, Prepared, PrivateKey, SignRequest, VerifyRequest,
};
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyVersionId, Keystore, KeystoreOptions, NewKey, PublicKey, Result, Verdict,
};
use rcgen::{CertificateParams, KeyPair};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::GroupNode;
use super::peer::Standing;
use crate::config::{GroupConfig, GroupPeerConfig};

const MESSAGE: &[u8] = b"a message";

/// A backend that remembers what it gives the keystore, so that every node can load it.
#[derive(Debug)]
struct Remembering {
    inner: Arc<dyn Backend>,
    made: Arc<Mutex<Vec<KeyMaterial>>>,
}

impl Backend for Remembering {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        self.inner.capabilities(algorithm)
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let made = self.inner.generate(algorithm)?;
        self.made.lock().unwrap().push(made.clone());
        Ok(made)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        self.inner.load(algorithm, material)
    }

    fn destroy(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        self.inner.destroy(algorithm, material)
    }

    fn refresh_shares(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        self.inner.refresh_shares(algorithm, material)
    }

    fn repair_share(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        self.inner.repair_share(algorithm, material)
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        self.inner.prepare(algorithm, public_key)
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        self.inner.verify(request)
    }
}

/// The nodes, which see one keystore.
struct Three {
    nodes: Vec<Option<GroupNode>>,
    configs: Vec<GroupConfig>,
    keystore: Arc<Keystore>,
    /// What the backend made, the first key first.
    made: Arc<Mutex<Vec<KeyMaterial>>>,
    version: KeyVersionId,
    public_key: PublicKey,
    folder: TempDir,
}

fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, bulla_testing::etcd::free_port()).into()
}

/// The settings of three nodes, and of others that may join.
fn configs(folder: &TempDir, count: usize) -> Vec<GroupConfig> {
    let addresses: Vec<_> = (0..count).map(|_| free_address()).collect();
    let digests: Vec<_> = (0..count)
        .map(|number| {
            let key = KeyPair::generate().unwrap();
            let certificate =
                CertificateParams::new([format!("node{number}")]).unwrap().self_signed(&key).unwrap();
            fs::write(folder.path().join(format!("{number}.pem")), certificate.pem()).unwrap();
            fs::write(folder.path().join(format!("{number}.key")), key.serialize_pem()).unwrap();
            hex::encode(Sha256::digest(certificate.der()))
        })
        .collect();
    let peer = |number: usize| GroupPeerConfig {
        name: format!("node{number}").parse().unwrap(),
        address: addresses[number].to_string(),
        certificate_sha256: digests[number].clone(),
    };
    let config = |number: usize| GroupConfig {
        name: format!("node{number}").parse().unwrap(),
        listen: addresses[number],
        folder: folder.path().join(format!("node{number}")),
        certificate: folder.path().join(format!("{number}.pem")),
        key: folder.path().join(format!("{number}.key")),
        threshold: 2,
        timeout_milliseconds: 5000,
        peer: (0..count).filter(|other| *other != number).map(peer).collect(),
    };
    (0..count).map(config).collect()
}

fn new_key(label: &str) -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
        .label(label.parse().unwrap())
        .backend(GROUP.to_owned())
}

impl Three {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configs = configs(&folder, 3);
        Self::start_with(folder, configs)
    }

    fn start_with(folder: TempDir, configs: Vec<GroupConfig>) -> Self {
        let nodes: Vec<_> = configs.iter().map(|config| GroupNode::start(config).unwrap()).collect();
        let made: Arc<Mutex<Vec<KeyMaterial>>> = Arc::default();
        let backend = Remembering { inner: nodes[0].backend(), made: Arc::clone(&made) };
        let backends = Backends::software().clone().with(Arc::new(backend));
        let keystore = Arc::new(KeystoreOptions::default().backends(backends).in_memory().unwrap());
        nodes.iter().for_each(|node| node.attach(&keystore, Overrides::Forbidden));
        let version = keystore.create_key(new_key("releases")).unwrap();
        let public_key = keystore.public_key(&version).unwrap();
        Self {
            nodes: nodes.into_iter().map(Some).collect(),
            configs,
            keystore,
            made,
            version,
            public_key,
            folder,
        }
    }

    fn node(&self, number: usize) -> &GroupNode {
        self.nodes[number].as_ref().unwrap()
    }

    /// The node ends. Whoever asks it afterwards gets no connection.
    fn end(&mut self, number: usize) {
        assert_ne!(number, 0, "the keystore has it");
        self.drop_node(number);
    }

    fn drop_node(&mut self, number: usize) {
        self.nodes[number] = None;
        eventually(|| std::net::TcpStream::connect(self.configs[number].listen).is_err());
    }

    fn start_again(&mut self, number: usize) {
        let node = GroupNode::start(&self.configs[number]).unwrap();
        node.attach(&self.keystore, Overrides::Forbidden);
        self.nodes[number] = Some(node);
    }

    fn key(&self, number: usize) -> Arc<dyn PrivateKey> {
        self.node(number).backend().load(Algorithm::Ed25519, &self.made.lock().unwrap()[0]).unwrap()
    }

    #[track_caller]
    fn signs(&self, number: usize) {
        let signature = self.key(number).sign(MESSAGE).unwrap();
        assert!(self.public_key.verify(MESSAGE, &signature).is_valid());
    }

    fn shares(&self, number: usize) -> usize {
        let entries = fs::read_dir(self.folder.path().join(format!("node{number}"))).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "share"))
            .count()
    }
}

#[track_caller]
fn eventually(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_pair_signs_one_message_or_many_and_too_few_nodes_sign_nothing() {
    let mut three = Three::start();
    let signature = three.keystore.sign(&three.version, MESSAGE).unwrap();
    assert_eq!(three.keystore.verify(&three.version, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
    assert!((0..3).all(|number| three.shares(number) == 1));
    for number in 0..3 {
        // Both of the others have their turn.
        (0..4).for_each(|_| three.signs(number));
    }
    let key = three.key(1);
    let messages: Vec<_> = (0..300_u32).map(u32::to_be_bytes).collect();
    let requests: Vec<_> = messages.iter().map(|message| SignRequest::new(&*key, message)).collect();
    let signatures = three.node(1).backend().sign_many(Algorithm::Ed25519, &requests);
    assert_eq!(signatures.len(), messages.len());
    for (message, signature) in messages.iter().zip(signatures) {
        assert!(three.public_key.verify(message, &signature.unwrap()).is_valid());
    }
    drop(requests);
    drop(key);

    three.end(2);
    (0..4).for_each(|_| three.signs(0));
    (0..4).for_each(|_| three.signs(1));
    three.end(1);
    let error = three.key(0).sign(MESSAGE).unwrap_err();
    assert!(error.code == Code::DeviceUnavailable && error.retryable, "{error}");
    let error = three.key(0).sign(MESSAGE).unwrap_err();
    assert!(error.message.contains("node1: it does not answer; node2: it does not answer"), "{error}");
    // A node that was started again has its share, and none of its nonces.
    three.start_again(2);
    eventually(|| three.key(0).sign(MESSAGE).is_ok());
    (0..2).for_each(|_| three.signs(2));
    // As if nobody had noticed: the other node still has commitments of before.
    three.nodes[2] = None;
    eventually(|| std::net::TcpStream::connect(three.configs[2].listen).is_err());
    three.start_again(2);
    three.signs(0);
}

#[test]
fn a_node_signs_for_another_one_only_what_its_own_keystore_permits() {
    let three = Three::start();
    // It checks nothing: its keystore may be that of an attacker.
    three.node(0).detach();
    three.signs(0);
    three.keystore.disable(three.version.key_id()).unwrap();
    let error = three.key(0).sign(MESSAGE).unwrap_err();
    assert!(error.message.contains("node1: ") && error.message.contains("is disabled"), "{error}");
    three.keystore.enable(three.version.key_id()).unwrap();
    three.signs(0);
    // Sealed nodes give nothing, and are asked again once they are open.
    three.node(1).detach();
    (0..4).for_each(|_| three.signs(0));
    three.node(2).detach();
    let error = three.key(0).sign(MESSAGE).unwrap_err();
    assert!(error.message.contains("the node is sealed"), "{error}");
    three.node(1).attach(&three.keystore, Overrides::Forbidden);
    (0..4).for_each(|_| three.signs(0));
}

#[test]
fn a_key_is_made_by_all_nodes_with_one_threshold_and_destroyed_on_all() {
    let mut three = Three::start();
    let newer = three.keystore.rotate(three.version.key_id()).unwrap();
    assert!((0..3).all(|number| three.shares(number) == 2));
    let signature = three.keystore.sign(three.version.key_id(), MESSAGE).unwrap();
    assert_eq!(signature.key, newer);
    let change = KeyChange::DestroyVersion(NonZeroU32::MIN);
    three.keystore.update(three.version.key_id(), None, &change).unwrap();
    assert!((0..3).all(|number| three.shares(number) == 1));
    assert_eq!(three.key(0).sign(MESSAGE).unwrap_err().code, Code::DeviceUnavailable);
    // A share is not destroyed because a node asks for it.
    let error =
        three.node(1).backend().destroy(Algorithm::Ed25519, &three.made.lock().unwrap()[1]).unwrap_err();
    assert!(error.message.contains("still have their shares"), "{error}");
    // Not all nodes are there.
    three.end(2);
    let error = three.keystore.create_key(new_key("another")).unwrap_err();
    assert!(error.message.contains("node2 does not answer"), "{error}");
    // Another threshold in the settings of one node.
    three.configs[2].threshold = 3;
    three.start_again(2);
    let error = three.keystore.create_key(new_key("another")).unwrap_err();
    assert!(error.message.contains("settings of node0 say that 2 nodes sign"), "{error}");
    assert!((0..3).all(|number| three.shares(number) <= 1));
    // A folder of another node, and one whose key file is missing.
    three.end(2);
    let wrong = GroupConfig { folder: three.configs[1].folder.clone(), ..three.configs[2].clone() };
    assert_eq!(GroupNode::start(&wrong).unwrap_err().code, Code::InvalidArgument);
    fs::remove_file(three.configs[2].folder.join("node.key")).unwrap();
    assert_eq!(GroupNode::start(&three.configs[2]).unwrap_err().code, Code::NotFound);
}
