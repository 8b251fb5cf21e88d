//! Nodes that are replaced one after another behind haproxy, while clients go on.

use crate::client::{Client, ListenAddress};
use crate::node::{Guarded, Node, Nodes, eventually};
use bulla_testing::etcd::{Cluster, free_port};
use bulla_testing::proxy::Gate;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// haproxy before three nodes, with the configuration in `ops/`.
pub(crate) struct Balancer {
    process: Child,
    port: u16,
    socket: PathBuf,
    // Dropped last.
    folder: tempfile::TempDir,
}

impl Balancer {
    pub(crate) fn start(nodes: &[Node]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (port, socket) = (free_port(), folder.path().join("haproxy"));
        let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/haproxy/haproxy.cfg");
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f"]).arg(settings).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("BULLA_BIND", format!("127.0.0.1:{port}")).env("BULLA_HAPROXY_SOCKET", &socket);
        for (number, node) in nodes.iter().enumerate() {
            command.env(format!("BULLA_NODE{}", number + 1), format!("unix@{}", node.socket().display()));
        }
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let process = command.stderr(log).spawn().expect("the package haproxy is installed");
        let balancer = Self { process, port, socket, folder };
        eventually("haproxy has found all nodes", || {
            (1..=3).all(|node| balancer.state(node).is_some_and(|(status, _)| status.starts_with("UP")))
        });
        balancer
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(ListenAddress::Port(self.port))
    }

    /// Where haproxy takes commands.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// A command to haproxy, and its answer.
    fn send_command(&self, command: &str) -> Option<String> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        writeln!(stream, "{command}").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// A node's status, and how many requests it has.
    fn state(&self, node: usize) -> Option<(String, u64)> {
        let table = self.send_command("show stat")?;
        let columns: Vec<_> = table.lines().next()?.split(',').collect();
        let place = |name: &str| columns.iter().position(|column| *column == name);
        let (scur, status) = (place("scur")?, place("status")?);
        let row = table.lines().find(|line| line.starts_with(&format!("signing,node{node},")))?;
        let cells: Vec<_> = row.split(',').collect();
        Some((cells[status].to_owned(), cells[scur].parse().ok()?))
    }

    /// Takes a node out, and waits until it has no requests.
    fn drain(&self, node: usize) {
        for backend in ["signing", "verifying"] {
            self.send_command(&format!("set server {backend}/node{node} state drain"))
                .expect("haproxy answers");
        }
        eventually("the node has answered all", || {
            self.state(node).is_some_and(|(status, requests)| status.starts_with("DRAIN") && requests == 0)
        });
    }

    /// Puts a node back, and waits until haproxy has found it ready.
    fn put_back(&self, node: usize) {
        for backend in ["signing", "verifying"] {
            self.send_command(&format!("set server {backend}/node{node} state ready"))
                .expect("haproxy answers");
        }
        eventually("haproxy uses the node", || {
            self.state(node).is_some_and(|(status, _)| status.starts_with("UP"))
        });
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // It may have ended by now.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("log"));
            eprintln!("--- haproxy\n{}", log.unwrap_or_default());
        }
    }
}

#[test]
fn nodes_are_replaced_one_after_another_and_no_request_fails() {
    let cluster = Cluster::start(1);
    let mut nodes = Nodes::start(&cluster, 3, Guarded::No);
    let balancer = Balancer::start(&nodes.all);
    let (done, signed, rotated) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (balancer, done, signed, rotated) = (&balancer, &done, &signed, &rotated);
            scope.spawn(move || {
                let mut client = balancer.client();
                let mut newest = 1;
                while !done.load(Ordering::SeqCst) {
                    let answer = client.post("/api/v1/keys/default/sign", &json!({ "message": "eA==" }));
                    let answer = answer.expect("haproxy answers");
                    assert!(answer.is_ok(), "{answer:?}");
                    signed.fetch_add(1, Ordering::SeqCst);
                    if thread == 0 {
                        let answer = client.post("/api/v1/keys/default/rotate", &json!({}));
                        let answer = answer.expect("haproxy answers");
                        assert!(answer.is_ok(), "{answer:?}");
                        newest += 1;
                        assert_eq!(answer.body["head"], newest, "no rotation is lost or made twice");
                        rotated.fetch_add(1, Ordering::SeqCst);
                    }
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
        }
        let goes_on = || {
            let (signatures, rotations) = (signed.load(Ordering::SeqCst), rotated.load(Ordering::SeqCst));
            eventually("clients go on", || {
                signed.load(Ordering::SeqCst) > signatures + 20
                    && rotated.load(Ordering::SeqCst) > rotations + 2
            });
        };
        for (number, node) in nodes.all.iter_mut().enumerate() {
            goes_on();
            balancer.drain(number + 1);
            node.stop();
            goes_on();
            node.spawn();
            eventually("the node is current", || node.store().is_some());
            balancer.put_back(number + 1);
        }
        goes_on();
        done.store(true, Ordering::SeqCst);
    });
    println!("{signed:?} signatures, {rotated:?} rotations");
}

#[test]
fn without_etcd_haproxy_goes_on_to_verify() {
    let cluster = Cluster::start(1);
    let nodes = Nodes::start(&cluster, 3, Guarded::No);
    let balancer = Balancer::start(&nodes.all);
    let mut client = balancer.client();
    let message = json!({ "message": "eA==" });
    let signed = client.post("/api/v1/keys/default/sign", &message).expect("an answer");
    nodes.all.iter().for_each(|node| node.set_ways(Gate::Closed));
    eventually("no node signs", || {
        client.post("/api/v1/keys/default/sign", &message).is_ok_and(|answer| answer.code() == "unavailable")
    });
    let verify = json!({ "message": "eA==", "signature": signed.body["signature"], "version": 1 });
    eventually("haproxy has found out", || {
        (1..=3).all(|node| balancer.state(node).is_some_and(|(status, _)| status.starts_with("DOWN")))
    });
    let verified = client.post("/api/v1/keys/default/verify", &verify).expect("an answer");
    assert_eq!(verified.body["valid"], true, "{verified:?}");
    nodes.all.iter().for_each(|node| node.set_ways(Gate::Open));
    eventually("the nodes sign again", || {
        client.post("/api/v1/keys/default/sign", &message).is_ok_and(|answer| answer.is_ok())
    });
}
