//! Nodes on which nothing happens by itself. No thread follows the store for them, and their
//! keystores learn of changes only on the test's own thread.

use std::thread::{self, ThreadId};

use axum::http::StatusCode;
use bulla_kms::rollback::{RollbackGuard, StoreMark};
use bulla_kms::{Algorithm, KeyFile, KeystoreOptions, NewKey, Unlock};
use bulla_testing::etcd::Cluster;

use super::*;
use crate::cluster::{ClaimOutcome, RequestClaim, presence};
use crate::service::{AnswerOwner, PriorRequest, RequestOutcome, StoredAnswer};

/// Has one thread alone learn of changes.
#[derive(Debug)]
struct OnlyOn {
    thread: ThreadId,
    /// The moment at which a change was read last.
    read: Mutex<Option<BootInstant>>,
}

impl RollbackGuard for OnlyOn {
    fn check(&self, _mark: &StoreMark) -> Result<()> {
        if thread::current().id() != self.thread {
            return Err(KmsError::new(Code::InvalidArgument, "this thread learns of no changes"));
        }
        let now = BootInstant::now();
        // What comes after this has a later moment.
        while BootInstant::now() == now {
            std::hint::spin_loop();
        }
        *locked(&self.read) = Some(now);
        Ok(())
    }

    fn advance(&self, _mark: &StoreMark) -> Result<()> {
        Ok(())
    }
}

/// A keystore in etcd.
struct Shared {
    keystore: Keystore,
    settings: EtcdConfig,
    unlock: Unlock,
    _cluster: Cluster,
    _folder: tempfile::TempDir,
}

impl Shared {
    fn create() -> Self {
        let (cluster, folder) = (Cluster::start(1), tempfile::tempdir().unwrap());
        let settings = EtcdConfig { endpoints: cluster.endpoints(), ..EtcdConfig::default() };
        let file = folder.path().join("key");
        KeyFile::create(&file).unwrap();
        let unlock = Unlock::KeyFile(file);
        let keystore = Keystore::create_etcd(&settings.options().unwrap(), &unlock).unwrap();
        Self { keystore, settings, unlock, _cluster: cluster, _folder: folder }
    }

    /// Makes a change of which the nodes do not know.
    fn change(&self) {
        let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
        self.keystore.create_key(new).unwrap();
    }

    fn node(&self) -> Node {
        let guard = Arc::new(OnlyOn { thread: thread::current().id(), read: Mutex::default() });
        let options = KeystoreOptions::default().guard(Arc::<OnlyOn>::clone(&guard));
        let keystore = options.open_etcd(&self.settings.options().unwrap(), &self.unlock).unwrap();
        let (keystore, cluster) = (Arc::new(keystore), ClusterNode::new(&self.settings));
        let (attached, _) = cluster.connect(&keystore, None).unwrap();
        cluster.attached.store(Some(Arc::clone(&attached)));
        Node { guard, keystore, cluster, attached }
    }

    fn is_known_to(&self, node: &Node) -> bool {
        node.keystore.revision() == self.keystore.revision()
    }
}

struct Node {
    guard: Arc<OnlyOn>,
    keystore: Arc<Keystore>,
    cluster: ClusterNode,
    attached: Arc<AttachedKeystore>,
}

impl Node {
    fn begin(&self) -> ClaimOutcome {
        let owner = AnswerOwner { tenant: "local".parse().unwrap(), actor: "alice".parse().unwrap() };
        self.cluster.begin(&self.keystore, &owner, "k", [1; 32]).unwrap()
    }

    /// Begins the request, which is new.
    fn run(&self) -> RequestClaim {
        match self.begin() {
            ClaimOutcome::Run(claim) => claim,
            ClaimOutcome::Prior(before) => panic!("{before:?}"),
        }
    }

    /// Repeats the request.
    fn repeat(&self) -> PriorRequest {
        match self.begin() {
            ClaimOutcome::Run(_) => panic!("the request runs twice"),
            ClaimOutcome::Prior(before) => before,
        }
    }

    fn end(&self, claim: RequestClaim) {
        self.cluster.end(&self.keystore, claim, &RequestOutcome::Answered(answer()));
    }

    /// Has etcd say that the node is there.
    fn come(&self) {
        self.attached.table.insert(&presence::row(&self.attached.name), b"there", None).unwrap();
    }

    /// Has etcd forget the node.
    fn go(&self) {
        let row = presence::row(&self.attached.name);
        assert!(self.attached.table.replace(&row, b"there", None).unwrap());
    }
}

fn answer() -> StoredAnswer {
    StoredAnswer { status: StatusCode::OK, content_type: None, body: "done".into() }
}

#[test]
fn the_time_in_which_a_node_uses_private_keys_starts_before_it_asks_for_the_newest_state() {
    let shared = Shared::create();
    let node = shared.node();
    shared.change();
    *locked(&node.guard.read) = None;
    node.cluster
        .sync(&node.attached, &node.keystore, &mut FollowerState::default(), SyncCause::Notified)
        .unwrap();
    let read = locked(&node.guard.read).expect("it reads the change");
    let counted_from = node.cluster.lease.renewed_at().expect("it knows the newest state");
    assert!(counted_from <= read, "{counted_from:?} is after {read:?}");
}

#[test]
fn a_request_of_a_node_that_is_gone_has_ended_and_nobody_learns_how() {
    let shared = Shared::create();
    let [one, other] = [(); 2].map(|()| shared.node());
    one.come();
    let claim = one.run();
    assert_eq!(other.repeat(), PriorRequest::Running);
    one.go();
    assert_eq!(other.repeat(), PriorRequest::Unkept);
    // What a caller was told stays so when the node comes back.
    one.come();
    one.end(claim);
    assert_eq!(other.repeat(), PriorRequest::Unkept);
}

#[test]
fn a_node_knows_the_newest_state_before_it_runs_a_request_or_answers_its_repetition() {
    let shared = Shared::create();
    let [one, other] = [(); 2].map(|()| shared.node());
    shared.change();
    let claim = one.run();
    assert!(shared.is_known_to(&one));
    one.end(claim);
    shared.change();
    assert_eq!(other.repeat(), PriorRequest::Answered(answer()));
    assert!(shared.is_known_to(&other));
}
