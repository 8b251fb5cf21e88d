//! A level of the tree over at most two groups, and the step to the next level.

use crate::keyed_kernel::{KeyedKernel, Value, join};
use crate::plan::{ChunkPlan, EMPTY_LANE, Group, Lane, MAX_LANES, Prefetch};
use crate::spec::{BLOCK_LEN, CHUNK_END, CHUNK_LEN, OUT_LEN};
use core::mem::MaybeUninit;

/// Room for the chaining values of two groups, level by level.
#[repr(C, align(64))]
pub(crate) struct LevelValues {
    room: [MaybeUninit<Value>; 32],
    /// The number of values.
    pub(super) n: usize,
}

impl LevelValues {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        LevelValues { room: [const { MaybeUninit::uninit() }; 32], n: 0 }
    }

    #[inline(always)]
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.room.as_mut_ptr().cast()
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Value {
        assert!(i < self.n);
        // SAFETY: the first n values are initialized.
        unsafe { self.room[i].assume_init() }
    }

    /// Takes the last value away.
    pub(super) fn pop(&mut self) -> Value {
        let last = self.get(self.n - 1);
        self.n -= 1;
        last
    }

    #[cfg(feature = "bao")]
    pub(crate) fn as_slice(&self) -> &[Value] {
        // SAFETY: the first n values are initialized.
        unsafe { core::slice::from_raw_parts(self.room.as_ptr().cast(), self.n) }
    }

    /// Computes the parents of the pairs in `children`, at most `lanes` of them. An odd last child
    /// is left out.
    #[cfg(feature = "bao")]
    pub(crate) fn hash_pairs(&mut self, kernel: &KeyedKernel, children: &[Value]) {
        let KeyedKernel { functions, key, flags } = kernel;
        self.n = children.len() / 2;
        assert!(self.n <= functions.lanes);
        if self.n > 0 {
            // SAFETY: n pairs of values are readable; there is room for the most lanes of any
            // kernel.
            unsafe { (functions.parents)(children.as_ptr().cast(), self.n, key, *flags, self.as_mut_ptr()) };
        }
    }

    /// Computes the chaining values of the chunks of `input`: one to `lanes` chunks, the last one
    /// may be short. `counter` is the first chunk's counter. Only a whole group may be far input.
    #[inline]
    pub(crate) fn hash_chunks(
        &mut self,
        kernel: &KeyedKernel,
        input: &[u8],
        counter: u64,
        prefetch: Prefetch,
    ) {
        // SAFETY: there is room for 32 values.
        unsafe { chunk_values(kernel, input, counter, prefetch, self.as_mut_ptr()) }
        self.n = input.len().div_ceil(CHUNK_LEN);
    }

    /// Inserts the values of a group before the present ones.
    ///
    /// # Safety
    ///
    /// The kernel of `kernel` must have written the group: a kernel with fewer lanes writes only
    /// a part of it.
    pub(super) unsafe fn prepend(&mut self, kernel: &KeyedKernel, group: &MaybeUninit<Group>) {
        let lanes = kernel.lanes();
        assert!(self.n <= lanes);
        self.room.copy_within(0..self.n, lanes);
        // SAFETY: as the caller promised; there is room for two groups.
        unsafe { (kernel.functions.transpose_out)(group.as_ptr(), self.as_mut_ptr()) };
        self.n += lanes;
    }

    /// Replaces the values by their parents. An odd value at the end moves up unchanged.
    #[inline]
    pub(super) fn ascend(&mut self, kernel: &KeyedKernel) {
        let pairs = self.n / 2;
        let values = self.as_mut_ptr();
        if pairs > 0 {
            // SAFETY: 2 * pairs values are there; the function writes no more than as many.
            unsafe { (kernel.functions.parents)(values, pairs, &kernel.key, kernel.flags, values) };
        }
        if self.n % 2 == 1 {
            self.room[pairs] = self.room[self.n - 1];
        }
        self.n = self.n.div_ceil(2);
    }

    /// Goes up level by level until there are at most `n` values.
    #[inline]
    pub(crate) fn ascend_to(&mut self, kernel: &KeyedKernel, n: usize) {
        while self.n > n {
            self.ascend(kernel);
        }
    }

    /// The parent of the two remaining values.
    #[inline]
    pub(crate) fn parent(&self, kernel: &KeyedKernel, extra_flags: u32) -> Value {
        assert!(self.n == 2);
        // SAFETY: two values are there.
        kernel.parent(unsafe { &*self.room.as_ptr().cast() }, extra_flags)
    }

    /// The two remaining values, as the block of their parent.
    #[inline]
    pub(crate) fn last_two(&self) -> [u8; BLOCK_LEN] {
        assert!(self.n == 2);
        join(&self.get(0), &self.get(1))
    }
}

/// Writes what [`LevelValues::hash_chunks`] computes to `out`.
///
/// # Safety
///
/// `out` must have room for `lanes` values.
#[inline(always)]
pub(super) unsafe fn chunk_values(
    kernel: &KeyedKernel,
    input: &[u8],
    counter: u64,
    prefetch: Prefetch,
    out: *mut u8,
) {
    let lanes = kernel.lanes();
    assert!(!input.is_empty() && input.len() <= lanes * CHUNK_LEN);
    let chunk = |i: usize| input.as_ptr().wrapping_add(CHUNK_LEN * i);
    let KeyedKernel { functions, key, flags } = kernel;
    // SAFETY: the chunks are those of the input; the caller promised the room.
    unsafe {
        match ChunkPlan::new(lanes, functions.serial_tail_max, input.len()) {
            ChunkPlan::Serial => {
                for (i, len) in [CHUNK_LEN, input.len() - CHUNK_LEN].into_iter().enumerate() {
                    let value = out.add(OUT_LEN * i);
                    (functions.chunk)(chunk(i), len, key, counter + i as u64, *flags, CHUNK_END, value);
                }
            }
            ChunkPlan::EqualLen(n) => {
                let inputs: [*const u8; MAX_LANES] = core::array::from_fn(|i| chunk(i.min(n - 1)));
                let (counters, flags) = ((counter, 1), (*flags, CHUNK_END));
                (functions.hash_equal_len)(&inputs, n, CHUNK_LEN, key, counters, flags, out);
            }
            ChunkPlan::Lanes(n) => {
                let mut inputs = [EMPTY_LANE; MAX_LANES];
                for (i, (lane, chunk)) in inputs.iter_mut().zip(input.chunks(CHUNK_LEN)).enumerate() {
                    let counter = counter + i as u64;
                    *lane = Lane { input: chunk, counter, last_flags: CHUNK_END };
                }
                (functions.hash_lanes)(&inputs[..n], key, *flags, out);
            }
            ChunkPlan::Group => {
                let mut group = MaybeUninit::<Group>::uninit();
                (functions.group)(input.as_ptr(), key, counter, *flags, prefetch, group.as_mut_ptr());
                (functions.transpose_out)(group.as_ptr(), out);
            }
        }
    }
}
