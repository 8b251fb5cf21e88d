//! Rows that the service keeps beside the keys: tokens by their accessors, secret ids, wrapped
//! answers, JWTs that were used, requests for approval.
//!
//! A row is read by every node, and is there after a restart. Nodes of a cluster keep rows in etcd.
//! A service with a keystore in a folder has a file for each row, and one with a keystore in memory
//! has them in memory. Everywhere they are encrypted by the keystore, under their name, and names
//! are digests that only the keystore can compute.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use bulla_files::{AtomicFile, IfExists, Visibility, escape_path, folder_of, sync_folder};
use bulla_kms::{Code, Keystore, KmsError, Name, Result, Timestamp};
use zeroize::Zeroizing;

use crate::cluster::ClusterNode;

/// The most rows of a folder. A caller can fill only the folders of its own tenant.
const MAX_ROWS: usize = 10_000;
/// The most rows of a folder for long rows.
const MAX_LONG_ROWS: usize = 128;
/// How often the rows of a folder that have ended are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How often that is done at most when a folder is full: all of its rows are read for it.
const FULL_SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// How many rows of a list are read at once.
const ROWS_AT_ONCE: usize = 256;
/// A row is kept a little longer than it counts: nodes' clocks differ.
const GRACE: Duration = Duration::from_secs(60);

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// A token, by its accessor. The folder is the tenant's.
    Token,
    /// A secret id, by its accessor. The folder is the role's.
    SecretId,
    /// An answer that waits to be unwrapped. The folder is the tenant's.
    WrappedAnswer,
    /// The same, if it is long: fewer of these wait.
    LongWrappedAnswer,
    /// A JWT that was used. The folder is the issuer's: nobody uses one again for another tenant.
    UsedJwt,
    /// The same, to be counted. The folder is that of the issuer and a tenant.
    UsedJwtOfTenant,
    /// A request for approval, by its id. The folder is the tenant's, and its rows are in the order
    /// of their times.
    Approval,
    /// Which requests a requester has, by the requester's name. The folder is the tenant's.
    Requester,
}

impl RowKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "tokens",
            Self::SecretId => "secret-ids",
            Self::WrappedAnswer => "wrapped-answers",
            Self::LongWrappedAnswer => "long-wrapped-answers",
            Self::UsedJwt => "used-jwts",
            Self::UsedJwtOfTenant => "used-jwts-of-tenants",
            Self::Approval => "approvals",
            Self::Requester => "requesters",
        }
    }

    /// With how many digits of its time a row's name begins. Whoever sees the rows knows when they
    /// were made anyway.
    const fn time_digits(self) -> usize {
        match self {
            // The first 48 bits of the request's id.
            Self::Approval => 12,
            _ => 0,
        }
    }

    /// The most rows of a folder; none if other rows bound their number.
    const fn max_rows(self) -> Option<usize> {
        match self {
            Self::UsedJwt => None,
            Self::LongWrappedAnswer => Some(MAX_LONG_ROWS),
            Self::Token
            | Self::SecretId
            | Self::WrappedAnswer
            | Self::UsedJwtOfTenant
            | Self::Approval
            | Self::Requester => Some(MAX_ROWS),
        }
    }
}

/// A folder of rows: all of one kind and one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowFolder {
    kind: RowKind,
    name: String,
}

/// The digest that stands for an owner in the name of a folder.
pub(crate) type OwnerDigest = [u8; 16];

impl RowFolder {
    /// The folder of an owner: a tenant, a role or an issuer.
    pub(crate) fn new(keystore: &Keystore, kind: RowKind, owner: &str) -> Self {
        Self::by_digest(kind, Self::owner_digest(keystore, owner))
    }

    /// The folder of the owner with a digest.
    pub(crate) fn by_digest(kind: RowKind, owner: OwnerDigest) -> Self {
        Self { kind, name: format!("rows/{}/{}", kind.as_str(), hex::encode(owner)) }
    }

    pub(crate) fn owner_digest(keystore: &Keystore, owner: &str) -> OwnerDigest {
        let digest = keystore.data_cipher().keyed_digest(format!("row owner\n{owner}").as_bytes());
        *digest.first_chunk().expect("a digest is longer")
    }

    fn row(&self, keystore: &Keystore, id: &str) -> String {
        let digest = keystore.data_cipher().keyed_digest(format!("row\n{}\n{id}", self.name).as_bytes());
        let time: String = id.chars().filter(|c| *c != '-').take(self.kind.time_digits()).collect();
        format!("{}{time}{}", self.first(), &hex::encode(&digest[..16])[time.len()..])
    }

    /// What comes before the names of all rows.
    fn first(&self) -> String {
        format!("{}/", self.name)
    }
}

/// A row as it was read.
pub(crate) struct ServiceRow {
    name: String,
    sealed: Vec<u8>,
    /// When it ends.
    pub(crate) expires: Option<Timestamp>,
    pub(crate) content: Zeroizing<Vec<u8>>,
}

/// Whether a row was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowInsertion {
    Added,
    /// A row of this id is there, and stays as it is.
    Exists,
}

/// The rows of a service.
#[derive(Debug)]
pub(crate) struct ServiceRows {
    store: RowStore,
    /// When the rows of a folder that have ended were last removed.
    swept: Mutex<HashMap<String, Instant>>,
}

#[derive(Debug)]
enum RowStore {
    Memory(Mutex<BTreeMap<String, Vec<u8>>>),
    Files {
        path: PathBuf,
        /// Its holder changes files.
        changing: Mutex<()>,
    },
    Cluster(Arc<ClusterNode>),
}

impl ServiceRows {
    /// The rows that nodes share; else those in a folder; else rows in memory.
    pub(crate) fn new(cluster: Option<&Arc<ClusterNode>>, folder: Option<PathBuf>) -> Self {
        let store = match (cluster, folder) {
            (Some(cluster), _) => RowStore::Cluster(Arc::clone(cluster)),
            (None, Some(path)) => RowStore::Files { path, changing: Mutex::default() },
            (None, None) => RowStore::Memory(Mutex::default()),
        };
        Self { store, swept: Mutex::default() }
    }

    /// Adds a row, unless one with its id is there. It waits for the disk, or for etcd.
    ///
    /// # Errors
    /// [`Code::Busy`]: the folder has as many rows as it may. Those of writing, and of etcd: then
    /// the row may be there nonetheless.
    pub(crate) fn insert(
        &self,
        keystore: &Keystore,
        folder: &RowFolder,
        id: &str,
        content: &[u8],
        expires: Option<Timestamp>,
    ) -> Result<RowInsertion> {
        // etcd removes rows by itself.
        if !matches!(self.store, RowStore::Cluster(_)) {
            self.sweep_now_and_then(keystore, folder, SWEEP_INTERVAL)?;
        }
        let name = folder.row(keystore, id);
        let sealed = seal(keystore, &name, content, expires)?;
        self.check_room(keystore, folder)?;
        if self.store.insert(&name, &sealed, expires)? {
            return Ok(RowInsertion::Added);
        }
        match self.get(keystore, folder, id)? {
            Some(_) => Ok(RowInsertion::Exists),
            // It has ended, and nobody has removed it yet.
            None => {
                let Some(old) = self.store.get(&name)? else { return Ok(RowInsertion::Exists) };
                self.store.replace(&name, &old, None)?;
                let added = self.store.insert(&name, &sealed, expires)?;
                Ok(if added { RowInsertion::Added } else { RowInsertion::Exists })
            }
        }
    }

    /// # Errors
    /// [`Code::Busy`]: the folder has as many rows as it may. Those of the store.
    fn check_room(&self, keystore: &Keystore, folder: &RowFolder) -> Result<()> {
        let Some(most) = folder.kind.max_rows() else { return Ok(()) };
        if self.store.count(&folder.name)? < most {
            return Ok(());
        }
        self.sweep_now_and_then(keystore, folder, FULL_SWEEP_INTERVAL)?;
        if self.store.count(&folder.name)? < most {
            return Ok(());
        }
        let message = format!("there are {most} of these already: use or revoke some, or wait");
        Err(KmsError::new(Code::Busy, message))
    }

    /// Remembers that a JWT of an issuer was used, for a login to a tenant. Whoever has many JWTs
    /// for the logins of one tenant cannot end the logins to the others. It waits for the disk, or
    /// for etcd.
    ///
    /// # Errors
    /// Those of [`ServiceRows::insert`].
    pub(crate) fn use_jwt(
        &self,
        keystore: &Keystore,
        (issuer, tenant): (&Name, &Name),
        id: &str,
        expires: Timestamp,
    ) -> Result<RowInsertion> {
        let insert = |kind, owner: &str| {
            let folder = RowFolder::new(keystore, kind, owner);
            self.insert(keystore, &folder, id, &[], Some(expires))
        };
        // The row that is counted comes first, so that there are no more of the others.
        match insert(RowKind::UsedJwtOfTenant, &format!("{issuer}\n{tenant}"))? {
            RowInsertion::Added => insert(RowKind::UsedJwt, issuer.as_str()),
            RowInsertion::Exists => Ok(RowInsertion::Exists),
        }
    }

    /// The row with an id, if it is there and has not ended. It waits for the disk, or for etcd.
    ///
    /// # Errors
    /// [`Code::KeystoreCorrupt`]: it was changed. Those of reading, and of etcd.
    pub(crate) fn get(
        &self,
        keystore: &Keystore,
        folder: &RowFolder,
        id: &str,
    ) -> Result<Option<ServiceRow>> {
        let name = folder.row(keystore, id);
        let Some(sealed) = self.store.get(&name)? else { return Ok(None) };
        let row = open(keystore, name, sealed)?;
        Ok(if has_ended(row.expires)? { None } else { Some(row) })
    }

    /// The rows of a folder that have not ended. It waits for the disk, or for etcd.
    ///
    /// # Errors
    /// Those of [`ServiceRows::get`].
    pub(crate) fn all(&self, keystore: &Keystore, folder: &RowFolder) -> Result<Vec<ServiceRow>> {
        let mut rows = Vec::new();
        for (name, sealed) in self.store.page(folder, &folder.first(), usize::MAX)? {
            let row = open(keystore, name, sealed)?;
            if !has_ended(row.expires)? {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Passes the rows of a folder that have not ended to `take`, in the order of their names,
    /// until it has enough: from the first one on, or from after the row of an id, whether there
    /// is one or not. It waits for the disk, or for etcd.
    ///
    /// # Errors
    /// Those of `take`, and of [`ServiceRows::get`].
    pub(crate) fn scan(
        &self,
        keystore: &Keystore,
        folder: &RowFolder,
        after: Option<&str>,
        mut take: impl FnMut(ServiceRow) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut after = after.map_or_else(|| folder.first(), |id| folder.row(keystore, id));
        loop {
            let rows = self.store.page(folder, &after, ROWS_AT_ONCE)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after.clone_from(last);
            for (name, sealed) in rows {
                let row = open(keystore, name, sealed)?;
                if !has_ended(row.expires)? && take(row)?.is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Gives a row other content, if nobody has changed it since it was read. Returns whether it
    /// did: of several who try, one does. It waits for the disk, or for etcd.
    ///
    /// # Errors
    /// Those of writing, and of etcd: then the row may be changed nonetheless.
    pub(crate) fn replace(&self, keystore: &Keystore, row: &ServiceRow, new: &[u8]) -> Result<bool> {
        let new = seal(keystore, &row.name, new, row.expires)?;
        self.store.replace(&row.name, &row.sealed, Some(&new))
    }

    /// Like [`ServiceRows::replace`], and from now on the row ends at another time.
    ///
    /// # Errors
    /// Those of [`ServiceRows::replace`].
    pub(crate) fn replace_until(
        &self,
        keystore: &Keystore,
        row: &ServiceRow,
        new: &[u8],
        expires: Timestamp,
    ) -> Result<bool> {
        let new = seal(keystore, &row.name, new, Some(expires))?;
        match &self.store {
            RowStore::Cluster(node) => {
                node.replace_row_until(&row.name, &row.sealed, &new, lifetime(expires)?)
            }
            store => store.replace(&row.name, &row.sealed, Some(&new)),
        }
    }

    /// Removes a row, if nobody has changed it since it was read. Returns whether it did: of
    /// several who try, one does. It waits for the disk, or for etcd.
    ///
    /// # Errors
    /// Those of [`ServiceRows::replace`].
    pub(crate) fn remove(&self, keystore: &Keystore, row: &ServiceRow) -> Result<bool> {
        if !matches!(self.store, RowStore::Cluster(_)) {
            return self.store.replace(&row.name, &row.sealed, None);
        }
        // Of etcd, two nodes that remove one row both hear that it is gone. So this node first
        // writes a row that nobody else can write, and which counts as ended.
        let ended = seal(keystore, &row.name, &[], Some(Timestamp::default()))?;
        if !self.store.replace(&row.name, &row.sealed, Some(&ended))? {
            return Ok(false);
        }
        if let Err(error) = self.store.replace(&row.name, &ended, None) {
            tracing::debug!("etcd will remove a row of the service later: {}", error.message);
        }
        Ok(true)
    }

    fn sweep_now_and_then(&self, keystore: &Keystore, folder: &RowFolder, interval: Duration) -> Result<()> {
        {
            let mut swept = locked(&self.swept);
            if swept.get(&folder.name).is_some_and(|at| at.elapsed() < interval) {
                return Ok(());
            }
            swept.insert(folder.name.clone(), Instant::now());
        }
        self.sweep(keystore, folder)
    }

    /// Removes the rows that have ended.
    fn sweep(&self, keystore: &Keystore, folder: &RowFolder) -> Result<()> {
        for (name, sealed) in self.store.page(folder, &folder.first(), usize::MAX)? {
            let row = open(keystore, name, sealed)?;
            if has_ended(row.expires)? {
                self.store.replace(&row.name, &row.sealed, None)?;
            }
        }
        Ok(())
    }
}

/// The length of a row's end, before its content.
const END_LEN: usize = 8;

fn seal(keystore: &Keystore, name: &str, content: &[u8], expires: Option<Timestamp>) -> Result<Vec<u8>> {
    let mut plain = Zeroizing::new(Vec::with_capacity(END_LEN + content.len()));
    plain.extend_from_slice(&expires.map_or(u64::MAX, Timestamp::unix_millis).to_le_bytes());
    plain.extend_from_slice(content);
    keystore.data_cipher().encrypt(name, &plain)
}

fn open(keystore: &Keystore, name: String, sealed: Vec<u8>) -> Result<ServiceRow> {
    let plain = keystore.data_cipher().decrypt(&name, &sealed)?;
    let Some((end, content)) = plain.split_first_chunk::<END_LEN>() else {
        return Err(KmsError::new(Code::KeystoreCorrupt, "a row of the service is cut off"));
    };
    let expires = match u64::from_le_bytes(*end) {
        u64::MAX => None,
        millis => Some(Timestamp::from_unix_millis(millis)?),
    };
    Ok(ServiceRow { name, sealed, expires, content: Zeroizing::new(content.to_vec()) })
}

fn has_ended(expires: Option<Timestamp>) -> Result<bool> {
    let now = Timestamp::now()?;
    Ok(expires.is_some_and(|end| end <= now))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time for which a store must keep a row.
fn lifetime(expires: Timestamp) -> Result<Duration> {
    let now = Timestamp::now()?.unix_millis();
    Ok(Duration::from_millis(expires.unix_millis().saturating_sub(now)) + GRACE)
}

impl RowStore {
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Memory(rows) => Ok(locked(rows).get(name).cloned()),
            Self::Files { path, .. } => read(&path.join(name)),
            Self::Cluster(node) => node.row(name),
        }
    }

    /// Up to `most` rows of a folder in the order of their names, from after the name `after` on.
    fn page(&self, folder: &RowFolder, after: &str, most: usize) -> Result<Vec<(String, Vec<u8>)>> {
        match self {
            Self::Memory(rows) => {
                let (first, rows) = (folder.first(), locked(rows));
                let later = rows.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
                let later = later.take_while(|(name, _)| name.starts_with(&first)).take(most);
                Ok(later.map(|(name, sealed)| (name.clone(), sealed.clone())).collect())
            }
            Self::Files { path, .. } => {
                let names = file_names(&path.join(&folder.name))?.into_iter();
                let mut names: Vec<_> = names.map(|id| folder.first() + &id).collect();
                names.retain(|name| name.as_str() > after);
                names.sort_unstable();
                // Another request may have removed some meanwhile.
                let rows = names.into_iter().filter_map(|name| match read(&path.join(&name)) {
                    Ok(sealed) => Some(Ok((name, sealed?))),
                    Err(error) => Some(Err(error)),
                });
                rows.take(most).collect()
            }
            Self::Cluster(node) => node.row_page(&folder.name, after, most),
        }
    }

    fn count(&self, folder: &str) -> Result<usize> {
        match self {
            Self::Memory(rows) => {
                let prefix = format!("{folder}/");
                Ok(locked(rows).keys().filter(|name| name.starts_with(&prefix)).count())
            }
            Self::Files { path, .. } => Ok(file_names(&path.join(folder))?.len()),
            Self::Cluster(node) => node.count_rows(folder),
        }
    }

    /// Adds a row, unless it is there. Returns whether it did.
    fn insert(&self, name: &str, sealed: &[u8], expires: Option<Timestamp>) -> Result<bool> {
        match self {
            Self::Memory(rows) => {
                let mut rows = locked(rows);
                let is_new = !rows.contains_key(name);
                if is_new {
                    rows.insert(name.to_owned(), sealed.to_vec());
                }
                Ok(is_new)
            }
            Self::Files { path, changing } => {
                let _changing = locked(changing);
                match write(&path.join(name), sealed, IfExists::Fail) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    written => written.map(|()| true).map_err(|error| failed(&path.join(name), &error)),
                }
            }
            Self::Cluster(node) => node.insert_row(name, sealed, expires.map(lifetime).transpose()?),
        }
    }

    /// Changes a row, or removes it, if it is still `old`. Returns whether it did.
    fn replace(&self, name: &str, old: &[u8], new: Option<&[u8]>) -> Result<bool> {
        match self {
            Self::Memory(rows) => {
                let mut rows = locked(rows);
                if rows.get(name).map(Vec::as_slice) != Some(old) {
                    return Ok(false);
                }
                match new {
                    Some(new) => drop(rows.insert(name.to_owned(), new.to_vec())),
                    None => drop(rows.remove(name)),
                }
                Ok(true)
            }
            Self::Files { path, changing } => {
                let (path, _changing) = (path.join(name), locked(changing));
                if read(&path)?.as_deref() != Some(old) {
                    return Ok(false);
                }
                let changed = match new {
                    Some(new) => write(&path, new, IfExists::Replace),
                    None => fs::remove_file(&path).and_then(|()| sync_folder(folder_of(&path))),
                };
                changed.map(|()| true).map_err(|error| failed(&path, &error))
            }
            Self::Cluster(node) => node.replace_row(name, old, new),
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> KmsError {
    KmsError::new(Code::Io, format!("a row of the service, {}: {error}", escape_path(path)))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(sealed) => Ok(Some(sealed)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

/// The names of rows in a folder. Files that are being written have other names.
fn file_names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| failed(folder, &error))?.file_name();
        let is_row = |name: &&str| name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
        names.extend(name.to_str().filter(is_row).map(str::to_owned));
    }
    Ok(names)
}

/// Writes a row. When this returns, it is on the disk.
fn write(path: &Path, sealed: &[u8], if_exists: IfExists) -> io::Result<()> {
    let folder = folder_of(path);
    let mut options = fs::DirBuilder::new();
    options.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut options, 0o700);
    options.create(folder)?;
    let mut file = AtomicFile::create(folder, Visibility::OwnerOnly)?;
    file.file()?.write_all(sealed)?;
    file.persist(path, if_exists)?;
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Option<Timestamp> {
        Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + seconds * 1000).ok()
    }

    /// Rows in memory and in files, and a folder of them.
    fn each(test: impl Fn(&ServiceRows, &Keystore, &RowFolder)) {
        let (folder, keystore) = (tempfile::tempdir().unwrap(), Keystore::in_memory().unwrap());
        let rows = RowFolder::new(&keystore, RowKind::SecretId, "a");
        for path in [None, Some(folder.path().to_owned())] {
            test(&ServiceRows::new(None, path), &keystore, &rows);
        }
    }

    fn content(rows: &ServiceRows, keystore: &Keystore, folder: &RowFolder, id: &str) -> Option<Vec<u8>> {
        rows.get(keystore, folder, id).unwrap().map(|row| row.content.to_vec())
    }

    #[test]
    fn a_row_is_added_once_and_changed_by_one_of_those_who_read_it() {
        each(|rows, keystore, folder| {
            assert_eq!(content(rows, keystore, folder, "x"), None);
            let insert = |content: &[u8]| rows.insert(keystore, folder, "x", content, after(60)).unwrap();
            assert_eq!((insert(b"1"), insert(b"2")), (RowInsertion::Added, RowInsertion::Exists));
            let read = || rows.get(keystore, folder, "x").unwrap().unwrap();
            let (one, other) = (read(), read());
            assert!(rows.replace(keystore, &one, b"3").unwrap());
            assert!(!rows.replace(keystore, &other, b"4").unwrap(), "it has changed since");
            assert_eq!(content(rows, keystore, folder, "x"), Some(b"3".to_vec()));
            assert_eq!(rows.all(keystore, folder).unwrap().len(), 1);
            let last = read();
            let removed = [(); 2].map(|()| rows.remove(keystore, &last).unwrap());
            assert_eq!(removed, [true, false]);
            assert_eq!(content(rows, keystore, folder, "x"), None);
        });
    }

    #[test]
    fn a_row_that_has_ended_is_not_there_and_makes_room() {
        each(|rows, keystore, folder| {
            assert_eq!(rows.insert(keystore, folder, "x", b"1", after(0)).unwrap(), RowInsertion::Added);
            assert_eq!(content(rows, keystore, folder, "x"), None);
            assert_eq!(rows.insert(keystore, folder, "x", b"2", None).unwrap(), RowInsertion::Added);
            assert_eq!(content(rows, keystore, folder, "x"), Some(b"2".to_vec()));
            rows.insert(keystore, folder, "y", b"3", after(0)).unwrap();
            assert_eq!(
                (rows.all(keystore, folder).unwrap().len(), rows.store.count(&folder.name).unwrap()),
                (1, 2)
            );
            rows.sweep(keystore, folder).unwrap();
            assert_eq!(rows.store.count(&folder.name).unwrap(), 1);
        });
    }

    #[test]
    fn rows_with_a_time_are_read_in_its_order_and_from_any_id_on() {
        each(|rows, keystore, _| {
            let folder = RowFolder::new(keystore, RowKind::Approval, "a");
            // More than are read at once, and not in the order of their times.
            let count = ROWS_AT_ONCE as u64 + 44;
            let id = |time: u64| format!("0197a5c0-{time:04x}-7e0b-9a37-0d2a6f3b8c11");
            for number in 0..count {
                let time = number * 77 % count;
                let expires = after(if time == 5 { 0 } else { 60 });
                rows.insert(keystore, &folder, &id(time), &time.to_le_bytes(), expires).unwrap();
            }
            let scan = |after: Option<u64>, most: usize| {
                let mut found = Vec::new();
                let take = |row: ServiceRow| {
                    found.push(u64::from_le_bytes(row.content[..].try_into().unwrap()));
                    Ok(if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
                };
                rows.scan(keystore, &folder, after.map(id).as_deref(), take).unwrap();
                found
            };
            let all: Vec<_> = (0..count).filter(|time| *time != 5).collect();
            assert_eq!(scan(None, usize::MAX), all);
            assert_eq!(scan(None, 7), all[..7]);
            // After the row that has ended, the last row, and one that never was.
            assert_eq!(scan(Some(5), 3), [6, 7, 8]);
            assert_eq!(scan(Some(count - 1), 3), [0; 0]);
            assert_eq!(scan(Some(count), 3), [0; 0]);
        });
    }

    #[test]
    fn a_row_gets_another_end() {
        each(|rows, keystore, folder| {
            rows.insert(keystore, folder, "x", b"1", after(3600)).unwrap();
            let row = rows.get(keystore, folder, "x").unwrap().unwrap();
            assert!(rows.replace_until(keystore, &row, b"2", after(0).unwrap()).unwrap());
            assert_eq!(content(rows, keystore, folder, "x"), None);
            assert!(!rows.replace_until(keystore, &row, b"3", after(60).unwrap()).unwrap(), "it has changed");
        });
    }

    #[test]
    fn files_show_nothing_of_rows_and_only_their_owner_reads_them() {
        use std::os::unix::fs::PermissionsExt as _;
        let (path, keystore) = (tempfile::tempdir().unwrap(), Keystore::in_memory().unwrap());
        let folder = RowFolder::new(&keystore, RowKind::SecretId, "owner-name");
        let rows = ServiceRows::new(None, Some(path.path().to_owned()));
        rows.insert(&keystore, &folder, "row-id", b"row-content", None).unwrap();
        let name = folder.row(&keystore, "row-id");
        let file = path.path().join(&name);
        let sealed = fs::read(&file).unwrap();
        let has = |text: &str| sealed.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(!has("row-content") && !name.contains("row-id") && !name.contains("owner"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        // The row of another name, a changed one, and one of another keystore are refused.
        let other = RowFolder::new(&keystore, RowKind::SecretId, "other").row(&keystore, "row-id");
        fs::create_dir_all(path.path().join(&other).parent().unwrap()).unwrap();
        fs::copy(&file, path.path().join(&other)).unwrap();
        let moved = rows.get(&keystore, &RowFolder::new(&keystore, RowKind::SecretId, "other"), "row-id");
        assert_eq!(moved.err().unwrap().code, Code::KeystoreCorrupt);
        assert!(rows.get(&Keystore::in_memory().unwrap(), &folder, "row-id").unwrap().is_none());
    }

    #[test]
    fn a_folder_has_a_bound_and_other_folders_do_not_count() {
        let keystore = Keystore::in_memory().unwrap();
        let rows = ServiceRows::new(None, None);
        let [one, other] = ["a", "b"].map(|owner| RowFolder::new(&keystore, RowKind::Token, owner));
        for number in 0..MAX_ROWS {
            let name = one.row(&keystore, &number.to_string());
            rows.store.insert(&name, &seal(&keystore, &name, b"", None).unwrap(), None).unwrap();
        }
        assert_eq!(rows.insert(&keystore, &one, "x", b"", None).unwrap_err().code, Code::Busy);
        rows.insert(&keystore, &other, "x", b"", None).unwrap();
        // One of them ends.
        let name = one.row(&keystore, "0");
        let (old, ended) = (rows.store.get(&name).unwrap().unwrap(), seal(&keystore, &name, b"", after(0)));
        rows.store.replace(&name, &old, Some(&ended.unwrap())).unwrap();
        locked(&rows.swept).insert(one.name.clone(), Instant::now() + SWEEP_INTERVAL);
        let refused = rows.insert(&keystore, &one, "x", b"", None).unwrap_err();
        assert_eq!(refused.code, Code::Busy, "nobody makes the service read all rows with each request");
        locked(&rows.swept).clear();
        rows.insert(&keystore, &one, "x", b"", None).unwrap();
    }

    #[test]
    fn used_jwts_of_one_tenant_leave_room_for_those_of_others_and_count_for_all() {
        let (keystore, rows) = (Keystore::in_memory().unwrap(), ServiceRows::new(None, None));
        let [issuer, one, other] = ["ci", "a", "b"].map(|name| name.parse().unwrap());
        let expires = after(60).unwrap();
        let used = |tenant: &Name, id: &str| rows.use_jwt(&keystore, (&issuer, tenant), id, expires);
        assert_eq!(used(&one, "1").unwrap(), RowInsertion::Added);
        assert_eq!(used(&one, "1").unwrap(), RowInsertion::Exists);
        assert_eq!(used(&other, "1").unwrap(), RowInsertion::Exists, "it was used for another tenant");
        let folder = RowFolder::new(&keystore, RowKind::UsedJwtOfTenant, "ci\na");
        for number in 1..MAX_ROWS {
            let name = folder.row(&keystore, &format!("more {number}"));
            rows.store.insert(&name, &seal(&keystore, &name, b"", None).unwrap(), None).unwrap();
        }
        assert_eq!(used(&one, "2").unwrap_err().code, Code::Busy);
        assert_eq!(used(&other, "2").unwrap(), RowInsertion::Added);
    }
}
