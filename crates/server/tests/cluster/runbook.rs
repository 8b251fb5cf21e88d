//! The commands of `docs/runbook.md`, run in their order.

use crate::node::{Guarded, Nodes, eventually};
use crate::upgrade::Balancer;
use bulla_testing::bulla;
use bulla_testing::etcd::Cluster;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A block of commands.
struct Block {
    /// The section that it is in.
    section: String,
    /// Whether it is for each node.
    for_each_node: bool,
    lines: Vec<String>,
}

/// The blocks of commands in the document.
fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut section, mut open) = (Vec::new(), String::new(), None);
    for line in text.lines() {
        match &mut open {
            None => {
                if let Some(name) = line.strip_prefix("## ") {
                    section = name.to_owned();
                } else if let Some(kind) = line.strip_prefix("```sh") {
                    let for_each_node = kind.trim() == "node";
                    open = Some(Block { section: section.clone(), for_each_node, lines: Vec::new() });
                }
            }
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(block) => block.lines.push(line.to_owned()),
        }
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

/// Where the commands run.
struct Site {
    cluster: Cluster,
    nodes: Nodes,
    balancer: Balancer,
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let cluster = Cluster::start(1);
        let nodes = Nodes::start(&cluster, 3, Guarded::Yes);
        let balancer = Balancer::start(&nodes.all);
        let folder = tempfile::tempdir().expect("a folder");
        let variables = cluster.environment(0);
        let variables: String = variables.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
        fs::write(folder.path().join("member.env"), variables).expect("the member's settings");
        Self { cluster, nodes, balancer, folder }
    }

    /// Runs a block on one node. The test does what systemd would do, because systemd does not run
    /// everywhere.
    fn run(&mut self, block: &Block, node: usize) {
        let mut script = String::new();
        for line in &block.lines {
            match line.strip_prefix("systemctl ") {
                None => script += &format!("{line}\n"),
                Some(action) => {
                    self.shell(&std::mem::take(&mut script), node);
                    self.systemctl(action, node);
                }
            }
        }
        self.shell(&script, node);
    }

    fn systemctl(&mut self, action: &str, node: usize) {
        let of_node = &mut self.nodes.all[node];
        match action {
            "stop bulla" => of_node.stop(),
            "start bulla" => of_node.spawn(),
            "restart bulla" => {
                of_node.stop();
                of_node.spawn();
            }
            "stop etcd" => self.cluster.kill(0),
            "start etcd" => self.cluster.restart(0),
            other => panic!("systemctl {other}"),
        }
    }

    fn shell(&self, script: &str, node: usize) {
        if script.is_empty() {
            return;
        }
        let own = &self.nodes.all[node];
        let places = [
            ("/run/bulla/socket", own.socket()),
            ("/etc/bulla/serve.toml", own.folder().join("serve.toml")),
            ("/var/lib/bulla-guard/guard", own.folder().join("guard")),
            ("/etc/etcd/member.env", self.folder.path().join("member.env")),
            ("/var/backups", self.folder.path().to_owned()),
            ("/run/haproxy/admin.sock", self.balancer.socket().to_owned()),
        ];
        let script = places.iter().fold(script.to_owned(), |script, (name, place)| {
            script.replace(name, &place.display().to_string())
        });
        let script = script.replace("/node1 ", &format!("/node{} ", node + 1));
        let bulla = Path::new(bulla()).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-euc", &script]).env("PATH", format!("{}:{path}", bulla.display()));
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", self.cluster.endpoint(0));
        let done = command.output().expect("the shell runs");
        let said = [&done.stdout, &done.stderr].map(|said| String::from_utf8_lossy(said).into_owned());
        assert!(done.status.success(), "{script}\n{}\n{}", said[0], said[1]);
    }

    fn rotate(&self) -> u64 {
        let rotated = self.nodes.all[0].client().post("/api/v1/keys/default/rotate", &json!({}));
        rotated.expect("an answer").body["head"].as_u64().expect("a head")
    }
}

#[test]
fn every_command_of_the_runbook_does_what_it_says() {
    let text = include_str!("../../../../docs/runbook.md");
    let blocks = blocks(text);
    let mut site = Site::new();
    let (mut saved, mut section) = (0, String::new());
    // What is for each node is done on one node after another.
    for group in blocks.chunk_by(|a, b| a.section == b.section && a.for_each_node && b.for_each_node) {
        let block = &group[0];
        if block.section != section {
            section.clone_from(&block.section);
            println!("{section}");
            if section == "Back up" {
                saved = site.rotate();
            }
            if section == "Restart or upgrade a node" {
                assert_eq!(site.rotate(), saved + 1, "after the snapshot");
            }
        }
        let nodes = if block.for_each_node { site.nodes.all.len() } else { 1 };
        for node in 0..nodes {
            group.iter().for_each(|block| site.run(block, node));
        }
    }
    // The snapshot was restored, guards and all.
    for node in &site.nodes.all {
        let read = node.client().get("/api/v1/keys/default").expect("an answer");
        assert_eq!(read.body["head"], saved, "{read:?}");
    }
    assert_eq!(site.rotate(), saved + 1);
    eventually("haproxy uses the nodes again", || {
        let signed = site.balancer.client().post("/api/v1/keys/default/sign", &json!({ "message": "eA==" }));
        signed.is_ok_and(|answer| answer.is_ok())
    });
    assert!(blocks.len() >= 12, "{} blocks", blocks.len());
}

#[test]
fn the_settings_for_kubernetes_are_settings() {
    let manifest = include_str!("../../../../ops/kubernetes/bulla.yaml");
    let (_, after) = manifest.split_once("  serve.toml: |\n").expect("the settings");
    let lines = after.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let settings: String = lines.map(|line| format!("{}\n", line.trim_start())).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("serve.toml");
    fs::write(&path, settings).expect("the settings are written");
    let mut command = Command::new(bulla());
    let done = command.args(["serve", "print-config", "--config"]).arg(&path).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(printed.contains("store = \"etcd\"") && printed.contains("prefix = \"bulla/main\""), "{printed}");
}
