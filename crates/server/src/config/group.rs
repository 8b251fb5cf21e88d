//! The nodes that have keys together, so that no node has a whole key.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bulla_kms::{Name, Result};
use serde::{Deserialize, Serialize};

use super::{StoreKind, invalid};

/// This node among those that have keys together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// This node's name, by which the others know it.
    pub name: Name,
    /// Where this node listens for the others: `IP:PORT`.
    pub listen: SocketAddr,
    /// The folder of this node's shares, with the key file that opens them.
    pub folder: PathBuf,
    /// This node's certificate in PEM. The others know it by its SHA-256.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// How many nodes sign together. All nodes must have the same number.
    pub threshold: u16,
    /// For how many milliseconds a node waits for another one.
    #[serde(default = "default_timeout")]
    pub timeout_milliseconds: u64,
    /// The other nodes.
    pub peer: Vec<GroupPeerConfig>,
}

/// Another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupPeerConfig {
    /// Its name.
    pub name: Name,
    /// Where it listens: `HOST:PORT`.
    pub address: String,
    /// The SHA-256 of its certificate (DER), in lower-case hexadecimal digits.
    pub certificate_sha256: String,
}

fn default_timeout() -> u64 {
    1000
}

impl GroupConfig {
    /// How long a node waits for another one.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_milliseconds)
    }

    /// # Errors
    /// [`bulla_kms::Code::InvalidArgument`] for settings that contradict each other.
    pub(super) fn check(&self, store: StoreKind) -> Result<()> {
        let wrong = |message: &str| Err(invalid(format!("[group]: {message}")));
        if store != StoreKind::Etcd {
            return wrong("the nodes of a group share a keystore: set `store = \"etcd\"` in [keystore]");
        }
        let nodes = self.peer.len() + 1;
        if self.threshold < 2 || usize::from(self.threshold) > nodes {
            return wrong(&format!("`threshold` is from 2 to {nodes}, the number of nodes"));
        }
        if nodes > bulla_threshold::MAX_PARTICIPANTS {
            return wrong("a group has at most 32 nodes");
        }
        if !(10..=60_000).contains(&self.timeout_milliseconds) {
            return wrong("`timeout_milliseconds` is from 10 to 60000");
        }
        let mut names = HashSet::from([&self.name]);
        let mut certificates = HashSet::new();
        for GroupPeerConfig { name, address, certificate_sha256 } in &self.peer {
            if !names.insert(name) || !certificates.insert(certificate_sha256) {
                return wrong(&format!("the peer {name} has the name or the certificate of another node"));
            }
            if digest(certificate_sha256).is_none() {
                return wrong(&format!(
                    "`certificate_sha256` of the peer {name} is not a SHA-256: that is 64 lower-case hexadecimal digits"
                ));
            }
            if address
                .rsplit_once(':')
                .is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err())
            {
                return wrong(&format!("`address` of the peer {name} is not HOST:PORT"));
            }
        }
        Ok(())
    }
}

/// The digest that a setting has.
pub(crate) fn digest(text: &str) -> Option<[u8; 32]> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    hex::decode(text).ok().filter(|_| canonical)?.try_into().ok()
}
