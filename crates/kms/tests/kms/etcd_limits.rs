//! Keystores in etcd where something is guarded or runs out: TLS, users, quotas, and processes that
//! are killed.
#![cfg(feature = "etcd")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bulla_kms::{
    Algorithm, Code, EtcdClientCertificate, EtcdOptions, EtcdTls, EtcdUser, KeyFile, Keystore, KmsError,
    NewKey, SecretString, Signature, Unlock, Verdict,
};
use serde_json::json;

use crate::support::child::again;
use bulla_testing::etcd::{Cluster, Setup};

const MESSAGE: &[u8] = b"a message";
const CHILD: &str = "BULLA_KMS_TEST_ETCD";

fn new_key() -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
}

fn secret(folder: &Path) -> Unlock {
    let path = folder.join("key");
    if !path.exists() {
        KeyFile::create(&path).unwrap();
    }
    Unlock::KeyFile(path)
}

fn openssl(folder: &Path, arguments: &str) {
    let arguments = arguments.split(' ').map(|argument| argument.replace('@', &folder.display().to_string()));
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and a certificate of it that serves both sides.
fn certificates(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    std::fs::write(
        folder.join("ext"),
        "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n",
    )
    .unwrap();
    let curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(folder, &format!("req -x509 {curve} -days 2 -subj /CN=authority -keyout @/ca.key -out @/ca.pem"));
    openssl(folder, &format!("req {curve} -subj /CN=node -keyout @/node.key -out @/node.csr"));
    openssl(
        folder,
        "x509 -req -in @/node.csr -CA @/ca.pem -CAkey @/ca.key -CAcreateserial -days 2 -extfile @/ext -out @/node.pem",
    );
}

fn tls(folder: &Path, certified: bool) -> EtcdTls {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let private_key = || SecretString::from(String::from_utf8(read("node.key")).unwrap());
    let client_certificate = certified
        .then(|| EtcdClientCertificate { certificate: read("node.pem"), private_key: private_key() });
    EtcdTls::new(read("ca.pem")).client_certificate(client_certificate)
}

#[test]
fn tls_proves_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    certificates(&ours);
    certificates(&theirs);
    let file = |name: &str| ours.join(name).display().to_string();
    let arguments = [
        "--cert-file".to_owned(),
        file("node.pem"),
        "--key-file".to_owned(),
        file("node.key"),
        "--trusted-ca-file".to_owned(),
        file("ca.pem"),
        "--client-cert-auth".to_owned(),
    ];
    let cluster = Cluster::with(1, Setup { arguments: arguments.into(), tls: true });
    let unlock = secret(folder.path());
    let options = |tls: EtcdTls| {
        EtcdOptions::new(cluster.endpoints(), "bulla").tls(tls).timeout(Duration::from_millis(1500))
    };
    let patient = options(tls(&ours, true)).timeout(Duration::from_secs(10));
    let keystore = Keystore::create_etcd(&patient, &unlock).unwrap();
    let id = keystore.create_key(new_key()).unwrap();
    let keystore = Keystore::open_etcd(&patient, &unlock).unwrap();
    assert_eq!(keystore.sign(&id, MESSAGE).unwrap().key, id);
    // Without a certificate of our own, with one of another authority, and when theirs is of
    // another authority.
    let mut stranger = tls(&theirs, true);
    stranger.authorities = tls(&ours, false).authorities;
    for refused in [tls(&ours, false), stranger, tls(&theirs, true)] {
        let error = Keystore::open_etcd(&options(refused), &unlock).unwrap_err();
        assert_eq!(error.code, Code::Unavailable, "{error}");
    }
    let bare = options(tls(&ours, true)).tls(None);
    assert_eq!(Keystore::open_etcd(&bare, &unlock).unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn a_user_may_do_what_the_role_permits_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let unlock = secret(folder.path());
    let cluster = Cluster::start(1);
    let text = |text: &str| <base64ct::Base64 as base64ct::Encoding>::encode_string(text.as_bytes());
    let range = json!({ "permType": "READWRITE", "key": text("mine:"), "range_end": text("mine;") });
    for (path, body) in [
        ("user/add", json!({ "name": "root", "password": "of the root" })),
        ("user/grant", json!({ "user": "root", "role": "root" })),
        ("role/add", json!({ "name": "bulla" })),
        ("role/grant", json!({ "name": "bulla", "perm": range })),
        ("user/add", json!({ "name": "bulla", "password": "of the role" })),
        ("user/grant", json!({ "user": "bulla", "role": "bulla" })),
        ("auth/enable", json!({})),
    ] {
        let path =
            if path.starts_with("auth/e") { format!("/v3/{path}") } else { format!("/v3/auth/{path}") };
        let answer = cluster.call(0, &path, &body);
        assert!(answer.get("error").is_none(), "{path}: {answer}");
    }
    let options = |prefix: &str, password: &str| {
        EtcdOptions::new(cluster.endpoints(), prefix)
            .user(EtcdUser { name: "bulla".to_owned(), password: password.into() })
    };
    let keystore = Keystore::create_etcd(&options("mine", "of the role"), &unlock).unwrap();
    let key = keystore.create_key(new_key()).unwrap().key_id().clone();
    assert_eq!(keystore.rotate(&key).unwrap().version(), 2);
    let other = Keystore::open_etcd(&options("mine", "of the role"), &unlock).unwrap();
    assert_eq!(other.list().unwrap(), keystore.list().unwrap());
    for refused in [
        options("theirs", "of the role"),
        options("mine", "guessed"),
        EtcdOptions::new(cluster.endpoints(), "mine"),
    ] {
        let error = Keystore::open_etcd(&refused.timeout(Duration::from_secs(20)), &unlock).unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied, "{error}");
        assert!(
            !error.message.contains("guessed") && !format!("{error:?}").contains("of the role"),
            "{error:?}"
        );
    }
}

/// What a full disk is to a file.
#[test]
fn a_full_quota_is_an_error_that_loses_nothing_and_passes() {
    let folder = tempfile::tempdir().unwrap();
    let unlock = secret(folder.path());
    let arguments = ["--quota-backend-bytes".to_owned(), (2 << 20).to_string()];
    let cluster = Cluster::with(1, Setup { arguments: arguments.into(), tls: false });
    let keystore = Keystore::create_etcd(&EtcdOptions::new(cluster.endpoints(), "bulla"), &unlock).unwrap();
    let key = keystore.create_key(new_key()).unwrap().key_id().clone();
    let mut head = 1;
    let error = loop {
        match keystore.rotate(&key) {
            Ok(id) => head = id.version(),
            Err(error) => break error,
        }
        assert!(head < 5000, "the quota is reached");
    };
    assert_eq!((error.code, error.retryable), (Code::StorageFull, true), "{error}");
    assert_eq!(keystore.sign(&key, MESSAGE).unwrap().key.version(), head);
    assert_eq!(keystore.rotate(&key).unwrap_err().code, Code::StorageFull);
    make_room(&cluster);
    assert_eq!(keystore.rotate(&key).unwrap().version(), head + 1);
    let again = Keystore::open_etcd(&EtcdOptions::new(cluster.endpoints(), "bulla"), &unlock).unwrap();
    assert_eq!(again.list().unwrap(), keystore.list().unwrap());
}

/// etcd checks its quota when a request arrives, and again when it carries the request out. The
/// second time it reports that there is no space although it made the change.
#[test]
fn a_change_that_is_refused_for_lack_of_space_was_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let unlock = secret(folder.path());
    // With a batch limit of 1 the database grows with every change, and not every 100 ms.
    let quota = ["--quota-backend-bytes=2097152".to_owned(), "--backend-batch-limit=1".to_owned()];
    let cluster = Cluster::with(1, Setup { arguments: quota.into(), tls: false });
    let options = EtcdOptions::new(cluster.endpoints(), "bulla");
    let keystore = Keystore::create_etcd(&options, &unlock).unwrap();
    let key = keystore.create_key(new_key()).unwrap().key_id().clone();
    let table = bulla_etcd::EtcdTable::open(&options).unwrap();
    let (mut head, mut rows) = (1, 0);
    for round in 0..40 {
        let change = || {
            if round % 2 == 0 {
                keystore.rotate(&key).map(|id| head = id.version())
            } else {
                table
                    .insert(&format!("folder/{rows}"), b"a value", None)
                    .map(|_| rows += 1)
                    .map_err(KmsError::from)
            }
        };
        let error = change_until_full(&cluster, change);
        assert_eq!(error.code, Code::StorageFull, "{error}");
        keystore.catch_up().unwrap();
        assert_eq!(keystore.attest(&key).unwrap().latest_version, head, "a refused rotation was made");
        assert_eq!(table.get(&format!("folder/{rows}")).unwrap(), None, "a refused row was added");
        make_room(&cluster);
    }
}

/// Makes changes while others fill the database, until one fails.
fn change_until_full(cluster: &Cluster, mut change: impl FnMut() -> Result<(), KmsError>) -> KmsError {
    let large = json!({ "key": "enp6", "value": "A".repeat(700_000) });
    std::thread::scope(|scope| {
        // Three pass the first check together, and so does a change that comes at the same time.
        for _ in 0..3 {
            scope.spawn(|| (0..3).for_each(|_| drop(cluster.call(0, "/v3/kv/put", &large))));
        }
        loop {
            if let Err(error) = change() {
                return error;
            }
        }
    })
}

/// Does what the keeper of a cluster does when its database is full.
fn make_room(cluster: &Cluster) {
    let found = cluster.call(0, "/v3/kv/range", &json!({ "key": "AA==" }));
    cluster.call(
        0,
        "/v3/kv/compaction",
        &json!({ "revision": found["header"]["revision"], "physical": true }),
    );
    cluster.call(0, "/v3/maintenance/defragment", &json!({}));
    let alarms = cluster.call(0, "/v3/maintenance/alarm", &json!({ "action": "GET" }));
    let member = &alarms["alarms"][0]["memberID"];
    let disarm = json!({ "action": "DEACTIVATE", "memberID": member, "alarm": "NOSPACE" });
    cluster.call(0, "/v3/maintenance/alarm", &disarm);
}

#[test]
fn no_acknowledged_version_is_lost_when_the_process_that_writes_is_killed() {
    if let Ok(place) = std::env::var(CHILD) {
        let (endpoint, folder) = place.split_once(' ').unwrap();
        let options = EtcdOptions::new([endpoint], "bulla");
        let keystore = Keystore::open_etcd(&options, &secret(Path::new(folder))).unwrap();
        let key = keystore.list().unwrap().swap_remove(0).key;
        loop {
            let id = keystore.rotate(&key).unwrap();
            let signature = serde_json::to_string(&keystore.sign(&id, MESSAGE).unwrap()).unwrap();
            std::io::stdout().write_all(format!("\nchild: {signature}\n").as_bytes()).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let unlock = secret(folder.path());
    let cluster = Cluster::start(1);
    let options = EtcdOptions::new(cluster.endpoints(), "bulla");
    let keystore = Keystore::create_etcd(&options, &unlock).unwrap();
    let key = keystore.create_key(new_key()).unwrap().key_id().clone();
    let mut head = 1;
    for round in 0..20_u32 {
        let test = "etcd_limits::no_acknowledged_version_is_lost_when_the_process_that_writes_is_killed";
        let mut child = again(test)
            .env(CHILD, format!("{} {}", cluster.endpoint(0), folder.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told =
            lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix("child: ")?.to_owned()));
        let mut told = told.take(1 + round as usize % 5);
        let mut signatures: Vec<String> = told.by_ref().collect();
        std::thread::sleep(Duration::from_micros(u64::from(round) * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        signatures.retain(|line| line.ends_with('}'));
        keystore.catch_up().unwrap();
        let now = keystore.attest(&key).unwrap().latest_version;
        for line in &signatures {
            let signature: Signature = serde_json::from_str(line).unwrap();
            assert!(signature.key.version() <= now, "{} is lost: the head is {now}", signature.key);
            let verdict = keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap();
            assert_eq!(verdict, Verdict::Valid);
        }
        assert!(!signatures.is_empty() && now >= head + signatures.len() as u32);
        head = now;
    }
    let again = Keystore::open_etcd(&options, &unlock).unwrap();
    assert_eq!(again.list().unwrap(), keystore.list().unwrap());
}
