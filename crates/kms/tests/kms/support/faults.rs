//! What can befall nodes of etcd, and the ways to them.

use std::fs;
use std::path::{Path, PathBuf};

use super::etcd::Cluster;
use super::proxy::Proxy;

impl Cluster {
    /// Cuts a node off from the others; clients still reach it.
    pub(crate) fn isolate(&self, node: usize) {
        self.isolated.lock().unwrap().push(self.nodes[node].member.clone());
        self.nodes.iter().for_each(|node| node.proxy.as_ref().unwrap().check());
    }

    /// Undoes [`Cluster::isolate`] and waits until all nodes agree on a leader.
    pub(crate) fn heal(&self) {
        self.isolated.lock().unwrap().clear();
        (0..self.nodes.len()).for_each(|node| self.wait(node));
    }

    /// Kills a node, as with SIGKILL.
    pub(crate) fn kill(&mut self, node: usize) {
        let mut process = self.nodes[node].process.take().expect("the node runs");
        drop(process.stdin.take());
        process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self, node: usize) {
        self.spawn(node);
        self.wait(node);
    }

    /// The settings of a node, as its unit would have them in a file.
    pub(crate) fn environment(&self, node: usize) -> [(&'static str, String); 4] {
        let url = format!("http://127.0.0.1:{}", self.nodes[node].peer);
        [
            ("ETCD_NAME", format!("n{node}")),
            ("ETCD_DATA_DIR", self.data(node).display().to_string()),
            ("ETCD_INITIAL_CLUSTER", format!("n{node}={url}")),
            ("ETCD_INITIAL_ADVERTISE_PEER_URLS", url),
        ]
    }

    /// A copy of the data of a node that does not run.
    pub(crate) fn back_up(&self, node: usize) -> PathBuf {
        let copy = self.data(node).with_extension("backup");
        copy_folder(&self.data(node), &copy);
        copy
    }

    /// Puts a copy back.
    pub(crate) fn restore(&self, node: usize, backup: &Path) {
        fs::remove_dir_all(self.data(node)).unwrap();
        copy_folder(backup, &self.data(node));
    }

    /// A way for clients to a node, that can be closed.
    pub(crate) fn way_to(&self, node: usize) -> Proxy {
        Proxy::start(self.nodes[node].client)
    }
}

impl Proxy {
    /// Where clients reach the node behind it.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
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
