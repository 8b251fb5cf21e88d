//! The memory that JavaScript sees.

use bulla_blake3::{Hasher, KEY_LEN, OutputReader};
use core::cell::UnsafeCell;

/// Bytes in the window of the live state.
pub(crate) const WINDOW: usize = 64 * 1024;

/// Bytes of input of one call.
pub(crate) const INPUT: usize = 64 * 1024;

/// Bytes in the output area.
pub(crate) const OUT: usize = 32 * 1024;

/// Everything that lasts from call to call.
#[repr(C, align(64))]
pub(crate) struct Memory {
    pub(crate) window: [u8; WINDOW],
    pub(crate) input: [u8; INPUT],
    pub(crate) out: [u8; OUT],
    pub(crate) key: [u8; KEY_LEN],
    /// The live state, once begun.
    pub(crate) hasher: Option<Hasher>,
    /// The reader of some output, once made.
    pub(crate) reader: Option<OutputReader>,
}

/// The only memory. An instance of the module is never entered twice at once: it has no threads and calls nothing
/// outside.
struct Single(UnsafeCell<Memory>);

// SAFETY: see above.
unsafe impl Sync for Single {}

static MEMORY: Single = Single(UnsafeCell::new(Memory {
    window: [0; WINDOW],
    input: [0; INPUT],
    out: [0; OUT],
    key: [0; KEY_LEN],
    hasher: None,
    reader: None,
}));

/// The memory. Each exported function asks for it once, so that there is never a second reference.
#[inline(always)]
pub(crate) fn memory() -> &'static mut Memory {
    // SAFETY: see `Single`; what JavaScript writes between calls are bytes of arrays, or a whole state or reader that was here before.
    unsafe { &mut *MEMORY.0.get() }
}

impl Memory {
    /// Overwrites everything.
    pub(crate) fn wipe(&mut self) {
        self.window.fill(0);
        self.input.fill(0);
        self.out.fill(0);
        self.key.fill(0);
        // SAFETY: nothing looks at the zeros before both places get a value.
        unsafe {
            (&raw mut self.hasher).cast::<u8>().write_bytes(0, size_of::<Option<Hasher>>());
            (&raw mut self.reader).cast::<u8>().write_bytes(0, size_of::<Option<OutputReader>>());
            (&raw mut self.hasher).write(None);
            (&raw mut self.reader).write(None);
        }
    }
}
