//! The compiled kernels, those that the CPU supports, and the one in use.

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
use super::aarch64;
use super::portable;
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
use super::powerpc64;
#[cfg(target_arch = "s390x")]
use super::s390x;
use super::table::Tables;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::wasm32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use super::x86_64;
use bulla_simd::{Cell, cpu};
use core::fmt;

/// The environment variable that forces a kernel for the whole process.
pub const FORCE_VARIABLE: &str = "BULLA_BLAKE2_FORCE_KERNEL";

/// Every kernel compiled for this architecture, best first.
static COMPILED: &[&Tables] = &[
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX512_FAST_ROTATE,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX512_SLOW_ROTATE,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX512_ALONE,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::AVX2,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &x86_64::SSE41,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    &aarch64::NEON,
    #[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
    &powerpc64::VSX,
    #[cfg(target_arch = "s390x")]
    &s390x::VECTOR,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    &wasm32::SIMD128,
    &portable::PORTABLE,
];

static CHOSEN: Cell<Tables> = Cell::new();

/// One implementation of all operations, which this machine supports.
#[derive(Clone, Copy)]
pub struct Kernel(pub(crate) &'static Tables);

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
        f.write_str("this machine has no such BLAKE2 kernel; it has ")?;
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

/// The kernel in use. After the first call, this is a single load.
///
/// # Panics
///
/// If [`FORCE_VARIABLE`] names a kernel that this machine does not have. Every other operation
/// panics then too. A program that wants to report this without a panic calls [`forced`] first.
#[inline(always)]
pub fn active() -> Kernel {
    Kernel(CHOSEN.get(choose))
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

fn choose() -> &'static Tables {
    match forced() {
        Ok(Some(kernel)) => kernel.0,
        Ok(None) => available().next().map_or(&portable::PORTABLE, |kernel| kernel.0),
        Err(unknown) => panic!("{FORCE_VARIABLE}: {unknown}"),
    }
}
