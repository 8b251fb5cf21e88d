//! The bytes of an encoding, from one reader or from two.
//!
//! Bytes are examined before they are consumed. If the reader or the verification fails, the caller
//! can try again, and gets the same failure if nothing has changed.

use super::decode::Error;
use super::subtree::{EncodingNode, SubtreeShape};
use super::walk::SubtreeSpan;
use super::{EncodingLayout, HEADER_LEN, PARENT_LEN};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

/// A reader, and the bytes that were read from it but not consumed yet.
#[derive(Clone)]
struct Stream<R> {
    inner: R,
    /// Never longer than the largest subtree that is taken at a time, whatever length the encoding
    /// claims.
    buffer: Vec<u8>,
    /// The part of the buffer that is not consumed yet.
    ahead: Range<usize>,
}

impl<R> Stream<R> {
    fn new(inner: R) -> Self {
        Stream { inner, buffer: Vec::new(), ahead: 0..0 }
    }

    fn consume(&mut self, n: usize) {
        self.ahead.start += n;
    }
}

impl<R: Read> Stream<R> {
    /// The next `n` bytes. If reading fails, the bytes that were read are kept.
    fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        if self.ahead.len() < n && self.ahead.start > 0 {
            self.buffer.copy_within(self.ahead.clone(), 0);
            self.ahead = 0..self.ahead.len();
        }
        let end = self.ahead.start + n;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while self.ahead.end < end {
            match self.inner.read(&mut self.buffer[self.ahead.end..end]) {
                Ok(0) => return Err(Error::Truncated.into()),
                Ok(n) => self.ahead.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.ahead.start..end])
    }
}

impl<R: Seek> Stream<R> {
    fn seek(&mut self, position: u128) -> io::Result<()> {
        // No file is longer, so at a position beyond this there is no data.
        let position = i64::try_from(position).map_err(|_| Error::Truncated)?;
        self.ahead = 0..0;
        self.inner.seek(SeekFrom::Start(position as u64))?;
        Ok(())
    }
}

/// A combined encoding, or the input and an outboard encoding of it.
#[derive(Clone)]
pub(super) struct Source<R, T> {
    content: Stream<R>,
    tree: Option<Stream<T>>,
}

impl<R, T> Source<R, T> {
    pub(super) fn new(content: R, tree: Option<T>) -> Self {
        Source { content: Stream::new(content), tree: tree.map(Stream::new) }
    }

    pub(super) fn into_inner(self) -> (R, Option<T>) {
        (self.content.inner, self.tree.map(|tree| tree.inner))
    }

    fn consume_tree(&mut self, n: usize) {
        match &mut self.tree {
            Some(tree) => tree.consume(n),
            None => self.content.consume(n),
        }
    }

    pub(super) fn consume_header(&mut self) {
        self.consume_tree(HEADER_LEN);
    }

    pub(super) fn consume_parent(&mut self) {
        self.consume_tree(PARENT_LEN);
    }

    pub(super) fn consume_subtree(&mut self, shape: &SubtreeShape) {
        match &mut self.tree {
            Some(tree) => {
                tree.consume(shape.encoded_len(EncodingLayout::Outboard));
                self.content.consume(shape.content_len());
            }
            None => self.content.consume(shape.encoded_len(EncodingLayout::Combined)),
        }
    }

    /// Does nothing, for a source with the wanted subtrees one after the other.
    pub(super) fn stay(&mut self, _: &SubtreeSpan) -> io::Result<()> {
        Ok(())
    }
}

impl<R: Read, T: Read> Source<R, T> {
    fn peek_tree<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let bytes = match &mut self.tree {
            Some(tree) => tree.peek(N)?,
            None => self.content.peek(N)?,
        };
        Ok(*bytes.first_chunk().ok_or(Error::Truncated)?)
    }

    /// The header with the length of the input, which is not verified yet.
    pub(super) fn header(&mut self) -> io::Result<[u8; HEADER_LEN]> {
        self.peek_tree()
    }

    pub(super) fn parent(&mut self) -> io::Result<[u8; PARENT_LEN]> {
        self.peek_tree()
    }

    /// Puts the input and the parents of a subtree, in pre-order, into `content` and `parents`.
    pub(super) fn subtree(
        &mut self,
        shape: &SubtreeShape,
        content: &mut Vec<u8>,
        parents: &mut Vec<u8>,
    ) -> io::Result<()> {
        content.clear();
        parents.clear();
        content.reserve(shape.content_len());
        parents.reserve(shape.encoded_len(EncodingLayout::Outboard));
        let Some(tree) = &mut self.tree else {
            let mut encoded = self.content.peek(shape.encoded_len(EncodingLayout::Combined))?;
            let mut next = |n| encoded.split_off(..n).unwrap_or_default();
            shape.pre_order(|node| match node {
                EncodingNode::Parent(_) => parents.extend_from_slice(next(PARENT_LEN)),
                EncodingNode::Leaf(range) => content.extend_from_slice(next(range.len())),
            });
            return Ok(());
        };
        parents.extend_from_slice(tree.peek(shape.encoded_len(EncodingLayout::Outboard))?);
        content.extend_from_slice(self.content.peek(shape.content_len())?);
        Ok(())
    }

    /// Appends the combined encoding of a subtree to `out`.
    pub(super) fn encoded_subtree(&mut self, shape: &SubtreeShape, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(tree) = &mut self.tree else {
            out.extend_from_slice(self.content.peek(shape.encoded_len(EncodingLayout::Combined))?);
            return Ok(());
        };
        let mut parents = tree.peek(shape.encoded_len(EncodingLayout::Outboard))?;
        let content = self.content.peek(shape.content_len())?;
        shape.pre_order(|node| match node {
            EncodingNode::Parent(_) => {
                out.extend_from_slice(parents.split_off(..PARENT_LEN).unwrap_or_default())
            }
            EncodingNode::Leaf(range) => out.extend_from_slice(&content[range]),
        });
        Ok(())
    }
}

impl<R: Seek, T: Seek> Source<R, T> {
    /// Seeks to the start of a subtree.
    pub(super) fn seek(&mut self, span: &SubtreeSpan) -> io::Result<()> {
        match &mut self.tree {
            Some(tree) => {
                tree.seek(span.tree_position().into())?;
                self.content.seek(span.start.into())
            }
            None => self.content.seek(u128::from(span.start) + u128::from(span.tree_position())),
        }
    }
}
