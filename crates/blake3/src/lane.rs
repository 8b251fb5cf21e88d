//! Inputs and outputs of kernels with several lanes.

/// The most lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;

/// One of several inputs side by side, of at most 1024 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) counter: u64,
    /// The flags that its last block has in addition to the mode's: `CHUNK_END`, perhaps `ROOT`.
    pub(crate) last_flags: u32,
}

/// A filler for arrays of lanes.
pub(crate) const NO_LANE: Lane<'static> = Lane { input: &[], counter: 0, last_flags: 0 };

/// The chaining values of `lanes` neighbours, in a layout of the kernel that wrote them.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Group(pub(crate) [u32; 128]);
