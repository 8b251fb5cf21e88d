//! The functions behind the Python module `bulla_hash.ed25519`, where they are documented.

use crate::buffer::Input;
use bulla_ed25519::{InvalidReason, Verdict, VerifyItem, verify_many};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The verdict on a key or a signature of another length than those of Ed25519.
const WRONG_LENGTH: u8 = 6;

/// The number of a verdict, by which `bulla_hash/ed25519.py` names it.
const fn number(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Valid => 0,
        Verdict::Invalid(InvalidReason::ScalarNotCanonical) => 1,
        Verdict::Invalid(InvalidReason::KeyNotAPoint) => 2,
        Verdict::Invalid(InvalidReason::KeyOfSmallOrder) => 3,
        Verdict::Invalid(InvalidReason::ROfSmallOrder) => 4,
        Verdict::Invalid(InvalidReason::Mismatch) => 5,
    }
}

/// A public key, a message and a signature.
type Three<T> = (T, T, T);

/// The numbers of the verdicts, one byte each.
#[pyfunction]
#[pyo3(signature = (items, /))]
pub(crate) fn ed25519_verify_many<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    // Another thread may change the caller's list meanwhile: these are references of our own.
    let objects: Vec<Three<Bound<'py, PyAny>>> =
        items.try_iter()?.map(|item| item?.extract()).collect::<PyResult<_>>()?;
    let inputs = objects
        .iter()
        .map(|(key, message, signature)| {
            let signature = Input::of_any(signature.as_borrowed())?;
            Ok((Input::of_any(key.as_borrowed())?, Input::of_any(message.as_borrowed())?, signature))
        })
        .collect::<PyResult<Vec<Three<Input<'_, '_>>>>>();
    let inputs = inputs?;
    let slices: Vec<_> = inputs
        .iter()
        .map(|(key, message, signature)| (key.as_slice(), message.as_slice(), signature.as_slice()))
        .collect();
    let verdicts = py.detach(|| verdicts(&slices));
    Ok(PyBytes::new(py, &verdicts))
}

fn verdicts(slices: &[Three<&[u8]>]) -> Vec<u8> {
    let mut numbers = vec![WRONG_LENGTH; slices.len()];
    let (mut places, mut items) = (Vec::new(), Vec::new());
    for (place, (key, message, signature)) in slices.iter().enumerate() {
        if let (Ok(public_key), Ok(signature)) = ((*key).try_into(), (*signature).try_into()) {
            places.push(place);
            items.push(VerifyItem { public_key, message, signature });
        }
    }
    for (place, verdict) in places.into_iter().zip(verify_many(&items)) {
        numbers[place] = number(verdict);
    }
    numbers
}
