//! What kernels of several lanes take and give.

/// The most lanes of any kernel.
pub(crate) const MAX_LANES: usize = 16;

/// An input of at most 1024 bytes beside others.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) counter: u64,
    /// Flags that its last block has beside those of the mode: `CHUNK_END`, perhaps `ROOT`.
    pub(crate) last_flags: u32,
}

/// What fills up an array of lanes.
pub(crate) const NO_LANE: Lane<'static> = Lane { input: &[], counter: 0, last_flags: 0 };

/// The chaining values of `lanes` neighbours, in the form that the kernel which wrote them likes best.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Group(pub(crate) [u32; 128]);
