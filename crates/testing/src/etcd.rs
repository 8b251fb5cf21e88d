//! Nodes of etcd on this machine, each in a folder of its own, with connections between them that
//! can be cut.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::proxy::{Gate, Proxy};

/// A port that nobody uses, outside of those that the system gives to connections.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const PORTS: u16 = 12_000;
    let start = (std::process::id() % u32::from(PORTS / 100)) as u16 * 100;
    loop {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// How the nodes are set up beside their places.
#[derive(Clone, Default)]
pub struct Setup {
    /// More arguments of etcd.
    pub arguments: Vec<String>,
    /// `https`, with certificates that the arguments name.
    pub tls: bool,
}

pub struct Cluster {
    folder: tempfile::TempDir,
    setup: Setup,
    nodes: Vec<Node>,
    /// Who of the nodes is alone, by the names that they have among themselves.
    isolated: Arc<Mutex<Vec<String>>>,
}

struct Node {
    client: u16,
    peer: u16,
    /// Through which the other nodes reach it.
    proxy: Option<Proxy>,
    process: Option<Child>,
    /// The name that etcd gave it.
    member: String,
}

impl Cluster {
    /// Starts nodes and waits until they have a leader.
    pub fn start(nodes: usize) -> Self {
        Self::with(nodes, Setup::default())
    }

    pub fn with(nodes: usize, setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let isolated = Arc::<Mutex<Vec<String>>>::default();
        let node = |_| {
            let (client, peer) = (free_port(), free_port());
            let proxy = (nodes > 1).then(|| Proxy::start(peer));
            Node { client, peer, proxy, process: None, member: String::new() }
        };
        let mut cluster = Self { folder, setup, nodes: (0..nodes).map(node).collect(), isolated };
        (0..nodes).for_each(|node| cluster.spawn(node));
        (0..nodes).for_each(|node| cluster.wait(node));
        if nodes > 1 {
            cluster.learn_members();
        }
        cluster
    }

    /// The nodes' client URLs.
    pub fn endpoints(&self) -> Vec<String> {
        (0..self.nodes.len()).map(|node| self.endpoint(node)).collect()
    }

    pub fn endpoint(&self, node: usize) -> String {
        let scheme = if self.setup.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.nodes[node].client)
    }

    fn spawn(&mut self, number: usize) {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let advertised = |node: &Node| url(node.proxy.as_ref().map_or(node.peer, Proxy::port));
        let members: Vec<_> =
            self.nodes.iter().enumerate().map(|(i, node)| format!("n{i}={}", advertised(node))).collect();
        let node = &self.nodes[number];
        let client = self.endpoint(number);
        let arguments = [
            ("--name", format!("n{number}")),
            ("--data-dir", self.data(number).display().to_string()),
            ("--listen-client-urls", client.clone()),
            ("--advertise-client-urls", client),
            ("--listen-peer-urls", url(node.peer)),
            ("--initial-advertise-peer-urls", advertised(node)),
            ("--initial-cluster", members.join(",")),
        ];
        let log = self.folder.path().join(format!("n{number}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        // The shell ends the node when this process closes the pipe, which it does however it ends.
        let process = Command::new("sh")
            .args(["-c", "\"$@\" & node=$!; read -r _; kill -9 $node; wait $node 2>/dev/null", "sh", "etcd"])
            .args(arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]))
            .args(&self.setup.arguments)
            .env("ETCD_UNSUPPORTED_ARCH", if cfg!(target_arch = "aarch64") { "arm64" } else { "" })
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.nodes[number].process = Some(process);
    }

    /// The folder with the data and the logs of all nodes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("n{node}"))
    }

    /// Waits until a node serves and knows a leader.
    fn wait(&self, node: usize) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let serves = if self.setup.tls {
                TcpStream::connect(("127.0.0.1", self.nodes[node].client)).is_ok()
            } else {
                self.http(node, "GET", "/health", "").is_some_and(|answer| answer.contains("\"true\""))
            };
            if serves {
                return;
            }
            if Instant::now() > end {
                let log = fs::read_to_string(self.folder.path().join(format!("n{node}.log")));
                panic!(
                    "etcd does not start; is the package etcd-server installed? {}",
                    log.unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The body of a node's answer over HTTP; nothing when there is none.
    pub fn http(&self, node: usize, method: &str, path: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.nodes[node].client)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}")
            .ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).split_once("\r\n\r\n")?.1.to_owned())
    }

    /// A call of the JSON gateway.
    pub fn call(&self, node: usize, path: &str, body: &serde_json::Value) -> serde_json::Value {
        let answer = self.http(node, "POST", path, &body.to_string()).expect("the node answers");
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{path}: {answer}"))
    }

    fn learn_members(&mut self) {
        let list = self.call(0, "/v3/cluster/member/list", &serde_json::json!({}));
        for member in list["members"].as_array().unwrap() {
            let number: usize = member["name"].as_str().unwrap()[1..].parse().unwrap();
            let id: u64 = member["ID"].as_str().unwrap().parse().unwrap();
            self.nodes[number].member = format!("{id:x}");
        }
        for (number, node) in self.nodes.iter().enumerate() {
            assert!(!node.member.is_empty(), "node {number} has a name");
            let (isolated, member) = (Arc::clone(&self.isolated), node.member.clone());
            node.proxy.as_ref().unwrap().only_if(move |from| {
                let isolated = isolated.lock().unwrap();
                !isolated.contains(&member)
                    && !from.is_some_and(|from| isolated.iter().any(|name| name == from))
            });
        }
    }
}

/// What can befall the nodes.
impl Cluster {
    /// Cuts a node off from the others; clients still reach it.
    pub fn isolate(&self, node: usize) {
        self.isolated.lock().unwrap().push(self.nodes[node].member.clone());
        self.nodes.iter().for_each(|node| node.proxy.as_ref().unwrap().check());
    }

    /// Undoes [`Cluster::isolate`] and waits until all nodes agree on a leader.
    pub fn heal(&self) {
        self.isolated.lock().unwrap().clear();
        (0..self.nodes.len()).for_each(|node| self.wait(node));
    }

    /// Kills a node, as with SIGKILL.
    pub fn kill(&mut self, node: usize) {
        let mut process = self.nodes[node].process.take().expect("the node runs");
        drop(process.stdin.take());
        process.wait().unwrap();
    }

    pub fn restart(&mut self, node: usize) {
        self.spawn(node);
        self.wait(node);
    }

    /// The settings of a node, as its unit would have them in a file.
    pub fn environment(&self, node: usize) -> [(&'static str, String); 4] {
        let url = format!("http://127.0.0.1:{}", self.nodes[node].peer);
        [
            ("ETCD_NAME", format!("n{node}")),
            ("ETCD_DATA_DIR", self.data(node).display().to_string()),
            ("ETCD_INITIAL_CLUSTER", format!("n{node}={url}")),
            ("ETCD_INITIAL_ADVERTISE_PEER_URLS", url),
        ]
    }

    /// A copy of the data of a node that does not run.
    pub fn back_up(&self, node: usize) -> PathBuf {
        let copy = self.data(node).with_extension("backup");
        copy_folder(&self.data(node), &copy);
        copy
    }

    /// Puts a copy back.
    pub fn restore(&self, node: usize, backup: &Path) {
        fs::remove_dir_all(self.data(node)).unwrap();
        copy_folder(backup, &self.data(node));
    }

    /// A way for clients to a node, that can be closed.
    pub fn way_to(&self, node: usize) -> Proxy {
        Proxy::start(self.nodes[node].client)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut process) = node.process.take() {
                drop(process.stdin.take());
                drop(process.wait());
            }
            if let Some(proxy) = &node.proxy {
                proxy.set(Gate::Closed);
            }
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap();
        }
    }
}
