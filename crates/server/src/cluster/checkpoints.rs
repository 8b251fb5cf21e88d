//! The newest checkpoints of all nodes' audit logs, as rows of etcd. So the others find out if one
//! node's log is lost, cut or replaced.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bulla_files::{AtomicFile, IfExists, Visibility, sync_folder};
use bulla_kms::audit_log::{AuditLog, AuditSink as _, Checkpoint, LogId};
use bulla_kms::{Code, Keystore, KmsError, Result};
use serde::{Deserialize, Serialize};

use super::presence;
use super::table::{InsertOutcome, Table, TableRow, open_table};
use crate::config::EtcdConfig;
use crate::cosigning::trusted_log_keys;

/// The folder of the rows: `logs/LOG/NODE`.
const CHECKPOINT_FOLDER: &str = "logs";
/// How often a node looks at the checkpoints of the others.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// How many checkpoints of former starts a log keeps in etcd.
const MAX_FORMER_CHECKPOINTS: usize = 3;

/// A checkpoint of a node's audit log that is in etcd. Anybody who can write to etcd can make one:
/// check its signature.
#[derive(Clone, Debug)]
pub struct PublishedCheckpoint {
    /// The log that the row's name has; none if the name is malformed.
    pub log: Option<LogId>,
    /// The row's name.
    pub row: String,
    /// The row's content; none if it cannot be read.
    pub content: Option<NodeCheckpoint>,
    /// Whether the node that wrote it runs.
    pub running: bool,
}

impl PublishedCheckpoint {
    /// All checkpoints that the nodes have gathered in etcd.
    ///
    /// # Errors
    /// Those of etcd, and of reading certificates and the password.
    pub fn read_all(settings: &EtcdConfig) -> Result<Vec<Self>> {
        let table = open_table(settings)?;
        // A node says that it is there before it tells of its log. So these are read in the other
        // order.
        let rows = table.read(CHECKPOINT_FOLDER, 0)?.0;
        let nodes = presence::nodes(&table)?;
        Ok(rows.into_iter().map(|row| Self::read(row, &nodes)).collect())
    }

    fn read(row: TableRow, nodes: &HashSet<String>) -> Self {
        let (log, node) = parts(&row.name).map_or((None, ""), |(log, node)| (Some(log), node));
        let content = NodeCheckpoint::from_json(&row.value).ok();
        let running = nodes.contains(node);
        Self {
            log,
            content: content.filter(|published| Some(published.checkpoint.log) == log),
            running,
            row: row.name,
        }
    }
}

/// The log and the node in a row's name.
fn parts(name: &str) -> Option<(LogId, &str)> {
    let (log, node) = name.strip_prefix(CHECKPOINT_FOLDER)?.strip_prefix('/')?.split_once('/')?;
    Some((log.parse().ok()?, node))
}

/// The checkpoint that a node publishes of its own log, and those that it knows of other logs.
#[derive(Debug, Default)]
pub(super) struct CheckpointExchange {
    place: Option<String>,
    /// The value of the node's row.
    published: Option<Vec<u8>>,
    /// The value that etcd has not confirmed yet.
    publishing: Option<Vec<u8>>,
    /// The newest checkpoints of other logs.
    others: BTreeMap<LogId, NodeCheckpoint>,
    /// The revision of etcd up to which those were read; none before the first time.
    read: Option<i64>,
    read_at: Option<Instant>,
    /// Whether the node could not write them down.
    failed: bool,
}

impl CheckpointExchange {
    /// Tells of the node's newest checkpoint, and remembers those of the others from time to time.
    ///
    /// # Errors
    /// Those of etcd. What was not published is published next time.
    pub(super) fn exchange(
        &mut self,
        table: &Table,
        node: &str,
        keystore: &Keystore,
        log: &AuditLog,
    ) -> Result<()> {
        // The last entries before a pause get a checkpoint, too.
        log.recorded(keystore);
        self.publish(table, &format!("{CHECKPOINT_FOLDER}/{}/{node}", log.id()), log)?;
        if self.read_at.is_none_or(|read_at| read_at.elapsed() >= READ_INTERVAL) {
            self.read_others(table, keystore, log)?;
            self.read_at = Some(Instant::now());
        }
        Ok(())
    }

    fn publish(&mut self, table: &Table, row: &str, log: &AuditLog) -> Result<()> {
        if self.publishing.is_none() {
            let Some(checkpoint) = log.newest_checkpoint() else { return Ok(()) };
            let place = self.place.get_or_insert_with(|| place_of(log)).clone();
            let value = NodeCheckpoint { place, checkpoint }.to_json().into_bytes();
            if self.published.as_ref() == Some(&value) {
                return Ok(());
            }
            self.publishing = Some(value);
        }
        let Some(value) = &self.publishing else { return Ok(()) };
        let (done, found) = match &self.published {
            Some(published) => (table.replace(row, published, Some(value))?, None),
            None => match table.insert(row, value, None)? {
                InsertOutcome::New { .. } => (true, None),
                InsertOutcome::Exists(other) => (false, Some(other.value)),
            },
        };
        if done {
            self.published = self.publishing.take();
        } else {
            tracing::warn!(
                row,
                "somebody else changed this node's checkpoint in etcd; the node writes it again"
            );
            self.published = found;
        }
        Ok(())
    }

    /// Remembers the newest checkpoints of other logs, in memory and beside the node's own log. So
    /// they are known even if somebody removes them from etcd.
    fn read_others(&mut self, table: &Table, keystore: &Keystore, log: &AuditLog) -> Result<()> {
        let Some(folder) = log.folder() else { return Ok(()) };
        let (rows, read) = table.read(CHECKPOINT_FOLDER, self.read.unwrap_or(0))?;
        let mut news = self.failed;
        if self.read.is_none() {
            let before = read_peer_checkpoints(&folder).unwrap_or_default();
            before.into_iter().for_each(|other| news |= self.remember(other, keystore, log));
            prune(table, log, &rows)?;
        }
        let published = rows.iter().filter_map(|row| NodeCheckpoint::from_json(&row.value).ok());
        published.for_each(|other| news |= self.remember(other, keystore, log));
        self.read = Some(read);
        if news {
            let written = write_peer_checkpoints(&folder, self.others.values());
            if let (Err(error), false) = (&written, self.failed) {
                let code = error.code.as_str();
                tracing::warn!(code, "cannot exchange the checkpoints of other nodes: {}", error.message);
            }
            self.failed = written.is_err();
        }
        Ok(())
    }

    /// Whether a checkpoint is signed by the keystore, and newer than what is known of that log.
    fn remember(&mut self, other: NodeCheckpoint, keystore: &Keystore, log: &AuditLog) -> bool {
        let checkpoint = &other.checkpoint;
        let known =
            self.others.get(&checkpoint.log).is_some_and(|known| known.checkpoint.size >= checkpoint.size);
        if known || checkpoint.log == log.id() {
            return false;
        }
        let signed = trusted_log_keys(keystore, log).is_ok_and(|keys| {
            keys.iter().any(|(id, key)| *id == checkpoint.key && checkpoint.verify_with(key).is_valid())
        });
        if signed {
            self.others.insert(checkpoint.log, other);
        }
        signed
    }
}

/// Removes all but the newest checkpoints that former starts of nodes wrote about this log.
fn prune<'a>(table: &Table, log: &AuditLog, rows: &'a [TableRow]) -> Result<()> {
    let nodes = presence::nodes(table)?;
    let of_former =
        |row: &&TableRow| parts(&row.name).is_some_and(|(id, node)| id == log.id() && !nodes.contains(node));
    let sized = |row: &'a TableRow| Some((NodeCheckpoint::from_json(&row.value).ok()?.checkpoint.size, row));
    let mut former: Vec<_> = rows.iter().filter(of_former).filter_map(sized).collect();
    former.sort_by_key(|(size, _)| Reverse(*size));
    for (_, row) in former.into_iter().skip(MAX_FORMER_CHECKPOINTS) {
        table.replace(&row.name, &row.value, None)?;
    }
    Ok(())
}

/// The machine and the folder of a log.
fn place_of(log: &AuditLog) -> String {
    let folder = log.folder().map(|folder| folder.display().to_string()).unwrap_or_default();
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = std::env::var("COMPUTERNAME").unwrap_or_default();
    format!("{machine}:{folder}")
}

/// The newest checkpoints of the other nodes' logs, in a log's folder.
const PEER_CHECKPOINTS: &str = "others";

/// A checkpoint of a node's log, and where that log is. Nobody signs the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeCheckpoint {
    /// The machine and the folder, for people.
    pub place: String,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
}

impl NodeCheckpoint {
    /// The text form: a JSON object on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain structures serialize")
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// [`Code::MalformedProof`].
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let malformed = |_| KmsError::new(Code::MalformedProof, "it is not a checkpoint of a node's log");
        serde_json::from_slice(text).map_err(malformed)
    }
}

/// The checkpoints of other logs that are kept beside a log. Lines that cannot be read are left
/// out: somebody altered them.
///
/// # Errors
/// Errors of reading.
pub fn read_peer_checkpoints(folder: &Path) -> Result<Vec<NodeCheckpoint>> {
    let path = folder.join(PEER_CHECKPOINTS);
    match fs::read(&path) {
        Ok(text) => Ok(text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| NodeCheckpoint::from_json(line).ok())
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(KmsError::io(format!("cannot read {}", path.display()), error)),
    }
}

/// Keeps checkpoints of other logs beside a log, instead of those that are there.
///
/// # Errors
/// Errors of writing.
pub(super) fn write_peer_checkpoints<'a>(
    folder: &Path,
    others: impl IntoIterator<Item = &'a NodeCheckpoint>,
) -> Result<()> {
    let text: String = others.into_iter().map(|other| other.to_json() + "\n").collect();
    let path = folder.join(PEER_CHECKPOINTS);
    let cannot = |error| KmsError::io(format!("cannot write {}", path.display()), error);
    let mut file = AtomicFile::create(folder, Visibility::OwnerOnly).map_err(cannot)?;
    file.file().and_then(|file| file.write_all(text.as_bytes())).map_err(cannot)?;
    file.persist(&path, IfExists::Replace).and_then(|()| sync_folder(folder)).map_err(cannot)
}
