//! What the tests of the crates with kernels share: input, memory that ends where an input ends,
//! the kernels that a test requires, and the registers that a call must keep.

#[cfg(target_os = "linux")]
mod end_of_memory;
#[cfg(all(windows, target_arch = "x86_64"))]
pub mod registers;

#[cfg(target_os = "linux")]
pub use end_of_memory::{PAGE_LEN, PageBeforeGap};
use std::env;
use std::io::Write as _;

/// Names the kernels that the tests require, separated by commas, or `all`. `cargo xtask test` sets
/// it. For every other kernel that cannot run, a test says that it was not tested.
const REQUIRED_KERNELS: &str = "BULLA_TEST_REQUIRE_KERNELS";

/// Names the kernel that this processor must choose, where the caller knows: on emulated
/// processors.
const BEST_KERNEL: &str = "BULLA_TEST_BEST_KERNEL";

/// Set where an emulator runs the tests.
const EMULATED: &str = "BULLA_TEST_EMULATED";

/// `len` bytes without a period that a kernel could hide behind.
pub fn input(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Says that a kernel was not tested, because this processor cannot run it. The line goes past the
/// runner of the tests, which shows nothing of a test that passes.
///
/// # Panics
///
/// If the tests require the kernel.
pub fn report_untested(kernel: &str) {
    let missing = format!("not tested: the kernel {kernel}, which this processor cannot run");
    let is_required = env::var(REQUIRED_KERNELS)
        .is_ok_and(|names| names == "all" || names.split(',').any(|name| name == kernel));
    assert!(!is_required, "{missing}; run the tests on one that can");
    writeln!(std::io::stdout(), "{missing}").expect("the standard output takes a line");
}

/// The kernel that this processor must choose, if the caller of the tests knows it.
pub fn expected_best_kernel() -> Option<String> {
    env::var(BEST_KERNEL).ok()
}

/// `all`, or `few` in an emulator of x86-64: how much of something a test does. The emulator takes
/// a hundred times as long, and real processors run the same kernels through the whole test.
/// Kernels of other architectures are tested whole in their emulators.
pub fn sample<T>(all: T, few: T) -> T {
    if env::var_os(EMULATED).is_some() { few } else { all }
}
