//! Folders, and what is in them: kinds, stamps and names.
//!
//! A file is opened by its name in its folder: short names are found faster than long paths, and a
//! path of any length works.

use std::cmp::Ordering;
use std::fs::{File, FileType};
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A folder that names are looked up in.
///
/// ```
/// use bulla_sums::{FileKind, Folder, Links, Listing, Stamp, path_from};
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path();
/// std::fs::write(path.join("b"), "two")?;
/// std::fs::create_dir(path.join("a"))?;
/// std::fs::write(path.join(".hidden"), "")?;
///
/// let here = Folder::here();
/// assert_eq!((here.depth(), here.prefix()), (0, &b""[..]));
/// let folder = here.open_folder(path.as_os_str().as_encoded_bytes(), Links::Refuse)?;
/// assert_eq!(folder.depth(), 1);
/// assert_eq!(path_from(&folder.path_of(b"b")), path.join("b"));
///
/// let mut listing = Listing::read(&folder)?;
/// listing.retain(|name, _kind| !name.starts_with(b"."));
/// listing.sort();
/// assert!(!listing.is_empty());
/// assert_eq!((listing.name(0), listing.kind(0).describe()), (&b"a"[..], "a folder"));
/// assert_eq!((listing.name(1), listing.kind(1)), (&b"b"[..], FileKind::File));
///
/// // The stamp of a name is that of the open file, until somebody changes it.
/// let stamp = folder.stamp(b"b", Links::Refuse)?;
/// assert_eq!((stamp.kind(), stamp.size), (FileKind::File, 3));
/// assert_eq!(stamp, Stamp::of(&std::fs::File::open(path.join("b"))?)?);
///
/// # #[cfg(unix)]
/// std::os::unix::fs::symlink("b", path.join("link"))?;
/// # #[cfg(unix)]
/// assert_eq!(folder.link_target(b"link")?, b"b");
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Folder {
    /// `None` for the current folder.
    #[cfg(unix)]
    handle: Option<OwnedFd>,
    /// The part of a path before a name: empty, or it ends with a `/`.
    prefix: Vec<u8>,
    /// How many folders deep it is below where the walk began.
    depth: usize,
}

/// Which files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPolicy {
    /// Anything that can be read, with links followed; this may wait for the writer of a fifo.
    AnyKind,
    /// Regular files, without waiting for the writer of a fifo.
    RegularFile(Links),
}

impl Folder {
    /// The current folder: names in it are paths as the user gave them.
    pub fn here() -> Self {
        Self {
            #[cfg(unix)]
            handle: None,
            prefix: Vec::new(),
            depth: 0,
        }
    }

    /// Opens the folder `name` in this one, whose path is shown as that of this one with the name.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn open_folder(&self, name: &[u8], links: Links) -> io::Result<Self> {
        let mut prefix = self.path_of(name);
        if prefix.last() != Some(&b'/') {
            prefix.push(b'/');
        }
        #[cfg(not(unix))]
        let _ = links;
        Ok(Self {
            #[cfg(unix)]
            handle: Some(unix::folder(self.handle.as_ref(), name, links)?),
            prefix,
            depth: self.depth + 1,
        })
    }

    /// How deep the folder is: 1 where a walk begins.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The part of a path before a name: empty, or it ends with a `/`.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The bytes of the path of `name`.
    pub fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [&self.prefix[..], name].concat()
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(unix)]
    pub(crate) fn open(&self, name: &[u8], open_policy: OpenPolicy) -> io::Result<File> {
        unix::file(self.handle.as_ref(), name, open_policy)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(not(unix))]
    pub(crate) fn open(&self, name: &[u8], _open_policy: OpenPolicy) -> io::Result<File> {
        File::open(path_from(&self.path_of(name)))
    }

    /// The stamp of what has this name.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(unix)]
    pub fn stamp(&self, name: &[u8], links: Links) -> io::Result<Stamp> {
        Ok(Stamp::of_stat(&unix::stat(self.handle.as_ref(), name, links)?))
    }

    /// The stamp of what has this name.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(not(unix))]
    pub fn stamp(&self, name: &[u8], links: Links) -> io::Result<Stamp> {
        let path = path_from(&self.path_of(name));
        let metadata = match links {
            Links::Follow => path.metadata()?,
            Links::Refuse => path.symlink_metadata()?,
        };
        Ok(Stamp::of_metadata(&metadata))
    }

    /// The text of a link.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(unix)]
    pub fn link_target(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        unix::link_target(self.handle.as_ref(), name)
    }

    /// The text of a link.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(not(unix))]
    pub fn link_target(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let target = std::fs::read_link(path_from(&self.path_of(name)))?;
        Ok(target.into_os_string().into_encoded_bytes())
    }

    /// Whether the kernel makes the folder's content while it is read, as in /proc.
    pub(crate) fn is_made_up(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.handle.as_ref().is_some_and(|handle| {
            rustix::fs::fstatfs(handle).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
        });
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// The handle of the folder itself.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle(&self) -> Option<&OwnedFd> {
        self.handle.as_ref()
    }
}

/// A path of these bytes.
#[cfg(unix)]
pub fn path_from(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

/// A path of these bytes; bytes that are not Unicode are no name on this system.
#[cfg(not(unix))]
pub fn path_from(bytes: &[u8]) -> PathBuf {
    Path::new(&*String::from_utf8_lossy(bytes)).to_owned()
}

#[cfg(unix)]
mod unix {
    use super::{Links, OpenPolicy};
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

    fn at(folder: Option<&OwnedFd>) -> BorrowedFd<'_> {
        folder.map_or(CWD, |folder| folder.as_fd())
    }

    fn no_follow(links: Links) -> OFlags {
        match links {
            Links::Follow => OFlags::empty(),
            Links::Refuse => OFlags::NOFOLLOW,
        }
    }

    pub(super) fn folder(folder: Option<&OwnedFd>, name: &[u8], links: Links) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | no_follow(links);
        Ok(rustix::fs::openat(at(folder), name, flags, Mode::empty())?)
    }

    pub(super) fn file(folder: Option<&OwnedFd>, name: &[u8], open_policy: OpenPolicy) -> io::Result<File> {
        let (mut flags, links) = match open_policy {
            OpenPolicy::AnyKind => (OFlags::empty(), Links::Follow),
            OpenPolicy::RegularFile(links) => (OFlags::NONBLOCK | OFlags::NOCTTY | no_follow(links), links),
        };
        loop {
            let all = OFlags::RDONLY | OFlags::CLOEXEC | flags;
            match rustix::fs::openat(at(folder), name, all, Mode::empty()) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if flags.contains(OFlags::NONBLOCK) && is_file(folder, name, links) => {
                    // Another process has a lease on the file, as servers of NFS and SMB do for
                    // their clients. The system asks it to give that up, and waits for some time.
                    flags.remove(OFlags::NONBLOCK);
                }
                opened => return Ok(opened?.into()),
            }
        }
    }

    fn is_file(folder: Option<&OwnedFd>, name: &[u8], links: Links) -> bool {
        let stat = stat(folder, name, links);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    pub(super) fn stat(folder: Option<&OwnedFd>, name: &[u8], links: Links) -> io::Result<Stat> {
        let flags = match links {
            Links::Follow => AtFlags::empty(),
            Links::Refuse => AtFlags::SYMLINK_NOFOLLOW,
        };
        Ok(rustix::fs::statat(at(folder), name, flags)?)
    }

    pub(super) fn link_target(folder: Option<&OwnedFd>, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(at(folder), name, Vec::new())?.into_bytes())
    }
}

/// Whether a path that is a link may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The file that the link leads to is opened.
    Follow,
    /// A link is not opened.
    Refuse,
}

/// The kind of what has a name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A fifo, a socket or a device; the text names it.
    Special(&'static str),
}

impl FileKind {
    /// The kind in a sentence: `a file`, `a folder`.
    pub fn describe(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Special(name) => name,
        }
    }

    /// The kind that the system names.
    #[cfg(unix)]
    pub(crate) fn of(kind: rustix::fs::FileType) -> Self {
        use rustix::fs::FileType as Raw;
        match kind {
            Raw::RegularFile => Self::File,
            Raw::Directory => Self::Folder,
            Raw::Symlink => Self::Link,
            Raw::Fifo => Self::Special("a fifo"),
            Raw::Socket => Self::Special("a socket"),
            Raw::BlockDevice => Self::Special("a block device"),
            Raw::CharacterDevice => Self::Special("a character device"),
            _ => Self::Special("a special file"),
        }
    }
}

#[cfg(unix)]
impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_symlink() {
            Self::Link
        } else if kind.is_fifo() {
            Self::Special("a fifo")
        } else if kind.is_socket() {
            Self::Special("a socket")
        } else if kind.is_block_device() {
            Self::Special("a block device")
        } else if kind.is_char_device() {
            Self::Special("a character device")
        } else {
            Self::Special("a special file")
        }
    }
}

#[cfg(not(unix))]
impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Special("a special file")
        }
    }
}

/// A file's identity, size and times. A file that has the same ones later has, as far as the system
/// tells, the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The device and the number of the file on it; zeros where the system does not tell them.
    pub identity: (u64, u64),
    /// The length in bytes.
    pub size: u64,
    /// When the content changed last, in nanoseconds since 1970.
    pub modified: i128,
    /// When anything about the file changed last, also its mode or its times: programs cannot
    /// choose it. In nanoseconds since 1970.
    pub changed: i128,
    /// The kind, and who may do what with it, as in `st_mode`; 0 where the system has no such bits.
    pub mode: u32,
}

impl Stamp {
    /// Whether the content was not touched between two stamps of one open file.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        (self.identity, self.size, self.modified) == (other.identity, other.size, other.modified)
    }

    /// The kind of the file.
    #[cfg(unix)]
    pub fn kind(&self) -> FileKind {
        FileKind::of(rustix::fs::FileType::from_raw_mode(self.mode as rustix::fs::RawMode))
    }

    /// The kind of the file, of which this system keeps no stamps but of regular files.
    #[cfg(not(unix))]
    pub fn kind(&self) -> FileKind {
        FileKind::File
    }

    /// Whether its owner may run the file.
    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// The stamp of an open file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(unix)]
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_stat(&rustix::fs::fstat(file)?))
    }

    /// The stamp of an open file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(not(unix))]
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_metadata(&file.metadata()?))
    }

    /// The stamp in the system's answer.
    #[cfg(unix)]
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn of_stat(stat: &rustix::fs::Stat) -> Self {
        let time =
            |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        Self {
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as u64,
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            mode: stat.st_mode as u32,
        }
    }

    /// The stamp in the system's answer.
    #[cfg(not(unix))]
    pub(crate) fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| time.as_nanos() as i128);
        Self { identity: (0, 0), size: metadata.len(), modified, changed: modified, mode: 0 }
    }
}

/// The content of a folder, in the order of whole paths: a folder sorts as if its name ended with a
/// `/`.
#[derive(Debug, Default)]
pub struct Listing {
    names: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    len: u16,
    kind: FileKind,
}

impl Listing {
    /// Reads a folder. `.` and `..` are left out.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn read(folder: &Folder) -> io::Result<Self> {
        let mut listing = Self::default();
        listing.fill(folder)?;
        Ok(listing)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the folder is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name of an entry.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn name(&self, index: usize) -> &[u8] {
        self.name_of(&self.entries[index])
    }

    /// The kind of an entry.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn kind(&self, index: usize) -> FileKind {
        self.entries[index].kind
    }

    /// Keeps the entries that `keep` wants; it may change a kind.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &mut FileKind) -> bool) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain_mut(|entry| {
            let name = &self.names[entry.start..entry.start + usize::from(entry.len)];
            keep(name, &mut entry.kind)
        });
        self.entries = entries;
    }

    /// Sorts the entries.
    pub fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| compare((self.name_of(a), a.kind), (self.name_of(b), b.kind)));
        self.entries = entries;
    }

    fn name_of(&self, entry: &Entry) -> &[u8] {
        &self.names[entry.start..entry.start + usize::from(entry.len)]
    }

    fn push(&mut self, name: &[u8], kind: FileKind) {
        let entry = Entry { start: self.names.len(), len: name.len() as u16, kind };
        self.names.extend_from_slice(name);
        self.entries.push(entry);
    }

    #[cfg(target_os = "linux")]
    fn fill(&mut self, folder: &Folder) -> io::Result<()> {
        use rustix::fs::{FileType, RawDir};
        let Some(handle) = folder.handle() else { return Ok(()) };
        let mut buffer = Vec::with_capacity(64 << 10);
        let mut entries = RawDir::new(handle, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not tell.
                FileType::Unknown => folder.stamp(name, Links::Refuse)?.kind(),
                kind => FileKind::of(kind),
            };
            self.push(name, kind);
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn fill(&mut self, folder: &Folder) -> io::Result<()> {
        let _ = Links::Refuse;
        for entry in std::fs::read_dir(path_from(folder.prefix()))? {
            let entry = entry?;
            self.push(entry.file_name().as_encoded_bytes(), entry.file_type()?.into());
        }
        Ok(())
    }
}

/// The order of two names in one folder: that of the paths below it.
fn compare(a: (&[u8], FileKind), b: (&[u8], FileKind)) -> Ordering {
    let common = a.0.len().min(b.0.len());
    let next = |(name, kind): (&[u8], FileKind)| match name.get(common) {
        Some(byte) => Some(*byte),
        None => (kind == FileKind::Folder).then_some(b'/'),
    };
    a.0[..common].cmp(&b.0[..common]).then_with(|| next(a).cmp(&next(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_the_paths_below_them() {
        let mut listing = Listing::default();
        let names: [(&[u8], FileKind); 6] = [
            (b"a0", FileKind::File),
            (b"a", FileKind::Folder),
            (b"a.txt", FileKind::File),
            (b"", FileKind::File),
            (b"\xff", FileKind::Link),
            (b"a-", FileKind::Folder),
        ];
        names.into_iter().for_each(|(name, kind)| listing.push(name, kind));
        listing.sort();
        let sorted: Vec<_> = (0..listing.len()).map(|index| listing.name(index)).collect();
        assert_eq!(sorted, [&b""[..], b"a-", b"a.txt", b"a", b"a0", b"\xff"]);
    }
}
