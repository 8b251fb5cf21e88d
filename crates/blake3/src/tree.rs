//! The tree over the chunks: full groups are merged pairwise, as wide as the kernel; everything
//! else is a stack of subtrees.
//!
//! Positions are counted in chunks from the start of the (sub)tree. Two rules make the parts fit:
//!
//! - Nothing is merged that might be the root. A group has at least two values, so merging groups
//!   is always safe. A subtree goes to the stack as its two halves, which merge when the next
//!   subtree comes.
//! - Input that is not a full group is absorbed in aligned powers of two, so that each piece is a
//!   subtree.

use crate::keyed_kernel::{KeyedKernel, Value, join};
use crate::plan::{Group, MAX_LANES, Prefetch};
use crate::spec::{BLOCK_LEN, CHUNK_LEN};
use core::mem::MaybeUninit;

mod values;

pub(crate) use values::LevelValues;
use values::chunk_values;

/// The number of levels on which groups wait for a neighbor. A group of the last level is reduced
/// to a single value. That happens once in 32 groups, so the narrow levels of parents, which cost
/// as much as four chunks, take less than half a percent of the time.
const GROUP_LEVELS: usize = 6;

/// Groups (of level 0) in one of the last level.
const GROUPS_AT_TOP: u64 = 1 << (GROUP_LEVELS - 1);

/// The most subtrees that can be side by side: one per bit of a chunk count, and one that is not
/// merged yet.
const MAX_STACK_LEN: usize = 55;
const _: () = assert!(MAX_STACK_LEN >= MAX_LANES);

/// Finished subtrees, the largest first. Neighbors of equal size merge only when the next subtree
/// comes.
pub(crate) struct Stack {
    values: [MaybeUninit<Value>; MAX_STACK_LEN],
    len: usize,
    /// The number of chunks in the subtrees.
    pub(crate) chunks: u64,
}

impl Stack {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Stack { values: [const { MaybeUninit::uninit() }; MAX_STACK_LEN], len: 0, chunks: 0 }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        (self.len, self.chunks) = (0, 0);
    }

    /// Makes the stack at `this` empty, without touching the values.
    ///
    /// # Safety
    ///
    /// `this` must be writable.
    #[inline(always)]
    pub(crate) unsafe fn clear_at(this: *mut Self) {
        // SAFETY: the fields are written, not read; the values need no initialization.
        unsafe {
            (&raw mut (*this).len).write(0);
            (&raw mut (*this).chunks).write(0);
        }
    }

    pub(crate) fn values(&self) -> &[Value] {
        // SAFETY: the first `len` values are initialized.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr().cast(), self.len) }
    }

    /// A stack of these values, which cover `chunks` chunks.
    pub(crate) fn from_values(values: &[Value], chunks: u64) -> Self {
        let mut stack = Stack::new();
        for (slot, value) in stack.values.iter_mut().zip(values) {
            slot.write(*value);
        }
        (stack.len, stack.chunks) = (values.len(), chunks);
        stack
    }

    /// Merges neighbors of equal size, until there are at most `spare` more subtrees than set bits
    /// in the chunk count.
    pub(crate) fn merge(&mut self, kernel: &KeyedKernel, spare: usize) {
        while self.len > self.chunks.count_ones() as usize + spare {
            let [.., left, right] = self.values() else { return };
            let value = kernel.parent(&join(left, right), 0);
            self.len -= 1;
            self.values[self.len - 1].write(value);
        }
    }

    /// Adds a subtree of `chunks` chunks, a power of two that divides the number of chunks before
    /// it.
    pub(crate) fn push(&mut self, kernel: &KeyedKernel, value: &Value, chunks: u64) {
        self.merge(kernel, 0);
        debug_assert!(chunks.is_power_of_two() && self.chunks.is_multiple_of(chunks));
        self.values[self.len].write(*value);
        self.len += 1;
        self.chunks += chunks;
    }

    /// Takes whole chunks, in aligned subtrees of at most a group.
    pub(crate) fn absorb(&mut self, kernel: &KeyedKernel, offset: u64, mut input: &[u8]) {
        while !input.is_empty() {
            let (subtree, rest) = input.split_at(self.next_subtree(kernel, input.len()));
            let mut values = LevelValues::new();
            values.hash_chunks(kernel, subtree, offset + self.chunks, Prefetch::Off);
            self.push_halves(kernel, values, (subtree.len() / CHUNK_LEN) as u64);
            input = rest;
        }
    }

    /// Takes whole chunks of a tree that begins at counter 0. A single chunk must not be the whole
    /// input.
    ///
    /// Up to a group, all chunks are hashed at once, also if they are not one subtree.
    pub(crate) fn absorb_all(&mut self, kernel: &KeyedKernel, mut input: &[u8], prefetch: Prefetch) {
        while !input.is_empty() {
            let n = input.len() / CHUNK_LEN;
            if self.chunks == 0 && n <= kernel.lanes() && n.is_power_of_two() {
                return self.absorb_first(kernel, input, n);
            }
            if n <= kernel.lanes() && self.chunks.is_multiple_of(1 << n.ilog2()) {
                let mut values = LevelValues::new();
                values.hash_chunks(kernel, input, self.chunks, Prefetch::Off);
                return self.push_ragged(kernel, values);
            }
            let (subtree, rest) = input.split_at(largest_subtree(self.chunks, input.len()));
            self.absorb_subtree(kernel, subtree, prefetch);
            input = rest;
        }
    }

    /// Takes the first chunks, a power of two of them and at most a group. The kernel writes into
    /// the stack: a copy of its values would wait for its narrow stores.
    #[inline]
    fn absorb_first(&mut self, kernel: &KeyedKernel, input: &[u8], chunks: usize) {
        let KeyedKernel { functions, key, flags } = kernel;
        let values = self.values.as_mut_ptr().cast::<u8>();
        (self.len, self.chunks) = (chunks, chunks as u64);
        // SAFETY: the stack has room for more values than the widest kernel has lanes. A level
        // writes no more than it reads.
        unsafe {
            chunk_values(kernel, input, 0, Prefetch::Off, values);
            while self.len > 2 {
                self.len /= 2;
                (functions.parents)(values, self.len, key, *flags, values);
            }
        }
    }

    /// The block of the parent of the only two values.
    #[inline(always)]
    pub(crate) fn only_pair(&self) -> Option<&[u8; BLOCK_LEN]> {
        // SAFETY: both values are initialized, one after the other.
        (self.len == 2).then(|| unsafe { &*self.values.as_ptr().cast() })
    }

    /// Takes whole chunks that form a subtree.
    pub(crate) fn absorb_subtree(&mut self, kernel: &KeyedKernel, subtree: &[u8], prefetch: Prefetch) {
        if subtree.len() <= CHUNK_LEN {
            return self.absorb(kernel, 0, subtree);
        }
        let block = root_block_of(kernel, subtree, self.chunks, prefetch);
        let half = (subtree.len() / CHUNK_LEN / 2) as u64;
        for value in block.as_chunks().0 {
            self.push(kernel, value, half);
        }
    }

    /// Adds the values of chunks as subtrees of the sizes in the binary form of their number, the
    /// largest first, and as its two halves.
    fn push_ragged(&mut self, kernel: &KeyedKernel, mut values: LevelValues) {
        let mut odd = [None; MAX_LANES.ilog2() as usize + 1];
        let mut size = 1;
        for odd in &mut odd {
            if values.n > 1 && values.n % 2 == 1 {
                *odd = Some((values.pop(), size));
            }
            if values.n <= 2 {
                break;
            }
            values.ascend(kernel);
            size *= 2;
        }
        for i in 0..values.n {
            self.push(kernel, &values.get(i), size);
        }
        for (value, size) in odd.iter().rev().flatten() {
            self.push(kernel, value, *size);
        }
    }

    /// The length in bytes of the largest subtree that may come next: at most `most` bytes, and at
    /// most a group.
    fn next_subtree(&self, kernel: &KeyedKernel, most: usize) -> usize {
        let chunks = max_next_chunks(kernel, self.chunks).min(most / CHUNK_LEN);
        CHUNK_LEN << chunks.ilog2()
    }

    /// Adds a subtree as its two halves, or as its only chunk.
    fn push_halves(&mut self, kernel: &KeyedKernel, mut values: LevelValues, chunks: u64) {
        values.ascend_to(kernel, 2);
        let n = values.n as u64;
        for i in 0..values.n {
            self.push(kernel, &values.get(i), chunks / n);
        }
    }
}

impl Clone for Stack {
    fn clone(&self) -> Self {
        Stack::from_values(self.values(), self.chunks)
    }
}

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for Stack {
    fn zeroize(&mut self) {
        self.values.zeroize();
        self.clear();
    }
}

#[cfg(all(feature = "zeroize", not(feature = "std")))]
impl zeroize::Zeroize for Groups {
    fn zeroize(&mut self) {
        for slot in &mut self.slots {
            slot.write(Group([0; 128])).0.zeroize();
        }
        self.clear();
    }
}

/// Full groups: at most one on each level, like the bits of a counter. A group of level l holds the
/// values of `lanes` neighboring subtrees of 2^l chunks each.
///
/// A kernel reads only groups that it wrote itself: as long as there are groups, all calls must be
/// by one kernel.
pub(crate) struct Groups {
    slots: [MaybeUninit<Group>; GROUP_LEVELS],
    /// Bit l is set if there is a group of level l.
    present: u64,
    /// No slot from this one on was written since the last wiping.
    #[cfg(feature = "std")]
    written: usize,
}

impl Groups {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Groups {
            slots: [const { MaybeUninit::uninit() }; GROUP_LEVELS],
            present: 0,
            #[cfg(feature = "std")]
            written: 0,
        }
    }

    /// Makes the groups at `this` empty, without touching the rest.
    ///
    /// # Safety
    ///
    /// `this` must be writable.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn clear_at(this: *mut Self) {
        // SAFETY: the fields are written, not read; the slots need no initialization.
        unsafe {
            (&raw mut (*this).present).write(0);
            (&raw mut (*this).written).write(0);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.present = 0;
    }

    /// Overwrites all groups that were ever here with zeros.
    #[cfg(feature = "std")]
    pub(crate) fn wipe(&mut self) {
        self.slots[..self.written].fill(MaybeUninit::new(Group([0; 128])));
        self.written = 0;
        self.clear();
    }

    /// The memory of the groups. To read it, all of it must have been written.
    #[cfg(all(test, feature = "std"))]
    pub(crate) fn room(&self) -> &[MaybeUninit<Group>] {
        &self.slots
    }

    /// Copies the groups that are present.
    pub(crate) fn copy_from(&mut self, other: &Groups) {
        self.present = other.present;
        #[cfg(feature = "std")]
        {
            self.written = self.written.max(other.written);
        }
        for (level, slot) in self.slots.iter_mut().enumerate() {
            if other.present >> level & 1 == 1 {
                *slot = other.slots[level];
            }
        }
    }

    pub(crate) fn chunks(&self, kernel: &KeyedKernel) -> u64 {
        self.present * kernel.lanes() as u64
    }

    /// Hashes one group at the start of `input`, or two where the kernel prefers that, and merges
    /// them with the waiting groups of their levels. Returns how many. There must be room: see
    /// `is_full`.
    fn add(&mut self, kernel: &KeyedKernel, input: &[u8], counter: u64, prefetch: Prefetch) -> usize {
        let KeyedKernel { functions, key, flags } = kernel;
        let group = functions.lanes * CHUNK_LEN;
        assert!(input.len() >= group);
        // Only the first of a pair of neighbors has nothing to merge with on its level.
        let two = functions.two_groups.filter(|_| input.len() >= 2 * group && self.present & 1 == 0);
        let groups = if two.is_some() { 2 } else { 1 };
        let target = (self.present + groups - 1).trailing_ones() as usize;
        assert!(target < GROUP_LEVELS);
        let mut spare = MaybeUninit::<Group>::uninit();
        let (spare, slots) = (spare.as_mut_ptr(), self.slots.as_mut_ptr().cast::<Group>());
        // SAFETY: there are as many groups of input; this kernel wrote the groups below `target`,
        // whose slot is free.
        unsafe {
            let place = |level: usize| if level == target { slots.add(target) } else { spare };
            match two {
                Some(two) => two(input.as_ptr(), key, counter, *flags, prefetch, [slots, spare]),
                None => (functions.group)(input.as_ptr(), key, counter, *flags, prefetch, place(0)),
            }
            for level in 0..target {
                (functions.merge)(slots.add(level), spare, key, *flags, place(level + 1));
            }
        }
        self.present += groups;
        #[cfg(feature = "std")]
        {
            self.written = self.written.max(target + 1);
        }
        groups as usize
    }

    /// Whether the only group is one of the last level.
    fn is_full(&self) -> bool {
        self.present == GROUPS_AT_TOP
    }

    /// Moves everything to the stack.
    pub(crate) fn spill(&mut self, kernel: &KeyedKernel, stack: &mut Stack) {
        self.push_to(kernel, stack);
        self.present = 0;
    }

    /// Like `spill`, but keeps the groups.
    pub(crate) fn push_to(&self, kernel: &KeyedKernel, stack: &mut Stack) {
        for level in (0..GROUP_LEVELS).rev() {
            if self.present >> level & 1 == 1 {
                let mut values = LevelValues::new();
                // SAFETY: this kernel wrote it.
                unsafe { values.prepend(kernel, &self.slots[level]) };
                stack.push_halves(kernel, values, (kernel.lanes() as u64) << level);
            }
        }
    }
}

/// An unfinished tree, by reference, so that its owner decides where its parts are stored.
pub(crate) struct Tree<'a> {
    pub(crate) kernel: &'a KeyedKernel,
    /// The counter of the first chunk.
    pub(crate) offset: u64,
    pub(crate) stack: &'a mut Stack,
    pub(crate) groups: &'a mut Groups,
}

impl Tree<'_> {
    /// The number of chunks taken so far.
    pub(crate) fn position(&self) -> u64 {
        self.stack.chunks + self.groups.chunks(self.kernel)
    }

    /// Takes whole chunks. A single chunk must not be the whole input.
    pub(crate) fn absorb(&mut self, mut input: &[u8], prefetch: Prefetch) {
        debug_assert!(input.len().is_multiple_of(CHUNK_LEN));
        let group = self.kernel.lanes() * CHUNK_LEN;
        while !input.is_empty() {
            if input.len() >= group && self.may_add_group() {
                if self.groups.is_full() {
                    self.groups.spill(self.kernel, self.stack);
                }
                let counter = self.offset + self.position();
                let groups = self.groups.add(self.kernel, input, counter, prefetch);
                input = &input[groups * group..];
            } else {
                self.groups.spill(self.kernel, self.stack);
                let subtree = self.stack.next_subtree(self.kernel, input.len());
                self.stack.absorb(self.kernel, self.offset, &input[..subtree]);
                input = &input[subtree..];
            }
        }
    }

    /// Whether a group may be added: it continues others, or begins at a place for a group of the
    /// last level.
    fn may_add_group(&self) -> bool {
        let at_top = self.kernel.lanes() as u64 * GROUPS_AT_TOP;
        self.groups.present != 0 || self.stack.chunks.is_multiple_of(at_top)
    }

    /// How many bytes of `input` to take now, before the rest is collected: whole groups, or up to
    /// the next place where one may begin.
    pub(crate) fn absorbable_len(&self, input: &[u8]) -> usize {
        let room = max_next_chunks(self.kernel, self.position());
        let unit = room * CHUNK_LEN;
        if room == self.kernel.lanes() {
            input.len() / unit * unit
        } else {
            unit.min(input.len() / CHUNK_LEN * CHUNK_LEN)
        }
    }
}

/// The length in bytes of the largest complete subtree that may begin at `position`: at most `most`
/// bytes, at least a chunk.
pub(crate) fn largest_subtree(position: u64, most: usize) -> usize {
    let fits = (most / CHUNK_LEN).ilog2();
    CHUNK_LEN << position.trailing_zeros().min(fits)
}

/// The most chunks, up to a group, that may follow `position` chunks as one subtree, complete or
/// not.
#[inline(always)]
pub(crate) fn max_next_chunks(kernel: &KeyedKernel, position: u64) -> usize {
    // Position 0 has 64 trailing zeros.
    let aligned = position.trailing_zeros().min(kernel.lanes().ilog2());
    1 << aligned
}

/// The block of the topmost parent of a tree of more than one chunk: the chunks taken so far, and
/// then `rest`, which has at most [`max_next_chunks`] chunks.
pub(crate) fn root_block(
    kernel: &KeyedKernel,
    offset: u64,
    stack: &Stack,
    groups: Option<&Groups>,
    rest: &[u8],
) -> [u8; BLOCK_LEN] {
    if let Some(full) = groups.filter(|groups| groups.is_full() && !rest.is_empty()) {
        // A full group of the last level is a complete subtree: the chunks after it do not merge
        // with parts of it.
        let mut stack = stack.clone();
        full.push_to(kernel, &mut stack);
        return root_block(kernel, offset, &stack, None, rest);
    }
    let mut values = LevelValues::new();
    let position = stack.chunks + groups.map_or(0, |groups| groups.chunks(kernel));
    if !rest.is_empty() {
        values.hash_chunks(kernel, rest, offset + position, Prefetch::Off);
    }
    if let Some(groups) = groups {
        for level in 0..GROUP_LEVELS {
            if groups.present >> level & 1 == 1 {
                // SAFETY: this kernel wrote it.
                unsafe { values.prepend(kernel, &groups.slots[level]) };
            }
            if groups.present >> level <= 1 {
                break;
            }
            values.ascend(kernel);
        }
    }
    if stack.len == 0 {
        values.ascend_to(kernel, 2);
        return values.last_two();
    }
    values.ascend_to(kernel, 1);
    fold_stack(kernel, stack, (values.n == 1).then(|| values.get(0)))
}

/// The block of the topmost parent of the subtrees of a stack, and of one more to their right. It
/// copies no stack, which would take as long as a compression.
pub(crate) fn fold_stack(kernel: &KeyedKernel, stack: &Stack, last: Option<Value>) -> [u8; BLOCK_LEN] {
    let values = stack.values();
    let mut lefts = values.len() - 1;
    let mut right = values[lefts];
    if let Some(last) = last {
        // Neighbors of equal size merge, as when a subtree comes.
        while lefts + 1 > stack.chunks.count_ones() as usize {
            lefts -= 1;
            right = kernel.parent(&join(&values[lefts], &right), 0);
        }
        if lefts == 0 {
            return join(&right, &last);
        }
        right = kernel.parent(&join(&right, &last), 0);
    }
    for left in values[1..lefts].iter().rev() {
        right = kernel.parent(&join(left, &right), 0);
    }
    join(&values[0], &right)
}

/// The block of the topmost parent over all of `input`, which has more than one chunk.
pub(crate) fn root_block_of(
    kernel: &KeyedKernel,
    input: &[u8],
    offset: u64,
    prefetch: Prefetch,
) -> [u8; BLOCK_LEN] {
    debug_assert!(input.len() > CHUNK_LEN);
    let group = kernel.lanes() * CHUNK_LEN;
    if input.len() <= group {
        let mut values = LevelValues::new();
        values.hash_chunks(kernel, input, offset, Prefetch::Off);
        values.ascend_to(kernel, 2);
        return values.last_two();
    }
    let (mut stack, mut groups) = (Stack::new(), Groups::new());
    let (whole, rest) = input.split_at(input.len() / group * group);
    let mut tree = Tree { kernel, offset, stack: &mut stack, groups: &mut groups };
    tree.absorb(whole, prefetch);
    root_block(kernel, offset, &stack, Some(&groups), rest)
}
