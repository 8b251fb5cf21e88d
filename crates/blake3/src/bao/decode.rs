//! Decoding: it returns only verified bytes.

use super::source::Source;
use super::subtree::{self, SubtreeShape, SubtreeValues};
use super::walk::SubtreeSpan;
use super::walk::{Walk, wanted};
use super::{GroupSize, PARENT_LEN};
use crate::Hash;
use crate::keyed_kernel::Value;
use crate::plan::Prefetch;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// The most bytes that are verified at a time, unless a leaf is longer: twice the widest group of
/// chunks, so that parents come in full groups too. Larger buffers would be so large that
/// allocators request them from the system, and return them, for every decoder.
const MAX_STEP_LEN: usize = 32 * 1024;

/// Decodes a combined encoding that is completely in memory, and returns the input.
///
/// # Errors
///
/// The errors of [`Error`].
///
/// ```
/// use bulla_blake3::bao::{decode::decode, encode::encode};
///
/// let (encoded, hash) = encode("some input");
/// assert_eq!(decode(&encoded, &hash)?, b"some input");
/// assert!(decode(&encoded[..9], &hash).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn decode(encoded: impl AsRef<[u8]>, hash: &Hash) -> io::Result<Vec<u8>> {
    let encoded = encoded.as_ref();
    let claimed = encoded.first_chunk().map_or(0, |header| u64::from_le_bytes(*header));
    // The claimed length may be false, but the input is never longer than its encoding.
    let capacity = usize::try_from(claimed).unwrap_or(usize::MAX).min(encoded.len());
    let mut content = Vec::with_capacity(capacity);
    Decoder::new(encoded, hash).read_to_end(&mut content)?;
    Ok(content)
}

/// Reads the input from an encoding, and verifies it on the way.
///
/// It can seek if its readers can; positions are counted from their starts. Seeking itself verifies
/// nothing, except a seek relative to the end, which must verify the length. The next read verifies
/// the parents on the path to the position.
///
/// It verifies as many bytes at a time as fit into the caller's buffer, at most 32 KiB and at least
/// a leaf: large buffers reach the widest kernels. It reads nothing after the encoding.
///
/// ```
/// use std::io::Read;
///
/// use bulla_blake3::bao::{GroupSize, decode::Decoder, encode::encode_with_group_size};
///
/// let (encoded, hash) = encode_with_group_size("some input", GroupSize::MAX);
/// let mut decoder = Decoder::new(&encoded[..], &hash).with_group_size(GroupSize::MAX);
/// let mut output = String::new();
/// decoder.read_to_string(&mut output)?;
/// assert_eq!(output, "some input");
/// let (rest, _) = decoder.into_inner();
/// assert!(rest.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Decoder<T: Read, O: Read = T> {
    verifier: Verifier<T, O>,
}

impl<T: Read> Decoder<T, T> {
    /// A decoder of a combined encoding.
    pub fn new(inner: T, hash: &Hash) -> Self {
        Decoder { verifier: Verifier::new(Source::new(inner, None), hash, 0, u64::MAX) }
    }
}

impl<T: Read, O: Read> Decoder<T, O> {
    /// A decoder of the input and its outboard encoding.
    ///
    /// ```
    /// use std::io::Read;
    ///
    /// use bulla_blake3::bao::{decode::Decoder, encode::outboard};
    ///
    /// let (outboard, hash) = outboard("some input");
    /// let mut output = String::new();
    /// let mut decoder = Decoder::new_outboard(&b"some input"[..], &outboard[..], &hash);
    /// decoder.read_to_string(&mut output)?;
    /// assert_eq!(output, "some input");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_outboard(inner: T, outboard: O, hash: &Hash) -> Self {
        Decoder { verifier: Verifier::new(Source::new(inner, Some(outboard)), hash, 0, u64::MAX) }
    }

    /// Sets the leaf size of the encoding.
    ///
    /// # Panics
    ///
    /// If something has been read.
    #[must_use]
    pub fn with_group_size(mut self, group: GroupSize) -> Self {
        self.verifier.set_group_size(group);
        self
    }

    /// The readers: the one of the combined encoding or the input, and the one of the outboard
    /// encoding if there is one.
    pub fn into_inner(self) -> (T, Option<O>) {
        self.verifier.source.into_inner()
    }
}

impl<T: Read, O: Read> Read for Decoder<T, O> {
    /// Fails as the readers do, and with [`Error`].
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.verifier.read(out)
    }

    fn read_to_end(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        self.verifier.read_to_end(out)
    }
}

impl<T: Read + Seek, O: Read + Seek> Seek for Decoder<T, O> {
    /// Fails with `InvalidInput` for positions before the start or after 2^64 - 1. Positions beyond
    /// the end are allowed.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let verifier = &mut self.verifier;
        verifier.move_source = Source::seek;
        let (base, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::Current(by) => (verifier.position, by),
            SeekFrom::End(by) => (verifier.verified_len()?, by),
        };
        let position = base.checked_add_signed(by).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a position before the start or after 2^64 - 1")
        })?;
        verifier.go_to(position);
        Ok(position)
    }
}

impl<T: Read, O: Read> fmt::Debug for Decoder<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verifier.debug("Decoder", f)
    }
}

/// Reads a range of the input from a slice, and verifies it on the way: see
/// [`SliceExtractor`](super::encode::SliceExtractor).
///
/// The range must be the one that the slice was extracted for. It is cut off at the end of the
/// input.
#[derive(Clone)]
pub struct SliceDecoder<T: Read> {
    verifier: Verifier<T, T>,
}

impl<T: Read> SliceDecoder<T> {
    /// A decoder of the slice in `inner`, for `slice_len` bytes from `slice_start` on.
    pub fn new(inner: T, hash: &Hash, slice_start: u64, slice_len: u64) -> Self {
        let end = slice_start.saturating_add(slice_len);
        SliceDecoder { verifier: Verifier::new(Source::new(inner, None), hash, slice_start, end) }
    }

    /// Sets the leaf size of the encoding that the slice was taken from.
    ///
    /// # Panics
    ///
    /// If something has been read.
    #[must_use]
    pub fn with_group_size(mut self, group: GroupSize) -> Self {
        self.verifier.set_group_size(group);
        self
    }

    /// The reader.
    pub fn into_inner(self) -> T {
        self.verifier.source.into_inner().0
    }
}

impl<T: Read> Read for SliceDecoder<T> {
    /// Fails as the reader does, and with [`Error`].
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.verifier.read(out)
    }

    fn read_to_end(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        self.verifier.read_to_end(out)
    }
}

impl<T: Read> fmt::Debug for SliceDecoder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verifier.debug("SliceDecoder", f)
    }
}

/// The common part of both decoders.
#[derive(Clone)]
struct Verifier<R, T> {
    source: Source<R, T>,
    /// Moves the source to a subtree after others were skipped. It is set by the first `seek`,
    /// which exists only for readers that can seek.
    move_source: fn(&mut Source<R, T>, &SubtreeSpan) -> io::Result<()>,
    group: GroupSize,
    root: Hash,
    /// The length of the input, once the header has been read, and the subtrees to come.
    tree: Option<(u64, Walk<Value>)>,
    /// Whether the last leaf, and with it the length, has been verified.
    len_is_verified: bool,
    /// The target of the last seek or the start of the slice, and the end of the slice.
    start: u64,
    end: u64,
    /// The position of the next byte to return.
    position: u64,
    /// Verified input, and the position of its first byte.
    content: Vec<u8>,
    content_start: u64,
    /// Kept for their memory.
    parents: Vec<u8>,
    values: SubtreeValues,
}

impl<R, T> Verifier<R, T> {
    fn new(source: Source<R, T>, root: &Hash, start: u64, end: u64) -> Self {
        Verifier {
            source,
            move_source: Source::stay,
            group: GroupSize::CHUNK,
            root: *root,
            tree: None,
            len_is_verified: false,
            start,
            end,
            position: start,
            content: Vec::new(),
            content_start: 0,
            parents: Vec::new(),
            values: SubtreeValues::new(Prefetch::Off),
        }
    }

    fn set_group_size(&mut self, group: GroupSize) {
        assert!(self.tree.is_none(), "the group size must be set before anything is read");
        self.group = group;
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("position", &self.position)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }

    /// Makes the next read begin at `position`.
    fn go_to(&mut self, position: u64) {
        (self.start, self.position) = (position, position);
        let Some((len, walk)) = &mut self.tree else { return };
        let held = self.content_start..self.content_start + self.content.len() as u64;
        let needed = if held.contains(&position) { held.end } else { position };
        if walk.position().is_none_or(|next| next > needed) {
            *walk = Walk::new(*len, self.root.into());
            walk.skipped = true;
        }
    }

    /// Verified bytes from the position on.
    fn ready(&self) -> &[u8] {
        let skip = self.position.checked_sub(self.content_start).and_then(|skip| usize::try_from(skip).ok());
        let ready = skip.and_then(|skip| self.content.get(skip..)).unwrap_or_default();
        let most = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        &ready[..ready.len().min(most)]
    }
}

/// Whether there may be more to read.
#[derive(PartialEq, Eq)]
enum Progress {
    More,
    End,
}

impl<R: Read, T: Read> Verifier<R, T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.ready().is_empty() {
            if self.advance(out.len())? == Progress::End {
                return Ok(0);
            }
        }
        let ready = self.ready();
        let n = ready.len().min(out.len());
        out[..n].copy_from_slice(&ready[..n]);
        self.position += n as u64;
        Ok(n)
    }

    fn read_to_end(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        let before = out.len();
        loop {
            let ready = self.ready();
            let n = ready.len();
            out.extend_from_slice(ready);
            self.position += n as u64;
            if self.advance(MAX_STEP_LEN)? == Progress::End {
                return Ok(out.len() - before);
            }
        }
    }

    /// The verified length of the input. To verify it, this verifies the last leaf.
    fn verified_len(&mut self) -> io::Result<u64> {
        let position = self.position;
        if !self.len_is_verified {
            self.go_to(u64::MAX);
            let verified = loop {
                match self.advance(0) {
                    Ok(Progress::More) => {}
                    end => break end,
                }
            };
            self.go_to(position);
            verified?;
        }
        Ok(self.tree.as_ref().map_or(0, |(len, _)| *len))
    }

    /// Takes one step: reads the header, or verifies a parent or a subtree of about `room` bytes.
    fn advance(&mut self, room: usize) -> io::Result<Progress> {
        let Some((len, walk)) = &mut self.tree else {
            let len = u64::from_le_bytes(self.source.header()?);
            self.source.consume_header();
            self.tree = Some((len, Walk::new(len, self.root.into())));
            return Ok(Progress::More);
        };
        let slice_is_complete = self.position >= self.end && self.position > self.start;
        if slice_is_complete || self.len_is_verified && self.position >= *len {
            return Ok(Progress::End);
        }
        let range = wanted(self.position, self.end, *len);
        let Some((span, value)) = walk.next_in(&range) else { return Ok(Progress::End) };
        if walk.skipped {
            (self.move_source)(&mut self.source, &span)?;
            walk.skipped = false;
        }
        let is_whole = span.start >= range.start && span.end() <= range.end;
        if span.is_leaf(self.group) {
            self.subtree(&span, &value)?;
        } else if !(is_whole
            && span.len <= room.min(MAX_STEP_LEN) as u64
            && self.subtree(&span, &value).is_ok())
        {
            self.parent(&span, &value)?;
        }
        Ok(Progress::More)
    }

    /// Verifies a parent, and goes to its children.
    fn parent(&mut self, span: &SubtreeSpan, value: &Value) -> io::Result<()> {
        let block = self.source.parent()?;
        let (left, right) = subtree::split(&block);
        verify(&subtree::merge(&left, &right, span.rank()), value)?;
        self.source.consume_parent();
        if let Some((_, walk)) = &mut self.tree {
            walk.descend(self.group, left, right);
        }
        Ok(())
    }

    /// Verifies a whole subtree, and makes its input ready.
    fn subtree(&mut self, span: &SubtreeSpan, value: &Value) -> io::Result<()> {
        let mut content = std::mem::take(&mut self.content);
        let verified = self.verify_subtree(span, value, &mut content);
        if verified.is_err() {
            content.clear();
        }
        (self.content, self.content_start) = (content, span.start);
        verified
    }

    fn verify_subtree(&mut self, span: &SubtreeSpan, value: &Value, content: &mut Vec<u8>) -> io::Result<()> {
        let shape = SubtreeShape::new(span.len as usize, self.group);
        self.source.subtree(&shape, content, &mut self.parents)?;
        verify(&self.values.compute(content, span.start, span.rank()), value)?;
        // The input is right. A caller that repairs or forwards an encoding also needs the parents
        // to be right.
        self.verify_parents(&shape)?;
        self.source.consume_subtree(&shape);
        if let Some((len, walk)) = &mut self.tree {
            walk.skip_next();
            self.len_is_verified |= span.end() == *len;
        }
        Ok(())
    }

    /// Compares the parents of a subtree with those of its input.
    fn verify_parents(&self, shape: &SubtreeShape) -> Result<(), Error> {
        let (mut parents, mut same) = (self.parents.chunks_exact(PARENT_LEN), true);
        shape.pre_order(|node| {
            if let subtree::EncodingNode::Parent(left) = node {
                same &= parents.next() == Some(self.values.parent(left));
            }
        });
        if same { Ok(()) } else { Err(Error::HashMismatch) }
    }
}

/// Compares in constant time.
fn verify(value: &Value, expected: &Value) -> Result<(), Error> {
    if Hash::from_bytes(*value) == Hash::from_bytes(*expected) { Ok(()) } else { Err(Error::HashMismatch) }
}

/// A problem of an encoding.
///
/// The readers of this module return it inside an [`io::Error`]: use
/// [`get_ref`](io::Error::get_ref) and `downcast_ref`. They return all bytes that could be verified
/// before the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes do not match the digest. [`io::ErrorKind::InvalidData`].
    HashMismatch,
    /// It ends too early. [`io::ErrorKind::UnexpectedEof`].
    Truncated,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::HashMismatch => "the encoding is corrupt, or not of this digest",
            Error::Truncated => "the encoding is truncated",
        })
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::HashMismatch => io::ErrorKind::InvalidData,
            Error::Truncated => io::ErrorKind::UnexpectedEof,
        };
        io::Error::new(kind, error)
    }
}
