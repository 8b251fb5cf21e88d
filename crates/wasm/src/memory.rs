//! The memory that JavaScript sees.

use crate::areas::{INPUT, OUT, Single, WINDOW, values};
use crate::spec::Words;
use crate::state::State;
use crate::tree::Node;
use core::cell::UnsafeCell;

/// Everything that is kept between calls. All of it may contain any bytes.
#[repr(C, align(64))]
pub(crate) struct Memory {
    pub(crate) window: [u8; WINDOW],
    pub(crate) input: [u8; INPUT],
    pub(crate) out: [u8; OUT],
    pub(crate) key: Words,
    pub(crate) state: State,
    pub(crate) reader: Node,
}

/// The only memory.
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

impl Memory {
    /// Overwrites everything with zeros.
    pub(crate) fn wipe(&mut self) {
        // SAFETY: integers, all of them.
        unsafe { core::ptr::from_mut(self).write_bytes(0, 1) }
        *values() = [[0; 32]; 64];
    }
}
