//! The first piece of a hasher's input, which needs no lock.

use crate::buffer::Input;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest first piece that is kept by reference: a longer one is hashed at once, and its memory is free.
pub(crate) const WHOLE: usize = 16 * 1024;

/// All of the input, as long as it is one object that never changes, and nobody has used the state behind the lock. To take a lock and to give
/// it back costs 16 nanoseconds, as much as a third of a short hash.
pub(crate) struct First {
    whole: Option<Py<PyBytes>>,
    is_used: AtomicBool,
}

impl First {
    #[inline]
    pub(crate) fn new(whole: Option<Py<PyBytes>>) -> Self {
        Self { whole, is_used: AtomicBool::new(false) }
    }

    /// The input, if it is all here.
    #[inline]
    pub(crate) fn get<'a>(&'a self, py: Python<'a>) -> Option<&'a [u8]> {
        if self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.whole.as_ref().map(|whole| whole.as_bytes(py))
    }

    /// The state behind the lock is about to be used, so it alone has the input from now on. A thread that reads the first piece at the same
    /// moment gets the digest from before.
    #[inline]
    pub(crate) fn use_state(&self) {
        self.is_used.store(true, Ordering::Release);
    }
}

/// A reference to an input that can be kept.
#[inline]
pub(crate) fn whole(input: Option<&Input<'_, '_>>) -> Option<Py<PyBytes>> {
    match input? {
        Input::Bytes(bytes) if bytes.as_bytes().len() <= WHOLE => Some(Bound::clone(bytes).unbind()),
        _ => None,
    }
}
