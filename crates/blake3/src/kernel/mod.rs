//! Which kernels this machine has, which one is in use, and how one is forced.
//!
//! The kernel is chosen once, at the first hash of the process: the best that the CPU supports, or the one that the environment variable
//! `BULLA_BLAKE3_FORCE_KERNEL` names (with the standard library only). It covers every operation: one-shot and streaming
//! hashing, keyed and derived, many inputs, extended output and parents.

// Arrays lie in memory as words of a little-endian machine do.
#[cfg(all(test, target_endian = "little"))]
mod arrays;
#[cfg(any(
    all(target_arch = "x86_64", target_feature = "sse2"),
    all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")),
    all(test, target_endian = "little")
))]
mod define;
mod portable;
mod report;
mod table;
// Two functions of it are what the WebAssembly module in the npm package is made of.
#[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
#[doc(hidden)]
pub mod wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(dead_code, reason = "features leave kernels out of the list below")]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64_rounds;

pub use report::{Line, Operation, Report, report};
pub use table::{Form, Shape};
pub(crate) use table::{Functions, Group, Lane, MAX_LANES, NO_LANE};

use crate::hazmat::Mode;
use crate::spec::IV;
use crate::{Hash, Hasher, many, oneshot};
use bulla_simd::{Cell, cpu};
use core::fmt;

/// The environment variable that forces a kernel for the whole process.
pub const FORCE_VARIABLE: &str = "BULLA_BLAKE3_FORCE_KERNEL";

/// Every kernel compiled for this architecture, best first.
static COMPILED: &[&Functions] = &[
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx512"))
    ))]
    &x86_64::AVX512_FULL,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx512"))
    ))]
    &x86_64::AVX512_HALF,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_avx2"))
    ))]
    &x86_64::AVX2,
    #[cfg(all(
        target_arch = "x86_64",
        target_feature = "sse2",
        any(feature = "every_kernel", not(feature = "no_sse41"))
    ))]
    &x86_64::SSE41,
    #[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
    &wasm32::SIMD128,
    &portable::PORTABLE,
];

static CHOSEN: Cell<Functions> = Cell::new();

/// One implementation of all operations, which this machine supports.
#[derive(Clone, Copy)]
pub struct Kernel(pub(crate) &'static Functions);

impl Kernel {
    /// Its name, such as `x86_64/avx2`: what [`FORCE_VARIABLE`] takes.
    pub fn name(self) -> &'static str {
        self.0.isa.name()
    }

    /// The kernel of that name.
    ///
    /// # Errors
    ///
    /// [`UnknownKernel`] when there is none of that name, or this machine does not support it.
    pub fn by_name(name: &str) -> Result<Kernel, UnknownKernel> {
        available().find(|kernel| kernel.name() == name).ok_or(UnknownKernel)
    }

    /// [`hash`](crate::hash) by this kernel, whatever the process uses otherwise.
    #[inline]
    pub fn hash(self, input: &[u8]) -> Hash {
        oneshot::digest(self.0, input, &IV, 0)
    }

    /// The digest of `input` in any mode by this kernel, in one go.
    #[inline]
    pub fn hash_in(self, mode: Mode<'_>, input: &[u8]) -> Hash {
        oneshot::digest(self.0, input, &mode.key_words(), mode.flags())
    }

    /// [`hash_many`](crate::hash_many) by this kernel.
    ///
    /// # Panics
    ///
    /// When `out` is not as long as `inputs`.
    pub fn hash_many(self, inputs: &[&[u8]], out: &mut [Hash]) {
        many::hash_many_in(self.0, &IV, 0, inputs, out);
    }

    /// A [`Hasher`] of this kernel, whatever the process uses otherwise.
    pub fn hasher(self, mode: Mode<'_>) -> Hasher {
        Hasher::with(self.0, &mode.key_words(), mode.flags())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Eq for Kernel {}

/// No kernel of the wanted name runs on this machine. Its text lists those that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKernel;

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such BLAKE3 kernel on this machine; it has ")?;
        for (i, kernel) in available().enumerate() {
            write!(f, "{}{kernel}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownKernel {}

/// The kernels that this machine supports, best first. There is always `portable`.
pub fn available() -> impl Iterator<Item = Kernel> {
    runnable().filter(|kernel| kernel.0.tuning.fits())
}

/// As [`available`], and with the kernels that are tuned for CPUs of another make: what tests go through.
#[doc(hidden)]
pub fn runnable() -> impl Iterator<Item = Kernel> {
    COMPILED.iter().filter(|kernel| cpu::supports(kernel.isa)).map(|kernel| Kernel(kernel))
}

/// The kernel in use.
///
/// # Panics
///
/// When [`FORCE_VARIABLE`] names a kernel that this machine does not have; so does every other operation. A program that wants to
/// say it more gently asks [`forced`] first.
pub fn active() -> Kernel {
    Kernel(functions())
}

/// The kernel that [`FORCE_VARIABLE`] names, if it is set and not empty. Always `None` without the standard library.
///
/// # Errors
///
/// [`UnknownKernel`] when it names one that this machine does not have.
pub fn forced() -> Result<Option<Kernel>, UnknownKernel> {
    #[cfg(feature = "std")]
    if let Some(name) = std::env::var_os(FORCE_VARIABLE)
        && !name.is_empty()
    {
        return Kernel::by_name(name.to_str().ok_or(UnknownKernel)?).map(Some);
    }
    Ok(None)
}

/// The functions of the kernel in use: one load once chosen.
#[inline(always)]
pub(crate) fn functions() -> &'static Functions {
    CHOSEN.get(choose)
}

fn choose() -> &'static Functions {
    match forced() {
        Ok(Some(kernel)) => kernel.0,
        Ok(None) => available().next().map_or(&portable::PORTABLE, |kernel| kernel.0),
        Err(unknown) => panic!("{FORCE_VARIABLE}: {unknown}"),
    }
}
