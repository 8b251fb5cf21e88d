//! What a log's lock guards: where the log stands, and its newest file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use bulla_blake3::Hash;

use super::checkpoint::Checkpoint;
use super::entry::{Content, Header, Line};
use super::event::AuditEvent;
use super::files::{self, Lock, Part};
use super::group::{Group, Linked};
use super::log_id::LogId;
use super::tree::Frontier;
use crate::error::{KmsError, Result};
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct State {
    pub(super) medium: Medium,
    pub(super) id: LogId,
    pub(super) chain: Hash,
    pub(super) tree: Frontier,
    /// How many entries the last checkpoint seals.
    pub(super) sealed: u64,
    pub(super) checkpoint: Option<Checkpoint>,
    /// When the last checkpoint was made or, before the first one, when the log was opened.
    pub(super) sealed_at: Timestamp,
    /// How many entries are on the disk.
    pub(super) durable: u64,
    pub(super) sync: Syncing,
    /// How many bytes were written since the last sync began.
    pub(super) unsynced: u64,
    /// Wakes the thread that makes checkpoints, if there is one.
    pub(super) sealer: Option<SyncSender<()>>,
    /// Why the log refuses all writes until it is reopened.
    pub(super) broken: Option<KmsError>,
    /// Why the last due checkpoint could not be made.
    pub(super) unsealed: Option<KmsError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syncing {
    Idle,
    Running,
}

#[derive(Debug)]
pub(super) enum Medium {
    /// The text that would otherwise be in one file.
    Memory(Vec<u8>),
    Folder(Folder),
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) part: Part,
    pub(super) file: Arc<File>,
    pub(super) length: u64,
    pub(super) _lock: Lock,
}

impl State {
    pub(super) fn check(&self) -> Result<()> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Refuses all writes from now on: after this error, the content of the disk is unknown.
    pub(super) fn fail(&mut self, what: &str, error: io::Error) -> KmsError {
        let error =
            KmsError::io(format!("{what}; the log accepts no entries until it is opened again"), error);
        self.broken = Some(error.clone());
        error
    }

    /// Writes the entries of events at the end, by one write, until the file has `max_bytes`. Returns how many those are: at least one.
    pub(super) fn append_entries(&mut self, events: &[AuditEvent<'_>], max_bytes: u64) -> Result<usize> {
        let room = match &self.medium {
            Medium::Memory(_) => u64::MAX,
            Medium::Folder(folder) => max_bytes.saturating_sub(folder.length),
        };
        let mut group = Group::now(events.len())?;
        for event in events {
            group.push(self.tree.size() + group.len(), event);
            if group.bytes.len() as u64 >= room {
                break;
            }
        }
        let Linked { bytes, chain, leaves } = group.link(self.chain);
        self.write(&bytes)?;
        let written = leaves.len();
        self.chain = chain;
        self.tree.extend(leaves);
        Ok(written)
    }

    /// Writes the line of a checkpoint at the end.
    pub(super) fn append_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let (line, link) = Line::write(&Content::Checkpoint(checkpoint.to_string()), &self.chain);
        self.write((line + "\n").as_bytes())?;
        self.chain = link;
        Ok(())
    }

    /// Writes lines at the end. What cannot be written as a whole is taken off again.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<()> {
        match &mut self.medium {
            Medium::Memory(text) => text.extend_from_slice(lines),
            Medium::Folder(folder) => {
                if let Err(error) = (&*folder.file).write_all(lines) {
                    if let Err(worse) = folder.file.set_len(folder.length) {
                        return Err(self.fail("cannot remove an incomplete line from the audit log", worse));
                    }
                    return Err(KmsError::io("cannot write to the audit log", error));
                }
                folder.length += lines.len() as u64;
            }
        }
        self.unsynced += lines.len() as u64;
        Ok(())
    }

    /// Begins a new file if this one is long enough. The earlier files are on the disk by then.
    pub(super) fn rotate(&mut self, max_bytes: u64) -> Result<()> {
        let Medium::Folder(folder) = &self.medium else { return Ok(()) };
        // If the file has no entry yet, the next file would get the same name.
        if folder.length < max_bytes || folder.part.first == self.tree.size() {
            return Ok(());
        }
        let (old, path) = (Arc::clone(&folder.file), folder.path.clone());
        if let Err(error) = old.sync_data() {
            return Err(self.fail("cannot sync the audit log", error));
        }
        (self.durable, self.unsynced) = (self.tree.size(), 0);
        let part = Part::new(&path, self.tree.size());
        let (file, length) = files::create_part(&part, &Header::new(self.id, &self.chain, &self.tree))?;
        let Medium::Folder(folder) = &mut self.medium else { return Ok(()) };
        (folder.part, folder.file, folder.length) = (part, Arc::new(file), length);
        Ok(())
    }
}
