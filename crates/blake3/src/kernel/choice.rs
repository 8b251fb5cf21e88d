//! The compiled kernels, those that the CPU supports, and the one in use.

#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    target_endian = "little",
    any(feature = "every_kernel", not(feature = "no_neon"))
))]
use super::aarch64;
use super::portable;
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
use super::powerpc64;
#[cfg(target_arch = "s390x")]
use super::s390x;
use super::table::Functions;
#[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
use super::wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(unused_imports, reason = "features leave kernels out of the list below")]
use super::{x86_64, x86_64_alone};
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
        any(feature = "every_kernel", not(feature = "no_avx512"))
    ))]
    &x86_64_alone::AVX512_ALONE,
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
    #[cfg(all(
        target_arch = "aarch64",
        target_feature = "neon",
        target_endian = "little",
        any(feature = "every_kernel", not(feature = "no_neon"))
    ))]
    &aarch64::NEON,
    #[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
    &powerpc64::VSX,
    #[cfg(target_arch = "s390x")]
    &s390x::VECTOR,
    #[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
    &wasm32::SIMD128,
    &portable::PORTABLE,
];

static CHOSEN: Cell<Functions> = Cell::new();

/// One implementation of all operations, which this machine supports.
#[derive(Clone, Copy)]
pub struct Kernel(pub(crate) &'static Functions);

impl Kernel {
    /// Its name, for example `x86_64/avx2`: a value of [`FORCE_VARIABLE`].
    pub fn name(self) -> &'static str {
        self.0.isa.name()
    }

    /// The kernel of that name.
    ///
    /// # Errors
    ///
    /// [`UnknownKernel`] if there is no kernel of that name, or this machine does not support it.
    pub fn by_name(name: &str) -> Result<Kernel, UnknownKernel> {
        available().find(|kernel| kernel.name() == name).ok_or(UnknownKernel)
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

/// The error if no kernel of the wanted name runs on this machine. Its text lists the kernels that
/// do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKernel;

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this machine has no such BLAKE3 kernel; it has ")?;
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

/// Like [`available`], with the kernels that are tuned for other kinds of CPU: tests use all of
/// them.
#[doc(hidden)]
pub fn runnable() -> impl Iterator<Item = Kernel> {
    COMPILED.iter().filter(|kernel| cpu::supports(kernel.isa)).map(|kernel| Kernel(kernel))
}

/// The kernel in use.
///
/// # Panics
///
/// If [`FORCE_VARIABLE`] names a kernel that this machine does not have. Every other operation
/// panics then too. A program that wants to report this without a panic calls [`forced`] first.
pub fn active() -> Kernel {
    Kernel(functions())
}

/// The kernel that [`FORCE_VARIABLE`] names, if it is set and not empty. Always `None` without the
/// standard library.
///
/// # Errors
///
/// [`UnknownKernel`] if it names a kernel that this machine does not have.
pub fn forced() -> Result<Option<Kernel>, UnknownKernel> {
    #[cfg(feature = "std")]
    if let Some(name) = std::env::var_os(FORCE_VARIABLE)
        && !name.is_empty()
    {
        return Kernel::by_name(name.to_str().ok_or(UnknownKernel)?).map(Some);
    }
    Ok(None)
}

/// The functions of the kernel in use. After the first call, this is a single load.
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
