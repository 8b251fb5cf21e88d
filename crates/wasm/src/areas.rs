//! Areas of memory: how large they are, and room for chaining values.

use crate::spec::Value;
use core::cell::UnsafeCell;

/// Bytes in the window of a hasher: with the source beside it, it stays in the caches nearest to the core.
pub(crate) const WINDOW: usize = 32 * 1024;

/// Bytes of input of one call.
pub(crate) const INPUT: usize = WINDOW;

/// Bytes in the output area.
pub(crate) const OUT: usize = 32 * 1024;

/// Memory of which there is only one. An instance of the module is never entered twice at once: it has no threads and calls nothing
/// outside.
pub(crate) struct Single<T>(pub(crate) UnsafeCell<T>);

// SAFETY: see above.
unsafe impl<T> Sync for Single<T> {}

/// Chaining values of the chunks of a window, and of their parents: not on the stack, where they would have to be zeros first.
static VALUES: Single<[Value; 64]> = Single(UnsafeCell::new([[0; 32]; 64]));

/// Room for the chaining values of one subtree. Whoever asks has done with it before another subtree begins.
#[inline(always)]
pub(crate) fn values() -> &'static mut [Value; 64] {
    // SAFETY: see `Single` and above; any bytes will do.
    unsafe { &mut *VALUES.0.get() }
}
