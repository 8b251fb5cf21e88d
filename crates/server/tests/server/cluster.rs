//! Nodes that share a keystore in etcd: what is written through one is read through the others.

use std::time::{Duration, Instant};

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{KeyId, Keystore};
use serde_json::json;

use crate::support::nodes::{Shared, eventually};
use crate::support::tls::{Authority, Until};
use crate::support::{Service, base64, name, token};
use bulla_testing::etcd::Setup;
use bulla_testing::proxy::Gate;

/// Two nodes where every caller may do everything, with the key `a`.
fn two() -> (Shared, [Service; 2]) {
    let shared = Shared::start(1);
    drop(shared.create(&shared.open()));
    let nodes = [(); 2].map(|()| shared.node(shared.open()));
    let answer = nodes[0].post(None, "/api/v1/keys", &json!({ "label": "a" }));
    answer.ok();
    nodes[1].get_at(None, "/api/v1/keys/a", answer.revision()).ok();
    (shared, nodes)
}

#[test]
fn a_change_through_one_node_is_soon_used_by_the_others() {
    let (_shared, [one, other]) = two();
    for version in 2..12 {
        one.rotate("a").ok();
        eventually("the other node signs with it", || other.sign(None, "a").ok()["version"] == version);
    }
}

/// How many requests etcd has answered that read something.
fn reads(shared: &Shared) -> f64 {
    let metrics = shared.cluster.http(0, "GET", "/metrics", "").expect("etcd has metrics");
    let name = "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Range\"";
    let number = |line: &str| line.strip_prefix(name)?.rsplit(' ').next()?.parse::<f64>().ok();
    metrics.lines().filter_map(number).sum()
}

#[test]
fn a_change_of_a_key_has_no_node_ask_etcd_except_the_one_that_makes_it() {
    const CHANGES: u32 = 100;
    let (shared, [one, other]) = two();
    let (start, before) = (Instant::now(), reads(&shared));
    for _ in 0..CHANGES {
        one.rotate("a").ok();
    }
    eventually("the other node has all", || other.sign(None, "a").ok()["version"] == CHANGES + 1);
    let asked = reads(&shared) - before;
    // It looks at the state before each change. Each of the nodes asks once a second for the state,
    // and then for revocations.
    let expected = f64::from(CHANGES) + 4.0 * (start.elapsed().as_secs_f64() + 2.0);
    assert!(asked <= expected, "{asked} reads, {expected} are expected");
}

#[test]
fn a_caller_sees_its_own_writes_on_every_node() {
    let (_shared, nodes) = two();
    for round in 0..60_usize {
        let (writer, reader) = (&nodes[round % 2], &nodes[(round + 1) % 2]);
        let answer = writer.rotate("a");
        let seen = reader.get_at(None, "/api/v1/keys/a", answer.revision());
        assert_eq!(seen.ok()["head"], answer.ok()["head"], "round {round}");
        assert!(seen.revision() >= answer.revision());
        assert!(seen.headers["bulla-age"].to_str().unwrap().parse::<u64>().is_ok());
    }
}

#[test]
fn answers_say_the_revision_where_something_may_have_changed_and_where_somebody_asks() {
    let (_shared, [one, _]) = two();
    let read = one.get(None, "/api/v1/keys/a");
    assert!(!read.headers.contains_key("bulla-revision") && !read.headers.contains_key("bulla-age"));
    let asked = one.get_at(None, "/api/v1/keys/a", 0);
    let same = json!({ "enabled": true }).to_string();
    let unchanged = one.send("PATCH", None, "/api/v1/keys/a", same.as_bytes());
    assert_eq!(unchanged.revision(), asked.revision(), "a caller who finds it done may rely on it, too");
    let vault = one.post(None, "/v1/transit/keys/b", &json!({ "type": "ed25519" }));
    assert!(vault.revision() > asked.revision());
}

#[test]
fn a_revision_that_does_not_come_is_an_error_that_may_be_tried_again() {
    let shared = Shared::start(1);
    drop(shared.create(&shared.open()));
    let mut config = shared.open();
    config.etcd.revision_wait_milliseconds = 100;
    let node = shared.node(config);
    let answer = node.get_at(None, "/api/v1/keys", 1_000_000);
    assert_eq!(answer.error(), (503, "revision_unavailable".to_owned()));
    assert!(answer.json()["retryable"] == true && answer.headers["retry-after"] == "1");
    let vault = node.get_at(None, "/v1/transit/keys/a", 1_000_000);
    assert!(vault.json()["errors"].is_array(), "{}", vault.text());
    for wrong in ["", "-1", "+1", "1 ", "0x1", "18446744073709551616"] {
        let headers = [("bulla-min-revision", wrong)];
        let answer = node.send_with("GET", None, "/api/v1/keys", &[], &headers);
        if wrong != "1 " {
            assert_eq!(answer.error(), (400, "malformed_request".to_owned()), "{wrong:?}");
        }
    }
}

#[test]
fn a_node_by_itself_knows_no_revisions() {
    let service = Service::open();
    let answer = service.post(None, "/api/v1/keys", &json!({ "label": "a" }));
    answer.ok();
    assert!(!answer.headers.contains_key("bulla-revision"));
    let ready = service.get(None, "/api/v1/ready?current=true").ok();
    assert_eq!(ready, json!({ "ready": true, "sealed": false }));
}

/// A keystore with a root key, and two nodes whose callers need tokens.
fn two_closed() -> (Shared, Keystore, [Service; 2]) {
    let shared = Shared::start(1);
    let keystore = shared.create(&shared.closed());
    keystore.create_token_root(&name("local")).unwrap();
    let nodes = [(); 2].map(|()| shared.node(shared.closed()));
    (shared, keystore, nodes)
}

#[test]
fn a_token_that_one_node_revokes_is_refused_by_all_and_after_a_start() {
    let (shared, keystore, nodes) = two_closed();
    for (writer, reader) in [(0, 1), (1, 0)] {
        let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
        for node in &nodes {
            node.get(Some(&token), "/api/v1/keys").ok();
        }
        let answer = nodes[writer].post(Some(&token), "/api/v1/tokens/revoke", &json!({}));
        answer.ok();
        let read = nodes[reader].get_at(Some(&token), "/api/v1/keys", answer.revision());
        assert_eq!(read.error(), (403, "forbidden".to_owned()));
        assert_eq!(nodes[writer].get(Some(&token), "/api/v1/keys").error().0, 403);
        let late = shared.node(shared.closed());
        assert_eq!(late.get(Some(&token), "/api/v1/keys").error().0, 403, "a new node knows it");
    }
    // Without the header, too.
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    nodes[1].get(Some(&token), "/api/v1/keys").ok();
    nodes[0].post(Some(&token), "/api/v1/tokens/revoke", &json!({})).ok();
    eventually("the other node refuses it", || nodes[1].get(Some(&token), "/api/v1/keys").status == 403);
}

#[test]
fn a_token_that_one_node_revokes_is_refused_by_all_whatever_ended_before() {
    let shared = Shared::start(1);
    let keystore = shared.create(&shared.open());
    keystore.create_token_root(&name("local")).unwrap();
    let nodes = [(); 2].map(|()| shared.node(shared.open()));
    let tokens = [(); 3].map(|()| token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]));
    let ended = |id: &str| json!({ "revocation_id": id, "expires": "1971-01-01T00:00:00.000Z" });
    for (round, token) in tokens.iter().enumerate() {
        let [one, other] = [&nodes[round % 2], &nodes[(round + 1) % 2]];
        let id = token.inspect().unwrap().blocks[0].revocation_id.clone();
        let revoke = |node: &Service, body| node.post(None, "/api/v1/tokens/revoke", &body).revision();
        let revision = revoke(one, ended(&format!("0{round}")));
        other.get_at(Some(token), "/api/v1/keys", revision).ok();
        let revision = revoke(one, json!({ "revocation_id": id }));
        assert_eq!(other.get_at(Some(token), "/api/v1/keys", revision).status, 403, "{round}");
        // Nobody takes it back, also on the node that did not revoke it.
        revoke(other, ended(&id));
    }
    nodes.iter().chain([&shared.node(shared.open())]).for_each(|node| {
        tokens.iter().for_each(|token| assert_eq!(node.get(Some(token), "/api/v1/keys").status, 403));
    });
}

#[test]
fn revocations_in_etcd_are_unreadable_and_nobody_forges_them() {
    let (shared, keystore, nodes) = two_closed();
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let id = nodes[0].get(Some(&token), "/api/v1/tokens/self").ok()["revocation_ids"][0].clone();
    nodes[0].post(Some(&token), "/api/v1/tokens/revoke", &json!({})).ok();
    let table = bulla_etcd::EtcdTable::open(&shared.closed().etcd.options().unwrap()).unwrap();
    let rows = table.read("revoked", 0).unwrap().0;
    assert_eq!(rows.len(), 1);
    assert!(!String::from_utf8_lossy(&rows[0].value).contains(id.as_str().unwrap()));
    // A row in another place does not count: the nodes say that they cannot follow the store.
    table.insert("revoked/00", &rows[0].value, None).unwrap();
    let metrics = || nodes[1].get(Some(&operator(&keystore)), "/metrics").text();
    eventually("the node notices", || !metrics().contains("bulla_store_sync_failures_total 0"));
}

fn operator(keystore: &Keystore) -> bulla_kms::token::Token {
    token(keystore, "local", GrantedKeys::All, TokenOperation::ALL)
}

#[test]
fn a_root_key_that_one_node_disables_makes_no_caller_of_another() {
    let (_shared, keystore, nodes) = two_closed();
    let token = operator(&keystore);
    for node in &nodes {
        node.get(Some(&token), "/api/v1/keys").ok();
    }
    let root: KeyId = keystore.find(&name("local"), &name("tokens")).unwrap().unwrap();
    keystore.catch_up().unwrap();
    keystore.disable(&root).unwrap();
    for node in &nodes {
        eventually("the node verifies the token again", || {
            node.get(Some(&token), "/api/v1/keys").status == 403
        });
    }
}

#[test]
fn a_request_with_an_idempotency_key_is_made_once_on_all_nodes() {
    let (_shared, nodes) = two();
    let post = |node: usize, path: &str, key: &str, body: &serde_json::Value| {
        let headers = [("idempotency-key", key)];
        nodes[node].send_with("POST", None, path, body.to_string().as_bytes(), &headers)
    };
    let first = post(0, "/api/v1/keys/a/rotate", "k1", &json!({}));
    let again = post(1, "/api/v1/keys/a/rotate", "k1", &json!({}));
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["content-type"], first.headers["content-type"]);
    assert_eq!(first.ok()["head"], 2);
    let mismatch = (409, "idempotency_key_reused".to_owned());
    assert_eq!(post(1, "/api/v1/keys", "k1", &json!({})).error(), mismatch);
    // An error is an answer, too; one that may be tried again is none.
    assert_eq!(post(0, "/api/v1/keys", "k2", &json!({ "label": "a" })).error().1, "label_taken");
    assert_eq!(
        post(1, "/api/v1/keys", "k2", &json!({ "label": "a" })).headers["idempotency-replayed"],
        "true"
    );
    // A secret is not kept, and is not made twice.
    let mint = json!({ "operations": ["read"], "expires_in_seconds": 60 });
    post(0, "/api/v1/tokens", "k3", &mint).ok();
    let again = post(1, "/api/v1/tokens", "k3", &mint);
    assert_eq!((again.error(), &again.json()["retryable"]), ((409, "conflict".to_owned()), &json!(false)));
}

#[test]
fn an_idempotency_key_belongs_to_its_caller_on_all_nodes() {
    let (_shared, keystore, nodes) = two_closed();
    let [one, other] = [(); 2].map(|()| operator(&keystore));
    nodes[0].post(Some(&one), "/api/v1/keys", &json!({ "label": "a" })).ok();
    let rotate = |node: &Service, token| {
        node.send_with("POST", Some(token), "/api/v1/keys/a/rotate", b"{}", &[("idempotency-key", "k")])
    };
    assert_eq!(rotate(&nodes[0], &one).ok()["head"], 2);
    eventually("the other node has the key", || rotate(&nodes[1], &other).status == 200);
    let again = rotate(&nodes[0], &other);
    assert_eq!(
        (again.ok()["head"].clone(), &again.headers["idempotency-replayed"]),
        (json!(3), &"true".parse().unwrap())
    );
}

#[test]
fn many_at_once_on_all_nodes_make_one_change() {
    let (_shared, nodes) = two();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let post = |node: &Service| {
            node.send_with("POST", None, "/api/v1/keys/a/rotate", b"{}", &[("idempotency-key", "k")])
        };
        let threads: Vec<_> = (0..12)
            .map(|n| {
                scope.spawn({
                    let node = &nodes[n % 2];
                    move || post(node)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(answer.error(), (409, "conflict".to_owned()));
        assert_eq!(answer.json()["retryable"], true);
    }
    let made = answers.iter().find(|answer| answer.status == 200).expect("one of them made it");
    for node in &nodes {
        assert_eq!(node.get_at(None, "/api/v1/keys/a", made.revision()).ok()["head"], 2);
    }
}

#[test]
fn a_limit_of_uses_is_one_for_all_nodes() {
    let (_shared, nodes) = two();
    let body = json!({ "label": "b", "rotation": { "max_uses": 20 } });
    let answer = nodes[0].post(None, "/api/v1/keys", &body);
    answer.ok();
    nodes[1].get_at(None, "/api/v1/keys/b", answer.revision()).ok();
    let mut uses = std::collections::BTreeMap::<u64, u32>::new();
    for round in 0..100 {
        let signed = nodes[round % 2].sign(None, "b").ok();
        *uses.entry(signed["version"].as_u64().unwrap()).or_default() += 1;
    }
    assert!(uses.values().all(|uses| *uses <= 20), "{uses:?}");
    assert!(uses.len() >= 5, "{uses:?}");
}

#[test]
fn nodes_share_the_rate_of_a_caller() {
    const BURST: u32 = 40;
    let shared = Shared::start(1);
    let keystore = shared.create(&shared.closed());
    keystore.create_token_root(&name("local")).unwrap();
    let mut config = shared.closed();
    config.limits.request_rate = Some(bulla_server::RequestRate {
        per_second: 1.try_into().unwrap(),
        burst: BURST.try_into().unwrap(),
    });
    let nodes = [(); 2].map(|()| shared.node(config.clone()));
    for node in &nodes {
        eventually("it has counted both", || node.get(None, "/api/v1/ready").json()["store"]["nodes"] == 2);
    }
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let start = Instant::now();
    let passes = |node: &Service| {
        (0..2 * BURST).filter(|_| node.get(Some(&token), "/api/v1/keys").status == 200).count()
    };
    let passed = nodes.each_ref().map(passes);
    let most = BURST as usize / 2 + 1 + start.elapsed().as_secs() as usize;
    assert!(passed.iter().all(|passed| (BURST as usize / 2..=most).contains(passed)), "{passed:?}");
    // The one that is left gets the whole rate.
    let [one, other] = nodes;
    drop(other);
    eventually("it is alone", || one.get(None, "/api/v1/ready").json()["store"]["nodes"] == 1);
    assert!(one.get(Some(&operator(&keystore)), "/metrics").text().contains("\nbulla_cluster_nodes 1\n"));
}

#[test]
fn a_node_without_etcd_verifies_and_signs_no_longer_than_the_settings_say() {
    let shared = Shared::start(1);
    drop(shared.create(&shared.open()));
    let other = shared.node(shared.open());
    let way = shared.cluster.way_to(0);
    let mut config = shared.open();
    config.etcd.endpoints = vec![way.endpoint()];
    (config.etcd.key_use_lease_seconds, config.etcd.request_timeout_seconds) = (2, 1);
    let node = shared.node(config);
    node.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let signed = node.sign(None, "a").ok();
    let verify = json!({ "message": base64(b"x"), "signature": signed["signature"], "version": 1 });
    let verifies = || node.post(None, "/api/v1/keys/a/verify", &verify).ok()["valid"] == true;
    let ready = |path: &str| node.get(None, path);
    assert_eq!(ready("/api/v1/ready?current=true").ok()["store"]["stale"], false);
    way.set(Gate::Closed);
    let change = node.rotate("a");
    assert_eq!(
        (change.error(), &change.json()["retryable"]),
        ((503, "unavailable".to_owned()), &json!(true))
    );
    eventually("it signs no longer", || node.sign(None, "a").status == 503);
    assert_eq!(node.sign(None, "a").error(), (503, "unavailable".to_owned()));
    assert!(verifies());
    let answer = ready("/api/v1/ready");
    assert!(answer.ok()["store"]["stale"] == true && answer.json()["store"]["age"].as_u64() > Some(2000));
    assert_eq!(ready("/api/v1/ready?current=true").status, 503);
    let metrics = node.get(None, "/metrics").text();
    assert!(
        metrics.contains("\nbulla_key_use_lease_expired 1\n")
            && metrics.contains("\nbulla_store_view_age_seconds ")
    );
    // The first question may still wait for its answer.
    eventually("the node counts its failures", || {
        !node.get(None, "/metrics").text().contains("bulla_store_sync_failures_total 0")
    });
    // Meanwhile, the others go on. What was acknowledged there is known here before it signs again.
    let disabled = json!({ "enabled": false }).to_string();
    other.send("PATCH", None, "/api/v1/keys/a", disabled.as_bytes()).ok();
    way.set(Gate::Open);
    eventually("it asks etcd again", || node.sign(None, "a").status != 503);
    assert_eq!(node.sign(None, "a").error(), (409, "key_disabled".to_owned()));
    eventually("it is current", || {
        node.get(None, "/metrics").text().contains("\nbulla_key_use_lease_expired 0\n")
    });
}

#[test]
fn a_node_that_was_sealed_learns_what_it_missed() {
    let (_shared, keystore, nodes) = two_closed();
    let (token, other) = (operator(&keystore), operator(&keystore));
    nodes[1].post(Some(&token), "/api/v1/operator/seal", &json!({})).ok();
    assert_eq!(nodes[1].get(Some(&other), "/api/v1/keys").error().1, "sealed");
    assert_eq!(nodes[1].get(None, "/api/v1/ready").json()["store"], json!(null));
    // Every node that is open answers clients of Vault itself.
    let leads = |node: &Service| {
        let leader = node.get(None, "/v1/sys/leader").ok();
        assert_eq!(leader["ha_enabled"], true);
        leader["is_self"].as_bool().unwrap()
    };
    assert!(leads(&nodes[0]) && !leads(&nodes[1]));
    nodes[0].post(Some(&other), "/api/v1/tokens/revoke", &json!({})).ok();
    nodes[1].post(None, "/api/v1/operator/unseal", &json!({ "passphrase": "none" })).ok();
    assert_eq!(nodes[1].get(Some(&other), "/api/v1/keys").error().0, 403);
    nodes[1].get(Some(&token), "/api/v1/keys").ok();
}

#[test]
fn nodes_reach_etcd_by_tls_with_certificates_of_both_sides() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (member, client) =
        (authority.certify("127.0.0.1", Until::Future), authority.certify("node", Until::Future));
    let (ca, cert) = (file("ca.pem", &authority.pem), file("member.pem", &member.pem));
    let key = file("member.key", &member.key_pem);
    let named = |flag: &str, path: &std::path::Path| [format!("--{flag}"), path.display().to_string()];
    let arguments = [named("cert-file", &cert), named("key-file", &key), named("trusted-ca-file", &ca)];
    let mut arguments: Vec<_> = arguments.into_iter().flatten().collect();
    arguments.push("--client-cert-auth".to_owned());
    let shared = Shared::with(1, Setup { arguments, tls: true });
    let mut config = shared.open();
    config.etcd.ca = Some(ca);
    let without = config.clone();
    config.etcd.certificate = Some(file("client.pem", &client.pem));
    config.etcd.key = Some(file("client.key", &client.key_pem));
    drop(shared.create(&config));
    let node = shared.node(config);
    node.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    node.sign(None, "a").ok();
    let mut refused = without.etcd.options().unwrap();
    refused.timeout = Duration::from_millis(500);
    let error = Keystore::open_etcd(&refused, &shared.unlock()).unwrap_err();
    assert!(error.retryable, "{error}");
}

#[test]
fn nodes_need_no_more_of_etcd_than_the_keys_of_their_prefix() {
    let shared = Shared::start(1);
    let text = |text: &str| base64(text.as_bytes());
    let range = json!({ "permType": "READWRITE", "key": text("bulla:"), "range_end": text("bulla;") });
    for (path, body) in [
        ("auth/user/add", json!({ "name": "root", "password": "of the root" })),
        ("auth/user/grant", json!({ "user": "root", "role": "root" })),
        ("auth/role/add", json!({ "name": "bulla" })),
        ("auth/role/grant", json!({ "name": "bulla", "perm": range })),
        ("auth/user/add", json!({ "name": "bulla", "password": "of the role" })),
        ("auth/user/grant", json!({ "user": "bulla", "role": "bulla" })),
        ("auth/enable", json!({})),
    ] {
        let answer = shared.cluster.call(0, &format!("/v3/{path}"), &body);
        assert!(answer.get("error").is_none(), "{path}: {answer}");
    }
    let password = shared.path().join("password");
    std::fs::write(&password, "of the role\n").unwrap();
    let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&password, only_owner).unwrap();
    let mut config = shared.open();
    (config.etcd.user, config.etcd.password_file) = (Some("bulla".to_owned()), Some(password));
    drop(shared.create(&config));
    let nodes = [(); 2].map(|()| shared.node(config.clone()));
    let headers = [("idempotency-key", "k")];
    let made = nodes[0].send_with("POST", None, "/api/v1/keys", br#"{"label":"a"}"#, &headers);
    made.ok();
    nodes[1].get_at(None, "/api/v1/keys/a", made.revision()).ok();
    nodes[1].sign(None, "a").ok();
}
