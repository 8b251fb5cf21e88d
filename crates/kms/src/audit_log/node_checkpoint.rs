//! What nodes of a service tell each other about their logs.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use crate::error::{Code, KmsError, Result};
use crate::files;

/// The newest checkpoints of the other nodes' logs, in a log's folder.
const OTHERS: &str = "others";

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
    let path = folder.join(OTHERS);
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
pub fn write_peer_checkpoints<'a>(
    folder: &Path,
    others: impl IntoIterator<Item = &'a NodeCheckpoint>,
) -> Result<()> {
    let text: String = others.into_iter().map(|other| other.to_json() + "\n").collect();
    files::replace(&folder.join(OTHERS), text.as_bytes())
}
