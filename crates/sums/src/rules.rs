//! The rules of a walk: which files of a folder count.

use crate::folder::{FileKind, Folder, Links, Listing, Stamp, path_from};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use std::error::Error;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// Whether names that begin with a dot count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hidden {
    /// They count.
    #[default]
    Include,
    /// They are left out.
    Skip,
}

/// Whether files named in `.gitignore` count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// They count.
    #[default]
    Include,
    /// They are left out, as git does: also those of `.ignore`-like files of git, and the folder
    /// `.git`.
    Skip,
}

/// Whether the walk enters other file systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSystems {
    /// It enters all of them.
    #[default]
    All,
    /// It stays on the file system of the folder where it began.
    One,
}

/// The kinds of entries that a walk finds, besides folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryFilter {
    /// Regular files.
    #[default]
    Files,
    /// Also links that are not followed, fifos, sockets and devices.
    Everything,
}

/// The rules of a walk.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The kinds of entries that count, besides folders.
    pub entries: EntryFilter,
    /// Names that begin with a dot.
    pub hidden: Hidden,
    /// Files named in `.gitignore`.
    pub ignored: Ignored,
    /// Whether links are followed. If not, they do not count as files.
    pub links: Links,
    /// Mounted file systems.
    pub file_systems: FileSystems,
    /// The sizes of files that count, if not all.
    pub sizes: Option<RangeInclusive<u64>>,
    globs: Option<Override>,
    types: Option<Types>,
    excluded: Option<Excluded>,
}

/// Patterns of what is left out.
#[derive(Clone, Debug)]
struct Excluded {
    /// How many bytes of a path are those of the folder that the patterns belong to.
    skip: usize,
    patterns: Gitignore,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            entries: EntryFilter::Files,
            hidden: Hidden::Include,
            ignored: Ignored::Include,
            links: Links::Refuse,
            file_systems: FileSystems::All,
            sizes: None,
            globs: None,
            types: None,
            excluded: None,
        }
    }
}

impl Rules {
    /// Only files that match one of these globs count; those that match a glob after `!` do not.
    /// They are the globs of `.gitignore`.
    ///
    /// # Errors
    /// A glob is malformed; the text says which.
    ///
    /// ```
    /// let mut rules = bulla_sums::Rules::default();
    /// rules.globs(&["*.rs".to_owned(), "!generated/**".to_owned()])?;
    /// assert!(rules.types(&["no such type".to_owned()]).is_err());
    /// rules.types(&["rust".to_owned()])?;
    /// # Ok::<(), String>(())
    /// ```
    pub fn globs(&mut self, globs: &[String]) -> Result<(), String> {
        let mut builder = OverrideBuilder::new("");
        globs.iter().try_for_each(|glob| builder.add(glob).map(drop)).map_err(|error| error.to_string())?;
        self.globs = Some(builder.build().map_err(|error| error.to_string())?);
        Ok(())
    }

    /// What matches one of these patterns does not count, and neither does anything in a folder
    /// that matches. The patterns are lines of a `.gitignore` in the folder whose own path, with a
    /// `/` at its end, has `skip` bytes.
    ///
    /// # Errors
    /// A pattern is malformed; the text says which.
    ///
    /// ```
    /// let mut rules = bulla_sums::Rules::default();
    /// rules.exclude(0, ["*.tmp", "/target/"].into_iter())?;
    /// assert!(rules.excludes(b"src/a.tmp") && rules.excludes(b"target/debug/a"));
    /// assert!(!rules.excludes(b"src/target.rs"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn exclude<'a>(
        &mut self,
        skip: usize,
        patterns: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut builder = GitignoreBuilder::new("");
        for pattern in patterns {
            builder.add_line(None, pattern).map_err(|error| error.to_string())?;
        }
        let patterns = builder.build().map_err(|error| error.to_string())?;
        self.excluded = (!patterns.is_empty()).then_some(Excluded { skip, patterns });
        Ok(())
    }

    /// Whether a file, or a folder around it, does not count by [`Rules::exclude`]. Its path is
    /// relative to that folder.
    pub fn excludes(&self, path: &[u8]) -> bool {
        let path = path_from(path);
        self.excluded
            .as_ref()
            .is_some_and(|excluded| excluded.patterns.matched_path_or_any_parents(&path, false).is_ignore())
    }

    /// Only files of these types count; the names are those of ripgrep: `rust`, `py`, `jpeg`.
    ///
    /// # Errors
    /// There is no such type; the text says which.
    pub fn types(&mut self, names: &[String]) -> Result<(), String> {
        let mut builder = TypesBuilder::new();
        builder.add_defaults();
        for name in names {
            builder.select(name);
        }
        self.types = Some(builder.build().map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Whether an entry can be left out by its path.
    fn depend_on_paths(&self) -> bool {
        self.globs.is_some()
            || self.types.is_some()
            || self.excluded.is_some()
            || self.ignored == Ignored::Skip
    }
}

/// The rules that a folder inherits from the folders around it: ignored names, and where the walk
/// began.
#[derive(Clone, Debug, Default)]
pub(crate) struct WalkContext {
    ignores: Option<Arc<Ignores>>,
    /// The folders around this one, if links are followed.
    ancestors: Option<Arc<Ancestor>>,
    /// The file system where the walk began.
    device: Option<u64>,
}

/// The patterns of one folder, and those of the folders around it.
#[derive(Debug)]
struct Ignores {
    patterns: Gitignore,
    around: Option<Arc<Self>>,
}

/// A folder that the walk came through.
#[derive(Debug)]
struct Ancestor {
    identity: (u64, u64),
    parent: Option<Arc<Self>>,
}

/// The error for a folder or an entry that a walk leaves out although it counts.
#[derive(Debug)]
pub struct WalkError {
    /// Its path.
    pub path: PathBuf,
    /// The action that failed.
    pub kind: WalkErrorKind,
}

/// The kind of a [`WalkError`].
#[derive(Debug)]
pub enum WalkErrorKind {
    /// A folder could not be read.
    Folder(io::Error),
    /// The properties of something could not be read, or a link could not be followed.
    Entry(io::Error),
    /// The operating system makes the folder's content while it is read, as in /proc. Files there
    /// have no length, reading some of them takes days or never ends, and the content differs each
    /// time.
    PseudoFileSystem,
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.kind {
            WalkErrorKind::Folder(_) => write!(f, "cannot read the folder {path:?}"),
            WalkErrorKind::Entry(_) => write!(f, "cannot read the properties of {path:?}"),
            WalkErrorKind::PseudoFileSystem => {
                write!(f, "the operating system makes the content of {path:?} while it is read")
            }
        }
    }
}

impl Error for WalkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            WalkErrorKind::Folder(error) | WalkErrorKind::Entry(error) => Some(error),
            WalkErrorKind::PseudoFileSystem => None,
        }
    }
}

impl WalkError {
    pub(crate) fn entry(folder: &Folder, name: &[u8], error: io::Error) -> Self {
        Self { path: path_from(&folder.path_of(name)), kind: WalkErrorKind::Entry(error) }
    }
}

impl WalkContext {
    /// The context of a folder where a walk begins.
    pub(crate) fn root(rules: &Rules, folder: &Folder) -> io::Result<Self> {
        let mut new = Self::default();
        if rules.file_systems == FileSystems::One {
            new.device = Some(folder.stamp(b".", Links::Follow)?.identity.0);
        }
        if rules.ignored == Ignored::Skip {
            new.ignores = around(&path_from(folder.prefix()));
        }
        Ok(new)
    }

    /// The context of the entries of `folder`; `self` is that of the folder itself.
    pub(crate) fn inside(
        &self,
        rules: &Rules,
        folder: &Folder,
        errors: &mut Vec<WalkError>,
    ) -> io::Result<Self> {
        let mut new = self.clone();
        if rules.links == Links::Follow {
            let identity = folder.stamp(b".", Links::Follow)?.identity;
            new.ancestors = Some(Arc::new(Ancestor { identity, parent: self.ancestors.clone() }));
        }
        if rules.ignored == Ignored::Skip && folder.stamp(b".gitignore", Links::Follow).is_ok() {
            let path = path_from(folder.prefix()).canonicalize()?;
            let (patterns, error) = Gitignore::new(path.join(".gitignore"));
            let error = error.map(|error| io::Error::other(error.to_string()));
            errors.extend(error.map(|error| WalkError::entry(folder, b".gitignore", error)));
            new.ignores = Some(Arc::new(Ignores { patterns, around: new.ignores }));
        }
        Ok(new)
    }

    fn ignores(&self, path: &Path, kind: FileKind) -> bool {
        let mut next = self.ignores.as_ref();
        while let Some(ignores) = next {
            let found = ignores.patterns.matched(path, kind == FileKind::Folder);
            if !found.is_none() {
                return found.is_ignore();
            }
            next = ignores.around.as_ref();
        }
        false
    }

    fn came_through(&self, identity: (u64, u64)) -> bool {
        let mut next = self.ancestors.as_ref();
        while let Some(ancestor) = next {
            if ancestor.identity == identity {
                return true;
            }
            next = ancestor.parent.as_ref();
        }
        false
    }
}

/// The patterns of the folders around a walk, up to the one with `.git`, and those of the user.
fn around(root: &Path) -> Option<Arc<Ignores>> {
    let (user, _) = GitignoreBuilder::new("").build_global();
    let mut ignores = (!user.is_empty()).then(|| Arc::new(Ignores { patterns: user, around: None }));
    let Ok(root) = root.canonicalize() else { return ignores };
    let repository = root.ancestors().find(|folder| folder.join(".git").exists())?;
    let mut add = |folder: &Path, file: &Path| {
        let mut builder = GitignoreBuilder::new(folder);
        if file.is_file()
            && builder.add(file).is_none()
            && let Ok(patterns) = builder.build()
        {
            ignores = Some(Arc::new(Ignores { patterns, around: ignores.take() }));
        }
    };
    add(repository, &repository.join(".git/info/exclude"));
    let between: Vec<_> =
        root.ancestors().skip(1).take_while(|folder| folder.starts_with(repository)).collect();
    for folder in between.into_iter().rev() {
        add(folder, &folder.join(".gitignore"));
    }
    ignores
}

/// Leaves out of a folder's content what does not count. Links that are followed get the kind of
/// what they lead to.
pub(crate) fn apply(
    rules: &Rules,
    around: &WalkContext,
    folder: &Folder,
    listing: &mut Listing,
    errors: &mut Vec<WalkError>,
) {
    let root =
        (rules.ignored == Ignored::Skip).then(|| path_from(folder.prefix()).canonicalize().ok()).flatten();
    listing.retain(|name, kind| {
        if rules.hidden == Hidden::Skip && name.first() == Some(&b'.') {
            return false;
        }
        match look_at_entry(rules, around, folder, name, kind) {
            Ok(Counts::Yes)
                if rules.entries == EntryFilter::Everything
                    || matches!(kind, FileKind::File | FileKind::Folder) => {}
            Ok(_) => return false,
            Err(error) => {
                errors.push(WalkError::entry(folder, name, error));
                return false;
            }
        }
        !rules.depend_on_paths() || wants_path(rules, around, root.as_deref(), folder, name, *kind)
    });
}

/// Whether an entry counts.
enum Counts {
    Yes,
    No,
}

/// Follows a link, and checks what only the file's own properties tell.
fn look_at_entry(
    rules: &Rules,
    around: &WalkContext,
    folder: &Folder,
    name: &[u8],
    kind: &mut FileKind,
) -> io::Result<Counts> {
    let follows = *kind == FileKind::Link && rules.links == Links::Follow;
    let by_size = *kind == FileKind::File && rules.sizes.is_some();
    let by_device = *kind == FileKind::Folder && around.device.is_some();
    if !(follows || by_size || by_device) {
        return Ok(Counts::Yes);
    }
    let stamp: Stamp = folder.stamp(name, rules.links)?;
    *kind = stamp.kind();
    let is_out = match *kind {
        FileKind::Folder if follows && around.came_through(stamp.identity) => {
            return Err(io::Error::other("this link leads back to a folder around it"));
        }
        FileKind::Folder => around.device.is_some_and(|device| device != stamp.identity.0),
        FileKind::File => rules.sizes.as_ref().is_some_and(|sizes| !sizes.contains(&stamp.size)),
        FileKind::Link | FileKind::Special(_) => false,
    };
    Ok(if is_out { Counts::No } else { Counts::Yes })
}

fn wants_path(
    rules: &Rules,
    around: &WalkContext,
    root: Option<&Path>,
    folder: &Folder,
    name: &[u8],
    kind: FileKind,
) -> bool {
    let path = path_from(&folder.path_of(name));
    let is_folder = kind == FileKind::Folder;
    if let Some(Excluded { skip, patterns }) = &rules.excluded
        && patterns.matched(path_from(&folder.path_of(name)[*skip..]), is_folder).is_ignore()
    {
        return false;
    }
    if let Some(globs) = &rules.globs {
        let found = globs.matched(&path, is_folder);
        if !found.is_none() {
            // As in ripgrep, a glob of the user outweighs everything else.
            return found.is_whitelist();
        }
    }
    if rules.ignored == Ignored::Skip {
        let real = root.map_or_else(|| path.clone(), |root| root.join(path_from(name)));
        if name == b".git" || around.ignores(&real, kind) {
            return false;
        }
    }
    rules.types.as_ref().is_none_or(|types| is_folder || types.matched(&path, false).is_whitelist())
}
