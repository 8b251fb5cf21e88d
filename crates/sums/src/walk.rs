//! The jobs of a walk: files to read, or a folder to list. Listing a folder leaves jobs for its
//! content behind.

use crate::folder::{FileKind, Folder, Links, Listing, path_from};
use crate::ordered_pool::Feed;
use crate::rules::{Rules, WalkContext, WalkError, WalkErrorKind, apply};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of files in a batch.
const MAX_BATCH_FILES: usize = 64;

/// The minimum number of files in a batch: for fewer, starting threads costs more than it gains.
const MIN_BATCH_FILES: usize = 16;

/// A job of a walk.
pub enum Job {
    /// Files to read.
    Batch(FileBatch),
    /// A folder to list.
    Folder(PendingFolder),
}

/// Some files of one folder, in order.
///
/// ```
/// use bulla_sums::FileBatch;
///
/// let batch = FileBatch::given(vec!["a.txt".into(), "b.txt".into()]);
/// assert!(!batch.is_empty());
/// assert_eq!(batch.names().collect::<Vec<_>>(), [b"a.txt", b"b.txt"]);
/// assert_eq!(batch.name(1), b"b.txt");
/// // Nobody has looked at the files yet.
/// assert_eq!(batch.kind(1), None);
/// assert!(batch.rest(1).is_some() && batch.rest(2).is_none());
/// ```
pub struct FileBatch {
    folder: Arc<Folder>,
    names: Names,
    range: Range<usize>,
}

#[derive(Clone)]
enum Names {
    Listed(Arc<Listing>),
    Given(Arc<Vec<PathBuf>>),
}

impl FileBatch {
    /// Files by their paths, as the user gave them.
    pub fn given(paths: Vec<PathBuf>) -> Self {
        let range = 0..paths.len();
        Self { folder: Arc::new(Folder::here()), names: Names::Given(Arc::new(paths)), range }
    }

    /// The folder that the names are in.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the batch has no files.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The name of a file in the folder; of a file that the user named, its path.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn name(&self, index: usize) -> &[u8] {
        match &self.names {
            Names::Listed(listing) => listing.name(self.range.start + index),
            Names::Given(paths) => paths[self.range.start + index].as_os_str().as_encoded_bytes(),
        }
    }

    /// The kind of a file as its folder tells it; `None` for one that the user named.
    pub fn kind(&self, index: usize) -> Option<FileKind> {
        match &self.names {
            Names::Listed(listing) => Some(listing.kind(self.range.start + index)),
            Names::Given(_) => None,
        }
    }

    /// The names of all files.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.name(index))
    }

    /// The jobs for all files but the first `done`, in batches of as many files.
    pub fn rest(&self, done: usize) -> Option<Box<dyn Feed<Job>>> {
        let range = self.range.start + done..self.range.end;
        let rest = Self { folder: self.folder.clone(), names: self.names.clone(), range };
        let feed = RestFeed { rest, each: done.max(1) };
        feed.has_more().then(|| Box::new(feed) as _)
    }
}

struct RestFeed {
    rest: FileBatch,
    each: usize,
}

impl Feed<Job> for RestFeed {
    fn next(&mut self) -> Option<Job> {
        let Range { start, end } = self.rest.range;
        let middle = end.min(start + self.each);
        self.rest.range.start = middle;
        let FileBatch { folder, names, .. } = &self.rest;
        let batch = FileBatch { folder: folder.clone(), names: names.clone(), range: start..middle };
        (start < end).then_some(Job::Batch(batch))
    }

    fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }
}

/// A folder that is not listed yet.
///
/// ```
/// use bulla_sums::{Job, PendingFolder, Rules};
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path();
/// std::fs::create_dir(path.join("photos"))?;
/// let root = PendingFolder::root(path.as_os_str().as_encoded_bytes());
/// assert_eq!(root.name(), path.as_os_str().as_encoded_bytes());
///
/// let mut listed = root.list(&Rules::default()).unwrap();
/// let Some(Job::Folder(photos)) = listed.jobs.next() else { panic!("a folder is in it") };
/// assert_eq!(photos.name(), b"photos");
/// # std::io::Result::Ok(())
/// ```
pub struct PendingFolder {
    parent: Arc<Folder>,
    name: Vec<u8>,
    /// `None` where a walk begins.
    around: Option<WalkContext>,
    /// Whether a link is followed where a walk begins.
    root_links: Links,
}

/// A folder that was listed.
pub struct ListedFolder {
    /// The folder.
    pub folder: Arc<Folder>,
    /// The errors for entries that are left out although they count.
    pub errors: Vec<WalkError>,
    /// The number of files and folders in it that count.
    pub entries: usize,
    /// The jobs of its content.
    pub jobs: Box<dyn Feed<Job>>,
}

impl PendingFolder {
    /// A folder where a walk begins. If the path is a link, it is followed.
    pub fn root(path: &[u8]) -> Self {
        Self {
            parent: Arc::new(Folder::here()),
            name: path.to_owned(),
            around: None,
            root_links: Links::Follow,
        }
    }

    /// The folder's name in the folder around it; where a walk begins, its path.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The folder's path.
    pub fn path(&self) -> Vec<u8> {
        self.parent.path_of(&self.name)
    }

    /// Lists the folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(self, rules: &Rules) -> Result<ListedFolder, WalkError> {
        let error = |kind| WalkError { path: path_from(&self.path()), kind };
        self.try_list(rules).map_err(error)
    }

    fn try_list(&self, rules: &Rules) -> Result<ListedFolder, WalkErrorKind> {
        let links = if self.around.is_some() { rules.links } else { self.root_links };
        let folder = self.parent.open_folder(&self.name, links).map_err(WalkErrorKind::Folder)?;
        if folder.is_made_up() {
            return Err(WalkErrorKind::PseudoFileSystem);
        }
        let mut errors = Vec::new();
        let around = match &self.around {
            Some(around) => around.clone(),
            None => WalkContext::root(rules, &folder).map_err(WalkErrorKind::Folder)?,
        };
        let around = around.inside(rules, &folder, &mut errors).map_err(WalkErrorKind::Folder)?;
        let mut listing = Listing::read(&folder).map_err(WalkErrorKind::Folder)?;
        apply(rules, &around, &folder, &mut listing, &mut errors);
        listing.sort();
        let (folder, listing) = (Arc::new(folder), Arc::new(listing));
        let entries = listing.len();
        let jobs = Box::new(FolderJobs { folder: folder.clone(), listing, next: 0, around });
        Ok(ListedFolder { folder, errors, entries, jobs })
    }
}

/// The content of a folder, job by job.
struct FolderJobs {
    folder: Arc<Folder>,
    listing: Arc<Listing>,
    next: usize,
    around: WalkContext,
}

impl Feed<Job> for FolderJobs {
    fn next(&mut self) -> Option<Job> {
        let (start, end) = (self.next, self.listing.len());
        if start == end {
            return None;
        }
        if self.listing.kind(start) == FileKind::Folder {
            self.next += 1;
            let name = self.listing.name(start).to_owned();
            let around = Some(self.around.clone());
            return Some(Job::Folder(PendingFolder {
                parent: self.folder.clone(),
                name,
                around,
                root_links: Links::Refuse,
            }));
        }
        let batch_end = end.min(start + batch_len(end - start));
        let folder = (start..batch_end).find(|index| self.listing.kind(*index) == FileKind::Folder);
        self.next = folder.unwrap_or(batch_end);
        let names = Names::Listed(self.listing.clone());
        Some(Job::Batch(FileBatch { folder: self.folder.clone(), names, range: start..self.next }))
    }

    fn has_more(&self) -> bool {
        self.next < self.listing.len()
    }
}

/// The number of files in the next batch, if so many are left.
fn batch_len(files: usize) -> usize {
    (files / 8).clamp(MIN_BATCH_FILES, MAX_BATCH_FILES)
}

/// How a folder is treated that the user named as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderPolicy {
    /// The folder is walked, also if a link leads to it.
    Walk,
    /// The folder is walked, unless the path is a link.
    WalkUnlessLink,
    /// The folder is opened as a file, which fails.
    Open,
}

impl FolderPolicy {
    fn has(self, path: &Path) -> bool {
        match self {
            Self::Walk => path.is_dir(),
            Self::WalkUnlessLink => path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()),
            Self::Open => false,
        }
    }

    fn links(self) -> Links {
        if self == Self::Walk { Links::Follow } else { Links::Refuse }
    }
}

/// Paths as the user gave them, job by job.
pub struct PathFeed<I: Iterator<Item = PathBuf>> {
    paths: std::iter::Peekable<I>,
    has_more: bool,
    folders: FolderPolicy,
    here: Arc<Folder>,
}

impl<I: Iterator<Item = PathBuf>> PathFeed<I> {
    /// The jobs of these paths. The iterator is asked for a few at a time.
    pub fn new(paths: I, folders: FolderPolicy) -> Self {
        let mut paths = paths.peekable();
        let has_more = paths.peek().is_some();
        Self { paths, has_more, folders, here: Arc::new(Folder::here()) }
    }
}

impl<I: Iterator<Item = PathBuf> + Send> Feed<Job> for PathFeed<I> {
    fn next(&mut self) -> Option<Job> {
        let max_len = batch_len(self.paths.size_hint().1.unwrap_or(usize::MAX));
        let mut batch = Vec::new();
        while batch.len() < max_len
            && let Some(path) = self.paths.peek()
        {
            let is_folder = self.folders.has(path);
            if is_folder && !batch.is_empty() {
                break;
            }
            let path = self.paths.next().unwrap_or_default();
            if is_folder {
                self.has_more = self.paths.peek().is_some();
                let pending = PendingFolder::root(path.as_os_str().as_encoded_bytes());
                return Some(Job::Folder(PendingFolder { root_links: self.folders.links(), ..pending }));
            }
            batch.push(path);
        }
        self.has_more = self.paths.peek().is_some();
        if batch.is_empty() {
            return None;
        }
        Some(Job::Batch(FileBatch { folder: self.here.clone(), ..FileBatch::given(batch) }))
    }

    fn has_more(&self) -> bool {
        self.has_more
    }
}
