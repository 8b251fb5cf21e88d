//! Encoding, and extracting slices.

pub use super::slice::SliceExtractor;

use super::subtree::{MAX_SUBTREE_LEN, SubtreeShape, SubtreeValues, merge};
use super::walk::{NodeRank, SubtreeSpan};
use super::{EncodingLayout, GroupSize, HEADER_LEN, PARENT_LEN};
use crate::Hash;
use crate::keyed_kernel::Value;
use crate::plan::Prefetch;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The combined encoding of `input`, and its digest.
///
/// ```
/// use bulla_blake3::bao::encode::{encode, encoded_size};
///
/// let (encoded, hash) = encode("some input");
/// assert_eq!(encoded.len() as u128, encoded_size(10));
/// assert_eq!(hash, bulla_blake3::hash(b"some input"));
/// ```
pub fn encode(input: impl AsRef<[u8]>) -> (Vec<u8>, Hash) {
    encode_in(input.as_ref(), EncodingLayout::Combined, GroupSize::CHUNK)
}

/// The outboard encoding of `input`, and its digest.
pub fn outboard(input: impl AsRef<[u8]>) -> (Vec<u8>, Hash) {
    encode_in(input.as_ref(), EncodingLayout::Outboard, GroupSize::CHUNK)
}

/// Like [`encode`], with leaves of this size.
///
/// ```
/// use bulla_blake3::bao::{GroupSize, encode::encode_with_group_size};
///
/// let group = GroupSize::from_chunk_log(4).unwrap();
/// let (encoded, _hash) = encode_with_group_size([7; 100_000], group);
/// assert_eq!(encoded.len() as u128, group.encoded_size(100_000));
/// ```
pub fn encode_with_group_size(input: impl AsRef<[u8]>, group: GroupSize) -> (Vec<u8>, Hash) {
    encode_in(input.as_ref(), EncodingLayout::Combined, group)
}

/// Like [`outboard`], with leaves of this size.
///
/// ```
/// use bulla_blake3::bao::{GroupSize, encode};
///
/// let group = GroupSize::from_chunk_log(4).unwrap();
/// let (small, hash) = encode::outboard_with_group_size([7; 100_000], group);
/// assert!((small.len() as u128) < encode::outboard_size(100_000) / 15);
/// assert_eq!(hash, bulla_blake3::hash(&[7; 100_000]));
/// ```
pub fn outboard_with_group_size(input: impl AsRef<[u8]>, group: GroupSize) -> (Vec<u8>, Hash) {
    encode_in(input.as_ref(), EncodingLayout::Outboard, group)
}

/// The length of the combined encoding of `content_len` bytes, in bytes.
pub const fn encoded_size(content_len: u64) -> u128 {
    GroupSize::CHUNK.encoded_size(content_len)
}

/// The length of the outboard encoding of `content_len` bytes, in bytes.
pub const fn outboard_size(content_len: u64) -> u128 {
    GroupSize::CHUNK.outboard_size(content_len)
}

fn encode_in(input: &[u8], layout: EncodingLayout, group: GroupSize) -> (Vec<u8>, Hash) {
    let span = SubtreeSpan::root(input.len() as u64);
    let size = match layout {
        EncodingLayout::Combined => group.encoded_size(span.len),
        EncodingLayout::Outboard => group.outboard_size(span.len),
    };
    // If it does not fit, the allocation fails.
    let mut out = Vec::with_capacity(usize::try_from(size).unwrap_or(usize::MAX));
    out.extend_from_slice(&span.len.to_le_bytes());
    let mut values = SubtreeValues::new(Prefetch::for_input(input));
    let root = encode_subtree(input, span, (layout, group), &mut values, &mut out);
    (out, Hash::from_bytes(root))
}

/// Appends the encoding of the subtree over `input`, recursively by halves, down to
/// `MAX_SUBTREE_LEN` bytes. Returns the subtree's value.
fn encode_subtree(
    input: &[u8],
    span: SubtreeSpan,
    form: (EncodingLayout, GroupSize),
    values: &mut SubtreeValues,
    out: &mut Vec<u8>,
) -> Value {
    if input.len() <= MAX_SUBTREE_LEN {
        return values.encode((input, span.start, span.rank()), form, out);
    }
    let (left_span, right_span) = span.children(form.1);
    let (left, right) = input.split_at(left_span.len as usize);
    let parent = out.len();
    out.extend_from_slice(&[0; PARENT_LEN]);
    let left = encode_subtree(left, left_span, form, values, out);
    let right = encode_subtree(right, right_span, form, values, out);
    out[parent..][..PARENT_LEN].copy_from_slice([left, right].as_flattened());
    merge(&left, &right, span.rank())
}

/// Encodes the input that is written to it. The length need not be known in advance.
///
/// It writes the encoding from the start of `inner`, which should be empty. It needs less than 1
/// MiB of memory, whatever the length. It writes subtrees of 256 KiB in their final form, and the
/// parents of several subtrees after them. [`finalize`](Encoder::finalize) then moves everything
/// into pre-order; for this it reads and writes `inner` once, from the end to the start. Up to 256
/// KiB nothing needs to move.
///
/// To write a large combined encoding only once, make an outboard encoding, and extract a slice of
/// everything: see [`SliceExtractor`].
///
/// ```
/// use bulla_blake3::bao::encode::{Encoder, outboard};
/// use std::io::{Cursor, Write};
///
/// let mut encoder = Encoder::new_outboard(Cursor::new(Vec::new()));
/// encoder.write_all(b"some ")?;
/// encoder.write_all(b"input")?;
/// let hash = encoder.finalize()?;
/// assert_eq!((encoder.into_inner().into_inner(), hash), outboard(b"some input"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Encoder<T: Read + Write + Seek> {
    inner: T,
    layout: EncodingLayout,
    group: GroupSize,
    /// Input that is not encoded yet. A full subtree waits for more input, because it may be the
    /// root.
    held: Vec<u8>,
    /// The values of the subtrees in `inner`, the largest first. Neighbors of one size merge only
    /// when the next one comes.
    stack: Vec<Value>,
    /// Subtrees of `MAX_SUBTREE_LEN` bytes in `inner`.
    subtrees: u64,
    /// The position at which the next bytes are written.
    position: u64,
    is_finished: bool,
    /// Kept for their memory.
    values: SubtreeValues,
    encoded: Vec<u8>,
}

impl<T: Read + Write + Seek> Encoder<T> {
    /// An encoder of a combined encoding.
    pub fn new(inner: T) -> Self {
        Encoder::of(inner, EncodingLayout::Combined)
    }

    /// An encoder of an outboard encoding.
    pub fn new_outboard(inner: T) -> Self {
        Encoder::of(inner, EncodingLayout::Outboard)
    }

    fn of(inner: T, layout: EncodingLayout) -> Self {
        Encoder {
            inner,
            layout,
            group: GroupSize::CHUNK,
            held: Vec::new(),
            stack: Vec::new(),
            subtrees: 0,
            position: HEADER_LEN as u64,
            is_finished: false,
            values: SubtreeValues::new(Prefetch::Off),
            encoded: Vec::new(),
        }
    }

    /// Sets the leaf size.
    ///
    /// # Panics
    ///
    /// If something has been written.
    #[must_use]
    pub fn with_group_size(mut self, group: GroupSize) -> Self {
        assert!(
            self.held.is_empty() && self.subtrees == 0,
            "the group size must be set before anything is written"
        );
        self.group = group;
        self
    }

    /// Completes the encoding and returns the digest of the input. Afterwards nothing can be
    /// written.
    ///
    /// # Errors
    ///
    /// The errors of `inner`; its content is then useless. It is also an error to call this twice.
    pub fn finalize(&mut self) -> io::Result<Hash> {
        self.check_unfinished()?;
        self.is_finished = true;
        let held = std::mem::take(&mut self.held);
        let span = SubtreeSpan::root(self.subtrees * MAX_SUBTREE_LEN as u64 + held.len() as u64);
        let rank = if self.subtrees == 0 { NodeRank::Root } else { NodeRank::Inner };
        self.put(&held, rank)?;
        let root = self.put_last_parents()?;
        if self.subtrees > 1 {
            let (mut from, mut to) = (self.position, self.position);
            self.put_in_order(span, &mut from, &mut to)?;
        }
        self.write_at(0, &span.len.to_le_bytes())?;
        self.inner.flush()?;
        Ok(Hash::from_bytes(root))
    }

    /// The writer.
    pub fn into_inner(self) -> T {
        self.inner
    }

    fn check_unfinished(&self) -> io::Result<()> {
        if self.is_finished {
            return Err(io::Error::other("the encoding is finished: nothing can be added to it"));
        }
        Ok(())
    }

    /// Encodes a subtree, after the complete parents of the subtrees before it. If that fails,
    /// nothing has changed.
    fn put(&mut self, content: &[u8], rank: NodeRank) -> io::Result<()> {
        let mut stack = self.stack.clone();
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        while stack.len() > self.subtrees.count_ones() as usize {
            merge_last(&mut stack, NodeRank::Inner, &mut encoded);
        }
        let start = self.subtrees * MAX_SUBTREE_LEN as u64;
        stack.push(self.values.encode((content, start, rank), (self.layout, self.group), &mut encoded));
        let written = self.write_at(self.position, &encoded);
        if written.is_ok() {
            self.position += encoded.len() as u64;
            self.stack = stack;
            self.subtrees += 1;
        }
        self.encoded = encoded;
        written
    }

    /// Writes the parents on the right edge, and returns the root's value.
    fn put_last_parents(&mut self) -> io::Result<Value> {
        let mut parents = Vec::new();
        while self.stack.len() > 1 {
            let rank = if self.stack.len() == 2 { NodeRank::Root } else { NodeRank::Inner };
            merge_last(&mut self.stack, rank, &mut parents);
        }
        self.write_at(self.position, &parents)?;
        self.position += parents.len() as u64;
        Ok(self.stack[0])
    }

    /// Moves the encoding of a subtree. In the old place, which ends at `from`, parents follow
    /// their children; in the new place, which ends at `to`, it is in pre-order. `from` and `to`
    /// become the starts of these places.
    fn put_in_order(&mut self, span: SubtreeSpan, from: &mut u64, to: &mut u64) -> io::Result<()> {
        if span.len <= MAX_SUBTREE_LEN as u64 {
            let len = SubtreeShape::new(span.len as usize, self.group).encoded_len(self.layout);
            let mut encoded = std::mem::take(&mut self.encoded);
            encoded.resize(len, 0);
            self.read_before(from, &mut encoded)?;
            *to -= len as u64;
            self.write_at(*to, &encoded)?;
            self.encoded = encoded;
            return Ok(());
        }
        let mut parent = [0; PARENT_LEN];
        self.read_before(from, &mut parent)?;
        let (left, right) = span.children(self.group);
        self.put_in_order(right, from, to)?;
        self.put_in_order(left, from, to)?;
        *to -= PARENT_LEN as u64;
        self.write_at(*to, &parent)
    }

    fn read_before(&mut self, position: &mut u64, bytes: &mut [u8]) -> io::Result<()> {
        *position -= bytes.len() as u64;
        self.inner.seek(SeekFrom::Start(*position))?;
        self.inner.read_exact(bytes)
    }

    fn write_at(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.seek(SeekFrom::Start(position))?;
        self.inner.write_all(bytes)
    }
}

/// Replaces the last two values by their parent, and appends it to `parents`.
fn merge_last(stack: &mut Vec<Value>, rank: NodeRank, parents: &mut Vec<u8>) {
    if let (Some(right), Some(left)) = (stack.pop(), stack.pop()) {
        parents.extend_from_slice([left, right].as_flattened());
        stack.push(merge(&left, &right, rank));
    }
}

impl<T: Read + Write + Seek> Write for Encoder<T> {
    /// Takes input. If that fails, none of it has been taken, and the caller can try again.
    fn write(&mut self, input: &[u8]) -> io::Result<usize> {
        self.check_unfinished()?;
        if self.held.len() == MAX_SUBTREE_LEN && !input.is_empty() {
            let held = std::mem::take(&mut self.held);
            let put = self.put(&held, NodeRank::Inner);
            self.held = held;
            put?;
            self.held.clear();
        }
        if self.held.is_empty() && input.len() > MAX_SUBTREE_LEN {
            self.put(&input[..MAX_SUBTREE_LEN], NodeRank::Inner)?;
            return Ok(MAX_SUBTREE_LEN);
        }
        let n = input.len().min(MAX_SUBTREE_LEN - self.held.len());
        self.held.extend_from_slice(&input[..n]);
        Ok(n)
    }

    /// Flushes what has been written. Up to 256 KiB of input stay in memory until more comes.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read + Write + Seek> fmt::Debug for Encoder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("layout", &self.layout)
            .field("group", &self.group)
            .field("content_len", &(self.subtrees * MAX_SUBTREE_LEN as u64 + self.held.len() as u64))
            .finish_non_exhaustive()
    }
}
