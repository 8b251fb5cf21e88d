//! One digest of a whole folder: `spec/manifest.md`.
//!
//! A folder's digest covers the names, kinds, executable bits and contents of all that is in it,
//! and the digests of the folders in it. Two folders have the same digest only if they hold the
//! same.

use crate::folder::{Links, OpenPolicy, path_from};
use crate::hash_files::{Dash, EntryContent, NamePolicy, ReadOptions, read_entries};
use crate::hashing::HashParams;
use crate::ordered_pool::{Feed, Helpers, JobOutcome, PoolOptions, run_in_order};
use crate::reading::{Meter, ReadError};
use crate::rules::{EntryFilter, Rules, WalkError};
use crate::walk::{FileBatch, Job, PendingFolder};
use bulla_blake3::{Hash, Hasher};
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The context in which a folder's digest is derived, so that it is never that of a file.
const CONTEXT: &str = "bulla 2026-11-24 tree v1: the content of a folder";

/// Assembles the digest of a folder from its content, in order.
///
/// ```
/// use bulla_sums::{EntryKind, TreeHasher};
///
/// // `a`, `photos/1.jpg` and `photos/2.jpg`, sorted.
/// let mut tree = TreeHasher::new();
/// let file = |content: &[u8]| bulla_blake3::hash(content);
/// tree.add(EntryKind::File, b"a", &file(b"one"));
/// tree.enter(b"photos");
/// tree.add(EntryKind::File, b"1.jpg", &file(b"two"));
/// tree.add(EntryKind::File, b"2.jpg", &file(b"three"));
/// tree.leave_to(1);
/// println!("{}", tree.finish());
/// ```
pub struct TreeHasher {
    /// The folders that are not complete, from the outermost one on.
    open: Vec<OpenFolder>,
}

struct OpenFolder {
    name: Vec<u8>,
    hasher: Hasher,
}

/// The kind of an entry, as one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file that its owner may not run.
    File,
    /// A file that its owner may run.
    Executable,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
}

impl EntryKind {
    fn byte(self) -> u8 {
        match self {
            Self::File => b'f',
            Self::Executable => b'x',
            Self::Link => b'l',
            Self::Folder => b'd',
        }
    }
}

impl Default for TreeHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl TreeHasher {
    /// The tree of a folder, in which nothing is yet.
    pub fn new() -> Self {
        Self { open: vec![OpenFolder { name: Vec::new(), hasher: Hasher::new_derive_key(CONTEXT) }] }
    }

    /// Adds an entry to the innermost folder. The digest is the BLAKE3 hash of a file's content, or
    /// of a link's text.
    pub fn add(&mut self, kind: EntryKind, name: &[u8], digest: &Hash) {
        let hasher = &mut self.open.last_mut().expect("the outermost folder stays").hasher;
        hasher.update(&[kind.byte()]).update(&(name.len() as u64).to_le_bytes()).update(name);
        hasher.update(digest.as_bytes());
    }

    /// Begins a folder in the innermost one.
    pub fn enter(&mut self, name: &[u8]) {
        self.open.push(OpenFolder { name: name.to_owned(), hasher: Hasher::new_derive_key(CONTEXT) });
    }

    /// Ends folders, until `depth` of them are left.
    ///
    /// # Panics
    /// If none would be left.
    pub fn leave_to(&mut self, depth: usize) {
        assert!(depth > 0, "the outermost folder stays");
        while self.open.len() > depth {
            if let Some(OpenFolder { name, hasher }) = self.open.pop() {
                self.add(EntryKind::Folder, &name, &hasher.finalize());
            }
        }
    }

    /// The digest of the outermost folder.
    pub fn finish(mut self) -> Hash {
        self.leave_to(1);
        self.open[0].hasher.finalize()
    }
}

/// A folder's digest.
#[derive(Clone, Copy, Debug)]
pub struct TreeDigest {
    /// The digest of the folder.
    pub hash: Hash,
    /// The number of files and links.
    pub entries: u64,
    /// The number of bytes in the files.
    pub bytes: u64,
}

/// The reason why a folder has no digest.
#[derive(Debug)]
pub enum TreeError {
    /// A folder cannot be read.
    Walk(WalkError),
    /// Something in it cannot be read.
    Read(PathBuf, ReadError),
    /// A file in it takes the output, so that it changes when the digest is printed.
    Output(PathBuf),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Walk(error) => error.fmt(f),
            Self::Read(path, _) => write!(f, "cannot hash {path:?}"),
            Self::Output(path) => write!(f, "{path:?} takes the output, and is in the folder"),
        }
    }
}

impl Error for TreeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Walk(error) => error.source(),
            Self::Read(_, error) => Some(error),
            Self::Output(_) => None,
        }
    }
}

/// The parts of a tree that one job found.
enum TreePart {
    Folder { depth: usize, name: Vec<u8> },
    Entries { depth: usize, entries: Vec<(Vec<u8>, EntryContent)> },
    Errors(Vec<TreeError>),
    Both(Box<[TreePart; 2]>),
}

/// Reads a folder and everything in it, and computes its digest. `output` is the identity of the
/// file to which the digest will be written, if there is one: see
/// [`Stamp::identity`](crate::Stamp::identity).
///
/// ```
/// use bulla_sums::{EntryKind, NoProgress, PoolOptions, Threads, TreeHasher, tree_digest};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
/// std::fs::write(path.join("a"), "one")?;
/// let plan = PoolOptions { threads: Threads::One, meter: &NoProgress, on_large: &|| {} };
/// let digest = tree_digest(path, None, &plan).unwrap();
/// assert_eq!((digest.entries, digest.bytes), (1, 3));
///
/// let mut expected = TreeHasher::new();
/// expected.add(EntryKind::File, b"a", &bulla_blake3::hash(b"one"));
/// assert_eq!(digest.hash, expected.finish());
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// One for each thing that cannot be read, that is not a file, a folder or a link, or that takes
/// the output.
pub fn tree_digest(
    path: &Path,
    output: Option<(u64, u64)>,
    plan: &PoolOptions<'_>,
) -> Result<TreeDigest, Vec<TreeError>> {
    let mut rules = Rules::default();
    rules.entries = EntryFilter::Everything;
    let reading = reading(plan.meter);
    let work = |job, helpers: &dyn Helpers| match job {
        Job::Folder(pending) => list_folder(pending, &rules),
        Job::Batch(batch) => read_batch(&reading, &batch, output, helpers),
    };
    let mut builder = DigestBuilder { tree: TreeHasher::new(), entries: 0, bytes: 0, errors: Vec::new() };
    let root = PendingFolder::root(path.as_os_str().as_encoded_bytes());
    let each = |found| -> Result<(), Infallible> {
        builder.take(found);
        Ok(())
    };
    let Ok(()) = run_in_order(plan, Box::new(Once(Some(root))), work, each);
    if plan.meter.is_stopped() {
        builder.errors.push(TreeError::Read(path.to_owned(), ReadError::Stopped));
    }
    match builder.errors.is_empty() {
        true => {
            Ok(TreeDigest { hash: builder.tree.finish(), entries: builder.entries, bytes: builder.bytes })
        }
        false => Err(builder.errors),
    }
}

/// How the files of a tree are read: as they are, without links.
fn reading<'a>(meter: &'a (dyn Meter + 'a)) -> ReadOptions<'a> {
    ReadOptions {
        hashing: Arc::new(HashParams::plain_blake3()),
        open_policy: OpenPolicy::RegularFile(Links::Refuse),
        name_policy: NamePolicy::MustStay,
        dash: Dash::FileName,
        by_blocks: true,
        meter,
    }
}

/// The one folder where a walk begins.
struct Once(Option<PendingFolder>);

impl Feed<Job> for Once {
    fn next(&mut self) -> Option<Job> {
        self.0.take().map(Job::Folder)
    }

    fn has_more(&self) -> bool {
        self.0.is_some()
    }
}

fn list_folder(pending: PendingFolder, rules: &Rules) -> JobOutcome<Job, TreePart> {
    let name = pending.name().to_owned();
    match pending.list(rules) {
        Err(error) => TreePart::Errors(vec![TreeError::Walk(error)]).into(),
        Ok(listed) => {
            let folder = TreePart::Folder { depth: listed.folder.depth(), name };
            let errors: Vec<_> = listed.errors.into_iter().map(TreeError::Walk).collect();
            let result = match errors.is_empty() {
                true => folder,
                false => TreePart::Both(Box::new([folder, TreePart::Errors(errors)])),
            };
            JobOutcome { result, then: Some(listed.jobs) }
        }
    }
}

fn read_batch(
    reading: &ReadOptions<'_>,
    batch: &FileBatch,
    output: Option<(u64, u64)>,
    helpers: &dyn Helpers,
) -> JobOutcome<Job, TreePart> {
    let results = read_entries(reading, batch, helpers);
    let then = batch.rest(results.len());
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for (index, result) in results.into_iter().enumerate() {
        let name = batch.name(index);
        let path = || path_from(&batch.folder().path_of(name));
        match result {
            Ok(content) if output.is_some_and(|output| content.identity() == Some(output)) => {
                errors.push(TreeError::Output(path()));
            }
            Ok(content) => entries.push((name.to_owned(), content)),
            Err(error) => errors.push(TreeError::Read(path(), error)),
        }
    }
    let result = match errors.is_empty() {
        true => TreePart::Entries { depth: batch.folder().depth(), entries },
        false => TreePart::Errors(errors),
    };
    JobOutcome { result, then }
}

struct DigestBuilder {
    tree: TreeHasher,
    entries: u64,
    bytes: u64,
    errors: Vec<TreeError>,
}

impl DigestBuilder {
    fn take(&mut self, found: TreePart) {
        match found {
            // The outermost folder is open from the start.
            TreePart::Folder { depth: 1, .. } => {}
            TreePart::Folder { depth, name } => {
                self.tree.leave_to(depth - 1);
                self.tree.enter(&name);
            }
            TreePart::Entries { depth, entries } => {
                self.tree.leave_to(depth);
                entries.into_iter().for_each(|(name, content)| self.add(&name, content));
            }
            TreePart::Errors(errors) => self.errors.extend(errors),
            TreePart::Both(both) => both.into_iter().for_each(|found| self.take(found)),
        }
    }

    fn add(&mut self, name: &[u8], content: EntryContent) {
        self.entries += 1;
        match content {
            EntryContent::Link(target) => self.tree.add(EntryKind::Link, name, &bulla_blake3::hash(&target)),
            EntryContent::File(file) => {
                self.bytes += file.size;
                let is_executable = file.stamp.is_some_and(|stamp| stamp.is_executable());
                let kind = if is_executable { EntryKind::Executable } else { EntryKind::File };
                self.tree.add(kind, name, &file.output.hash());
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::reading::{NoProgress, Threads};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// The rule as the specification says it, with everything in memory.
    fn slow(folder: &Path) -> blake3::Hash {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().as_encoded_bytes().to_vec();
            let metadata = path.symlink_metadata().unwrap();
            let (kind, digest) = if metadata.is_dir() {
                (b'd', slow(&path))
            } else if metadata.is_symlink() {
                (b'l', blake3::hash(fs::read_link(&path).unwrap().as_os_str().as_encoded_bytes()))
            } else {
                let kind = if metadata.permissions().mode() & 0o100 != 0 { b'x' } else { b'f' };
                (kind, blake3::hash(&fs::read(&path).unwrap()))
            };
            let key = if kind == b'd' { [&name[..], b"/"].concat() } else { name.clone() };
            entries.push((key, kind, name, digest));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        for (_, kind, name, digest) in entries {
            hasher.update(&[kind]).update(&(name.len() as u64).to_le_bytes()).update(&name);
            hasher.update(digest.as_bytes());
        }
        hasher.finalize()
    }

    fn digest(folder: &Path, threads: usize) -> Hash {
        let plan = PoolOptions { threads: Threads::AtMost(threads), meter: &NoProgress, on_large: &|| {} };
        tree_digest(folder, None, &plan).unwrap().hash
    }

    #[test]
    fn the_digest_is_that_of_the_specification_with_any_number_of_threads() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for path in ["a/b/c", "a/empty", "a.folder/x", "z/y/x/w", "deep/1/2/3/4/5"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for index in 0..200 {
            let folder = ["a", "a/b", "a/b/c", "a.folder", "z/y", "deep/1/2/3"][index % 6];
            fs::write(root.join(folder).join(format!("{index}")), vec![index as u8; index * 97]).unwrap();
        }
        fs::write(root.join("a.txt"), "between the folders a and a.folder").unwrap();
        fs::write(root.join("z/large"), vec![7; 5 << 20]).unwrap();
        symlink("../nowhere", root.join("a/link")).unwrap();
        for threads in [1, 2, 5] {
            assert_eq!(digest(root, threads).to_string(), slow(root).to_string(), "{threads} threads");
        }
        let before = digest(root, 2);
        fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(digest(root, 2), before, "the executable bit counts");
        fs::remove_dir(root.join("a/empty")).unwrap();
        assert_eq!(digest(root, 2).to_string(), slow(root).to_string());
    }

    #[test]
    fn a_folder_with_something_unreadable_has_no_digest() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "a").unwrap();
        let socket = root.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let plan = PoolOptions { threads: Threads::AtMost(2), meter: &NoProgress, on_large: &|| {} };
        let errors = tree_digest(root.path(), None, &plan).unwrap_err();
        let [TreeError::Read(path, ReadError::NotAFile("a socket"))] = &errors[..] else {
            panic!("{errors:?}")
        };
        assert_eq!(path, &socket);
        let errors = tree_digest(&root.path().join("a"), None, &plan).unwrap_err();
        assert!(matches!(errors[..], [TreeError::Walk(_)]), "{errors:?}");
    }
}
