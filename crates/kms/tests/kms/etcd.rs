//! Keystores in a cluster of etcd: several processes' worth of them, nodes that are killed, and
//! networks that are cut.
#![cfg(feature = "etcd")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bulla_kms::{
    Algorithm, Code, EncryptionOptions, EtcdOptions, KeyFile, KeyId, Keystore, KmsError, NewKey,
    RotationPolicy, Signature, Unlock, UnlockMethod, Verdict,
};

use bulla_testing::etcd::{Cluster, free_port};
use bulla_testing::proxy::Gate;
use bulla_testing::strikes::strikes;

const MESSAGE: &[u8] = b"a message";
/// How long anything may take that has to happen by itself.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A secret that opens keystores.
struct Secret(tempfile::TempDir);

impl Secret {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        KeyFile::create(&folder.path().join("key")).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("key")
    }

    fn unlock(&self) -> Unlock {
        Unlock::KeyFile(self.path())
    }
}

fn options(endpoints: impl IntoIterator<Item = String>) -> EtcdOptions {
    EtcdOptions::new(endpoints, "bulla/tests").timeout(Duration::from_secs(20))
}

fn new_key() -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
}

/// Waits until something is so.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A keystore of one who has little patience, on a machine that may be slow.
fn opened(options: &EtcdOptions, secret: &Secret) -> Keystore {
    let mut keystore = None;
    eventually("it opens", || {
        let opened = Keystore::open_etcd(options, &secret.unlock());
        keystore = opened.map_err(|error| assert!(error.retryable, "{error}")).ok();
        keystore.is_some()
    });
    keystore.expect("it is open")
}

fn head(keystore: &Keystore, key: &KeyId) -> u32 {
    keystore.attest(key).map_or(0, |key| key.latest_version)
}

/// A keystore with a key in it, on a new cluster of three, with each node as the first one of a
/// keystore of its own.
fn three() -> (Cluster, Secret, [Keystore; 3], KeyId) {
    let (cluster, secret) = (Cluster::start(3), Secret::new());
    let endpoints = cluster.endpoints();
    let from = |node: usize| {
        let mut endpoints = endpoints.clone();
        endpoints.rotate_left(node);
        options(endpoints)
    };
    let first = Keystore::create_etcd(&from(0), &secret.unlock()).unwrap();
    let key = first.create_key(new_key()).unwrap().key_id().clone();
    let open = |node| Keystore::open_etcd(&from(node), &secret.unlock()).unwrap();
    let keystores = [first, open(1), open(2)];
    (cluster, secret, keystores, key)
}

#[test]
fn what_one_node_changes_the_others_see_by_themselves() {
    let (_cluster, _secret, keystores, key) = three();
    let old = keystores[1].sign(&key, MESSAGE).unwrap();
    for round in 0..12 {
        let version = keystores[round % 3].rotate(&key).unwrap();
        for keystore in &keystores {
            eventually("a rotation is seen", || head(keystore, &key) == version.version());
            let signature = keystore.sign(&key, MESSAGE).unwrap();
            assert_eq!(signature.key, version, "the new head signs everywhere");
            assert_eq!(keystores[0].verify(&version, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
            assert_eq!(keystore.verify(&old.key, MESSAGE, &old.bytes).unwrap(), Verdict::Valid);
        }
    }
    let other = keystores[2].create_key(new_key().label("other".parse().unwrap())).unwrap();
    keystores[1].catch_up().unwrap();
    assert_eq!(
        keystores[1].find(key.tenant(), &"other".parse().unwrap()).unwrap().as_ref(),
        Some(other.key_id())
    );
    assert_eq!(
        keystores[1].create_key(new_key().label("other".parse().unwrap())).unwrap_err().code,
        Code::LabelTaken
    );
    keystores[1].disable(&key).unwrap();
    eventually("a disabled key is disabled everywhere", || {
        keystores.iter().all(|keystore| keystore.sign(&key, MESSAGE).is_err())
    });
}

/// etcd's count of requests of this kind.
fn handled(cluster: &Cluster, method: &str) -> f64 {
    let metrics = cluster.http(0, "GET", "/metrics", "").expect("etcd has metrics");
    let name = format!("grpc_server_handled_total{{grpc_code=\"OK\",grpc_method=\"{method}\"");
    let number = |line: &str| line.strip_prefix(&name)?.rsplit(' ').next()?.parse::<f64>().ok();
    metrics.lines().filter_map(number).sum()
}

#[test]
fn a_node_that_is_told_of_changes_does_not_ask_for_them() {
    const CHANGES: u32 = 50;
    let (cluster, secret) = (Cluster::start(1), Secret::new());
    let options = options(cluster.endpoints());
    let first = Keystore::create_etcd(&options, &secret.unlock()).unwrap();
    let key = first.create_key(new_key()).unwrap().key_id().clone();
    let others = [(); 3].map(|()| Keystore::open_etcd(&options, &secret.unlock()).unwrap());
    let all_have = |version| others.iter().all(|other| head(other, &key) == version);
    // Once each watch has begun, nothing is missed.
    first.rotate(&key).unwrap();
    eventually("the watches have begun", || all_have(2));
    let before = handled(&cluster, "Range");
    for version in 3..3 + CHANGES {
        first.rotate(&key).unwrap();
        eventually("a rotation is seen", || all_have(version));
    }
    let asked = handled(&cluster, "Range") - before;
    assert_eq!(asked, f64::from(CHANGES), "the node that changes looks first, and nobody else asks");
}

#[test]
fn a_change_of_a_root_key_of_tokens_is_announced_and_other_changes_are_not() {
    let (_cluster, _secret, keystores, key) = three();
    let (changed, changes) = std::sync::mpsc::sync_channel(1);
    keystores[1].set_change_listener(move |change| {
        if change.token_roots_changed {
            let _ = changed.try_send(());
        }
    });
    keystores[0].rotate(&key).unwrap();
    eventually("a rotation is seen", || head(&keystores[1], &key) == 2);
    assert!(changes.recv_timeout(Duration::from_millis(50)).is_err());
    let roots = keystores[1].token_roots();
    let root = NewKey::new("local".parse().unwrap(), "tokens".parse().unwrap(), Algorithm::Ed25519);
    keystores[0].create_key(root).unwrap();
    changes.recv_timeout(WAIT_TIMEOUT).expect("a root key of tokens is announced");
    assert_ne!(keystores[1].token_roots(), roots, "it is seen when it is announced");
}

#[test]
fn writers_on_all_nodes_lose_none_of_each_others_rotations() {
    const EACH: u32 = 15;
    let (_cluster, secret, keystores, key) = three();
    let rotate = |keystore: &Keystore| {
        let version = |_| loop {
            match keystore.rotate(&key) {
                Ok(id) => return id.version(),
                Err(error) => assert_eq!(error.code, Code::Busy, "{error}"),
            }
        };
        (0..EACH).map(version).collect::<Vec<_>>()
    };
    let mut versions: Vec<_> = std::thread::scope(|scope| {
        let threads = keystores.each_ref().map(|keystore| scope.spawn(move || rotate(keystore)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    versions.sort_unstable();
    assert!(versions.iter().copied().eq(2..=1 + 3 * EACH), "each number once: {versions:?}");
    let fresh = Keystore::open_etcd(&options(_cluster.endpoints()), &secret.unlock()).unwrap();
    for keystore in keystores.iter().chain([&fresh]) {
        keystore.catch_up().unwrap();
        assert_eq!(keystore.list().unwrap(), fresh.list().unwrap());
        assert_eq!(head(keystore, &key), 1 + 3 * EACH);
    }
}

#[test]
fn no_version_makes_more_signatures_than_its_bound_on_all_nodes_together() {
    const BOUND: u64 = 200;
    let (_cluster, _secret, keystores, _) = three();
    let rotation = RotationPolicy::default().max_uses(BOUND.try_into().ok());
    let key = keystores[0].create_key(new_key().rotation(rotation)).unwrap().key_id().clone();
    keystores.iter().for_each(|keystore| keystore.catch_up().unwrap());
    let sign = |keystore: &Keystore| {
        let version = |_| loop {
            match keystore.sign(&key, MESSAGE) {
                Ok(signature) => return signature.key.version(),
                // All three make the next version at once.
                Err(error) => assert_eq!(error.code, Code::Busy, "{error}"),
            }
        };
        (0..400).map(version).collect::<Vec<_>>()
    };
    let versions: Vec<_> = std::thread::scope(|scope| {
        let threads = keystores.each_ref().map(|keystore| scope.spawn(move || sign(keystore)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let last = *versions.iter().max().unwrap();
    assert!(last >= 6, "1200 signatures need six versions");
    for version in 1..=last {
        let made = versions.iter().filter(|made| **made == version).count();
        assert!(made as u64 <= BOUND, "version {version} made {made} signatures");
    }
}

#[test]
fn nodes_decrypt_what_others_encrypted_and_count_its_uses_together() {
    const BOUND: u64 = 128;
    let (_cluster, _secret, keystores, _) = three();
    let rotation = RotationPolicy::default().max_uses(BOUND.try_into().ok());
    let new = NewKey::new("local".parse().unwrap(), "rows".parse().unwrap(), Algorithm::Aes256Gcm);
    let key = keystores[0].create_key(new.rotation(rotation)).unwrap().key_id().clone();
    keystores.iter().for_each(|keystore| keystore.catch_up().unwrap());
    let encrypt = |keystore: &Keystore| {
        let made = |_| loop {
            match keystore.encrypt(&key, MESSAGE, &EncryptionOptions::NONE) {
                Ok(made) => return made,
                Err(error) => assert_eq!(error.code, Code::Busy, "{error}"),
            }
        };
        (0..100).map(made).collect::<Vec<_>>()
    };
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads = keystores.each_ref().map(|keystore| scope.spawn(move || encrypt(keystore)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for version in 1..=made.iter().map(|made| made.key.version()).max().unwrap() {
        let uses = made.iter().filter(|made| made.key.version() == version).count();
        assert!(uses as u64 <= BOUND, "version {version} encrypted {uses} times");
    }
    for keystore in &keystores {
        keystore.catch_up().unwrap();
        for made in &made {
            let found = keystore.decrypt(&key, &made.bytes, &EncryptionOptions::NONE).unwrap();
            assert_eq!((&found.key, &**found.bytes), (&made.key, MESSAGE));
        }
    }
}

#[test]
fn no_acknowledged_write_is_lost_when_nodes_are_killed() {
    let (mut cluster, secret, keystores, key) = three();
    let (done, made) = (AtomicBool::new(false), AtomicU32::new(0));
    // Each thread gives the signatures of the versions that were acknowledged to it, and counts
    // what was in doubt.
    let rotate = |keystore: &Keystore| {
        let (mut acknowledged, mut refused, mut doubtful) = (Vec::<Signature>::new(), 0, 0);
        while !done.load(Ordering::SeqCst) {
            match keystore.rotate(&key) {
                // Others may have rotated since; this version has signed nothing then.
                Ok(id) => match keystore.sign(&id, MESSAGE) {
                    Ok(signature) => {
                        acknowledged.push(signature);
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(error) => assert_eq!(error.code, Code::NotLatestVersion, "{error}"),
                },
                Err(error) if error.code == Code::OutcomeUnknown => doubtful += 1,
                Err(error) => {
                    assert!(matches!(error.code, Code::Unavailable | Code::Busy), "{error}");
                    refused += 1;
                }
            }
        }
        (acknowledged, refused, doubtful)
    };
    let some_more = || {
        let from = made.load(Ordering::SeqCst);
        eventually("rotations go on", || made.load(Ordering::SeqCst) > from + 10);
    };
    let rotate = &rotate;
    let results = std::thread::scope(|scope| {
        let threads = keystores.each_ref().map(|keystore| scope.spawn(move || rotate(keystore)));
        for round in 0..6 {
            some_more();
            cluster.kill(round % 3);
            some_more();
            cluster.restart(round % 3);
        }
        some_more();
        done.store(true, Ordering::SeqCst);
        threads.map(|thread| thread.join().unwrap())
    });
    let acknowledged: Vec<_> = results.iter().flat_map(|(acknowledged, _, _)| acknowledged).collect();
    let (refused, doubtful) =
        results.iter().fold((0, 0), |(refused, doubtful), result| (refused + result.1, doubtful + result.2));
    println!("{} acknowledged, {refused} refused, {doubtful} in doubt", acknowledged.len());
    let mut versions: Vec<_> = acknowledged.iter().map(|signature| signature.key.version()).collect();
    versions.sort_unstable();
    assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "no version was given twice: {versions:?}");
    let fresh = Keystore::open_etcd(&options(cluster.endpoints()), &secret.unlock()).unwrap();
    for keystore in keystores.iter().chain([&fresh]) {
        keystore.catch_up().unwrap();
        for signature in &acknowledged {
            let verdict = keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap();
            assert_eq!(verdict, Verdict::Valid, "{}", signature.key);
        }
        assert_eq!(keystore.list().unwrap(), fresh.list().unwrap());
    }
}

#[test]
fn a_node_that_is_cut_off_refuses_changes_and_goes_on_reading_and_all_agree_when_it_is_back() {
    let (cluster, secret, keystores, key) = three();
    for round in 0..3_usize {
        let hasty = options([cluster.endpoint(round)]).timeout(Duration::from_secs(1));
        let alone = opened(&hasty, &secret);
        let signature = alone.sign(&key, MESSAGE).unwrap();
        cluster.isolate(round);
        let start = Instant::now();
        for _ in 0..2 {
            let error = alone.rotate(&key).unwrap_err();
            assert!(matches!(error.code, Code::Unavailable | Code::OutcomeUnknown), "{error}");
            assert!(error.message.contains("bulla/tests"), "{error}");
        }
        let error = alone.rotate(&key).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::Unavailable, true), "{error}");
        assert_eq!(alone.catch_up().unwrap_err().code, Code::Unavailable);
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "refusals take bounded time: {:?}",
            start.elapsed()
        );
        // What was known is still known, and who is not cut off goes on.
        assert_eq!(alone.verify(&signature.key, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
        assert_eq!(alone.sign(&key, MESSAGE).unwrap().key, signature.key);
        let others = [&keystores[(round + 1) % 3], &keystores[(round + 2) % 3]];
        let mut version = 0;
        for keystore in others {
            eventually("the majority goes on", || match keystore.rotate(&key) {
                Ok(id) => {
                    version = id.version();
                    true
                }
                Err(error) => {
                    assert!(matches!(error.code, Code::Unavailable | Code::OutcomeUnknown), "{error}");
                    false
                }
            });
        }
        assert!(head(&alone, &key) < version, "who is cut off does not see it");
        cluster.heal();
        eventually("who was cut off sees it by itself", || head(&alone, &key) >= version);
        eventually("who was cut off changes it again", || alone.rotate(&key).is_ok());
        keystores.iter().chain([&alone]).for_each(|keystore| keystore.catch_up().unwrap());
        let lists = keystores.each_ref().map(|keystore| keystore.list().unwrap());
        assert_eq!(lists[0], alone.list().unwrap());
        assert!(lists.iter().all(|list| *list == lists[0]), "there is one head");
        assert!(head(&alone, &key) > version);
    }
}

/// Whatever is answered about a change is true, when answers are held back and arrive late.
///
/// What is held back may arrive at any time after its round, so each round has a key of its own.
#[test]
fn a_change_without_an_answer_is_never_reported_wrongly() {
    let (cluster, secret) = (Cluster::start(1), Secret::new());
    let way = cluster.way_to(0);
    let direct = Keystore::create_etcd(&options(cluster.endpoints()), &secret.unlock()).unwrap();
    let quick = |endpoints: Vec<String>| options(endpoints).timeout(Duration::from_millis(300));
    // One that can find out over another way, and one that cannot.
    let with_another_way = quick(vec![way.endpoint(), cluster.endpoint(0)]);
    let without = quick(vec![way.endpoint()]);
    let (mut made, mut not_made, mut doubtful) = (0, Vec::new(), 0);
    for options in [with_another_way, without] {
        strikes(25, |delay| {
            let key = direct.create_key(new_key()).unwrap().key_id().clone();
            let keystore = opened(&options, &secret);
            let (result, was_done) = std::thread::scope(|scope| {
                let rotating = scope.spawn(|| keystore.rotate(&key));
                std::thread::sleep(delay);
                let was_done = rotating.is_finished();
                way.set(Gate::Paused);
                let result = rotating.join().unwrap();
                way.set(Gate::Open);
                (result, was_done)
            });
            direct.catch_up().unwrap();
            let now = head(&direct, &key);
            match &result {
                Ok(id) => {
                    made += 1;
                    assert_eq!((id.version(), now), (2, 2), "after {delay:?}");
                }
                Err(KmsError { code: Code::OutcomeUnknown, .. }) => {
                    doubtful += 1;
                    assert!(now == 1 || now == 2, "after {delay:?}: {now}");
                }
                Err(error) => {
                    assert_eq!((error.code, now), (Code::Unavailable, 1), "after {delay:?}: {error}");
                    not_made.push(key);
                }
            }
            eventually("the keystore goes on, and sees what is there", || {
                let both = keystore.catch_up().is_ok() && direct.catch_up().is_ok();
                both && keystore.list().unwrap() == direct.list().unwrap()
            });
            was_done && result.is_ok()
        });
    }
    println!("{made} made, {} not made, {doubtful} in doubt", not_made.len());
    assert!(not_made.iter().all(|key| head(&direct, key) == 1), "what was not made is not made later");
    assert!(made > 0 && !not_made.is_empty(), "{made} made, {} not, {doubtful} in doubt", not_made.len());
}

#[test]
fn a_keystore_that_missed_more_than_etcd_remembers_reads_everything_anew() {
    let (cluster, secret) = (Cluster::start(1), Secret::new());
    let way = cluster.way_to(0);
    let direct = Keystore::create_etcd(&options(cluster.endpoints()), &secret.unlock()).unwrap();
    let key = direct.create_key(new_key()).unwrap().key_id().clone();
    let behind = Keystore::open_etcd(&options([way.endpoint()]), &secret.unlock()).unwrap();
    way.set(Gate::Closed);
    (0..5).for_each(|_| drop(direct.rotate(&key).unwrap()));
    let state = base64("bulla/tests:meta/state");
    let found = cluster.call(0, "/v3/kv/range", &serde_json::json!({ "key": state }));
    let revision = &found["header"]["revision"];
    cluster.call(0, "/v3/kv/compaction", &serde_json::json!({ "revision": revision, "physical": true }));
    assert_eq!(head(&behind, &key), 1);
    way.set(Gate::Open);
    eventually("what was missed is seen", || head(&behind, &key) == 6);
    assert_eq!(behind.rotate(&key).unwrap().version(), 7);
}

fn base64(text: &str) -> String {
    <base64ct::Base64 as base64ct::Encoding>::encode_string(text.as_bytes())
}

#[test]
fn a_keystore_that_is_put_back_while_it_is_open_is_refused() {
    let (cluster, secret) = (Cluster::start(1), Secret::new());
    let keystore = Keystore::create_etcd(&options(cluster.endpoints()), &secret.unlock()).unwrap();
    let key = keystore.create_key(new_key()).unwrap().key_id().clone();
    let all = serde_json::json!({ "key": base64("bulla/tests:"), "range_end": base64("bulla/tests;") });
    let rows = || cluster.call(0, "/v3/kv/range", &all)["kvs"].as_array().unwrap().clone();
    let old = rows();
    keystore.rotate(&key).unwrap();
    // All of it at once, as it was.
    let is_new = |row: &serde_json::Value| old.iter().all(|other| other["key"] != row["key"]);
    let gone = rows().into_iter().filter(is_new);
    let gone = gone.map(|row| serde_json::json!({ "request_delete_range": { "key": row["key"] } }));
    let put = |row: &serde_json::Value| serde_json::json!({ "request_put": { "key": row["key"], "value": row["value"] } });
    let back: Vec<_> = old.iter().map(put).chain(gone).collect();
    let answer = cluster.call(0, "/v3/kv/txn", &serde_json::json!({ "success": back }));
    assert_eq!(answer["succeeded"], true, "{answer}");
    let error = keystore.rotate(&key).unwrap_err();
    assert_eq!(error.code, Code::RolledBack, "{error}");
    assert_eq!(keystore.catch_up().unwrap_err().code, Code::RolledBack);
    assert_eq!(keystore.sign(&key, MESSAGE).unwrap().key.version(), 2, "what was seen is not forgotten");
}

#[test]
fn keystores_of_one_cluster_are_apart_and_secrets_are_those_of_files() {
    let (cluster, secret) = (Cluster::start(1), Secret::new());
    let named = |prefix: &str| EtcdOptions::new(cluster.endpoints(), prefix);
    assert_eq!(Keystore::open_etcd(&named("a"), &secret.unlock()).unwrap_err().code, Code::NotFound);
    let mut keys = Vec::new();
    for prefix in ["a", "a/records", "a/meta", "aa", "A"] {
        let keystore = Keystore::create_etcd(&named(prefix), &secret.unlock()).unwrap();
        keys.push((prefix, keystore.create_key(new_key()).unwrap().key_id().clone()));
    }
    for (prefix, key) in &keys {
        let error = Keystore::create_etcd(&named(prefix), &secret.unlock()).unwrap_err();
        assert_eq!(error.code, Code::AlreadyExists);
        let list = Keystore::open_etcd(&named(prefix), &secret.unlock()).unwrap().list().unwrap();
        assert!(list.len() == 1 && list[0].key == *key, "{prefix} has its own key alone");
    }
    assert_eq!(Keystore::unlock_method_etcd(&named("a")).unwrap(), UnlockMethod::KeyFile);
    let other = Secret::new();
    assert_eq!(Keystore::open_etcd(&named("a"), &other.unlock()).unwrap_err().code, Code::WrongKeyFile);
    let passphrase = Unlock::Passphrase("a".into());
    assert_eq!(Keystore::open_etcd(&named("a"), &passphrase).unwrap_err().code, Code::WrongUnlockMethod);
    for (endpoint, prefix) in [
        ("127.0.0.1:2379", "a"),
        ("https://127.0.0.1:2379", "a"),
        ("http://127.0.0.1", ""),
        ("http://127.0.0.1", "a:b"),
    ] {
        let refused = EtcdOptions::new([endpoint], prefix);
        let error = Keystore::open_etcd(&refused, &secret.unlock()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{endpoint} {prefix}: {error}");
    }
    let nowhere = EtcdOptions::new([format!("http://127.0.0.1:{}", free_port())], "a")
        .timeout(Duration::from_millis(300));
    let error = Keystore::open_etcd(&nowhere, &secret.unlock()).unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Unavailable, true), "{error}");
}
