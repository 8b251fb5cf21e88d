//! The shares of this node: files of a folder of its own, which a key file in it opens. etcd and
//! the backups of keystores have none of them.
//!
//! A change of the shares has two steps. First the new share is kept beside the old one, which is
//! this node's promise to the others. When all have promised, the new share takes the old one's
//! place. Each step is one write that is whole or not there, so a node that was killed knows
//! afterwards what it had promised.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use bulla_files::{AtomicFile, IfExists, Visibility, escape_path, sync_folder};
use bulla_kms::encrypted_file::{decrypt, encrypt};
use bulla_kms::encryption::KeyFileProvider;
use bulla_kms::{Code, KeyFile, KmsError, Name, Result};
use bulla_threshold::{Handover, KeyShare, Message, ParticipantKeys, SessionId, ThresholdError};
use zeroize::Zeroizing;

use super::fail_points::FailPoints;

const KEY_FILE: &str = "node.key";
const IDENTITY: &str = "identity";
/// A share that signs.
const SHARE: &str = ".share";
/// A share of a change, which will sign if all holders have theirs. Before it is the change's
/// session.
const NEXT: &str = ".next";
/// The messages by which the share counts.
const PROOF: &str = ".proof";
/// The changes from which this node, or another one, has withdrawn.
const WITHDRAWN: &str = ".withdrawn";
/// What the node remembers of the share's key.
const KNOWN: &str = ".known";
/// The most bytes of a file.
const MAX_FILE_LEN: u64 = 4 << 20;
/// The most changes that are noted as withdrawn. They are forgotten with the next epoch.
const MAX_WITHDRAWN: usize = 4096;
/// The most shares of withdrawn changes that are kept.
const MAX_KEPT: usize = 16;

/// What this node has of one key.
#[derive(Clone, Default)]
pub(super) struct Holding {
    /// The share that signs.
    pub(super) share: Option<Arc<KeyShare>>,
    /// The shares of changes that this node has confirmed, and that do not count yet. All but one
    /// are of changes that somebody has withdrawn from. They are kept until another change counts:
    /// a node that lies may say to some that it has withdrawn, and to others that it has confirmed.
    next: BTreeMap<SessionId, Arc<KeyShare>>,
    /// The messages by which the share counts. Empty if it is of no change, or was repaired.
    pub(super) proof: Vec<Message>,
    /// The changes that will never count, as far as this node knows.
    withdrawn: BTreeSet<SessionId>,
}

impl Holding {
    /// The share of a change, if this node has confirmed it.
    pub(super) fn confirmed(&self, session: SessionId) -> Option<&Arc<KeyShare>> {
        self.next.get(&session)
    }

    /// The share of the newest change that the node has confirmed, and from which nobody has
    /// withdrawn.
    pub(super) fn pending(&self) -> Option<&Arc<KeyShare>> {
        let open = self.next.iter().filter(|(session, _)| !self.is_withdrawn(**session));
        open.map(|(_, next)| next).max_by_key(|next| next.epoch())
    }

    /// Any share of the key.
    pub(super) fn any(&self) -> Option<&Arc<KeyShare>> {
        self.share.as_ref().or_else(|| self.next.values().next())
    }

    pub(super) fn is_withdrawn(&self, session: SessionId) -> bool {
        self.withdrawn.contains(&session)
    }
}

/// The folder with this node's shares.
pub(super) struct ShareFolder {
    path: PathBuf,
    key: KeyFileProvider,
    fail_points: Arc<FailPoints>,
    /// What was read. Whoever changes files has the lock.
    open: Mutex<HashMap<SessionId, Holding>>,
}

impl ShareFolder {
    /// Opens the folder. Without anything in it, it gets a key file.
    ///
    /// # Errors
    /// It has shares and no key file; errors of the disk.
    pub(super) fn open(path: &Path, fail_points: Arc<FailPoints>) -> Result<Self> {
        let mut options = fs::DirBuilder::new();
        options.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut options, 0o700);
        options.create(path).map_err(|error| failed("make", path, error))?;
        let key_file = path.join(KEY_FILE);
        if !key_file.exists() {
            let mut entries = fs::read_dir(path).map_err(|error| failed("read", path, error))?;
            if entries.next().is_some() {
                let message = format!(
                    "the folder {} has shares, and the key file {KEY_FILE} that opens them is missing: restore it",
                    escape_path(path)
                );
                return Err(KmsError::new(Code::NotFound, message));
            }
            KeyFile::create(&key_file)?;
        }
        let key = KeyFileProvider::new(&key_file);
        Ok(Self { path: path.to_owned(), key, fail_points, open: Mutex::default() })
    }

    /// The keys by which the others know this node. They are made once.
    ///
    /// # Errors
    /// They are another node's; errors of the disk.
    pub(super) fn identity(&self, name: &Name) -> Result<ParticipantKeys> {
        if let Some(bytes) = self.read(IDENTITY)? {
            let keys = ParticipantKeys::from_secret_bytes(&bytes).map_err(damaged)?;
            if keys.name() != name {
                let message = format!(
                    "the folder {} is that of the node {}, and not of {name}",
                    escape_path(&self.path),
                    keys.name()
                );
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
            return Ok(keys);
        }
        let keys = ParticipantKeys::generate(name.clone()).map_err(damaged)?;
        self.write(IDENTITY, &keys.to_secret_bytes())?;
        Ok(keys)
    }

    /// This node's share of a key.
    ///
    /// # Errors
    /// The file is damaged; errors of the disk.
    pub(super) fn find(&self, group: SessionId) -> Result<Option<Arc<KeyShare>>> {
        let mut open = self.lock();
        Ok(self.load(&mut open, group)?.share.clone())
    }

    /// What this node has of a key.
    ///
    /// # Errors
    /// Those of [`ShareFolder::find`].
    pub(super) fn holding(&self, group: SessionId) -> Result<Holding> {
        let mut open = self.lock();
        Ok(self.load(&mut open, group)?.clone())
    }

    /// The keys of which this node has confirmed new shares that do not count yet.
    pub(super) fn unsettled(&self) -> Vec<SessionId> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let group = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(NEXT)?.split('.').next()?.parse().ok()
        };
        let groups: BTreeSet<_> = entries.filter_map(group).collect();
        groups.into_iter().collect()
    }

    /// The keys of which this node has a share that signs.
    pub(super) fn groups(&self) -> Vec<SessionId> {
        self.groups_with(SHARE).unwrap_or_default()
    }

    /// The keys that have a file of this kind.
    fn groups_with(&self, kind: &str) -> Result<Vec<SessionId>> {
        let entries = fs::read_dir(&self.path).map_err(|error| failed("read", &self.path, error))?;
        let group = |entry: io::Result<fs::DirEntry>| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(kind)?.parse().ok()
        };
        Ok(entries.filter_map(group).collect())
    }

    /// What the node remembers of the keys of its shares.
    pub(super) fn read_known(&self) -> Result<Vec<(SessionId, Zeroizing<Vec<u8>>)>> {
        let mut all = Vec::new();
        for group in self.groups_with(KNOWN)? {
            all.extend(self.read(&file(group, KNOWN))?.map(|text| (group, text)));
        }
        Ok(all)
    }

    /// Keeps what the node remembers of a share's key.
    pub(super) fn write_known(&self, group: SessionId, text: &[u8]) -> Result<()> {
        self.write(&file(group, KNOWN), text)
    }

    /// Keeps a share that replaces no other one that still signs. When this returns, it is on the
    /// disk.
    pub(super) fn keep(&self, share: &KeyShare) -> Result<()> {
        let mut open = self.lock();
        open.remove(&share.group_id());
        let group = share.group_id();
        self.replace_share(group, &share.to_secret_bytes())?;
        self.remove(group, PROOF)
    }

    /// Keeps the share of a change beside the one that signs. This is a promise: the node does not
    /// withdraw from the change any more.
    ///
    /// # Errors
    /// [`Code::Conflict`] if the share that signs is not the one that is changed, if the node has
    /// withdrawn from this change, or has confirmed another one that may still count; errors of the
    /// disk.
    pub(super) fn prepare(&self, change: &Handover, next: &KeyShare) -> Result<()> {
        let group = change.group_id();
        let mut open = self.lock();
        let holding = self.load(&mut open, group)?;
        let conflict = |text: &str| Err(KmsError::new(Code::Conflict, text));
        if let Some(share) = &holding.share
            && share.shares_id() != change.old_shares_id()
            && share.epoch() + 1 >= change.epoch()
        {
            return conflict("the shares were changed meanwhile");
        }
        if holding.is_withdrawn(change.session()) {
            return conflict("this node has withdrawn from this change of the shares");
        }
        if holding.confirmed(change.session()).is_some() {
            return Ok(());
        }
        // An older one is of before this node was away. The others went on without it, and forgot
        // what ended the older one.
        if holding.pending().is_some_and(|pending| pending.epoch() >= change.epoch()) {
            return conflict("this node has confirmed another change of the shares, which is not settled");
        }
        let too_many = holding.next.keys().next().filter(|_| holding.next.len() >= MAX_KEPT).copied();
        open.remove(&group);
        if let Some(session) = too_many {
            self.remove(group, &next_of(session))?;
        }
        self.write(&file(group, &next_of(change.session())), &next.to_secret_bytes())
    }

    /// Withdraws from a change. This is a promise, too: the node will never confirm it.
    ///
    /// # Errors
    /// [`Code::Conflict`] if the node has confirmed it; errors of the disk.
    pub(super) fn withdraw(&self, change: &Handover) -> Result<()> {
        let mut open = self.lock();
        if self.load(&mut open, change.group_id())?.confirmed(change.session()).is_some() {
            return Err(KmsError::new(Code::Conflict, "this node has confirmed the change of the shares"));
        }
        self.write_withdrawn(&mut open, change)
    }

    /// Notes that another node has withdrawn from a change.
    pub(super) fn note_withdrawn(&self, change: &Handover) -> Result<()> {
        self.write_withdrawn(&mut self.lock(), change)
    }

    fn write_withdrawn(&self, open: &mut HashMap<SessionId, Holding>, change: &Handover) -> Result<()> {
        let group = change.group_id();
        let mut withdrawn = self.load(open, group)?.withdrawn.clone();
        if !withdrawn.insert(change.session()) {
            return Ok(());
        }
        if withdrawn.len() > MAX_WITHDRAWN {
            let text = "too many changes of the shares have failed: make one that ends first";
            return Err(KmsError::new(Code::Conflict, text));
        }
        open.remove(&group);
        let lines: Vec<_> = withdrawn.iter().map(ToString::to_string).collect();
        self.write(&file(group, WITHDRAWN), lines.join("\n").as_bytes())
    }

    /// Puts the new share in place of the old one, which is wiped. All holders have confirmed.
    ///
    /// # Errors
    /// [`Code::Conflict`] if the node has not confirmed this change; errors of the disk.
    pub(super) fn commit(&self, change: &Handover) -> Result<()> {
        let group = change.group_id();
        let mut open = self.lock();
        let holding = self.load(&mut open, group)?;
        // Two threads may hear at the same time that a change counts.
        if holding.share.as_ref().is_some_and(|share| share.proposal().opens() == Some(change.session())) {
            return Ok(());
        }
        let next = holding.confirmed(change.session());
        if next.is_none_or(|next| Some(next.shares_id()) != change.shares_id()) {
            return Err(KmsError::new(Code::Conflict, "this node has no share of this change"));
        }
        open.remove(&group);
        let lines: Vec<_> = change.messages().map(Message::to_string).collect();
        self.write(&file(group, PROOF), lines.join("\n").as_bytes())?;
        self.finish_commit(group, change.session())
    }

    /// The second half of a commit, after the proof was written.
    fn finish_commit(&self, group: SessionId, session: SessionId) -> Result<()> {
        let mut epoch = None;
        if let Some(next) = self.read(&file(group, &next_of(session)))? {
            self.replace_share(group, &next)?;
            epoch = Some(KeyShare::from_secret_bytes(&next).map_err(damaged)?.epoch());
        }
        self.end_changes(group, epoch)
    }

    /// Removes what changes have left, up to this epoch, or all. A newer change that the node has
    /// confirmed may still count.
    fn end_changes(&self, group: SessionId, epoch: Option<u32>) -> Result<()> {
        let is_newer = |next: &[u8]| {
            let next = KeyShare::from_secret_bytes(next).map_err(damaged)?;
            Ok::<_, KmsError>(epoch.is_some_and(|epoch| next.epoch() > epoch))
        };
        for session in self.sessions(group)? {
            let kind = next_of(session);
            if epoch.is_none()
                || !self.read(&file(group, &kind))?.is_some_and(|next| is_newer(&next).unwrap_or(false))
            {
                self.remove(group, &kind)?;
            }
        }
        self.remove(group, WITHDRAWN)
    }

    /// The changes for which this node has prepared a new share.
    fn sessions(&self, group: SessionId) -> Result<Vec<SessionId>> {
        let entries = fs::read_dir(&self.path).map_err(|error| failed("read", &self.path, error))?;
        let prefix = format!("{group}.");
        let session = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_prefix(&prefix)?.strip_suffix(NEXT)?.parse().ok()
        };
        Ok(entries.filter_map(session).collect())
    }

    /// Destroys what this node has of a key.
    pub(super) fn destroy(&self, group: SessionId) -> Result<()> {
        let mut open = self.lock();
        open.remove(&group);
        [SHARE, PROOF, KNOWN].into_iter().try_for_each(|kind| self.remove(group, kind))?;
        self.end_changes(group, None)?;
        sync_folder(&self.path).map_err(|error| failed("write", &self.path, error))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Holding>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load<'a>(&self, open: &'a mut HashMap<SessionId, Holding>, group: SessionId) -> Result<&'a Holding> {
        Ok(match open.entry(group) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(self.recover(group)?),
        })
    }

    /// Reads what there is of a key, and ends what a killed process had begun.
    fn recover(&self, group: SessionId) -> Result<Holding> {
        let mut holding = self.read_holding(group)?;
        let epoch = holding.share.as_ref().map(|share| share.epoch());
        let proven = holding.proof.first().and_then(Message::opens);
        let proven = proven.filter(|session| holding.next.contains_key(session));
        if holding.next.values().any(|next| epoch.is_some_and(|epoch| epoch >= next.epoch())) {
            // The share is in place, and what led to it is still there.
            self.end_changes(group, epoch)?;
            holding = self.read_holding(group)?;
        } else if let Some(session) = proven {
            self.finish_commit(group, session)?;
            holding = self.read_holding(group)?;
        }
        // A proof of another change than that of the share proves nothing.
        let proposal = holding.share.as_ref().map(|share| share.proposal().clone());
        if holding.proof.first() != proposal.as_ref() {
            holding.proof.clear();
        }
        Ok(holding)
    }

    fn read_holding(&self, group: SessionId) -> Result<Holding> {
        let share = |kind: &str| {
            let bytes = self.read(&file(group, kind))?;
            bytes.map(|bytes| KeyShare::from_secret_bytes(&bytes).map(Arc::new).map_err(damaged)).transpose()
        };
        let text = |kind| {
            let bytes = self.read(&file(group, kind))?.unwrap_or_default();
            let text = std::str::from_utf8(&bytes).map(ToOwned::to_owned);
            text.map_err(|_| KmsError::new(Code::KeystoreCorrupt, "a file of the group's folder is no text"))
        };
        let withdrawn =
            text(WITHDRAWN)?.lines().map(str::parse).collect::<Result<_, _>>().map_err(damaged)?;
        let mut next = BTreeMap::new();
        for session in self.sessions(group)? {
            next.extend(share(&next_of(session))?.map(|share| (session, share)));
        }
        Ok(Holding {
            share: share(SHARE)?,
            next,
            proof: Message::parse_all(&text(PROOF)?).map_err(damaged)?,
            withdrawn,
        })
    }

    /// Writes a share in place of another one, and overwrites the file that was there. A file
    /// system may have other copies of its blocks: these are encrypted by the node's key file.
    fn replace_share(&self, group: SessionId, secret: &[u8]) -> Result<()> {
        let path = self.path.join(file(group, SHARE));
        let old = fs::OpenOptions::new().write(true).open(&path).ok();
        self.write(&file(group, SHARE), secret)?;
        if let Some(mut old) = old {
            self.fail_points
                .step()
                .and_then(|()| wipe(&mut old))
                .map_err(|error| failed("wipe", &path, error))?;
        }
        Ok(())
    }

    fn remove(&self, group: SessionId, kind: &str) -> Result<()> {
        let path = self.path.join(file(group, kind));
        let remove = || {
            self.fail_points.step()?;
            let mut removed = match fs::OpenOptions::new().write(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                opened => opened?,
            };
            // Remove the name first: a file that is overwritten in part would look damaged.
            fs::remove_file(&path)?;
            sync_folder(&self.path)?;
            wipe(&mut removed)
        };
        remove().map_err(|error| failed("remove", &path, error))
    }

    fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let path = self.path.join(name);
        let found = fs::metadata(&path).and_then(|metadata| match metadata.len() > MAX_FILE_LEN {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => fs::read(&path),
        });
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path, error)),
            Ok(bytes) => decrypt(&bytes, &[&self.key], &context(name)).map(Some),
        }
    }

    fn write(&self, name: &str, secret: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let encrypted = encrypt(secret, &[&self.key], &context(name))?;
        let write = || {
            self.fail_points.step()?;
            let mut file = AtomicFile::create(&self.path, Visibility::OwnerOnly)?;
            io::Write::write_all(file.file()?, &encrypted)?;
            file.persist(&path, IfExists::Replace)?;
            sync_folder(&self.path)
        };
        write().map_err(|error| failed("write", &path, error))
    }
}

fn file(group: SessionId, kind: &str) -> String {
    format!("{group}{kind}")
}

/// The kind of the file with the share of a change.
fn next_of(session: SessionId) -> String {
    format!(".{session}{NEXT}")
}

/// Overwrites a file's content where it is.
fn wipe(file: &mut fs::File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len().min(MAX_FILE_LEN)).map_err(io::Error::other)?;
    io::Write::write_all(file, &vec![0; length])?;
    file.sync_all()
}

/// A file opens only under its own name.
fn context(name: &str) -> Vec<u8> {
    format!("bulla group v1 file\0{name}").into_bytes()
}

fn failed(what: &str, path: &Path, error: io::Error) -> KmsError {
    KmsError::io(format!("cannot {what} {}", escape_path(path)), error)
}

fn damaged(error: ThresholdError) -> KmsError {
    KmsError::new(Code::KeystoreCorrupt, format!("a file of the group's folder: {error}"))
}
