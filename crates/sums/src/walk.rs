//! The jobs of a walk: some files to read, or a folder to list. Listing a folder leaves the jobs of
//! its content behind.

use crate::folder::Folder;
use crate::kind::Kind;
use crate::listing::Listing;
use crate::rules::{Reason, Rules, Surroundings, Trouble, apply};
use crate::source::Links;
use crate::team::Feed;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most files of a batch.
const MOST: usize = 64;

/// Fewer files than this make one batch: starting threads costs more than it gains.
const FEW: usize = 16;

/// A job of a walk.
pub enum Job {
    /// Files to read.
    Batch(Batch),
    /// A folder to list.
    Folder(Pending),
}

/// Some files of one folder, in order.
pub struct Batch {
    folder: Arc<Folder>,
    names: Names,
    range: Range<usize>,
}

#[derive(Clone)]
enum Names {
    Listed(Arc<Listing>),
    Given(Arc<Vec<PathBuf>>),
}

impl Batch {
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

    /// Whether there are none.
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
    pub fn kind(&self, index: usize) -> Option<Kind> {
        match &self.names {
            Names::Listed(listing) => Some(listing.kind(self.range.start + index)),
            Names::Given(_) => None,
        }
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.name(index))
    }

    /// The jobs for all files but the first `done`, in batches of as many files.
    pub fn rest(&self, done: usize) -> Option<Box<dyn Feed<Job>>> {
        let range = self.range.start + done..self.range.end;
        let rest = Self { folder: self.folder.clone(), names: self.names.clone(), range };
        let feed = Rest { rest, each: done.max(1) };
        feed.has_more().then(|| Box::new(feed) as _)
    }
}

struct Rest {
    rest: Batch,
    each: usize,
}

impl Feed<Job> for Rest {
    fn next(&mut self) -> Option<Job> {
        let Range { start, end } = self.rest.range;
        let middle = end.min(start + self.each);
        self.rest.range.start = middle;
        let Batch { folder, names, .. } = &self.rest;
        let batch = Batch { folder: folder.clone(), names: names.clone(), range: start..middle };
        (start < end).then_some(Job::Batch(batch))
    }

    fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }
}

/// A folder that nobody has listed yet.
pub struct Pending {
    parent: Arc<Folder>,
    name: Vec<u8>,
    /// `None` where a walk begins.
    around: Option<Surroundings>,
    /// Whether a link is followed where a walk begins.
    root_links: Links,
}

/// A folder that was listed.
pub struct Entered {
    /// The folder.
    pub folder: Arc<Folder>,
    /// What could not be looked at in it.
    pub troubles: Vec<Trouble>,
    /// The number of files and folders in it that count.
    pub entries: usize,
    /// The jobs of its content.
    pub content: Box<dyn Feed<Job>>,
}

impl Pending {
    /// A folder where a walk begins. If the path is a link, it is followed.
    pub fn root(path: &[u8]) -> Self {
        Self {
            parent: Arc::new(Folder::here()),
            name: path.to_owned(),
            around: None,
            root_links: Links::Follow,
        }
    }

    /// Its name in the folder around it; where a walk begins, its path.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its path.
    pub fn path(&self) -> Vec<u8> {
        self.parent.path_of(&self.name)
    }

    /// Lists the folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn enter(self, rules: &Rules) -> Result<Entered, Trouble> {
        let trouble = |reason| Trouble { path: crate::folder::path_from(&self.path()), reason };
        self.list(rules).map_err(trouble)
    }

    fn list(&self, rules: &Rules) -> Result<Entered, Reason> {
        let links = if self.around.is_some() { rules.links } else { self.root_links };
        let folder = self.parent.open_folder(&self.name, links).map_err(Reason::Folder)?;
        if folder.is_made_up() {
            return Err(Reason::MadeUp);
        }
        let mut troubles = Vec::new();
        let around = match &self.around {
            Some(around) => around.clone(),
            None => Surroundings::root(rules, &folder).map_err(Reason::Folder)?,
        };
        let around = around.inside(rules, &folder, &mut troubles).map_err(Reason::Folder)?;
        let mut listing = Listing::read(&folder).map_err(Reason::Folder)?;
        apply(rules, &around, &folder, &mut listing, &mut troubles);
        listing.sort();
        let (folder, listing) = (Arc::new(folder), Arc::new(listing));
        let entries = listing.len();
        let content = Box::new(Content { folder: folder.clone(), listing, next: 0, around });
        Ok(Entered { folder, troubles, entries, content })
    }
}

/// The content of a folder, job by job.
struct Content {
    folder: Arc<Folder>,
    listing: Arc<Listing>,
    next: usize,
    around: Surroundings,
}

impl Feed<Job> for Content {
    fn next(&mut self) -> Option<Job> {
        let (start, end) = (self.next, self.listing.len());
        if start == end {
            return None;
        }
        if self.listing.kind(start) == Kind::Folder {
            self.next += 1;
            let name = self.listing.name(start).to_owned();
            let around = Some(self.around.clone());
            return Some(Job::Folder(Pending {
                parent: self.folder.clone(),
                name,
                around,
                root_links: Links::Refuse,
            }));
        }
        let most = end.min(start + batch_of(end - start));
        let folder = (start..most).find(|index| self.listing.kind(*index) == Kind::Folder);
        self.next = folder.unwrap_or(most);
        let names = Names::Listed(self.listing.clone());
        Some(Job::Batch(Batch { folder: self.folder.clone(), names, range: start..self.next }))
    }

    fn has_more(&self) -> bool {
        self.next < self.listing.len()
    }
}

/// How many of so many files make a batch.
fn batch_of(files: usize) -> usize {
    (files / 8).clamp(FEW, MOST)
}

/// What happens with a folder that the user named as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// It is walked, also if a link leads to it.
    Walk,
    /// It is walked, unless it is a link.
    WalkButLinks,
    /// It is opened as a file, which fails.
    Open,
}

impl Folders {
    fn has(self, path: &Path) -> bool {
        match self {
            Self::Walk => path.is_dir(),
            Self::WalkButLinks => path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()),
            Self::Open => false,
        }
    }

    fn links(self) -> Links {
        if self == Self::Walk { Links::Follow } else { Links::Refuse }
    }
}

/// Paths as the user gave them, job by job.
pub struct Paths<I: Iterator<Item = PathBuf>> {
    paths: std::iter::Peekable<I>,
    has_more: bool,
    folders: Folders,
    here: Arc<Folder>,
}

impl<I: Iterator<Item = PathBuf>> Paths<I> {
    /// The jobs of these paths. The iterator is asked for a few at a time.
    pub fn new(paths: I, folders: Folders) -> Self {
        let mut paths = paths.peekable();
        let has_more = paths.peek().is_some();
        Self { paths, has_more, folders, here: Arc::new(Folder::here()) }
    }
}

impl<I: Iterator<Item = PathBuf> + Send> Feed<Job> for Paths<I> {
    fn next(&mut self) -> Option<Job> {
        let most = batch_of(self.paths.size_hint().1.unwrap_or(usize::MAX));
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(path) = self.paths.peek()
        {
            let is_folder = self.folders.has(path);
            if is_folder && !batch.is_empty() {
                break;
            }
            let path = self.paths.next().unwrap_or_default();
            if is_folder {
                self.has_more = self.paths.peek().is_some();
                let pending = Pending::root(path.as_os_str().as_encoded_bytes());
                return Some(Job::Folder(Pending { root_links: self.folders.links(), ..pending }));
            }
            batch.push(path);
        }
        self.has_more = self.paths.peek().is_some();
        if batch.is_empty() {
            return None;
        }
        Some(Job::Batch(Batch { folder: self.here.clone(), ..Batch::given(batch) }))
    }

    fn has_more(&self) -> bool {
        self.has_more
    }
}
