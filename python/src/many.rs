//! Many inputs in one call.

use crate::buffer::{ByteInput, Input, compute};
use crate::state::key;
use bulla_blake3::{Hash, OUT_LEN};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The BLAKE3 digests of independent inputs, side by side. The inputs may have any lengths. For
/// short ones, this is many times faster than one after the other.
///
/// `key`, 32 bytes, makes message authentication codes.
#[pyfunction]
#[pyo3(signature = (inputs, /, *, key = None), text_signature = "(inputs, /, *, key=None)")]
pub(crate) fn hash_many<'py>(
    py: Python<'py>,
    inputs: &Bound<'py, PyAny>,
    key: Option<ByteInput<'_, '_>>,
) -> PyResult<Bound<'py, PyList>> {
    let key = key.map(|key| self::key(key.0.as_slice())).transpose()?;
    // Another thread may change the caller's list while we hash: these are references of our own.
    let objects = objects(inputs)?;
    let inputs =
        objects.iter().map(|object| Input::of_bytes(object.as_borrowed())).collect::<PyResult<Vec<_>>>()?;
    let slices: Vec<_> = inputs.iter().map(Input::as_slice).collect();
    let mut digests = vec![Hash::from_bytes([0; OUT_LEN]); slices.len()];
    let bytes = slices.iter().fold(0usize, |sum, slice| sum.saturating_add(slice.len()));
    compute(py, bytes, || match &key {
        Some(key) => bulla_blake3::keyed_hash_many(key, &slices, &mut digests),
        None => bulla_blake3::hash_many(&slices, &mut digests),
    });
    PyList::new(py, digests.iter().map(|digest| PyBytes::new(py, digest.as_bytes())))
}

/// What the caller's iterable has.
fn objects<'py>(inputs: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match inputs.cast::<PyList>() {
        Ok(list) => Ok(list.iter().collect()),
        Err(_) => inputs.try_iter()?.collect(),
    }
}
