//! Chunks, parents and many inputs through the two forms of the kernel.

use crate::{found, require};
use bulla_blake3::kernel::wasm32::{U32x4, absorb4, copy_padded, fold1, store_chaining_values};
use core::arch::wasm32::{u32x4, u32x4_ge, u32x4_splat, v128, v128_and, v128_bitselect, v128_or};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Eight words: a chaining value or a key.
pub(crate) type Words = [u32; 8];

/// A chaining value as bytes.
pub(crate) type Value = [u8; OUT_LEN];

/// Sizes in bytes (specification of BLAKE3, section 2).
pub(crate) const OUT_LEN: usize = 32;
pub(crate) const BLOCK_LEN: usize = 64;
pub(crate) const CHUNK_LEN: usize = 1024;

/// Initialization vector (table 1 of the specification).
pub(crate) const IV: Words =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Flags (table 3 of the specification).
pub(crate) const CHUNK_START: u32 = 1;
pub(crate) const CHUNK_END: u32 = 1 << 1;
pub(crate) const PARENT: u32 = 1 << 2;
pub(crate) const ROOT: u32 = 1 << 3;
pub(crate) const KEYED_HASH: u32 = 1 << 4;
pub(crate) const DERIVE_KEY_CONTEXT: u32 = 1 << 5;
pub(crate) const DERIVE_KEY_MATERIAL: u32 = 1 << 6;

/// The number of inputs side by side.
pub(crate) const LANES: usize = 4;

/// A second chunk of at most this length is hashed after the first one: hashing both side by side
/// would cost more.
const MAX_SERIAL_TAIL_LEN: usize = 11 * BLOCK_LEN;

/// The key and the flags of a mode.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KeyedKernel {
    pub(crate) key: Words,
    pub(crate) flags: u32,
}

/// Inputs of at most a chunk each, side by side.
struct Lanes {
    inputs: [*const u8; LANES],
    /// The number of lanes with an input. The others read the first lane's input.
    live: usize,
    /// The length of each input except the last.
    len: usize,
    /// The length of the last input: at most that of the others.
    last_len: usize,
    counters: [u64; LANES],
    /// Flags of the last block of each.
    last_flags: u32,
}

impl KeyedKernel {
    /// Plain hashing.
    pub(crate) const PLAIN: Self = KeyedKernel { key: IV, flags: 0 };

    /// The kernel for a mode: 0 plain, 1 keyed, 2 key derivation.
    #[inline(always)]
    pub(crate) fn of(mode: u32, key: &Words) -> Self {
        match mode {
            0 => Self::PLAIN,
            1 => KeyedKernel { key: *key, flags: KEYED_HASH },
            _ => KeyedKernel { key: *key, flags: DERIVE_KEY_MATERIAL },
        }
    }

    /// The output of one input of at most a chunk. The first half is its chaining value. `edges`
    /// are the flags of the first and of the last block. The input begins at a multiple of 64 bytes
    /// of an area, or is part of a block.
    #[inline(always)]
    pub(crate) fn fold(&self, input: &[u8], counter: u64, edges: (u32, u32), out: &mut [u8; BLOCK_LEN]) {
        let (first, second) = out.split_at_mut(OUT_LEN);
        let halves = [first.as_mut_ptr(), second.as_mut_ptr()];
        // SAFETY: an area is a whole number of blocks, so that the input's last block is readable
        // as a whole; both halves are writable.
        unsafe { fold1(input.as_ptr(), input.len(), &self.key, counter, self.flags, edges, halves) }
    }

    /// The chaining value of one input.
    pub(crate) fn value(&self, input: &[u8], counter: u64, edges: (u32, u32)) -> Value {
        let mut out = [0; BLOCK_LEN];
        self.fold(input, counter, edges, &mut out);
        *found(out.first_chunk())
    }

    /// The chaining values of the chunks of `input`, at most 64, the last perhaps short; returns
    /// how many.
    pub(crate) fn leaves(&self, input: &[u8], counter: u64, values: &mut [Value; 64]) -> usize {
        let (groups, _) = values.as_chunks_mut::<LANES>();
        for (i, (input, values)) in input.chunks(LANES * CHUNK_LEN).zip(groups).enumerate() {
            self.group(input, counter + (LANES * i) as u64, values);
        }
        input.len().div_ceil(CHUNK_LEN)
    }

    /// The chaining values of one to four chunks, the last perhaps short.
    fn group(&self, input: &[u8], counter: u64, values: &mut [Value; LANES]) {
        let live = input.len().div_ceil(CHUNK_LEN);
        let last_len = input.len() - CHUNK_LEN * (live - 1);
        if live == 1 || live == 2 && last_len <= MAX_SERIAL_TAIL_LEN {
            for (i, (chunk, value)) in input.chunks(CHUNK_LEN).zip(values).enumerate() {
                *value = self.value(chunk, counter + i as u64, (CHUNK_START, CHUNK_END));
            }
            return;
        }
        let lanes = Lanes {
            inputs: core::array::from_fn(|i| {
                input.as_ptr().wrapping_add(if i < live { CHUNK_LEN * i } else { 0 })
            }),
            live,
            len: CHUNK_LEN,
            last_len,
            counters: core::array::from_fn(|i| counter + i as u64),
            last_flags: CHUNK_END,
        };
        // SAFETY: the lanes lie in the input.
        unsafe { self.run(&lanes, values) }
    }

    /// The chaining values of the lanes.
    ///
    /// # Safety
    ///
    /// Every input must be readable.
    unsafe fn run(&self, lanes: &Lanes, values: &mut [Value; LANES]) {
        let &Lanes { mut inputs, live, len, last_len, counters, last_flags } = lanes;
        require(live > 0 && live <= LANES);
        let last = live - 1;
        let blocks = len.div_ceil(BLOCK_LEN).max(1);
        let low = counters.map(|counter| counter as u32);
        let high = counters.map(|counter| (counter >> 32) as u32);
        let [low, high] = [low, high].map(|w| U32x4(u32x4(w[0], w[1], w[2], w[3])));
        let mut h = splat_key(&self.key);
        let mut absorb = |inputs: &[*const u8; LANES], range: Range<usize>, sizes: v128, flags: v128| {
            let start = if range.start == 0 { CHUNK_START } else { 0 };
            let end = if range.end == blocks { last_flags } else { 0 };
            if !range.is_empty() {
                // SAFETY: these blocks of all inputs are readable.
                unsafe {
                    absorb4(&mut h, inputs, range, &[low, high, U32x4(sizes), U32x4(flags)], (start, end))
                };
            }
            h
        };
        let (full, plain) = (u32x4_splat(BLOCK_LEN as u32), u32x4_splat(self.flags));
        if last_len == len && len == BLOCK_LEN * blocks {
            store_chaining_values(&absorb(&inputs, 0..blocks, full, plain), values);
            return;
        }
        // The block in which the last input ends, and the others too if they are as long.
        let cut = last_len.saturating_sub(1) / BLOCK_LEN;
        absorb(&inputs, 0..cut, full, plain);
        let mut padded = [const { MaybeUninit::uninit() }; LANES];
        let first_ending = if last_len == len { 0 } else { last };
        for i in first_ending..LANES {
            if i == last || last_len == len {
                // SAFETY: the input is readable.
                inputs[i] = unsafe { tail_of(inputs[i], BLOCK_LEN * cut, last_len, &mut padded[i]) };
            }
        }
        let ending = u32x4_ge(u32x4(0, 1, 2, 3), u32x4_splat(first_ending as u32));
        let sizes = v128_bitselect(u32x4_splat((last_len - BLOCK_LEN * cut) as u32), full, ending);
        if cut + 1 == blocks {
            store_chaining_values(&absorb(&inputs, cut..blocks, sizes, plain), values);
            return;
        }
        let flags = v128_or(plain, v128_and(u32x4_splat(last_flags), ending));
        store_chaining_values(&absorb(&inputs, cut..cut + 1, sizes, flags), values);
        let ended = values[last];
        inputs[last] = inputs[0];
        store_chaining_values(&absorb(&inputs, cut + 1..blocks, full, plain), values);
        values[last] = ended;
    }

    /// The parents of neighbors, in place, level by level, until at most `target` of the `n` values
    /// are left. Returns how many there are. An odd value at the end moves up unchanged.
    pub(crate) fn ascend(&self, values: &mut [Value; 64], mut n: usize, target: usize) -> usize {
        while n > target {
            let pairs = n / 2;
            let mut i = 0;
            while i < pairs {
                self.parents(values, i, (pairs - i).min(LANES));
                i += LANES;
            }
            if n % 2 == 1 {
                *found(values.get_mut(pairs)) = *found(values.get(n - 1));
            }
            n = n.div_ceil(2);
        }
        n
    }

    /// Computes parents `i` to `i + count` of the values in place: overwritten values have been
    /// read. It writes up to four; those beyond `count` are after the end of the level.
    fn parents(&self, values: &mut [Value; 64], i: usize, count: usize) {
        let children = found(values.get(2 * i..2 * (i + count))).as_flattened();
        if count == 1 {
            let parent = self.parent(found(children.first_chunk()));
            *found(values.get_mut(i)) = parent;
            return;
        }
        let blocks = core::array::from_fn(|k| {
            children.as_ptr().wrapping_add(if k < count { BLOCK_LEN * k } else { 0 })
        });
        let mut h = splat_key(&self.key);
        let [zero, len, flags] =
            [0, BLOCK_LEN as u32, self.flags | PARENT].map(|word| U32x4(u32x4_splat(word)));
        // SAFETY: the children are readable.
        unsafe { absorb4(&mut h, &blocks, 0..1, &[zero, zero, len, flags], (0, 0)) };
        store_chaining_values(
            &h,
            found(values.get_mut(i..i + LANES).and_then(|four| four.first_chunk_mut())),
        );
    }

    /// The parent of two values.
    pub(crate) fn parent(&self, children: &[u8; BLOCK_LEN]) -> Value {
        let parents = KeyedKernel { flags: self.flags | PARENT, ..*self };
        parents.value(children, 0, (0, 0))
    }
}

/// The digests of consecutive inputs of `len` bytes, at most a chunk.
pub(crate) fn digests(mut input: &[u8], len: usize, out: &mut [Value]) {
    for out in out.chunks_mut(LANES) {
        let live = out.len();
        let lanes = Lanes {
            inputs: core::array::from_fn(|i| input.as_ptr().wrapping_add(if i < live { len * i } else { 0 })),
            live,
            len,
            last_len: len,
            counters: [0; LANES],
            last_flags: CHUNK_END | ROOT,
        };
        let mut values = [[0; OUT_LEN]; LANES];
        // SAFETY: the lanes lie in the input.
        unsafe { KeyedKernel::PLAIN.run(&lanes, &mut values) };
        for (out, value) in out.iter_mut().zip(&values) {
            *out = *value;
        }
        input = found(input.get(len * live..));
    }
}

/// The address for reading the last block of an input, which begins after `before` bytes: in the
/// input, or in a padded copy. It is given as the address that the first block would have.
///
/// # Safety
///
/// The input must be readable.
#[inline(always)]
unsafe fn tail_of(
    input: *const u8,
    before: usize,
    len: usize,
    padded: &mut MaybeUninit<[u8; BLOCK_LEN]>,
) -> *const u8 {
    let to = padded.as_mut_ptr().cast::<u8>();
    // SAFETY: the last block of a readable input; the copy has room for a whole one.
    unsafe { copy_padded(input.wrapping_add(before), len - before, to) };
    to.wrapping_sub(before)
}

/// The key in every lane.
#[inline(always)]
fn splat_key(key: &Words) -> [U32x4; 8] {
    key.map(|word| U32x4(u32x4_splat(word)))
}

/// The words of a chaining value.
pub(crate) fn words(value: &Value) -> Words {
    let (words, _) = value.as_chunks::<4>();
    core::array::from_fn(|i| u32::from_le_bytes(words[i]))
}
