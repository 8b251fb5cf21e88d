//! Slices: the part of an encoding that is needed to verify a range of the input.

use super::GroupSize;
use super::source::Source;
use super::subtree::{MAX_SUBTREE_LEN, SubtreeShape};
use super::walk::{Walk, wanted};
use std::fmt;
use std::io::{self, Read, Seek};

/// Reads a slice from an encoding: the part that a [`SliceDecoder`](super::decode::SliceDecoder)
/// needs for a range of the input.
///
/// It verifies and hashes nothing. A slice of the whole input is the combined encoding: so a slice
/// from 0 with the input's length turns an outboard encoding into a combined one.
///
/// The range is cut off at the end of the input. An empty range counts as one byte. If a range
/// begins after the end, the slice has the last leaf, which verifies the end.
///
/// ```
/// use bulla_blake3::bao::{decode::SliceDecoder, encode};
/// use std::io::{Cursor, Read};
///
/// let input = vec![7; 1_000_000];
/// let (encoded, hash) = encode::encode(&input);
/// let (start, len) = (65_536, 8_192);
///
/// let mut slice = Vec::new();
/// encode::SliceExtractor::new(Cursor::new(&encoded), start, len).read_to_end(&mut slice)?;
/// assert_eq!(slice.len(), 9096);
///
/// let mut output = Vec::new();
/// SliceDecoder::new(&slice[..], &hash, start, len).read_to_end(&mut output)?;
/// assert_eq!(output, &input[65_536..][..8_192]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct SliceExtractor<T: Read + Seek, O: Read + Seek> {
    source: Source<T, O>,
    group: GroupSize,
    start: u64,
    len: u64,
    /// The length of the input, once the header has been read, and the subtrees to come.
    tree: Option<(u64, Walk<()>)>,
    /// The next bytes of the slice, and how many of them have been read.
    ready: Vec<u8>,
    given: usize,
}

impl<T: Read + Seek> SliceExtractor<T, T> {
    /// An extractor from a combined encoding, for `slice_len` bytes of the input from `slice_start`
    /// on.
    pub fn new(input: T, slice_start: u64, slice_len: u64) -> Self {
        SliceExtractor::of(Source::new(input, None), slice_start, slice_len)
    }
}

impl<T: Read + Seek, O: Read + Seek> SliceExtractor<T, O> {
    /// An extractor from the input and its outboard encoding, for `slice_len` bytes of the input
    /// from `slice_start` on.
    pub fn new_outboard(input: T, outboard: O, slice_start: u64, slice_len: u64) -> Self {
        SliceExtractor::of(Source::new(input, Some(outboard)), slice_start, slice_len)
    }

    fn of(source: Source<T, O>, start: u64, len: u64) -> Self {
        let group = GroupSize::CHUNK;
        SliceExtractor { source, group, start, len, tree: None, ready: Vec::new(), given: 0 }
    }

    /// Sets the leaf size of the encoding.
    ///
    /// # Panics
    ///
    /// If something has been read.
    #[must_use]
    pub fn with_group_size(mut self, group: GroupSize) -> Self {
        assert!(self.tree.is_none(), "the group size must be set before anything is read");
        self.group = group;
        self
    }

    /// The readers: the one of the combined encoding or the input, and the one of the outboard
    /// encoding if there is one.
    pub fn into_inner(self) -> (T, Option<O>) {
        self.source.into_inner()
    }

    /// Makes the next bytes ready. At the end there are none.
    fn refill(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.given = 0;
        let Some((len, walk)) = &mut self.tree else {
            let header = self.source.header()?;
            self.source.consume_header();
            self.ready.extend_from_slice(&header);
            let len = u64::from_le_bytes(header);
            self.tree = Some((len, Walk::new(len, ())));
            return Ok(());
        };
        let range = wanted(self.start, self.start.saturating_add(self.len), *len);
        let Some((span, ())) = walk.next_in(&range) else { return Ok(()) };
        if walk.skipped {
            self.source.seek(&span)?;
            walk.skipped = false;
        }
        let is_whole = span.start >= range.start && span.end() <= range.end;
        if span.is_leaf(self.group) || is_whole && span.len <= MAX_SUBTREE_LEN as u64 {
            let shape = SubtreeShape::new(span.len as usize, self.group);
            self.source.encoded_subtree(&shape, &mut self.ready)?;
            self.source.consume_subtree(&shape);
            walk.skip_next();
        } else {
            self.ready.extend_from_slice(&self.source.parent()?);
            self.source.consume_parent();
            walk.descend(self.group, (), ());
        }
        Ok(())
    }
}

impl<T: Read + Seek, O: Read + Seek> Read for SliceExtractor<T, O> {
    /// Fails as the readers do, and with [`Error::Truncated`](super::decode::Error::Truncated).
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.ready.len() && !out.is_empty() {
            self.refill()?;
        }
        let ready = &self.ready[self.given..];
        let n = ready.len().min(out.len());
        out[..n].copy_from_slice(&ready[..n]);
        self.given += n;
        Ok(n)
    }
}

impl<T: Read + Seek, O: Read + Seek> fmt::Debug for SliceExtractor<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceExtractor")
            .field("start", &self.start)
            .field("len", &self.len)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}
