//! Whether a library has a kernel. If an environment variable names one that this machine does not
//! have, every function of the Rust library panics. In C, that is an error.

use crate::status::{BULLA_ERROR_KERNEL, Failure};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the environment has been read, and names no kernel or one that is there.
pub(crate) struct Ready(AtomicBool);

impl Ready {
    /// Nobody has looked yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Checks once that there is a kernel. `choose` reads `variable`; when it succeeds, the process
    /// has a kernel, whatever happens to its environment.
    #[inline(always)]
    pub(crate) fn check<E: Display>(
        &self,
        variable: &str,
        choose: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { self.look(variable, choose) }
    }

    #[cold]
    fn look<E: Display>(
        &self,
        variable: &str,
        choose: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), Failure> {
        choose().map_err(|unknown| Failure::new(BULLA_ERROR_KERNEL, format!("{variable}: {unknown}")))?;
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}
