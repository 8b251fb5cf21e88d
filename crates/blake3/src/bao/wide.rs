//! Chaining values of neighboring nodes, computed as wide as the kernel allows.

use crate::instance::{KeyedKernel, Value};
use crate::kernel::functions;
use crate::plan::Prefetch;
use crate::spec::{CHUNK_LEN, IV};
use crate::tree::LevelValues;

/// Appends the chaining values of the chunks of `input`. Only the last chunk may be short, and none
/// is the root. `counter` is the first chunk's counter.
pub(super) fn push_chunks(input: &[u8], mut counter: u64, prefetch: Prefetch, values: &mut Vec<Value>) {
    let instance = KeyedKernel::new(functions(), &IV, 0);
    for group in input.chunks(instance.lanes() * CHUNK_LEN) {
        let mut room = LevelValues::new();
        room.hash_chunks(&instance, group, counter, prefetch);
        values.extend_from_slice(room.as_slice());
        counter += instance.lanes() as u64;
    }
}

/// Appends the parents of the pairs of values that begin at `from`, and an odd last value
/// unchanged.
pub(super) fn push_parents(values: &mut Vec<Value>, from: usize) {
    let instance = KeyedKernel::new(functions(), &IV, 0);
    let end = values.len();
    for first in (from..end).step_by(2 * instance.lanes()) {
        let mut room = LevelValues::new();
        room.hash_pairs(&instance, &values[first..end.min(first + 2 * instance.lanes())]);
        values.extend_from_slice(room.as_slice());
    }
    if (end - from) % 2 == 1 {
        values.push(values[end - 1]);
    }
}
