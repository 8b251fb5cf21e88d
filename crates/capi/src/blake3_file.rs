//! BLAKE3 of files, with a callback that sees the progress and can cancel.

use crate::args;
use crate::blake3_hasher::{bulla_blake3_hasher, update_threads};
use crate::kernels::ready;
use crate::status::{
    BULLA_ERROR_ARGUMENT, BULLA_ERROR_CANCELED, BULLA_ERROR_IO, Failure, bulla_status, guard,
};
use bulla_blake3::Hasher;
use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Hash on the calling thread alone.
pub const BULLA_ONE_THREAD: u32 = 0;
/// Hash on all threads of the pool: see bulla_start_threads.
pub const BULLA_ALL_THREADS: u32 = 1;

/// Called after each piece of a file, and at least once: `done` bytes are hashed, of `total` bytes;
/// `total` is 0 if the length is not known, as for a pipe. It returns 0 to go on, and another value
/// to cancel. It runs on the calling thread, and must neither throw nor jump away.
pub type bulla_progress = Option<unsafe extern "C" fn(user: *mut c_void, done: u64, total: u64) -> i32>;

/// The number of bytes to read at a time on one thread: it fits into the second-level cache.
const PIECE_LEN: usize = 256 << 10;

/// The number of bytes to read at a time on many threads: each gets at least some hundred
/// kilobytes.
const THREADS_PIECE_LEN: usize = 8 << 20;

/// A callback with what it wants back.
struct Progress {
    call: bulla_progress,
    user: *mut c_void,
}

impl Progress {
    /// Reports the position, unless there is no callback.
    fn report(&self, done: u64, total: u64) -> Result<(), Failure> {
        let Some(call) = self.call else { return Ok(()) };
        // SAFETY: the caller of the library promised a function that may be called with its
        // pointer.
        match unsafe { call(self.user, done, total) } {
            0 => Ok(()),
            _ => Err(Failure::new(BULLA_ERROR_CANCELED, format!("canceled after {done} bytes"))),
        }
    }
}

/// Hashes the content of a file into `out`. `threads` is BULLA_ONE_THREAD or BULLA_ALL_THREADS.
/// `progress` may be NULL; it gets `user`. Fails with BULLA_ERROR_IO if the file cannot be read,
/// and with BULLA_ERROR_CANCELED if the callback says so; `out` is then not written. Thread-safe.
///
/// # Safety
///
/// `path` is a C string, `out` has room for 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_file(
    path: *const c_char,
    threads: u32,
    progress: bulla_progress,
    user: *mut c_void,
    out: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        args::aligned(out)?;
        let mut hasher = Hasher::new();
        // SAFETY: the caller promised the path and the room.
        unsafe {
            update(&mut hasher, args::string(path)?, threads, &Progress { call: progress, user })?;
            args::write(out, hasher.finalize().as_bytes())
        }
    })
}

/// Hashes the content of a file as more input of a hasher. `threads` is BULLA_ONE_THREAD or
/// BULLA_ALL_THREADS. `progress` may be NULL; it gets `user`. After an error or a cancellation, the
/// hasher has the input that was read before. One thread at a time for each hasher.
///
/// # Safety
///
/// `hasher` is a hasher, `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_hasher_update_file(
    hasher: *mut bulla_blake3_hasher,
    path: *const c_char,
    threads: u32,
    progress: bulla_progress,
    user: *mut c_void,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the hasher and the path.
        let (hasher, path) = unsafe { (&mut args::object_mut(hasher)?.inner, args::string(path)?) };
        update(hasher, path, threads, &Progress { call: progress, user })
    })
}

/// A way to take more input.
type UpdateFn = for<'h> fn(&'h mut Hasher, &[u8]) -> &'h mut Hasher;

fn update(hasher: &mut Hasher, path: &CStr, threads: u32, progress: &Progress) -> Result<(), Failure> {
    let (hash, piece): (UpdateFn, _) = match threads {
        BULLA_ONE_THREAD => (Hasher::update, PIECE_LEN),
        BULLA_ALL_THREADS => (update_threads, THREADS_PIECE_LEN),
        _ => return Err(Failure::new(BULLA_ERROR_ARGUMENT, format!("{threads} is no value of `threads`"))),
    };
    let failed =
        |error: std::io::Error| Failure::new(BULLA_ERROR_IO, format!("{}: {error}", path.to_string_lossy()));
    let mut file = File::open(to_path(path)?).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    // Memory that nothing has written yet: to overwrite it first takes longer than to read a short
    // file.
    let mut buffer =
        Vec::with_capacity(usize::try_from(total).map_or(piece, |len| len.clamp(4095, piece - 1) + 1));
    let room = buffer.capacity();
    let mut done = 0;
    let mut longest = 0;
    let result = loop {
        buffer.clear();
        let read = file.by_ref().take(room as u64).read_to_end(&mut buffer);
        longest = longest.max(buffer.len());
        let n = match read {
            Ok(n) => n,
            Err(error) => break Err(failed(error)),
        };
        hash(hasher, &buffer);
        done += n as u64;
        if let Err(canceled) = progress.report(done, total) {
            break Err(canceled);
        }
        // One more byte than the file had: the end is found without another read.
        if n < room {
            break Ok(());
        }
    };
    // It may be a secret file. `black_box` keeps the compiler from removing this, because the
    // memory is freed next.
    buffer.clear();
    buffer.resize(longest, 0);
    std::hint::black_box(&mut buffer);
    result
}

#[cfg(unix)]
fn to_path(path: &CStr) -> Result<&Path, Failure> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

/// Elsewhere, paths are UTF-8.
#[cfg(not(unix))]
fn to_path(path: &CStr) -> Result<&Path, Failure> {
    path.to_str()
        .map(Path::new)
        .map_err(|error| Failure::new(BULLA_ERROR_ARGUMENT, format!("the path: {error}")))
}
