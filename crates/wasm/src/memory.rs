//! The memory that JavaScript sees: its areas and their sizes, and the chaining values of one
//! subtree.

use crate::kernel::{Value, Words};
use crate::state::HasherState;
use crate::tree::Node;
use core::cell::UnsafeCell;

/// The number of bytes in the window of a hasher: together with the source, it stays in the caches
/// nearest to the core.
pub(crate) const WINDOW_LEN: usize = 32 * 1024;

/// The maximum number of bytes of input of one call.
pub(crate) const INPUT_LEN: usize = WINDOW_LEN;

/// The number of bytes in the output area.
pub(crate) const OUT_AREA_LEN: usize = 32 * 1024;

/// Memory that exists only once. An instance of the module is never entered twice at the same time:
/// it has no threads, and calls nothing outside.
pub(crate) struct Single<T>(pub(crate) UnsafeCell<T>);

// SAFETY: see above.
unsafe impl<T> Sync for Single<T> {}

/// Chaining values of the chunks of a window, and of their parents. They are not on the stack,
/// because there they would have to be zeroed first.
static VALUES: Single<[Value; 64]> = Single(UnsafeCell::new([[0; 32]; 64]));

/// Room for the chaining values of one subtree. The caller must be finished with it before another
/// subtree begins.
#[inline(always)]
pub(crate) fn values() -> &'static mut [Value; 64] {
    // SAFETY: see `Single` and above; any bytes will do.
    unsafe { &mut *VALUES.0.get() }
}

/// Everything that is kept between calls. All of it may contain any bytes.
#[repr(C, align(64))]
pub(crate) struct Memory {
    pub(crate) window: [u8; WINDOW_LEN],
    pub(crate) input: [u8; INPUT_LEN],
    pub(crate) out: [u8; OUT_AREA_LEN],
    pub(crate) key: Words,
    pub(crate) state: HasherState,
    pub(crate) reader: Node,
}

/// The only memory.
static MEMORY: Single<Memory> = Single(UnsafeCell::new(Memory {
    window: [0; WINDOW_LEN],
    input: [0; INPUT_LEN],
    out: [0; OUT_AREA_LEN],
    key: [0; 8],
    state: HasherState::NONE,
    reader: Node::NONE,
}));

/// The memory. Each exported function asks for it once, so that there is never a second reference.
#[inline(always)]
pub(crate) fn memory() -> &'static mut Memory {
    // SAFETY: see `Single`; what JavaScript writes between calls are integers, of which any value
    // will do.
    unsafe { &mut *MEMORY.0.get() }
}

impl Memory {
    /// Overwrites everything with zeros.
    pub(crate) fn wipe(&mut self) {
        // SAFETY: integers, all of them.
        unsafe { core::ptr::from_mut(self).write_bytes(0, 1) }
        *values() = [[0; 32]; 64];
    }
}
