//! Folders and the files in them, opened by their names in the folder: short names are found faster
//! than long paths, and a path of any length works.

use crate::source::Links;
use crate::stamp::Stamp;
use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A folder that names are looked up in.
#[derive(Debug)]
pub struct Folder {
    /// `None` for the current folder.
    #[cfg(unix)]
    handle: Option<OwnedFd>,
    /// What comes before a name in a path: empty, or it ends with a `/`.
    prefix: Vec<u8>,
    /// How many folders deep it is below where the walk began.
    depth: usize,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Anything that can be read, with links followed; this may wait for the writer of a fifo.
    Anything,
    /// Without waiting.
    File(Links),
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

    /// How deep it is: 1 where a walk begins.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// What comes before a name in a path: empty, or it ends with a `/`.
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
    pub(crate) fn open(&self, name: &[u8], opening: Opening) -> io::Result<File> {
        unix::file(self.handle.as_ref(), name, opening)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Any error of the system.
    #[cfg(not(unix))]
    pub(crate) fn open(&self, name: &[u8], _opening: Opening) -> io::Result<File> {
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
    #[cfg(unix)]
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
    use super::Opening;
    use crate::source::Links;
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
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

    pub(super) fn file(folder: Option<&OwnedFd>, name: &[u8], opening: Opening) -> io::Result<File> {
        let flags = match opening {
            Opening::Anything => OFlags::empty(),
            Opening::File(links) => OFlags::NONBLOCK | OFlags::NOCTTY | no_follow(links),
        };
        loop {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | flags;
            match rustix::fs::openat(at(folder), name, flags, Mode::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                opened => return Ok(opened?.into()),
            }
        }
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
