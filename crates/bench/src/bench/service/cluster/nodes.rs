//! Nodes of the service over one etcd, as processes.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{
    super::{
        cases::label,
        load::Caller,
        served::{Built, cpu_seconds, free_address, max_used_memory, used_memory},
    },
    etcd::{Done, Etcd},
};

/// The processors of what has none of its own.
pub(super) const BOTH: &str = "0,1";
/// How many keys are rotated in turn.
pub(super) const KEYS: usize = 256;
/// How long a node may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Nodes that share a keystore.
pub(super) struct Nodes<'a> {
    built: &'a Built,
    pub(super) etcd: &'a Etcd,
    folder: PathBuf,
    pub(super) token: String,
    pub(super) all: Vec<Node>,
}

/// A node, which ends when it is dropped.
pub(super) struct Node {
    process: Child,
    pub(super) address: String,
    pub(super) folder: PathBuf,
}

/// The resources that nodes and etcd used in some time.
pub(super) struct Used {
    pub(super) seconds: f64,
    pub(super) etcd: Done,
    /// The seconds that the threads of each node computed.
    pub(super) nodes: Vec<f64>,
}

impl<'a> Nodes<'a> {
    /// A new keystore, and its first node, which may compute on these processors.
    pub(super) fn create(built: &'a Built, etcd: &'a Etcd, folder: &Path, processors: &str) -> Result<Self> {
        let mut nodes = Self::of(built, etcd, folder);
        let (first, _) = nodes.prepare(0)?;
        let mut create = nodes.command(&first, processors, &["init", "keystore"]);
        bulla_devtools::quiet(&mut create)?;
        nodes.begin(processors)?;
        Ok(nodes)
    }

    /// The first node of a keystore that exists.
    pub(super) fn open(built: &'a Built, etcd: &'a Etcd, folder: &Path, processors: &str) -> Result<Self> {
        let mut nodes = Self::of(built, etcd, folder);
        nodes.begin(processors)?;
        Ok(nodes)
    }

    fn of(built: &'a Built, etcd: &'a Etcd, folder: &Path) -> Self {
        Self { built, etcd, folder: folder.to_owned(), token: String::new(), all: Vec::new() }
    }

    fn begin(&mut self, processors: &str) -> Result<()> {
        self.add(processors)?;
        let mint =
            json!({ "operations": ["sign", "verify", "create", "rotate"], "expires_in_seconds": 86400 });
        let minted = Caller::at(&self.all[0].folder.join(SOCKET))?.post("/api/v1/tokens", &mint)?;
        self.token = minted["token"].as_str().context("no token")?.to_owned();
        Ok(())
    }

    /// Starts one more node, and waits until it serves. Returns how long that took.
    pub(super) fn add(&mut self, processors: &str) -> Result<Duration> {
        let number = self.all.len();
        let (folder, address) = self.prepare(number)?;
        let log = File::create(folder.join("log"))?;
        let mut command = self.command(&folder, processors, &[]);
        let start = Instant::now();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let mut node = Node { process: process.context("cannot start a node")?, address, folder };
        while !node.is_ready() {
            let ended = node.process.try_wait()?.is_some();
            ensure!(
                !ended && start.elapsed() < START_TIMEOUT,
                "a node does not start: see {:?}",
                node.folder
            );
            thread::sleep(Duration::from_millis(5));
        }
        self.all.push(node);
        Ok(start.elapsed())
    }

    /// Ends the nodes after the first ones.
    pub(super) fn keep(&mut self, first: usize) {
        self.all.truncate(first);
    }

    /// A folder for a node, with its settings and the key file that the first node has; and the
    /// node's address.
    fn prepare(&self, number: usize) -> Result<(PathBuf, String)> {
        let folder = self.folder.join(format!("node{number}"));
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        if number > 0 {
            fs::copy(self.folder.join("node0").join(KEY_FILE), folder.join(KEY_FILE))?;
        }
        let address = free_address()?;
        fs::write(folder.join(SETTINGS), self.settings(number, &folder, &address))?;
        Ok((folder, address))
    }

    fn settings(&self, number: usize, folder: &Path, address: &str) -> String {
        let (endpoints, socket) = (self.etcd.endpoints(number), folder.join(SOCKET));
        format!(
            "[keystore]\nstore = \"etcd\"\nfolder = {folder:?}\n\n\
             [etcd]\nendpoints = [{endpoints}]\nprefix = \"{PREFIX}\"\n\n[service]\nthreads = 1\n\n\
             [[listen]]\naddress = \"{address}\"\n\n[[listen]]\nunix = {socket:?}\n\n\
             [[caller]]\nname = \"bench\"\ntenant = \"local\"\nuid = {}\ncan_mint_tokens = true\n",
            fs::metadata(folder).map_or(0, |data| data.uid()),
        )
    }

    fn command(&self, folder: &Path, processors: &str, words: &[&str]) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", processors]).arg(&self.built.program).arg("serve").args(words);
        command.arg("--config").arg(folder.join(SETTINGS));
        command
    }

    /// A caller of one node.
    pub(super) fn caller(&self, node: usize) -> Result<Caller> {
        Caller::of(&self.all[node].address, &self.token)
    }

    /// Makes keys, and waits until every node knows them.
    pub(super) fn make_keys(&self, keys: usize) -> Result<()> {
        let mut first = self.caller(0)?;
        for key in 0..keys {
            first.post("/api/v1/keys", &json!({ "label": label(key) }))?;
        }
        for node in 0..self.all.len() {
            let mut caller = self.caller(node)?;
            let sign = format!("/api/v1/keys/{}/sign", label(keys - 1));
            while caller.post(&sign, &json!({ "message": "" })).is_err() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// The resources that are used while `run` runs.
    pub(super) fn measure<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(T, Used)> {
        let computed =
            || -> Result<Vec<f64>> { self.all.iter().map(|node| cpu_seconds(node.process.id())).collect() };
        let (etcd, before, start) = (self.etcd.done()?, computed()?, Instant::now());
        let made = run()?;
        let seconds = start.elapsed().as_secs_f64();
        let after = computed()?;
        let nodes = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        Ok((made, Used { seconds, etcd: self.etcd.done()?.since(etcd), nodes }))
    }
}

impl Node {
    /// Whether the node serves and may use private keys.
    fn is_ready(&self) -> bool {
        let asked = |mut caller: Caller| caller.ask("GET", "/api/v1/ready?current=true", "");
        Caller::at(&self.folder.join(SOCKET)).and_then(asked).is_ok_and(|(status, _)| status == 200)
    }

    /// The memory that the node holds, in MB.
    pub(super) fn memory(&self) -> Result<f64> {
        used_memory(self.process.id())
    }

    /// The most memory that it ever held, in MB.
    pub(super) fn most_memory(&self) -> Result<f64> {
        max_used_memory(self.process.id())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(self.folder.join(SOCKET));
    }
}

/// The name of the keystore in etcd.
pub(super) const PREFIX: &str = "bulla/bench";
const SETTINGS: &str = "serve.toml";
const SOCKET: &str = "socket";
pub(super) const KEY_FILE: &str = "keystore.key";
