//! The bytes of a caller's object.

use pyo3::Borrowed;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::slice;

/// From this many bytes of work on, other threads of Python may run meanwhile. Less work takes
/// about as long as it takes to give the interpreter's lock away and to get it back.
const MIN_DETACHED_LEN: usize = 8 * 1024;

/// Does `work` on that many bytes, without the interpreter's lock if they are many.
#[inline]
pub(crate) fn compute<T: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if bytes >= MIN_DETACHED_LEN { py.detach(work) } else { work() }
}

/// An object with the buffer protocol. Holds its buffer, so that nobody can resize it meanwhile.
pub(crate) enum Input<'a, 'py> {
    /// `bytes` need no buffer: they never change.
    Bytes(Borrowed<'a, 'py, PyBytes>),
    Plain(PlainBuffer),
    /// A buffer that says what its elements are.
    Typed(PyUntypedBuffer),
}

/// A buffer as hashlib asks for it: contiguous memory, whatever its shape and its elements. PyO3's
/// buffers must have dimensions, which those of ctypes and of numpy's scalars lack.
///
/// It is in a box, because its owner may have a pointer to it.
pub(crate) struct PlainBuffer(Box<ffi::Py_buffer>);

impl PlainBuffer {
    #[inline(never)]
    fn get(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        // Those of numpy have a buffer. As hashlib, we refuse them: the bytes of a text are a
        // matter of its encoding.
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("a text has no bytes: encode it first"));
        }
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is borrowed, and there is room for its buffer.
        match unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ffi::PyBUF_SIMPLE) } {
            0 => Ok(Self(view)),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    fn as_slice(&self) -> &[u8] {
        match usize::try_from(self.0.len) {
            // An empty buffer may have no address.
            Ok(0) | Err(_) => &[],
            // SAFETY: the buffer is contiguous; see `Input::as_slice` for the rest.
            Ok(len) => unsafe { slice::from_raw_parts(self.0.buf.cast(), len) },
        }
    }
}

impl Drop for PlainBuffer {
    fn drop(&mut self) {
        // SAFETY: `get` filled it, and nobody released it.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) });
    }
}

impl<'a, 'py> Input<'a, 'py> {
    /// An object whose elements may be of any type.
    ///
    /// # Errors
    ///
    /// `TypeError` if it has no buffer. Its own if it is not contiguous: `BufferError`, as a rule.
    #[inline]
    pub(crate) fn of_any(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes)),
            Err(_) => PlainBuffer::get(object).map(Self::Plain),
        }
    }

    /// An object whose elements are single bytes, with or without a sign.
    ///
    /// # Errors
    ///
    /// `TypeError` if it has no buffer, `BufferError` if the buffer is not contiguous, or if its
    /// elements are something else.
    #[inline]
    pub(crate) fn of_bytes(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes)),
            Err(_) => Self::of_typed(object),
        }
    }

    #[inline(never)]
    fn of_typed(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(&object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer is not contiguous"));
        }
        buffer
            .as_typed::<u8>()
            .map(drop)
            .or_else(|error| buffer.as_typed::<i8>().map(drop).map_err(|_| error))?;
        Ok(Self::Typed(buffer))
    }

    /// Its bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Plain(buffer) => buffer.as_slice(),
            // An empty buffer may have no address.
            Self::Typed(buffer) if buffer.len_bytes() == 0 => &[],
            Self::Typed(buffer) => {
                // SAFETY: the buffer is contiguous, and its owner keeps it in place until it is
                // released, which is after the slice is gone. A program may change its bytes from
                // another thread while we hash them, as with Python's own hashlib. Our code reads
                // them and takes no decision by their values: such a program gets a digest of no
                // state that they ever had.
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

/// An argument of which only the truth counts, as for hashlib: 2 is true.
pub(crate) fn truth(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_truthy()
}
