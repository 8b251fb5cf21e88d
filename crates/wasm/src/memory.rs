//! The memory that JavaScript sees.

use crate::spec::{Value, Words};
use crate::state::State;
use crate::tree::Node;
use core::cell::UnsafeCell;

/// Bytes in the window of a hasher: with the source beside it, it stays in the caches nearest to the core.
pub(crate) const WINDOW: usize = 32 * 1024;

/// Bytes of input of one call.
pub(crate) const INPUT: usize = WINDOW;

/// Bytes in the output area.
pub(crate) const OUT: usize = 32 * 1024;

/// Everything that lasts from call to call. All of it may hold any bytes.
#[repr(C, align(64))]
pub(crate) struct Memory {
    pub(crate) window: [u8; WINDOW],
    pub(crate) input: [u8; INPUT],
    pub(crate) out: [u8; OUT],
    pub(crate) key: Words,
    pub(crate) state: State,
    pub(crate) reader: Node,
}

/// The only memory. An instance of the module is never entered twice at once: it has no threads and calls nothing
/// outside.
struct Single<T>(UnsafeCell<T>);

// SAFETY: see above.
unsafe impl<T> Sync for Single<T> {}

static MEMORY: Single<Memory> = Single(UnsafeCell::new(Memory {
    window: [0; WINDOW],
    input: [0; INPUT],
    out: [0; OUT],
    key: [0; 8],
    state: State::NONE,
    reader: Node::NONE,
}));

/// The memory. Each exported function asks for it once, so that there is never a second reference.
#[inline(always)]
pub(crate) fn memory() -> &'static mut Memory {
    // SAFETY: see `Single`; what JavaScript writes between calls are integers, of which any value will do.
    unsafe { &mut *MEMORY.0.get() }
}

/// Chaining values of the chunks of a window, and of their parents: not on the stack, where they would have to be zeros first.
static VALUES: Single<[Value; 64]> = Single(UnsafeCell::new([[0; 32]; 64]));

/// Room for the chaining values of one subtree. Whoever asks has done with it before another subtree begins.
#[inline(always)]
pub(crate) fn values() -> &'static mut [Value; 64] {
    // SAFETY: see `Single` and above; any bytes will do.
    unsafe { &mut *VALUES.0.get() }
}

impl Memory {
    /// Overwrites everything with zeros.
    pub(crate) fn wipe(&mut self) {
        // SAFETY: integers, all of them.
        unsafe { core::ptr::from_mut(self).write_bytes(0, 1) }
        *values() = [[0; 32]; 64];
    }
}
