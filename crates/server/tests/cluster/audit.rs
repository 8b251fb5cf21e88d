//! The audit logs of nodes: whatever happens to the log of one node, another node's command finds
//! it.

use crate::node::{Guarded, Node, Nodes, eventually};
use bulla_testing::bulla;
use bulla_testing::etcd::Cluster;
use bulla_testing::proxy::Gate;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nodes that keep audit logs, each of which has signed.
struct Logs {
    // The first field, so that the nodes end before etcd.
    nodes: Nodes,
    cluster: Cluster,
}

/// What the command says of one log.
#[derive(Debug)]
struct LogFinding {
    status: String,
    kinds: Vec<String>,
    line: Value,
}

impl Logs {
    fn start(count: usize) -> Self {
        let cluster = Cluster::start(1);
        let mut nodes = Nodes::start(&cluster, count, Guarded::No);
        nodes.all[0].create("audit-log");
        for node in &mut nodes.all {
            node.stop();
            node.spawn();
        }
        nodes.wait();
        let logs = Self { cluster, nodes };
        (0..count).for_each(|node| logs.sign(node, 3));
        (0..count).for_each(|node| logs.wait_for_checkpoint(node));
        logs
    }

    fn sign(&self, node: usize, times: usize) {
        let mut client = self.nodes.all[node].client();
        for _ in 0..times {
            let signed = client.post("/api/v1/keys/default/sign", &json!({ "message": "eA==" }));
            assert!(signed.as_ref().is_ok_and(|answer| answer.is_ok()), "{signed:?}");
        }
    }

    /// Waits until etcd has a checkpoint of all that a node has recorded.
    fn wait_for_checkpoint(&self, node: usize) {
        let folder = self.folder(node);
        let id = log_id(&folder);
        eventually("etcd has the newest checkpoint", || {
            let entries = lines(&folder).iter().filter(|line| line.starts_with("{\"n\"")).count() as u64;
            let (_, found) = self.verify(node, &[]);
            let found = found.iter().find(|found| found.line["log"] == *id);
            found.is_some_and(|found| size(&found.line) == Some(entries))
        });
    }

    fn folder(&self, node: usize) -> PathBuf {
        self.nodes.all[node].folder().join("audit-log")
    }

    /// The exit status of the command on a node, and what it says of each log.
    fn verify(&self, node: usize, more: &[&str]) -> (i32, Vec<LogFinding>) {
        verify(&self.nodes.all[node], more)
    }

    /// What the first node's command says of all logs, if it may ask the other nodes.
    fn verify_all(&self) -> (i32, Vec<LogFinding>) {
        let others = &self.nodes.all[1..];
        let places: Vec<_> = others.iter().map(|node| format!("unix:{}", node.socket().display())).collect();
        let arguments: Vec<_> = places.iter().flat_map(|place| ["--node", place]).collect();
        self.verify(0, &arguments)
    }
}

/// How many entries the newest checkpoint in etcd seals.
fn size(line: &Value) -> Option<u64> {
    line["checkpoint"].as_str()?.lines().nth(1)?.parse().ok()
}

fn verify(node: &Node, more: &[&str]) -> (i32, Vec<LogFinding>) {
    let mut command = Command::new(bulla());
    command.args(["log", "verify", "--cluster", "--json", "--config"]);
    let done = command.arg(node.folder().join("serve.toml")).args(more).output().expect("it runs");
    let text = String::from_utf8_lossy(&done.stdout);
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let found = lines.map(|line: Value| {
        let read = line["read"].as_array().into_iter().flatten();
        let problems = read.flat_map(|read| read["problems"].as_array().into_iter().flatten());
        let problems = line["problems"].as_array().into_iter().flatten().chain(problems);
        let kinds = problems.map(|problem| problem["kind"].as_str().expect("a kind").to_owned()).collect();
        LogFinding {
            status: line["status"].as_str().expect("a status").to_owned(),
            kinds,
            line: line.clone(),
        }
    });
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty() || !done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    (done.status.code().expect("a status"), found)
}

/// What is said of one log.
fn of<'a>(found: &'a [LogFinding], id: &str) -> &'a LogFinding {
    found.iter().find(|found| found.line["log"] == *id).unwrap_or_else(|| panic!("{id}: {found:?}"))
}

const FIRST: &str = "00000000000000000000.jsonl";

fn lines(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join(FIRST)).expect("the log is there");
    text.lines().map(str::to_owned).collect()
}

fn log_id(folder: &Path) -> String {
    let header: Value = serde_json::from_str(&lines(folder)[0]).expect("a header");
    header["log"].as_str().expect("a number").to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in fs::read_dir(from).expect("the folder is there") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("it is copied");
    }
}

#[test]
fn all_logs_of_running_nodes_verify_and_one_that_nobody_shows_is_named() {
    let logs = Logs::start(3);
    let (status, found) = logs.verify_all();
    assert_eq!((status, found.len()), (0, 3), "{found:?}");
    assert!(found.iter().all(|found| found.status == "ok" && found.line["running"] == true), "{found:?}");
    let (status, found) = logs.verify(0, &[]);
    assert_eq!((status, found.len()), (2, 3), "{found:?}");
    assert_eq!(of(&found, &log_id(&logs.folder(0))).status, "ok");
    assert_eq!(of(&found, &log_id(&logs.folder(1))).status, "not_read");
    let folder = logs.folder(1);
    let (_, found) = logs.verify(0, &["--log", folder.to_str().expect("text")]);
    assert_eq!(of(&found, &log_id(&folder)).status, "ok", "a folder is as good as an address");
}

#[test]
fn a_log_whose_folder_is_gone_is_missed_by_the_others() {
    let mut logs = Logs::start(2);
    let (folder, id) = (logs.folder(1), log_id(&logs.folder(1)));
    let kept = logs.nodes.all[0].folder().join("kept");
    copy(&folder, &kept);
    logs.nodes.all[1].kill();
    fs::remove_dir_all(&folder).expect("it is removed");
    // The node begins another log, and does not hide that there was one.
    logs.nodes.all[1].spawn();
    logs.nodes.wait();
    logs.sign(1, 1);
    assert_ne!(log_id(&folder), id);
    eventually("the log is missed", || of(&logs.verify_all().1, &id).kinds == ["lost"]);
    let (status, found) = logs.verify_all();
    assert_eq!((status, found.len()), (1, 3), "{found:?}");
    let (status, found) = logs.verify(0, &["--log", kept.to_str().expect("text")]);
    assert_eq!(of(&found, &id).status, "ok", "a copy is enough: {found:?}");
    assert_eq!(status, 2, "nobody has shown the new log");
}

#[test]
fn a_log_that_is_cut_under_a_running_node_is_found() {
    let logs = Logs::start(2);
    let (folder, id) = (logs.folder(1), log_id(&logs.folder(1)));
    let kept = lines(&folder);
    fs::write(folder.join(FIRST), kept[..3].join("\n") + "\n").expect("it is cut");
    let (status, found) = logs.verify_all();
    assert_eq!(status, 1);
    assert!(of(&found, &id).kinds.contains(&"truncated".to_owned()), "{found:?}");
}

#[test]
fn an_entry_that_is_rewritten_is_found() {
    let logs = Logs::start(2);
    let (folder, id) = (logs.folder(1), log_id(&logs.folder(1)));
    let text = fs::read_to_string(folder.join(FIRST)).expect("it is read");
    fs::write(folder.join(FIRST), text.replacen("\"sign\"", "\"verify\"", 1)).expect("it is rewritten");
    let (status, found) = logs.verify_all();
    assert_eq!(status, 1);
    assert!(of(&found, &id).kinds.contains(&"altered".to_owned()), "{found:?}");
}

#[test]
fn an_older_copy_of_a_log_is_found_and_its_node_refuses_it() {
    let mut logs = Logs::start(2);
    let (folder, id) = (logs.folder(1), log_id(&logs.folder(1)));
    let older = logs.nodes.all[0].folder().join("older");
    copy(&folder, &older);
    logs.sign(1, 5);
    logs.wait_for_checkpoint(1);
    logs.nodes.all[1].stop();
    let newest = logs.nodes.all[0].folder().join("newest");
    fs::rename(&folder, &newest).expect("it is put away");
    copy(&older, &folder);
    let before = fs::read(folder.join(FIRST)).expect("it is read");
    let (status, found) = logs.verify(0, &["--log", folder.to_str().expect("text")]);
    assert_eq!((status, &*of(&found, &id).kinds), (1, &["truncated".to_owned()][..]), "{found:?}");
    let said = logs.nodes.all[1].fails_to_start();
    assert!(said.contains("audit_log_corrupt") && said.contains("which a checkpoint signs"), "{said}");
    assert_eq!(fs::read(folder.join(FIRST)).expect("it is read"), before, "nothing is written");
    // With the right log, it starts.
    fs::remove_dir_all(&folder).expect("it is removed");
    fs::rename(&newest, &folder).expect("it is put back");
    logs.nodes.all[1].spawn();
    logs.nodes.wait();
}

#[test]
fn two_nodes_with_one_log_are_found() {
    let mut logs = Logs::start(3);
    let (folder, id) = (logs.folder(1), log_id(&logs.folder(1)));
    logs.nodes.all[1].stop();
    logs.nodes.all[2].stop();
    fs::remove_dir_all(logs.folder(2)).expect("it is removed");
    copy(&folder, &logs.folder(2));
    for node in &mut logs.nodes.all[1..] {
        node.spawn();
    }
    logs.nodes.wait();
    logs.sign(1, 2);
    logs.sign(2, 2);
    eventually("the fork is found", || logs.verify(0, &[]).1.iter().any(|found| found.kinds == ["forked"]));
    assert_eq!(logs.verify(0, &[]).0, 1);
    // Neither of the two contains the other one's checkpoint.
    let (status, found) = logs.verify_all();
    assert!(status == 1 && of(&found, &id).kinds.len() >= 2, "{found:?}");
}

#[test]
fn checkpoints_that_somebody_removes_from_etcd_or_invents_are_found() {
    let logs = Logs::start(2);
    let id = log_id(&logs.folder(1));
    let others = logs.folder(0).join("others");
    eventually("the first node remembers the log", || {
        fs::read_to_string(&others).is_ok_and(|text| text.contains(&id))
    });
    logs.nodes.all[1].set_ways(Gate::Closed);
    let etcd = &logs.cluster;
    let run = |arguments: &[&str]| {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", etcd.endpoint(0)).args(arguments);
        let done = command.output().expect("etcdctl runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run(&["del", "--prefix", &format!("bulla/tests:service/logs/{id}/")]);
    let (status, found) = logs.verify(0, &["--log", logs.folder(1).to_str().expect("text")]);
    assert_eq!((status, &*of(&found, &id).kinds), (1, &["removed".to_owned()][..]), "{found:?}");
    let line = fs::read_to_string(&others).expect("it is read");
    let forged = line.lines().next().expect("a line").replacen("\\n", "\\n9", 1);
    run(&["put", &format!("bulla/tests:service/logs/{id}/forged"), &forged]);
    let (status, found) = logs.verify(0, &[]);
    assert_eq!(status, 1);
    assert!(found.iter().any(|found| found.kinds == ["bad_signature"]), "{found:?}");
}

#[test]
fn without_etcd_a_log_goes_on_and_its_checkpoint_arrives_afterwards() {
    let mut logs = Logs::start(1);
    logs.nodes.all[0].set_ways(Gate::Closed);
    logs.sign(0, 2);
    let folder = logs.folder(0);
    let sealed = || lines(&folder).last().is_some_and(|line| line.starts_with("{\"checkpoint\""));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    logs.sign(0, 1);
    eventually("the log seals its entries without etcd", sealed);
    logs.nodes.all[0].set_ways(Gate::Open);
    logs.nodes.wait();
    logs.wait_for_checkpoint(0);
}
