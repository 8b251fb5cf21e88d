//! Nodes as processes.

use crate::client::{Client, ListenAddress};
use bulla_testing::bulla;
use bulla_testing::etcd::Cluster;
use bulla_testing::proxy::{Gate, Proxy};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// For how long nodes sign without etcd.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(3);

/// How long anything may take that has to happen by itself.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A node, with ways of its own to the members of etcd.
pub(crate) struct Node {
    folder: PathBuf,
    ways: Vec<Proxy>,
    process: Option<Child>,
}

/// Nodes that share a keystore with the key `default`.
pub(crate) struct Nodes {
    // The first field, so that the nodes end before the folder is removed.
    pub(crate) all: Vec<Node>,
    _folder: tempfile::TempDir,
}

/// What nodes have beside the usual settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guarded {
    No,
    Yes,
}

impl Nodes {
    /// Starts nodes, and waits until all of them serve.
    pub(crate) fn start(cluster: &Cluster, count: usize, guarded: Guarded) -> Self {
        Self::start_with(cluster, count, guarded, |_, _| String::new())
    }

    /// Starts nodes with more settings, which `more` makes for a number and a folder.
    pub(crate) fn start_with(
        cluster: &Cluster,
        count: usize,
        guarded: Guarded,
        more: impl Fn(usize, &Path) -> String,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = Vec::new();
        for number in 0..count {
            let own = folder.path().join(format!("node{number}"));
            fs::create_dir(&own).expect("a folder of the node");
            fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("a mode");
            let members = cluster.endpoints().len();
            let ways: Vec<_> =
                (0..members).map(|member| cluster.way_to((number + member) % members)).collect();
            let node = Node { folder: own, ways, process: None };
            node.configure(guarded, &more(number, &node.folder));
            if guarded == Guarded::Yes {
                node.create("guard");
            }
            if number == 0 {
                node.create("keystore");
            } else {
                let key = "keystore.key";
                fs::copy(folder.path().join("node0").join(key), node.folder.join(key)).expect("the key file");
            }
            all.push(node);
        }
        let mut nodes = Self { all, _folder: folder };
        nodes.all.iter_mut().for_each(Node::spawn);
        nodes.wait();
        nodes
    }

    /// Waits until all nodes are as current as etcd. A node that found etcd out of reach when it
    /// started is started again, as systemd does.
    pub(crate) fn wait(&mut self) {
        for node in &mut self.all {
            eventually("the node is current", || {
                if node.found_no_cluster() {
                    node.spawn();
                }
                node.is_current()
            });
        }
    }

    pub(crate) fn places(&self) -> Vec<ListenAddress> {
        self.all.iter().map(Node::place).collect()
    }
}

impl Node {
    pub(crate) fn configure(&self, guarded: Guarded, more: &str) {
        let endpoints: Vec<_> = self.ways.iter().map(|way| format!("\"{}\"", way.endpoint())).collect();
        let folder = self.folder.display();
        let guard = match guarded {
            Guarded::Yes => format!("guard = \"{folder}/guard\"\n"),
            Guarded::No => String::new(),
        };
        let uid = rustix::process::getuid().as_raw();
        let settings = format!(
            "[keystore]\nstore = \"etcd\"\nfolder = \"{folder}\"\n{guard}\n\
             [etcd]\nendpoints = [{}]\nprefix = \"bulla/tests\"\nrequest_timeout_seconds = 2\nkey_use_lease_seconds = {}\n\n\
             [service]\nthreads = 1\nshutdown_timeout_seconds = 10\n\n\
             [[listen]]\nunix = \"{folder}/socket\"\n\n\
             [[caller]]\nname = \"tester\"\ntenant = \"local\"\nuid = {uid}\ncan_mint_tokens = true\n\n{more}",
            endpoints.join(", "),
            STALE_AFTER.as_secs(),
        );
        fs::write(self.folder.join("serve.toml"), settings).expect("the settings are written");
    }

    fn command(&self) -> Command {
        self.command_of(&[])
    }

    fn command_of(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        // A program that a test runner starts may ignore signals, and so do its children.
        command.args(["--default-signal=HUP,INT,TERM", bulla(), "serve"]).args(words);
        command
            .arg("--config")
            .arg(self.folder.join("serve.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub(crate) fn create(&self, what: &str) {
        let done = self.command_of(&["init", what]).stdout(Stdio::piped()).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    pub(crate) fn spawn(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.join("log")).expect("a log");
        self.process = Some(self.command().stderr(log).spawn().expect("the node starts"));
    }

    /// Starts the node, and waits for its end, which comes by itself.
    pub(crate) fn fails_to_start(&mut self) -> String {
        self.spawn();
        let status = self.process.take().expect("it was started").wait().expect("it ends");
        assert!(!status.success(), "{}", self.log());
        self.log()
    }

    /// Whether the process has ended because etcd did not answer when it started.
    fn found_no_cluster(&mut self) -> bool {
        let ended =
            self.process.as_mut().is_some_and(|process| process.try_wait().expect("our child").is_some());
        ended
            && self
                .log()
                .lines()
                .last()
                .is_some_and(|line| line.ends_with("try again when the cluster is whole"))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(crate) fn place(&self) -> ListenAddress {
        ListenAddress::from(&*self.socket())
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.place())
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// The freshness that the node tells.
    pub(crate) fn store(&self) -> Option<Value> {
        let answer = self.client().get("/api/v1/ready?current=true").ok()?;
        answer.is_ok().then(|| answer.body["store"].clone())
    }

    fn is_current(&self) -> bool {
        self.store().is_some_and(|store| store["stale"] == false)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("the node runs");
        kill_process(Pid::from_child(process), signal).expect("the node is there");
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.as_ref().expect("the node runs").id()
    }

    /// Ends the node as a machine without power does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by now.
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_file(self.socket());
    }

    /// Ends the node by SIGTERM, and waits for it.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.process.take().expect("the node runs").wait().expect("it ends");
        assert!(status.success(), "{}", self.log());
    }

    /// What happens on the ways between this node and etcd.
    pub(crate) fn set_ways(&self, gate: Gate) {
        self.ways.iter().for_each(|way| way.set(gate));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        self.set_ways(Gate::Closed);
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.folder.display(), self.log());
        }
    }
}
