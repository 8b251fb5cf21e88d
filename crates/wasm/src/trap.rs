//! Traps for errors of the caller.

use core::arch::wasm32::unreachable;

/// A panic is an error of the caller: the engine raises its own error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unreachable()
}

/// Traps unless the caller respected the limits.
#[inline(always)]
pub(crate) fn require(holds: bool) {
    if !holds {
        unreachable()
    }
}

/// The value that was found; traps if there is none. Indexing would do the same with a message, which cannot be printed
/// here, and needs four kilobytes of code.
#[inline(always)]
pub(crate) fn found<T>(it: Option<T>) -> T {
    match it {
        Some(it) => it,
        None => unreachable(),
    }
}
