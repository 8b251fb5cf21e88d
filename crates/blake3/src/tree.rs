//! The tree over the chunks: full groups merged pairwise as wide as the kernel, everything else as a stack of subtrees.
//!
//! Positions are counted in chunks from the start of the (sub)tree. Two rules make the parts fit:
//!
//! - Nothing is merged that might turn out to be the root. A group holds at least two values, so merging groups is always
//!   safe; a subtree on its way to the stack goes there as its two halves, which merge when the next one comes.
//! - Input that is not a full group is taken in aligned powers of two, so that it is always a subtree of its own.

use crate::kernel::{Functions, Group, Lane, MAX_LANES, NO_LANE};
use crate::leaves::Leaves;
use crate::spec::{CHUNK_END, Words};
use crate::{BLOCK_LEN, CHUNK_LEN, OUT_LEN};
use core::mem::MaybeUninit;

/// A chaining value as bytes.
pub(crate) type Value = [u8; OUT_LEN];

/// Levels of groups that wait for a neighbour; a group of the last level becomes a single value. Reducing
/// every 32nd group keeps the narrow levels of parents, which cost as much as four chunks, under half a percent.
const LEVELS: usize = 6;

/// Groups (of level 0) in one of the last level.
const GROUPS_AT_TOP: u64 = 1 << (LEVELS - 1);

/// Input from here on is expected to come from beyond the caches, and is prefetched.
pub(crate) const FAR: usize = 3 << 20;

/// A kernel with the key and flags of a mode.
#[derive(Clone, Copy)]
pub(crate) struct Instance {
    pub(crate) functions: &'static Functions,
    pub(crate) key: Words,
    /// Flags of the mode, on every compression.
    pub(crate) flags: u32,
}

impl Instance {
    #[inline(always)]
    pub(crate) fn new(functions: &'static Functions, key: &Words, flags: u32) -> Self {
        Instance { functions, key: *key, flags }
    }

    /// Chunks in a group.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> usize {
        self.functions.lanes
    }

    /// Whether what is hashed may be a secret: a mode with a key says so.
    #[cfg(feature = "std")]
    pub(crate) fn secrecy(&self) -> Secrecy {
        if self.flags == 0 { Secrecy::Plain } else { Secrecy::Secret }
    }

    /// The chaining value of the parent of the two values in `children`; the root's digest when `extra_flags` has `ROOT`.
    pub(crate) fn parent(&self, children: &[u8; BLOCK_LEN], extra_flags: u32) -> Value {
        let mut value = MaybeUninit::<Value>::uninit();
        // SAFETY: 64 readable bytes, one parent of 32 bytes out.
        unsafe {
            let flags = self.flags | extra_flags;
            (self.functions.parents)(children.as_ptr(), 1, &self.key, flags, value.as_mut_ptr().cast());
            value.assume_init()
        }
    }
}

/// Whether copies of input must not outlive their hasher.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Plain,
    Secret,
}

/// Room for the chaining values of two groups, level by level.
#[repr(C, align(64))]
pub(crate) struct Values {
    room: [MaybeUninit<Value>; 32],
    /// How many hold one.
    n: usize,
}

impl Values {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Values { room: [const { MaybeUninit::uninit() }; 32], n: 0 }
    }

    #[inline(always)]
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.room.as_mut_ptr().cast()
    }

    #[inline(always)]
    fn get(&self, i: usize) -> Value {
        assert!(i < self.n);
        // SAFETY: the first n values are initialised.
        unsafe { self.room[i].assume_init() }
    }

    /// The values.
    #[cfg(feature = "bao")]
    pub(crate) fn as_slice(&self) -> &[Value] {
        // SAFETY: the first n values are initialised.
        unsafe { core::slice::from_raw_parts(self.room.as_ptr().cast(), self.n) }
    }

    /// Takes the parents of the pairs in `children`, at most `lanes` of them; an odd last one is left out.
    #[cfg(feature = "bao")]
    pub(crate) fn of_pairs(&mut self, instance: &Instance, children: &[Value]) {
        let Instance { functions, key, flags } = instance;
        self.n = children.len() / 2;
        assert!(self.n <= functions.lanes);
        if self.n > 0 {
            // SAFETY: n pairs of values are readable; there is room for the most lanes of any kernel.
            unsafe { (functions.parents)(children.as_ptr().cast(), self.n, key, *flags, self.as_mut_ptr()) };
        }
    }

    /// Takes the chaining values of the chunks of `input`, which has one to `lanes` of them, the last perhaps short. `counter` is that
    /// of the first. A whole group may be far.
    #[inline]
    pub(crate) fn of_chunks(&mut self, instance: &Instance, input: &[u8], counter: u64, distance: Distance) {
        let lanes = instance.lanes();
        assert!(!input.is_empty() && input.len() <= lanes * CHUNK_LEN);
        self.n = input.len().div_ceil(CHUNK_LEN);
        let chunk = |i: usize| input.as_ptr().wrapping_add(CHUNK_LEN * i);
        let Instance { functions, key, flags } = instance;
        // SAFETY: the chunks are those of the input; there is room for 16 values and more.
        unsafe {
            match Leaves::of(lanes, input.len()) {
                Leaves::InTurn => {
                    for (i, len) in [CHUNK_LEN, input.len() - CHUNK_LEN].into_iter().enumerate() {
                        let value = self.as_mut_ptr().add(OUT_LEN * i);
                        (functions.chunk)(chunk(i), len, key, counter + i as u64, *flags, CHUNK_END, value);
                    }
                }
                Leaves::Whole(n) => {
                    let inputs: [*const u8; MAX_LANES] = core::array::from_fn(|i| chunk(i.min(n - 1)));
                    let (counters, flags) = ((counter, 1), (*flags, CHUNK_END));
                    (functions.uniform)(&inputs, n, CHUNK_LEN, key, counters, flags, self.as_mut_ptr());
                }
                Leaves::Ragged(n) => {
                    let mut inputs = [NO_LANE; MAX_LANES];
                    for (i, (lane, chunk)) in inputs.iter_mut().zip(input.chunks(CHUNK_LEN)).enumerate() {
                        let counter = counter + i as u64;
                        *lane = Lane { input: chunk, counter, last_flags: CHUNK_END };
                    }
                    (functions.lanes_of)(&inputs[..n], key, *flags, self.as_mut_ptr());
                }
                Leaves::Group => {
                    let mut group = MaybeUninit::<Group>::uninit();
                    functions.group_at(distance)(input.as_ptr(), key, counter, *flags, group.as_mut_ptr());
                    (functions.ungroup)(group.as_ptr(), self.as_mut_ptr());
                }
            }
        }
    }

    /// Puts the values of a group before those that are here.
    ///
    /// # Safety
    ///
    /// The kernel of `instance` must have written the group: of one that has fewer lanes not all is there.
    unsafe fn prepend(&mut self, instance: &Instance, group: &MaybeUninit<Group>) {
        let lanes = instance.lanes();
        assert!(self.n <= lanes);
        self.room.copy_within(0..self.n, lanes);
        // SAFETY: as the caller promised; there is room for two groups.
        unsafe { (instance.functions.ungroup)(group.as_ptr(), self.as_mut_ptr()) };
        self.n += lanes;
    }

    /// Replaces the values by their parents. An odd one at the end moves up as it is.
    #[inline]
    fn ascend(&mut self, instance: &Instance) {
        let pairs = self.n / 2;
        let values = self.as_mut_ptr();
        if pairs > 0 {
            // SAFETY: 2 * pairs values are there; the function writes no more than as many.
            unsafe { (instance.functions.parents)(values, pairs, &instance.key, instance.flags, values) };
        }
        if self.n % 2 == 1 {
            self.room[pairs] = self.room[self.n - 1];
        }
        self.n = self.n.div_ceil(2);
    }

    /// Level by level up to at most `n` values.
    #[inline]
    pub(crate) fn ascend_to(&mut self, instance: &Instance, n: usize) {
        while self.n > n {
            self.ascend(instance);
        }
    }

    /// The parent of the two values that are left.
    #[inline]
    pub(crate) fn parent(&self, instance: &Instance, extra_flags: u32) -> Value {
        assert!(self.n == 2);
        // SAFETY: two values are there.
        instance.parent(unsafe { &*self.room.as_ptr().cast() }, extra_flags)
    }

    /// The two values that are left, as the block of their parent.
    #[inline]
    pub(crate) fn last_two(&self) -> [u8; BLOCK_LEN] {
        assert!(self.n == 2);
        join(&self.get(0), &self.get(1))
    }
}

/// The block of a parent.
#[inline(always)]
pub(crate) fn join(left: &Value, right: &Value) -> [u8; BLOCK_LEN] {
    let mut block = [0; BLOCK_LEN];
    block[..OUT_LEN].copy_from_slice(left);
    block[OUT_LEN..].copy_from_slice(right);
    block
}

/// The most subtrees that can stand side by side: one per bit of a chunk count, and one that is not merged yet.
const STACK: usize = 55;

/// Finished subtrees, the largest first. Neighbours of equal size merge only when the next subtree comes.
pub(crate) struct Stack {
    values: [MaybeUninit<Value>; STACK],
    len: usize,
    /// Chunks in the subtrees.
    pub(crate) chunks: u64,
}

impl Stack {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Stack { values: [const { MaybeUninit::uninit() }; STACK], len: 0, chunks: 0 }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        (self.len, self.chunks) = (0, 0);
    }

    pub(crate) fn values(&self) -> &[Value] {
        // SAFETY: the first `len` values are initialised.
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

    /// Merges neighbours of equal size until no more than `spare` are left beyond one per set bit of the chunk count.
    pub(crate) fn merge(&mut self, instance: &Instance, spare: usize) {
        while self.len > self.chunks.count_ones() as usize + spare {
            let [.., left, right] = self.values() else { return };
            let value = instance.parent(&join(left, right), 0);
            self.len -= 1;
            self.values[self.len - 1].write(value);
        }
    }

    /// Adds a subtree of `chunks` chunks, a power of two that divides the number of chunks before it.
    pub(crate) fn push(&mut self, instance: &Instance, value: &Value, chunks: u64) {
        self.merge(instance, 0);
        debug_assert!(chunks.is_power_of_two() && self.chunks.is_multiple_of(chunks));
        self.values[self.len].write(*value);
        self.len += 1;
        self.chunks += chunks;
    }

    /// Takes in whole chunks, in aligned subtrees of a group at most.
    pub(crate) fn absorb(&mut self, instance: &Instance, offset: u64, mut input: &[u8]) {
        while !input.is_empty() {
            let (subtree, rest) = input.split_at(self.next_subtree(instance, input.len()));
            let mut values = Values::new();
            values.of_chunks(instance, subtree, offset + self.chunks, Distance::Near);
            self.push_halves(instance, values, (subtree.len() / CHUNK_LEN) as u64);
            input = rest;
        }
    }

    /// Bytes of the largest subtree within `most` bytes, and a group, that may come next.
    fn next_subtree(&self, instance: &Instance, most: usize) -> usize {
        let chunks = room(instance, self.chunks).min(most / CHUNK_LEN);
        CHUNK_LEN << chunks.ilog2()
    }

    /// Adds a subtree by its two halves, or by its one chunk.
    fn push_halves(&mut self, instance: &Instance, mut values: Values, chunks: u64) {
        values.ascend_to(instance, 2);
        let n = values.n as u64;
        for i in 0..values.n {
            self.push(instance, &values.get(i), chunks / n);
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

#[cfg(feature = "zeroize")]
impl zeroize::Zeroize for Groups {
    fn zeroize(&mut self) {
        for slot in &mut self.slots {
            slot.write(Group([0; 128])).0.zeroize();
        }
        self.clear();
    }
}

/// Full groups: at most one on each level, as the bits of a counter. A group of level l holds the values of `lanes` neighbouring
/// subtrees of 2^l chunks each.
///
/// A kernel reads what it wrote itself: from the first group until there is none, all calls are for instances of one kernel.
pub(crate) struct Groups {
    slots: [MaybeUninit<Group>; LEVELS],
    /// Bit l: there is a group of level l.
    present: u64,
}

impl Groups {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Groups { slots: [const { MaybeUninit::uninit() }; LEVELS], present: 0 }
    }

    /// Makes the groups at `this` empty, without touching the rest.
    ///
    /// # Safety
    ///
    /// `this` must be writable.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn clear_at(this: *mut Self) {
        // SAFETY: the field is written, not read; the slots need no initialisation.
        unsafe { (&raw mut (*this).present).write(0) }
    }

    pub(crate) fn clear(&mut self) {
        self.present = 0;
    }

    /// Writes zeros over all groups that were ever here.
    #[cfg(feature = "std")]
    pub(crate) fn wipe(&mut self) {
        self.slots.fill(MaybeUninit::new(Group([0; 128])));
        self.clear();
    }

    /// The room of the groups, of which all must have been written to be read.
    #[cfg(all(test, feature = "std"))]
    pub(crate) fn room(&self) -> &[MaybeUninit<Group>] {
        &self.slots
    }

    /// Copies what is there.
    pub(crate) fn copy_from(&mut self, other: &Groups) {
        self.present = other.present;
        for (level, slot) in self.slots.iter_mut().enumerate() {
            if other.present >> level & 1 == 1 {
                *slot = other.slots[level];
            }
        }
    }

    pub(crate) fn chunks(&self, instance: &Instance) -> u64 {
        self.present * instance.lanes() as u64
    }

    /// Hashes one group at the start of `input` and merges it with those that wait on its levels. There must be room: see `is_full`.
    fn add(&mut self, instance: &Instance, input: &[u8], counter: u64, distance: Distance) {
        let Instance { functions, key, flags } = instance;
        assert!(input.len() >= functions.lanes * CHUNK_LEN);
        let target = self.present.trailing_ones() as usize;
        assert!(target < LEVELS);
        let mut spare = MaybeUninit::<Group>::uninit();
        let (spare, slots) = (spare.as_mut_ptr(), self.slots.as_mut_ptr().cast::<Group>());
        let hash = functions.group_at(distance);
        // SAFETY: there is a group of input; this kernel wrote the groups below `target`, whose slot is free.
        unsafe {
            let place = |level: usize| if level == target { slots.add(target) } else { spare };
            hash(input.as_ptr(), key, counter, *flags, place(0));
            for level in 0..target {
                (functions.merge)(slots.add(level), spare, key, *flags, place(level + 1));
            }
        }
        self.present += 1;
    }

    /// True when there is one group, of the last level.
    fn is_full(&self) -> bool {
        self.present == GROUPS_AT_TOP
    }

    /// Moves everything to the stack.
    pub(crate) fn spill(&mut self, instance: &Instance, stack: &mut Stack) {
        self.push_to(instance, stack);
        self.present = 0;
    }

    /// As `spill`, but stays as it is.
    pub(crate) fn push_to(&self, instance: &Instance, stack: &mut Stack) {
        for level in (0..LEVELS).rev() {
            if self.present >> level & 1 == 1 {
                let mut values = Values::new();
                // SAFETY: this kernel wrote it.
                unsafe { values.prepend(instance, &self.slots[level]) };
                stack.push_halves(instance, values, (instance.lanes() as u64) << level);
            }
        }
    }
}

impl Functions {
    /// The function for a group of input that is so far away.
    #[inline(always)]
    fn group_at(&self, distance: Distance) -> unsafe fn(*const u8, &Words, u64, u32, *mut Group) {
        match distance {
            Distance::Near => self.group,
            Distance::Far => self.far_group,
        }
    }
}

/// Where input is expected to come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distance {
    Near,
    Far,
}

impl Distance {
    #[inline(always)]
    pub(crate) fn of(input: &[u8]) -> Self {
        if input.len() >= FAR { Distance::Far } else { Distance::Near }
    }
}

/// A tree under way, by reference, so that its parts may live where their owner wants them.
pub(crate) struct Tree<'a> {
    pub(crate) instance: &'a Instance,
    /// The counter of the first chunk.
    pub(crate) offset: u64,
    pub(crate) stack: &'a mut Stack,
    pub(crate) groups: &'a mut Groups,
}

impl Tree<'_> {
    /// Chunks taken in.
    pub(crate) fn position(&self) -> u64 {
        self.stack.chunks + self.groups.chunks(self.instance)
    }

    /// Takes in whole chunks. They must not be all of the input if they are one chunk.
    pub(crate) fn absorb(&mut self, mut input: &[u8], distance: Distance) {
        debug_assert!(input.len().is_multiple_of(CHUNK_LEN));
        let group = self.instance.lanes() * CHUNK_LEN;
        while !input.is_empty() {
            if input.len() >= group && self.at_group() {
                if self.groups.is_full() {
                    self.groups.spill(self.instance, self.stack);
                }
                let counter = self.offset + self.position();
                self.groups.add(self.instance, input, counter, distance);
                input = &input[group..];
            } else {
                self.groups.spill(self.instance, self.stack);
                let subtree = self.stack.next_subtree(self.instance, input.len());
                self.stack.absorb(self.instance, self.offset, &input[..subtree]);
                input = &input[subtree..];
            }
        }
    }

    /// Whether a group may be added: it continues others, or begins where one of the last level would.
    fn at_group(&self) -> bool {
        let at_top = self.instance.lanes() as u64 * GROUPS_AT_TOP;
        self.groups.present != 0 || self.stack.chunks.is_multiple_of(at_top)
    }

    /// Bytes of `input` that may be taken in before the rest is collected: whole groups, or up to the next place where one may
    /// begin.
    pub(crate) fn whole(&self, input: &[u8]) -> usize {
        let room = room(self.instance, self.position());
        let unit = room * CHUNK_LEN;
        if room == self.instance.lanes() {
            input.len() / unit * unit
        } else {
            unit.min(input.len() / CHUNK_LEN * CHUNK_LEN)
        }
    }
}

/// Bytes of the largest complete subtree within `most` bytes, at least a chunk of them, that may begin at `position`.
#[cfg(feature = "rayon")]
pub(crate) fn largest_subtree(position: u64, most: usize) -> usize {
    let fits = (most / CHUNK_LEN).ilog2();
    CHUNK_LEN << position.trailing_zeros().min(fits)
}

/// Chunks, at most a group, that may follow `position` chunks as one subtree, complete or not.
#[inline(always)]
pub(crate) fn room(instance: &Instance, position: u64) -> usize {
    // Position 0 has 64 trailing zeros.
    let aligned = position.trailing_zeros().min(instance.lanes().ilog2());
    1 << aligned
}

/// The block of the topmost parent of a tree of more than one chunk: what was taken in, and then `rest`, whose chunks are
/// at most [`room`].
pub(crate) fn root_block(
    instance: &Instance,
    offset: u64,
    stack: &Stack,
    groups: Option<&Groups>,
    rest: &[u8],
) -> [u8; BLOCK_LEN] {
    if let Some(full) = groups.filter(|groups| groups.is_full() && !rest.is_empty()) {
        // A full group of the last level is a subtree of its own: what follows it is none of its neighbours.
        let mut stack = stack.clone();
        full.push_to(instance, &mut stack);
        return root_block(instance, offset, &stack, None, rest);
    }
    let mut values = Values::new();
    let position = stack.chunks + groups.map_or(0, |groups| groups.chunks(instance));
    if !rest.is_empty() {
        values.of_chunks(instance, rest, offset + position, Distance::Near);
    }
    if let Some(groups) = groups {
        for level in 0..LEVELS {
            if groups.present >> level & 1 == 1 {
                // SAFETY: this kernel wrote it.
                unsafe { values.prepend(instance, &groups.slots[level]) };
            }
            if groups.present >> level <= 1 {
                break;
            }
            values.ascend(instance);
        }
    }
    if stack.len == 0 {
        values.ascend_to(instance, 2);
        return values.last_two();
    }
    values.ascend_to(instance, 1);
    fold(instance, stack, (values.n == 1).then(|| values.get(0)))
}

/// The block of the topmost parent of the subtrees of a stack, and of one more to their right.
fn fold(instance: &Instance, stack: &Stack, last: Option<Value>) -> [u8; BLOCK_LEN] {
    let mut stack = stack.clone();
    let mut right = match last {
        Some(value) => {
            stack.merge(instance, 0);
            value
        }
        None => {
            stack.len -= 1;
            // SAFETY: the stack had a value there.
            unsafe { stack.values[stack.len].assume_init() }
        }
    };
    let lefts = stack.values();
    for left in lefts[1..].iter().rev() {
        right = instance.parent(&join(left, &right), 0);
    }
    join(&lefts[0], &right)
}

/// The block of the topmost parent over all of `input`, which has more than one chunk.
pub(crate) fn root_block_of(
    instance: &Instance,
    input: &[u8],
    offset: u64,
    distance: Distance,
) -> [u8; BLOCK_LEN] {
    debug_assert!(input.len() > CHUNK_LEN);
    let group = instance.lanes() * CHUNK_LEN;
    if input.len() <= group {
        let mut values = Values::new();
        values.of_chunks(instance, input, offset, Distance::Near);
        values.ascend_to(instance, 2);
        return values.last_two();
    }
    let (mut stack, mut groups) = (Stack::new(), Groups::new());
    let (whole, rest) = input.split_at(input.len() / group * group);
    let mut tree = Tree { instance, offset, stack: &mut stack, groups: &mut groups };
    tree.absorb(whole, distance);
    root_block(instance, offset, &stack, Some(&groups), rest)
}
