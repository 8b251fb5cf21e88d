//! What a kernel is to the rest of the crate: a table of functions.

use crate::spec::Words;
use bulla_simd::cpu::Isa;

/// The functions of one kernel. All are unsafe for the same reasons: the CPU must support `isa` (every reference to a table comes
/// from [`super::available`]), and pointers must be valid as each function says.
///
/// `flags` are those of the mode; the functions add what they know of the place in the tree.
pub(crate) struct Functions {
    pub(crate) isa: Isa,
    /// Chunks in a group: how many inputs the widest function takes. A power of two from 2 to 16.
    pub(crate) lanes: usize,
    /// The chaining value of one input of at most 1024 bytes: `(input, length, key, counter, flags, last_flags, out)`. The last block gets
    /// `last_flags` too. Reads `length` bytes, writes 32.
    pub(crate) chunk: unsafe fn(*const u8, usize, &Words, u64, u32, u32, *mut u8),
    /// One compression `(value, block, counter, length, flags, out)`: the next chaining value is the first half of the 64 bytes at `out`;
    /// all of them are an output block. Reads 64 bytes.
    pub(crate) block: unsafe fn(&Words, *const u8, u64, usize, u32, *mut u8),
    /// `lanes` whole chunks `(input, key, counter, flags, out)`, the first with that counter.
    pub(crate) group: unsafe fn(*const u8, &Words, u64, u32, *mut Group),
    /// As `group`, for input that is not in the caches.
    pub(crate) far_group: unsafe fn(*const u8, &Words, u64, u32, *mut Group),
    /// The parents `(left, right, key, flags, out)` of the neighbours in two groups; `out` may be one of them.
    pub(crate) merge: unsafe fn(*const Group, *const Group, &Words, u32, *mut Group),
    /// The chaining values of a group, 32 bytes each, in order.
    pub(crate) ungroup: unsafe fn(*const Group, *mut u8),
    /// `(inputs, key, flags, out)`: the chaining values of 1 to `lanes` inputs, 32 bytes each. May write up to `lanes` values.
    pub(crate) lanes_of: unsafe fn(&[Lane], &Words, u32, *mut u8),
    /// `(inputs, length, key, (counter, step), (flags, last_flags), out)`: the chaining values of 1 to `lanes` inputs of one length, at most 1024
    /// bytes; input i has the counter `counter + i * step`, where `step` is 0 or 1. May write up to `lanes` values.
    pub(crate) uniform: Uniform,
    /// `(values, n, key, flags, out)`: the n parents, 1 to `lanes`, of 2 n chaining values, 32 bytes each. May write the next
    /// power of two values, never more than 2 n; `out` may be `values`.
    pub(crate) parents: unsafe fn(*const u8, usize, &Words, u32, *mut u8),
    /// `lanes * groups` output blocks of 64 bytes: `(value, block, counter, (length, flags), groups, out)`, the first with that counter.
    /// Reads 64 bytes.
    pub(crate) output: unsafe fn(&Words, *const u8, u64, (u32, u32), usize, *mut u8),
}

/// See [`Functions::uniform`].
type Uniform = unsafe fn(&[*const u8], usize, &Words, (u64, u64), (u32, u32), *mut u8);

/// The most lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;

/// An input of at most 1024 bytes beside others.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) input: *const u8,
    pub(crate) len: usize,
    pub(crate) counter: u64,
    /// Flags that its last block has beside those of the mode: `CHUNK_END`, perhaps `ROOT`.
    pub(crate) last_flags: u32,
}

/// The chaining values of `lanes` neighbours, in the form that the kernel which wrote them likes best.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Group(pub(crate) [u32; 128]);
