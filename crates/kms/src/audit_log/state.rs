//! What a log's lock guards: where the log stands, and its newest file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use bulla_blake3::Hash;

use super::checkpoint::Checkpoint;
use super::entry::{Content, Header, Line};
use super::event::AuditEvent;
use super::files::{self, Lock, Part};
use super::group::{Group, Linked, MAX_ENTRY};
use super::log_id::LogId;
use super::owed::OwedEntry;
use super::tree::Frontier;
use crate::error::{KmsError, Result};
use crate::time::Timestamp;

/// How many bytes more than needed get their place on the disk at once.
const ALLOCATE_AHEAD: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct State {
    pub(super) medium: Medium,
    pub(super) id: LogId,
    pub(super) chain: Hash,
    pub(super) tree: Frontier,
    /// How many entries the last checkpoint seals.
    pub(super) sealed: u64,
    pub(super) checkpoint: Option<Checkpoint>,
    /// When this process made the last checkpoint or, before that, opened the log. The system's
    /// clock may be set forward and back, so it does not say whether a checkpoint is due.
    pub(super) sealed_at: Instant,
    /// How many entries are on the disk.
    pub(super) durable: u64,
    pub(super) sync: Syncing,
    /// How many entries have their place reserved.
    pub(super) reserved: u64,
    /// The changes that were made and could not be recorded, the oldest first. Their entries come
    /// before all others.
    pub(super) owed: Vec<OwedEntry>,
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
    /// Up to here the file has its place on the disk, as far as its file system can promise that.
    pub(super) allocated: u64,
    pub(super) _lock: Lock,
}

impl Folder {
    pub(super) fn new(path: PathBuf, part: Part, file: File, length: u64, lock: Lock) -> Self {
        Self { path, part, file: Arc::new(file), length, allocated: length, _lock: lock }
    }

    /// Has the file system keep room for so many more bytes.
    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.length.saturating_add(bytes);
        if end > self.allocated {
            // Most calls then find what they need. A disk that is almost full gives only that.
            let ahead = end.saturating_add(ALLOCATE_AHEAD);
            self.allocated = match files::allocate(&self.file, self.length, ahead) {
                Ok(()) => ahead,
                Err(_) => files::allocate(&self.file, self.length, end).map(|()| end)?,
            };
        }
        Ok(())
    }
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

    /// Reserves the place of one entry.
    pub(super) fn reserve(&mut self) -> Result<()> {
        self.allocate((self.reserved + 1) * MAX_ENTRY)?;
        self.reserved += 1;
        Ok(())
    }

    /// Writes the entries of events at the end, by one write, until the file has `max_bytes`.
    /// Returns how many those are: at least one.
    pub(super) fn append_entries(&mut self, events: &[AuditEvent<'_>], max_bytes: u64) -> Result<usize> {
        let room = match &self.medium {
            Medium::Memory(_) => u64::MAX,
            Medium::Folder(folder) => max_bytes.saturating_sub(folder.length),
        };
        let mut group = Group::at(Timestamp::now()?, events.len());
        for event in events {
            group.push(self.tree.size() + group.len(), event);
            if group.bytes.len() as u64 >= room {
                break;
            }
        }
        let changes = events.iter().filter(|event| event.operation.changes_keystore()).count();
        self.append_group(group, changes as u64)
    }

    /// Writes the entries of changes that could not be recorded when they were made.
    pub(super) fn append_owed(&mut self) -> Result<()> {
        while let Some(oldest) = self.owed.first() {
            let mut group = Group::at(oldest.time, 1);
            group.push(self.tree.size(), &oldest.event());
            self.append_group(group, 0)?;
            self.owed.remove(0);
        }
        Ok(())
    }

    /// Writes lines at the end, of which so many have a reserved place. Returns how many there are.
    fn append_group(&mut self, group: Group, reserved: u64) -> Result<usize> {
        let Linked { bytes, chain, leaves } = group.link(self.chain);
        self.write(&bytes, reserved)?;
        let written = leaves.len();
        self.chain = chain;
        self.tree.extend(leaves);
        Ok(written)
    }

    /// Writes the line of a checkpoint at the end.
    pub(super) fn append_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let (line, link) = Line::write(&Content::Checkpoint(checkpoint.to_string()), &self.chain);
        self.write((line + "\n").as_bytes(), 0)?;
        self.chain = link;
        Ok(())
    }

    /// Writes lines at the end, of which so many have a reserved place; the others leave the
    /// reserved places free. What cannot be written as a whole is taken off again.
    fn write(&mut self, lines: &[u8], reserved: u64) -> Result<()> {
        let others = self.reserved.saturating_sub(reserved) * MAX_ENTRY;
        self.allocate(lines.len() as u64 + others)?;
        match &mut self.medium {
            Medium::Memory(text) => text.extend_from_slice(lines),
            Medium::Folder(folder) => {
                if let Err(error) = (&*folder.file).write_all(lines) {
                    if let Err(worse) = folder.file.set_len(folder.length) {
                        return Err(self.fail("cannot remove an incomplete line from the audit log", worse));
                    }
                    // The file system did not keep what it promised, or can promise nothing.
                    folder.allocated = folder.length;
                    return Err(cannot_write(error));
                }
                folder.length += lines.len() as u64;
            }
        }
        self.unsynced += lines.len() as u64;
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> Result<()> {
        match &mut self.medium {
            Medium::Memory(_) => Ok(()),
            Medium::Folder(folder) => folder.allocate(bytes).map_err(cannot_write),
        }
    }

    /// Begins a new file if this one is long enough. The earlier files are on the disk by then.
    pub(super) fn rotate(&mut self, max_bytes: u64) -> Result<()> {
        let Medium::Folder(folder) = &self.medium else { return Ok(()) };
        // If the file has no entry yet, the next file would get the same name.
        if folder.length < max_bytes || folder.part.first == self.tree.size() {
            return Ok(());
        }
        let (old, path) = (Arc::clone(&folder.file), folder.path.clone());
        // Gives back what was allocated and not used. If it stays, it is a few bytes.
        let _ = old.set_len(folder.length);
        if let Err(error) = old.sync_data() {
            return Err(self.fail("cannot sync the audit log", error));
        }
        (self.durable, self.unsynced) = (self.tree.size(), 0);
        let part = Part::new(&path, self.tree.size());
        let (file, length) = files::create_part(&part, &Header::new(self.id, &self.chain, &self.tree))?;
        let Medium::Folder(folder) = &mut self.medium else { return Ok(()) };
        (folder.part, folder.file) = (part, Arc::new(file));
        (folder.length, folder.allocated) = (length, length);
        Ok(())
    }
}

fn cannot_write(error: io::Error) -> KmsError {
    KmsError::io("cannot write to the audit log", error)
}
