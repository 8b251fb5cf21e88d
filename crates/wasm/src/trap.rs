//! Faults of the caller: they trap.

use core::arch::wasm32::unreachable;

/// A panic is a fault of the caller: the engine raises its error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unreachable()
}

/// Traps unless the caller kept to the limits.
#[inline(always)]
pub(crate) fn require(holds: bool) {
    if !holds {
        unreachable()
    }
}

/// What was found; traps where nothing was. Indexing would do the same with a message, which nobody here can print, and
/// which is four kilobytes of code.
#[inline(always)]
pub(crate) fn found<T>(it: Option<T>) -> T {
    match it {
        Some(it) => it,
        None => unreachable(),
    }
}
