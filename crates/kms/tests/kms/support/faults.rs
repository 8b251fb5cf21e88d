//! What can befall nodes of etcd, and the ways to them.

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
