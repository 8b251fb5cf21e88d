//! Which files of a folder count.

use crate::folder::{Folder, path_from};
use crate::kind::Kind;
use crate::listing::Listing;
use crate::source::Links;
use crate::stamp::Stamp;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// It does.
    #[default]
    All,
    /// It stays on that of the folder where it began.
    One,
}

/// What a walk finds beside folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// Regular files.
    #[default]
    Files,
    /// Also links that are not followed, fifos, sockets and devices.
    Everything,
}

/// The rules of a walk.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What counts beside folders.
    pub what: What,
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
            what: What::Files,
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

    /// Whether something can be left out by its path.
    fn look_at_paths(&self) -> bool {
        self.globs.is_some()
            || self.types.is_some()
            || self.excluded.is_some()
            || self.ignored == Ignored::Skip
    }
}

/// What is known of the folders around one: what they ignore, and where the walk began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    ignores: Option<Arc<Ignores>>,
    /// The folders on the way here, if links are followed.
    way: Option<Arc<Way>>,
    /// The file system where the walk began.
    device: Option<u64>,
}

/// The patterns of one folder, and those of the folders around it.
#[derive(Debug)]
struct Ignores {
    patterns: Gitignore,
    around: Option<Arc<Self>>,
}

#[derive(Debug)]
struct Way {
    identity: (u64, u64),
    before: Option<Arc<Self>>,
}

/// Something in a walk that could not be looked at.
#[derive(Debug)]
pub struct Trouble {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a walk leaves something out that counts.
#[derive(Debug)]
pub enum Reason {
    /// A folder could not be read.
    Folder(io::Error),
    /// The properties of something could not be read, or a link could not be followed.
    Entry(io::Error),
    /// The kernel makes the folder's content while it is read, as in /proc. Files there have no
    /// length, reading some of them takes days or never ends, and the content differs each time.
    MadeUp,
}

impl Trouble {
    pub(crate) fn entry(folder: &Folder, name: &[u8], error: io::Error) -> Self {
        Self { path: path_from(&folder.path_of(name)), reason: Reason::Entry(error) }
    }
}

impl Surroundings {
    /// Those of a folder where a walk begins.
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

    /// Those of what is in `folder`, which is itself in these.
    pub(crate) fn inside(
        &self,
        rules: &Rules,
        folder: &Folder,
        troubles: &mut Vec<Trouble>,
    ) -> io::Result<Self> {
        let mut new = self.clone();
        if rules.links == Links::Follow {
            let identity = folder.stamp(b".", Links::Follow)?.identity;
            new.way = Some(Arc::new(Way { identity, before: self.way.clone() }));
        }
        if rules.ignored == Ignored::Skip && folder.stamp(b".gitignore", Links::Follow).is_ok() {
            let path = path_from(folder.prefix()).canonicalize()?;
            let (patterns, error) = Gitignore::new(path.join(".gitignore"));
            let error = error.map(|error| io::Error::other(error.to_string()));
            troubles.extend(error.map(|error| Trouble::entry(folder, b".gitignore", error)));
            new.ignores = Some(Arc::new(Ignores { patterns, around: new.ignores }));
        }
        Ok(new)
    }

    fn ignores(&self, path: &Path, kind: Kind) -> bool {
        let mut next = self.ignores.as_ref();
        while let Some(ignores) = next {
            let found = ignores.patterns.matched(path, kind == Kind::Folder);
            if !found.is_none() {
                return found.is_ignore();
            }
            next = ignores.around.as_ref();
        }
        false
    }

    fn came_through(&self, identity: (u64, u64)) -> bool {
        let mut next = self.way.as_ref();
        while let Some(way) = next {
            if way.identity == identity {
                return true;
            }
            next = way.before.as_ref();
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
    around: &Surroundings,
    folder: &Folder,
    listing: &mut Listing,
    troubles: &mut Vec<Trouble>,
) {
    let root =
        (rules.ignored == Ignored::Skip).then(|| path_from(folder.prefix()).canonicalize().ok()).flatten();
    listing.retain(|name, kind| {
        if rules.hidden == Hidden::Skip && name.first() == Some(&b'.') {
            return false;
        }
        match look(rules, around, folder, name, kind) {
            Ok(Look::In) if rules.what == What::Everything || matches!(kind, Kind::File | Kind::Folder) => {}
            Ok(_) => return false,
            Err(error) => {
                troubles.push(Trouble::entry(folder, name, error));
                return false;
            }
        }
        !rules.look_at_paths() || wants_path(rules, around, root.as_deref(), folder, name, *kind)
    });
}

enum Look {
    In,
    Out,
}

/// Follows a link, and looks at what only the file itself tells.
fn look(
    rules: &Rules,
    around: &Surroundings,
    folder: &Folder,
    name: &[u8],
    kind: &mut Kind,
) -> io::Result<Look> {
    let follows = *kind == Kind::Link && rules.links == Links::Follow;
    let by_size = *kind == Kind::File && rules.sizes.is_some();
    let by_device = *kind == Kind::Folder && around.device.is_some();
    if !(follows || by_size || by_device) {
        return Ok(Look::In);
    }
    let stamp: Stamp = folder.stamp(name, rules.links)?;
    *kind = stamp.kind();
    let is_out = match *kind {
        Kind::Folder if follows && around.came_through(stamp.identity) => {
            return Err(io::Error::other("this link leads back to a folder around it"));
        }
        Kind::Folder => around.device.is_some_and(|device| device != stamp.identity.0),
        Kind::File => rules.sizes.as_ref().is_some_and(|sizes| !sizes.contains(&stamp.size)),
        Kind::Link | Kind::Special(_) => false,
    };
    Ok(if is_out { Look::Out } else { Look::In })
}

fn wants_path(
    rules: &Rules,
    around: &Surroundings,
    root: Option<&Path>,
    folder: &Folder,
    name: &[u8],
    kind: Kind,
) -> bool {
    let path = path_from(&folder.path_of(name));
    let is_folder = kind == Kind::Folder;
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
