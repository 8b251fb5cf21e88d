//! The files of a log in its folder.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use super::checkpoint::Checkpoint;
use super::checkpoint::LogId;
use super::entry::{Header, MAX_LINE};
use super::witness::CosignedCheckpoint;
use crate::error::{Code, KmsError, Result};
use crate::files;

/// The file that a writer of the log locks.
const LOCK: &str = "lock";
/// The newest checkpoint.
const HEAD: &str = "head";
/// The ending of files with entries.
const ENDING: &str = ".jsonl";
/// The newest checkpoint that witnesses cosigned.
const COSIGNED: &str = "cosigned";
/// Longer than any checkpoint.
const MAX_NOTE: u64 = 128 << 10;

/// A file of entries, by the number of the first one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogFile {
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

impl LogFile {
    pub(super) fn new(folder: &Path, first: u64) -> Self {
        Self { first, path: folder.join(format!("{first:020}{ENDING}")) }
    }

    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn reader(&self) -> Result<BufReader<File>> {
        let file = File::open(&self.path);
        let file =
            file.map_err(|error| KmsError::io(format!("cannot open {}", self.path.display()), error))?;
        Ok(BufReader::with_capacity(1 << 16, file))
    }
}

/// The files of entries in a folder, the oldest first.
pub(super) fn parts(folder: &Path) -> Result<Vec<LogFile>> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => no_log(folder),
        _ => KmsError::io(format!("cannot read {}", folder.display()), error),
    };
    let mut parts = Vec::new();
    for file in fs::read_dir(folder).map_err(cannot)? {
        let name = file.map_err(cannot)?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        let first = digits.filter(|digits| digits.len() == 20).and_then(|digits| digits.parse().ok());
        parts.extend(first.map(|first| LogFile::new(folder, first)));
    }
    parts.sort_unstable();
    if parts.is_empty() { Err(no_log(folder)) } else { Ok(parts) }
}

/// The number of the log in a folder.
///
/// # Errors
/// [`Code::NotFound`], [`Code::AuditLogTooNew`]; [`Code::AuditLogCorrupt`] if the first line cannot
/// be read.
pub fn read_log_id(folder: &Path) -> Result<LogId> {
    let parts = parts(folder)?;
    let (part, mut line) = (&parts[0], String::new());
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidData => KmsError::new(Code::AuditLogCorrupt, "the first line is not UTF-8"),
        _ => KmsError::io("cannot read the audit log", error),
    };
    part.reader()?.take(MAX_LINE as u64).read_line(&mut line).map_err(unreadable)?;
    let header = Header::parse(line.trim_end_matches('\n')).map_err(|error| {
        KmsError::new(error.code, format!("the audit log, {}: {}", part.path.display(), error.message))
    })?;
    Ok(header.log)
}

pub(super) fn no_log(folder: &Path) -> KmsError {
    KmsError::new(Code::NotFound, format!("there is no audit log in {}", folder.display()))
}

/// Creates a file with its first line. When this returns, the file is complete and on the disk. A
/// crash leaves the complete file or none.
pub(super) fn create_part(part: &LogFile, header: &Header) -> Result<(File, u64)> {
    let line = header.to_line() + "\n";
    files::create(&part.path, line.as_bytes())?;
    Ok((append_to(part)?, line.len() as u64))
}

/// Opens a file to write at its end.
pub(super) fn append_to(part: &LogFile) -> Result<File> {
    let file = File::options().append(true).open(&part.path);
    file.map_err(|error| KmsError::io(format!("cannot open {}", part.path.display()), error))
}

/// Has the file system keep room for the bytes of a file from `start` to `end`, without making the
/// file longer. Where it cannot do that, nothing happens, and a write may still find the disk full.
///
/// # Errors
/// There is not so much room.
#[cfg(target_os = "linux")]
pub(super) fn allocate(file: &File, start: u64, end: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    use rustix::process::{Resource, getrlimit};
    // The system does not look at the limit before bytes are written.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| end > limit) {
        return Err(Errno::FBIG.into());
    }
    loop {
        match fallocate(file, FallocateFlags::KEEP_SIZE, start, end - start) {
            Err(Errno::INTR) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                return Err(error.into());
            }
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn allocate(_file: &File, _start: u64, _end: u64) -> io::Result<()> {
    Ok(())
}

/// How long to wait for a lock. A program that verifies the log takes the lock for a moment, to
/// learn whether another one has it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The lock of a log. Dropping the value releases it, and so does the end of the process.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// # Errors
    /// [`Code::Locked`] if another process keeps writing to the log.
    pub(super) fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(LOCK);
        let cannot = |error| KmsError::io(format!("cannot open {}", path.display()), error);
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(cannot)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(LOCK_RETRY_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let message = format!("another process writes to the audit log in {}", folder.display());
                    return Err(KmsError::new(Code::Locked, message));
                }
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
        }
    }

    /// Whether a process is writing to the log at the moment.
    pub(super) fn is_taken(folder: &Path) -> bool {
        let Ok(file) = File::open(folder.join(LOCK)) else { return false };
        let lock = Self(file);
        matches!(lock.0.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for Lock {
    /// Closing the file is not enough: a child process that is just being started also has it open,
    /// until it executes its own program.
    fn drop(&mut self) {
        // If this fails, closing the file still unlocks it.
        let _ = self.0.unlock();
    }
}

/// The newest checkpoint, from its file beside the entries; none before the first one.
///
/// # Errors
/// [`Code::AuditLogCorrupt`] if the file is not a checkpoint; errors of reading.
pub(super) fn head(folder: &Path) -> Result<Option<Checkpoint>> {
    note(&folder.join(HEAD))
}

/// The newest checkpoint that witnesses cosigned; none before the first one.
///
/// ```
/// use bulla_kms::audit_log::{
///     AuditLog, AuditLogOptions, ProblemKind, WitnessKey, Witnesses, read_cosigned_checkpoint,
///     verifier_key, verify_cosigned,
/// };
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// # let temporary = tempfile::tempdir().unwrap();
/// # let folder = &temporary.path().join("audit-log");
/// let log = AuditLog::create(folder, AuditLogOptions::default())?;
/// let keystore = Keystore::in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "audit".parse()?, Algorithm::Ed25519))?;
/// let public_key = keystore.public_key(&key)?;
/// println!("witnesses need this key: {}", verifier_key(log.id(), &public_key));
///
/// // With witnesses that must cosign, there would be a transport to each.
/// let report = Witnesses::new(Vec::new(), 0).witness(&log, &keystore, key.key_id())?;
/// assert!(report.stored);
///
/// // Others read what was stored beside the log, and trust it as far as its signatures go.
/// let checkpoint = read_cosigned_checkpoint(folder)?.unwrap();
/// assert_eq!((checkpoint.log(), checkpoint.size()), (log.id(), log.len()));
/// assert!(checkpoint.is_signed_by(&public_key));
/// let witness: WitnessKey =
///     "witness.example.org+ac94e85e+BNdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea".parse()?;
/// assert_eq!(witness.name(), "witness.example.org");
/// assert_eq!(checkpoint.cosigned_by(&witness), None);
///
/// let keys = |id: &_| keystore.public_key(id).ok();
/// let report = verify_cosigned(folder, &keys, &[witness], 1)?.unwrap();
/// for problem in &report.problems {
///     println!("{}: {}", problem.kind.as_str(), problem.message);
/// }
/// assert!(!report.problems.is_empty());
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// # Errors
/// [`Code::AuditLogCorrupt`] if the file is not such a checkpoint; errors of reading.
pub fn read_cosigned_checkpoint(folder: &Path) -> Result<Option<CosignedCheckpoint>> {
    note(&folder.join(COSIGNED))
}

fn note<T: FromStr>(path: &Path) -> Result<Option<T>> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_NOTE).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(KmsError::io(format!("cannot read {}", path.display()), error)),
    }
    let parsed = String::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    let damaged = || KmsError::new(Code::AuditLogCorrupt, format!("{} is not a checkpoint", path.display()));
    parsed.map(Some).ok_or_else(damaged)
}

/// Stores the newest checkpoint that witnesses cosigned, atomically.
pub(super) fn set_cosigned(folder: &Path, checkpoint: &CosignedCheckpoint) -> Result<()> {
    files::replace(&folder.join(COSIGNED), checkpoint.to_string().as_bytes())
}

/// Writes the newest checkpoint to its file beside the entries, atomically.
pub(super) fn set_head(folder: &Path, checkpoint: &Checkpoint) -> Result<()> {
    files::replace(&folder.join(HEAD), checkpoint.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_value_though_a_process_that_is_being_started_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        // The descriptor that a forked process has.
        let inherited = lock.0.try_clone().unwrap();
        assert!(Lock::is_taken(folder.path()));
        drop(lock);
        assert!(!Lock::is_taken(folder.path()));
        assert!(inherited.try_lock().is_ok(), "and who asked has let go of it");
    }

    #[test]
    fn who_asks_for_the_lock_of_a_log_does_not_keep_a_writer_out() {
        let folder = tempfile::tempdir().unwrap();
        drop(Lock::take(folder.path()).unwrap());
        let asking = File::open(folder.path().join(LOCK)).unwrap();
        asking.lock_shared().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::take(folder.path()).map(drop));
            std::thread::sleep(2 * LOCK_RETRY_PAUSE);
            asking.unlock().unwrap();
            assert!(waiting.join().unwrap().is_ok());
        });
    }
}
