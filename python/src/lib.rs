//! The native module of the Python package `bulla_hash`. `bulla_hash/` in this folder has the
//! package, and the documentation of what users call.

// The macro that makes a module checks names of items as if they were ours.
#![allow(non_upper_case_globals, reason = "the names of Python")]

mod bao;
mod bao_files;
mod blake2;
mod blake3;
mod buffer;
mod ed25519;
mod kernels;
mod many;
mod pool;
mod state;

use pyo3::prelude::*;

/// The native half of the package `bulla_hash`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::bao::{DecodeError, bao_decode, bao_decode_slice, bao_encode, bao_outboard, bao_slice};
    #[pymodule_export]
    use super::bao_files::{BaoReader, BaoWriter};
    #[pymodule_export]
    use super::blake2::{Blake2bClass, Blake2bpClass, Blake2sClass, Blake2spClass};
    #[pymodule_export]
    use super::blake3::Blake3;
    #[pymodule_export]
    use super::ed25519::{SigningKey, ed25519_sign_many, ed25519_verify_many};
    #[pymodule_export]
    use super::kernels::kernel;
    #[pymodule_export]
    use super::many::hash_many;
    use super::{PyResult, kernels};

    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Refuses to load if the environment asks for a kernel that this machine does not have.
    /// Otherwise the first hash would fail.
    #[pymodule_init]
    fn init() -> PyResult<()> {
        kernels::check()
    }
}
