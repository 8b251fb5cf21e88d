//! The bytes of a caller's object.

use pyo3::Borrowed;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::slice;

/// From this many bytes of work on, other threads of Python may run meanwhile. Less work takes about as long as it takes to give the
/// interpreter's lock away and to get it back.
const LONG: usize = 8 * 1024;

/// Does `work` on that many bytes, without the interpreter's lock if they are many.
#[inline]
pub(crate) fn compute<T: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if bytes >= LONG { py.detach(work) } else { work() }
}

/// An object with the buffer protocol. Holds its buffer, so that nobody can resize it meanwhile.
pub(crate) enum Input<'a, 'py> {
    /// `bytes` need no buffer: they never change.
    Bytes(Borrowed<'a, 'py, PyBytes>),
    Buffer(PyUntypedBuffer),
}

impl<'a, 'py> Input<'a, 'py> {
    /// An object whose elements may be of any type.
    ///
    /// # Errors
    ///
    /// `TypeError` if it has no buffer, `BufferError` if the buffer is not contiguous.
    #[inline]
    pub(crate) fn of_any(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            return Ok(Self::Bytes(bytes));
        }
        Self::of_buffer(object)
    }

    /// An object whose elements are single bytes, with or without a sign.
    ///
    /// # Errors
    ///
    /// Those of [`Input::of_any`], and `BufferError` if its elements are something else.
    #[inline]
    pub(crate) fn of_bytes(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let input = Self::of_any(object)?;
        if let Self::Buffer(buffer) = &input {
            buffer
                .as_typed::<u8>()
                .map(drop)
                .or_else(|error| buffer.as_typed::<i8>().map(drop).map_err(|_| error))?;
        }
        Ok(input)
    }

    #[inline(never)]
    fn of_buffer(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(&object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer is not contiguous"));
        }
        Ok(Self::Buffer(buffer))
    }

    /// Its bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            // An empty buffer may have no address.
            Self::Buffer(buffer) if buffer.len_bytes() == 0 => &[],
            Self::Buffer(buffer) => {
                // SAFETY: the buffer is contiguous, and its owner keeps it in place until it is released, which is after the slice is gone.
                // A program may change its bytes from another thread while we hash them, as with Python's own hashlib. Our code reads them
                // and takes no decision by their values: such a program gets a digest of no state that they ever had.
                unsafe { slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
            }
        }
    }
}

/// The argument of a function that accepts elements of any type.
impl<'a, 'py> FromPyObject<'a, 'py> for Input<'a, 'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Self::of_any(object)
    }
}

/// The argument of a function that accepts only elements of one byte.
pub(crate) struct ByteInput<'a, 'py>(pub(crate) Input<'a, 'py>);

impl<'a, 'py> FromPyObject<'a, 'py> for ByteInput<'a, 'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Input::of_bytes(object).map(ByteInput)
    }
}
