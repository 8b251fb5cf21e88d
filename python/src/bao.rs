//! The functions behind the Python module `bulla_hash.bao`, where they are documented.

use crate::buffer::{Input, compute};
use bulla_blake3::bao::GroupSize;
use bulla_blake3::bao::decode::{Decoder, SliceDecoder};
use bulla_blake3::bao::encode::{SliceExtractor, encode_with_group_size, outboard_with_group_size};
use bulla_blake3::{Hash, OUT_LEN};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Cursor, Read};

create_exception!(
    bulla_hash.bao,
    DecodeError,
    PyValueError,
    "An encoding is truncated, corrupt, or not of this digest."
);

pub(crate) fn group(chunk_log: u8) -> PyResult<GroupSize> {
    GroupSize::from_chunk_log(chunk_log)
        .ok_or_else(|| PyValueError::new_err(format!("chunk_log is {chunk_log}: at most 8")))
}

pub(crate) fn digest(bytes: &Input<'_, '_>) -> PyResult<Hash> {
    let bytes = bytes.as_slice();
    Hash::from_slice(bytes).map_err(|_| {
        PyValueError::new_err(format!("a digest has {OUT_LEN} bytes, and this one has {}", bytes.len()))
    })
}

/// All that `reader` has. `expected` says how much that may be.
fn all<'py>(py: Python<'py>, mut reader: impl Read + Send, expected: usize) -> PyResult<Bound<'py, PyBytes>> {
    let read = || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map(|_| bytes)
    };
    let read: io::Result<Vec<u8>> = compute(py, expected, read);
    read.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| DecodeError::new_err(error.to_string()))
}

fn pair<'py>(
    py: Python<'py>,
    (encoded, hash): (Vec<u8>, Hash),
) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    (PyBytes::new(py, &encoded), PyBytes::new(py, hash.as_bytes()))
}

/// An encoding, and the digest.
type Encoded<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyfunction]
#[pyo3(signature = (data, chunk_log, /))]
pub(crate) fn bao_encode<'py>(py: Python<'py>, data: Input<'_, '_>, chunk_log: u8) -> PyResult<Encoded<'py>> {
    let (data, group) = (data.as_slice(), group(chunk_log)?);
    Ok(pair(py, compute(py, data.len(), || encode_with_group_size(data, group))))
}

#[pyfunction]
#[pyo3(signature = (data, chunk_log, /))]
pub(crate) fn bao_outboard<'py>(
    py: Python<'py>,
    data: Input<'_, '_>,
    chunk_log: u8,
) -> PyResult<Encoded<'py>> {
    let (data, group) = (data.as_slice(), group(chunk_log)?);
    Ok(pair(py, compute(py, data.len(), || outboard_with_group_size(data, group))))
}

#[pyfunction]
#[pyo3(signature = (encoded, hash, outboard, chunk_log, /))]
pub(crate) fn bao_decode<'py>(
    py: Python<'py>,
    encoded: Input<'_, '_>,
    hash: Input<'_, '_>,
    outboard: Option<Input<'_, '_>>,
    chunk_log: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    let (hash, group, encoded) = (digest(&hash)?, group(chunk_log)?, encoded.as_slice());
    match outboard.as_ref().map(Input::as_slice) {
        Some(outboard) => {
            let decoder = Decoder::new_outboard(encoded, outboard, &hash).with_group_size(group);
            all(py, decoder, encoded.len())
        }
        None => all(py, Decoder::new(encoded, &hash).with_group_size(group), encoded.len()),
    }
}

#[pyfunction]
#[pyo3(signature = (encoded, start, length, outboard, chunk_log, /))]
pub(crate) fn bao_slice<'py>(
    py: Python<'py>,
    encoded: Input<'_, '_>,
    start: u64,
    length: u64,
    outboard: Option<Input<'_, '_>>,
    chunk_log: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    let (group, encoded) = (group(chunk_log)?, Cursor::new(encoded.as_slice()));
    let expected = usize::try_from(length).unwrap_or(usize::MAX);
    match outboard.as_ref().map(Input::as_slice) {
        Some(outboard) => {
            let outboard = Cursor::new(outboard);
            let slice = SliceExtractor::new_outboard(encoded, outboard, start, length).with_group_size(group);
            all(py, slice, expected)
        }
        None => all(py, SliceExtractor::new(encoded, start, length).with_group_size(group), expected),
    }
}

#[pyfunction]
#[pyo3(signature = (slice, hash, start, length, chunk_log, /))]
pub(crate) fn bao_decode_slice<'py>(
    py: Python<'py>,
    slice: Input<'_, '_>,
    hash: Input<'_, '_>,
    start: u64,
    length: u64,
    chunk_log: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    let (hash, group, slice) = (digest(&hash)?, group(chunk_log)?, slice.as_slice());
    all(py, SliceDecoder::new(slice, &hash, start, length).with_group_size(group), slice.len())
}
