//! Keys that no node has whole: three nodes, of which two sign.

use crate::group_liar::{Liar, NodeIdentity, PeerConnection};
use crate::node::{Guarded, Node, Nodes, eventually};
use bulla_kms::approval::{ApprovalDecision, ApprovalRequest, ApprovalRule, Approver};
use bulla_kms::{Algorithm, KeyId, Keystore, NewKey};
use bulla_testing::etcd::{Cluster, free_port};
use bulla_testing::proxy::{Gate, Proxy};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const COUNT: usize = 3;
pub(crate) const KEY: &str = "releases";
/// For how long a node waits for another one.
const PEER_TIMEOUT: Duration = Duration::from_secs(2);

/// Three nodes of a group. From each to each other one there is a way of its own; that from the
/// first to the last one can lie.
pub(crate) struct Group {
    // The first field, so that the nodes end before the rest.
    nodes: Nodes,
    ways: Vec<Vec<Option<Proxy>>>,
    liar: Liar,
    identities: Vec<Arc<NodeIdentity>>,
    ports: Vec<u16>,
    cluster: Cluster,
}

impl Group {
    /// Starts the nodes, with audit logs, and makes a key.
    pub(crate) fn start() -> Self {
        let cluster = Cluster::start(1);
        let identities: Vec<_> =
            (0..COUNT).map(|number| Arc::new(NodeIdentity::new(&format!("node{number}")))).collect();
        let ports: Vec<_> = (0..COUNT).map(|_| free_port()).collect();
        let liar = Liar::start(&identities[0], &identities[2], ports[2]);
        let target = |from: usize, to: usize| if (from, to) == (0, 2) { liar.port() } else { ports[to] };
        let way = |from: usize, to: usize| (from != to).then(|| Proxy::start(target(from, to)));
        let ways: Vec<Vec<_>> = (0..COUNT).map(|from| (0..COUNT).map(|to| way(from, to)).collect()).collect();
        let mut nodes = Nodes::start_with(&cluster, COUNT, Guarded::No, |number, folder| {
            identities[number].write(folder);
            let mut settings = format!(
                "[group]\nname = \"node{number}\"\nlisten = \"127.0.0.1:{}\"\nfolder = \"{1}/group\"\n\
                 certificate = \"{1}/group.pem\"\nkey = \"{1}/group.key\"\nthreshold = 2\n\
                 timeout_milliseconds = {2}\n",
                ports[number],
                folder.display(),
                PEER_TIMEOUT.as_millis(),
            );
            for (identity, way) in identities.iter().zip(&ways[number]) {
                let Some(way) = way else { continue };
                settings += &format!(
                    "\n[[group.peer]]\nname = \"{}\"\naddress = \"127.0.0.1:{}\"\ncertificate_sha256 = \"{}\"\n",
                    identity.name(),
                    way.port(),
                    identity.sha256(),
                );
            }
            settings
        });
        nodes.all[0].create("audit-log");
        for node in &mut nodes.all {
            node.stop();
            node.spawn();
        }
        nodes.wait();
        let group = Self { nodes, ways, liar, identities, ports, cluster };
        let new = json!({ "purpose": "files", "label": KEY, "backend": "group" });
        let made = group.node(0).client().post("/api/v1/keys", &new).expect("an answer");
        assert!(made.is_ok(), "{made:?}");
        for node in 0..COUNT {
            eventually("every node signs with the new key", || group.try_sign(node, "eA==").is_ok());
        }
        group
    }

    pub(crate) fn node(&self, number: usize) -> &Node {
        &self.nodes.all[number]
    }

    pub(crate) fn stop_node(&mut self, number: usize) {
        self.nodes.all[number].stop();
    }

    /// Starts a node again, and waits until the others ask it.
    pub(crate) fn start_node(&mut self, number: usize) {
        self.nodes.all[number].spawn();
        self.nodes.wait();
        eventually("the node is asked again", || {
            (0..COUNT).all(|node| self.metric(node, "bulla_group_nodes") == 3)
        });
    }

    pub(crate) fn etcd_folder(&self) -> &Path {
        self.cluster.folder()
    }

    /// Signs on one node. Returns the signature and the version.
    fn try_sign(&self, node: usize, message: &str) -> Result<(String, u64), String> {
        let path = format!("/api/v1/keys/{KEY}/sign");
        let signed = self.node(node).client().post(&path, &json!({ "message": message })).expect("an answer");
        match signed.is_ok() {
            true => {
                let signature = signed.body["signature"].as_str().expect("a signature").to_owned();
                Ok((signature, signed.body["version"].as_u64().expect("a version")))
            }
            false => Err(signed.body.to_string()),
        }
    }

    /// Signs on one node, and verifies on another one.
    #[track_caller]
    pub(crate) fn sign(&self, node: usize, message: &str) {
        let (signature, _) = self.try_sign(node, message).unwrap_or_else(|error| panic!("{error}"));
        self.verify((node + 1) % COUNT, message, &signature);
    }

    #[track_caller]
    fn verify(&self, node: usize, message: &str, signature: &str) {
        let path = format!("/api/v1/keys/{KEY}/verify");
        let body = json!({ "message": message, "signature": signature });
        let verified = self.node(node).client().post(&path, &body).expect("an answer");
        assert_eq!(verified.body["valid"], true, "{verified:?}");
    }

    fn set_way(&self, from: usize, to: usize, gate: Gate) {
        self.ways[from][to].as_ref().expect("two nodes").set(gate);
    }

    /// The value of a metric of a node.
    fn metric(&self, node: usize, name: &str) -> u64 {
        let socket = self.node(node).socket();
        let text = text_of(&socket, "/metrics");
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{name}: {text}"))
    }

    fn shares(&self, node: usize) -> Vec<Vec<u8>> {
        let folder = self.node(node).folder().join("group");
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let is_share = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "share");
        entries.filter(is_share).map(|path| fs::read(path).expect("a share")).collect()
    }
}

/// A page that is no JSON.
fn text_of(socket: &Path, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("the node listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: bulla\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// What the audit log of a node says.
fn audit_lines(node: &Node) -> String {
    let entries = fs::read_dir(node.folder().join("audit-log")).expect("a log");
    let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    paths.map(|path| String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned()).collect()
}

#[test]
fn every_pair_signs_and_each_node_records_its_part() {
    let group = Group::start();
    for node in 0..COUNT {
        assert_eq!(group.shares(node).len(), 1);
        for other in (0..COUNT).filter(|other| *other != node) {
            let third = COUNT - node - other;
            group.set_way(node, third, Gate::Closed);
            let before = group.metric(other, "bulla_group_parts_total");
            for number in 0..3 {
                group.sign(node, &format!("AAA{number}"));
            }
            assert!(group.metric(other, "bulla_group_parts_total") >= before + 3);
            let entry = format!("node node{node}");
            assert!(audit_lines(group.node(other)).contains(&entry), "node {other} records it");
            group.set_way(node, third, Gate::Open);
            eventually("the node is asked again", || group.metric(node, "bulla_group_nodes") == 3);
        }
    }
    let document = include_str!("../../../../spec/http-api.md");
    let names: Vec<_> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|name| name.starts_with("bulla_group_"))
        .collect();
    assert_eq!(names.len(), 5);
    for name in names {
        group.metric(1, name);
    }
    // Many at once, for the usual endpoint.
    let items: Vec<_> = (0..64).map(|number| json!({ "message": format!("AA{:02}", number) })).collect();
    let signed = group.node(1).client().post("/api/v1/sign", &json!({ "key": KEY, "items": items }));
    let signed = signed.expect("an answer").body;
    for (number, result) in signed["results"].as_array().expect("results").iter().enumerate() {
        group.verify(0, &format!("AA{number:02}"), result["signature"].as_str().expect("a signature"));
    }
    // A new version has new shares, and the old signatures verify.
    let (old, _) = group.try_sign(0, "eA==").expect("a signature");
    let rotated = group.node(2).client().post(&format!("/api/v1/keys/{KEY}/rotate"), &json!({}));
    assert!(rotated.as_ref().is_ok_and(|answer| answer.is_ok()), "{rotated:?}");
    assert!((0..COUNT).all(|node| group.shares(node).len() == 2));
    eventually("every node signs with the new version", || {
        (0..COUNT).all(|node| group.try_sign(node, "eA==").is_ok_and(|(_, version)| version == 2))
    });
    let body = json!({ "message": "eA==", "signature": old, "version": 1 });
    let verified = group.node(1).client().post(&format!("/api/v1/keys/{KEY}/verify"), &body);
    assert_eq!(verified.expect("an answer").body["valid"], true);
}

#[test]
fn a_silent_node_costs_one_timeout_and_a_restart_repeats_no_nonce() {
    let mut group = Group::start();
    // The node hangs: whoever asks it first waits, and nobody else.
    group.set_way(0, 1, Gate::Paused);
    let slow = (0..4).map(|_| {
        let begin = Instant::now();
        group.sign(0, "eA==");
        begin.elapsed()
    });
    let slow = slow.filter(|took| *took >= PEER_TIMEOUT).count();
    assert!(slow <= 1, "{slow} signatures waited");
    // With both of the others away, the error names them.
    group.set_way(0, 2, Gate::Closed);
    let _ = group.try_sign(0, "eA==");
    let error = group.try_sign(0, "eA==").unwrap_err();
    assert!(error.contains("node1: it does not answer") && error.contains("node2: it does not answer"));
    group.set_way(0, 1, Gate::Open);
    group.set_way(0, 2, Gate::Open);
    eventually("the nodes are asked again", || group.metric(0, "bulla_group_nodes") == 3);

    // The last node is killed twice between two requests. Its nonces of before are gone.
    let mut prepared = HashSet::new();
    for _ in 0..3 {
        for _ in 0..4 {
            group.sign(0, "eA==");
        }
        group.nodes.all[2].kill();
        group.nodes.all[2].spawn();
        group.nodes.wait();
        eventually("the node is asked again", || group.metric(0, "bulla_group_nodes") == 3);
    }
    for answer in group.liar.answers() {
        let nonces = [&answer["ready"]["nonces"], &answer["signed"]["nonces"]];
        for nonce in nonces.into_iter().filter_map(Value::as_array).flatten() {
            assert!(prepared.insert(nonce["commitments"].to_string()), "the nonces are there twice");
        }
    }
    let mut used = HashSet::new();
    for request in group.liar.requests() {
        for order in request["sign"]["orders"].as_array().into_iter().flatten() {
            assert!(used.insert(order["nonce"].to_string()), "an order has the nonces of another one");
        }
    }
    assert!(prepared.len() > 128 && used.len() >= 3, "{} {}", prepared.len(), used.len());
}

type Lie = fn(&Value, &mut Value, &[Value]);

/// What a node that was taken over answers to an order.
fn lies() -> [(&'static str, Lie); 4] {
    [
        ("alters", |_, answer, _| {
            if let Some(signed) = answer["signed"]["parts"].get(0).cloned() {
                // A part with another value of the same form.
                let part = signed["part"].as_str().expect("a part");
                let first = if part.starts_with('A') { "B" } else { "A" };
                answer["signed"]["parts"][0]["part"] = json!(format!("{first}{}", &part[1..]));
            }
        }),
        ("replays", |_, answer, before| {
            if answer["signed"].is_object() {
                let old = before.iter().find(|old| old["signed"]["parts"][0]["part"].is_string());
                answer["signed"]["parts"] = old.expect("an answer of before")["signed"]["parts"].clone();
            }
        }),
        ("says nonsense", |_, answer, _| {
            if answer["signed"].is_object() {
                *answer = json!({ "destroyed": {} });
            }
        }),
        ("sends too few", |_, answer, _| {
            if answer["signed"].is_object() {
                answer["signed"]["parts"] = json!([]);
            }
        }),
    ]
}

#[test]
fn a_node_that_lies_is_named_and_left_out_and_the_others_sign() {
    let mut group = Group::start();
    for (name, lie) in lies() {
        group.liar.lie(lie);
        for _ in 0..4 {
            group.sign(0, "eA==");
        }
        assert!(group.metric(0, "bulla_group_wrong_messages_total") >= 1, "{name}");
        assert_eq!(group.metric(0, "bulla_group_nodes"), 2, "{name}");
        let log = group.node(0).log();
        assert!(log.contains("left out") && log.contains("node2"), "{name}: {log}");
        group.liar.lie(|_, _, _| ());
        // It forgets who lied.
        group.nodes.all[0].stop();
        group.nodes.all[0].spawn();
        group.nodes.wait();
        for _ in 0..2 {
            group.sign(0, "eA==");
        }
    }

    // A coordinator lies: it sends an order twice, and one for a key that is disabled.
    let is_order = |request: &&Value| request["sign"]["orders"].is_array();
    let order = group.liar.requests().iter().rev().find(is_order).expect("an order").clone();
    let mut connection =
        PeerConnection::open(group.ports[2], &group.identities[0], &group.identities[2]).expect("it listens");
    let answer = connection.call(&order).expect("an answer");
    assert_eq!(answer["signed"]["parts"][0]["refused"]["reason"], "nonces-spent", "{answer}");
    let mut fresh = order;
    fresh["sign"]["orders"][0]["nonce"] = answer["signed"]["nonces"][0]["id"].clone();
    let commitments = answer["signed"]["nonces"][0]["commitments"].clone();
    fresh["sign"]["orders"][0]["order"]["commitments"]["node2"] = commitments;
    let path = format!("/api/v1/keys/{KEY}");
    let disabled = group.node(2).client().send("PATCH", &path, &[], &json!({ "enabled": false }));
    assert!(disabled.as_ref().is_ok_and(|answer| answer.is_ok()), "{disabled:?}");
    let answer = connection.call(&fresh).expect("an answer");
    let refused = &answer["signed"]["parts"][0]["refused"];
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("is disabled")), "{answer}");
    // A stranger gets no connection.
    let stranger = NodeIdentity::new("node0");
    let refused = PeerConnection::open(group.ports[2], &stranger, &group.identities[2])
        .and_then(|mut connection| connection.call(&json!({ "card": {} })));
    assert!(refused.is_err(), "{refused:?}");
}

/// A rule by which one person approves each use, and that person's keystore.
fn rule_of_ann() -> (Keystore, KeyId, ApprovalRule) {
    let own = Keystore::in_memory().expect("a keystore");
    let purpose = "own".parse().expect("a name");
    let new = NewKey::new("local".parse().expect("a name"), purpose, Algorithm::Ed25519);
    let key = own.create_key(new).expect("a key");
    let public_key = own.public_key(&key).expect("a public key");
    let ann = Approver { name: "ann".parse().expect("a name"), public_key };
    let rule = ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(3600).expect("it is not zero"));
    (own, key.key_id().clone(), rule)
}

#[test]
fn a_coordinator_that_lies_about_approvals_gets_no_part() {
    let group = Group::start();
    let (own, anns, rule) = rule_of_ann();
    let path = format!("/api/v1/keys/{KEY}");
    let changed = group.node(1).client().send("PATCH", &path, &[], &json!({ "approval_rule": rule }));
    assert!(changed.as_ref().is_ok_and(|answer| answer.is_ok()), "{changed:?}");
    for node in 0..COUNT {
        eventually("every node has the rule", || {
            group.try_sign(node, "eA==").is_err_and(|error| error.contains("approval_required"))
        });
    }
    // The last node signs with the first one, on the way that somebody sees.
    group.set_way(0, 1, Gate::Closed);
    let subject = json!({ "operation": "sign", "digest": bulla_blake3::hash(b"x").to_string(), "size": 1 });
    let body = json!({ "key": KEY, "subject": subject, "reason": "a test" });
    let made = group.node(1).client().post("/api/v1/approvals", &body).expect("an answer");
    assert!(made.is_ok(), "{made:?}");
    let request: ApprovalRequest = serde_json::from_value(made.body["request"].clone()).expect("a request");
    let approve = ApprovalDecision::Approve;
    let statement = own.sign_approval(&anns, &request, &"ann".parse().expect("a name"), approve);
    let decision = json!({ "approver": "ann", "signature": statement.expect("a statement").signature });
    let path = format!("/api/v1/approvals/{}/approve", request.id);
    let approved = group.node(2).client().post(&path, &decision).expect("an answer");
    assert_eq!(approved.body["state"], "approved", "{approved:?}");
    let sign = json!({ "message": "eA==", "approval": request.id });
    let signed = group.node(0).client().post(&format!("/api/v1/keys/{KEY}/sign"), &sign).expect("an answer");
    assert!(signed.is_ok(), "{signed:?}");
    group.verify(1, "eA==", signed.body["signature"].as_str().expect("a signature"));
    assert!(audit_lines(group.node(2)).contains(&request.id.to_string()), "the signer records the request");

    let is_order = |request: &&Value| request["sign"]["orders"].is_array();
    let mut order = group.liar.requests().iter().rev().find(is_order).expect("an order").clone();
    order["sign"]["refill"] = json!(1);
    let mut connection =
        PeerConnection::open(group.ports[2], &group.identities[0], &group.identities[2]).expect("it listens");
    let mut answer = connection.call(&order).expect("an answer");
    let before = group.metric(2, "bulla_group_refused_parts_total");
    let mut ask = |change: &dyn Fn(&mut Value)| {
        let mut changed = order.clone();
        changed["sign"]["orders"][0]["nonce"] = answer["signed"]["nonces"][0]["id"].clone();
        change(&mut changed["sign"]["orders"][0]);
        answer = connection.call(&changed).expect("an answer");
        answer["signed"]["parts"][0].clone()
    };
    type Lie<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let lies: [Lie<'_>; 5] = [
        ("is used only when 1 of its approvers", &|order| drop(order["approval"].take())),
        ("is about something else", &|order| order["order"]["message"] = json!("eQ==")),
        ("needs approvals of 1 people", &|order| order["approval"]["request"]["requester"] = json!("eve")),
        ("needs approvals of 1 people", &|order| order["approval"]["statements"] = json!([])),
        ("allow_approval_override", &|order| order["approval"]["override_reason"] = json!("now")),
    ];
    for (why, lie) in &lies {
        let part = ask(lie);
        let message = part["refused"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{why}: {part}");
    }
    assert_eq!(group.metric(2, "bulla_group_refused_parts_total"), before + lies.len() as u64);
    assert!(audit_lines(group.node(2)).matches("approval_required").count() >= lies.len());
    // What was approved gets its part.
    let part = ask(&|_| ());
    assert!(part["part"].is_string(), "{part}");
}
