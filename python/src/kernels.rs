//! The kernels in use.

use bulla_blake2::kernel as blake2;
use bulla_blake3::kernel as blake3;
use bulla_ed25519::kernel as ed25519;
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;

/// The name of the kernel that computes `algorithm`: "blake3", "blake2" or "ed25519". For example
/// `x86_64/avx512`.
///
/// A kernel is an implementation for one instruction set. The environment variable
/// `BULLA_BLAKE3_FORCE_KERNEL`, and similar ones for the other two, forces another.
#[pyfunction]
#[pyo3(signature = (algorithm = "blake3", /), text_signature = "(algorithm='blake3', /)")]
pub(crate) fn kernel(algorithm: &str) -> PyResult<&'static str> {
    match algorithm {
        "blake3" => Ok(blake3::active().name()),
        "blake2" => Ok(blake2::active().name()),
        "ed25519" => Ok(ed25519::active().name()),
        _ => Err(PyValueError::new_err(format!(
            "there is no kernel of {algorithm:?}: it is blake3, blake2 or ed25519"
        ))),
    }
}

/// # Errors
///
/// `ImportError` if the environment forces a kernel that this machine does not have.
pub(crate) fn check() -> PyResult<()> {
    let wrong = |variable: &str, error: String| PyImportError::new_err(format!("{variable}: {error}"));
    blake3::forced().map_err(|error| wrong(blake3::FORCE_VARIABLE, error.to_string()))?;
    blake2::forced().map_err(|error| wrong(blake2::FORCE_VARIABLE, error.to_string()))?;
    ed25519::forced().map_err(|error| wrong(ed25519::FORCE_VARIABLE, error.to_string()))?;
    Ok(())
}
