//! The kernels of this machine, by name, and whether there is one: if an environment variable names
//! a kernel that this machine does not have, every function of a Rust library panics. In C, that is
//! an error.

use crate::args;
use crate::pool::{self, PoolStart};
use crate::status::{
    BULLA_ERROR_INTERNAL, BULLA_ERROR_KERNEL, BULLA_ERROR_STATE, Failure, bulla_status, guard,
};
use bulla_blake3::kernel::{self, Kernel};
use std::ffi::{CStr, CString, c_char};
use std::fmt::Display;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the environment has been read, and names no kernel or one that is there.
pub(crate) struct KernelCheck(AtomicBool);

impl KernelCheck {
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
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { self.check_first(variable, choose) }
    }

    #[cold]
    fn check_first<E: Display>(
        &self,
        variable: &str,
        choose: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), Failure> {
        choose().map_err(|unknown| Failure::new(BULLA_ERROR_KERNEL, format!("{variable}: {unknown}")))?;
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// Makes the function `ready` for the kernels of a Rust library.
macro_rules! kernel_check {
    ($library:ident) => {
        /// Checks that there is a kernel: without one, every function of the Rust library panics.
        #[inline(always)]
        pub(crate) fn ready() -> Result<(), $crate::status::Failure> {
            static CHECK: $crate::kernels::KernelCheck = $crate::kernels::KernelCheck::new();
            CHECK.check($library::kernel::FORCE_VARIABLE, || {
                $library::kernel::forced()?;
                let _ = $library::kernel::active();
                Ok::<_, $library::kernel::UnknownKernel>(())
            })
        }
    };
}
pub(crate) use kernel_check;

/// The name of the BLAKE3 kernel in use, for example "x86_64/avx2". It is never freed.
///
/// The process chooses it once: the best that this CPU has, or the one that the environment
/// variable `BULLA_BLAKE3_FORCE_KERNEL` names. Fails with BULLA_ERROR_KERNEL if the variable names
/// one that this machine does not have; all functions of BLAKE3 then do. Thread-safe.
///
/// # Safety
///
/// `name` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_kernel(name: *mut *const c_char) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised room for a pointer.
        *unsafe { args::object_mut(name) }? = c_name(kernel::active()).as_ptr();
        Ok(())
    })
}

/// The names of the BLAKE3 kernels of this machine, best first: at most `n` of them are written to
/// `names`, which may be NULL if `n` is 0. Returns how many there are. The names are never freed.
/// Thread-safe.
///
/// # Safety
///
/// `names` has room for `n` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_kernels(names: *mut *const c_char, n: usize) -> usize {
    let all = all_names();
    if !names.is_null() {
        for (i, (_, name)) in all.iter().enumerate().take(n) {
            // SAFETY: the caller promised room for n pointers, and i is below n.
            unsafe { names.add(i).write_unaligned(name.as_ptr()) };
        }
    }
    all.len()
}

/// The kernel of a name, or the process's kernel if the name is NULL.
///
/// # Safety
///
/// If it is not NULL, it must end with a zero byte.
pub(crate) unsafe fn named(name: *const c_char) -> Result<Kernel, Failure> {
    // SAFETY: the caller promised it.
    match unsafe { args::string(name) } {
        Ok(name) => Kernel::by_name(&name.to_string_lossy())
            .map_err(|unknown| Failure::new(BULLA_ERROR_KERNEL, unknown.to_string())),
        Err(_) => {
            ready()?;
            Ok(kernel::active())
        }
    }
}

kernel_check!(bulla_blake3);

fn all_names() -> &'static [(Kernel, CString)] {
    static NAMES: OnceLock<Vec<(Kernel, CString)>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let name = |kernel: Kernel| (kernel, CString::new(kernel.name()).unwrap_or_default());
        kernel::available().map(name).collect()
    })
}

fn c_name(kernel: Kernel) -> &'static CStr {
    all_names().iter().find(|(other, _)| *other == kernel).map_or(c"", |(_, name)| name)
}

/// Sets how many threads the pool has that the functions with threads use: 0 means as many as the
/// machine has processors.
///
/// Without this call, the pool starts at its first use, with that many threads or as many as
/// `RAYON_NUM_THREADS` says. If no threads can be started then, the caller's thread does the work.
/// Fails with BULLA_ERROR_STATE if the pool has already started, and with BULLA_ERROR_INTERNAL if
/// threads cannot be started. Thread-safe.
///
/// A process that `fork` makes has no pool at first. Its own one has as many threads as that of its
/// parent, unless it calls this function before.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_start_threads(threads: usize) -> bulla_status {
    guard(|| match pool::start(threads) {
        Ok(PoolStart::Now) => Ok(()),
        Ok(PoolStart::Before) => {
            Err(Failure::new(BULLA_ERROR_STATE, "the threads have already been started"))
        }
        Err(error) => Err(Failure::new(BULLA_ERROR_INTERNAL, error.to_string())),
    })
}
