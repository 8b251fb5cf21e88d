//! Areas of memory: their sizes, and room for chaining values.

use crate::spec::Value;
use core::cell::UnsafeCell;

/// The number of bytes in the window of a hasher: together with the source, it stays in the caches nearest to the core.
pub(crate) const WINDOW: usize = 32 * 1024;

/// The maximum number of bytes of input of one call.
pub(crate) const INPUT: usize = WINDOW;

/// The number of bytes in the output area.
pub(crate) const OUT: usize = 32 * 1024;

/// Memory that exists only once. An instance of the module is never entered twice at the same time: it has no threads, and calls
/// nothing outside.
pub(crate) struct Single<T>(pub(crate) UnsafeCell<T>);

// SAFETY: see above.
unsafe impl<T> Sync for Single<T> {}

/// Chaining values of the chunks of a window, and of their parents. They are not on the stack, because there they would have
/// to be zeroed first.
static VALUES: Single<[Value; 64]> = Single(UnsafeCell::new([[0; 32]; 64]));

/// Room for the chaining values of one subtree. The caller must be finished with it before another subtree begins.
#[inline(always)]
pub(crate) fn values() -> &'static mut [Value; 64] {
    // SAFETY: see `Single` and above; any bytes will do.
    unsafe { &mut *VALUES.0.get() }
}
