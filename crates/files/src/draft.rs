//! A file while it is written. Where the file system can do that it has no name until all of it is there (`O_TMPFILE`), so that
//! no death of the process leaves anything; elsewhere it has a temporary name and is locked as long as its process lives.

use crate::unfinished::Unfinished;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

const PREFIX: &str = ".bulla-";
const SUFFIX: &str = ".tmp";
/// How many random letters and digits are between the two.
const RANDOM: usize = 6;

/// Who may read the finished file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whom the umask permits it.
    Any,
    /// Its owner alone.
    Owner,
}

/// What becomes of something that has the final name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The new file takes its place.
    Replaced,
    /// The new file is an error, and the old one stays.
    Kept,
}

/// A file that is being written. Until it is done only its owner may read it. Dropping it removes it.
#[derive(Debug)]
pub struct Draft {
    /// `None` once it has its final name.
    content: Option<Content>,
    folder: PathBuf,
    readers: Readers,
}

#[derive(Debug)]
enum Content {
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Named(NamedTempFile),
}

impl Draft {
    /// Starts a file in `folder`, after removing what processes that are gone left there.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn create(folder: &Path, readers: Readers) -> io::Result<Self> {
        remove_leftovers_once(folder);
        #[cfg(target_os = "linux")]
        if let Some(file) = linux::unnamed(folder) {
            let content = Some(Content::Unnamed(file));
            return Ok(Self { content, folder: folder.to_owned(), readers });
        }
        Self::named(folder, readers)
    }

    /// The same under a temporary name.
    fn named(folder: &Path, readers: Readers) -> io::Result<Self> {
        let mut unfinished = Unfinished::lock();
        let file = loop {
            let file = builder().tempfile_in(folder)?;
            // Another process may have found it before it was locked, taken it for a leftover, and removed it.
            lock_for_life(file.as_file());
            if is_there(file.as_file())? {
                break file;
            }
        };
        unfinished.add(file.path());
        Ok(Self { content: Some(Content::Named(file)), folder: folder.to_owned(), readers })
    }

    /// The file to write to, and to read from.
    ///
    /// # Errors
    /// None as long as the file has not its final name.
    pub fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.content {
            #[cfg(target_os = "linux")]
            Some(Content::Unnamed(file)) => Ok(file),
            Some(Content::Named(file)) => Ok(file.as_file_mut()),
            None => Err(io::Error::other("the file has its final name already")),
        }
    }

    /// Gives the finished file its mode and its name, once all of it is on the disk.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when something has that name and is to be kept; any error of the system. Nothing is
    /// left behind then, and `path` is as it was.
    pub fn persist(mut self, path: &Path, existing: Existing) -> io::Result<()> {
        if self.readers == Readers::Any {
            widen(self.file()?)?;
        }
        self.file()?.sync_all()?;
        // To the end: an interrupt finds the file under one of its two names or under none.
        let mut unfinished = Unfinished::lock();
        match self.content.take() {
            #[cfg(target_os = "linux")]
            Some(Content::Unnamed(file)) => linux::link(&file, &self.folder, path, existing),
            Some(Content::Named(file)) => {
                unfinished.remove(file.path());
                match existing {
                    Existing::Replaced => file.persist(path),
                    Existing::Kept => file.persist_noclobber(path),
                }
                .map(drop)
                .map_err(|error| error.error)
            }
            None => Ok(()),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(Content::Named(file)) = self.content.take() {
            let mut unfinished = Unfinished::lock();
            unfinished.remove(file.path());
            drop(file);
        }
    }
}

/// Temporary names; what has one is for its owner alone.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM);
    builder
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Existing, builder, lock_for_life};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd as _;
    use std::path::{Path, PathBuf};

    /// A file without a name; `None` where there are no such files, or no way to give them a name later. Whatever else is wrong
    /// with the folder, the file with a name will find out.
    pub(super) fn unnamed(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
        lock_for_life(&file);
        path_of(&file).exists().then_some(file)
    }

    /// The file in the file system of processes: what can be linked without a privilege.
    fn path_of(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Gives the file a name. A link cannot replace anything: where there is something to be replaced, the file gets a temporary
    /// name first, and is renamed.
    pub(super) fn link(file: &File, folder: &Path, path: &Path, existing: Existing) -> io::Result<()> {
        let link = |path: &Path| {
            let linked = rustix::fs::linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW);
            linked.map_err(io::Error::from)
        };
        match link(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && existing == Existing::Replaced => {}
            linked => return linked,
        }
        // A death here leaves a whole file under a name that the next run removes.
        let linked = builder().make_in(folder, link)?;
        linked.into_temp_path().persist(path).map_err(|error| error.error)
    }
}

/// Locks a file that this process made, so that others see that it is in use. A file system without locks has nobody who could
/// take them for anything.
#[cfg(unix)]
fn lock_for_life(file: &File) {
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::LockExclusive);
}

#[cfg(not(unix))]
fn lock_for_life(_file: &File) {}

/// Whether an open file still has a name.
#[cfg(unix)]
fn is_there(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(file.metadata()?.nlink() > 0)
}

#[cfg(not(unix))]
fn is_there(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// The mode that any program would give a new file: the umask takes its part.
#[cfg(unix)]
fn widen(file: &File) -> io::Result<()> {
    use rustix::fs::Mode;
    use std::sync::OnceLock;
    static UMASK: OnceLock<Mode> = OnceLock::new();
    let umask = *UMASK.get_or_init(|| {
        // It can be read by setting it alone. What another thread makes meanwhile is for its owner.
        let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(umask);
        umask
    });
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(0o666) - umask)?)
}

#[cfg(not(unix))]
fn widen(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Removes what processes that are gone left in `folder`, the first time that this process writes there.
fn remove_leftovers_once(folder: &Path) {
    static LOOKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    if looked.insert(folder.to_owned()) {
        remove_leftovers(folder);
    }
}

/// Removes temporary files of ours that nobody holds. What cannot be looked at or removed stays: it is not what the user asked for.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if is_ours(&entry.file_name()) {
            let _ = remove_unheld(&entry.path());
        }
    }
}

/// Whether the name is a temporary one of this program.
fn is_ours(name: &OsStr) -> bool {
    let middle =
        name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|name| name.strip_suffix(SUFFIX));
    middle.is_some_and(|middle| {
        middle.len() == RANDOM && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Removes a file of this user, unless a process has it locked.
#[cfg(unix)]
fn remove_unheld(path: &Path) -> io::Result<()> {
    use rustix::fs::{FlockOperation, Mode, OFlags};
    use std::os::unix::fs::MetadataExt as _;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Its process may have given it its final name since, and another one taken this name.
    let there = path.symlink_metadata()?;
    if (there.dev(), there.ino()) == (metadata.dev(), metadata.ino()) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Elsewhere a file that is open cannot be removed, and there is no need to ask.
#[cfg(not(unix))]
fn remove_unheld(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

    fn mode(file: &File) -> u32 {
        file.metadata().unwrap().permissions().mode() & 0o7777
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A draft of each kind.
    fn drafts(folder: &TempDir, readers: Readers) -> [Draft; 2] {
        let path = folder.path();
        [Draft::create(path, readers).unwrap(), Draft::named(path, readers).unwrap()]
    }

    #[test]
    fn a_file_is_its_owners_until_it_is_done_and_then_what_the_umask_permits() {
        let folder = tempfile::tempdir().unwrap();
        // Reads the umask, which changes it for a moment.
        widen(&tempfile::tempfile().unwrap()).unwrap();
        let plain = File::create(folder.path().join("plain")).unwrap();
        for (readers, finally) in [(Readers::Any, mode(&plain)), (Readers::Owner, 0o600)] {
            for mut draft in drafts(&folder, readers) {
                let path = folder.path().join("done");
                draft.file().unwrap().write_all(b"secret").unwrap();
                assert_eq!(mode(draft.file().unwrap()), 0o600);
                draft.persist(&path, Existing::Replaced).unwrap();
                assert_eq!(mode(&File::open(&path).unwrap()), finally);
                assert_eq!(std::fs::read(&path).unwrap(), b"secret");
            }
            assert_eq!(names(&folder), ["done", "plain"]);
        }
    }

    #[test]
    fn what_is_there_is_replaced_or_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for kind in 0..2 {
            std::fs::write(&path, "old").unwrap();
            let draft = || drafts(&folder, Readers::Any).into_iter().nth(kind).unwrap();
            let mut refused = draft();
            refused.file().unwrap().write_all(b"new").unwrap();
            let error = refused.persist(&path, Existing::Kept).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            let mut taken = draft();
            taken.file().unwrap().write_all(b"new").unwrap();
            taken.persist(&path, Existing::Replaced).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
            drop(draft());
            assert_eq!(names(&folder), ["a"]);
        }
    }

    #[test]
    fn leftovers_are_removed_and_what_is_held_or_not_ours_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let held = Draft::named(folder.path(), Readers::Any).unwrap();
        let others = [".bulla-a.tmp", ".bulla-abcdef", ".bulla-abc.ef.tmp", "bulla-abcdef.tmp", ".tmpabcdef"];
        for name in others.iter().chain(&[".bulla-abcdef.tmp"]) {
            std::fs::write(folder.path().join(name), "left").unwrap();
        }
        std::fs::create_dir(folder.path().join(".bulla-folder.tmp")).unwrap();
        std::os::unix::fs::symlink("target", folder.path().join(".bulla-symlnk.tmp")).unwrap();
        assert_eq!(names(&folder).len(), 9);
        remove_leftovers(folder.path());
        let left = names(&folder);
        assert_eq!(left.len(), 8, "{left:?}");
        assert!(!left.contains(&".bulla-abcdef.tmp".to_owned()));
        drop(held);
        assert_eq!(names(&folder).len(), 7);
    }

    #[test]
    fn a_file_that_was_taken_for_a_leftover_before_it_was_locked_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        // Removes all day long; a lost file would be an error of the writer.
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_leftovers(&path);
                }
            });
            for number in 0..200 {
                let target = path.join(number.to_string());
                Draft::named(&path, Readers::Any).unwrap().persist(&target, Existing::Kept).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(names(&folder).len(), 200);
    }
}
