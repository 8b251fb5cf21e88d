//! Bao over Python's file objects, a piece at a time. `bulla_hash/bao.py` wraps these classes as
//! files, and documents them.

use crate::bao::{DecodeError, digest, group};
use crate::buffer::{Input, compute};
use bulla_blake3::bao::decode::{Decoder, Error, SliceDecoder};
use bulla_blake3::bao::encode::{Encoder, SliceExtractor};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// A file object of Python. Its exceptions pass through the readers and writers as errors of
/// [`io`].
struct FileObject(Py<PyAny>);

impl Read for FileObject {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let object = self.0.call_method1(py, "read", (out.len(),))?;
            if object.is_none(py) {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "the file has no bytes yet"));
            }
            let bytes = Input::of_any(object.bind_borrowed(py))?;
            let bytes = bytes.as_slice();
            let place = out.get_mut(..bytes.len()).ok_or_else(|| {
                io::Error::other("the file's method read returned more bytes than it was asked for")
            })?;
            place.copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }
}

impl Write for FileObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let written = self.0.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
            if written.is_none(py) {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "the file takes no bytes now"));
            }
            let written: usize = written.extract(py)?;
            if written > bytes.len() {
                return Err(io::Error::other("the file's method write took more bytes than it was given"));
            }
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| self.0.call_method0(py, "flush").map(drop)).map_err(io::Error::from)
    }
}

impl Seek for FileObject {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        Python::attach(|py| {
            let position = match to {
                SeekFrom::Start(position) => self.0.call_method1(py, "seek", (position, 0)),
                SeekFrom::Current(by) => self.0.call_method1(py, "seek", (by, 1)),
                SeekFrom::End(by) => self.0.call_method1(py, "seek", (by, 2)),
            };
            Ok(position?.extract(py)?)
        })
    }
}

/// The exception for an error: the file's own, one of the encoding, or one of the call.
fn exception(error: io::Error) -> PyErr {
    let inner = error.get_ref();
    if inner.is_some_and(|inner| inner.is::<PyErr>()) {
        return error.into();
    }
    if inner.is_some_and(|inner| inner.is::<Error>()) {
        return DecodeError::new_err(error.to_string());
    }
    match error.kind() {
        io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        io::ErrorKind::WouldBlock => error.into(),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// What is read from.
enum Reader {
    Decoder(Decoder<FileObject>),
    SliceDecoder(SliceDecoder<FileObject>),
    SliceExtractor(SliceExtractor<FileObject, FileObject>),
}

/// A decoder of an encoding, a decoder of a slice, or an extractor of a slice.
#[pyclass(module = "bulla_hash._native")]
pub(crate) struct BaoReader(Reader);

#[pymethods]
impl BaoReader {
    #[staticmethod]
    #[pyo3(signature = (file, hash, outboard, chunk_log, /))]
    fn decoder(
        file: Py<PyAny>,
        hash: Input<'_, '_>,
        outboard: Option<Py<PyAny>>,
        chunk_log: u8,
    ) -> PyResult<Self> {
        let (hash, file) = (digest(&hash)?, FileObject(file));
        let decoder = match outboard {
            Some(outboard) => Decoder::new_outboard(file, FileObject(outboard), &hash),
            None => Decoder::new(file, &hash),
        };
        Ok(Self(Reader::Decoder(decoder.with_group_size(group(chunk_log)?))))
    }

    #[staticmethod]
    #[pyo3(signature = (file, hash, start, length, chunk_log, /))]
    fn slice_decoder(
        file: Py<PyAny>,
        hash: Input<'_, '_>,
        start: u64,
        length: u64,
        chunk_log: u8,
    ) -> PyResult<Self> {
        let decoder = SliceDecoder::new(FileObject(file), &digest(&hash)?, start, length);
        Ok(Self(Reader::SliceDecoder(decoder.with_group_size(group(chunk_log)?))))
    }

    #[staticmethod]
    #[pyo3(signature = (file, start, length, outboard, chunk_log, /))]
    fn slice_extractor(
        file: Py<PyAny>,
        start: u64,
        length: u64,
        outboard: Option<Py<PyAny>>,
        chunk_log: u8,
    ) -> PyResult<Self> {
        let file = FileObject(file);
        let extractor = match outboard {
            Some(outboard) => SliceExtractor::new_outboard(file, FileObject(outboard), start, length),
            None => SliceExtractor::new(file, start, length),
        };
        Ok(Self(Reader::SliceExtractor(extractor.with_group_size(group(chunk_log)?))))
    }

    /// Reads at most `size` bytes, and fewer only at the end.
    #[pyo3(signature = (size, /))]
    fn read<'py>(&mut self, py: Python<'py>, size: u64) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        let expected = usize::try_from(size).unwrap_or(usize::MAX);
        let read = compute(py, expected, || match &mut self.0 {
            Reader::Decoder(decoder) => decoder.take(size).read_to_end(&mut bytes),
            Reader::SliceDecoder(decoder) => decoder.take(size).read_to_end(&mut bytes),
            Reader::SliceExtractor(extractor) => extractor.take(size).read_to_end(&mut bytes),
        });
        read.map(|_| PyBytes::new(py, &bytes)).map_err(exception)
    }

    /// Moves a decoder of an encoding, and returns the new position.
    #[pyo3(signature = (offset, whence, /))]
    fn seek(&mut self, offset: i64, whence: u8) -> PyResult<u64> {
        let Reader::Decoder(decoder) = &mut self.0 else {
            return Err(PyValueError::new_err("a slice cannot be sought in"));
        };
        let to = match whence {
            0 => SeekFrom::Start(
                u64::try_from(offset)
                    .map_err(|_| PyValueError::new_err(format!("{offset} is a position before the start")))?,
            ),
            1 => SeekFrom::Current(offset),
            2 => SeekFrom::End(offset),
            _ => return Err(PyValueError::new_err(format!("whence is {whence}: 0, 1 or 2"))),
        };
        decoder.seek(to).map_err(exception)
    }
}

/// An encoder.
#[pyclass(module = "bulla_hash._native")]
pub(crate) struct BaoWriter(Encoder<FileObject>);

#[pymethods]
impl BaoWriter {
    #[staticmethod]
    #[pyo3(signature = (file, chunk_log, /))]
    fn combined(file: Py<PyAny>, chunk_log: u8) -> PyResult<Self> {
        Ok(Self(Encoder::new(FileObject(file)).with_group_size(group(chunk_log)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (file, chunk_log, /))]
    fn outboard(file: Py<PyAny>, chunk_log: u8) -> PyResult<Self> {
        Ok(Self(Encoder::new_outboard(FileObject(file)).with_group_size(group(chunk_log)?)))
    }

    #[pyo3(signature = (data, /))]
    fn write(&mut self, py: Python<'_>, data: Input<'_, '_>) -> PyResult<usize> {
        let data = data.as_slice();
        compute(py, data.len(), || self.0.write_all(data)).map_err(exception)?;
        Ok(data.len())
    }

    fn finalize<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let hash = py.detach(|| self.0.finalize()).map_err(exception)?;
        Ok(PyBytes::new(py, hash.as_bytes()))
    }
}
