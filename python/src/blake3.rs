//! The class `blake3`, with the interface of the class of that name in the package `blake3`, and of
//! the objects of hashlib.

use crate::buffer::{ByteInput, compute};
use crate::pool::{Threads, pool};
use crate::state::{BufferedInput, Mode};
use bulla_blake3::{BLOCK_LEN, Hasher, KEY_LEN, MIN_PARALLEL_LEN, OUT_LEN};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyBytes, PyString};
use std::fs::Metadata;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shorter files are read by one thread: see `Hasher::update_mmap_rayon`.
const SHORT_FILE: u64 = 192 * 1024;

/// The value of `max_threads` for as many threads as there are processors.
const AUTO: isize = -1;

/// A BLAKE3 hasher, which takes its input in pieces.
///
/// `data` is the first piece. `key`, 32 bytes, makes a message authentication code.
/// `derive_key_context` derives a key from the input: it should be hard-coded, globally unique, and
/// name the application and the purpose. At most `max_threads` threads hash an input of 64 KiB or
/// more; `blake3.AUTO` means as many as there are processors. `usedforsecurity` changes nothing.
///
/// Several threads may use one hasher. Long input is hashed without the interpreter's lock.
#[pyclass(name = "blake3", module = "bulla_hash", frozen)]
pub(crate) struct Blake3 {
    mode: Mode,
    threads: Threads,
    state: Mutex<BufferedInput>,
}

impl Blake3 {
    /// The state, for this thread alone.
    #[inline]
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, BufferedInput> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hashes more input, on as many threads as are allowed.
fn update(hasher: &mut Hasher, input: &[u8], threads: Threads) {
    match if input.len() < MIN_PARALLEL_LEN { None } else { pool(threads) } {
        Some(pool) => hasher.update_in_pool(&pool, input),
        None => hasher.update(input),
    };
}

/// Hashes a file, on as many threads as are allowed.
fn update_file(hasher: &mut Hasher, path: &Path, threads: Threads) -> io::Result<()> {
    let is_short = |file: Metadata| file.is_file() && file.len() < SHORT_FILE;
    let one_is_enough = threads == Threads::One || path.metadata().is_ok_and(is_short);
    match if one_is_enough { None } else { pool(threads) } {
        Some(pool) => pool.install(|| hasher.update_mmap_rayon(path).map(drop)),
        None => hasher.update_mmap(path).map(drop),
    }
}

/// Adds a piece of input to the state.
#[inline]
fn add(py: Python<'_>, state: &mut BufferedInput, mode: &Mode, threads: Threads, input: &[u8]) {
    if !state.take_short(input) {
        let hasher = state.hasher(py, mode);
        compute(py, input.len(), || update(hasher, input, threads));
    }
}

/// Clears a key and input that may be secret.
impl Drop for Blake3 {
    fn drop(&mut self) {
        if self.mode.is_secret() {
            self.state.get_mut().unwrap_or_else(PoisonError::into_inner).wipe();
        }
    }
}

#[pymethods]
impl Blake3 {
    /// The name of the hash function.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "the name of hashlib")]
    const name: &'static str = "blake3";

    /// The length of a digest in bytes, unless the caller wants another.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "the name of hashlib")]
    const digest_size: usize = OUT_LEN;

    /// The length of a block in bytes.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "the name of hashlib")]
    const block_size: usize = BLOCK_LEN;

    /// The length of a key in bytes.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "the name of hashlib")]
    const key_size: usize = KEY_LEN;

    /// A value of `max_threads`: as many as there are processors.
    #[classattr]
    const AUTO: isize = AUTO;

    #[new]
    #[pyo3(signature = (
        data = None,
        /,
        *,
        key = None,
        derive_key_context = None,
        max_threads = 1,
        usedforsecurity = true
    ))]
    fn new(
        py: Python<'_>,
        data: Option<ByteInput<'_, '_>>,
        key: Option<ByteInput<'_, '_>>,
        derive_key_context: Option<&str>,
        max_threads: isize,
        usedforsecurity: bool,
    ) -> PyResult<Self> {
        // As in hashlib: it is for hash functions that are no longer secure.
        let _ = usedforsecurity;
        let mode = match (key, derive_key_context) {
            (None, None) => Mode::Hash,
            (Some(key), None) => Mode::keyed(key.0.as_slice())?,
            (None, Some(context)) => Mode::derive_key(context),
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("key and derive_key_context cannot be used together"));
            }
        };
        let threads = threads(max_threads)?;
        let data = data.map(|data| data.0);
        if let Some(state) = BufferedInput::whole(data.as_ref()) {
            return Ok(Self { mode, threads, state: Mutex::new(state) });
        }
        let mut state = BufferedInput::new();
        if let Some(data) = data {
            add(py, &mut state, &mode, threads, data.as_slice());
        }
        Ok(Self { mode, threads, state: Mutex::new(state) })
    }

    /// Hashes more input. Returns the hasher itself.
    #[pyo3(signature = (data, /))]
    fn update<'py>(this: &Bound<'py, Self>, py: Python<'py>, data: ByteInput<'_, '_>) -> Bound<'py, Self> {
        let Self { mode, threads, .. } = this.get();
        add(py, &mut this.get().state(py), mode, *threads, data.0.as_slice());
        this.clone()
    }

    /// Hashes a file through a memory map, or reads it if it is short or cannot be mapped. Returns
    /// the hasher itself.
    ///
    /// If another process truncates the file meanwhile, the operating system may end this one. If
    /// that can happen, use `update` or `hashlib.file_digest`.
    #[pyo3(signature = (path))]
    fn update_mmap<'py>(
        this: &Bound<'py, Self>,
        py: Python<'py>,
        path: PathBuf,
    ) -> PyResult<Bound<'py, Self>> {
        let Self { mode, threads, .. } = this.get();
        let mut state = this.get().state(py);
        let hasher = state.hasher(py, mode);
        py.detach(|| update_file(hasher, &path, *threads))?;
        Ok(this.clone())
    }

    /// An independent copy.
    #[pyo3(signature = ())]
    fn copy(&self, py: Python<'_>) -> Self {
        let state = self.state(py).copy(py);
        Self { mode: self.mode.clone(), threads: self.threads, state: Mutex::new(state) }
    }

    /// Forgets all input: the hasher has the same mode and the same key as at its beginning.
    #[pyo3(signature = ())]
    fn reset(&self, py: Python<'_>) {
        self.state(py).reset();
    }

    /// The digest of the input so far. More input may follow.
    ///
    /// `length` is the number of bytes, and `seek` the position of the first of them in the output,
    /// which may be of any length.
    #[pyo3(signature = (length = OUT_LEN, *, seek = 0), text_signature = "($self, length=32, *, seek=0)")]
    fn digest<'py>(&self, py: Python<'py>, length: usize, seek: u64) -> PyResult<Bound<'py, PyBytes>> {
        if length == OUT_LEN && seek == 0 {
            return Ok(PyBytes::new(py, &self.state(py).digest(py, &self.mode)));
        }
        if isize::try_from(length).is_err() {
            return Err(PyOverflowError::new_err("length is too large"));
        }
        let mut reader = self.state(py).reader(py, &self.mode);
        reader.set_position(seek);
        PyBytes::new_with(py, length, |out| {
            compute(py, length, || reader.fill(out));
            Ok(())
        })
    }

    /// Like `digest`, in hexadecimal digits: two for each of the `length` bytes.
    #[pyo3(signature = (length = OUT_LEN, *, seek = 0), text_signature = "($self, length=32, *, seek=0)")]
    fn hexdigest<'py>(&self, py: Python<'py>, length: usize, seek: u64) -> PyResult<Bound<'py, PyString>> {
        if length == OUT_LEN && seek == 0 {
            let digest = bulla_blake3::Hash::from_bytes(self.state(py).digest(py, &self.mode));
            return Ok(PyString::new(py, &digest.to_hex()));
        }
        if length > isize::MAX.unsigned_abs() / 2 {
            return Err(PyOverflowError::new_err("length is too large"));
        }
        let bytes = self.digest(py, length, seek)?;
        bytes.call_method0("hex")?.cast_into().map_err(PyErr::from)
    }
}

fn threads(max_threads: isize) -> PyResult<Threads> {
    match usize::try_from(max_threads).ok().and_then(NonZeroUsize::new) {
        Some(NonZeroUsize::MIN) => Ok(Threads::One),
        Some(most) => Ok(Threads::AtMost(most)),
        None if max_threads == AUTO => Ok(Threads::Auto),
        None => Err(PyValueError::new_err(format!(
            "max_threads is {max_threads}: it must be positive, or blake3.AUTO"
        ))),
    }
}
