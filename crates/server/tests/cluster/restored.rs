//! An etcd that is restored from a backup.

use crate::node::{Guarded, Nodes, eventually};
use bulla_testing::etcd::Cluster;
use serde_json::json;

/// Puts etcd back to where it was, while the nodes run and while they do not.
fn put_back(guarded: Guarded) -> (Cluster, Nodes) {
    let mut cluster = Cluster::start(1);
    let mut nodes = Nodes::start(&cluster, 2, guarded);
    let mut client = nodes.all[0].client();
    client.post("/api/v1/keys/default/rotate", &json!({})).expect("an answer");
    cluster.kill(0);
    let backup = cluster.back_up(0);
    cluster.restart(0);
    nodes.wait();
    let rotated = nodes.all[0].client().post("/api/v1/keys/default/rotate", &json!({})).expect("an answer");
    assert_eq!(rotated.body["head"], 3, "{rotated:?}");
    // The other node has it, too.
    let revision = rotated.revision().expect("a revision").to_string();
    let headers = [("bulla-min-revision", revision.as_str())];
    let read = nodes.all[1].client().send("GET", "/api/v1/keys/default", &headers, &json!(null));
    assert_eq!(read.expect("an answer").body["head"], 3);
    cluster.kill(0);
    cluster.restore(0, &backup);
    cluster.restart(0);
    (cluster, nodes)
}

#[test]
fn nodes_that_run_refuse_a_restored_older_copy_and_stop_signing() {
    let (_cluster, nodes) = put_back(Guarded::No);
    for node in &nodes.all {
        eventually("the node notices", || node.log().contains("rolled_back"));
        eventually("the node signs no longer", || node.store().is_none());
        let mut client = node.client();
        let signed = client.post("/api/v1/keys/default/sign", &json!({ "message": "eA==" }));
        assert_eq!(signed.expect("an answer").code(), "unavailable");
        let rotated = client.post("/api/v1/keys/default/rotate", &json!({})).expect("an answer");
        assert_eq!(rotated.code(), "rolled_back", "{rotated:?}");
    }
}

#[test]
fn a_node_with_a_guard_does_not_start_with_a_restored_older_copy() {
    let (_cluster, mut nodes) = put_back(Guarded::Yes);
    for node in &mut nodes.all {
        node.kill();
        let log = node.fails_to_start();
        assert!(log.contains("rolled_back"), "{log}");
    }
}

#[test]
fn without_a_guard_a_node_that_starts_later_takes_the_copy() {
    let (_cluster, mut nodes) = put_back(Guarded::No);
    nodes.all.iter_mut().for_each(|node| node.kill());
    nodes.all[0].spawn();
    eventually("the node serves", || nodes.all[0].store().is_some());
    let read = nodes.all[0].client().get("/api/v1/keys/default").expect("an answer");
    assert_eq!(read.body["head"], 2, "docs/cluster.md says so");
}
