//! Chaining values of neighbours, as wide as the kernel.

use crate::kernel::{Functions, Group, Lane, MAX_LANES, functions};
use crate::spec::{CHUNK_END, IV};
use crate::tree::{Distance, Value};
use crate::{CHUNK_LEN, OUT_LEN};
use core::mem::MaybeUninit;

/// Appends the chaining values of the chunks of `input`, of which only the last may be short and none is the root. `counter` is
/// that of the first.
pub(super) fn push_chunks(input: &[u8], mut counter: u64, distance: Distance, values: &mut Vec<Value>) {
    let functions = functions();
    let (groups, rest) =
        input.split_at(input.len() / (functions.lanes * CHUNK_LEN) * functions.lanes * CHUNK_LEN);
    for input in groups.chunks_exact(functions.lanes * CHUNK_LEN) {
        values.extend_from_slice(&group(functions, input, counter, distance)[..functions.lanes]);
        counter += functions.lanes as u64;
    }
    if !rest.is_empty() {
        let n = rest.len().div_ceil(CHUNK_LEN);
        values.extend_from_slice(&ragged(functions, rest, counter)[..n]);
    }
}

/// Appends the parents of the pairs of values that begin at `from`, and an odd last value as it is.
pub(super) fn push_parents(values: &mut Vec<Value>, from: usize) {
    let functions = functions();
    let end = values.len();
    for first in (from..end).step_by(2 * functions.lanes) {
        let pairs = functions.lanes.min((end - first) / 2);
        let mut room = [[0; OUT_LEN]; MAX_LANES];
        if pairs > 0 {
            let children = values[first..][..2 * pairs].as_flattened();
            // SAFETY: `pairs` pairs of values are readable; there is room for the most lanes of any kernel.
            unsafe {
                (functions.parents)(children.as_ptr(), pairs, &IV, 0, room.as_mut_ptr().cast());
            }
        }
        values.extend_from_slice(&room[..pairs]);
    }
    if (end - from) % 2 == 1 {
        values.push(values[end - 1]);
    }
}

/// The values of a whole group of chunks.
fn group(functions: &Functions, input: &[u8], counter: u64, distance: Distance) -> [Value; MAX_LANES] {
    assert_eq!(input.len(), functions.lanes * CHUNK_LEN);
    let hash = if distance == Distance::Far { functions.far_group } else { functions.group };
    let mut group = MaybeUninit::<Group>::uninit();
    let mut room = [[0; OUT_LEN]; MAX_LANES];
    // SAFETY: a whole group of chunks is readable; there is room for the most lanes of any kernel.
    unsafe {
        hash(input.as_ptr(), &IV, counter, 0, group.as_mut_ptr());
        (functions.ungroup)(group.as_ptr(), room.as_mut_ptr().cast());
    }
    room
}

/// The values of up to a group of chunks, of which the last may be short.
fn ragged(functions: &Functions, input: &[u8], counter: u64) -> [Value; MAX_LANES] {
    let chunks = input.chunks(CHUNK_LEN);
    let n = chunks.len();
    assert!(n <= functions.lanes);
    let none = Lane { input: core::ptr::null(), len: 0, counter: 0, last_flags: 0 };
    let mut lanes = [none; MAX_LANES];
    for ((lane, chunk), counter) in lanes.iter_mut().zip(chunks).zip(counter..) {
        *lane = Lane { input: chunk.as_ptr(), len: chunk.len(), counter, last_flags: CHUNK_END };
    }
    let mut room = [[0; OUT_LEN]; MAX_LANES];
    // SAFETY: the lanes are those of slices; there is room for the most lanes of any kernel.
    unsafe { (functions.lanes_of)(&lanes[..n], &IV, 0, room.as_mut_ptr().cast()) };
    room
}
