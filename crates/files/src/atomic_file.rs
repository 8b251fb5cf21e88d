//! A file while it is being written. If the file system supports it (`O_TMPFILE`), the file has no
//! name until it is complete, so that nothing is left if the process dies. Otherwise it has a
//! temporary name, and is locked as long as its process lives.

use crate::unfinished::UnfinishedFiles;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

const PREFIX: &str = ".bulla-";
const SUFFIX: &str = ".tmp";
/// The number of random letters and digits between the two.
const RANDOM_LEN: usize = 6;

/// The users that may read the finished file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Those that the umask permits.
    Umask,
    /// Only its owner.
    OwnerOnly,
}

/// The action if something already has the final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Replace it by the new file.
    Replace,
    /// Keep it, and return an error.
    Fail,
}

/// A file that is being written. Until it is finished, only its owner may read it. Dropping it
/// removes it.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once it has its final name.
    file: Option<DraftFile>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux names a file in the end"))]
    folder: PathBuf,
    visibility: Visibility,
}

#[derive(Debug)]
enum DraftFile {
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Named(NamedTempFile),
}

impl AtomicFile {
    /// Starts a file in `folder`. It first removes the leftovers of processes that have ended.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn create(folder: &Path, visibility: Visibility) -> io::Result<Self> {
        remove_leftovers_once(folder);
        #[cfg(target_os = "linux")]
        if let Some(file) = linux::unnamed(folder) {
            let file = Some(DraftFile::Unnamed(file));
            return Ok(Self { file, folder: folder.to_owned(), visibility });
        }
        Self::named(folder, visibility)
    }

    /// Starts a file under a temporary name.
    fn named(folder: &Path, visibility: Visibility) -> io::Result<Self> {
        let mut unfinished = UnfinishedFiles::lock();
        let file = loop {
            let file = builder().make_in(folder, create_new)?;
            // Before it was locked, another process may have taken it for a leftover and removed
            // it.
            lock_for_life(file.as_file());
            if is_there(file.as_file())? {
                break file;
            }
        };
        unfinished.add(file.path());
        Ok(Self { file: Some(DraftFile::Named(file)), folder: folder.to_owned(), visibility })
    }

    /// The file to write to, and to read from.
    ///
    /// # Errors
    /// None, as long as the file does not have its final name.
    pub fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.file {
            #[cfg(target_os = "linux")]
            Some(DraftFile::Unnamed(file)) => Ok(file),
            Some(DraftFile::Named(file)) => Ok(file.as_file_mut()),
            None => Err(io::Error::other("the file has its final name already")),
        }
    }

    /// Gives the finished file its mode and its name, once all of it is on the disk.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something has that name and `if_exists` says to fail;
    /// any error of the system. After an error, nothing is left behind, and `path` is unchanged.
    pub fn persist(mut self, path: &Path, if_exists: IfExists) -> io::Result<()> {
        if self.visibility == Visibility::Umask {
            widen(self.file()?)?;
        }
        self.file()?.sync_all()?;
        // Hold this to the end, so that an interrupt finds the file under one of its two names or
        // under none.
        let mut unfinished = UnfinishedFiles::lock();
        match self.file.take() {
            #[cfg(target_os = "linux")]
            Some(DraftFile::Unnamed(file)) => linux::link(&file, &self.folder, path, if_exists),
            Some(DraftFile::Named(file)) => {
                unfinished.remove(file.path());
                match if_exists {
                    IfExists::Replace => file.persist(path),
                    IfExists::Fail => file.persist_noclobber(path),
                }
                .map(drop)
                .map_err(|error| error.error)
            }
            None => Ok(()),
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(DraftFile::Named(file)) = self.file.take() {
            let mut unfinished = UnfinishedFiles::lock();
            unfinished.remove(file.path());
            drop(file);
        }
    }
}

/// Makes files with temporary names, which only their owner may use.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM_LEN);
    builder
}

/// Makes a file that only its owner may use. The crate's own function would put the temporary path
/// into its errors, after the path that the caller names.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{IfExists, builder, lock_for_life};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd as _;
    use std::path::{Path, PathBuf};

    /// A file without a name; `None` if the system has no such files, or cannot give them a name
    /// later. Any other problem with the folder will show when a named file is created.
    pub(super) fn unnamed(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
        lock_for_life(&file);
        path_of(&file).exists().then_some(file)
    }

    /// The file's path in `/proc`, which can be linked without a privilege.
    fn path_of(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Gives the file a name. A link cannot replace anything: to replace a file, this links to a
    /// temporary name first, and renames that.
    pub(super) fn link(file: &File, folder: &Path, path: &Path, if_exists: IfExists) -> io::Result<()> {
        let link = |path: &Path| {
            let linked = rustix::fs::linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW);
            linked.map_err(io::Error::from)
        };
        match link(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && if_exists == IfExists::Replace => {}
            linked => return linked,
        }
        // If the process dies here, a complete file remains under a temporary name, which the next
        // run removes.
        let linked = builder().make_in(folder, link)?;
        linked.into_temp_path().persist(path).map_err(|error| error.error)
    }
}

/// Locks a file that this process made, so that other processes see that it is in use. On a file
/// system without locks this does nothing: there, no process removes leftovers either.
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

/// Gives the file the mode of a newly created file, as limited by the umask.
#[cfg(unix)]
fn widen(file: &File) -> io::Result<()> {
    use rustix::fs::Mode;
    use std::sync::OnceLock;
    static UMASK: OnceLock<Mode> = OnceLock::new();
    let umask = *UMASK.get_or_init(|| {
        // The umask can be read only by setting it. A file that another thread creates meanwhile is
        // accessible only to its owner.
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

/// Removes the leftovers of ended processes in `folder`, the first time that this process writes
/// there.
fn remove_leftovers_once(folder: &Path) {
    static LOOKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    if looked.insert(folder.to_owned()) {
        remove_leftovers(folder);
    }
}

/// Removes our temporary files that no process has locked. Errors are ignored: cleaning up is not
/// what the user asked for.
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
        middle.len() == RANDOM_LEN && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
    // Since then, its process may have given it its final name, and another process may have taken
    // this name.
    let there = path.symlink_metadata()?;
    if (there.dev(), there.ino()) == (metadata.dev(), metadata.ino()) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Elsewhere an open file cannot be removed, so no check is needed.
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
    fn drafts(folder: &TempDir, visibility: Visibility) -> [AtomicFile; 2] {
        let path = folder.path();
        [AtomicFile::create(path, visibility).unwrap(), AtomicFile::named(path, visibility).unwrap()]
    }

    #[test]
    fn a_file_is_its_owners_until_it_is_done_and_then_what_the_umask_permits() {
        let folder = tempfile::tempdir().unwrap();
        // Reads the umask, which changes it for a moment.
        widen(&tempfile::tempfile().unwrap()).unwrap();
        let plain = File::create(folder.path().join("plain")).unwrap();
        for (visibility, finally) in [(Visibility::Umask, mode(&plain)), (Visibility::OwnerOnly, 0o600)] {
            for mut draft in drafts(&folder, visibility) {
                let path = folder.path().join("done");
                draft.file().unwrap().write_all(b"secret").unwrap();
                assert_eq!(mode(draft.file().unwrap()), 0o600);
                draft.persist(&path, IfExists::Replace).unwrap();
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
            let draft = || drafts(&folder, Visibility::Umask).into_iter().nth(kind).unwrap();
            let mut refused = draft();
            refused.file().unwrap().write_all(b"new").unwrap();
            let error = refused.persist(&path, IfExists::Fail).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            let mut taken = draft();
            taken.file().unwrap().write_all(b"new").unwrap();
            taken.persist(&path, IfExists::Replace).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
            drop(draft());
            assert_eq!(names(&folder), ["a"]);
        }
    }

    #[test]
    fn an_error_does_not_tell_a_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = AtomicFile::named(&folder.path().join("missing"), Visibility::Umask).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NOENT.raw_os_error()));
    }

    #[test]
    fn leftovers_are_removed_and_what_is_held_or_not_ours_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let held = AtomicFile::named(folder.path(), Visibility::Umask).unwrap();
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
        // Removes leftovers all the time; losing a file would give the writer an error.
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_leftovers(&path);
                }
            });
            for number in 0..200 {
                let target = path.join(number.to_string());
                AtomicFile::named(&path, Visibility::Umask)
                    .unwrap()
                    .persist(&target, IfExists::Fail)
                    .unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(names(&folder).len(), 200);
    }
}
